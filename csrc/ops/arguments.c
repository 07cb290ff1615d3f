/* arguments: argument checks that several families share. csrc/core/check.c has those that all operations share. */
#include "ops.h"

int32_t nr_check_written(const char *op, const char *role, const norch_tensor *written, const norch_tensor *x,
                         int32_t ndim, const int64_t *shape) {
    NR_TRY(nr_check_tensor(op, written));
    if (written->dtype == x->dtype && nr_same_shape(written->ndim, written->shape, ndim, shape))
        return nr_check_same_device(op, x, written);
    return nr_fail(NORCH_ERROR_SHAPE, "%s: %s of shape %s does not fit into shape %s; dtypes %s and %s", op, role,
                   nr_shape_text(ndim, shape), nr_shape_of(written), nr_dtypes[x->dtype].name,
                   nr_dtypes[written->dtype].name);
}

int32_t nr_check_full_float(const char *op, const norch_tensor *x) {
    if (x->dtype == NORCH_FLOAT32 || x->dtype == NORCH_FLOAT64) return NORCH_OK;
    return nr_fail(NORCH_ERROR_DTYPE, "%s: not defined for dtype %s; convert to float32 or float64 first", op,
                   nr_dtypes[x->dtype].name);
}

int32_t nr_check_numbers(const char *op, int64_t wanted, int64_t count) {
    if (count == wanted) return NORCH_OK;
    return nr_fail(NORCH_ERROR_VALUE, "%s: expected %lld integers, got %lld", op, (long long)wanted, (long long)count);
}
