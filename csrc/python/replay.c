/* replay: runs a recording again, if everything is as it was: arguments, Python's conditions, tensors and their gradients. */
#include <string.h>

#include "../core/memory.h"
#include "recording.h"

/* ---- conditions ------------------------------------------------------------------------------------------- */

static bool same_layout(const norch_tensor *x, const norch_tensor *as) {
    if (x->ndim != as->ndim || x->dtype != as->dtype || x->contiguous != as->contiguous || !x->storage ||
        x->device_type != as->device_type || x->device_index != as->device_index || x->weak != as->weak)
        return false;
    for (int32_t d = 0; d < x->ndim; d++)
        if (x->shape[d] != as->shape[d] || (!x->contiguous && x->strides[d] != as->strides[d])) return false;
    return true;
}

/* Numbers and texts are the same if they are equal and of one type; other objects if they are one. */
static bool same_object(void *a, void *b) {
    if (a == b) return true;
    void *type = ((nr_object *)a)->type;
    if (type != ((nr_object *)b)->type) return false;
    if (type == &PyFloat_Type) {
        const double x = PyFloat_AsDouble(a), y = PyFloat_AsDouble(b);
        return memcmp(&x, &y, sizeof x) == 0;
    }
    if (!(PyType_GetFlags(type) & (NR_TYPE_IS_INTEGER | NR_TYPE_IS_TEXT | NR_TYPE_IS_BYTES))) return false;
    return PyObject_RichCompareBool(a, b, NR_EQUAL) == 1;
}

/* Also two storages may lie over the same memory: arrays of other libraries. */
static bool meet(const norch_storage *a, const norch_storage *b) {
    const char *x = a->data, *y = b->data;
    return a == b || (x < y + b->bytes && y < x + a->bytes);
}

static bool holds_storage(const nr_recording *r, const norch_storage *storage) {
    for (int64_t i = 0; i < r->held_count; i++)
        if (meet(r->held[i], storage)) return true;
    return false;
}

static bool same_leaf(const nr_recording *r, const nr_leaf *leaf, void *object, void *leaves) {
    if (leaf->object) return leaf->is_tensor ? leaf->object == object : same_object(leaf->object, object);
    if (!nr_is_tensor(object) || ((nr_object *)object)->type == nr_batched_class) return false;
    const norch_tensor *x = object;
    if (!same_layout(x, &leaf->tensor) || (x->node != NR_NONE) != leaf->needs) return false;
    const nr_leaf *first = &r->leaves[leaf->shares];
    if (first != leaf) {
        const norch_tensor *other = PyTuple_GetItem(leaves, leaf->shares);
        return other->storage == x->storage &&
               (char *)x->data - (char *)other->data == (char *)leaf->tensor.data - (char *)first->tensor.data;
    }
    for (int64_t k = 0; k < leaf - r->leaves; k++) { /* memory that was apart is still apart */
        const norch_tensor *other = PyTuple_GetItem(leaves, k);
        if (r->leaves[k].is_tensor && meet(other->storage, x->storage)) return false;
    }
    return true;
}

bool nr_dicts_have_versions;

/* 0: unknown. */
static uint64_t version_of(const nr_guard *guard) {
    typedef struct dict {
        nr_object object;
        int64_t used;
        uint64_t version;
    } dict;
    return nr_dicts_have_versions && guard->kind == NR_IN_DICT ? ((const dict *)guard->container)->version : 0;
}

static int look_up(const nr_guard *guard) {
    if (!guard->key) return (guard->kind == NR_IN_DICT ? PyDict_Size : PyList_Size)(guard->container) == guard->size;
    void *found = NULL;
    if (guard->kind == NR_IN_LIST) {
        found = guard->size < PyList_Size(guard->container) ? PyList_GetItem(guard->container, guard->size) : NULL;
    } else if (guard->kind == NR_IN_DICT) {
        found = PyDict_GetItemWithError(guard->container, guard->key);
        if (!found && PyErr_Occurred()) return -1;
    } else { /* a cell, which nobody empties while its function runs */
        found = PyObject_GetAttr(guard->container, guard->key);
        if (!found) return PyErr_Clear(), false;
        Py_DecRef(found);
    }
    return found == guard->value || (found && same_object(found, guard->value));
}

/* The version is that before the comparison, which may call functions of Python. */
static int guard_holds(nr_guard *guard) {
    const uint64_t version = version_of(guard);
    if (version && version == guard->version) return true;
    const int holds = look_up(guard);
    if (holds == 1) guard->version = version;
    return holds;
}

static bool leaves_stand(const nr_recording *r, void *leaves, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!same_leaf(r, &r->leaves[i], PyTuple_GetItem(leaves, i), leaves)) return false;
    return true;
}

/* Whether the arguments are as recorded, and Python's conditions hold; -1 after an exception. */
static int matches(nr_recording *r, void *leaves) {
    if (PyTuple_Size(leaves) != r->first_leaves || r->default_dtype != nr_default_dtype) return false;
    static void *name;
    if (!name && !(name = PyUnicode_InternFromString("enabled"))) return -1;
    void *enabled = PyObject_GetAttr(r->mode, name);
    if (!enabled) return -1;
    const bool same_mode = PyObject_IsTrue(enabled) == r->grad_enabled;
    Py_DecRef(enabled);
    if (!same_mode || !leaves_stand(r, leaves, r->first_leaves)) return false;
    for (int64_t i = 0; i < r->guard_count; i++) {
        const int holds = guard_holds(&r->guards[i]);
        if (holds != 1) return holds;
    }
    return true;
}

/* Whether the tensors that the calls use are where they were, and their gradients of the kind that they were. */
static bool tensors_stand(const nr_recording *r) {
    for (int64_t i = 0; i < r->seen_count; i++) {
        const nr_seen *one = &r->seen[i];
        const norch_tensor *x = one->x;
        if (x->storage != one->storage || x->data != one->data || x->node != one->node) return false;
        if (one->rule == NR_GRAD_NONE && x->grad != NR_NONE) return false;
        if (one->rule != NR_GRAD_SAME) continue;
        const norch_tensor *grad = x->grad;
        if (!nr_is_tensor(x->grad) || grad->storage != one->first_storage || grad->data != one->first_data)
            return false;
    }
    return true;
}

/* Whether the arguments that a run binds lie apart from all that it uses besides. */
static bool arguments_apart(const nr_recording *r, void *leaves) {
    for (int64_t i = 0; i < PyTuple_Size(leaves); i++) {
        nr_leaf *leaf = &r->leaves[i];
        if (leaf->argument < 0) continue;
        norch_storage *storage = ((const norch_tensor *)PyTuple_GetItem(leaves, i))->storage;
        if (storage->data == leaf->apart && storage->bytes == leaf->apart_bytes) continue;
        if (holds_storage(r, storage)) return false;
        leaf->apart = storage->data;
        leaf->apart_bytes = storage->bytes;
    }
    return true;
}

/* ---- a run ------------------------------------------------------------------------------------------------ */

/* Notes the time of a write in the version counter that all tensors over a storage share (norch/_handle.py). */
static bool note_write(norch_tensor *x, void *time) {
    Py_IncRef(time);
    if (x->version_counter != NR_NONE) return PyList_SetItem(x->version_counter, 0, time) == 0;
    void *counter = PyList_New(1), *none = x->version_counter;
    if (!counter || PyList_SetItem(counter, 0, time)) return false;
    x->version_counter = counter;
    Py_DecRef(none);
    return true;
}

static bool leave_gradients(nr_recording *r) {
    void *time = NULL;
    bool good = true;
    for (int64_t i = 0; i < r->seen_count && good; i++) {
        const nr_seen *one = &r->seen[i];
        norch_tensor *x = one->x, *grad = one->grad_after;
        if (!one->sets_grad && !one->written) continue;
        if (!time && !(time = PyIter_Next(r->counter))) return false;
        if (one->written) good = note_write(x, time);
        if (!one->sets_grad) continue;
        if (good && grad) good = note_write(grad, time);
        void *before = x->grad, *after = grad ? (void *)grad : NR_NONE;
        if (before == after) continue;
        Py_IncRef(after);
        x->grad = after;
        Py_DecRef(before);
    }
    if (time) Py_DecRef(time);
    return good;
}

#define FEW 64 /* elements that are copied here: a loss, above all */

static norch_tensor *copied(const norch_tensor *x) {
    if (!x->contiguous || x->numel > FEW || x->device_type != NORCH_CPU) return norch_cast(x, x->dtype);
    norch_tensor *copy = nr_make(x->ndim, x->shape, x->dtype, x);
    if (copy) memcpy(copy->data, x->data, (size_t)(x->numel * nr_size_of(x->dtype)));
    return copy;
}

static norch_tensor *give_result(nr_recording *r, nr_returned *one, void *leaves) {
    if (one->object) return norch_retain(one->object);
    if (one->leaf >= 0 && one->offset < 0) return norch_retain(PyTuple_GetItem(leaves, one->leaf));
    norch_tensor *made = one->made;
    one->made = NULL;
    if (made && one->leaf < 0) return made;
    if (made) { /* a view of an argument */
        norch_tensor *copy = copied(made);
        norch_release(made);
        return copy;
    }
    if (r->program->blocks[one->block].kind == NR_RESULT) {
        one->header.storage = r->program->slab;
        one->header.data = (char *)r->program->slab->data + one->at;
    }
    return r->copies ? copied(&one->header) : norch_alias(&one->header);
}

/* Memory for the results of a part that a run writes there itself, and views of arguments, whose .data may be set meanwhile. */
static int32_t make_results(nr_recording *r, void *leaves, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++) {
        nr_returned *one = &r->results[i];
        norch_tensor *like = &one->header;
        if (one->object || (one->leaf >= 0 ? one->offset < 0 : !r->program->blocks[one->block].fresh)) continue;
        if (one->leaf >= 0) {
            const norch_tensor *argument = PyTuple_GetItem(leaves, one->leaf);
            like->storage = argument->storage;
            like->data = (char *)argument->data + one->offset;
            one->made = norch_alias(like);
        } else {
            one->made = nr_make(like->ndim, like->shape, like->dtype, NULL);
        }
        if (!one->made) return NORCH_ERROR_MEMORY;
        if (one->leaf < 0) nr_program_put_result(r->program, one->block, one->made->data);
    }
    return NORCH_OK;
}

static void drop_made(nr_recording *r) {
    for (int64_t i = 0; i < r->result_count; i++) {
        norch_release(r->results[i].made);
        r->results[i].made = NULL;
    }
}

/* What the second part will need of this run: the slab, as a tensor; None: nothing. */
static void *give_slab(const nr_recording *r) {
    norch_storage *slab = r->program->slab;
    if (!slab) return Py_NewRef(NR_NONE);
    norch_tensor header = r->results[0].header;
    header.dtype = NORCH_UINT8;
    header.ndim = header.contiguous = 1;
    header.numel = header.shape[0] = (int64_t)slab->bytes;
    header.strides[0] = 1;
    header.offset = 0;
    header.storage = slab;
    header.data = slab->data;
    return norch_alias(&header);
}

/* The results of a part; and of the first of two the slab, as the last. */
static void *give_results(nr_recording *r, void *leaves, int64_t from, int64_t to) {
    const bool waits = r->program->divided && from == 0;
    if (r->alone && !r->program->divided) return give_result(r, &r->results[0], leaves);
    void *tuple = PyTuple_New(to - from + waits);
    for (int64_t i = from; tuple && i < to + waits; i++) {
        void *result = i < to ? give_result(r, &r->results[i], leaves) : give_slab(r);
        if (!result || PyTuple_SetItem(tuple, i - from, result)) {
            Py_DecRef(tuple);
            return NULL;
        }
    }
    return tuple;
}

/* What a call of Python's gives as true or false; -1 after an exception. */
static int ask(void *callable) {
    void *answer = PyObject_CallObject(callable, NULL);
    if (!answer) return -1;
    const int truth = PyObject_IsTrue(answer);
    Py_DecRef(answer);
    return truth;
}

/* Whether an entry that is watched is another object than the last time. */
static int watched_change(nr_recording *r) {
    bool changed = false;
    for (int64_t i = 0; i < r->watch_count; i++) {
        nr_guard *watch = &r->watches[i];
        const uint64_t version = version_of(watch);
        if (version && version == watch->version) continue;
        void *found = PyDict_GetItemWithError(watch->container, watch->key), *before = watch->value;
        if (!found) return PyErr_Occurred() ? -1 : true;
        watch->version = version;
        if (found == before) continue;
        Py_IncRef(found);
        watch->value = found;
        Py_DecRef(before);
        changed = true;
    }
    return changed;
}

static int may_run(nr_recording *r, void *leaves) {
    const int same = matches(r, leaves);
    if (same != 1) return same;
    if (!tensors_stand(r) || !arguments_apart(r, leaves)) return false;
    if (!r->before_run) return true;
    const int changed = watched_change(r);
    if (changed < 0) return -1;
    if (!changed && !r->asks) return true;
    const int may = ask(r->before_run);
    if (may != 1) r->asks = true; /* what has changed is no longer known */
    if (may != 1) return may;
    /* Python has run, other threads perhaps, which may have set the .data of a tensor */
    return leaves_stand(r, leaves, r->first_leaves) && tensors_stand(r) && arguments_apart(r, leaves);
}

static void bind(nr_recording *r, void *leaves) {
    for (int64_t i = 0; i < PyTuple_Size(leaves); i++)
        if (r->leaves[i].argument >= 0)
            nr_program_bind(r->program, r->leaves[i].argument, ((norch_tensor *)PyTuple_GetItem(leaves, i))->data);
}

static void *run(nr_recording *r, void *leaves) {
    const int may = may_run(r, leaves);
    if (may < 0) return NULL;
    if (!may) return Py_NewRef(NR_NOT_IMPLEMENTED);
    if (r->program->divided && nr_program_clear_slab(r->program) != NORCH_OK) return NULL;
    bind(r, leaves);
    if (make_results(r, leaves, 0, r->first_results) != NORCH_OK) return NULL;
    if (nr_program_run(r->program, false) != NORCH_OK || !leave_gradients(r)) return NULL;
    if (r->after_run && ask(r->after_run) < 0) return NULL;
    return give_results(r, leaves, 0, r->first_results);
}

/* Whether the elements of x have been written to since a time. */
static bool written_since(const norch_tensor *x, int64_t time) {
    return x->version_counter != NR_NONE && PyLong_AsLongLong(PyList_GetItem(x->version_counter, 0)) > time;
}

/* A tensor that the second part uses, and that has been written to since the first; NULL: none. */
static norch_tensor *changed_since(const nr_recording *r, void *leaves, int64_t time) {
    for (int64_t i = 0; i < r->seen_count; i++)
        if (r->seen[i].later && written_since(r->seen[i].x, time)) return r->seen[i].x;
    for (int64_t i = 0; i < r->first_leaves; i++) {
        norch_tensor *x = PyTuple_GetItem(leaves, i);
        if (r->leaves[i].later && written_since(x, time)) return x;
    }
    return NULL;
}

static void *run_second(nr_recording *r, void *leaves, int64_t time, const norch_tensor *slab) {
    const bool may = PyTuple_Size(leaves) == r->leaf_count && (r->program->slab ? slab && slab->storage : !slab) &&
                     leaves_stand(r, leaves, r->leaf_count);
    if (!may || !arguments_apart(r, leaves)) return Py_NewRef(NR_NOT_IMPLEMENTED);
    norch_tensor *changed = changed_since(r, leaves, time);
    if (changed) return norch_retain(changed);
    if (slab) nr_program_move(r->program, slab->storage);
    bind(r, leaves);
    if (make_results(r, leaves, r->first_results, r->result_count) != NORCH_OK) return NULL;
    if (nr_program_run(r->program, true) != NORCH_OK) return NULL;
    return give_results(r, leaves, r->first_results, r->result_count);
}

/* What a body gives while the program is this thread's; NotImplemented where it cannot be. */
static void *alone(nr_recording *r, void *(*body)(nr_recording *r, void *const *given), void *const *given) {
    if (!r->ready || r->program->running || nr_observing()) return Py_NewRef(NR_NOT_IMPLEMENTED);
    nr_program *program = r->program;
    Py_IncRef(r);
    program->running = true; /* to the end: the results lie in its memory until they are copied */
    void *results = body(r, given);
    if (!results) drop_made(r);
    program->running = false;
    Py_DecRef(r);
    return results;
}

static void *first(nr_recording *r, void *const *given) { return run(r, given[0]); }

void *nr_recording_replay(nr_recording *r, void *leaves) { return alone(r, first, &leaves); }

/* replay(recording, arguments): the results, or NotImplemented. Of a recording in two parts: (results of the first..., what
 * the second needs). */
void *nr_py_replay(void *self, void *const *given, int64_t n) {
    (void)self;
    nr_recording *r = n == 2 ? nr_recording_of("replay", given[0]) : NULL;
    return r ? nr_recording_replay(r, given[1]) : NULL;
}

static void *second(nr_recording *r, void *const *given) {
    const norch_tensor *slab = nr_is_tensor(given[3]) ? given[3] : NULL;
    return run_second(r, given[1], PyLong_AsLongLong(given[2]), slab);
}

/* replay_gradient(recording, arguments and gradients of results, time, what the first part gave last): the gradients, or
 * NotImplemented; a tensor: it is needed, and was written to after that time. */
void *nr_py_replay_gradient(void *self, void *const *given, int64_t n) {
    (void)self;
    nr_recording *r = n == 4 ? nr_recording_of("replay_gradient", given[0]) : NULL;
    return r ? alone(r, second, given) : NULL;
}

/* replay_timed(recording, arguments): (results, seconds of each call), or NotImplemented. */
void *nr_py_replay_timed(void *self, void *const *given, int64_t n) {
    nr_recording *r = n == 2 ? nr_recording_of("replay_timed", given[0]) : NULL;
    if (!r) return NULL;
    nr_program *program = r->ready && !r->program->running ? r->program : NULL;
    const int64_t count = program ? program->count : 0;
    double *seconds = nr_malloc((size_t)count * sizeof *seconds);
    if (!seconds) return nr_fail(NORCH_ERROR_MEMORY, "profile: out of memory"), NULL;
    memset(seconds, 0, (size_t)count * sizeof *seconds); /* of a part that is not run */
    if (program) program->seconds = seconds;
    void *results = nr_py_replay(self, given, n), *pair = results;
    if (program) program->seconds = NULL;
    if (results && results != NR_NOT_IMPLEMENTED) {
        void *times = PyTuple_New(count);
        for (int64_t i = 0; times && i < count; i++) PyTuple_SetItem(times, i, PyFloat_FromDouble(seconds[i]));
        pair = PyTuple_New(2);
        if (times && pair) {
            PyTuple_SetItem(pair, 0, results);
            PyTuple_SetItem(pair, 1, times);
        }
    }
    nr_free(seconds);
    return pair;
}

/* The calls alone, again and again, as one run binds them. */
static void *repeated(nr_recording *r, void *const *given) {
    const int64_t times = PyLong_AsLongLong(given[2]);
    const int may = r->program->divided ? 0 : may_run(r, given[1]);
    if (may < 0) return NULL;
    if (!may) return Py_NewRef(NR_NOT_IMPLEMENTED);
    bind(r, given[1]);
    int32_t status = make_results(r, given[1], 0, r->first_results);
    for (int64_t i = 0; i < times && status == NORCH_OK; i++) status = nr_program_run(r->program, false);
    drop_made(r);
    if (status != NORCH_OK || !leave_gradients(r)) return NULL;
    return Py_NewRef(NR_NONE);
}

/* replay_repeated(recording, arguments, n): None; runs n times and checks once, to time the calls alone: step counts stay. */
void *nr_py_replay_repeated(void *self, void *const *given, int64_t n) {
    (void)self;
    nr_recording *r = n == 3 ? nr_recording_of("replay_repeated", given[0]) : NULL;
    return r ? alone(r, repeated, given) : NULL;
}

/* matches(recording, arguments): whether it was recorded for such arguments, and Python's conditions hold. */
void *nr_py_matches(void *self, void *const *given, int64_t n) {
    (void)self;
    nr_recording *r = n == 2 ? nr_recording_of("matches", given[0]) : NULL;
    if (!r) return NULL;
    const int same = r->program ? matches(r, given[1]) : false;
    return same < 0 ? NULL : PyBool_FromLong(same);
}
