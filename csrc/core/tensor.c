/* tensor: see tensor.h. */
#include "tensor.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "interpreter.h"
#include "memory.h"

/* A tensor without a Python object. */
static norch_tensor *plain_tensor(void) {
    norch_tensor *x = calloc(1, sizeof *x);
    if (x) x->references = 1;
    return x;
}

static norch_tensor *make_header(norch_storage *storage, int32_t ndim, const int64_t *shape, int32_t dtype) {
    norch_tensor *x = nr_allocation_fails() ? NULL : nr_interpreter ? nr_interpreter->new_tensor() : plain_tensor();
    if (!x) return NR_REFUSE(NORCH_ERROR_MEMORY, "out of memory for %zu bytes", sizeof *x);
    x->data = NULL;
    x->storage = storage;
    x->offset = 0;
    x->dtype = dtype;
    x->ndim = ndim;
    x->device_type = storage ? storage->backend->device_type : NORCH_CPU;
    x->device_index = storage ? storage->backend->device_index : 0;
    x->weak = 0;
    x->mixed = 0;
    for (int32_t i = 0; i < ndim; i++) x->shape[i] = shape[i];
    return x;
}

norch_tensor *nr_make(int32_t ndim, const int64_t *shape, int32_t dtype, const norch_tensor *where) {
    int64_t count;
    if (!nr_count(ndim, shape, &count))
        return NR_REFUSE(NORCH_ERROR_SHAPE, "a tensor of shape %s needs more than 2**63 bytes",
                         nr_shape_text(ndim, shape));
    const nr_backend *backend = where && where->storage ? where->storage->backend
                                : where                 ? nr_backend_find(where->device_type, where->device_index)
                                                        : nr_backend_find(NORCH_CPU, 0);
    if (!backend) return NULL;
    norch_storage *storage = nr_storage_make(backend, (uint64_t)(count * nr_size_of(dtype)));
    if (!storage) return NULL;
    norch_tensor *x = make_header(storage, ndim, shape, dtype);
    if (!x) {
        nr_storage_release(storage);
        return NULL;
    }
    nr_dtypes_seen |= 1u << dtype;
    x->data = storage->data;
    x->numel = count;
    x->contiguous = 1;
    nr_fill_strides(ndim, shape, x->strides);
    return x;
}

void nr_preserve_strides(norch_tensor *out, const norch_tensor *x) {
    int64_t strides[NORCH_MAX_DIMS];
    if (x->contiguous) return;
    nr_fill_strides_in_order(x->ndim, x->shape, x->strides, strides);
    for (int32_t d = 0; d < x->ndim; d++)
        if (x->shape[d] > 1 && x->strides[d] != strides[d]) return;
    memcpy(out->strides, strides, (size_t)x->ndim * sizeof *strides);
    out->contiguous = 0;
}

norch_tensor *nr_make_like(const norch_tensor *x, int32_t dtype) {
    norch_tensor *out = nr_make(x->ndim, x->shape, dtype, x);
    if (out) nr_preserve_strides(out, x);
    return out;
}

norch_tensor *nr_make_view(const norch_tensor *x, int32_t ndim, const int64_t *shape, const int64_t *strides,
                           int64_t shift) {
    norch_tensor *view = make_header(x->storage, ndim, shape, x->dtype);
    if (!view) return NULL;
    if (x->storage) nr_storage_retain(x->storage);
    view->numel = 1;
    for (int32_t i = 0; i < ndim; i++) {
        view->strides[i] = strides[i];
        view->numel *= shape[i];
    }
    if (view->numel == 0) shift = 0; /* keeps the address inside the storage */
    view->offset = x->offset + shift;
    view->data = x->data ? (char *)x->data + shift * nr_size_of(x->dtype) : NULL;
    view->contiguous = nr_is_contiguous(ndim, shape, strides);
    view->device_type = x->device_type;
    view->device_index = x->device_index;
    return view;
}

norch_tensor *nr_make_on(const char *op, int64_t ndim, const int64_t *shape, int64_t dtype, int64_t device_type,
                         int64_t device_index) {
    if (nr_check_shape(op, ndim, shape) || nr_check_dtype(op, dtype)) return NULL;
    if (!nr_backend_find(device_type, device_index)) return NULL;
    norch_tensor where = {.device_type = (int32_t)device_type, .device_index = (int32_t)device_index};
    return nr_make((int32_t)ndim, shape, (int32_t)dtype, &where);
}

norch_tensor *norch_empty(int64_t ndim, const int64_t *shape, int64_t dtype, int64_t device_type,
                          int64_t device_index) {
    return nr_make_on("empty", ndim, shape, dtype, device_type, device_index);
}

norch_tensor *norch_retain(norch_tensor *x) {
    if (x->type)
        nr_interpreter->retain(x);
    else
        __atomic_fetch_add(&x->references, 1, __ATOMIC_RELAXED);
    return x;
}

void nr_tensor_clear(norch_tensor *x) {
    if (x->storage) nr_storage_release(x->storage);
}

void norch_release(norch_tensor *x) {
    if (x && x->type) {
        nr_interpreter->release(x);
    } else if (x && __atomic_fetch_sub(&x->references, 1, __ATOMIC_ACQ_REL) == 1) {
        nr_tensor_clear(x);
        free(x);
    }
}

norch_tensor *norch_meta(const norch_tensor *x) {
    norch_tensor *like = make_header(NULL, x->ndim, x->shape, x->dtype);
    if (!like) return NULL;
    like->numel = x->numel;
    like->device_type = x->device_type;
    like->device_index = x->device_index;
    nr_fill_strides(x->ndim, x->shape, like->strides);
    like->contiguous = 1;
    return like;
}

bool norch_is_same(const norch_tensor *a, const norch_tensor *b) {
    if (a->storage != b->storage || a->data != b->data || a->dtype != b->dtype) return 0;
    if (!nr_same_shape(a->ndim, a->shape, b->ndim, b->shape)) return 0;
    for (int32_t i = 0; i < a->ndim; i++)
        if (a->shape[i] > 1 && a->strides[i] != b->strides[i]) return 0;
    return 1;
}

bool norch_shares_storage(const norch_tensor *a, const norch_tensor *b) { return a->storage == b->storage; }

int64_t norch_storage_references(const norch_tensor *x) { return x->storage ? x->storage->references : 0; }

/* The address range of x: [*low, *high). */
static void extent(const norch_tensor *x, const char **low, const char **high) {
    *low = *high = x->data;
    for (int32_t i = 0; i < x->ndim; i++) {
        int64_t reach = (x->shape[i] - 1) * x->strides[i] * nr_size_of(x->dtype);
        if (reach > 0)
            *high += reach;
        else
            *low += reach;
    }
    *high += nr_size_of(x->dtype);
}

bool norch_overlaps(const norch_tensor *a, const norch_tensor *b) {
    if (a->numel == 0 || b->numel == 0 || !nr_same_device(a, b)) return 0;
    const char *low_a, *high_a, *low_b, *high_b;
    extent(a, &low_a, &high_a);
    extent(b, &low_b, &high_b);
    return low_a < high_b && low_b < high_a;
}
