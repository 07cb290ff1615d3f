/* normalize: checks and plans of normalisation over the last axes or groups of channels: Ba, Kiros and Hinton, "Layer
 * Normalization" (2016); Zhang and Sennrich, "Root Mean Square Layer Normalization" (2019); Wu and He, "Group
 * Normalization" (2018). */
#include "../families/normalize.h"
#include "ops.h"

/* The axes of x that weight and bias have, `count` from `first` on: the last ones, or (axes < 0) the channels, which
 * form -axes groups. */
typedef struct span {
    int32_t first, count;
} span;

static span weighted(const norch_tensor *x, int64_t axes) {
    return axes < 0 ? (span){1, 1} : (span){x->ndim - (int32_t)axes, (int32_t)axes};
}

/* Checks that `other` has the dtype of x and the shape of these axes. */
static int32_t check_beside(const char *op, const char *what, const norch_tensor *x, const norch_tensor *other,
                            span axes) {
    NR_TRY(nr_check_real(op, other));
    if (other->dtype != x->dtype)
        return nr_fail(NORCH_ERROR_DTYPE, "%s: %s is %s, but the input is %s", op, what, nr_dtypes[other->dtype].name,
                       nr_dtypes[x->dtype].name);
    if (!nr_same_shape(other->ndim, other->shape, axes.count, x->shape + axes.first))
        return nr_fail(NORCH_ERROR_SHAPE, "%s: %s of shape %s does not fit an input of shape %s over %d axes", op, what,
                       nr_shape_of(other), nr_shape_of(x), axes.count);
    const norch_tensor *both[] = {x, other};
    return nr_check_devices(op, 2, both);
}

static int32_t check_input(const char *op, const norch_tensor *x, int64_t axes) {
    NR_TRY(nr_check_real(op, x));
    NR_TRY(nr_check_full_float(op, x));
    if (axes == 0 || axes > x->ndim || (axes < 0 && x->ndim < 2))
        return nr_fail(NORCH_ERROR_SHAPE, "%s: %lld axes of a tensor of %d", op, (long long)axes, x->ndim);
    if (axes < 0 && x->shape[1] % axes)
        return nr_fail(NORCH_ERROR_VALUE, "%s: %lld channels do not fall into %lld groups", op, (long long)x->shape[1],
                       (long long)-axes);
    return NORCH_OK;
}

/* Copies those of x, g, weight and bias (or NULL) that are not contiguous, and runs. */
static int32_t run(nr_normalize_kind kind, const norch_tensor *operands[4], int64_t axes, nr_normalize_plan *plan) {
    const norch_tensor *x = operands[0];
    const span of = weighted(x, axes);
    plan->weights = plan->n = 1;
    for (int32_t i = of.first; i < x->ndim; i++) plan->n *= x->shape[i];
    for (int32_t i = 0; i < of.count; i++) plan->weights *= x->shape[of.first + i];
    plan->inner = plan->weights ? plan->n / plan->weights : 0;
    if (axes < 0) plan->n /= -axes;
    plan->rows = plan->n ? x->numel / plan->n : 0;
    norch_tensor *copies[4];
    NR_TRY(nr_make_dense(4, operands, copies));
    const void **data[] = {&plan->x, &plan->g, &plan->weight, &plan->bias};
    for (int i = 0; i < 4; i++)
        if (operands[i]) *data[i] = operands[i]->data;
    int32_t status = nr_run(NR_NORMALIZE, kind, plan, (double)x->numel, x);
    nr_release_all(4, copies);
    return status;
}

norch_tensor *norch_normalize(const norch_tensor *x, const norch_tensor *optional_weight,
                              const norch_tensor *optional_bias, int64_t axes, double eps, bool centered) {
    const char *op = axes < 0 ? "group_norm" : centered ? "layer_norm" : "rms_norm";
    if (check_input(op, x, axes)) return NULL;
    const span of = weighted(x, axes);
    if (optional_weight && check_beside(op, "weight", x, optional_weight, of)) return NULL;
    if (optional_bias && check_beside(op, "bias", x, optional_bias, of)) return NULL;
    norch_tensor *out = nr_make(x->ndim, x->shape, x->dtype, x);
    if (!out || out->numel == 0) return out;
    const norch_tensor *operands[] = {x, NULL, optional_weight, optional_bias};
    nr_normalize_plan plan = {.out = out->data, .eps = eps, .centered = centered};
    return nr_finished(out, run(NR_NORMALIZE_FORWARD, operands, axes, &plan));
}

static int32_t check_grad(const char *op, const norch_tensor *x, const norch_tensor *grad, int32_t ndim,
                          const int64_t *shape) {
    NR_TRY(nr_check_written(op, "a gradient", grad, x, ndim, shape));
    return grad->contiguous ? NORCH_OK : nr_fail(NORCH_ERROR_SHAPE, "%s: a gradient is not contiguous", op);
}

int32_t norch_normalize_backward(const norch_tensor *g, const norch_tensor *x, const norch_tensor *optional_weight,
                                 int64_t axes, double eps, bool centered, int64_t n, const void *grads) {
    const char *op = "normalize_backward";
    norch_tensor *const *out = grads;
    NR_TRY(check_input(op, x, axes));
    const span of = weighted(x, axes);
    NR_TRY(check_beside(op, "gradient", x, g, (span){0, x->ndim}));
    if (optional_weight) NR_TRY(check_beside(op, "weight", x, optional_weight, of));
    if (n != 1 && n != 2)
        return nr_fail(NORCH_ERROR_VALUE, "%s: %lld gradients to write, not 1 or 2", op, (long long)n);
    NR_TRY(check_grad(op, x, out[0], x->ndim, x->shape));
    nr_normalize_plan plan = {.grad_x = out[0]->data, .eps = eps, .centered = centered};
    if (n == 2) {
        int64_t shape[NORCH_MAX_DIMS + 1] = {2};
        for (int32_t i = 0; i < of.count; i++) shape[1 + i] = x->shape[of.first + i];
        NR_TRY(check_grad(op, x, out[1], of.count + 1, shape));
        plan.grad_affine = out[1]->data;
    }
    const norch_tensor *operands[] = {x, g, optional_weight, NULL};
    return run(NR_NORMALIZE_BACKWARD, operands, axes, &plan);
}
