/* conditions: the conditions of replays, which Python passes at the end of a recording. */
#include "../../core/error.h"
#include "../../core/memory.h"
#include "recording.h"

static void *optional(void *object) { return object == NR_NONE ? NULL : Py_XNewRef(object); }

/* record_conditions(recording, guards, those of the backward part, watches or None, before_run, after_run, restore,
 * stored, kept): the conditions of a run, and the Python functions before and after it. Without watches before_run is
 * always called; restore(results, arguments) puts copies of the tensors `stored` somewhere. */
NR_BUILTIN(record_conditions) {
    nr_recording *r = n == 9 ? nr_recording_of("record_conditions", args[0]) : NULL;
    if (!r || r->ready || r->conditions.guards.containers) {
        PyErr_SetString(PyExc_TypeError, "record_conditions: takes nine arguments, once for each recording");
        return NULL;
    }
    r->always_asks = args[3] == NR_NONE;
    r->before_run = optional(args[4]);
    r->after_run = optional(args[5]);
    r->restore = optional(args[6]);
    r->stored = Py_NewRef(args[7]);
    r->kept = optional(args[8]);
    if (nr_guards_read(&r->conditions.guards, args[1]) != NORCH_OK || nr_guards_read(&r->later, args[2]) != NORCH_OK ||
        nr_guards_read(&r->watches, args[3]) != NORCH_OK)
        return NULL;
    return Py_NewRef(NR_NONE);
}

/* record_read(recording, tensors, reads, ids): Python reads these tensors, which a run therefore must find as they are,
 * and of tensors what `reads` says; it may compare id() of an argument with the numbers of the list `ids`. */
NR_BUILTIN(record_read) {
    nr_recording *r = nr_counted("record_read", 4, n) ? nr_recording_of("record_read", args[0]) : NULL;
    if (!r || !r->program || r->ready) return NULL;
    nr_conditions *c = &r->conditions;
    c->reads |= PyLong_AsLongLong(args[2]);
    for (int64_t i = 0; i < PyList_Size(args[3]); i++) {
        if (!nr_grow(&c->ids, c->id_count, &c->id_capacity, sizeof *c->ids))
            return nr_fail(NORCH_ERROR_MEMORY, "capture: out of memory"), NULL;
        c->ids[c->id_count++] = PyLong_AsLongLong(PyList_GetItem(args[3], i));
    }
    for (int64_t i = 0; i < PyList_Size(args[1]); i++) {
        norch_tensor *x = PyList_GetItem(args[1], i);
        if (!nr_is_tensor(x)) continue;
        nr_recording_see(&r->program->observer, x);
        const int32_t block = x->storage ? nr_program_find(r->program, x->storage) : -1;
        if (block >= 0 && !r->program->blocks[block].external && nr_recording_keep(r, x) != NORCH_OK) return NULL;
        for (int64_t s = 0; s < r->log.seen_count; s++) r->log.seen[s].reached |= r->log.seen[s].x == x;
    }
    return Py_NewRef(NR_NONE);
}
