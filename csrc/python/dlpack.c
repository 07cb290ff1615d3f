/* dlpack: capsules by which array libraries share memory without a copy.
 *
 *   to_dlpack      storage +1 reference -> { shape, strides, deleter } in a capsule -> the consumer, who renames it and
 *                                                                                     calls the deleter when it is done
 *   from_dlpack    capsule, renamed -> a storage over the producer's memory -> its deleter with the last tensor
 *
 * Structs: DLPack 1.0 (dmlc.github.io/dlpack), and 0.x, whose header is shorter and has no flags. */
#include <string.h>

#include "../core/check.h"
#include "../core/error.h"
#include "../core/memory.h"
#include "../core/storage.h"
#include "../core/tensor.h"
#include "abi.h"
#include "calls.h"
#include "object.h"

enum { DL_CPU = 1, DL_CUDA = 2 };
enum { DL_INT, DL_UINT, DL_FLOAT, DL_BFLOAT = 4, DL_COMPLEX = 5, DL_BOOL = 6 };
#define DL_READ_ONLY 1u
#define DL_IS_COPIED 2u

typedef struct dl_tensor {
    void *data;
    int32_t device_type, device_index, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides; /* strides count elements; NULL: contiguous */
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
    dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *self);
} dl_managed;

typedef struct dl_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dl_versioned *self);
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;

static const char *const names[] = {"dltensor", "dltensor_versioned"};
static const char *const used_names[] = {"used_dltensor", "used_dltensor_versioned"};

/* ---- export ---------------------------------------------------------------------------------------------- */

/* The target of an exported capsule. It begins with the header of one of the two versions. */
typedef struct exported {
    union {
        dl_managed managed;
        dl_versioned versioned;
    } head;
    norch_storage *storage;
    int64_t shape[NORCH_MAX_DIMS], strides[NORCH_MAX_DIMS];
} exported;

/* The deleter. Consumers call it in any thread, with the GIL or without. */
static void delete_exported(exported *self) {
    if (!Py_IsInitialized()) return; /* the memory may belong to an object of the interpreter, which has ended */
    const int state = PyGILState_Ensure();
    if (self->storage) nr_storage_release(self->storage);
    nr_free(self);
    PyGILState_Release(state);
}
static void delete_managed(dl_managed *self) { delete_exported(self->context); }
static void delete_versioned(dl_versioned *self) { delete_exported(self->context); }

/* The destructor of a capsule; frees one that was not consumed. */
static void drop_capsule(void *capsule) {
    for (int versioned = 0; versioned < 2; versioned++)
        if (PyCapsule_IsValid(capsule, names[versioned])) {
            void *head = PyCapsule_GetPointer(capsule, names[versioned]);
            delete_exported(versioned ? ((dl_versioned *)head)->context : ((dl_managed *)head)->context);
            return;
        }
}

static uint8_t code_of(int32_t dtype) {
    if (dtype == NORCH_BFLOAT16) return DL_BFLOAT;
    if (dtype == NORCH_BOOL) return DL_BOOL;
    if (nr_is_float(dtype)) return DL_FLOAT;
    if (nr_is_complex(dtype)) return DL_COMPLEX;
    return dtype == NORCH_UINT8 ? DL_UINT : DL_INT;
}

/* to_dlpack(x, versioned, copied): a capsule over the elements of x; copied: of which no one else has the memory. */
NR_BUILTIN(to_dlpack) {
    if (n != 3 || !nr_is_tensor(args[0])) {
        PyErr_SetString(PyExc_TypeError, "to_dlpack: expected a tensor");
        return NULL;
    }
    if (((nr_object *)args[0])->type == nr_batched_class) return nr_stopped("to_dlpack", args, n);
    const norch_tensor *x = args[0];
    nr_storage_expose(x->storage);
    const int versioned = PyObject_IsTrue(args[1]), copied = PyObject_IsTrue(args[2]);
    if (versioned < 0 || copied < 0) return NULL;
    exported *all = nr_malloc(sizeof *all);
    if (!all) return NR_REFUSE(NORCH_ERROR_MEMORY, "to_dlpack: out of memory");
    memset(all, 0, sizeof *all);
    memcpy(all->shape, x->shape, sizeof all->shape);
    memcpy(all->strides, x->strides, sizeof all->strides);
    dl_tensor *tensor = versioned ? &all->head.versioned.tensor : &all->head.managed.tensor;
    tensor->data = x->numel ? x->data : NULL;
    tensor->device_type = x->device_type == NORCH_CPU ? DL_CPU : DL_CUDA;
    tensor->device_index = x->device_index;
    tensor->ndim = x->ndim;
    tensor->code = code_of(x->dtype);
    tensor->bits = (uint8_t)(nr_size_of(x->dtype) * 8);
    tensor->lanes = 1;
    tensor->shape = all->shape;
    tensor->strides = all->strides;
    if (versioned) {
        all->head.versioned.major = 1;
        all->head.versioned.flags = copied ? DL_IS_COPIED : 0;
        all->head.versioned.context = all;
        all->head.versioned.deleter = delete_versioned;
    } else {
        all->head.managed.context = all;
        all->head.managed.deleter = delete_managed;
    }
    all->storage = x->storage ? nr_storage_retain(x->storage) : NULL;
    void *capsule = PyCapsule_New(all, names[versioned], drop_capsule);
    if (!capsule) delete_exported(all);
    return capsule;
}

/* ---- import ---------------------------------------------------------------------------------------------- */

static void release_managed(void *context) {
    dl_managed *from = context;
    if (from->deleter) from->deleter(from);
}
static void release_versioned(void *context) {
    dl_versioned *from = context;
    if (from->deleter) from->deleter(from);
}

/* The dtype of norch; -1: there is none. */
static int32_t dtype_of(const dl_tensor *from) {
    for (int32_t dtype = 0; dtype < NR_DTYPE_COUNT && from->lanes == 1; dtype++)
        if (code_of(dtype) == from->code && nr_size_of(dtype) * 8 == from->bits) return dtype;
    return -1;
}

/* storage: the one that the memory is of, if this library exported it; else NULL. */
static norch_tensor *tensor_over(const dl_tensor *from, norch_storage *storage, void (*release)(void *),
                                 void *context) {
    const int32_t dtype = dtype_of(from);
    if (dtype < 0)
        return NR_REFUSE(NORCH_ERROR_DTYPE,
                         "from_dlpack: norch has no dtype of DLPack's code %d with %d bits and %d lanes", from->code,
                         from->bits, from->lanes);
    if (from->device_type != DL_CPU && from->device_type != DL_CUDA)
        return NR_REFUSE(
            NORCH_ERROR_DEVICE,
            "from_dlpack: memory of DLPack's device type %d; norch reads that of the CPU (1) and of CUDA (2)",
            from->device_type);
    if (nr_check_shape("from_dlpack", from->ndim, from->shape)) return NULL;
    const nr_backend *backend =
        nr_backend_find(from->device_type == DL_CPU ? NORCH_CPU : NORCH_CUDA, from->device_index);
    if (!backend) return NULL;
    int64_t strides[NORCH_MAX_DIMS], dense = 1;
    for (int32_t d = from->ndim - 1; d >= 0; d--) {
        strides[d] = from->strides ? from->strides[d] : dense;
        dense *= from->shape[d] > 1 ? from->shape[d] : 1;
    }
    char *data = (char *)from->data + from->byte_offset;
    if (from->data && nr_lies_in(storage, data, dtype))
        return nr_view_memory(storage, data, from->ndim, from->shape, strides, dtype);
    return nr_wrap_memory("from_dlpack", backend, data, from->ndim, from->shape, strides, dtype, release, context);
}

/* from_dlpack(capsule): (a tensor over the producer's memory, whether it is read-only); consumes the capsule. */
NR_BUILTIN(from_dlpack) {
    int versioned = 0;
    while (versioned < 2 && (n != 1 || !PyCapsule_IsValid(args[0], names[versioned]))) versioned++;
    if (versioned == 2) {
        PyErr_SetString(PyExc_TypeError, "from_dlpack: expected a DLPack capsule that was not used before");
        return NULL;
    }
    void *head = PyCapsule_GetPointer(args[0], names[versioned]);
    if (versioned && ((dl_versioned *)head)->major > 1)
        return NR_REFUSE(NORCH_ERROR_VALUE, "from_dlpack: a capsule of DLPack %u.%u; norch reads 1.x and 0.x",
                         ((dl_versioned *)head)->major, ((dl_versioned *)head)->minor);
    const bool read_only = versioned && ((dl_versioned *)head)->flags & DL_READ_ONLY;
    const bool from_norch = versioned ? ((dl_versioned *)head)->deleter == delete_versioned
                                      : ((dl_managed *)head)->deleter == delete_managed;
    exported *all = !from_norch ? NULL : versioned ? ((dl_versioned *)head)->context : ((dl_managed *)head)->context;
    void *result = PyTuple_New(2);
    norch_tensor *x =
        result ? tensor_over(versioned ? &((dl_versioned *)head)->tensor : &((dl_managed *)head)->tensor,
                             all ? all->storage : NULL, versioned ? release_versioned : release_managed, head)
               : NULL;
    if (!x) {
        if (result) Py_DecRef(result);
        return NULL;
    }
    PyCapsule_SetName(args[0], used_names[versioned]);
    if (all && x->storage == all->storage) delete_exported(all); /* x holds the storage itself */
    PyTuple_SetItem(result, 0, x);
    PyTuple_SetItem(result, 1, PyBool_FromLong(read_only));
    return result;
}
