/* calls: the public C API as builtin functions of Python. A builtin gets its arguments as an array of objects, and
 * converts each to the C type of the parameter, or raises an exception that names the call, what it expected and what
 * it got. make_calls.py generates the builtins from the prototypes of the public headers, into calls.inc, with the list
 * of those that are written by hand; the functions here convert. */
#include <math.h>
#include <string.h>

#include "../core/memory.h"
#include "../core/observer.h"
#include "../core/tensor.h"
#include "../norch_families.h"
#include "abi.h"
#include "calls.h"
#include "inputs.h"
#include "modes.h"
#include "node.h"
#include "object.h"

/* ---- from Python: a function for each kind of argument, take_KIND -------------------------------------- */

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

static inline bool take_tensor(const char *name, void *from, tensor *to) { return (*to = nr_take_tensor(name, from)); }
static bool take_header(const char *name, void *from, tensor *to) { return (*to = nr_take_header(name, from)); }

static bool take_optional(const char *name, void *from, optional *to) {
    if (from != NR_NONE) return take_tensor(name, from, to);
    *to = NULL;
    return true;
}

static inline bool take_wanted(const char *name, const char *wanted, void *from, integer *to) {
    if (((const nr_object *)from)->type == NR_AT(PyBool_Type))
        return nr_refuse(name, wanted, from), false; /* like PyTorch */
    *to = PyLong_AsLongLong(from);
    if (*to != -1 || !PyErr_Occurred()) return true;
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Format(PyExc_OverflowError, "%s: %R does not fit 64 bits", name, from);
    } else if (PyErr_ExceptionMatches(PyExc_TypeError)) {
        nr_refuse(name, wanted, from);
    }
    return false;
}

static inline bool take_integer(const char *name, void *from, integer *to) {
    return take_wanted(name, "an integer", from, to);
}

static inline bool take_opcode(const char *name, void *from, opcode *to) { return take_integer(name, from, to); }

/* Like PyTorch: a number is not accepted for a bool. */
static inline bool take_flag(const char *name, void *from, flag *to) {
    if (((const nr_object *)from)->type !=
        NR_AT(PyBool_Type)) /* `, false`: gcc -O1 does not see that nr_refuse() is false */
        return nr_refuse(name, "True or False", from), false;
    *to = PyLong_AsLongLong(from) != 0;
    return true;
}

static bool take_number(const char *name, void *from, number *to) {
    if (nr_is_tensor(from) && ((const norch_tensor *)from)->node != NR_NONE) /* its gradient would be lost */
        return nr_refuse(name, "a number that does not require grad", from);
    *to = PyFloat_AsDouble(from);
    if (*to != -1 || !PyErr_Occurred()) return true;
    return PyErr_ExceptionMatches(PyExc_TypeError) && nr_refuse(name, "a number", from);
}

/* Refuses an object that is not an integer without setting an error, as for a batched tensor: nr_stopped() then runs
 * the batching rule. */
static bool take_address(const char *name, void *from, address *to) {
    int64_t value = 0;
    if (!(PyType_GetFlags(((const nr_object *)from)->type) & NR_TYPE_IS_INTEGER)) return false;
    if (!take_integer(name, from, &value)) return false;
    *to = (void *)(intptr_t)value;
    return true;
}

static bool take_each(const char *name, const char *wanted, void *from, sizes *to) {
    void *tuple = PySequence_Tuple(from);
    if (!tuple) return PyErr_ExceptionMatches(PyExc_TypeError) && nr_refuse(name, "a sequence of integers", from);
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
    if (both.count != 2) return nr_refuse(name, "a device", from);
    *to = (device){both.values[0], both.values[1]};
    return true;
}

#include "columns.h"

/* ---- to Python: a function for each kind of result, give_KIND. A failure has raised already --------------- */

static void *failed(const char *name) {
    nr_name_shortage(name);
    return NULL;
}

static inline void *give_tensor(const char *name, norch_tensor *x) { return x ? x : failed(name); }

static inline void *give_status(const char *name, int32_t status) {
    if (status != NORCH_OK) return failed(name);
    return Py_NewRef(NR_NONE);
}

/* A result of false or -1 may mean a failure. */
static inline void *give_truth(const char *name, bool truth) {
    return !truth && PyErr_Occurred() ? failed(name) : PyBool_FromLong(truth);
}

static inline void *give_integer(const char *name, int64_t value) {
    return value == -1 && PyErr_Occurred() ? failed(name) : PyLong_FromLongLong(value);
}

/* ---- the builtins ---------------------------------------------------------------------------------------- */

#include "calls.inc"

/* ---- builtins that are written by hand, here and in other files ------------------------------------------ */

static void *py_dtypes_seen(void *self, void *const *args, nr_ssize n) { /* by hand, as each backward() calls it */
    (void)self, (void)args;
    return nr_counted("dtypes_seen", 0, n) ? PyLong_FromLongLong(nr_dtypes_seen) : NULL;
}

/* ---- rows of ops.def as functions: the call and, if a gradient is wanted, the node ------------------------- */

static const nr_form_of_rows forms[] = {{"unary", py_unary, py_unary_into, 1},
                                        {"binary", py_binary, py_binary_into, 2},
                                        {"ternary", py_ternary, py_ternary_into, 3},
                                        {"reduce", py_reduce, NULL, 1}};

/* Whether the row has the class of its nodes: most programs record few of the rows, so it is made late. */
static bool has_class(nr_operation *row) {
    if (row->node_class) return true;
    void *class = PyObject_CallFunctionObjArgs(row->declare, NULL);
    void *selections =
        class && nr_takes_node_class("operation", class) ? PyObject_GetAttrString(class, "selections") : NULL;
    if (selections && !row->node_class) { /* no other thread was faster */
        row->selections = selections;
        row->node_class = class;
        return true;
    }
    if (selections) Py_DecRef(selections);
    if (class) Py_DecRef(class);
    return selections != NULL;
}

/* The call of a row on tensors and further arguments, with its node. If converts, the call returns NotImplemented for
 * arguments that are neither tensors nor cached numbers, for those that autocast casts, and in an override mode; the
 * caller then converts them and calls again. */
static inline void *call_row(nr_operation *row, bool converts, void *const *args, nr_ssize n) {
    void *arguments[6] = {row->op}, *converted[2] = {NULL};
    const int64_t inputs = row->form->inputs;
    const int modes = nr_modes();
    int32_t count = 0;
    if (n < inputs || n > 5) return nr_counted("operation", inputs, n), NULL;
    if (converts && modes & (row->casts | NR_OVERRIDDEN)) return Py_NewRef(NR_NOT_IMPLEMENTED);
    for (int64_t i = 0; i < n; i++) arguments[i + 1] = args[i];
    if (converts && (count = nr_take_inputs(args, inputs, arguments + 1, converted)) < 0)
        return PyErr_Occurred() ? NULL : Py_NewRef(NR_NOT_IMPLEMENTED);
    norch_tensor *out = row->form->call(NULL, arguments, n + 1);
    if (out && row->declare != NR_NONE && !(modes & NR_UNRECORDED)) {
        if (has_class(row)) {
            out = nr_record(out, row->node_class, row->selections, arguments + 1, inputs, args + inputs, n - inputs,
                            inputs > 1 && out->mixed);
        } else {
            Py_DecRef(out);
            out = NULL;
        }
    }
    while (count > 0) Py_DecRef(converted[--count]);
    return out;
}

static void *call_row_converting(void *self, void *const *args, nr_ssize n) { return call_row(self, true, args, n); }

static void *call_row_converted(void *self, void *const *args, nr_ssize n) { return call_row(self, false, args, n); }

/* operation(form, op, a function that returns the class of its nodes or None, the modes of autocast in which it casts):
 * the functions of a row. The first returns NotImplemented if an input is no Tensor or Parameter, or if autocast may
 * cast it, so that the caller converts it; the second takes the converted inputs. The third, which reductions lack,
 * writes the row into its first input. */
NR_BUILTIN(operation) {
    static void *class;
    static nr_method functions[] = {{"call", call_row_converting, NR_METHOD_FASTCALL, NULL},
                                    {"call_converted", call_row_converted, NR_METHOD_FASTCALL, NULL},
                                    {"write", nr_write_row, NR_METHOD_FASTCALL, NULL}};
    nr_slot slots[] = {{0, NULL}};
    nr_spec spec = {"norch.Operation", sizeof(nr_operation), 0, NR_TYPE_DEFAULT, slots};
    if (!nr_counted("operation", 4, n)) return NULL;
    const char *name = PyUnicode_AsUTF8AndSize(args[0], NULL);
    const int64_t count = sizeof forms / sizeof *forms, casts = PyLong_AsLongLong(args[3]);
    if (PyErr_Occurred()) return NULL;
    int64_t form = 0;
    while (form < count && strcmp(name, forms[form].name) != 0) form++;
    if (form == count) return nr_refuse("operation", "a form", args[0]), NULL;
    if (!class && !(class = PyType_FromSpec(&spec))) return NULL;
    nr_operation *row = PyType_GenericAlloc(class, 0);
    if (!row) return NULL;
    row->form = &forms[form];
    row->op = Py_NewRef(args[1]);
    row->declare = Py_NewRef(args[2]);
    row->node_class = row->selections = NULL;
    row->casts = (int)casts;
    const int total = row->form->write ? 3 : 2;
    void *all = PyTuple_New(total);
    for (int i = 0; all && i < total; i++) {
        void *function = PyCFunction_NewEx(&functions[i], row, NULL);
        if (function && PyTuple_SetItem(all, i, function) == 0) continue;
        Py_DecRef(all);
        all = NULL;
    }
    Py_DecRef(row);
    return all;
}

static nr_method methods[] = {
#define ROW(name) {#name, py_##name, NR_METHOD_FASTCALL, NULL},
    BUILTINS(ROW) ROW(dtypes_seen)
#undef ROW
#define ROW(name) {#name, nr_py_##name, NR_METHOD_FASTCALL, NULL},
        WRITTEN(ROW)
#undef ROW
};

static bool listed(int64_t i) { return i >= 0 && i < (int64_t)(sizeof methods / sizeof *methods); }

const char *norch_call_name(int64_t i) { return listed(i) ? methods[i].name : NULL; }

void *norch_call(int64_t i) {
    return listed(i) && PyCFunction_NewEx ? PyCFunction_NewEx(&methods[i], NULL, NULL) : NULL;
}
