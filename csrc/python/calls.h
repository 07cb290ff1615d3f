/* calls: functions for builtins that are written by hand. */
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

/* The result of a call that refused an argument: NULL if an error is set; otherwise the argument is a batched tensor,
 * and the result is that of the batching rule of the call. */
void *nr_stopped(const char *name, void *const *args, int64_t n) __attribute__((cold));

/* A builtin, with its n arguments args (Python's convention METH_FASTCALL). make_calls.py finds these definitions. */
#define NR_UNUSED __attribute__((unused))
#define NR_BUILTIN(name) void *nr_py_##name(void *self NR_UNUSED, void *const *args NR_UNUSED, nr_ssize n NR_UNUSED)

/* ---- rows of ops.def as functions: calls.c --------------------------------------------------------------- */

/* The properties that rows of a form share: the builtins that compute one and write one, and how many tensors they
 * take. */
typedef struct nr_form_of_rows {
    const char *name;
    nr_builtin call, write;
    int64_t inputs;
} nr_form_of_rows;

typedef struct nr_operation {
    nr_object object;
    const nr_form_of_rows *form;
    void *op, *declare;            /* for the life of the process, as the class; declare() returns it; None: no nodes */
    void *node_class, *selections; /* NULL before the first call that may be recorded */
    int casts;                     /* the modes of autocast in which it casts */
} nr_operation;

/* The function of a row that writes into its first input: writes.c. */
void *nr_write_row(void *self, void *const *args, nr_ssize n);

#endif
