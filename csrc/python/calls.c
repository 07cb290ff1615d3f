/* calls: the public C API as builtin functions of Python. A builtin gets its arguments as an array of objects. Here each of
 * them is converted to what norch.h asks for, or raises an exception that names the call, what it expected and what it
 * got. make_calls.py writes the builtins, from the prototypes of norch.h, into calls.inc. */
#include <string.h>

#include "../core/memory.h"
#include "../core/observer.h"
#include "../core/tensor.h"
#include "abi.h"
#include "calls.h"
#include "object.h"

/* ---- from Python: one function a kind of argument ----------------------------------------------------- */

typedef norch_tensor *tensor, *optional;
typedef int64_t integer, opcode;
typedef bool flag;
typedef double number;
typedef void *address;
typedef struct sizes {
    int64_t count;
    int64_t values[NORCH_MAX_DIMS];
} sizes, axes;

typedef struct device {
    int64_t type, index;
} device;

/* Does not say which argument: the Python function that calls the builtin counts its own. */
static bool refuse(const char *name, const char *wanted, const void *object) {
    void *kind = PyObject_GetAttrString(((const nr_object *)object)->type, "__name__");
    if (!kind) return false;
    PyErr_Format(PyExc_TypeError, "%s: expected %s, not %S", name, wanted, kind);
    Py_DecRef(kind);
    return false;
}

/* A tensor of a subclass. A batched one is refused without an error: see nr_stopped(). */
static bool __attribute__((noinline)) is_of_subclass(const char *name, const void *from) {
    if (!nr_is_tensor(from)) return refuse(name, "a tensor", from);
    return ((const nr_object *)from)->type != nr_batched_class;
}

static inline bool take_tensor(const char *name, void *from, tensor *to) {
    *to = from;
    if (((const nr_object *)from)->type != nr_tensor_class && !is_of_subclass(name, from)) return false;
    nr_observer *observer = nr_observing();
    if (observer) observer->seen(observer, from);
    return true;
}

/* A tensor of which only the shape and the dtype are read: a batched one has those of a sample. */
static bool take_header(const char *name, void *from, tensor *to) {
    *to = from;
    return nr_is_tensor(from) || refuse(name, "a tensor", from);
}

static bool take_optional(const char *name, void *from, optional *to) {
    if (from != NR_NONE) return take_tensor(name, from, to);
    *to = NULL;
    return true;
}

static inline bool take_wanted(const char *name, const char *wanted, void *from, integer *to) {
    if (((const nr_object *)from)->type == &PyBool_Type) return refuse(name, wanted, from), false; /* like PyTorch */
    *to = PyLong_AsLongLong(from);
    if (*to != -1 || !PyErr_Occurred()) return true;
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Format(PyExc_OverflowError, "%s: %R does not fit 64 bits", name, from);
    } else if (PyErr_ExceptionMatches(PyExc_TypeError)) {
        refuse(name, wanted, from);
    }
    return false;
}

static inline bool take_integer(const char *name, void *from, integer *to) {
    return take_wanted(name, "an integer", from, to);
}

static inline bool take_opcode(const char *name, void *from, opcode *to) { return take_integer(name, from, to); }

/* Like PyTorch: a number is not accepted for a bool. */
static inline bool take_flag(const char *name, void *from, flag *to) {
    if (((const nr_object *)from)->type != &PyBool_Type) /* false: gcc -O1 does not see what refuse returns */
        return refuse(name, "True or False", from), false;
    *to = PyLong_AsLongLong(from) != 0;
    return true;
}

static bool take_number(const char *name, void *from, number *to) {
    *to = PyFloat_AsDouble(from);
    if (*to != -1 || !PyErr_Occurred()) return true;
    return PyErr_ExceptionMatches(PyExc_TypeError) && refuse(name, "a number", from);
}

/* What is no integer is refused without an error, as a batched tensor is: it asks for the numbers of a batch. */
static bool take_address(const char *name, void *from, address *to) {
    int64_t value = 0;
    if (!(PyType_GetFlags(((const nr_object *)from)->type) & NR_TYPE_IS_INTEGER)) return false;
    if (!take_integer(name, from, &value)) return false;
    *to = (void *)(intptr_t)value;
    return true;
}

static bool take_each(const char *name, const char *wanted, void *from, sizes *to) {
    void *tuple = PySequence_Tuple(from);
    if (!tuple) return PyErr_ExceptionMatches(PyExc_TypeError) && refuse(name, "a sequence of integers", from);
    to->count = PyTuple_Size(tuple);
    bool good = to->count <= NORCH_MAX_DIMS;
    if (!good)
        nr_fail(NORCH_ERROR_SHAPE, "%s: %lld dimensions; at most %d are supported", name, (long long)to->count,
                NORCH_MAX_DIMS);
    for (int64_t k = 0; good && k < to->count; k++)
        good = take_wanted(name, wanted, PyTuple_GetItem(tuple, k), &to->values[k]);
    Py_DecRef(tuple);
    return good;
}

static bool take_sizes(const char *name, void *from, sizes *to) { return take_each(name, "an integer", from, to); }

static bool take_axes(const char *name, void *from, axes *to) {
    if (from != NR_NONE) return take_each(name, "dim to be an integer or a tuple of integers", from, to);
    to->count = -1;
    return true;
}

static bool take_device(const char *name, void *from, device *to) {
    sizes both = {.count = 0};
    if (!take_sizes(name, from, &both)) return false;
    if (both.count != 2) return refuse(name, "a device", from);
    *to = (device){both.values[0], both.values[1]};
    return true;
}

#include "columns.h"

/* ---- to Python: one function a kind of result. A failure has raised already ------------------------------ */

static void *failed(const char *name) {
    nr_name_shortage(name);
    return NULL;
}

static inline void *give_tensor(const char *name, norch_tensor *x) { return x ? x : failed(name); }

static inline void *give_status(const char *name, int32_t status) {
    if (status != NORCH_OK) return failed(name);
    Py_IncRef(NR_NONE);
    return NR_NONE;
}

/* false and -1 can mean a failure. */
static inline void *give_truth(const char *name, bool truth) {
    return !truth && PyErr_Occurred() ? failed(name) : PyBool_FromLong(truth);
}

static inline void *give_integer(const char *name, int64_t value) {
    return value == -1 && PyErr_Occurred() ? failed(name) : PyLong_FromLongLong(value);
}

/* ---- the builtins ---------------------------------------------------------------------------------------- */

static bool counted(const char *name, int64_t wanted, int64_t given) {
    if (given == wanted) return true;
    PyErr_Format(PyExc_TypeError, "%s: takes %lld arguments, not %lld", name, (long long)wanted, (long long)given);
    return false;
}

#include "calls.inc"

/* ---- those with results of their own ------------------------------------------------------------------- */

static void *py_complex_seen(void *self, void *const *given, int64_t n) { /* each backward() asks */
    (void)self, (void)given;
    return counted("complex_seen", 0, n) ? PyBool_FromLong(nr_complex_seen) : NULL;
}

/* The element of a one-element tensor as a Python number. */
static void *py_item(void *self, void *const *given, int64_t n) {
    (void)self;
    tensor x = NULL;
    if (!counted("item", 1, n)) return NULL;
    if (!take_tensor("item", given[0], &x)) return nr_stopped("item", given, n);
    double value = 0;
    int64_t whole = 0;
    if (nr_is_complex(x->dtype) && x->numel == 1) {
        union {
            float narrow[2];
            double wide[2];
        } parts;
        if (norch_to_bytes(x, &parts, nr_size_of(x->dtype)) != NORCH_OK) return NULL;
        return x->dtype == NORCH_COMPLEX128 ? PyComplex_FromDoubles(parts.wide[0], parts.wide[1])
                                            : PyComplex_FromDoubles((double)parts.narrow[0], (double)parts.narrow[1]);
    }
    if (norch_item(x, &value, &whole) != NORCH_OK) return NULL;
    if (nr_is_float(x->dtype)) return PyFloat_FromDouble(value);
    return x->dtype == NORCH_BOOL ? PyBool_FromLong(whole != 0) : PyLong_FromLongLong(whole);
}

static void *tuple_of(int64_t count, const int64_t *values) {
    void *tuple = PyTuple_New(count);
    for (int64_t i = 0; tuple && i < count; i++) {
        void *value = PyLong_FromLongLong(values[i]);
        if (!value || PyTuple_SetItem(tuple, i, value)) {
            Py_DecRef(tuple);
            return NULL;
        }
    }
    return tuple;
}

static void *py_shape(void *self, void *const *given, int64_t n) {
    (void)self;
    tensor x = NULL;
    return counted("shape", 1, n) && take_header("shape", given[0], &x) ? tuple_of(x->ndim, x->shape) : NULL;
}

static void *py_strides(void *self, void *const *given, int64_t n) {
    (void)self;
    tensor x = NULL;
    return counted("strides", 1, n) && take_header("strides", given[0], &x) ? tuple_of(x->ndim, x->strides) : NULL;
}

/* An instance of a subclass of Tensor over the elements of x. */
static void *py_adopt(void *self, void *const *given, int64_t n) {
    (void)self;
    tensor x = NULL;
    if (!counted("adopt", 2, n)) return NULL;
    if (!take_tensor("adopt", given[1], &x)) return nr_stopped("adopt", given, n);
    if (!PyType_IsSubtype(given[0], nr_tensor_class)) {
        PyErr_Format(PyExc_TypeError, "adopt: expected a class of tensors, not %R", given[0]);
        return NULL;
    }
    norch_tensor *adopted = nr_new_instance(given[0]);
    if (adopted && norch_set_data(adopted, x) != NORCH_OK) {
        norch_release(adopted);
        adopted = NULL;
    }
    return adopted;
}

static nr_method methods[] = {
#define ROW(name) {#name, py_##name, NR_METHOD_FASTCALL, NULL},
    BUILTINS(ROW) ROW(item) ROW(complex_seen) ROW(shape) ROW(strides)
        ROW(adopt){"region", nr_py_region, NR_METHOD_FASTCALL, NULL},
    {"set_batched", nr_py_set_batched, NR_METHOD_FASTCALL, NULL},
    {"sample_of", nr_py_sample_of, NR_METHOD_FASTCALL, NULL},
    {"to_dlpack", nr_py_to_dlpack, NR_METHOD_FASTCALL, NULL},
    {"from_dlpack", nr_py_from_dlpack, NR_METHOD_FASTCALL, NULL},
    {"guard_class", nr_py_guard_class, NR_METHOD_FASTCALL, NULL},
#undef ROW
#define ROW(name) {#name, nr_py_##name, NR_METHOD_FASTCALL, NULL},
    NR_PROGRAM_CALLS(ROW) NR_PROFILE_CALLS(ROW)
#undef ROW
};

static bool listed(int64_t i) { return i >= 0 && i < (int64_t)(sizeof methods / sizeof *methods); }

const char *norch_call_name(int64_t i) { return listed(i) ? methods[i].name : NULL; }

void *norch_call(int64_t i) {
    return listed(i) && PyCFunction_NewEx ? PyCFunction_NewEx(&methods[i], NULL, NULL) : NULL;
}
