/* check: see check.h. */
#include "check.h"

int32_t nr_check_tensor(const char *op, const norch_tensor *x) {
    if (!x) return nr_fail(NORCH_ERROR_VALUE, "%s: no tensor given", op);
    if (!x->storage) return nr_fail(NORCH_ERROR_VALUE, "%s: a header without a storage has no elements", op);
    return NORCH_OK;
}

int32_t nr_refuse_complex(const char *op, int32_t dtype) {
    return nr_fail(NORCH_ERROR_DTYPE, "%s: %s is not supported", op, nr_dtypes[dtype].name);
}

int32_t nr_check_real(const char *op, const norch_tensor *x) {
    NR_TRY(nr_check_tensor(op, x));
    return nr_is_complex(x->dtype) ? nr_refuse_complex(op, x->dtype) : NORCH_OK;
}

int32_t nr_check_dtype(const char *op, int64_t dtype) {
    if (!nr_is_dtype(dtype))
        return nr_fail(NORCH_ERROR_DTYPE, "%s: there is no dtype number %lld", op, (long long)dtype);
    return NORCH_OK;
}

int32_t nr_check_same_device(const char *op, const norch_tensor *x, const norch_tensor *other) {
    if (nr_same_device(x, other)) return NORCH_OK;
    return nr_fail(NORCH_ERROR_DEVICE, "%s: tensors on %s and %s; move one with .to()", op, nr_device_name(x),
                   nr_device_name(other));
}

int32_t nr_check_devices(const char *op, int n, const norch_tensor *const *xs) {
    const norch_tensor *first = NULL;
    for (int i = 0; i < n; i++) {
        if (nr_is_anywhere(xs[i])) continue;
        if (first) NR_TRY(nr_check_same_device(op, first, xs[i]));
        first = xs[i];
    }
    return NORCH_OK;
}

int32_t nr_check_axis(const char *op, int64_t axis, int32_t ndim, int32_t *result) {
    if (nr_axis(axis, ndim, result)) return NORCH_OK;
    int32_t span = ndim ? ndim : 1;
    return nr_fail(NORCH_ERROR_INDEX, "%s: dimension %lld is out of range [%d, %d]", op, (long long)axis, -span,
                   span - 1);
}

int32_t nr_check_shape(const char *op, int64_t ndim, const int64_t *shape) {
    if (ndim < 0 || ndim > NORCH_MAX_DIMS)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: %lld dimensions; at most %d are supported", op, (long long)ndim,
                       NORCH_MAX_DIMS);
    for (int64_t i = 0; i < ndim; i++)
        if (shape[i] < 0)
            return nr_fail(NORCH_ERROR_SHAPE, "%s: negative size %lld in shape %s", op, (long long)shape[i],
                           nr_shape_text((int32_t)ndim, shape));
    int64_t count;
    if (!nr_count((int32_t)ndim, shape, &count))
        return nr_fail(NORCH_ERROR_SHAPE, "%s: shape %s needs more than 2**63 bytes", op,
                       nr_shape_text((int32_t)ndim, shape));
    return NORCH_OK;
}

int32_t nr_check_writable(const char *op, const norch_tensor *x) {
    for (int32_t i = 0; i < x->ndim && x->numel > 0; i++)
        if (x->shape[i] > 1 && x->strides[i] == 0) {
            return nr_fail(NORCH_ERROR_VALUE,
                           "%s: an expanded tensor %s has several elements in one place and cannot be written to; "
                           "clone() it first",
                           op, nr_shape_of(x));
        }
    return NORCH_OK;
}
