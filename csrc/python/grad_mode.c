/* grad_mode: the object `mode` of norch/autograd/grad_mode.py. Its attribute `enabled`, whether operations are
 * recorded, belongs to each thread. */
#include "grad_mode.h"

#include "calls.h"

static _Thread_local bool disabled; /* so that a new thread begins enabled */

bool nr_grad_enabled(void) { return !disabled; }

static void *get_enabled(void *self, void *context) {
    (void)self, (void)context;
    return PyBool_FromLong(!disabled);
}

static int set_enabled(void *self, void *value, void *context) {
    (void)self, (void)context;
    const int enabled = value ? PyObject_IsTrue(value) : -1;
    if (!value) PyErr_SetString(PyExc_TypeError, "enabled: cannot be deleted");
    if (enabled >= 0) disabled = !enabled;
    return enabled < 0 ? -1 : 0;
}

/* grad_mode(): a new object of that kind. */
NR_BUILTIN(grad_mode) {
    static nr_property properties[] = {{"enabled", get_enabled, set_enabled, NULL, NULL},
                                       {NULL, NULL, NULL, NULL, NULL}};
    nr_slot slots[] = {{NR_SLOT_PROPERTIES, properties}, {0, NULL}};
    nr_spec spec = {"norch.GradMode", sizeof(nr_object), 0, NR_TYPE_DEFAULT, slots};
    void *type = PyType_FromSpec(&spec);
    void *mode = type ? PyType_GenericAlloc(type, 0) : NULL;
    if (type) Py_DecRef(type);
    return mode;
}
