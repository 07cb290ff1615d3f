/* gradients: the only reader of the values that nodes save. It passes them to gradient functions
 * (norch/autograd/derivative.py), after a check that they were neither freed nor written to. */
#include "../core/tensor.h"
#include "calls.h"
#include "node.h"

#define GREATER 4 /* Py_GT */
enum { FUNCTIONS, CODES, CHECK };

static bool is_tuple(const void *object) {
    return PyType_GetFlags(((const nr_object *)object)->type) & NR_TYPE_IS_TUPLE;
}

/* Whether a saved tensor has not been written to since the node was made; check(node, x) raises otherwise. */
static bool is_intact(void *check, const nr_holder *node, void *value, bool holds) {
    int written = holds;
    if (value == NR_NONE) return true;
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

/* A tuple of g, if there is one, and the values that the characters of codes name. */
static void *arguments_of(void *row, nr_holder *node, void *saved, void *codes, void *g) {
    nr_ssize count = 0, first = g != NULL;
    const char *code = PyUnicode_AsUTF8AndSize(codes, &count);
    void *arguments = code ? PyTuple_New(first + count) : NULL;
    if (arguments && g) PyTuple_SetItem(arguments, 0, Py_NewRef(g));
    for (nr_ssize k = 0; arguments && k < count; k++) {
        void *value = value_of(row, node, saved, code[k]);
        if (value && PyTuple_SetItem(arguments, first + k, value) == 0) continue;
        Py_DecRef(arguments);
        return NULL;
    }
    return arguments;
}

static void *gradient(void *row, nr_holder *node, void *saved, int64_t i, void *g) {
    void *function = PyTuple_GetItem(PyTuple_GetItem(row, FUNCTIONS), i);
    if (function == NR_NONE) return Py_NewRef(NR_NONE);
    void *arguments = arguments_of(row, node, saved, PyTuple_GetItem(PyTuple_GetItem(row, CODES), i), g);
    void *out = arguments ? PyObject_CallObject(function, arguments) : NULL;
    if (arguments) Py_DecRef(arguments);
    return out;
}

/* The saved values of the node, a new reference to a tuple. Raises if they were freed. */
static void *saved_of(void *row, nr_holder *node) {
    void *saved = nr_saved_by(node);
    if (!saved || is_tuple(saved)) return saved;
    Py_DecRef(saved);
    void *done = PyObject_CallFunctionObjArgs(PyTuple_GetItem(row, CHECK), node, NR_NONE, NULL); /* which raises */
    if (done) Py_DecRef(done);
    return NULL;
}

/* Whether the gradient for an edge is wanted: needed is NULL, or the set of nodes that a walk visits. -1: an error. */
static int is_wanted(void *edge, void *needed) {
    if (edge == NR_NONE) return 0;
    return needed ? PySet_Contains(needed, edge) : 1;
}

/* The gradients of a node for its edges. One is None if the edge is None or not among the needed nodes (NULL: all are),
 * or if the input has no gradient function. */
static void *gradients_of(void *row, nr_holder *node, void *saved, void *g, void *needed) {
    const int64_t count = PyTuple_Size(PyTuple_GetItem(row, FUNCTIONS));
    void *edges = node->held[NR_NODE_EDGES];
    if (!edges || !is_tuple(edges) || PyTuple_Size(edges) != count) {
        PyErr_SetString(PyExc_TypeError, "propagate: a node with other edges");
        return NULL;
    }
    void *grads = PyTuple_New(count);
    Py_IncRef(edges);
    for (int64_t i = 0; grads && i < count; i++) {
        const int wanted = is_wanted(PyTuple_GetItem(edges, i), needed);
        void *grad = wanted > 0 ? gradient(row, node, saved, i, g) : wanted == 0 ? Py_NewRef(NR_NONE) : NULL;
        if (grad && PyTuple_SetItem(grads, i, grad) == 0) continue;
        Py_DecRef(grads);
        grads = NULL;
    }
    Py_DecRef(edges);
    return grads;
}

static void *call(void *row, void *const *args, nr_ssize n) {
    const bool reads = PyTuple_GetItem(row, FUNCTIONS) == NR_NONE;
    if ((reads || n != 3) && !nr_counted("propagate", reads ? 1 : 2, n)) return NULL;
    if (!nr_is_node_class(((const nr_object *)args[0])->type)) return nr_refuse("propagate", "a node", args[0]), NULL;
    nr_holder *node = (nr_holder *)args[0];
    void *saved = saved_of(row, node);
    if (!saved) return NULL;
    void *out = reads ? arguments_of(row, node, saved, PyTuple_GetItem(row, CODES), NULL)
                      : gradients_of(row, node, saved, args[1], n == 3 ? args[2] : NULL);
    Py_DecRef(saved);
    return out;
}

/* gradients(functions, codes, check): a function of a node and g, and of the nodes that are needed, if not all are.
 * functions: of each input, or None. codes: a text for each, of a character for each parameter after g: its position in
 * what is saved, with NR_READS_RESULT and NR_READS_HOLDER. check(node, value) raises if a saved tensor was freed or
 * written to; None: there are none.
 * gradients(None, codes, check): a function of a node, which returns the values of these codes. */
NR_BUILTIN(gradients) {
    static nr_method method = {"propagate", call, NR_METHOD_FASTCALL, NULL};
    if (!nr_counted("gradients", 3, n)) return NULL;
    const bool each = is_tuple(args[0]) && is_tuple(args[1]) && PyTuple_Size(args[0]) == PyTuple_Size(args[1]);
    if (!each && args[0] != NR_NONE)
        return nr_refuse("gradients", "a tuple of functions and one of texts", args[0]), NULL;
    void *row = PyTuple_New(3);
    for (int i = 0; row && i < 3; i++) PyTuple_SetItem(row, i, Py_NewRef(args[i]));
    void *function = row ? PyCFunction_NewEx(&method, row, NULL) : NULL;
    if (row) Py_DecRef(row);
    return function;
}
