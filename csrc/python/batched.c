/* batched: tensors of norch.vmap, which look like one sample and hold a batch (norch/batching). Calls do not take them:
 * the batching rule of the call runs instead, on the whole batch. */
#include "../core/error.h"
#include "../core/tensor.h"
#include "abi.h"
#include "calls.h"
#include "object.h"

void *nr_batched_class;
static void *dispatch; /* dispatch(name, arguments) runs the rule of a call */

/* set_batched(class, dispatch) */
NR_BUILTIN(set_batched) {
    if (n != 2 || !PyType_IsSubtype(args[0], nr_tensor_class)) {
        PyErr_SetString(PyExc_TypeError, "set_batched: takes a class of tensors and a function");
        return NULL;
    }
    for (int i = 0; i < 2; i++) Py_IncRef(args[i]); /* never released */
    nr_batched_class = args[0];
    dispatch = args[1];
    return Py_NewRef(NR_NONE);
}

/* sample_of(batch, mixed): a batched tensor with the shape of one sample; the first axis of batch counts the samples.
 * sample_of(batch, mixed, out): turns the tensor out into such a tensor. */
NR_BUILTIN(sample_of) {
    if ((n != 2 && n != 3) || !nr_batched_class || !nr_is_tensor(args[0]) || !nr_is_tensor(args[n == 3 ? 2 : 0])) {
        PyErr_SetString(PyExc_TypeError, "sample_of: takes a tensor, a bool and a tensor or nothing");
        return NULL;
    }
    const norch_tensor *batch = args[0];
    if (batch->ndim == 0) {
        nr_fail(NORCH_ERROR_SHAPE, "vmap: a 0-d tensor has no axis of samples");
        return NULL;
    }
    norch_tensor *out = n == 3 ? norch_retain(args[2]) : nr_new_instance(nr_batched_class);
    norch_tensor *sample = out ? nr_make_view(batch, batch->ndim - 1, batch->shape + 1, batch->strides + 1, 0) : NULL;
    if (!sample || norch_set_data(out, sample) != NORCH_OK) {
        norch_release(sample);
        norch_release(out);
        return NULL;
    }
    norch_release(sample);
    out->mixed = args[1] != NULL && PyObject_IsTrue(args[1]) == 1;
    return out;
}

void *nr_stopped(const char *name, void *const *args, int64_t n) {
    if (PyErr_Occurred()) return NULL;
    if (!dispatch) return PyErr_Format(PyExc_TypeError, "%s: expected the address of a state", name);
    void *arguments = PyTuple_New(2), *passed = PyTuple_New(n), *result = NULL;
    void *called = PyUnicode_InternFromString(name);
    if (arguments && passed && called) {
        for (int64_t i = 0; i < n; i++) {
            Py_IncRef(args[i]);
            PyTuple_SetItem(passed, i, args[i]);
        }
        PyTuple_SetItem(arguments, 0, called);
        PyTuple_SetItem(arguments, 1, passed);
        result = PyObject_CallObject(dispatch, arguments);
        called = passed = NULL;
    }
    void *left[] = {called, passed, arguments};
    for (int i = 0; i < 3; i++)
        if (left[i]) Py_DecRef(left[i]);
    return result;
}
