/* guard: the base class of context managers that put a setting back. Its __exit__ is a function of C: an asynchronous
 * exception, which a signal's handler raises between two bytecodes, cannot come before its work is done. */
#include <stddef.h>

#include "abi.h"
#include "calls.h"

typedef struct guard {
    nr_object object;
    void *restores; /* a list of functions, the last of which __exit__ takes away and calls; or NULL */
} guard;

static nr_member members[] = {
    {"_restores", NR_MEMBER_OBJECT, offsetof(guard, restores), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

/* Once more where an exception interrupts it: it is a function of Python then. */
static void *called(void *restore) {
    void *result = PyObject_CallObject(restore, NULL), *type, *value, *traceback;
    if (result) return result;
    PyErr_Fetch(&type, &value, &traceback);
    void *again = PyObject_CallObject(restore, NULL);
    if (again)
        Py_DecRef(again);
    else
        PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    return NULL;
}

static void *leave(void *self, void *const *given, int64_t n) {
    (void)given, (void)n;
    void *list = ((guard *)self)->restores;
    int64_t last = list ? PyList_Size(list) - 1 : -1;
    void *restore = last < 0 ? NULL : PyList_GetItem(list, last);
    if (!restore) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "__exit__: there was no __enter__");
        return NULL;
    }
    Py_IncRef(restore);
    void *result = PySequence_DelItem(list, last) ? NULL : called(restore);
    Py_DecRef(restore);
    if (!result) return NULL;
    Py_DecRef(result);
    Py_IncRef(NR_NONE);
    return NR_NONE;
}

static nr_method methods[] = {{"__exit__", leave, NR_METHOD_FASTCALL, NULL}, {NULL, NULL, 0, NULL}};

static int traverse(guard *self, int (*visit)(void *object, void *argument), void *argument) {
    int status = visit(self->object.type, argument);
    return status || !self->restores ? status : visit(self->restores, argument);
}

static int clear(guard *self) {
    void *restores = self->restores;
    self->restores = NULL;
    if (restores) Py_DecRef(restores);
    return 0;
}

static void dealloc(guard *self) {
    void *type = self->object.type;
    PyObject_GC_UnTrack(self);
    clear(self);
    PyObject_GC_Del(self);
    Py_DecRef(type);
}

#define FUNCTION(slot, f) {slot, (void *)(uintptr_t)(f)}

void *nr_py_guard_class(void *self, void *const *given, int64_t n) {
    (void)self, (void)given, (void)n;
    nr_slot slots[] = {FUNCTION(NR_SLOT_DEALLOC, dealloc), FUNCTION(NR_SLOT_TRAVERSE, traverse),
                       FUNCTION(NR_SLOT_CLEAR, clear),     {NR_SLOT_MEMBERS, members},
                       {NR_SLOT_METHODS, methods},         {0, NULL}};
    nr_spec spec = {"norch.Guard", sizeof(guard), 0, NR_TYPE_DEFAULT | NR_TYPE_BASE | NR_TYPE_COLLECTED, slots};
    return PyType_FromSpec(&spec);
}
