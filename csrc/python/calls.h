/* calls: conversion of arguments, and the list of builtins that are written by hand in other files than calls.c. */
#ifndef NR_CALLS_H
#define NR_CALLS_H

#include "../core/observer.h"
#include "abi.h"
#include "object.h"

/* ---- arguments: a wrong one raises, and NULL or false is returned ---------------------------------------- */

/* Raises TypeError; returns false. Does not count the argument: the Python function around the builtin has others. */
static inline bool nr_refuse(const char *name, const char *wanted, const void *object) {
    void *kind = PyObject_GetAttrString(((const nr_object *)object)->type, "__name__");
    if (!kind) return false;
    PyErr_Format(PyExc_TypeError, "%s: expected %s, not %S", name, wanted, kind);
    Py_DecRef(kind);
    return false;
}

static inline bool nr_counted(const char *name, int64_t wanted, int64_t n) {
    if (n == wanted) return true;
    PyErr_Format(PyExc_TypeError, "%s: takes %lld arguments, not %lld", name, (long long)wanted, (long long)n);
    return false;
}

/* Whether `from`, which is not of nr_tensor_class itself, is a tensor that calls take. A batched one is refused without
 * an error: see nr_stopped(). */
static __attribute__((noinline, unused)) bool nr_may_be_taken(const char *name, const void *from) {
    if (!nr_is_tensor(from)) return nr_refuse(name, "a tensor", from);
    return ((const nr_object *)from)->type != nr_batched_class;
}

static inline norch_tensor *nr_take_tensor(const char *name, void *from) {
    if (((const nr_object *)from)->type != nr_tensor_class && !nr_may_be_taken(name, from)) return NULL;
    nr_observer *observer = nr_observing();
    if (observer) observer->passed(observer, from);
    return from;
}

/* A tensor of which only the shape and dtype are read; a batched one is taken too, with the shape of a sample. */
static inline norch_tensor *nr_take_header(const char *name, void *from) {
    return nr_is_tensor(from) ? from : (nr_refuse(name, "a tensor", from), NULL);
}

/* ---- builtins in other files ------------------------------------------------------------------------------ */

/* item(x): the only element as a number. shape(x), strides(x): tuples. adopt(class, x): an instance of a subclass of
 * Tensor over the elements of x. to_list(x): nested lists of its elements; a number for 0-d. size_of(x), dtype_of(x),
 * device_of(x): what the properties of Tensor give; set_attributes(), size_base() (attributes.c). bind_arrays(),
 * to_array(x), from_array(a): arrays of NumPy (arrays.c). region(x, index): a view, or None if the index holds more
 * than integers, slices, ... and None. to_dlpack(x, versioned, copied): a capsule; from_dlpack(capsule): (a tensor,
 * whether its memory is read-only).
 * guard_class(): a new class, the base of context managers that restore a setting; call_locked() (guard.c). modes()
 * (modes.c). node_class() to bump(): node.c, those of views: view_history.c and record_view.c; gradients():
 * gradients.c; operation(), bind_numbers(), bind_outliving(), set_parameter(): calls.c; method(): method.c.
 * set_batched(), sample_of(): for vmap (batched.c). ordinary_lookup(): lookup.c. mpi_all_reduce(): mpi.c. lapack():
 * lapack.c. */
#define NR_TENSOR_CALLS(ROW) \
    ROW(item)                \
    ROW(to_list)             \
    ROW(bind_arrays)         \
    ROW(to_array)            \
    ROW(from_array)          \
    ROW(set_attributes)      \
    ROW(size_base)           \
    ROW(size_of)             \
    ROW(dtype_of)            \
    ROW(device_of)           \
    ROW(shape)               \
    ROW(strides)             \
    ROW(adopt)               \
    ROW(region)              \
    ROW(to_dlpack)           \
    ROW(from_dlpack)         \
    ROW(guard_class)         \
    ROW(call_locked)         \
    ROW(modes)               \
    ROW(node_class)          \
    ROW(bind_views)          \
    ROW(pack_saved)          \
    ROW(gradient_edge)       \
    ROW(record)              \
    ROW(is_recorded)         \
    ROW(node_of)             \
    ROW(node_of_write)       \
    ROW(record_view)         \
    ROW(record_parts)        \
    ROW(bump)                \
    ROW(view_class)          \
    ROW(gradients)           \
    ROW(operation)           \
    ROW(bind_numbers)        \
    ROW(bind_outliving)      \
    ROW(method)              \
    ROW(set_parameter)       \
    ROW(set_batched)         \
    ROW(sample_of)           \
    ROW(ordinary_lookup)     \
    ROW(mpi_all_reduce)      \
    ROW(lapack)

/* The result of a call that refused an argument: NULL if an error is set; otherwise the argument is a batched tensor,
 * and the result is that of the batching rule of the call. */
void *nr_stopped(const char *name, void *const *args, int64_t n) __attribute__((cold));

/* For norch.profiler: see profile.c. */
#define NR_PROFILE_CALLS(ROW) ROW(profile_start) ROW(profile_tell) ROW(profile_stop) ROW(profile_time)
/* The head of such a call, of Python's convention METH_FASTCALL: n arguments, args. */
#define NR_UNUSED __attribute__((unused))
#define NR_BUILTIN(name) void *nr_py_##name(void *self NR_UNUSED, void *const *args NR_UNUSED, nr_ssize n NR_UNUSED)
#define NR_DECLARE(name) NR_BUILTIN(name);
NR_TENSOR_CALLS(NR_DECLARE)
NR_PROFILE_CALLS(NR_DECLARE)

#endif
