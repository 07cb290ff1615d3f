/* modes: see modes.h. */
#include "modes.h"

static _Thread_local int modes; /* 0 in a new thread, which records */

void *nr_anomaly;

int nr_modes(void) { return nr_anomaly ? modes | NR_TRACED : modes; }

void nr_set_modes(int of, int to) { modes = (modes & ~of) | (to & of); }

void *nr_get_mode(void *self, void *context) {
    (void)self;
    const nr_mode_bit *b = context;
    return PyBool_FromLong(((modes & b->bit) != 0) != b->inverted);
}

int nr_set_mode(void *self, void *value, void *context) {
    (void)self;
    const nr_mode_bit *b = context;
    const int truth = value ? PyObject_IsTrue(value) : -1;
    if (!value) PyErr_Format(PyExc_TypeError, "%s: cannot be deleted", b->name);
    if (truth >= 0) nr_set_modes(b->bit, (truth != 0) != b->inverted ? b->bit : 0);
    return truth < 0 ? -1 : 0;
}

void *nr_get_anomaly(void *self, void *context) {
    (void)self, (void)context;
    return Py_NewRef(nr_anomaly ? nr_anomaly : NR_NONE);
}
