/* guard: the base class of context managers that restore a setting, and calls with a lock. A signal handler raises its
 * exception between two bytecodes, so C code cannot be interrupted before the setting is restored, or the lock
 * released. */
#include <stddef.h>

#include "calls.h"
#include "holder.h"

/* _restores: a list of functions; __exit__ pops the last one and calls it. */
static nr_member members[] = {
    {"_restores", NR_MEMBER_OBJECT, offsetof(nr_holder, held[0]), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

/* Calls restore(), and again if an exception interrupts it, which may be a function of Python. */
static void *called(void *restore) {
    void *result = PyObject_CallObject(restore, NULL), *type, *value, *traceback;
    if (result) return result;
    PyErr_Fetch(&type, &value, &traceback);
    void *again = PyObject_CallObject(restore, NULL);
    if (again)
        Py_DecRef(again);
    else
        PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    return NULL;
}

static void *leave(void *self, void *const *args, nr_ssize n) {
    (void)args, (void)n;
    void *list = ((nr_holder *)self)->held[0];
    int64_t last = list ? PyList_Size(list) - 1 : -1;
    void *restore = last < 0 ? NULL : PyList_GetItem(list, last);
    if (!restore) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "__exit__: there was no __enter__");
        return NULL;
    }
    Py_IncRef(restore);
    void *result = PySequence_DelItem(list, last) ? NULL : called(restore);
    Py_DecRef(restore);
    if (!result) return NULL;
    Py_DecRef(result);
    return Py_NewRef(NR_NONE);
}

static nr_method methods[] = {{"__exit__", leave, NR_METHOD_FASTCALL, NULL}, {NULL, NULL, 0, NULL}};

/* guard_class(): a new class, the base of context managers that restore a setting. */
NR_BUILTIN(guard_class) {
    return nr_holder_class("norch.Guard", members, (nr_slot){NR_SLOT_METHODS, methods}, (nr_slot){0, NULL});
}

/* call_locked(lock, function, argument): function(argument) while the lock is taken. In Python 3.14 a `with lock` may
 * be interrupted when the lock is taken already, and then never releases it. */
NR_BUILTIN(call_locked) {
    if (!nr_counted("call_locked", 3, n)) return NULL;
    static void *acquire, *release;
    if (!acquire && !(acquire = PyUnicode_InternFromString("acquire"))) return NULL;
    if (!release && !(release = PyUnicode_InternFromString("release"))) return NULL;
    void *taken = PyObject_CallMethodObjArgs(args[0], acquire, NULL), *type, *value, *traceback;
    if (!taken) return NULL;
    Py_DecRef(taken);
    void *result = PyObject_CallFunctionObjArgs(args[1], args[2], NULL);
    PyErr_Fetch(&type, &value, &traceback);
    void *released = PyObject_CallMethodObjArgs(args[0], release, NULL);
    if (released) Py_DecRef(released);
    PyErr_Restore(type, value, traceback);
    return result;
}
