/* attributes: shape, dtype and device of tensors, for the properties of Tensor. */
#include <string.h>

#include "../core/tensor.h"
#include "calls.h"

/* Set by set_attributes(): the class of shapes, a tuple of dtypes by number, the device of the CPU, and a function that
 * returns the device of a tensor elsewhere. */
static struct {
    void *size, *dtypes, *cpu, *device_of;
    bool is_bare; /* whether an instance of size has its items alone: since Python 3.14 tuples cache a hash */
} attributes;

/* set_attributes(size, dtypes, cpu, device_of): sets the objects from which attributes of tensors are made. */
NR_BUILTIN(set_attributes) {
    if (!nr_counted("set_attributes", 4, n)) return NULL;
    void *bytes = PyObject_GetAttrString(args[0], "__basicsize__");
    if (!bytes) return NULL;
    attributes.is_bare = PyLong_AsLongLong(bytes) == (int64_t)(3 * sizeof(void *));
    Py_DecRef(bytes);
    void **fields[] = {&attributes.size, &attributes.dtypes, &attributes.cpu, &attributes.device_of};
    for (int i = 0; i < 4; i++) *fields[i] = Py_XNewRef(args[i]); /* for the life of the process */
    return Py_NewRef(NR_NONE);
}

/* The tuple of the sizes, an instance of the class if there is one. */
static void *tuple_of(int64_t count, const int64_t *of_header, void *class) {
    int64_t values[NORCH_MAX_DIMS];
    memcpy(values, of_header,
           (size_t)count * sizeof *values); /* a new tuple may run finalizers, which change the header */
    void *tuple = class ? PyType_GenericAlloc(class, count) : PyTuple_New(count);
    for (int64_t i = 0; tuple && i < count; i++) {
        void *value = PyLong_FromLongLong(values[i]);
        if (!value || PyTuple_SetItem(tuple, i, value)) {
            Py_DecRef(tuple);
            return NULL;
        }
    }
    return tuple;
}

/* An instance of the class of shapes made from plain, a tuple; takes the reference to it. */
static void *as_size(void *plain) {
    void *size = plain ? PyObject_CallFunctionObjArgs(attributes.size, plain, NULL) : NULL;
    if (plain) Py_DecRef(plain);
    return size;
}

/* shape[index]: an integer, or the shape of a slice. */
static void *size_item(void *shape, void *index) {
    const nr_ssize count = PyTuple_Size(shape);
    if (((nr_object *)index)->type != (void *)NR_AT(PySlice_Type)) {
        const nr_ssize i = PyNumber_AsSsize_t(index, PyExc_IndexError);
        if (i == -1 && PyErr_Occurred()) return NULL;
        return Py_XNewRef(PyTuple_GetItem(shape, i < 0 ? i + count : i)); /* raises out of range */
    }
    nr_ssize start, stop, step;
    if (PySlice_Unpack(index, &start, &stop, &step) < 0) return NULL;
    const nr_ssize taken = PySlice_AdjustIndices(count, &start, &stop, step);
    void *part = attributes.is_bare ? PyType_GenericAlloc(attributes.size, taken) : PyTuple_New(taken);
    for (nr_ssize i = 0; part && i < taken; i++)
        PyTuple_SetItem(part, i, Py_NewRef(PyTuple_GetItem(shape, start + i * step)));
    return attributes.is_bare ? part : as_size(part);
}

/* size_base(): a new class of tuples, the base of the class of shapes, whose parts are of that class. */
NR_BUILTIN(size_base) {
    nr_slot slots[] = {
        {NR_SLOT_BASE, (void *)NR_AT(PyTuple_Type)}, {NR_SLOT_SUBSCRIPT, (void *)(uintptr_t)size_item}, {0, NULL}};
    nr_spec spec = {"norch.SizeBase", 0, 0, NR_TYPE_DEFAULT | NR_TYPE_BASE, slots}; /* as large as a tuple */
    return PyType_FromSpec(&spec);
}

/* shape(x), strides(x): tuples of integers. size_of(x), dtype_of(x), device_of(x): the properties of Tensor. */
NR_BUILTIN(shape) {
    norch_tensor *x = nr_counted("shape", 1, n) ? nr_take_header("shape", args[0]) : NULL;
    return x ? tuple_of(x->ndim, x->shape, NULL) : NULL;
}

NR_BUILTIN(strides) {
    norch_tensor *x = nr_counted("strides", 1, n) ? nr_take_header("strides", args[0]) : NULL;
    return x ? tuple_of(x->ndim, x->strides, NULL) : NULL;
}

NR_BUILTIN(size_of) {
    norch_tensor *x = nr_counted("shape", 1, n) ? nr_take_header("shape", args[0]) : NULL;
    if (!x || attributes.is_bare) return x ? tuple_of(x->ndim, x->shape, attributes.size) : NULL;
    return as_size(tuple_of(x->ndim, x->shape, NULL));
}

NR_BUILTIN(dtype_of) {
    norch_tensor *x = nr_counted("dtype", 1, n) ? nr_take_header("dtype", args[0]) : NULL;
    return x ? Py_XNewRef(PyTuple_GetItem(attributes.dtypes, x->dtype)) : NULL;
}

NR_BUILTIN(device_of) {
    norch_tensor *x = nr_counted("device", 1, n) ? nr_take_header("device", args[0]) : NULL;
    if (!x || x->device_type == NORCH_CPU) return x ? Py_NewRef(attributes.cpu) : NULL;
    return PyObject_CallFunctionObjArgs(attributes.device_of, x, NULL);
}
