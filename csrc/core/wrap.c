/* wrap: tensors over memory that another library owns. */
#include "dtype.h"
#include "error.h"
#include "memory.h"
#include "observer.h"
#include "tensor.h"

bool nr_lies_in(const norch_storage *storage, const void *data, int32_t dtype) {
    const int64_t size = nr_size_of(dtype);
    return storage && data && (int64_t)(uintptr_t)data % size == 0 &&
           ((const char *)data - (const char *)storage->data) % size == 0;
}

norch_tensor *nr_view_memory(norch_storage *storage, const void *data, int64_t ndim, const int64_t *shape,
                             const int64_t *strides, int32_t dtype) {
    const int64_t shift = ((const char *)data - (const char *)storage->data) / nr_size_of(dtype);
    if (nr_note_unseen("a tensor is made over memory of the host")) return NULL;
    const norch_tensor whole = {.data = storage->data,
                                .storage = storage,
                                .dtype = dtype,
                                .device_type = storage->backend->device_type,
                                .device_index = storage->backend->device_index};
    nr_dtypes_seen |= 1u << dtype;
    return nr_make_view(&whole, (int32_t)ndim, shape, strides, shift);
}

norch_tensor *nr_wrap_memory(const char *op, const nr_backend *backend, void *data, int64_t ndim, const int64_t *shape,
                             const int64_t *strides, int32_t dtype, void (*release)(void *), void *context) {
    int64_t first = 0, last = 0, count = 1; /* offsets of the lowest and highest element from data */
    for (int64_t i = 0; i < ndim; i++) {
        count *= shape[i];
        *(strides[i] < 0 ? &first : &last) += (shape[i] - 1) * strides[i];
    }
    if (count == 0) first = 0;
    if (nr_note_unseen("a tensor is made over memory of the host")) return NULL;
    if (count && (uintptr_t)data % (uintptr_t)nr_size_of(dtype))
        return NR_REFUSE(NORCH_ERROR_VALUE, "%s: the memory is not aligned to %s; copy the array first", op,
                         nr_dtypes[dtype].name);
    size_t bytes = count ? (size_t)(last - first + 1) * (size_t)nr_size_of(dtype) : 0;
    void *low = count ? (char *)data + first * nr_size_of(dtype) : data;
    /* nr_free(NULL) does nothing: after a failure the caller still owns the memory. */
    norch_storage *storage = nr_storage_wrap(low, bytes, backend, nr_free, NULL);
    if (!storage) return NULL;
    const norch_tensor whole = {.data = low,
                                .storage = storage,
                                .dtype = dtype,
                                .device_type = backend->device_type,
                                .device_index = backend->device_index};
    norch_tensor *x = nr_make_view(&whole, (int32_t)ndim, shape, strides, -first);
    if (x) {
        nr_dtypes_seen |= 1u << dtype;
        storage->release = release;
        storage->context = context;
    }
    nr_storage_release(storage); /* x holds it */
    return x;
}
