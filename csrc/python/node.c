/* node: the nodes of autograd's graph. This is the one place that makes them: it numbers them, keeps the stack of the
 * call in anomaly mode, and fills them by the plan of their operation (norch/autograd/saved.py). */
#include "node.h"

#include <stddef.h>

#include "../core/tensor.h"
#include "calls.h"
#include "modes.h"

#define SLOT_NEW 65 /* Py_tp_new */
#define IS_CLASS (1u << 31)

static void *base_class; /* of nodes */
static void *counter;    /* the iterator of sequence numbers */
static void *packed;     /* packed(saved), once there were hooks on saved tensors; else NULL */

static void *attribute(void **name, const char *text, void *object) {
    if (!*name && !(*name = PyUnicode_InternFromString(text))) return NULL;
    return PyObject_GetAttr(object, *name);
}

void *nr_next_seq(void) { return PyIter_Next(counter); }

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static nr_holder *make_node(void *class) {
    nr_holder *node = PyType_GenericAlloc(class, 0);
    if (!node) return NULL;
    for (int i = NR_NODE_HOOKS; i <= NR_NODE_SAVED; i++) node->held[i] = Py_NewRef(NR_NONE);
    node->held[NR_NODE_SEQ] = nr_next_seq();
    const bool traced = node->held[NR_NODE_SEQ] && nr_modes() & NR_TRACED;
    if (traced) node->held[NR_NODE_STACK] = nr_stack_of_call();
    if (node->held[NR_NODE_SEQ] && traced == (node->held[NR_NODE_STACK] != NULL)) return node;
    Py_DecRef(node);
    return NULL;
}

/* Node.__new__ */
static void *new_node(void *class, void *arguments, void *named) {
    (void)arguments, (void)named;
    return make_node(class);
}

/* Whether a saved value is no more than a Python number, or the shape of an input: walks do not free it. */
static bool is_number(void *saved) {
    const void *type = ((const nr_object *)saved)->type;
    const norch_tensor *x = saved;
    if (nr_is_tensor(saved)) return x->weak || !x->storage;
    return saved == NR_NONE || type == NR_AT(PyFloat_Type) || type == NR_AT(PyLong_Type);
}

/* node._free(): frees its saved values. */
static void *free_saved(void *self, void *const *args, nr_ssize n) {
    (void)args;
    nr_holder *node = self;
    if (!nr_counted("release", 0, n)) return NULL;
    void *before = node->held[NR_NODE_SAVED];
    node->held[NR_NODE_SAVED] = Py_NewRef(NR_NONE);
    if (before) Py_DecRef(before);
    return Py_NewRef(NR_NONE);
}

/* node._free_tensors(): _free(), unless it saved only numbers, so that another walk may follow. */
static void *free_tensors(void *self, void *const *args, nr_ssize n) {
    void *saved = ((nr_holder *)self)->held[NR_NODE_SAVED];
    const bool is_tuple = saved && PyType_GetFlags(((nr_object *)saved)->type) & NR_TYPE_IS_TUPLE;
    const nr_ssize count = is_tuple ? PyTuple_Size(saved) : 0;
    nr_ssize numbers = 0;
    while (numbers < count && is_number(PyTuple_GetItem(saved, numbers))) numbers++;
    return is_tuple && numbers == count ? Py_NewRef(NR_NONE) : free_saved(self, args, n);
}

/* node._propagate(g[, needed]): calls the gradient functions of its class (gradients.c). */
static void *propagate(void *self, void *const *args, nr_ssize n) {
    static void *name;
    if (n != 2 && !nr_counted("propagate", 1, n)) return NULL;
    void *gradients = attribute(&name, "_gradients", self);
    void *grads =
        gradients ? PyObject_CallFunctionObjArgs(gradients, self, args[0], n == 2 ? args[1] : NULL, NULL) : NULL;
    if (gradients) Py_DecRef(gradients);
    return grads;
}

static nr_method methods[] = {{"_free", free_saved, NR_METHOD_FASTCALL, NULL},
                              {"_free_tensors", free_tensors, NR_METHOD_FASTCALL, NULL},
                              {"_propagate", propagate, NR_METHOD_FASTCALL, NULL},
                              {NULL, NULL, 0, NULL}};

/* node_class(counter): the base class of nodes, one for all calls, which are numbered by counter. */
NR_BUILTIN(node_class) {
    if (!nr_counted("node_class", 1, n)) return NULL;
#define FIELD(name, i) \
    { name, NR_MEMBER_OBJECT, offsetof(nr_holder, held[i]), 0, NULL }
    static nr_member members[] = {FIELD("edges", NR_NODE_EDGES),  FIELD("seq", NR_NODE_SEQ),
                                  FIELD("hooks", NR_NODE_HOOKS),  FIELD("metas", NR_NODE_METAS),
                                  FIELD("_saved", NR_NODE_SAVED), FIELD("_stack", NR_NODE_STACK),
                                  {NULL, 0, 0, 0, NULL}};
#undef FIELD
    if (base_class) return Py_NewRef(base_class);
    counter = Py_NewRef(args[0]);
    base_class = nr_holder_class("norch.NodeBase", members, (nr_slot){SLOT_NEW, (void *)(uintptr_t)new_node},
                                 (nr_slot){NR_SLOT_METHODS, methods});
    return Py_XNewRef(base_class);
}

/* pack_saved(packed or None), of saved_hooks.py: for all threads. */
NR_BUILTIN(pack_saved) {
    if (!nr_counted("pack_saved", 1, n)) return NULL;
    void *before = packed;
    packed = args[0] == NR_NONE ? NULL : Py_NewRef(args[0]);
    if (before) Py_DecRef(before);
    return Py_NewRef(NR_NONE);
}

/* ---- edges ------------------------------------------------------------------------------------------------------- */

void *nr_edge_of(norch_tensor *x) {
    if (x->view != NR_NONE && !nr_refresh_view(x)) return NULL;
    return Py_NewRef(x->node);
}

/* gradient_edge(x) */
NR_BUILTIN(gradient_edge) {
    if (!nr_counted("gradient_edge", 1, n)) return NULL;
    return nr_is_tensor(args[0]) ? nr_edge_of(args[0]) : (nr_refuse("gradient_edge", "a tensor", args[0]), NULL);
}

/* The edges of inputs as a tuple, and the bits of those that are not None, the first input's the highest. NULL without
 * an error if all are None. */
static void *edges_of(void *const *inputs, int64_t n, int64_t *wanted) {
    bool any = false;
    for (int64_t i = 0; i < n && !any; i++) {
        const norch_tensor *x = inputs[i];
        any = inputs[i] != NR_NONE && (x->node != NR_NONE || x->view != NR_NONE);
    }
    void *edges = any ? PyTuple_New(n) : NULL;
    *wanted = 0;
    for (int64_t i = 0; edges && i < n; i++) {
        void *edge = inputs[i] == NR_NONE ? Py_NewRef(NR_NONE) : nr_edge_of((norch_tensor *)inputs[i]);
        if (!edge || PyTuple_SetItem(edges, i, edge)) {
            Py_DecRef(edges);
            return NULL;
        }
        *wanted = *wanted * 2 + (edge != NR_NONE);
    }
    if (!edges || *wanted) return edges;
    Py_DecRef(edges);
    return NULL;
}

static void set_node(norch_tensor *out, void *node) {
    void *before = out->node;
    out->node = node;
    Py_DecRef(before);
}

/* ---- what is saved ----------------------------------------------------------------------------------------------- */

bool nr_share_version(norch_tensor *base, norch_tensor *view) {
    if (base->version_counter == NR_NONE) {
        void *version = PyList_New(1), *zero = version ? PyLong_FromLongLong(0) : NULL, *none = base->version_counter;
        if (!zero || PyList_SetItem(version, 0, zero)) {
            if (version) Py_DecRef(version);
            norch_release(view);
            return false;
        }
        base->version_counter = version;
        Py_DecRef(none);
    }
    void *before = view->version_counter;
    view->version_counter = Py_NewRef(base->version_counter);
    Py_DecRef(before);
    return true;
}

/* A copy of x with its history. */
static norch_tensor *copy_of(norch_tensor *x) {
    void *const args[] = {x};
    norch_tensor *from = nr_take_tensor("clone", x), *out = from ? norch_clone(from) : nr_stopped("clone", args, 1);
    if (out) set_node(out, Py_NewRef(x->node));
    return out;
}

static norch_tensor *alias_of(norch_tensor *x) {
    void *const args[] = {x};
    norch_tensor *from = nr_take_tensor("alias", x), *out = from ? norch_alias(from) : nr_stopped("alias", args, 1);
    return out && nr_share_version(x, out) ? out : NULL;
}

static void *meta_or_none(void *x) { return x == NR_NONE ? Py_NewRef(x) : norch_meta(x); }

static void *metas_of(void *const *inputs, int64_t n) {
    void *metas = PyTuple_New(n);
    for (int64_t i = 0; metas && i < n; i++) {
        void *meta = meta_or_none(inputs[i]);
        if (meta && PyTuple_SetItem(metas, i, meta) == 0) continue;
        Py_DecRef(metas);
        return NULL;
    }
    return metas;
}

/* The codes of the values that a node saves if the gradients of these bits are wanted: SavePlan.select(), cached in
 * selections, a list of the class, or NULL. */
static const char *codes_of(void *node_class, void *selections, int64_t wanted, nr_ssize *count) {
    static void *names[3];
    void *list = selections ? Py_NewRef(selections) : attribute(&names[0], "selections", node_class);
    void *codes = list ? PyList_GetItem(list, wanted) : NULL;
    if (list) Py_DecRef(list); /* the class has it */
    if (codes == NR_NONE) {
        void *plan = attribute(&names[1], "save_plan", node_class), *key = PyLong_FromLongLong(wanted);
        if (!names[2]) names[2] = PyUnicode_InternFromString("select");
        codes = plan && key && names[2] ? PyObject_CallMethodObjArgs(plan, names[2], key, NULL) : NULL;
        if (codes) Py_DecRef(codes); /* the list has it */
        if (plan) Py_DecRef(plan);
        if (key) Py_DecRef(key);
    }
    return codes ? PyUnicode_AsUTF8AndSize(codes, count) : NULL;
}

/* written: an input that will be written to, so that a copy is saved; or NULL. */
static void *saved_of(const char *codes, nr_ssize count, norch_tensor *out, const void *written, void *const *inputs,
                      int64_t n, void *const *others, int64_t others_count) {
    void *saved = PyTuple_New(count);
    for (nr_ssize k = 0; saved && k < count; k++) {
        const int64_t code = codes[k], at = code - 1;
        void *value = NULL;
        if (code == 0)
            value = Py_NewRef(NR_NONE);
        else if (code == NR_SAVES_RESULT)
            value = alias_of(out);
        else if (code >= NR_SAVES_META && code - NR_SAVES_META < n)
            value = meta_or_none(inputs[code - NR_SAVES_META]);
        else if (at < n)
            value = inputs[at] == written ? copy_of(inputs[at]) : Py_NewRef(inputs[at]);
        else if (at - n < others_count)
            value = Py_NewRef(others[at - n]);
        else
            PyErr_SetString(PyExc_TypeError, "record: fewer values than the gradient functions name");
        if (value && PyTuple_SetItem(saved, k, value) == 0) continue;
        Py_DecRef(saved);
        return NULL;
    }
    if (!saved || !packed) return saved;
    void *stored = PyObject_CallFunctionObjArgs(packed, saved, NULL);
    Py_DecRef(saved);
    return stored;
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

static void set(nr_holder *node, int field, void *value) {
    void *before = node->held[field];
    node->held[field] = value;
    if (before) Py_DecRef(before);
}

nr_holder *nr_node_for(norch_tensor *out, const void *written, void *node_class, void *selections, void *const *inputs,
                       int64_t n, void *const *others, int64_t others_count, bool broadcast) {
    int64_t wanted;
    nr_ssize count = 0;
    void *edges = edges_of(inputs, n, &wanted), *metas = NULL, *saved = NULL;
    nr_holder *node = edges ? make_node(node_class) : NULL;
    const char *codes = node ? codes_of(node_class, selections, wanted, &count) : NULL;
    if (codes) saved = saved_of(codes, count, out, written, inputs, n, others, others_count);
    if (saved && broadcast) metas = metas_of(inputs, n);
    if (!saved || (broadcast && !metas)) {
        void *held[] = {edges, node, saved};
        for (int i = 0; i < 3; i++)
            if (held[i]) Py_DecRef(held[i]);
        return NULL;
    }
    set(node, NR_NODE_EDGES, edges);
    set(node, NR_NODE_SAVED, saved);
    if (metas) set(node, NR_NODE_METAS, metas);
    return node;
}

norch_tensor *nr_record(norch_tensor *out, void *node_class, void *selections, void *const *inputs, int64_t n,
                        void *const *others, int64_t others_count, bool broadcast) {
    void *node = nr_node_for(out, NULL, node_class, selections, inputs, n, others, others_count, broadcast);
    if (node) {
        set_node(out, node);
    } else if (PyErr_Occurred()) {
        Py_DecRef(out);
        return NULL;
    }
    return out;
}

bool nr_is_node_class(void *class) {
    return PyType_GetFlags(((nr_object *)class)->type) & IS_CLASS && PyType_IsSubtype(class, base_class);
}

bool nr_takes_node_class(const char *name, void *class) {
    return nr_is_node_class(class) || nr_refuse(name, "a class of nodes", class);
}

/* The items of a tuple, borrowed; their number, or -1 with an error. tensors: each must be a tensor or None. */
static int64_t items_of(const char *name, void *tuple, bool tensors, void **items) {
    const bool is_tuple = PyType_GetFlags(((nr_object *)tuple)->type) & NR_TYPE_IS_TUPLE;
    const int64_t count = is_tuple ? PyTuple_Size(tuple) : -1;
    if (count < 0 || count > NR_MOST_INPUTS) return nr_refuse(name, "a tuple of at most 31 values", tuple), -1;
    for (int64_t i = 0; i < count; i++) {
        items[i] = PyTuple_GetItem(tuple, i);
        if (tensors && items[i] != NR_NONE && !nr_is_tensor(items[i])) return nr_refuse(name, "a tensor", items[i]), -1;
    }
    return count;
}

/* record(node_class, out, inputs, others, broadcast): out, with its node; the last two may be left out. */
NR_BUILTIN(record) {
    void *inputs[NR_MOST_INPUTS], *others[NR_MOST_INPUTS];
    if (n < 3 || n > 5) return nr_counted("record", 5, n), NULL;
    if (!nr_takes_node_class("record", args[0])) return NULL;
    if (!nr_is_tensor(args[1])) return nr_refuse("record", "a tensor", args[1]), NULL;
    const int64_t count = items_of("record", args[2], true, inputs);
    const int64_t others_count = n < 4 ? 0 : count < 0 ? -1 : items_of("record", args[3], false, others);
    if (count < 0 || others_count < 0) return NULL;
    const bool broadcast = n == 5 && PyObject_IsTrue(args[4]) == 1;
    if (!nr_grad_enabled()) return Py_NewRef(args[1]);
    return nr_record(Py_NewRef(args[1]), args[0], NULL, inputs, count, others, others_count, broadcast);
}

/* is_recorded(inputs): whether this thread records, and one of the inputs, tensors or None, has a gradient. */
NR_BUILTIN(is_recorded) {
    void *inputs[NR_MOST_INPUTS];
    int64_t wanted;
    if (!nr_counted("is_recorded", 1, n)) return NULL;
    const int64_t count = items_of("is_recorded", args[0], true, inputs);
    if (count < 0) return NULL;
    void *edges = nr_grad_enabled() ? edges_of(inputs, count, &wanted) : NULL;
    if (!edges && PyErr_Occurred()) return NULL;
    if (edges) Py_DecRef(edges);
    return PyBool_FromLong(edges != NULL);
}

/* node_of(node_class, edges, metas, saved): makes a node without record(). */
NR_BUILTIN(node_of) {
    if (!nr_counted("node_of", 4, n) || !nr_takes_node_class("node_of", args[0])) return NULL;
    nr_holder *node = make_node(args[0]);
    void *saved = node ? Py_NewRef(args[3]) : NULL;
    if (saved && packed && saved != NR_NONE) {
        void *stored = PyObject_CallFunctionObjArgs(packed, saved, NULL);
        Py_DecRef(saved);
        saved = stored;
    }
    if (!saved) {
        if (node) Py_DecRef(node);
        return NULL;
    }
    set(node, NR_NODE_EDGES, Py_NewRef(args[1]));
    set(node, NR_NODE_METAS, Py_NewRef(args[2]));
    set(node, NR_NODE_SAVED, saved);
    return node;
}

/* ---- what gradient functions read -------------------------------------------------------------------------------- */

void *nr_saved_by(nr_holder *node) {
    static void *name;
    return packed ? attribute(&name, "_saved", node) : Py_XNewRef(node->held[NR_NODE_SAVED]);
}

void *nr_result_of(nr_holder *node, void *saved) {
    if (!nr_grad_enabled()) return Py_NewRef(saved);
    norch_tensor *out = alias_of(saved);
    void *of = out ? nr_history_of(node) : NULL;
    if (of)
        set_node(out, of);
    else if (out)
        Py_DecRef(out);
    return of ? out : NULL;
}
