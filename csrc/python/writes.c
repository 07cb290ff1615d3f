/* writes: writes into tensors: rows of ops.def in place, their nodes, and the version counters of what was written. */
#include "../core/tensor.h"
#include "calls.h"
#include "inputs.h"
#include "modes.h"
#include "node.h"

/* ---- version counters ---------------------------------------------------------------------------------------- */

bool nr_note_write(norch_tensor *x, void *time) {
    void *before = x->version_counter, *version = before == NR_NONE ? PyList_New(1) : before;
    if (!version || PyList_SetItem(version, 0, Py_NewRef(time))) return false;
    if (version == before) return true;
    x->version_counter = version;
    Py_DecRef(before);
    return true;
}

/* x: a tensor, a sequence of tensors, or None. */
static bool note_writes(void *x, void *time) {
    if (nr_is_tensor(x)) return nr_note_write((norch_tensor *)x, time);
    if (x == NR_NONE) return true;
    void *tensors = PySequence_Tuple(x);
    if (!tensors) return PyErr_ExceptionMatches(PyExc_TypeError) && nr_refuse("bump", "a tensor", x);
    bool good = true;
    for (int64_t i = 0; good && i < PyTuple_Size(tensors); i++) {
        void *one = PyTuple_GetItem(tensors, i);
        good = nr_is_tensor(one) ? nr_note_write((norch_tensor *)one, time) : nr_refuse("bump", "a tensor", one);
    }
    Py_DecRef(tensors);
    return good;
}

/* bump(x, ...): updates the version counters of tensors after in-place writes. */
NR_BUILTIN(bump) {
    void *time = nr_next_seq();
    bool good = time != NULL;
    for (int64_t i = 0; good && i < n; i++) good = note_writes(args[i], time);
    if (time) Py_DecRef(time);
    return good ? Py_NewRef(NR_NONE) : NULL;
}

/* ---- rows in place ------------------------------------------------------------------------------------------- */

static void *outliving;

/* bind_outliving(dict): the dict of autograd/outlive.py. Its keys are the id() of the version counters of tensors that
 * must be copied before a write, for the nodes that saved them. */
NR_BUILTIN(bind_outliving) {
    if (!nr_counted("bind_outliving", 1, n)) return NULL;
    outliving = Py_NewRef(args[0]); /* for the life of the process */
    return Py_NewRef(NR_NONE);
}

/* Whether a write to x needs no copies of it first: no node that saved x asked for one (autograd/outlive.py). -1 after
 * an exception. */
static int needs_no_copies(const norch_tensor *x) {
    if (!outliving || x->version_counter == NR_NONE || PyDict_Size(outliving) == 0) return 1;
    void *id = PyLong_FromLongLong((int64_t)(intptr_t)x->version_counter);
    const void *found = id ? PyDict_GetItemWithError(outliving, id) : NULL;
    if (id) Py_DecRef(id);
    return PyErr_Occurred() ? -1 : !found;
}

/* node_of_write(node_class, x, ...): the node of a row of x and other tensors that will be written into x; None if no
 * gradient is wanted. */
NR_BUILTIN(node_of_write) {
    if (n < 2 || n > NR_MOST_INPUTS) return nr_counted("node_of_write", 2, n), NULL;
    if (!nr_takes_node_class("node_of_write", args[0])) return NULL;
    for (int64_t i = 1; i < n; i++)
        if (!nr_is_tensor(args[i])) return nr_refuse("node_of_write", "a tensor", args[i]), NULL;
    if (!nr_grad_enabled()) return Py_NewRef(NR_NONE);
    void *node = nr_node_for(args[1], args[1], args[0], NULL, args + 1, n - 1, NULL, 0, n > 2);
    return node || PyErr_Occurred() ? node : Py_NewRef(NR_NONE);
}

/* Writes a row into its first input, and returns that. It returns NotImplemented, so that Python does the write, if a
 * gradient is recorded and an input has a history or is a view, if nodes need copies first, and in an override mode. */
void *nr_write_row(void *self, void *const *args, nr_ssize n) {
    const nr_operation *row = self;
    const int64_t inputs = row->form->inputs;
    const int modes = nr_modes();
    if (!nr_counted("operation", inputs, n)) return NULL;
    void *arguments[5] = {args[0], row->op}, *converted[2] = {NULL};
    if (modes & NR_OVERRIDDEN || !nr_is_plain(args[0])) return Py_NewRef(NR_NOT_IMPLEMENTED);
    int32_t count = nr_take_inputs(args, inputs, arguments + 2, converted);
    int plain = count < 0 ? (PyErr_Occurred() ? -1 : 0) : needs_no_copies(args[0]);
    for (int64_t i = 0; plain > 0 && i < inputs && !(modes & NR_UNRECORDED); i++) {
        const norch_tensor *x = arguments[i + 2];
        plain = x->node == NR_NONE && x->view == NR_NONE;
    }
    void *out = plain > 0    ? row->form->write(NULL, arguments, n + 2)
                : plain == 0 ? Py_NewRef(NR_NOT_IMPLEMENTED)
                             : NULL;
    while (count > 0) Py_DecRef(converted[--count]);
    if (!out || plain <= 0) return out;
    Py_DecRef(out);
    void *time = nr_next_seq();
    const bool noted = time && nr_note_write(args[0], time);
    if (time) Py_DecRef(time);
    return noted ? Py_NewRef(args[0]) : NULL;
}
