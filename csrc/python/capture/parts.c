/* parts: a recording in two parts: forward, of a function, and backward, of its gradient, which is recorded later, in
 * backward(); and queries of the memory of results. */
#include "../../core/memory.h"
#include "../modes.h"
#include "recording.h"

/* record_pause(recording, arguments, results): ends the forward part; results: how many the function has. */
NR_BUILTIN(record_pause) {
    nr_recording *r = n == 3 ? nr_recording_of("record_pause", args[0]) : NULL;
    if (!r || !r->program || nr_observer_here() != &r->program->observer) {
        PyErr_SetString(PyExc_TypeError, "record_pause: takes a recording of this thread, arguments, and a number");
        return NULL;
    }
    const int64_t leaves = PyTuple_Size(args[1]);
    if (!(r->log.modes = nr_malloc((size_t)leaves * sizeof *r->log.modes))) {
        nr_fail(NORCH_ERROR_MEMORY, "compile: out of memory");
        return NULL;
    }
    for (int64_t i = 0; i < leaves; i++) {
        void *leaf = PyTuple_GetItem(args[1], i);
        r->log.modes[i] = nr_is_tensor(leaf) ? nr_mode_of(leaf) : (nr_leaf_mode){0};
    }
    nr_observe(NULL);
    nr_program_divide(r->program);
    for (int64_t i = 0; i < r->log.seen_count; i++)
        r->log.seen[i].gained = r->log.seen[i].x->node != r->log.seen[i].node;
    r->conditions.first_leaves = leaves;
    r->first_results = PyLong_AsLongLong(args[2]);
    nr_recording_note_modes(r);
    return Py_NewRef(NR_NONE);
}

/* record_resume(recording): records the gradient from here on, until record_end() or record_suspend(). False if another
 * recording is active. */
NR_BUILTIN(record_resume) {
    nr_recording *r = nr_counted("record_resume", 1, n) ? nr_recording_of("record_resume", args[0]) : NULL;
    if (!r) return NULL;
    if (!r->program || r->ready || nr_observer_here()) return PyBool_FromLong(0);
    nr_observe(&r->program->observer);
    return PyBool_FromLong(1);
}

/* record_suspend(recording): stops recording. */
NR_BUILTIN(record_suspend) {
    nr_recording *r = nr_counted("record_suspend", 1, n) ? nr_recording_of("record_suspend", args[0]) : NULL;
    if (!r) return NULL;
    if (r->program && nr_observer_here() == &r->program->observer) nr_observe(NULL);
    return Py_NewRef(NR_NONE);
}

/* is_external(recording, x): whether the memory of x is from before the recording. */
NR_BUILTIN(is_external) {
    const nr_recording *r = nr_counted("is_external", 2, n) ? nr_recording_of("is_external", args[0]) : NULL;
    if (!r) return NULL;
    const norch_tensor *x = nr_is_tensor(args[1]) ? args[1] : NULL;
    const int32_t block = x && r->program ? nr_program_find(r->program, x->storage) : -1;
    return PyBool_FromLong(block < 0 || r->program->blocks[block].external);
}

/* share_storage(x, y): whether two tensors have one storage. */
NR_BUILTIN(share_storage) {
    if (!nr_counted("share_storage", 2, n)) return NULL;
    const norch_tensor *x = nr_is_tensor(args[0]) ? args[0] : NULL, *y = nr_is_tensor(args[1]) ? args[1] : NULL;
    return PyBool_FromLong(x && y && x->storage == y->storage);
}

/* carries(recording): whether results depend on tensors from before it that it writes to; before it ends. */
NR_BUILTIN(carries) {
    const nr_recording *r = nr_counted("carries", 1, n) ? nr_recording_of("carries", args[0]) : NULL;
    return r ? PyBool_FromLong(r->program && nr_program_carries(r->program)) : NULL;
}

/* written_tensors(recording): the tensors from before the recording that a run writes to. */
NR_BUILTIN(written_tensors) {
    const nr_recording *r = nr_counted("written_tensors", 1, n) ? nr_recording_of("written_tensors", args[0]) : NULL;
    if (!r) return NULL;
    int64_t count = 0;
    for (int64_t i = 0; i < r->used_count; i++) count += r->used[i].written;
    void *tuple = PyTuple_New(count);
    for (int64_t i = 0, to = 0; tuple && i < r->used_count; i++)
        if (r->used[i].written) PyTuple_SetItem(tuple, to++, norch_retain(r->used[i].x));
    return tuple;
}

/* The bytes of its block among which the elements of a result lie: from `first` to
 * before the result of the function. */
static int64_t end_of(const nr_returned *one, int64_t *first) {
    const norch_tensor *x = &one->header;
    int64_t end = one->inside + nr_size_of(x->dtype);
    *first = one->inside;
    for (int32_t i = 0; i < x->ndim; i++) {
        const int64_t reach = (x->shape[i] - 1) * x->strides[i] * nr_size_of(x->dtype);
        *(reach > 0 ? &end : first) += reach;
    }
    return x->numel ? end : *first;
}

/* Whether each element of a result has a place of its own, apart from other results. */
static bool is_apart(const nr_recording *r, const nr_returned *one) {
    int64_t first, other;
    const int64_t end = end_of(one, &first);
    for (int32_t i = 0; i < one->header.ndim; i++)
        if (one->header.shape[i] > 1 && one->header.strides[i] == 0) return false;
    for (int64_t k = 0; k < r->result_count; k++) {
        const nr_returned *next = &r->results[k];
        if (next != one && next->leaf < 0 && !next->object && next->block == one->block &&
            end_of(next, &other) > first && other < end)
            return false;
    }
    return true;
}

/* result_of(recording, i): the argument, or the tensor from before the recording, that the i-th result is a view of;
 * -1: its elements have places of their own; -2: it is such a tensor itself, or overlaps another result or itself. */
NR_BUILTIN(result_of) {
    nr_recording *r = nr_counted("result_of", 2, n) ? nr_recording_of("result_of", args[0]) : NULL;
    if (!r) return NULL;
    const int64_t i = PyLong_AsLongLong(args[1]);
    if (i < 0 || i >= r->result_count) return PyLong_FromLongLong(-2);
    const nr_returned *one = &r->results[i];
    if (one->leaf >= 0 && one->offset >= 0) return PyLong_FromLongLong(one->leaf);
    if (one->base) return norch_retain(one->base);
    return PyLong_FromLongLong(one->leaf < 0 && !one->object && is_apart(r, one) ? -1 : -2);
}
