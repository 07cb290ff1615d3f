/* lookup: how instances of a class find their attributes. */
#include "calls.h"

#define SLOT_GETATTR 58 /* Py_tp_getattro */
#define IS_CLASS (1u << 31)
#define WORDS 32 /* the part of a class that may contain the slot: the structure PyTypeObject is longer */

/* ordinary_lookup(class): instances look attributes up as fast as those of a class without __getattr__, although the
 * class has inherited that function, which is there for calls such as super().__getattr__(name). Python sets the slot
 * again if the class gets another __getattr__. The slot is found as the word of the class that PyType_GetSlot()
 * returns; a class in which no single word matches stays as it is. */
NR_BUILTIN(ordinary_lookup) {
    if (!nr_counted("ordinary_lookup", 1, n)) return NULL;
    if (!(PyType_GetFlags(((nr_object *)args[0])->type) & IS_CLASS)) {
        PyErr_SetString(PyExc_TypeError, "ordinary_lookup: takes a class");
        return NULL;
    }
    void **words = args[0], **slot = NULL, *hook = PyType_GetSlot(args[0], SLOT_GETATTR);
    int found = 0;
    if (!hook) return PyErr_Occurred() ? NULL : Py_NewRef(NR_NONE);
    for (int i = 0; i < WORDS; i++)
        if (words[i] == hook) slot = &words[i], found++;
    if (found == 1) {
        *slot = (void *)(uintptr_t)PyObject_GenericGetAttr;
        PyType_Modified(args[0]);
    }
    return Py_NewRef(NR_NONE);
}
