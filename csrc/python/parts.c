/* parts: a recording in two parts: forward, of a function, and backward, of its gradient, which is recorded later, in
 * backward(); and queries of the memory of results. */
#include "recording.h"

/* record_pause(recording, leaves, results): ends the forward part; numbers of arguments and results of the function. */
NR_BUILTIN(record_pause) {
    nr_recording *r = n == 3 ? nr_recording_of("record_pause", given[0]) : NULL;
    if (!r || !r->program || nr_observer_here() != &r->program->observer) {
        PyErr_SetString(PyExc_TypeError, "record_pause: takes a recording of this thread, and two numbers");
        return NULL;
    }
    nr_observe(NULL);
    nr_program_divide(r->program);
    for (int64_t i = 0; i < r->log.seen_count; i++)
        r->log.seen[i].gained = r->log.seen[i].x->node != r->log.seen[i].node;
    r->conditions.first_leaves = PyLong_AsLongLong(given[1]);
    r->first_results = PyLong_AsLongLong(given[2]);
    nr_recording_note_modes(r);
    return Py_NewRef(NR_NONE);
}

/* record_resume(recording): records the gradient from here on, until record_end() or record_suspend(). False if another
 * recording is active. */
NR_BUILTIN(record_resume) {
    nr_recording *r = nr_counted("record_resume", 1, n) ? nr_recording_of("record_resume", given[0]) : NULL;
    if (!r) return NULL;
    if (!r->program || r->ready || nr_observer_here()) return PyBool_FromLong(0);
    nr_observe(&r->program->observer);
    return PyBool_FromLong(1);
}

/* record_suspend(recording): stops recording. */
NR_BUILTIN(record_suspend) {
    nr_recording *r = nr_counted("record_suspend", 1, n) ? nr_recording_of("record_suspend", given[0]) : NULL;
    if (!r) return NULL;
    if (r->program && nr_observer_here() == &r->program->observer) nr_observe(NULL);
    return Py_NewRef(NR_NONE);
}

/* is_own(recording, i): whether the memory of the i-th result belongs to the recording, so that each run overwrites
 * it. */
NR_BUILTIN(is_own) {
    const nr_recording *r = nr_counted("is_own", 2, n) ? nr_recording_of("is_own", given[0]) : NULL;
    if (!r) return NULL;
    const int64_t i = PyLong_AsLongLong(given[1]);
    if (i < 0 || i >= r->result_count) return PyBool_FromLong(0);
    const nr_returned *one = &r->results[i];
    return PyBool_FromLong(one->leaf < 0 && !one->object && r->program->blocks[one->block].kind == NR_KEPT);
}

/* result_of(recording, i): the argument that the i-th result is a view of; -1: it has memory of its own; -2: it is an
 * argument itself, or another tensor from before the recording. */
NR_BUILTIN(result_of) {
    nr_recording *r = nr_counted("result_of", 2, n) ? nr_recording_of("result_of", given[0]) : NULL;
    if (!r) return NULL;
    const int64_t i = PyLong_AsLongLong(given[1]);
    if (i < 0 || i >= r->result_count) return PyLong_FromLongLong(-2);
    const nr_returned *one = &r->results[i];
    if (one->leaf >= 0 && one->offset >= 0) return PyLong_FromLongLong(one->leaf);
    return PyLong_FromLongLong(one->leaf < 0 && !one->object ? -1 : -2);
}
