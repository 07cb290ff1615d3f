/* object: tensors as Python objects, failures as exceptions, and the GIL: CPython's hooks for core/interpreter.h. */
#include <stddef.h>

#include "object.h"

#include "../core/interpreter.h"
#include "../core/tensor.h"
#include "abi.h"

_Static_assert(offsetof(norch_tensor, references) == offsetof(nr_object, references), "begins as an object does");
_Static_assert(offsetof(norch_tensor, type) == offsetof(nr_object, type), "begins as an object does");

/* The fields that Python reads as attributes, without a call. Python also writes those of autograd. */
static nr_member members[] = {
#define FIELD(text, name, kind, flags) {text, NR_MEMBER_##kind, offsetof(norch_tensor, name), flags, NULL}
#define AUTOGRAD(name) FIELD("_" #name, name, OBJECT, 0)
#define NUMBER(name, kind) FIELD("_" #name, name, kind, NR_MEMBER_READONLY)
    AUTOGRAD(node),
    AUTOGRAD(leaf),
    AUTOGRAD(grad),
    AUTOGRAD(version_counter),
    AUTOGRAD(view),
    FIELD("_address", data, POINTER, NR_MEMBER_READONLY), /* to compare, or to read at once */
    NUMBER(numel, INT64),
    NUMBER(offset, INT64),
    NUMBER(dtype, INT32),
    NUMBER(device_type, INT32),
    NUMBER(device_index, INT32),
    NUMBER(contiguous, INT32),
    NUMBER(weak, INT32),
    NUMBER(mixed, INT32),
    FIELD("ndim", ndim, INT32, NR_MEMBER_READONLY),
    FIELD("__dictoffset__", attributes, SIZE, NR_MEMBER_READONLY), /* the offset of __dict__ */
    {NULL, 0, 0, 0, NULL},
#undef NUMBER
#undef AUTOGRAD
#undef FIELD
};

/* The address of the first element, for callers that keep it. */
static void *get_data(void *self, void *closure) {
    (void)closure;
    const norch_tensor *x = self;
    if (x->storage) nr_storage_expose(x->storage);
    return PyLong_FromVoidPtr(x->data);
}

static void *get_dict(void *self, void *closure) { return PyObject_GenericGetDict(self, closure); }

static int set_dict(void *self, void *value, void *closure) { return PyObject_GenericSetDict(self, value, closure); }

static nr_property properties[] = {
    {"_data_pointer", get_data, NULL, NULL, NULL},
    {"__dict__", get_dict, set_dict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

void *nr_tensor_class, *nr_parameter_class;
static void *base; /* norch.TensorBase, of which nr_tensor_class is a subclass */
static void *exceptions[NORCH_ERROR_META + 1];

typedef int (*visitor)(void *object, void *argument);

static int traverse(norch_tensor *x, visitor visit, void *argument) {
    void *const held[] = {x->type, x->node, x->leaf, x->grad, x->version_counter, x->view, x->attributes};
    for (int i = 0; i < 7; i++) {
        int status = held[i] ? visit(held[i], argument) : 0;
        if (status) return status;
    }
    return 0;
}

/* Most fields hold None. Its references are counted here, because a call of Python would take 2 ns each time; since
 * Python 3.12 they are not counted at all. */
static bool none_counts;

static void count_none(nr_ssize n) {
    if (none_counts) NR_AT(_Py_NoneStruct)->references += n;
}

static int clear(norch_tensor *x) {
    void **held[] = {&x->node, &x->leaf, &x->grad, &x->version_counter, &x->view, &x->attributes};
    for (int i = 0; i < 6; i++) {
        void *object = *held[i];
        *held[i] = NULL; /* before the release, which may run code that uses x */
        if (object == NR_NONE)
            count_none(-1);
        else if (object)
            Py_DecRef(object);
    }
    return 0;
}

static void dealloc(norch_tensor *x) {
    void *type = x->type;
    PyObject_GC_UnTrack(x);
    clear(x);
    nr_tensor_clear(x);
    PyObject_GC_Del(x);
    Py_DecRef(type);
}

/* ---- the hooks --------------------------------------------------------------------------------------- */

/* Up to Python 3.11 an allocation may run the garbage collector, whose finalizers may run any code, in other threads
 * too, and so change a tensor in the middle of a call that reads it. The collector is off here; it runs at the next
 * allocation of Python's own. */
norch_tensor *nr_new_instance(void *class) {
    const int collects = PyGC_Disable();
    norch_tensor *x = PyType_GenericAlloc(class, 0);
    if (collects) PyGC_Enable();
    if (!x) return NULL;
    void **held[] = {&x->node, &x->leaf, &x->grad, &x->version_counter, &x->view};
    for (int i = 0; i < 5; i++) *held[i] = NR_NONE;
    count_none(5);
    return x;
}

static norch_tensor *new_tensor(void) { return nr_new_instance(nr_tensor_class); }

static void retain(norch_tensor *x) { Py_IncRef(x); }

static void release(norch_tensor *x) { Py_DecRef(x); }

static void raise(int32_t kind, const char *message) {
    if (PyGILState_Check()) PyErr_SetString(exceptions[kind], message);
}

static void *release_gil(void) { return PyEval_SaveThread(); }

static void acquire_gil(void *thread) { PyEval_RestoreThread(thread); }

static const nr_interpreter_hooks hooks = {new_tensor, retain, release, raise, release_gil, acquire_gil};

/* ---- the type ----------------------------------------------------------------------------------------- */

#define FUNCTION(slot, f) {slot, (void *)(uintptr_t)(f)}

void *norch_bind_python(const void *const *classes) {
    if (!PyType_FromSpec || !PyType_GenericAlloc || !PyCFunction_NewEx) return NULL;
    if (base) { /* tensors of the first type may exist, which a second type would not recognise */
        PyErr_SetString(PyExc_ImportError, "norch: its library serves one interpreter and one import of the package; "
                                           "start a new process");
        return NULL;
    }
    none_counts = NR_AT(_Py_NoneStruct)->references < 1 << 28;
    for (int i = 0; i <= NORCH_ERROR_META; i++) exceptions[i] = *(void *const *)&classes[i];
    nr_slot slots[] = {FUNCTION(NR_SLOT_DEALLOC, dealloc), FUNCTION(NR_SLOT_TRAVERSE, traverse),
                       FUNCTION(NR_SLOT_CLEAR, clear),     {NR_SLOT_MEMBERS, members},
                       {NR_SLOT_PROPERTIES, properties},   {0, NULL}};
    nr_spec spec = {"norch.TensorBase", sizeof(norch_tensor), 0,
                    NR_TYPE_DEFAULT | NR_TYPE_BASE | NR_TYPE_COLLECTED | NR_TYPE_DISALLOW_INSTANTIATION, slots};
    base = nr_tensor_class = PyType_FromSpec(&spec);
    if (base) nr_interpreter = &hooks;
    return base;
}

static int64_t weak_references_at; /* in an instance of nr_tensor_class; 0: it takes none */

void norch_set_class(void *class) {
    nr_tensor_class = class;
    void *at = PyObject_GetAttrString(class, "__weakrefoffset__");
    weak_references_at = at ? PyLong_AsLongLong(at) : 0;
    if (at) Py_DecRef(at);
}

bool nr_has_weak_references(const norch_tensor *x) {
    return weak_references_at && *(void *const *)((const char *)x + weak_references_at);
}

bool nr_is_tensor(const void *object) {
    void *type = ((const nr_object *)object)->type;
    return type == nr_tensor_class || PyType_IsSubtype(type, base);
}
