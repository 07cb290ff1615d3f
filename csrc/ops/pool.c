/* pool: checks and plans of max and average pooling over the last two axes, and of their gradients. norch/ops/pool.py
 * computes the output size (rounding down or up); each window must contain an element of x. */
#include "../families/pool.h"
#include "ops.h"

#define WINDOW_LIMIT ((int64_t)1 << 31)

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int32_t check_floats(const char *op, const norch_tensor *x) {
    NR_TRY(nr_check_real(op, x));
    if (x->ndim < 2)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: expected 2 or more dimensions, got shape %s", op, nr_shape_of(x));
    return nr_check_full_float(op, x);
}

/* Reads the window into the plan, for planes like those of `like`. */
static int32_t read_window(const char *op, const norch_tensor *like, const int64_t *window, nr_pool_plan *plan) {
    const bool divides = window[2] == 0 && window[3] == 0;
    plan->planes = 1;
    for (int32_t i = 0; i < like->ndim - 2; i++) plan->planes *= like->shape[i];
    for (int d = 0; d < 2; d++) {
        int64_t k = plan->kernel[d] = window[d], s = plan->stride[d] = window[2 + d],
                p = plan->padding[d] = window[4 + d];
        int64_t dilation = plan->dilation[d] = window[6 + d], result = plan->result[d] = window[8 + d];
        if (k < 1 || s < !divides || dilation < 1 || p < 0 || k > WINDOW_LIMIT || s > WINDOW_LIMIT ||
            dilation > WINDOW_LIMIT)
            return nr_fail(NORCH_ERROR_VALUE, "%s: kernel size %lld, stride %lld, padding %lld or dilation %lld", op,
                           (long long)k, (long long)s, (long long)p, (long long)dilation);
        if (p > k / 2)
            return nr_fail(NORCH_ERROR_VALUE, "%s: padding %lld is more than half of kernel size %lld", op,
                           (long long)p, (long long)k);
        /* positions in a window are 32-bit */
        if (result < 1 || (result > WINDOW_LIMIT && !divides) || (result - 1) * s - p >= plan->size[d] ||
            (double)least(k * dilation, plan->size[0] + p) * (double)plan->size[1] >= (double)WINDOW_LIMIT)
            return nr_fail(NORCH_ERROR_SHAPE, "%s: windows of %lld at stride %lld do not fit size %lld", op,
                           (long long)k, (long long)s, (long long)plan->size[d]);
    }
    return NORCH_OK;
}

/* Makes the output, with the planes of `like` in the given size, copies x if it is not contiguous, and runs the plan.
 * */
static norch_tensor *run(nr_pool_plan *plan, nr_pool_kind kind, const norch_tensor *like, const int64_t size[2]) {
    int64_t shape[NORCH_MAX_DIMS];
    for (int32_t i = 0; i < like->ndim - 2; i++) shape[i] = like->shape[i];
    shape[like->ndim - 2] = size[0];
    shape[like->ndim - 1] = size[1];
    if (nr_check_shape("pool", like->ndim, shape)) return NULL;
    norch_tensor *out = nr_make(like->ndim, shape, like->dtype, like);
    if (!out || out->numel == 0) return out;
    for (int d = 0; d < 2; d++) /* positions of windows that divide a plane are 64-bit */
        if ((double)plan->size[d] * (double)plan->result[d] >= 0x1p62)
            return nr_finished(out, nr_fail(NORCH_ERROR_SHAPE, "pool: %lld windows do not divide size %lld",
                                            (long long)plan->result[d], (long long)plan->size[d]));
    NR_OWNED norch_tensor *dense = nr_dense(like, like->dtype);
    if (!dense) return nr_finished(out, NORCH_ERROR_MEMORY);
    bool forward = kind == NR_POOL_MAX || kind == NR_POOL_AVG;
    const bool by_rows =
        plan->stride[1] == 0 || (plan->kernel[0] == 1 && plan->stride[0] == 1 && plan->padding[0] == 0);
    if (by_rows && plan->result[0] == plan->size[0] && !plan->index) { /* separate planes, for threads */
        plan->planes *= plan->size[0];
        plan->size[0] = plan->result[0] = 1;
    }
    plan->x = forward ? dense->data : out->data;
    plan->y = forward ? out->data : dense->data;
    const double elements = (double)(like->numel > out->numel ? like->numel : out->numel);
    return nr_finished(out, nr_run(NR_POOL, kind, plan, 2.0 * elements, out));
}

/* Checks that x, the gradient of a result, has the result's size. */
static int32_t check_gradient(const char *op, const norch_tensor *x, const nr_pool_plan *plan) {
    if (plan->result[0] == x->shape[x->ndim - 2] && plan->result[1] == x->shape[x->ndim - 1]) return NORCH_OK;
    return nr_fail(NORCH_ERROR_SHAPE, "%s: shape %s is not that of the windows, (%lld, %lld)", op, nr_shape_of(x),
                   (long long)plan->result[0], (long long)plan->result[1]);
}

/* Checks that an index is dense, has the result's size for the planes of x, and can hold positions in them. */
static int32_t check_index(const char *op, const norch_tensor *index, const norch_tensor *x, const nr_pool_plan *plan) {
    NR_TRY(nr_check_real(op, index));
    if ((double)plan->size[0] * (double)plan->size[1] >= (double)WINDOW_LIMIT)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: planes of (%lld, %lld) have more elements than 2147483647", op,
                       (long long)plan->size[0], (long long)plan->size[1]);
    bool fits = index->ndim == x->ndim && index->dtype == NORCH_INT32 && index->contiguous;
    for (int32_t i = 0; i < x->ndim && fits; i++)
        fits = index->shape[i] == (i < x->ndim - 2 ? x->shape[i] : plan->result[i - x->ndim + 2]);
    if (fits) return nr_check_same_device(op, x, index);
    return nr_fail(NORCH_ERROR_SHAPE, "%s: indices of shape %s and dtype %s do not fit", op, nr_shape_of(index),
                   nr_dtypes[index->dtype].name);
}

norch_tensor *norch_pool_max(const norch_tensor *x, int64_t count, const int64_t *window, norch_tensor *index) {
    const char *op = "max_pool";
    if (check_floats(op, x) || nr_check_numbers(op, 10, count)) return NULL;
    nr_pool_plan plan = {.size = {x->shape[x->ndim - 2], x->shape[x->ndim - 1]}};
    if (read_window(op, x, window, &plan) || check_index(op, index, x, &plan)) return NULL;
    plan.index = index->data;
    return run(&plan, NR_POOL_MAX, x, plan.result);
}

norch_tensor *norch_pool_max_backward(const norch_tensor *x, const norch_tensor *index, int64_t count,
                                      const int64_t *window, int64_t axes, const int64_t *size) {
    const char *op = "max_pool_backward";
    if (check_floats(op, x) || nr_check_numbers(op, 10, count) || nr_check_numbers(op, 2, axes)) return NULL;
    nr_pool_plan plan = {.size = {size[0], size[1]}};
    if (nr_check_tensor(op, index)) return NULL;
    NR_OWNED norch_tensor *dense = nr_dense(index, index->dtype); /* vmap repeats the index for all samples */
    if (!dense || read_window(op, x, window, &plan) || check_gradient(op, x, &plan) || check_index(op, dense, x, &plan))
        return NULL;
    plan.index = dense->data;
    return run(&plan, NR_POOL_MAX_BACKWARD, x, size);
}

norch_tensor *norch_pool_avg(const norch_tensor *x, int64_t count, const int64_t *window, bool count_padding,
                             double divisor) {
    const char *op = "avg_pool";
    if (check_floats(op, x) || nr_check_numbers(op, 10, count)) return NULL;
    nr_pool_plan plan = {.size = {x->shape[x->ndim - 2], x->shape[x->ndim - 1]}};
    plan.count_padding = count_padding;
    plan.divisor = divisor;
    if (read_window(op, x, window, &plan)) return NULL;
    return run(&plan, NR_POOL_AVG, x, plan.result);
}

norch_tensor *norch_pool_avg_backward(const norch_tensor *x, int64_t count, const int64_t *window, bool count_padding,
                                      double divisor, int64_t axes, const int64_t *size) {
    const char *op = "avg_pool_backward";
    if (check_floats(op, x) || nr_check_numbers(op, 10, count) || nr_check_numbers(op, 2, axes)) return NULL;
    nr_pool_plan plan = {.size = {size[0], size[1]}};
    plan.count_padding = count_padding;
    plan.divisor = divisor;
    if (read_window(op, x, window, &plan)) return NULL;
    if (check_gradient(op, x, &plan)) return NULL;
    return run(&plan, NR_POOL_AVG_BACKWARD, x, size);
}
