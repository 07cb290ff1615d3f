/* guard: the base class of context managers that restore a setting. Its __exit__ is in C, so that an exception from a
 * signal handler, which comes between two bytecodes, cannot interrupt it before the setting is restored. */
#include <stddef.h>

#include "calls.h"
#include "holder.h"

/* _restores: a list of functions; __exit__ pops the last one and calls it. */
static nr_member members[] = {
    {"_restores", NR_MEMBER_OBJECT, offsetof(nr_holder, held[0]), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

/* Calls restore(), and again if an exception interrupts it, which may be a function of Python. */
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
    void *list = ((nr_holder *)self)->held[0];
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
    return Py_NewRef(NR_NONE);
}

static nr_method methods[] = {{"__exit__", leave, NR_METHOD_FASTCALL, NULL}, {NULL, NULL, 0, NULL}};

NR_BUILTIN(guard_class) { return nr_holder_class("norch.Guard", members, (nr_slot){NR_SLOT_METHODS, methods}); }
