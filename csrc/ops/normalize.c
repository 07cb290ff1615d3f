/* normalize: checks and plans of normalization over the last axes or over groups of channels: Ba, Kiros and Hinton,
 * "Layer Normalization" (2016); Zhang and Sennrich, "Root Mean Square Layer Normalization" (2019); Wu and He, "Group
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

/* Checks that `other` has the shape of these axes and the dtype of x; weights of 16-bit floats may be other floats. */
static int32_t check_beside(const char *op, const char *role, const norch_tensor *x, const norch_tensor *other,
                            span axes, bool is_weight) {
    NR_TRY(nr_check_real(op, other));
    const bool mixes = is_weight && nr_is_narrow(x->dtype) && nr_is_float(other->dtype);
    if (other->dtype != x->dtype && !mixes)
        return nr_fail(NORCH_ERROR_DTYPE, "%s: %s is %s, but the input is %s", op, role, nr_dtypes[other->dtype].name,
                       nr_dtypes[x->dtype].name);
    if (!nr_same_shape(other->ndim, other->shape, axes.count, x->shape + axes.first))
        return nr_fail(NORCH_ERROR_SHAPE, "%s: %s of shape %s does not fit an input of shape %s over %d axes", op, role,
                       nr_shape_of(other), nr_shape_of(x), axes.count);
    const norch_tensor *both[] = {x, other};
    return nr_check_devices(op, 2, both);
}

static int32_t check_input(const char *op, const norch_tensor *x, int64_t axes) {
    NR_TRY(nr_check_real(op, x));
    if (!nr_is_narrow(x->dtype) || !nr_is_float(x->dtype)) NR_TRY(nr_check_full_float(op, x));
    if (axes == 0 || axes > x->ndim || (axes < 0 && x->ndim < 2))
        return nr_fail(NORCH_ERROR_SHAPE, "%s: %lld axes of a tensor of %d", op, (long long)axes, x->ndim);
    if (axes < 0 && x->shape[1] % axes)
        return nr_fail(NORCH_ERROR_VALUE, "%s: %lld channels do not fall into %lld groups", op, (long long)x->shape[1],
                       (long long)-axes);
    return NORCH_OK;
}

/* The dtype in which kernels take rows of x. */
static int32_t dtype_of_rows(const norch_tensor *x) {
    return nr_needs_widening(x, NR_NORMALIZE) ? nr_wide(x->dtype) : x->dtype;
}

/* The dtype of weight and bias (or NULL) for rows of a dtype. */
static int32_t dtype_of_affine(int32_t rows, const norch_tensor *weight, const norch_tensor *bias) {
    const bool fits = (!weight || weight->dtype == rows) && (!bias || bias->dtype == rows);
    return fits ? rows : nr_wide(rows);
}

/* Runs on x, g, weight and bias (or NULL). Those that are not contiguous, or not of the kernels' dtypes, are copied. */
static int32_t run(nr_normalize_kind kind, const norch_tensor *operands[4], int64_t axes, nr_normalize_plan *plan) {
    const norch_tensor *x = operands[0];
    const span of = weighted(x, axes);
    plan->weights = plan->n = 1;
    for (int32_t i = of.first; i < x->ndim; i++) plan->n *= x->shape[i];
    for (int32_t i = 0; i < of.count; i++) plan->weights *= x->shape[of.first + i];
    plan->inner = plan->weights ? plan->n / plan->weights : 0;
    if (axes < 0) plan->n /= -axes;
    plan->rows = plan->n ? x->numel / plan->n : 0;
    norch_tensor *dense[4] = {0};
    const void **data[] = {&plan->x, &plan->g, &plan->weight, &plan->bias};
    int32_t status = NORCH_OK;
    for (int i = 0; i < 4 && status == NORCH_OK; i++) {
        if (!operands[i]) continue;
        dense[i] = nr_dense(operands[i], i < 2 ? dtype_of_rows(x) : plan->affine_dtype);
        if (dense[i])
            *data[i] = dense[i]->data;
        else
            status = norch_last_error_kind();
    }
    if (status == NORCH_OK) status = nr_run(NR_NORMALIZE, kind, plan, (double)x->numel, dense[0]);
    nr_release_all(4, dense);
    return status;
}

norch_tensor *norch_normalize(const norch_tensor *x, const norch_tensor *optional_weight,
                              const norch_tensor *optional_bias, int64_t axes, double eps, bool centered) {
    const char *op = axes < 0 ? "group_norm" : centered ? "layer_norm" : "rms_norm";
    if (check_input(op, x, axes)) return NULL;
    const span of = weighted(x, axes);
    if (optional_weight && check_beside(op, "weight", x, optional_weight, of, true)) return NULL;
    if (optional_bias && check_beside(op, "bias", x, optional_bias, of, true)) return NULL;
    const int32_t rows = dtype_of_rows(x);
    norch_tensor *out = nr_make(x->ndim, x->shape, rows, x);
    if (!out || out->numel == 0) return nr_narrowed(out, x->dtype);
    const norch_tensor *operands[] = {x, NULL, optional_weight, optional_bias};
    nr_normalize_plan plan = {.out = out->data, .eps = eps, .centered = centered};
    plan.affine_dtype = dtype_of_affine(rows, optional_weight, optional_bias);
    return nr_narrowed(nr_finished(out, run(NR_NORMALIZE_FORWARD, operands, axes, &plan)), x->dtype);
}

static int32_t check_grad(const char *op, const norch_tensor *x, const norch_tensor *grad, int32_t ndim,
                          const int64_t *shape) {
    NR_TRY(nr_check_written(op, "a gradient", grad, x, ndim, shape));
    return grad->contiguous ? NORCH_OK : nr_fail(NORCH_ERROR_SHAPE, "%s: a gradient is not contiguous", op);
}

/* Runs with gradients in the kernels' dtypes, and converts them to those of out (or NULL). */
static int32_t run_backward(const norch_tensor *operands[4], norch_tensor *const out[2], int64_t axes,
                            nr_normalize_plan *plan) {
    const int32_t dtypes[] = {dtype_of_rows(operands[0]), plan->affine_dtype};
    void **data[] = {&plan->grad_x, &plan->grad_affine};
    norch_tensor *dense[2] = {0};
    int32_t status = NORCH_OK;
    for (int i = 0; i < 2 && status == NORCH_OK; i++) {
        if (!out[i]) continue;
        dense[i] =
            out[i]->dtype == dtypes[i] ? nr_retained(out[i]) : nr_make(out[i]->ndim, out[i]->shape, dtypes[i], out[i]);
        if (dense[i])
            *data[i] = dense[i]->data;
        else
            status = norch_last_error_kind();
    }
    if (status == NORCH_OK) status = run(NR_NORMALIZE_BACKWARD, operands, axes, plan);
    for (int i = 0; i < 2 && status == NORCH_OK; i++)
        if (out[i] && dense[i]->storage != out[i]->storage) status = nr_copy_into(out[i], dense[i]);
    nr_release_all(2, dense);
    return status;
}

int32_t norch_normalize_backward(const norch_tensor *g, const norch_tensor *x, const norch_tensor *optional_weight,
                                 int64_t axes, double eps, bool centered, int64_t n, const void *grads) {
    const char *op = "normalize_backward";
    norch_tensor *const *out = grads;
    NR_TRY(check_input(op, x, axes));
    const span of = weighted(x, axes);
    NR_TRY(check_beside(op, "gradient", x, g, (span){0, x->ndim}, false));
    if (optional_weight) NR_TRY(check_beside(op, "weight", x, optional_weight, of, true));
    if (n != 1 && n != 2)
        return nr_fail(NORCH_ERROR_VALUE, "%s: %lld gradients to write, not 1 or 2", op, (long long)n);
    NR_TRY(check_grad(op, x, out[0], x->ndim, x->shape));
    norch_tensor *const both[] = {out[0], n == 2 ? out[1] : NULL};
    if (n == 2) {
        int64_t shape[NORCH_MAX_DIMS + 1] = {2};
        for (int32_t i = 0; i < of.count; i++) shape[1 + i] = x->shape[of.first + i];
        norch_tensor wide = *x; /* the second is checked against its dtype */
        if (nr_is_narrow(x->dtype) && out[1]->dtype != x->dtype) wide.dtype = nr_wide(x->dtype);
        NR_TRY(check_grad(op, &wide, out[1], of.count + 1, shape));
    }
    const norch_tensor *operands[] = {x, g, optional_weight, NULL};
    nr_normalize_plan plan = {.eps = eps, .centered = centered};
    plan.affine_dtype = dtype_of_affine(dtype_of_rows(x), optional_weight, both[1]);
    return run_backward(operands, both, axes, &plan);
}
