/* batch_norm: checks and plans of batch normalization and its derivatives (Ioffe and Szegedy, "Batch Normalization",
 * 2015, section 3). Operands that are not contiguous are copied. */
#include "../families/batch_norm.h"
#include "ops.h"

/* Nanoseconds per element, for nr_call.work. */
#define NANOSECONDS 2.0

/* x (N, C, ...) is float32 or float64; the others have its dtype and device and the shape (C), or are NULL. */
static int32_t check(const char *op, const norch_tensor *x, int n, const norch_tensor *const *others) {
    NR_TRY(nr_check_real(op, x));
    NR_TRY(nr_check_full_float(op, x));
    if (x->ndim < 2)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: expected 2 or more dimensions, got shape %s", op, nr_shape_of(x));
    for (int i = 0; i < n; i++)
        if (others[i]) {
            NR_TRY(nr_check_real(op, others[i]));
            NR_TRY(nr_check_written(op, "a tensor of the channels", others[i], x, 1, x->shape + 1));
        }
    return NORCH_OK;
}

static int32_t run(nr_batch_norm_kind kind, nr_batch_norm_plan *plan, const norch_tensor *operands[4]) {
    const norch_tensor *x = operands[0];
    plan->batch = x->shape[0];
    plan->channels = x->shape[1];
    plan->inner = 1;
    for (int32_t i = 2; i < x->ndim; i++) plan->inner *= x->shape[i];
    norch_tensor *copies[4];
    NR_TRY(nr_make_dense(4, operands, copies));
    const void **data[] = {&plan->x, &plan->g, &plan->weight, &plan->bias};
    for (int i = 0; i < 4; i++)
        if (operands[i]) *data[i] = operands[i]->data;
    int32_t status = nr_run(NR_BATCH_NORM, kind, plan, (double)x->numel * NANOSECONDS, x);
    nr_release_all(4, copies);
    return status;
}

/* Statistics are read and written in place, not copied. */
static int32_t check_contiguous(const char *op, int n, const norch_tensor *const *xs) {
    for (int i = 0; i < n; i++)
        if (xs[i] && !xs[i]->contiguous)
            return nr_fail(NORCH_ERROR_SHAPE, "%s: statistics of the channels are not contiguous", op);
    return NORCH_OK;
}

norch_tensor *norch_batch_norm(const norch_tensor *x, const norch_tensor *optional_mean,
                               const norch_tensor *optional_variance, const norch_tensor *optional_running_mean,
                               const norch_tensor *optional_running_variance, const norch_tensor *optional_weight,
                               const norch_tensor *optional_bias, double momentum, double eps) {
    const char *op = "batch_norm";
    const norch_tensor *statistics[] = {optional_mean, optional_variance, optional_running_mean,
                                        optional_running_variance};
    const norch_tensor *const parameters[] = {optional_weight, optional_bias};
    if (check(op, x, 4, statistics) || check(op, x, 2, parameters) || check_contiguous(op, 4, statistics)) return NULL;
    const bool training = optional_mean && optional_variance;
    if (!training && !(optional_running_mean && optional_running_variance))
        return NR_REFUSE(NORCH_ERROR_VALUE, "%s: no mean and variance to write, nor running ones to read", op);
    norch_tensor *out = nr_make(x->ndim, x->shape, x->dtype, x);
    if (!out || out->numel == 0) return out;
    void *data[4] = {NULL};
    for (int i = 0; i < 4; i++)
        if (statistics[i]) data[i] = statistics[i]->data;
    nr_batch_norm_plan plan = {.out = out->data, .momentum = momentum, .eps = eps};
    plan.mean = data[training ? 0 : 2];
    plan.variance = data[training ? 1 : 3];
    if (training) {
        plan.running_mean = data[2];
        plan.running_variance = data[3];
    }
    const norch_tensor *operands[] = {x, NULL, optional_weight, optional_bias};
    return nr_finished(out, run(training ? NR_BATCH_NORM_TRAINING : NR_BATCH_NORM_EVALUATION, &plan, operands));
}

int32_t norch_batch_norm_backward(const norch_tensor *g, const norch_tensor *x, const norch_tensor *mean,
                                  const norch_tensor *variance, const norch_tensor *optional_weight, double eps,
                                  bool training, int64_t n, const void *grads) {
    const char *op = "batch_norm_backward";
    norch_tensor *const *out = grads;
    const norch_tensor *const statistics[] = {mean, variance};
    NR_TRY(check(op, x, 2, statistics));
    NR_TRY(check(op, x, 1, &optional_weight));
    NR_TRY(check_contiguous(op, 2, statistics));
    NR_TRY(nr_check_real(op, g));
    NR_TRY(nr_check_written(op, "the gradient", g, x, x->ndim, x->shape));
    if (n != 2) return nr_fail(NORCH_ERROR_VALUE, "%s: %lld gradients to write, not 2", op, (long long)n);
    const int64_t sums[] = {2, x->shape[1]};
    NR_TRY(nr_check_written(op, "a gradient", out[0], x, x->ndim, x->shape));
    NR_TRY(nr_check_written(op, "a gradient", out[1], x, 2, sums));
    if (!out[0]->contiguous || !out[1]->contiguous)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: a gradient is not contiguous", op);
    nr_batch_norm_plan plan = {.grad_x = out[0]->data, .grad_affine = out[1]->data, .eps = eps};
    plan.mean = mean->data;
    plan.variance = variance->data;
    const norch_tensor *operands[] = {x, g, optional_weight, NULL};
    return run(training ? NR_BATCH_NORM_TRAINING_BACKWARD : NR_BATCH_NORM_EVALUATION_BACKWARD, &plan, operands);
}
