/* view_record: recording of views, one by one or as the parts of a tensor. */
#include "../core/tensor.h"
#include "calls.h"
#include "modes.h"
#include "node.h"

/* The field `view` of a view of x that is taken now; NULL on failure. */
static void *view_now(norch_tensor *x, void *view_fn, void *arguments) {
    if (nr_grad_enabled()) return nr_new_view(x, view_fn, arguments);
    if (nr_is_severed(x)) return nr_view_without_history(true);
    void *edge = nr_edge_of(x);
    void *view = edge ? nr_view_without_history(edge != NR_NONE) : NULL;
    if (edge) Py_DecRef(edge);
    return view;
}

/* record_view(node_class, out, x, view_fn, arguments, is_view): out, the view view_fn(x, *arguments), with its node,
 * whose other values are view_fn and arguments. is_view: whether out shares the elements of x; it may be left out. */
NR_BUILTIN(record_view) {
    if (n != 6 && !nr_counted("record_view", 5, n)) return NULL;
    if (!nr_takes_node_class("record_view", args[0])) return NULL;
    for (int i = 1; i < 3; i++)
        if (!nr_is_tensor(args[i])) return nr_refuse("record_view", "a tensor", args[i]), NULL;
    norch_tensor *x = (norch_tensor *)args[2], *out = Py_NewRef(args[1]);
    const bool is_view = n == 5 || PyObject_IsTrue(args[5]) == 1;
    if (is_view && !nr_share_version(x, out)) return NULL;
    if (nr_grad_enabled()) out = nr_record(out, args[0], NULL, args + 2, 1, args + 3, 2, false);
    if (!out || !is_view) return out;
    void *view = view_now(x, args[3], args[4]), *before = out->view;
    if (!view) {
        norch_release(out);
        return NULL;
    }
    out->view = view;
    Py_DecRef(before);
    return out;
}

/* The view view_fn(x, dim, start, stop, 1) of args, those of record_parts(). */
static void *record_part(void *const *args, int64_t dim, int64_t start, int64_t stop) {
    const int64_t numbers[] = {dim, start, stop, 1};
    norch_tensor *part = norch_slice(args[1], dim, start, stop, 1);
    void *arguments = part ? PyTuple_New(4) : NULL;
    for (nr_ssize i = 0; arguments && i < 4; i++) {
        void *number = PyLong_FromLongLong(numbers[i]);
        if (number && PyTuple_SetItem(arguments, i, number) == 0) continue;
        Py_DecRef(arguments);
        arguments = NULL;
    }
    void *const passed[] = {args[0], part, args[1], args[2], arguments};
    void *out = arguments ? nr_py_record_view(NULL, passed, 5) : NULL;
    if (arguments) Py_DecRef(arguments);
    if (part) norch_release(part);
    return out;
}

/* record_parts(node_class, x, view_fn, dim, sizes): a tuple of views of x, of the given sizes, one behind the other
 * along dim. view_fn is the function of slices. */
NR_BUILTIN(record_parts) {
    if (!nr_counted("record_parts", 5, n) || !nr_takes_node_class("record_parts", args[0])) return NULL;
    if (!nr_take_tensor("record_parts", args[1])) return NULL; /* a recording learns which tensor the parts see */
    const int64_t dim = PyLong_AsLongLong(args[3]);
    const nr_ssize count = PyErr_Occurred() ? -1 : PyTuple_Size(args[4]);
    void *out = count < 0 ? NULL : PyTuple_New(count);
    int64_t start = 0;
    for (nr_ssize i = 0; out && i < count; i++) {
        const int64_t size = PyLong_AsLongLong(PyTuple_GetItem(args[4], i));
        void *part = PyErr_Occurred() ? NULL : record_part(args, dim, start, start + size);
        start += size;
        if (part && PyTuple_SetItem(out, i, part) == 0) continue;
        Py_DecRef(out);
        out = NULL;
    }
    return out;
}
