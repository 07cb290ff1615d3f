/* captured: the base class of captured functions. A call replays the latest recording; if that is not possible, it
 * calls the method _call_slow_path() of Python. */
#include <stddef.h>

#include "../holder.h"
#include "recording.h"

static int64_t reasons; /* why Python must see whether this thread has hooks or a mode that replays do not know */

/* captured_slow_path(change): adds to the number of reasons for which all calls go to _call_slow_path(). */
NR_BUILTIN(captured_slow_path) {
    if (!nr_counted("captured_slow_path", 1, n)) return NULL;
    const int64_t change = PyLong_AsLongLong(args[0]);
    if (PyErr_Occurred()) return NULL;
    reasons += change;
    return Py_NewRef(NR_NONE);
}

static void *name_of(void **name, const char *text) {
    return *name ? *name : (*name = PyUnicode_InternFromString(text));
}

/* self._call_slow_path(*arguments, **named) */
static void *call_slow_path(nr_holder *self, void *arguments, void *named) {
    static void *name;
    void *method = name_of(&name, "_call_slow_path") ? PyObject_GetAttr(self, name) : NULL;
    void *result = method ? PyObject_Call(method, arguments, named) : NULL;
    if (method) Py_DecRef(method);
    return result;
}

/* self._replayed(program, out, arguments): for results that are nested, or that autograd records */
static void *replayed(nr_holder *self, void *program, void *out, void *arguments) {
    static void *name;
    return name_of(&name, "_replayed") ? PyObject_CallMethodObjArgs(self, name, program, out, arguments, NULL) : NULL;
}

static void *call(nr_holder *self, void *arguments, void *named) {
    void *latest = self->held[0], *program = self->held[1]; /* NULL before the first reset() */
    if (!latest || !program || latest == NR_NONE || reasons || (named && PyDict_Size(named)))
        return call_slow_path(self, arguments, named);
    if (nr_modes() & NR_CAST_SETTING) /* Python looks up the recording for the setting */
        return call_slow_path(self, arguments, named);
    nr_recording *r = nr_recording_of("call", latest);
    if (!r) return NULL;
    Py_IncRef(r);
    Py_IncRef(program);
    void *out = nr_recording_replay(r, arguments);
    if (out == NR_NOT_IMPLEMENTED) {
        Py_DecRef(out);
        out = call_slow_path(self, arguments, named);
    } else if (out && (!r->alone || r->program->divided)) {
        void *results = replayed(self, program, out, arguments);
        Py_DecRef(out);
        out = results;
    }
    Py_DecRef(program);
    Py_DecRef(r);
    return out;
}

/* captured_class(whether dicts have versions, the class of leaf nodes): a new class. Its instances have _latest, the
 * latest recording if its arguments are not nested, or None; and _program, which belongs to it. */
NR_BUILTIN(captured_class) {
    if (!nr_counted("captured_class", 2, n)) return NULL;
    nr_dicts_have_versions = PyObject_IsTrue(args[0]) == 1;
    nr_leaf_class = Py_NewRef(args[1]);
    static nr_member members[] = {
        {"_latest", NR_MEMBER_OBJECT, offsetof(nr_holder, held[0]), 0, NULL},
        {"_program", NR_MEMBER_OBJECT, offsetof(nr_holder, held[1]), 0, NULL},
        {NULL, 0, 0, 0, NULL},
    };
    return nr_holder_class("norch.CapturedBase", members, (nr_slot){NR_SLOT_CALL, (void *)(uintptr_t)call},
                           (nr_slot){0, NULL});
}
