/* resample: checks and plans of resampling an axis by weights, and of the adjoint. */
#include "../families/resample.h"
#include "ops.h"

static const char op[] = "resample";

static norch_tensor *run(nr_resample_kind kind, const norch_tensor *x, int64_t dim, const norch_tensor *index,
                         const norch_tensor *weight, int64_t size) {
    int32_t axis;
    if (nr_check_tensor(op, x) || nr_check_tensor(op, index) || nr_check_tensor(op, weight) ||
        nr_check_full_float(op, x) || nr_check_axis(op, dim, x->ndim, &axis) || nr_check_same_device(op, x, index) ||
        nr_check_same_device(op, x, weight))
        return NULL;
    const bool fits = x->ndim && index->ndim == 2 && index->dtype == NORCH_INT64 && weight->dtype == x->dtype &&
                      nr_same_shape(2, index->shape, weight->ndim, weight->shape) && size >= 0 &&
                      (kind == NR_RESAMPLE_FORWARD || index->shape[1] == x->shape[axis]);
    if (!fits)
        return NR_REFUSE(NORCH_ERROR_SHAPE, "%s: shape %s and dtype %s, indices of shape %s, weights of shape %s", op,
                         nr_shape_of(x), nr_dtypes[x->dtype].name, nr_shape_of(index), nr_shape_of(weight));
    if (x->device_type == NORCH_CUDA)
        return NR_REFUSE(NORCH_ERROR_DEVICE, "%s: %s has no kernel for it", op, nr_device_name(x));
    nr_resample_plan plan = {.outer = 1, .inner = 1, .size = index->shape[1], .taps = index->shape[0]};
    plan.old = kind == NR_RESAMPLE_FORWARD ? x->shape[axis] : size;
    if (x->dtype == NORCH_FLOAT32 && (plan.old > INT32_MAX || plan.size > INT32_MAX))
        return NR_REFUSE(NORCH_ERROR_SHAPE, "%s: an axis of %lld elements in place of %lld", op, (long long)plan.size,
                         (long long)plan.old);
    int64_t shape[NORCH_MAX_DIMS];
    for (int32_t d = 0; d < x->ndim; d++) {
        shape[d] = d != axis ? x->shape[d] : kind == NR_RESAMPLE_FORWARD ? plan.size : plan.old;
        if (d < axis) plan.outer *= x->shape[d];
        if (d > axis) plan.inner *= x->shape[d];
    }
    if (nr_check_shape(op, x->ndim, shape)) return NULL;
    NR_OWNED norch_tensor *from = nr_dense(x, x->dtype), *at = from ? nr_dense(index, NORCH_INT64) : NULL;
    NR_OWNED norch_tensor *factors = at ? nr_dense(weight, x->dtype) : NULL;
    norch_tensor *out = factors ? nr_make(x->ndim, shape, x->dtype, x) : NULL;
    if (!out || !out->numel) return out;
    plan.index = (const int64_t *)at->data;
    plan.weight = factors->data;
    plan.x = kind == NR_RESAMPLE_FORWARD ? from->data : out->data;
    plan.y = kind == NR_RESAMPLE_FORWARD ? out->data : from->data;
    const double each = 0.5 * (double)plan.taps + 0.5;
    return nr_finished(out, nr_run(NR_RESAMPLE, kind, &plan, each * (double)(out->numel + x->numel), out));
}

norch_tensor *norch_resample(const norch_tensor *x, int64_t dim, const norch_tensor *index,
                             const norch_tensor *weight) {
    return run(NR_RESAMPLE_FORWARD, x, dim, index, weight, 0);
}

norch_tensor *norch_resample_backward(const norch_tensor *g, int64_t dim, const norch_tensor *index,
                                      const norch_tensor *weight, int64_t size) {
    return run(NR_RESAMPLE_ADJOINT, g, dim, index, weight, size);
}
