/* method: the methods and operators of Tensor that are rows of ops.def. x.exp() and a + b call the row directly. If it
 * returns NotImplemented, as for numbers, subclasses, in autocast or in an override mode, they call the Python
 * function, which is also the value of Tensor.exp. */
#include <stddef.h>

#include "calls.h"

#define VECTORCALL_OFFSET ((size_t)1 << (8 * sizeof(size_t) - 1)) /* a flag beside the count of arguments */

typedef struct method {
    nr_object object;
    void *(*vectorcall)(void *self, void *const *args, size_t count, void *names);
    nr_builtin call;
    void *row, *function; /* self of `call`; the Python function */
    nr_ssize inputs;
} method;

static void *call(void *self, void *const *args, size_t count, void *names) {
    const method *m = self;
    const nr_ssize n = (nr_ssize)(count & ~VECTORCALL_OFFSET);
    if (!names && n == m->inputs) {
        void *out = m->call(m->row, args, n);
        if (out != NR_NOT_IMPLEMENTED) return out;
        Py_DecRef(out);
    }
    return PyObject_Vectorcall(m->function, args, (size_t)n, names);
}

/* Tensor.exp, or x.exp without a call: the function, or its bound method. */
static void *get(void *self, void *instance, void *owner) {
    static void *name;
    void *function = ((const method *)self)->function;
    if (!instance) return Py_NewRef(function);
    if (!name && !(name = PyUnicode_InternFromString("__get__"))) return NULL;
    return PyObject_CallMethodObjArgs(function, name, instance, owner, NULL);
}

/* method(call, function, inputs): call is one that operation() made; inputs is how many tensors it takes. */
NR_BUILTIN(method) {
    static void *class;
    static nr_member members[] = {
        {"__vectorcalloffset__", NR_MEMBER_SIZE, offsetof(method, vectorcall), NR_MEMBER_READONLY, NULL},
        {"__wrapped__", NR_MEMBER_OBJECT, offsetof(method, function), NR_MEMBER_READONLY, NULL},
        {NULL, 0, 0, 0, NULL}};
    if (!nr_counted("method", 3, n)) return NULL;
    if (!PyObject_Vectorcall) return Py_NewRef(args[1]); /* in Python 3.10: the function is the method */
    nr_slot slots[] = {{NR_SLOT_MEMBERS, members},
                       {NR_SLOT_CALL, (void *)(uintptr_t)PyVectorcall_Call},
                       {NR_SLOT_GET, (void *)(uintptr_t)get},
                       {0, NULL}};
    const unsigned int flags = NR_TYPE_DEFAULT | NR_TYPE_VECTORCALL | NR_TYPE_METHOD | NR_TYPE_DISALLOW_INSTANTIATION;
    nr_spec spec = {"norch.Method", sizeof(method), 0, flags, slots};
    if (!class && !(class = PyType_FromSpec(&spec))) return NULL;
    const int64_t inputs = PyLong_AsLongLong(args[2]);
    const nr_builtin function = PyErr_Occurred() ? NULL : PyCFunction_GetFunction(args[0]);
    method *m = function ? PyType_GenericAlloc(class, 0) : NULL;
    if (!m) return NULL;
    m->vectorcall = call;
    m->call = function;
    m->row = PyCFunction_GetSelf(args[0]);
    Py_IncRef(m->row);
    m->function = Py_NewRef(args[1]); /* for the life of the process, as Tensor */
    m->inputs = inputs;
    return m;
}
