/* values: elements as Python numbers and lists; and instances of subclasses of Tensor. */
#include <math.h>
#include <string.h>

#include "../core/element.h"
#include "../core/memory.h"
#include "../core/tensor.h"
#include "calls.h"
#include "inputs.h"

/* item(x): the only element as a number. */
NR_BUILTIN(item) {
    if (!nr_counted("item", 1, n)) return NULL;
    norch_tensor *x = nr_take_tensor("item", args[0]);
    if (!x) return nr_stopped("item", args, n);
    double value = 0;
    int64_t whole = 0;
    if (nr_is_complex(x->dtype) && x->numel == 1) {
        union {
            float narrow[2];
            double wide[2];
        } parts;
        if (norch_to_bytes(x, &parts, nr_size_of(x->dtype)) != NORCH_OK) return NULL;
        return x->dtype == NORCH_COMPLEX128 ? PyComplex_FromDoubles(parts.wide[0], parts.wide[1])
                                            : PyComplex_FromDoubles((double)parts.narrow[0], (double)parts.narrow[1]);
    }
    if (norch_item(x, &value, &whole) != NORCH_OK) return NULL;
    if (nr_is_float(x->dtype)) return PyFloat_FromDouble(value);
    return x->dtype == NORCH_BOOL ? PyBool_FromLong(whole != 0) : PyLong_FromLongLong(whole);
}

/* The number at p as an object. */
static void *number_at(const char *p, int32_t dtype) {
    double value[2] = {0};
    int64_t whole = 0;
    if (nr_is_complex(dtype)) {
        const int32_t part = nr_dtypes[dtype].part;
        nr_get(part, p, &value[0], &whole);
        nr_get(part, p + nr_size_of(part), &value[1], &whole);
        return PyComplex_FromDoubles(value[0], value[1]);
    }
    nr_get(dtype, p, value, &whole);
    if (nr_is_float(dtype)) return PyFloat_FromDouble(*value);
    return dtype == NORCH_BOOL ? PyBool_FromLong(whole != 0) : PyLong_FromLongLong(whole);
}

/* A list of count parts of size bytes; the parts of the last axis are numbers. NULL with an error set. */
static void *list_of(const char *p, const int64_t *shape, int32_t ndim, int64_t size, int32_t dtype) {
    if (!ndim) return number_at(p, dtype);
    void *list = PyList_New((nr_ssize)*shape);
    const int64_t step = *shape ? size / *shape : 0;
    const bool are_floats = ndim == 1 && dtype == NORCH_FLOAT32; /* most lists */
    for (int64_t i = 0; list && i < *shape; i++) {
        void *part = are_floats ? PyFloat_FromDouble((double)((const float *)(const void *)p)[i])
                                : list_of(p + i * step, shape + 1, ndim - 1, step, dtype);
        if (!part || PyList_SetItem(list, (nr_ssize)i, part)) {
            Py_DecRef(list);
            return NULL;
        }
    }
    return list;
}

/* to_list(x): its elements in nested lists; a number for 0-d. */
NR_BUILTIN(to_list) {
    if (!nr_counted("to_list", 1, n)) return NULL;
    norch_tensor *x = nr_take_tensor("to_list", args[0]);
    if (!x) return nr_stopped("to_list", args, n);
    char few[512], *bytes = few;
    int64_t shape[NORCH_MAX_DIMS]; /* making a list may run finalizers, which change x */
    const int32_t ndim = x->ndim, dtype = x->dtype;
    const int64_t size = x->numel * nr_size_of(dtype);
    memcpy(shape, x->shape, (size_t)ndim * sizeof *shape);
    if (size > (int64_t)sizeof few && !(bytes = nr_malloc((size_t)size))) {
        nr_fail(NORCH_ERROR_MEMORY, "tolist: out of memory for %lld bytes", (long long)size);
        return NULL;
    }
    void *list = norch_to_bytes(x, bytes, size) == NORCH_OK ? list_of(bytes, shape, ndim, size, dtype) : NULL;
    if (bytes != few) nr_free(bytes);
    return list;
}

/* adopt(class, x): an instance of a subclass of Tensor over the elements of x. */
NR_BUILTIN(adopt) {
    if (!nr_counted("adopt", 2, n)) return NULL;
    norch_tensor *x = nr_take_tensor("adopt", args[1]);
    if (!x) return nr_stopped("adopt", args, n);
    if (!PyType_IsSubtype(args[0], nr_tensor_class)) {
        PyErr_Format(PyExc_TypeError, "adopt: expected a class of tensors, not %R", args[0]);
        return NULL;
    }
    norch_tensor *adopted = nr_new_instance(args[0]);
    if (adopted && norch_set_data(adopted, x) != NORCH_OK) {
        norch_release(adopted);
        adopted = NULL;
    }
    return adopted;
}

/* set_parameter(class): a class of tensors that override nothing, so that calls take them as plain ones. */
NR_BUILTIN(set_parameter) {
    if (!nr_counted("set_parameter", 1, n)) return NULL;
    nr_parameter_class = Py_NewRef(args[0]); /* for the life of the process */
    return Py_NewRef(NR_NONE);
}

/* ---- numbers as tensors ----------------------------------------------------------------------------------- */

enum { FLOATS, INTEGERS, BOOLS, KINDS_OF_NUMBERS };
/* Dicts of Python numbers and their tensors, which norch/ops/_operand.py fills. */
static void *numbers[KINDS_OF_NUMBERS];

/* bind_numbers(floats, integers, bools): the dicts in which calls of rows find numbers. */
NR_BUILTIN(bind_numbers) {
    if (!nr_counted("bind_numbers", KINDS_OF_NUMBERS, n)) return NULL;
    for (int i = 0; i < KINDS_OF_NUMBERS; i++) numbers[i] = Py_XNewRef(args[i]); /* for the life of the process */
    return Py_NewRef(NR_NONE);
}

void *nr_tensor_of_number(void *x) {
    const void *type = ((const nr_object *)x)->type;
    void *tensors = NULL;
    if (type == NR_AT(PyFloat_Type)) {
        const double value = PyFloat_AsDouble(x);
        if (value == value && (value != 0 || !signbit(value)))
            tensors = numbers[FLOATS]; /* a dict takes -0.0 for 0.0 */
    } else if (type == NR_AT(PyLong_Type)) {
        tensors = numbers[INTEGERS];
    } else if (type == NR_AT(PyBool_Type)) {
        tensors = numbers[BOOLS];
    }
    return tensors ? Py_XNewRef(PyDict_GetItemWithError(tensors, x)) : NULL;
}
