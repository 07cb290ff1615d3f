/* cross_entropy: checks and plans of the cross-entropy of logits, and of logarithms of probabilities, with class
 * indices, in one pass over memory forward and one backward. Operands that are not dense are copied; narrow floats are
 * computed in float32. */
#include "../families/cross_entropy.h"
#include "ops.h"

/* Nanoseconds per element, for nr_call.work. */
#define NANOSECONDS 1.0

/* x: logits, log-probabilities, or a gradient of losses; target: class indices. */
static int32_t check_dtypes(const char *op, const norch_tensor *x, const norch_tensor *target) {
    NR_TRY(nr_check_real(op, x));
    NR_TRY(nr_check_real(op, target));
    NR_TRY(nr_check_same_device(op, x, target));
    if (!nr_is_float(x->dtype) || target->dtype != NORCH_INT64)
        return nr_fail(NORCH_ERROR_DTYPE, "%s: expected floats and int64 targets, got %s and %s", op,
                       nr_dtypes[x->dtype].name, nr_dtypes[target->dtype].name);
    return NORCH_OK;
}

/* x (N, C) or (C), floats; target: int64 indices (N) or (). */
static int32_t check(const char *op, const norch_tensor *x, const norch_tensor *target) {
    NR_TRY(check_dtypes(op, x, target));
    if (x->ndim < 1 || x->ndim > 2 || !nr_same_shape(target->ndim, target->shape, x->ndim - 1, x->shape))
        return nr_fail(NORCH_ERROR_SHAPE, "%s: targets of shape %s for logits of shape %s", op, nr_shape_of(target),
                       nr_shape_of(x));
    return NORCH_OK;
}

/* Checks the count that the forward pass writes and backward reads: 0-d, in the dtype of wide, or NULL. */
static int32_t check_count(const char *op, const norch_tensor *wide, const norch_tensor *count) {
    return count ? nr_check_written(op, "the count", count, wide, 0, NULL) : NORCH_OK;
}

/* Checks what the forward pass saved for backward: in the wide dtype and contiguous; count may be NULL. */
static int32_t check_kept(const char *op, const norch_tensor *wide, const norch_tensor *log_sums,
                          const norch_tensor *count) {
    const int64_t shape[] = {wide->ndim == 2 ? wide->shape[0] : 1, 2};
    NR_TRY(nr_check_written(op, "the logarithms of sums", log_sums, wide, 2, shape));
    if (!log_sums->contiguous) return nr_fail(NORCH_ERROR_SHAPE, "%s: a saved tensor is not contiguous", op);
    return check_count(op, wide, count);
}

/* Fills in the operands, runs the plan, and returns out; the caller has set the options and g. */
static norch_tensor *run(nr_cross_entropy_kind kind, nr_cross_entropy_plan plan, const norch_tensor *x,
                         const norch_tensor *target, const norch_tensor *log_sums, const norch_tensor *count,
                         norch_tensor *out) {
    plan.rows = x->ndim == 2 ? x->shape[0] : 1;
    plan.n = x->shape[x->ndim - 1];
    plan.inner = 1;
    plan.x = x->data;
    plan.target = target->data;
    plan.out = out->data;
    plan.log_sums = log_sums->data;
    plan.count = count ? count->data : NULL;
    return nr_finished(out, nr_run(NR_CROSS_ENTROPY, kind, &plan, (double)x->numel * NANOSECONDS, x));
}

norch_tensor *norch_cross_entropy(const norch_tensor *x, const norch_tensor *target, const norch_tensor *log_sums,
                                  const norch_tensor *optional_count, int64_t ignored, bool reduced, double smoothing) {
    const char *op = "cross_entropy";
    if (check(op, x, target)) return NULL;
    NR_OWNED norch_tensor *wide = nr_dense(x, nr_wide(x->dtype)), *indices = nr_dense(target, NORCH_INT64);
    if (!wide || !indices || check_kept(op, wide, log_sums, optional_count)) return NULL;
    norch_tensor *out = nr_make(reduced ? 0 : target->ndim, target->shape, wide->dtype, x);
    if (!out) return NULL;
    const nr_cross_entropy_plan plan = {.ignored = ignored, .reduced = reduced, .smoothing = smoothing};
    out = run(NR_CROSS_ENTROPY_FORWARD, plan, wide, indices, log_sums, optional_count, out);
    return nr_narrowed(out, x->dtype);
}

norch_tensor *norch_cross_entropy_backward(const norch_tensor *g, const norch_tensor *x, const norch_tensor *target,
                                           const norch_tensor *log_sums, const norch_tensor *optional_count,
                                           int64_t ignored, double smoothing) {
    const char *op = "cross_entropy_backward";
    if (check(op, x, target) || nr_check_real(op, g) || nr_check_same_device(op, x, g)) return NULL;
    const bool reduced = g->ndim == 0;
    if (!reduced && !nr_same_shape(g->ndim, g->shape, target->ndim, target->shape))
        return NR_REFUSE(NORCH_ERROR_SHAPE, "%s: a gradient of shape %s for losses of shape %s", op, nr_shape_of(g),
                         nr_shape_of(target));
    NR_OWNED norch_tensor *wide = nr_dense(x, nr_wide(x->dtype)), *indices = nr_dense(target, NORCH_INT64);
    NR_OWNED norch_tensor *grad = wide ? nr_dense(g, wide->dtype) : NULL;
    if (!grad || !indices || check_kept(op, wide, log_sums, optional_count)) return NULL;
    norch_tensor *out = nr_make(x->ndim, x->shape, wide->dtype, x);
    if (out && out->numel) {
        const nr_cross_entropy_plan plan = {
            .ignored = ignored, .reduced = reduced, .smoothing = smoothing, .g = grad->data};
        out = run(NR_CROSS_ENTROPY_BACKWARD, plan, wide, indices, log_sums, optional_count, out);
    }
    return nr_narrowed(out, x->dtype);
}

/* The shape of targets: that of x without the axis of classes, which is the second or the only one. */
static int32_t shape_of_targets(int32_t ndim, const int64_t *shape, int64_t *found) {
    for (int32_t d = 0, at = 0; d < ndim; d++)
        if (d != (ndim > 1)) found[at++] = shape[d];
    return ndim - 1;
}

/* Runs on dense operands of one dtype; weight and count may be NULL. Consumes out. */
static norch_tensor *run_nll(nr_cross_entropy_kind kind, nr_cross_entropy_plan plan, const norch_tensor *operand,
                             const norch_tensor *target, const norch_tensor *weight, const norch_tensor *count,
                             norch_tensor *out) {
    plan.rows = target->numel;
    plan.inner = 1;
    for (int32_t d = 1; d < target->ndim; d++) plan.inner *= target->shape[d];
    *(kind == NR_NLL_FORWARD ? &plan.x : &plan.g) = operand->data;
    plan.target = target->data;
    plan.weight = weight ? weight->data : NULL;
    plan.count = count ? count->data : NULL;
    plan.out = out->data;
    const double elements = (double)(kind == NR_NLL_FORWARD ? target : out)->numel;
    return nr_finished(out, nr_run(NR_CROSS_ENTROPY, kind, &plan, elements * NANOSECONDS, operand));
}

/* Checks the class weights, which may be NULL. *found: dense weights in the dtype of operand, or NULL. */
static int32_t weight_of(const char *op, const norch_tensor *weight, const norch_tensor *operand, int64_t classes,
                         norch_tensor **found) {
    if (!weight) return NORCH_OK;
    NR_TRY(nr_check_real(op, weight));
    NR_TRY(nr_check_same_device(op, operand, weight));
    if (weight->ndim != 1 || weight->shape[0] != classes)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: a weight of shape %s for %lld classes", op, nr_shape_of(weight),
                       (long long)classes);
    return (*found = nr_dense(weight, operand->dtype)) ? NORCH_OK : NORCH_ERROR_MEMORY;
}

norch_tensor *norch_nll(const norch_tensor *x, const norch_tensor *target, const norch_tensor *optional_weight,
                        const norch_tensor *optional_count, int64_t ignored, bool reduced) {
    const char *op = "nll";
    int64_t shape[NORCH_MAX_DIMS];
    if (check_dtypes(op, x, target)) return NULL;
    if (x->ndim < 1 || !nr_same_shape(target->ndim, target->shape, shape_of_targets(x->ndim, x->shape, shape), shape))
        return NR_REFUSE(NORCH_ERROR_SHAPE, "%s: targets of shape %s for an input of shape %s", op, nr_shape_of(target),
                         nr_shape_of(x));
    NR_OWNED norch_tensor *wide = nr_dense(x, nr_wide(x->dtype)), *indices = nr_dense(target, NORCH_INT64);
    NR_OWNED norch_tensor *weight = NULL;
    const int64_t classes = x->shape[x->ndim > 1];
    if (!wide || !indices || check_count(op, wide, optional_count)) return NULL;
    if (weight_of(op, optional_weight, wide, classes, &weight)) return NULL;
    norch_tensor *out = nr_make(reduced ? 0 : target->ndim, target->shape, wide->dtype, x);
    if (!out) return NULL;
    const nr_cross_entropy_plan plan = {.n = classes, .ignored = ignored, .reduced = reduced};
    return nr_narrowed(run_nll(NR_NLL_FORWARD, plan, wide, indices, weight, optional_count, out), x->dtype);
}

norch_tensor *norch_nll_backward(const norch_tensor *g, const norch_tensor *target, const norch_tensor *optional_weight,
                                 const norch_tensor *optional_count, int64_t ignored, int64_t classes) {
    const char *op = "nll_backward";
    if (check_dtypes(op, g, target)) return NULL;
    const bool reduced = g->ndim == 0;
    if (target->ndim == NORCH_MAX_DIMS || classes < 0 ||
        (!reduced && !nr_same_shape(g->ndim, g->shape, target->ndim, target->shape)))
        return NR_REFUSE(NORCH_ERROR_SHAPE, "%s: a gradient of shape %s for targets of shape %s and %lld classes", op,
                         nr_shape_of(g), nr_shape_of(target), (long long)classes);
    int64_t shape[NORCH_MAX_DIMS] = {classes};
    if (target->ndim > 0) shape[0] = target->shape[0], shape[1] = classes;
    for (int32_t d = 1; d < target->ndim; d++) shape[d + 1] = target->shape[d];
    NR_OWNED norch_tensor *grad = nr_dense(g, nr_wide(g->dtype)), *indices = nr_dense(target, NORCH_INT64);
    NR_OWNED norch_tensor *weight = NULL;
    if (!grad || !indices || check_count(op, grad, optional_count)) return NULL;
    if (weight_of(op, optional_weight, grad, classes, &weight)) return NULL;
    norch_tensor *out = nr_make(target->ndim + 1, shape, grad->dtype, g);
    if (out && out->numel) {
        const nr_cross_entropy_plan plan = {.n = classes, .ignored = ignored, .reduced = reduced};
        out = run_nll(NR_NLL_BACKWARD, plan, grad, indices, weight, optional_count, out);
    }
    return nr_narrowed(out, g->dtype);
}
