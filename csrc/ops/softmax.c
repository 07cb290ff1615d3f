/* softmax: softmax, log_softmax and their gradients, each in one pass over memory. Operands that are not dense are
 * copied. Narrow floats are computed in float32, integers in the default float dtype. */
#include "../families/softmax.h"
#include "ops.h"

static norch_tensor *run(nr_softmax_kind kind, const norch_tensor *x, const norch_tensor *result, int32_t axis) {
    norch_tensor *out = nr_make(x->ndim, x->shape, x->dtype, x);
    if (!out || out->numel == 0) return out;
    nr_softmax_plan plan = {.outer = 1, .n = 1, .inner = 1, .out = out->data, .x = x->data};
    if (result) plan.result = result->data;
    for (int32_t d = 0; d < x->ndim; d++) *(d < axis ? &plan.outer : d == axis ? &plan.n : &plan.inner) *= x->shape[d];
    return nr_finished(out, nr_run(NR_SOFTMAX, kind, &plan, 1.5 * (double)x->numel, x));
}

static norch_tensor *softmax(const char *op, nr_softmax_kind kind, const norch_tensor *x, const norch_tensor *result,
                             int64_t dim) {
    int32_t axis, dtype = nr_is_float(x->dtype) ? x->dtype : nr_default_dtype;
    if (nr_check_axis(op, dim, x->ndim, &axis)) return NULL;
    NR_OWNED norch_tensor *input = nr_dense(x, nr_wide(dtype));
    NR_OWNED norch_tensor *second = input && result ? nr_dense(result, input->dtype) : NULL;
    return input && (second || !result) ? nr_narrowed(run(kind, input, second, axis), dtype) : NULL;
}

norch_tensor *norch_softmax(const norch_tensor *x, int64_t dim, bool log) {
    const char *op = log ? "log_softmax" : "softmax";
    if (nr_check_real(op, x)) return NULL;
    return softmax(op, log ? NR_LOG_SOFTMAX_FORWARD : NR_SOFTMAX_FORWARD, x, NULL, dim);
}

norch_tensor *norch_softmax_backward(const norch_tensor *g, const norch_tensor *result, int64_t dim, bool log) {
    const char *op = log ? "log_softmax_backward" : "softmax_backward";
    if (nr_check_real(op, g) || nr_check_real(op, result)) return NULL;
    if (nr_check_same_device(op, g, result)) return NULL;
    if (!nr_same_shape(g->ndim, g->shape, result->ndim, result->shape))
        return NR_REFUSE(NORCH_ERROR_SHAPE, "%s: a gradient of shape %s for a result of shape %s", op, nr_shape_of(g),
                         nr_shape_of(result));
    return softmax(op, log ? NR_LOG_SOFTMAX_BACKWARD : NR_SOFTMAX_BACKWARD, g, result, dim);
}
