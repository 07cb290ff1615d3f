/* mode: the object `mode` of norch/autograd/grad_mode.py. Each thread has its own attributes `enabled`, whether
 * operations are recorded; `grad_mode`, the bits NR_GRAD_MODE, which inference_mode() sets together; `autocast`, the
 * setting of autocast, or None; and `overridden`, whether it is within a TorchFunctionMode. All threads share `anomaly`,
 * the function of anomaly mode, or None; and `casting`, whether autocast is on in any thread, a slot, because Python
 * functions read slots fastest. One call sets each attribute, so that an exception between two bytecodes cannot leave
 * half of a change. */
#include <stddef.h>

#include "calls.h"
#include "modes.h"

typedef struct object {
    nr_object object;
    void *casting;
} object;

static _Thread_local void *setting;
static int64_t casting; /* how many threads cast */

void *nr_stack_of_call(void) {
    void *stack_of_call = Py_XNewRef(nr_anomaly); /* another thread may end the mode meanwhile */
    void *stack = stack_of_call ? PyObject_CallObject(stack_of_call, NULL) : Py_NewRef(NR_NONE);
    if (stack_of_call) Py_DecRef(stack_of_call);
    return stack;
}

static void *get_grad_mode(void *self, void *context) {
    (void)self, (void)context;
    return PyLong_FromLongLong(nr_modes() & NR_GRAD_MODE);
}

static int set_grad_mode(void *self, void *value, void *context) {
    (void)self, (void)context;
    if (!value) return PyErr_SetString(PyExc_TypeError, "grad_mode: cannot be deleted"), -1;
    const int bits = (int)PyLong_AsLongLong(value);
    if (PyErr_Occurred()) return -1;
    nr_set_modes(NR_GRAD_MODE, bits);
    return 0;
}

static void *get_autocast(void *self, void *context) {
    (void)self, (void)context;
    return Py_NewRef(setting ? setting : NR_NONE);
}

/* value: a Setting (norch/autograd/autocast.py), whose attribute `modes` has these bits. */
static int set_autocast(void *self, void *value, void *context) {
    (void)context;
    if (!value) return PyErr_SetString(PyExc_TypeError, "autocast: cannot be deleted"), -1;
    static void *name;
    if (!name && !(name = PyUnicode_InternFromString("modes"))) return -1;
    void *bits = PyObject_GetAttr(value, name);
    const int all = NR_CASTING | NR_CAST_SETTING, now = bits ? (int)PyLong_AsLongLong(bits) & all : 0;
    if (bits) Py_DecRef(bits);
    if (PyErr_Occurred()) return -1;
    void *before = setting, *slot = ((object *)self)->casting;
    casting += !!(now & NR_CASTING) - !!(nr_modes() & NR_CASTING);
    nr_set_modes(all, now);
    setting = Py_NewRef(value);
    ((object *)self)->casting = PyBool_FromLong(casting > 0);
    Py_DecRef(slot);
    if (before) Py_DecRef(before);
    return 0;
}

static int set_anomaly(void *self, void *value, void *context) {
    (void)self, (void)context;
    if (!value) return PyErr_SetString(PyExc_TypeError, "anomaly: cannot be deleted"), -1;
    void *before = nr_anomaly;
    nr_anomaly = value == NR_NONE ? NULL : Py_NewRef(value);
    if (before) Py_DecRef(before);
    return 0;
}

/* modes(): a new object of that kind. */
NR_BUILTIN(modes) {
    static nr_mode_bit enabled = {"enabled", NR_UNRECORDED, true}, overridden = {"overridden", NR_OVERRIDDEN, false};
    static nr_property properties[] = {{"enabled", nr_get_mode, nr_set_mode, NULL, &enabled},
                                       {"grad_mode", get_grad_mode, set_grad_mode, NULL, NULL},
                                       {"autocast", get_autocast, set_autocast, NULL, NULL},
                                       {"anomaly", nr_get_anomaly, set_anomaly, NULL, NULL},
                                       {"overridden", nr_get_mode, nr_set_mode, NULL, &overridden},
                                       {NULL, NULL, NULL, NULL, NULL}};
    static nr_member members[] = {{"casting", NR_MEMBER_OBJECT, offsetof(object, casting), NR_MEMBER_READONLY, NULL},
                                  {NULL, 0, 0, 0, NULL}};
    nr_slot slots[] = {{NR_SLOT_PROPERTIES, properties}, {NR_SLOT_MEMBERS, members}, {0, NULL}};
    nr_spec spec = {"norch.Modes", sizeof(object), 0, NR_TYPE_DEFAULT, slots};
    void *type = PyType_FromSpec(&spec);
    object *mode = type ? PyType_GenericAlloc(type, 0) : NULL;
    if (type) Py_DecRef(type);
    if (mode) mode->casting = PyBool_FromLong(0);
    return mode;
}
