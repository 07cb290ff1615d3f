/* arrays: NumPy arrays over the memory of tensors, and tensors over that of arrays, by NumPy's C API: a table of
 * functions in a capsule, the same in NumPy 1 and 2 as far as it is used here. */
#include "../core/observer.h"
#include "../core/tensor.h"
#include "abi.h"
#include "calls.h"
#include "object.h"

#define WRITEABLE 0x400
enum { GET_VERSION = 0, ARRAY_TYPE = 2, NEW = 93, SET_BASE_OBJECT = 282 };

/* The heads of PyArrayObject and PyArray_Descr. */
typedef struct array_type {
    nr_object head;
    void *scalar_type;
    char kind, letter, order, flags;
    int number;
} array_type;

typedef struct array {
    nr_object head;
    char *data;
    int ndim;
    nr_ssize *shape, *strides; /* strides count bytes */
    void *base;
    const array_type *type;
    int flags;
} array;

static void *const *table; /* NULL: not bound */

/* bind_arrays(capsule): binds NumPy's C API, and returns whether this file supports its version. */
NR_BUILTIN(bind_arrays) {
    if (!nr_counted("bind_arrays", 1, n)) return NULL;
    void *const *found = PyCapsule_GetPointer(args[0], NULL);
    if (!found) return NULL;
    const unsigned version = (*(unsigned (*const *)(void))(const void *)&found[GET_VERSION])() >> 24;
    if (version == 1 || version == 2) table = found;
    return PyBool_FromLong(table != NULL);
}

/* NumPy's numbers of dtypes; -1: it has none. */
static int number_of(int32_t dtype) {
    switch (dtype) {
    case NORCH_BOOL: return 0;
    case NORCH_INT8: return 1;
    case NORCH_UINT8: return 2;
    case NORCH_INT16: return 3;
    case NORCH_INT32: return 5;
    case NORCH_INT64: return sizeof(long) == 8 ? 7 : 9;
    case NORCH_FLOAT16: return 23;
    case NORCH_FLOAT32: return 11;
    case NORCH_FLOAT64: return 12;
    case NORCH_COMPLEX64: return 14;
    case NORCH_COMPLEX128: return 15;
    default: return -1;
    }
}

/* to_array(x): an array over the memory of x, which it keeps alive; read-only where several of its elements are one.
 * None where NumPy is not bound, or lacks the dtype. */
NR_BUILTIN(to_array) {
    if (!nr_counted("to_array", 1, n)) return NULL;
    norch_tensor *x = nr_take_tensor("to_array", args[0]);
    if (!x) return nr_stopped("to_array", args, n);
    const int number = number_of(x->dtype);
    if (!table || number < 0 || x->device_type != NORCH_CPU) return Py_NewRef(NR_NONE);
    if (nr_note_unseen("Python reads the memory of a tensor") != NORCH_OK) return NULL;
    nr_storage_expose(x->storage);
    norch_tensor *held = norch_alias(x); /* x.data = ... may give x other memory */
    if (!held) return NULL;
    nr_ssize shape[NORCH_MAX_DIMS], strides[NORCH_MAX_DIMS];
    for (int32_t i = 0; i < held->ndim; i++) {
        shape[i] = (nr_ssize)held->shape[i];
        strides[i] = (nr_ssize)(held->strides[i] * nr_size_of(held->dtype));
    }
    typedef void *(*make)(void *, int, const nr_ssize *, int, const nr_ssize *, void *, int, int, void *);
    void *result =
        (*(const make *)(const void *)&table[NEW])(table[ARRAY_TYPE], held->ndim, shape, number, strides, held->data, 0,
                                                   norch_overlaps_itself(held) ? 0 : WRITEABLE, NULL);
    typedef int (*set)(void *, void *);
    if (!result) {
        norch_release(held);
        return NULL;
    }
    if ((*(const set *)(const void *)&table[SET_BASE_OBJECT])(result, held)) { /* it has released held */
        Py_DecRef(result);
        return NULL;
    }
    return result;
}

static void release_array(void *object) { Py_DecRef(object); }

/* from_array(a): a tensor over the memory of an array, which it keeps alive. None where NumPy is not bound, and where a
 * is no array, is read-only, or has a dtype or strides that no tensor has: the caller says which. */
NR_BUILTIN(from_array) {
    if (!nr_counted("from_array", 1, n)) return NULL;
    const array *a = args[0];
    if (!table || !PyType_IsSubtype(a->head.type, table[ARRAY_TYPE])) return Py_NewRef(NR_NONE);
    int32_t dtype = 0;
    while (dtype < NR_DTYPE_COUNT && number_of(dtype) != a->type->number) dtype++;
    bool fits = dtype < NR_DTYPE_COUNT && a->type->order != '>' && a->flags & WRITEABLE && a->ndim <= NORCH_MAX_DIMS;
    int64_t shape[NORCH_MAX_DIMS], strides[NORCH_MAX_DIMS];
    for (int i = 0; fits && i < a->ndim; i++) {
        shape[i] = a->shape[i];
        strides[i] = a->strides[i] / nr_size_of(dtype);
        fits = a->strides[i] % nr_size_of(dtype) == 0;
    }
    if (!fits) return Py_NewRef(NR_NONE);
    /* An array over the memory of a tensor is not held: conversions back and forth would make a growing chain. */
    const array *owner = a;
    while (owner && PyType_IsSubtype(owner->head.type, table[ARRAY_TYPE])) owner = owner->base;
    const norch_tensor *held = owner && nr_is_tensor(owner) ? (const norch_tensor *)owner : NULL;
    if (held && held->device_type == NORCH_CPU && nr_lies_in(held->storage, a->data, dtype))
        return nr_view_memory(held->storage, a->data, a->ndim, shape, strides, dtype);
    void (*const release)(void *) = release_array;
    norch_tensor *x = norch_from_memory(a->data, a->ndim, shape, strides, dtype, *(void *const *)(const void *)&release,
                                        Py_NewRef(args[0]));
    if (!x) Py_DecRef(args[0]);
    return x;
}
