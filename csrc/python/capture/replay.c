/* replay: runs a recording again, if its conditions hold: the arguments, the guards, the tensors in use and their
 * gradients. */
#include <string.h>

#include "../../core/device.h"
#include "../../core/memory.h"
#include "../modes.h"
#include "../node.h"
#include "recording.h"

/* ---- conditions ------------------------------------------------------------------------------------------- */

static bool same_layout(const norch_tensor *x, const norch_tensor *as) {
    if (x->device_type != NORCH_CPU && ((uintptr_t)x->data ^ (uintptr_t)as->data) % NR_ALIGNMENT) return false;
    if (x->ndim != as->ndim || x->dtype != as->dtype || x->contiguous != as->contiguous || !x->storage ||
        x->device_type != as->device_type || x->device_index != as->device_index || x->weak != as->weak)
        return false;
    for (int32_t d = 0; d < x->ndim; d++)
        if (x->shape[d] != as->shape[d] || (!x->contiguous && x->strides[d] != as->strides[d])) return false;
    return true;
}

/* Whether two storages overlap. Two over an array of another library may do so. */
static bool overlap(const norch_storage *a, const norch_storage *b) {
    const char *x = a->data, *y = b->data;
    return a == b || (x < y + b->bytes && y < x + a->bytes);
}

/* Whether a storage overlaps memory of the conditions. Bisection: only the last span that begins before its end may. */
static bool is_held(const nr_conditions *c, const norch_storage *storage) {
    const char *from = storage->data, *to = from + storage->bytes;
    int64_t low = 0, high = c->held_count;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (c->held[middle].from < to)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && c->held[low - 1].to > from;
}

/* Whether other properties that Python reads of an argument are unchanged, and .grad and attributes absent. */
static bool same_metadata(const norch_tensor *x, const nr_leaf *leaf, int64_t reads) {
    const norch_tensor *as = &leaf->tensor;
    if (reads & NR_READS_GRAD && x->grad != NR_NONE) return false;
    if (reads & NR_READS_HISTORY && ((nr_object *)x->node)->type != leaf->node_type) return false;
    if (reads & NR_READS_STRIDES && memcmp(x->strides, as->strides, (size_t)x->ndim * sizeof *x->strides)) return false;
    if (reads & NR_READS_STORAGE && (x->offset != as->offset || x->storage->bytes != leaf->bytes)) return false;
    return !(reads & NR_READS_ATTRIBUTES) || !x->attributes || !PyDict_Size(x->attributes);
}

static bool same_leaf(const nr_conditions *c, const nr_leaf *leaf, void *const *args) {
    void *object = args[leaf - c->leaves];
    if (leaf->object) return leaf->is_tensor ? leaf->object == object : nr_same_object(leaf->object, object);
    if (!nr_is_tensor(object) || ((nr_object *)object)->type == nr_batched_class) return false;
    const norch_tensor *x = object;
    if (!same_layout(x, &leaf->tensor) || (x->node != NR_NONE) != leaf->needs || x->type != leaf->type) return false;
    if (c->reads && !same_metadata(x, leaf, c->reads)) return false;
    const nr_leaf *first = &c->leaves[leaf->shares];
    if (first != leaf) {
        const norch_tensor *other = args[leaf->shares];
        return nr_first_of(args, object) == leaf->twin && other->storage == x->storage &&
               (char *)x->data - (char *)other->data == (char *)leaf->tensor.data - (char *)first->tensor.data;
    }
    for (int64_t k = 0; k < leaf - c->leaves; k++) { /* arguments that did not overlap still do not */
        const norch_tensor *other = args[k];
        if (c->leaves[k].is_tensor && overlap(other->storage, x->storage)) return false;
    }
    return true;
}

static bool arguments_match(const nr_conditions *c, void *const *args, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!same_leaf(c, &c->leaves[i], args)) return false;
    return true;
}

/* Whether the arguments are as recorded, and the guards hold; -1 after an exception. */
static int matches(nr_conditions *c, void *const *args) {
    if (c->default_dtype != nr_default_dtype || (nr_modes() & NR_COMPARED) != c->modes) return false;
    if (!arguments_match(c, args, c->first_leaves)) return false;
    return nr_guards_hold(&c->guards);
}

/* Whether a tensor from outside has the shape, strides, dtype and device of a header. */
static __attribute__((noinline)) bool same_header(const norch_tensor *x, const norch_tensor *as) {
    return same_layout(x, as) && !memcmp(x->strides, as->strides, (size_t)x->ndim * sizeof *x->strides);
}

/* Whether the tensors that Python holds have the headers that they had. */
static __attribute__((noinline)) bool headers_unchanged(nr_recording *r) {
    for (int64_t i = 0; i < r->used_count; i++)
        if (!same_header(r->used[i].x, &r->headers[2 * i])) return false;
    for (int64_t i = 0; i < r->keep_count; i++) {
        const norch_tensor *x = r->keeps[i].x, *as = &r->keeps[i].header;
        if (x->storage != as->storage || x->data != as->data || !same_header(x, as)) return false;
    }
    for (int64_t i = 0; i < r->conditions.leaf_count; i++) {
        const nr_leaf *leaf = &r->conditions.leaves[i];
        if (leaf->is_tensor && leaf->object && !same_header(leaf->object, &leaf->tensor)) return false;
    }
    r->headers_replaced = nr_headers_replaced;
    return true;
}

/* Whether the tensors that the calls use still have their memory and headers, and their .grad follows its rule. */
static bool storages_unchanged(nr_recording *r) {
    if (__builtin_expect(r->headers_replaced != nr_headers_replaced, false) && !headers_unchanged(r)) return false;
    for (int64_t i = 0; i < r->used_count; i++) {
        const nr_used *one = &r->used[i];
        const norch_tensor *x = one->x;
        if (x->storage != one->storage || x->data != one->data || x->node != one->node) return false;
        if (*one->hooks_at != one->hooks) return false;
        if (one->rule == NR_GRAD_ANY) continue;
        if (one->rule == NR_GRAD_NONE && x->grad != NR_NONE) return false;
        if (one->rule == NR_GRAD_SOME && x->grad == NR_NONE) return false;
        if (one->rule != NR_GRAD_SAME) continue;
        const norch_tensor *grad = x->grad;
        if (!nr_is_tensor(x->grad) || grad->storage != one->grad_storage || grad->data != one->grad_data) return false;
        if (!same_header(grad, &r->headers[2 * i + 1])) return false;
    }
    return true;
}

static bool is_used(const nr_recording *r, const norch_tensor *x) {
    for (int64_t i = 0; i < r->used_count; i++)
        if (r->used[i].x == x) return true;
    return false;
}

/* Whether the arguments that a run binds overlap nothing else that it or Python uses. */
static bool arguments_apart(const nr_recording *r, void *const *args, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const norch_tensor *x = args[i];
        if (r->conditions.leaves[i].argument < 0) continue;
        if (r->conditions.id_count && nr_is_id(&r->conditions, x)) return false;
        if (x->storage->bytes ? is_held(&r->conditions, x->storage) : is_used(r, x)) return false;
    }
    return true;
}

/* ---- a run ------------------------------------------------------------------------------------------------ */

static void set_grad(norch_tensor *x, void *after) {
    void *before = x->grad;
    if (before == after) return;
    x->grad = Py_NewRef(after);
    Py_DecRef(before);
}

/* Counts a write to x. *time: the sequence number that all writes of a run share, which the first one draws; NULL until
 * then. */
static bool note_write(nr_recording *r, norch_tensor *x, void **time) {
    return (*time || (*time = PyIter_Next(r->counter))) && nr_note_write(x, *time);
}

/* Counts a write to each tensor that a run writes to, and that Python may have. */
static bool note_writes(nr_recording *r) {
    void *time = NULL;
    bool good = true;
    const nr_leaf *leaves = r->conditions.leaves;
    for (int64_t i = 0; i < r->used_count && good; i++)
        if (r->used[i].written) good = note_write(r, r->used[i].x, &time);
    for (int64_t i = 0; i < r->keep_count && good; i++)
        if (r->keeps[i].written) good = note_write(r, r->keeps[i].x, &time);
    for (int64_t i = 0; i < r->conditions.first_leaves && good; i++)
        if (leaves[i].written) good = note_write(r, r->args[i], &time);
    for (int64_t i = 0; i < r->result_count && good; i++)
        if (r->results[i].version_owner) good = note_write(r, r->results[i].version_owner, &time);
    if (time) Py_DecRef(time);
    return good;
}

static void leave_gradients(nr_recording *r) {
    for (int64_t i = 0; i < r->used_count; i++) {
        const nr_used *one = &r->used[i];
        if (one->sets_grad && one->result < 0) set_grad(one->x, one->grad_after ? one->grad_after : NR_NONE);
    }
}

/* For each call of a failed run: the address of the hyper-parameters if it is a complete step of an optimizer, else
 * None. */
static void *steps_done(const nr_program *program) {
    void *done = PyTuple_New(program->to - program->from);
    for (int64_t i = program->from; done && i < program->to; i++) {
        const double *hyper = i < program->complete ? nr_program_hyper(&program->instrs[i].call) : NULL;
        void *address = hyper ? PyLong_FromVoidPtr((void *)(uintptr_t)hyper) : Py_NewRef(NR_NONE);
        PyTuple_SetItem(done, i - program->from, address);
    }
    return done;
}

/* Runs the calls. If one fails, those before it are complete: what they wrote counts, and so do steps of optimizers. */
static bool run_calls(nr_recording *r, bool second) {
    if (nr_program_run(r->program, second) == NORCH_OK) return second || note_writes(r);
    void *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    note_writes(r);
    void *done = r->after_run ? steps_done(r->program) : NULL;
    void *result = done ? PyObject_CallFunctionObjArgs(r->after_run, done, NULL) : NULL;
    if (done) Py_DecRef(done);
    if (result) Py_DecRef(result);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    return false;
}

/* Reads `count` arguments from a tuple; false if it has another number of them. */
static bool read_arguments(void *tuple, int64_t count, void **args) {
    if (PyTuple_Size(tuple) != count) return false;
    for (int64_t i = 0; i < count; i++) args[i] = PyTuple_GetItem(tuple, i);
    return true;
}

static bool memory_unchanged(nr_recording *r) {
    return storages_unchanged(r) && arguments_apart(r, r->args, r->conditions.first_leaves);
}

static int may_run(nr_recording *r, void *leaves) {
    if (!read_arguments(leaves, r->conditions.first_leaves, r->args)) return false;
    const int same = matches(&r->conditions, r->args);
    if (same != 1) return same;
    if (!memory_unchanged(r)) return false;
    if (!r->before_run) return true;
    const int changed = nr_guards_change(&r->watches);
    if (changed < 0) return -1;
    if (!changed && !r->always_asks) return true;
    const int may = nr_calls_true(r->before_run);
    if (may != 1) r->always_asks = true; /* it did not handle the change, so that it must be called again */
    if (may != 1) return may;
    /* Python code has run, perhaps of other threads, which may have set the .data of a tensor */
    return arguments_match(&r->conditions, r->args, r->conditions.first_leaves) && memory_unchanged(r);
}

static void bind(nr_recording *r, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const int32_t argument = r->conditions.leaves[i].argument;
        if (argument >= 0) nr_program_bind(r->program, argument, ((norch_tensor *)r->args[i])->data);
    }
}

/* The results, which are also the .grad of some tensors; what the function stores is put where it does so. */
static void *give(nr_recording *r, void *leaves) {
    void *results = nr_give_results(r, 0, r->first_results);
    for (int64_t i = 0; i < r->used_count && results && r->returns_grads; i++) {
        const nr_used *one = &r->used[i];
        if (one->result >= 0) set_grad(one->x, r->alone ? results : PyTuple_GetItem(results, one->result));
    }
    if (__builtin_expect(!r->restore, true) || !results) return results;
    void *done = PyObject_CallFunctionObjArgs(r->restore, results, leaves, NULL);
    Py_DecRef(done ? done : results);
    return done ? results : NULL;
}

static void *run(nr_recording *r, void *leaves) {
    const int may = may_run(r, leaves);
    if (may < 0) return NULL;
    if (!may) return Py_NewRef(NR_NOT_IMPLEMENTED);
    if (r->program->divided && nr_program_clear_arena(r->program) != NORCH_OK) return NULL;
    if (nr_renew_gradients(r) != NORCH_OK) return NULL;
    bind(r, r->conditions.first_leaves);
    if (nr_make_results(r, 0, r->first_results) != NORCH_OK) return NULL;
    if (!run_calls(r, false)) return NULL;
    leave_gradients(r);
    if (r->after_run && nr_calls_true(r->after_run) < 0) return NULL;
    return give(r, leaves);
}

/* Whether the elements of x were written to after a time (a sequence number). */
static bool written_since(const norch_tensor *x, int64_t time) {
    return x->version_counter != NR_NONE && PyLong_AsLongLong(PyList_GetItem(x->version_counter, 0)) > time;
}

/* A tensor that a run reads, and that was written to after a time, other than by runs; NULL: none. */
static norch_tensor *written_to(const nr_recording *r, void *const *args, int64_t time) {
    for (int64_t i = 0; i < r->used_count; i++)
        if (!r->used[i].written && written_since(r->used[i].x, time)) return r->used[i].x;
    for (int64_t i = 0; i < r->conditions.first_leaves; i++)
        if (r->conditions.leaves[i].is_tensor && written_since(args[i], time)) return args[i];
    return NULL;
}

static void *would_differ(nr_recording *r, void *const *args, int64_t time) {
    const int same = matches(&r->conditions, args);
    if (same < 0) return NULL;
    if (!same || !storages_unchanged(r)) return PyUnicode_FromString("takes or reads something else by now");
    norch_tensor *written = written_to(r, args, time);
    if (written) return norch_retain(written);
    return Py_NewRef(NR_NONE);
}

/* computes_again(recording, arguments, time): None if the function that was recorded would give the results that it
 * gave at that time (a sequence number); a tensor that was written to since; or a text: why not. */
NR_BUILTIN(computes_again) {
    nr_recording *r = nr_counted("computes_again", 3, n) ? nr_recording_of("computes_again", args[0]) : NULL;
    if (!r) return NULL;
    void **leaves = nr_malloc((size_t)r->conditions.leaf_count * sizeof *leaves); /* a run may have r->args */
    if (!leaves) return nr_fail(NORCH_ERROR_MEMORY, "compile: out of memory"), NULL;
    void *found = read_arguments(args[1], r->conditions.first_leaves, leaves)
                      ? would_differ(r, leaves, PyLong_AsLongLong(args[2]))
                      : PyUnicode_FromString("has lost its arguments");
    nr_free(leaves);
    return found;
}

/* A tensor that the backward part uses, and that was written to after the first; NULL: none. */
static norch_tensor *changed_since(const nr_recording *r, int64_t time) {
    for (int64_t i = 0; i < r->used_count; i++)
        if (r->used[i].later && written_since(r->used[i].x, time)) return r->used[i].x;
    for (int64_t i = 0; i < r->conditions.first_leaves; i++) {
        norch_tensor *x = r->args[i];
        if (r->conditions.leaves[i].later && written_since(x, time)) return x;
    }
    return NULL;
}

static void *run_second(nr_recording *r, void *leaves, int64_t time, const norch_tensor *arena) {
    const nr_conditions *c = &r->conditions;
    const bool may = read_arguments(leaves, c->leaf_count, r->args) &&
                     (r->program->arena ? arena && arena->storage : !arena) &&
                     arguments_match(c, r->args, c->leaf_count);
    if (!may || !arguments_apart(r, r->args, c->leaf_count)) return Py_NewRef(NR_NOT_IMPLEMENTED);
    const int held = nr_guards_hold(&r->later);
    if (held < 0) return NULL;
    if (!held) return Py_NewRef(NR_NOT_IMPLEMENTED);
    norch_tensor *changed = changed_since(r, time);
    if (changed) return norch_retain(changed);
    if (arena) nr_program_move(r->program, arena->storage);
    bind(r, c->leaf_count);
    if (nr_make_results(r, r->first_results, r->result_count) != NORCH_OK) return NULL;
    if (!run_calls(r, true)) return NULL;
    return nr_give_results(r, r->first_results, r->result_count);
}

/* Runs body() while no other thread may use the program; NotImplemented if one does. */
static void *run_exclusively(nr_recording *r, void *(*body)(nr_recording *r, void *const *args), void *const *args) {
    if (!r->ready || r->program->running || nr_observing()) return Py_NewRef(NR_NOT_IMPLEMENTED);
    nr_program *program = r->program;
    Py_IncRef(r);
    program->running = true; /* until the results are copied out of the program's memory */
    void *results = body(r, args);
    if (!results) nr_drop_outputs(r);
    program->running = false;
    Py_DecRef(r);
    return results;
}

static void *first(nr_recording *r, void *const *args) { return run(r, args[0]); }

void *nr_recording_replay(nr_recording *r, void *leaves) { return run_exclusively(r, first, &leaves); }

/* replay(recording, arguments): the results, or NotImplemented. Of a recording in two parts: (results of the first...,
 * the arena). */
NR_BUILTIN(replay) {
    nr_recording *r = nr_counted("replay", 2, n) ? nr_recording_of("replay", args[0]) : NULL;
    return r ? nr_recording_replay(r, args[1]) : NULL;
}

static void *second(nr_recording *r, void *const *args) {
    const norch_tensor *arena = nr_is_tensor(args[3]) ? args[3] : NULL;
    return run_second(r, args[1], PyLong_AsLongLong(args[2]), arena);
}

/* replay_gradient(recording, arguments and gradients of results, time, arena of the forward part): the gradients, or
 * NotImplemented; or a tensor that is needed, but was written to after that time. */
NR_BUILTIN(replay_gradient) {
    nr_recording *r = nr_counted("replay_gradient", 4, n) ? nr_recording_of("replay_gradient", args[0]) : NULL;
    return r ? run_exclusively(r, second, args) : NULL;
}

/* replay_timed(recording, arguments): (results, seconds of each call), or NotImplemented. */
NR_BUILTIN(replay_timed) {
    nr_recording *r = nr_counted("replay_timed", 2, n) ? nr_recording_of("replay_timed", args[0]) : NULL;
    if (!r) return NULL;
    nr_program *program = r->ready && !r->program->running ? r->program : NULL;
    const int64_t count = program ? program->count : 0;
    double *seconds = nr_malloc((size_t)count * sizeof *seconds);
    if (!seconds) return nr_fail(NORCH_ERROR_MEMORY, "profile: out of memory"), NULL;
    memset(seconds, 0, (size_t)count * sizeof *seconds); /* a backward part is not run */
    if (program) program->seconds = seconds;
    void *results = nr_py_replay(self, args, n), *pair = results;
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

/* Binds the arguments once, and runs the calls repeatedly. */
static void *repeated(nr_recording *r, void *const *args) {
    const int64_t times = PyLong_AsLongLong(args[2]);
    const int may = r->program->divided ? 0 : may_run(r, args[1]);
    if (may < 0) return NULL;
    if (!may) return Py_NewRef(NR_NOT_IMPLEMENTED);
    if (nr_renew_gradients(r) != NORCH_OK) return NULL;
    bind(r, r->conditions.first_leaves);
    if (nr_make_results(r, 0, r->first_results) != NORCH_OK) return NULL;
    for (int64_t i = 0; i < times; i++)
        if (!run_calls(r, false)) return NULL;
    leave_gradients(r);
    void *results = give(r, args[1]);
    if (!results) return NULL;
    Py_DecRef(results);
    return Py_NewRef(NR_NONE);
}

/* replay_repeated(recording, arguments, n): checks once and runs n times, to time the calls alone; returns None.
 * after_run is not called, so that step counts do not change. */
NR_BUILTIN(replay_repeated) {
    nr_recording *r = nr_counted("replay_repeated", 3, n) ? nr_recording_of("replay_repeated", args[0]) : NULL;
    return r ? run_exclusively(r, repeated, args) : NULL;
}

/* matches(recording, arguments): whether the arguments are as recorded, and the guards hold. */
NR_BUILTIN(matches) {
    nr_recording *r = nr_counted("matches", 2, n) ? nr_recording_of("matches", args[0]) : NULL;
    if (!r) return NULL;
    const int64_t count = PyTuple_Size(args[1]);
    void **leaves = nr_malloc((size_t)count * sizeof *leaves); /* another thread may be in a run, which has r->args */
    if (!leaves) return nr_fail(NORCH_ERROR_MEMORY, "capture: out of memory"), NULL;
    const bool fits = r->program && read_arguments(args[1], r->conditions.first_leaves, leaves);
    const int same = fits ? matches(&r->conditions, leaves) : false;
    nr_free(leaves);
    return same < 0 ? NULL : PyBool_FromLong(same);
}

/* guards_hold(recording): whether what Python read for it is unchanged. */
NR_BUILTIN(guards_hold) {
    nr_recording *r = nr_counted("guards_hold", 1, n) ? nr_recording_of("guards_hold", args[0]) : NULL;
    const int held = r ? nr_guards_hold(&r->conditions.guards) : -1;
    return held < 0 ? NULL : PyBool_FromLong(held);
}
