/* quantized: checks and plans of products with 8-bit and 4-bit integer weights. The number of scales in a row
 * determines the group size: groups are powers of two, at least a block, so that no two sizes give the same number. */
#include "../families/quantized.h"
#include "ops.h"

#define OPERATIONS_PER_NS 20.0 /* per core, for nr_call.work */

/* Reads weight and scale, for rows of k integers, into the plan. */
static int32_t read_weight(const char *op, const norch_tensor *weight, const norch_tensor *scale, int64_t k,
                           nr_quantized_plan *plan) {
    NR_TRY(nr_check_tensor(op, weight));
    NR_TRY(nr_check_real(op, scale));
    NR_TRY(nr_check_same_device(op, weight, scale));
    if (weight->dtype != NORCH_INT8 && weight->dtype != NORCH_UINT8)
        return nr_fail(NORCH_ERROR_DTYPE, "%s: a weight of dtype int8 (8 bits) or uint8 (4 bits), not %s", op,
                       nr_dtypes[weight->dtype].name);
    *plan = (nr_quantized_plan){.k = k, .bits = weight->dtype == NORCH_INT8 ? 8 : 4};
    const int64_t blocks = nr_quantized_blocks(plan), bytes = blocks * NR_QUANTIZED_BLOCK * plan->bits / 8;
    if (weight->ndim != 2 || weight->shape[1] != bytes)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: %lld columns in %d bits are a weight of shape (rows, %lld), not %s", op,
                       (long long)k, plan->bits, (long long)bytes, nr_shape_of(weight));
    plan->n = weight->shape[0];
    if (!nr_is_float(scale->dtype))
        return nr_fail(NORCH_ERROR_DTYPE, "%s: scales are floats, not %s", op, nr_dtypes[scale->dtype].name);
    if (scale->ndim != 2 || scale->shape[0] != plan->n)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: scales of shape %s for a weight of %lld rows", op, nr_shape_of(scale),
                       (long long)plan->n);
    plan->groups = scale->shape[1];
    while (plan->shift < 62 && (blocks - 1) >> plan->shift >= plan->groups) plan->shift++;
    if (plan->groups < 1 || (plan->groups > 1 && (blocks - 1) >> plan->shift != plan->groups - 1))
        return nr_fail(NORCH_ERROR_SHAPE, "%s: %lld scales a row for %lld columns, in groups of a power of two from %d",
                       op, (long long)plan->groups, (long long)k, NR_QUANTIZED_BLOCK);
    return NORCH_OK;
}

/* Runs the plan on dense operands; x and bias are NULL when only the weight is wanted. */
static norch_tensor *run(nr_quantized_plan *plan, nr_quantized_kind kind, const norch_tensor *x,
                         const norch_tensor *weight, const norch_tensor *scale, const norch_tensor *bias,
                         norch_tensor *out) {
    if (!out || out->numel == 0) return out;
    NR_OWNED norch_tensor *integers = nr_dense(weight, weight->dtype);
    NR_OWNED norch_tensor *scales = integers ? nr_dense(scale, NORCH_FLOAT32) : NULL;
    NR_OWNED norch_tensor *input = scales && x ? nr_dense(x, NORCH_FLOAT32) : NULL;
    NR_OWNED norch_tensor *added = input && bias ? nr_dense(bias, NORCH_FLOAT32) : NULL;
    if (!scales || (x && !input) || (bias && !added)) return nr_finished(out, NORCH_ERROR_MEMORY);
    plan->weight = integers->data;
    plan->scale = scales->data;
    plan->x = input ? input->data : NULL;
    plan->bias = added ? added->data : NULL;
    plan->y = out->data;
    const double work = (double)plan->m * (double)plan->n * (double)(plan->k + 1) / OPERATIONS_PER_NS;
    return nr_finished(out, nr_run(NR_QUANTIZED, kind, plan, work, out));
}

norch_tensor *norch_quantized_linear(const norch_tensor *x, const norch_tensor *weight, const norch_tensor *scale,
                                     const norch_tensor *bias, bool dynamic) {
    const char *op = "quantized_linear";
    if (nr_check_real(op, x)) return NULL;
    if (!nr_is_float(x->dtype) || x->dtype == NORCH_FLOAT64)
        return NR_REFUSE(NORCH_ERROR_DTYPE, "%s: computes in float32, not %s", op, nr_dtypes[x->dtype].name);
    if (x->ndim == 0) return NR_REFUSE(NORCH_ERROR_SHAPE, "%s: the input needs at least 1 dimension", op);
    nr_quantized_plan plan;
    if (read_weight(op, weight, scale, x->shape[x->ndim - 1], &plan) || nr_check_same_device(op, x, weight))
        return NULL;
    if (bias && (nr_check_real(op, bias) || nr_check_same_device(op, x, bias))) return NULL;
    if (bias && (bias->ndim != 1 || bias->shape[0] != plan.n || !nr_is_float(bias->dtype)))
        return NR_REFUSE(NORCH_ERROR_SHAPE, "%s: the bias needs shape (%lld,) and a dtype of floats, not %s, %s", op,
                         (long long)plan.n, nr_shape_of(bias), nr_dtypes[bias->dtype].name);
    int64_t shape[NORCH_MAX_DIMS];
    plan.m = 1;
    for (int32_t d = 0; d < x->ndim - 1; d++) plan.m *= shape[d] = x->shape[d];
    shape[x->ndim - 1] = plan.n;
    if (nr_check_shape(op, x->ndim, shape)) return NULL;
    norch_tensor *out = nr_make(x->ndim, shape, NORCH_FLOAT32, x);
    const nr_quantized_kind kind = dynamic ? NR_QUANTIZED_DYNAMIC : NR_QUANTIZED_LINEAR;
    return nr_narrowed(run(&plan, kind, x, weight, scale, bias, out), x->dtype);
}

norch_tensor *norch_quantized_weight(const norch_tensor *weight, const norch_tensor *scale, int64_t columns) {
    const char *op = "quantized_weight";
    nr_quantized_plan plan;
    if (columns < 0) return NR_REFUSE(NORCH_ERROR_SHAPE, "%s: %lld columns", op, (long long)columns);
    if (read_weight(op, weight, scale, columns, &plan)) return NULL;
    const int64_t shape[2] = {plan.n, columns};
    plan.m = 1;
    if (nr_check_shape(op, 2, shape)) return NULL;
    norch_tensor *out = nr_make(2, shape, NORCH_FLOAT32, weight);
    return run(&plan, NR_QUANTIZED_WEIGHT, NULL, weight, scale, NULL, out);
}
