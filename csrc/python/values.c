/* values: elements, shapes and strides as Python numbers and tuples; and instances of subclasses of Tensor. */
#include <string.h>

#include "../core/tensor.h"
#include "calls.h"

NR_BUILTIN(item) {
    if (!nr_counted("item", 1, n)) return NULL;
    norch_tensor *x = nr_take_tensor("item", given[0]);
    if (!x) return nr_stopped("item", given, n);
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

static void *tuple_of(int64_t count, const int64_t *of_header) {
    int64_t values[NORCH_MAX_DIMS];
    memcpy(values, of_header,
           (size_t)count * sizeof *values); /* a new tuple may run finalizers, which change the header */
    void *tuple = PyTuple_New(count);
    for (int64_t i = 0; tuple && i < count; i++) {
        void *value = PyLong_FromLongLong(values[i]);
        if (!value || PyTuple_SetItem(tuple, i, value)) {
            Py_DecRef(tuple);
            return NULL;
        }
    }
    return tuple;
}

NR_BUILTIN(shape) {
    norch_tensor *x = nr_counted("shape", 1, n) ? nr_take_header("shape", given[0]) : NULL;
    return x ? tuple_of(x->ndim, x->shape) : NULL;
}

NR_BUILTIN(strides) {
    norch_tensor *x = nr_counted("strides", 1, n) ? nr_take_header("strides", given[0]) : NULL;
    return x ? tuple_of(x->ndim, x->strides) : NULL;
}

NR_BUILTIN(adopt) {
    if (!nr_counted("adopt", 2, n)) return NULL;
    norch_tensor *x = nr_take_tensor("adopt", given[1]);
    if (!x) return nr_stopped("adopt", given, n);
    if (!PyType_IsSubtype(given[0], nr_tensor_class)) {
        PyErr_Format(PyExc_TypeError, "adopt: expected a class of tensors, not %R", given[0]);
        return NULL;
    }
    norch_tensor *adopted = nr_new_instance(given[0]);
    if (adopted && norch_set_data(adopted, x) != NORCH_OK) {
        norch_release(adopted);
        adopted = NULL;
    }
    return adopted;
}
