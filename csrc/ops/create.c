/* create: tensors from numbers, bytes and the caller's memory, and back to numbers and bytes. */
#include <stdlib.h>
#include <string.h>

#include "../core/convert.h"
#include "../core/observer.h"
#include "../core/transfer.h"
#include "ops.h"

/* A Python number. */
static inline norch_tensor *scalar(int32_t dtype, const void *value, size_t size) {
    norch_tensor *x = nr_make(0, NULL, dtype, NULL);
    if (!x) return NULL;
    memcpy(x->data, value, size);
    x->weak = 1;
    return nr_finished(x, nr_note_host_wrote(x));
}

/* x, whose elements the host has written. While a program is recorded: a copy by a recorded call, so that a replay
 * begins with these elements again even if the program writes to the tensor. */
static norch_tensor *from_host(norch_tensor *x) {
    x = nr_finished(x, nr_note_host_wrote(x));
    if (!x || !nr_records()) return x;
    norch_tensor *copy = norch_clone(x);
    nr_release(x);
    return copy;
}

norch_tensor *norch_scalar_float(double value) { return scalar(NORCH_FLOAT64, &value, sizeof value); }

norch_tensor *norch_scalar_int(int64_t value, int64_t dtype) {
    const uint8_t truth = value != 0;
    return dtype == NORCH_BOOL ? scalar(NORCH_BOOL, &truth, 1) : scalar(NORCH_INT64, &value, sizeof value);
}

norch_tensor *norch_scalar_complex(double real, double imaginary) {
    const double parts[] = {real, imaginary};
    return scalar(NORCH_COMPLEX128, parts, sizeof parts);
}

/* Fills x, which is new and dense, with one value. */
static norch_tensor *filled(norch_tensor *x, double value, int64_t integer) {
    if (!x || x->numel == 0) return x;
    if (nr_is_complex(x->dtype)) {
        NR_OWNED norch_tensor *number = norch_scalar_float(value);
        return nr_finished(x, number ? nr_copy_into(x, number) : NORCH_ERROR_MEMORY);
    }
    const int64_t size = nr_size_of(x->dtype);
    nr_plan plan = {.ndim = 1, .operands = 2, .size = {x->numel}, .numel = x->numel};
    plan.stride[0][0] = size;
    plan.data[0] = x->data;
    plan.data[1] = (char *)&plan.value[1]; /* the plan carries the value */
    if (nr_is_float(x->dtype))
        nr_put_double(x->dtype, value, plan.data[1]);
    else
        nr_put_integer(x->dtype, x->dtype == NORCH_BOOL ? value != 0 : integer, plan.data[1]);
    nr_call call = {.family = NR_COPY, .dtype = x->dtype, .from_dtype = x->dtype, .plan = &plan};
    call.work = 0.1 * (double)(x->numel * size);
    return nr_finished(x, nr_dispatch(&call, x));
}

norch_tensor *norch_full(int64_t ndim, const int64_t *shape, int64_t dtype, double value, int64_t integer,
                         int64_t device_type, int64_t device_index) {
    return filled(nr_make_on("full", ndim, shape, dtype, device_type, device_index), value, integer);
}

norch_tensor *norch_full_like(const norch_tensor *x, int64_t dtype, double value, int64_t integer) {
    /* x may be a header without a storage */
    if (!x) return NR_REFUSE(NORCH_ERROR_VALUE, "full_like: no tensor given");
    if (dtype == -1) dtype = x->dtype;
    if (nr_check_dtype("full_like", dtype)) return NULL;
    return filled(nr_make_like(x, (int32_t)dtype), value, integer);
}

/* start + i * step for n numbers i from first on. A running sum would accumulate rounding errors. In blocks of 4096, i
 * fits in 32 bits, which helps vectorization. */
#define COUNTS(T)                                                                       \
    static void count_##T(T *to, int64_t n, double start, int64_t first, double step) { \
        for (; n > 0; n -= 4096, first += 4096, to += 4096)                             \
            for (int32_t i = 0, count = n < 4096 ? (int32_t)n : 4096; i < count; i++)   \
                to[i] = (T)(start + ((double)first + i) * step);                        \
    }
COUNTS(float)
COUNTS(double)
#define COUNT_F(T) count_##T(x->data, n, start, 0, step);
#define COUNT_I(T) /* wraps as the product would */ \
    for (int64_t i = 0, value = istart; i < n; i++, value += istep) ((T *)x->data)[i] = (T)value;
#define COUNT_U COUNT_I
#define COUNT_B COUNT_I /* not reached: bool is refused above */

norch_tensor *norch_arange(int64_t n, int64_t dtype, double start, double step, int64_t istart, int64_t istep) {
    if (nr_check_shape("arange", 1, &n) || nr_check_dtype("arange", dtype)) return NULL;
    if (dtype == NORCH_BOOL) return NR_REFUSE(NORCH_ERROR_DTYPE, "arange: not defined for dtype bool");
    if (nr_is_complex((int32_t)dtype)) return nr_refuse_complex("arange", (int32_t)dtype), NULL;
    if (nr_is_narrow((int32_t)dtype))
        return nr_narrowed(norch_arange(n, nr_wide((int32_t)dtype), start, step, istart, istep), (int32_t)dtype);
    norch_tensor *x = nr_make(1, &n, (int32_t)dtype, NULL);
    if (!x) return NULL;
    switch (dtype) {
#define WIDE(NAME, name, S, T, A, kind, digits) \
    case NORCH_##NAME: COUNT_##kind(S) break;
#define NARROW(...)
#include "../dtypes.def"
    }
    return from_host(x);
}

norch_tensor *norch_linspace(int64_t n, int64_t dtype, double start, double end) {
    if (nr_check_shape("linspace", 1, &n)) return NULL;
    if (dtype != NORCH_FLOAT32 && dtype != NORCH_FLOAT64)
        return NR_REFUSE(NORCH_ERROR_DTYPE, "linspace: dtype %lld is neither float32 nor float64", (long long)dtype);
    norch_tensor *x = nr_make(1, &n, (int32_t)dtype, NULL);
    if (!x) return NULL;
    const double step = n > 1 ? (end - start) / (double)(n - 1) : 0;
    const int64_t half = n > 1 ? n / 2 : n;
    if (dtype == NORCH_FLOAT32) {
        count_float(x->data, half, start, 0, step);
        count_float((float *)x->data + half, n - half, end, half + 1 - n, step);
    } else {
        count_double(x->data, half, start, 0, step);
        count_double((double *)x->data + half, n - half, end, half + 1 - n, step);
    }
    return from_host(x);
}

norch_tensor *norch_triangle_indices(int64_t n, int64_t row, int64_t columns, int64_t offset, bool upper) {
    const int64_t shape[] = {2, n};
    if (nr_check_shape("triangle_indices", 2, shape)) return NULL;
    norch_tensor *x = nr_make(2, shape, NORCH_INT64, NULL);
    if (!x) return NULL;
    int64_t *rows = x->data, *to = rows + n;
    for (int64_t at = 0; at < n; row++) {
        int64_t begin = upper && row + offset > 0 ? row + offset : 0, stop = n - at + begin;
        if (stop > columns) stop = columns;
        if (!upper && stop > row + offset + 1) stop = row + offset + 1;
        if (begin >= stop)
            return nr_finished(x, nr_fail(NORCH_ERROR_VALUE, "triangle_indices: row %lld is empty", (long long)row));
        for (int64_t column = begin; column < stop; column++, at++) {
            rows[at] = row;
            to[at] = column;
        }
    }
    return from_host(x);
}

/* Checks that a buffer has as many bytes as a tensor. */
static int32_t check_bytes(const char *op, int64_t n, int32_t ndim, const int64_t *shape, int64_t numel,
                           int32_t dtype) {
    if (n == numel * nr_size_of(dtype)) return NORCH_OK;
    return nr_fail(NORCH_ERROR_VALUE, "%s: %lld bytes given, %s of shape %s has %lld", op, (long long)n,
                   nr_dtypes[dtype].name, nr_shape_text(ndim, shape), (long long)(numel * nr_size_of(dtype)));
}

norch_tensor *norch_from_bytes(const void *bytes, int64_t n, int64_t ndim, const int64_t *shape, int64_t dtype) {
    int64_t numel;
    if (nr_check_shape("from_bytes", ndim, shape) || nr_check_dtype("from_bytes", dtype)) return NULL;
    nr_count((int32_t)ndim, shape, &numel);
    if (check_bytes("from_bytes", n, (int32_t)ndim, shape, numel, (int32_t)dtype)) return NULL;
    norch_tensor *x = nr_make((int32_t)ndim, shape, (int32_t)dtype, NULL);
    if (!x || n == 0) return x;
    memcpy(x->data, bytes, (size_t)n);
    if (dtype == NORCH_BOOL) /* normalizes bools to 0 and 1 */
        for (int64_t i = 0; i < n; i++) ((uint8_t *)x->data)[i] = ((uint8_t *)x->data)[i] != 0;
    return from_host(x);
}

norch_tensor *norch_from_memory(void *data, int64_t ndim, const int64_t *shape, const int64_t *strides, int64_t dtype,
                                void *release, void *context) {
    if (nr_check_shape("from_memory", ndim, shape) || nr_check_dtype("from_memory", dtype)) return NULL;
    if (!release)
        return NR_REFUSE(NORCH_ERROR_VALUE, "from_memory: give a function to call when the memory is no longer used");
    return nr_wrap_memory("from_memory", nr_backend_find(NORCH_CPU, 0), data, ndim, shape, strides, (int32_t)dtype,
                          *(void (**)(void *))(void *)&release, context);
}

int32_t norch_to_bytes(const norch_tensor *x, void *bytes, int64_t n) {
    NR_TRY(nr_check_tensor("to_bytes", x));
    NR_TRY(check_bytes("to_bytes", n, x->ndim, x->shape, x->numel, x->dtype));
    if (n == 0) return NORCH_OK;
    NR_OWNED norch_tensor *dense = nr_dense(x, x->dtype);
    if (!dense) return norch_last_error_kind();
    return nr_transfer_to_host(x->storage->backend, bytes, dense->data, (size_t)n);
}

/* Copies the first element of x, on any device, to the host. */
static int32_t read_element(const norch_tensor *x, void *eight_bytes) {
    if (x->weak && x->device_type == NORCH_CPU) { /* a Python number: reading it need not stop a recording */
        memcpy(eight_bytes, x->data, (size_t)nr_size_of(x->dtype));
        return NORCH_OK;
    }
    if (x->device_type == NORCH_META)
        return nr_fail(NORCH_ERROR_META, "item: Tensor.item() cannot be called on meta tensors");
    return nr_transfer_to_host(x->storage->backend, eight_bytes, x->data, (size_t)nr_size_of(x->dtype));
}

int32_t norch_item(const norch_tensor *x, double *value, int64_t *integer) {
    NR_TRY(nr_check_tensor("item", x));
    if (x->numel != 1)
        return nr_fail(NORCH_ERROR_VALUE, "item: a tensor of shape %s has %lld elements, not one", nr_shape_of(x),
                       (long long)x->numel);
    if (nr_is_complex(x->dtype)) return nr_refuse_complex("item", x->dtype); /* Python reads these by to_bytes */
    uint64_t bits;
    NR_TRY(read_element(x, &bits));
    nr_get(x->dtype, &bits, value, integer);
    if (nr_is_float(x->dtype))
        *integer = nr_int64_of_double(*value);
    else
        *value = (double)*integer;
    return NORCH_OK;
}

norch_tensor *norch_empty_like(const norch_tensor *x, int64_t last) {
    if (nr_check_tensor("empty", x)) return NULL;
    if (x->ndim == 0 || last < 0)
        return NR_REFUSE(NORCH_ERROR_SHAPE, "empty: a tensor of %d axes cannot have a last one of size %lld", x->ndim,
                         (long long)last);
    int64_t shape[NORCH_MAX_DIMS], order[NORCH_MAX_DIMS];
    memcpy(shape, x->shape, sizeof shape);
    for (int32_t i = 0; i < x->ndim; i++) order[i] = llabs(x->strides[i]);
    shape[x->ndim - 1] = last;
    order[x->ndim - 1] = 0; /* innermost */
    norch_tensor *out = nr_make(x->ndim, shape, x->dtype, x);
    if (!out || out->numel == 0) return out;
    nr_fill_strides_in_order(x->ndim, shape, order, out->strides);
    out->contiguous = nr_is_contiguous(out->ndim, out->shape, out->strides);
    return out;
}
