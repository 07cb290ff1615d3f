/* view_history: views as autograd knows them. The field `view` of a tensor that is a view tells its base, the view_fns
 * that lead to it, and the node of the base when it was taken (norch/autograd/view_history.py). */
#include <stddef.h>

#include "calls.h"
#include "node.h"

/* refresh(x) takes a view again from its base; view_of(x, view_fn, arguments) is the _view of a view of a view; severed
 * and unrecorded are the _view of views taken under no_grad(); history(node) is the history of the result that the node
 * saved. */
static void *refresh, *view_of, *severed, *unrecorded, *history;
static void *view_class; /* of the _view of tensors */
enum { VIEW_BASE, VIEW_FNS, VIEW_NODE };

/* bind_views(refresh, view_of, SEVERED, UNRECORDED, history), of view_history.py and saved.py. */
NR_BUILTIN(bind_views) {
    if (!nr_counted("bind_views", 5, n)) return NULL;
    void **all[] = {&refresh, &view_of, &severed, &unrecorded, &history};
    for (int i = 0; i < 5; i++) *all[i] = Py_NewRef(args[i]); /* for the life of the process */
    return Py_NewRef(NR_NONE);
}

/* view_class(): the class of views, one for all calls, with the fields base, view_fns and node. */
NR_BUILTIN(view_class) {
    static nr_member members[] = {{"base", NR_MEMBER_OBJECT, offsetof(nr_holder, held[VIEW_BASE]), 0, NULL},
                                  {"view_fns", NR_MEMBER_OBJECT, offsetof(nr_holder, held[VIEW_FNS]), 0, NULL},
                                  {"node", NR_MEMBER_OBJECT, offsetof(nr_holder, held[VIEW_NODE]), 0, NULL},
                                  {NULL, 0, 0, 0, NULL}};
    (void)args, (void)n;
    if (!view_class) view_class = nr_holder_class("norch.View", members, (nr_slot){0, NULL}, (nr_slot){0, NULL});
    return Py_XNewRef(view_class);
}

/* Whether the history of a view is that of its base as it is now. Some views have no base (view_history.py). */
static bool is_current(const nr_holder *view) {
    const void *base = view->held[VIEW_BASE];
    if (view->object.type != view_class || !base || !nr_is_tensor(base)) return true;
    return ((const norch_tensor *)base)->node == view->held[VIEW_NODE];
}

bool nr_refresh_view(norch_tensor *x) {
    if (is_current(x->view)) return true;
    void *done = PyObject_CallFunctionObjArgs(refresh, x, NULL);
    if (done) Py_DecRef(done);
    return done;
}

void *nr_history_of(nr_holder *node) { return PyObject_CallFunctionObjArgs(history, node, NULL); }

void *nr_mark_of_view(const norch_tensor *x) {
    return x->view == NR_NONE ? NULL : Py_NewRef(x->view == severed ? severed : unrecorded);
}

void nr_set_view(norch_tensor *x, void *view) {
    void *before = x->view;
    x->view = Py_NewRef(view);
    Py_DecRef(before);
}

static void *new_view(norch_tensor *x, void *view_fn, void *arguments) {
    nr_holder *view = PyType_GenericAlloc(view_class, 0);
    void *view_fns = view ? PyTuple_New(4) : NULL, *one = view_fns ? PyLong_FromLongLong(1) : NULL;
    if (!one) {
        if (view_fns) Py_DecRef(view_fns);
        if (view) Py_DecRef(view);
        return NULL;
    }
    void *each[] = {Py_NewRef(NR_NONE), Py_NewRef(view_fn), Py_NewRef(arguments), one};
    for (int i = 0; i < 4; i++) PyTuple_SetItem(view_fns, i, each[i]);
    view->held[VIEW_BASE] = Py_NewRef(x);
    view->held[VIEW_FNS] = view_fns;
    view->held[VIEW_NODE] = Py_NewRef(x->node);
    return view;
}

void *nr_new_view(norch_tensor *x, void *view_fn, void *arguments) {
    return x->view == NR_NONE ? new_view(x, view_fn, arguments)
                              : PyObject_CallFunctionObjArgs(view_of, x, view_fn, arguments, NULL);
}

bool nr_is_severed(const norch_tensor *x) { return x->view == severed; }

void *nr_view_without_history(bool loses_gradient) { return Py_NewRef(loses_gradient ? severed : unrecorded); }
