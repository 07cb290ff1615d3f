/* gradients: calls the gradient functions of a node (norch/autograd/derivative.py) with its saved values, after a check
 * that these were neither freed nor written to since. */
#include "../core/tensor.h"
#include "calls.h"
#include "node.h"

#define GREATER 4     /* Py_GT */
#define MOST_VALUES 6 /* of one function, beside g */
enum { FUNCTIONS, CODES, CHECK };

static bool is_tuple(const void *object) {
    return PyType_GetFlags(((const nr_object *)object)->type) & NR_TYPE_IS_TUPLE;
}

/* Whether a saved tensor has not been written to since the node was made; check(node, x) raises otherwise. */
static bool is_intact(void *check, const nr_holder *node, void *value, bool holds) {
    int written = holds;
    if (nr_is_tensor(value)) {
        void *version = ((norch_tensor *)value)->version_counter;
        if (version == NR_NONE) return true;
        void *last = PyList_GetItem(version, 0);
        written = last ? PyObject_RichCompareBool(last, node->held[NR_NODE_SEQ], GREATER) : -1;
    }
    void *done = written > 0 ? PyObject_CallFunctionObjArgs(check, node, value, NULL) : NULL;
    if (done) Py_DecRef(done);
    return written == 0 || done;
}

/* A value for a gradient function: a new reference. A result gets its history back if the gradient is recorded. */
static void *value_of(void *row, nr_holder *node, void *saved, int code) {
    void *value = PyTuple_GetItem(saved, code & (NR_READS_RESULT - 1));
    if (!value) return NULL;
    void *check = PyTuple_GetItem(row, CHECK);
    if (check != NR_NONE && !is_intact(check, node, value, code & NR_READS_HOLDER)) return NULL;
    return code & NR_READS_RESULT && nr_is_tensor(value) ? nr_result_of(node, value) : Py_NewRef(value);
}

static void *gradient(void *row, nr_holder *node, void *saved, int64_t i, void *g) {
    void *function = PyTuple_GetItem(PyTuple_GetItem(row, FUNCTIONS), i), *values[MOST_VALUES + 1] = {NULL},
         *out = NULL;
    if (function == NR_NONE) return Py_NewRef(NR_NONE);
    nr_ssize count = 0, k = 0;
    const char *codes = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(PyTuple_GetItem(row, CODES), i), &count);
    while (codes && k < count && (values[k] = value_of(row, node, saved, codes[k]))) k++;
    if (codes && k == count)
        out = PyObject_CallFunctionObjArgs(function, g, values[0], values[1], values[2], values[3], values[4],
                                           values[5], NULL);
    while (k > 0) Py_DecRef(values[--k]);
    return out;
}

/* Whether the gradient for an edge is wanted: needed is NULL, or the set of nodes that a walk visits. -1: an error. */
static int is_wanted(void *edge, void *needed) {
    if (edge == NR_NONE) return 0;
    return needed ? PySet_Contains(needed, edge) : 1;
}

/* A function of a node, g and perhaps a set of nodes: the gradients for the edges. One is None if the edge is None or
 * not in the set, or if the input has no gradient function. */
static void *call(void *row, void *const *args, nr_ssize n) {
    if (n != 3 && !nr_counted("propagate", 2, n)) return NULL;
    if (!nr_is_node_class(((const nr_object *)args[0])->type)) return nr_refuse("propagate", "a node", args[0]), NULL;
    nr_holder *node = (nr_holder *)args[0];
    const int64_t count = PyTuple_Size(PyTuple_GetItem(row, FUNCTIONS));
    void *edges = node->held[NR_NODE_EDGES], *saved = nr_saved_by(node);
    void *grads = saved && edges && is_tuple(edges) && PyTuple_Size(edges) == count ? PyTuple_New(count) : NULL;
    if (saved && !grads && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "propagate: a node with other edges");
    if (grads && !is_tuple(saved)) {
        void *done = PyObject_CallFunctionObjArgs(PyTuple_GetItem(row, CHECK), node, NR_NONE, NULL); /* which raises */
        Py_DecRef(grads);
        grads = NULL;
        if (done) Py_DecRef(done);
    }
    if (grads) Py_IncRef(edges);
    for (int64_t i = 0; grads && i < count; i++) {
        const int wanted = is_wanted(PyTuple_GetItem(edges, i), n == 3 ? args[2] : NULL);
        void *grad = wanted > 0 ? gradient(row, node, saved, i, args[1]) : wanted == 0 ? Py_NewRef(NR_NONE) : NULL;
        if (grad && PyTuple_SetItem(grads, i, grad) == 0) continue;
        Py_DecRef(grads);
        Py_DecRef(edges);
        grads = NULL;
    }
    if (grads) Py_DecRef(edges);
    if (saved) Py_DecRef(saved);
    return grads;
}

/* gradients(functions, codes, check): a function of a node and g, and of the nodes that are needed, if not all are.
 * functions: of each input, or None. codes: a text for each, of a character for each parameter after g: its position in
 * what is saved, with NR_READS_RESULT and NR_READS_HOLDER. check(node, value) raises if a saved tensor was freed or
 * written to; None: there are none. */
NR_BUILTIN(gradients) {
    static nr_method method = {"propagate", call, NR_METHOD_FASTCALL, NULL};
    if (!nr_counted("gradients", 3, n)) return NULL;
    const bool good = is_tuple(args[0]) && is_tuple(args[1]) && PyTuple_Size(args[0]) == PyTuple_Size(args[1]);
    for (int64_t i = 0; good && i < PyTuple_Size(args[1]); i++) {
        nr_ssize count;
        if (!PyUnicode_AsUTF8AndSize(PyTuple_GetItem(args[1], i), &count)) return NULL;
        if (count > MOST_VALUES) return nr_refuse("gradients", "at most six parameters after g", args[1]), NULL;
    }
    if (!good) return nr_refuse("gradients", "a tuple of functions and one of texts", args[0]), NULL;
    void *row = PyTuple_New(3);
    for (int i = 0; row && i < 3; i++) PyTuple_SetItem(row, i, Py_NewRef(args[i]));
    void *function = row ? PyCFunction_NewEx(&method, row, NULL) : NULL;
    if (row) Py_DecRef(row);
    return function;
}
