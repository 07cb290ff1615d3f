/* normalize: what normalising the last axes means: which shapes and dtypes go together. The formulas of the derivatives are
 * those of Ba, Kiros and Hinton, "Layer Normalization" (2016), and Zhang and Sennrich (2019) for the mean square alone. */
#include "../core/call.h"

/* other: of the dtype of x, and of its shape, or of that of its last axes alone. */
static int32_t check_beside(const char *op, const char *what, const norch_tensor *x, const norch_tensor *other,
                            int32_t axes) {
    char a[NR_SHAPE_TEXT], b[NR_SHAPE_TEXT];
    NR_TRY(nr_check_tensor(op, other));
    if (other->dtype != x->dtype)
        return nr_fail(NORCH_ERROR_DTYPE, "%s: %s is %s, but the input is %s", op, what, nr_dtypes[other->dtype].name,
                       nr_dtypes[x->dtype].name);
    if (!nr_same_shape(other->ndim, other->shape, axes, x->shape + x->ndim - axes))
        return nr_fail(NORCH_ERROR_SHAPE, "%s: %s of shape %s does not fit an input of shape %s over %d axes", op, what,
                       nr_shape_of(a, other), nr_shape_of(b, x), axes);
    const norch_tensor *both[] = {x, other};
    return nr_check_devices(op, 2, both);
}

static int32_t check_input(const char *op, const norch_tensor *x, int64_t axes) {
    NR_TRY(nr_check_tensor(op, x));
    if (x->dtype != NORCH_FLOAT32 && x->dtype != NORCH_FLOAT64)
        return nr_fail(NORCH_ERROR_DTYPE, "%s: not defined for dtype %s; convert to float32 or float64 first", op,
                       nr_dtypes[x->dtype].name);
    if (axes < 1 || axes > x->ndim)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: %lld axes of a tensor of %d", op, (long long)axes, x->ndim);
    return NORCH_OK;
}

/* Runs over contiguous copies where operands are not contiguous. given: x, g, weight, bias. */
static norch_tensor *run(nr_normalize_kind kind, const norch_tensor *const given[4], int64_t axes, double eps,
                         int64_t centered) {
    const norch_tensor *x = given[0];
    int64_t shape[NORCH_MAX_DIMS + 1] = {2};
    for (int32_t i = 0; i < axes; i++) shape[1 + i] = x->shape[x->ndim - axes + i];
    if (kind == NR_NORMALIZE_WEIGHT && axes == NORCH_MAX_DIMS) {
        nr_fail(NORCH_ERROR_SHAPE, "norm: at most %d axes", NORCH_MAX_DIMS - 1);
        return NULL;
    }
    bool sums = kind == NR_NORMALIZE_WEIGHT;
    norch_tensor *out = nr_make(sums ? (int32_t)axes + 1 : x->ndim, sums ? shape : x->shape, x->dtype, x);
    if (!out || out->numel == 0) return out;
    nr_normalize_plan plan = {.n = 1, .out = out->data, .eps = eps, .centered = centered};
    for (int32_t i = 0; i < axes; i++) plan.n *= shape[1 + i];
    plan.rows = x->numel / plan.n;
    norch_tensor *dense[4] = {NULL, NULL, NULL, NULL};
    const void *data[4];
    bool good = true;
    for (int i = 0; i < 4 && good; i++) {
        if (given[i] && !given[i]->contiguous) good = (dense[i] = norch_clone(given[i])) != NULL;
        data[i] = dense[i] ? dense[i]->data : given[i] ? given[i]->data : NULL;
    }
    if (good) {
        plan.x = data[0], plan.g = data[1], plan.weight = data[2], plan.bias = data[3];
        nr_call call = {
            .family = NR_NORMALIZE, .op = (int32_t)kind, .dtype = x->dtype, .from_dtype = x->dtype, .plan = &plan};
        call.work = (double)x->numel;
        good = nr_gate(&call, out) == NORCH_OK;
    }
    for (int i = 0; i < 4; i++) nr_release(dense[i]);
    if (good) return out;
    nr_release(out);
    return NULL;
}

norch_tensor *norch_normalize(const norch_tensor *x, const norch_tensor *optional_weight,
                              const norch_tensor *optional_bias, int64_t axes, double eps, int64_t centered) {
    const char *op = centered ? "layer_norm" : "rms_norm";
    if (check_input(op, x, axes)) return NULL;
    if (optional_weight && check_beside(op, "weight", x, optional_weight, (int32_t)axes)) return NULL;
    if (optional_bias && check_beside(op, "bias", x, optional_bias, (int32_t)axes)) return NULL;
    const norch_tensor *given[] = {x, NULL, optional_weight, optional_bias};
    return run(NR_NORMALIZE_FORWARD, given, axes, eps, centered);
}

norch_tensor *norch_normalize_input(const norch_tensor *g, const norch_tensor *x, const norch_tensor *optional_weight,
                                    int64_t axes, double eps, int64_t centered) {
    const char *op = "normalize_input";
    if (check_input(op, x, axes) || check_beside(op, "gradient", x, g, x->ndim)) return NULL;
    if (optional_weight && check_beside(op, "weight", x, optional_weight, (int32_t)axes)) return NULL;
    const norch_tensor *given[] = {x, g, optional_weight, NULL};
    return run(NR_NORMALIZE_INPUT, given, axes, eps, centered);
}

norch_tensor *norch_normalize_weight(const norch_tensor *g, const norch_tensor *x, int64_t axes, double eps,
                                     int64_t centered) {
    const char *op = "normalize_weight";
    if (check_input(op, x, axes) || check_beside(op, "gradient", x, g, x->ndim)) return NULL;
    const norch_tensor *given[] = {x, g, NULL, NULL};
    return run(NR_NORMALIZE_WEIGHT, given, axes, eps, centered);
}
