/* sample: checks and plans of sampling images at coordinates, and of the gradients. */
#include "../families/sample.h"
#include "ops.h"

static const char op[] = "grid_sample";

/* The plan for images in the shape of x. */
static int32_t make_plan(const norch_tensor *x, const norch_tensor *grid, int64_t mode, int64_t padding, bool corners,
                         nr_sample_plan *plan) {
    NR_TRY(nr_check_tensor(op, x));
    NR_TRY(nr_check_tensor(op, grid));
    NR_TRY(nr_check_full_float(op, x));
    NR_TRY(nr_check_same_device(op, x, grid));
    const int32_t axes = x->ndim - 2;
    bool fits = (axes == 2 || axes == 3) && grid->ndim == x->ndim && grid->dtype == x->dtype &&
                grid->shape[0] == x->shape[0] && grid->shape[axes + 1] == axes;
    for (int32_t d = 0; d < axes && fits; d++) fits = x->shape[2 + d] > 0;
    if (!fits)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: images of shape %s and dtype %s, a grid of shape %s and dtype %s", op,
                       nr_shape_of(x), nr_dtypes[x->dtype].name, nr_shape_of(grid), nr_dtypes[grid->dtype].name);
    if (mode < 0 || mode > NORCH_SAMPLE_BICUBIC || padding < 0 || padding > NORCH_SAMPLE_REFLECTION ||
        (mode == NORCH_SAMPLE_BICUBIC && axes != 2))
        return nr_fail(NORCH_ERROR_VALUE, "%s: mode %lld and padding %lld of %d axes", op, (long long)mode,
                       (long long)padding, axes);
    if (x->device_type == NORCH_CUDA)
        return nr_fail(NORCH_ERROR_DEVICE, "%s: %s has no kernel for it", op, nr_device_name(x));
    *plan = (nr_sample_plan){.images = x->shape[0], .channels = x->shape[1], .points = 1, .axes = axes};
    plan->mode = mode;
    plan->padding = padding;
    plan->corners = corners;
    double area = 1;
    for (int32_t d = 0; d < axes; d++) {
        plan->size[d] = x->shape[2 + d];
        plan->points *= grid->shape[1 + d];
        area *= (double)x->shape[2 + d];
    }
    if (x->dtype == NORCH_FLOAT32 && area >= 0x1p31)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: images of shape %s have more than 2147483647 elements a channel", op,
                       nr_shape_of(x));
    return NORCH_OK;
}

static int32_t run(nr_sample_kind kind, nr_sample_plan *plan, const norch_tensor *written) {
    const double taps = plan->mode == NORCH_SAMPLE_NEAREST ? 1 : plan->mode == NORCH_SAMPLE_BICUBIC ? 16 : 4;
    const double each = taps * ((double)plan->channels + 4);
    return nr_run(NR_SAMPLE, kind, plan, each * (double)plan->images * (double)plan->points, written);
}

norch_tensor *norch_grid_sample(const norch_tensor *x, const norch_tensor *grid, int64_t mode, int64_t padding,
                                bool corners) {
    nr_sample_plan plan;
    if (make_plan(x, grid, mode, padding, corners, &plan)) return NULL;
    int64_t shape[NORCH_MAX_DIMS] = {x->shape[0], x->shape[1]};
    for (int32_t d = 2; d < x->ndim; d++) shape[d] = grid->shape[d - 1];
    if (nr_check_shape(op, x->ndim, shape)) return NULL;
    NR_OWNED norch_tensor *from = nr_dense(x, x->dtype), *at = from ? nr_dense(grid, x->dtype) : NULL;
    norch_tensor *y = at ? nr_make(x->ndim, shape, x->dtype, x) : NULL;
    if (!y || !y->numel) return y;
    plan.x = from->data;
    plan.grid = at->data;
    plan.y = y->data;
    return nr_finished(y, run(NR_SAMPLE_FORWARD, &plan, y));
}

int32_t norch_grid_sample_backward(const norch_tensor *g, const norch_tensor *x, const norch_tensor *grid, int64_t mode,
                                   int64_t padding, bool corners, norch_tensor *optional_of_x,
                                   norch_tensor *optional_of_grid) {
    nr_sample_plan plan;
    NR_TRY(make_plan(x, grid, mode, padding, corners, &plan));
    int64_t shape[NORCH_MAX_DIMS] = {x->shape[0], x->shape[1]};
    for (int32_t d = 2; d < x->ndim; d++) shape[d] = grid->shape[d - 1];
    NR_TRY(nr_check_written(op, "the gradient", g, x, x->ndim, shape));
    norch_tensor *const written[] = {optional_of_x, optional_of_grid};
    const norch_tensor *const like[] = {x, grid};
    for (int i = 0; i < 2; i++) {
        if (!written[i]) continue;
        NR_TRY(nr_check_written(op, "a gradient", written[i], x, like[i]->ndim, like[i]->shape));
        if (!written[i]->contiguous)
            return nr_fail(NORCH_ERROR_SHAPE, "%s: the tensor of a gradient is not contiguous", op);
    }
    NR_OWNED norch_tensor *from = nr_dense(x, x->dtype), *at = from ? nr_dense(grid, x->dtype) : NULL;
    NR_OWNED norch_tensor *slopes = at ? nr_dense(g, x->dtype) : NULL;
    if (!slopes) return norch_last_error_kind();
    plan.grid = at->data;
    plan.y = slopes->data;
    if (optional_of_x && optional_of_x->numel) {
        plan.x = optional_of_x->data;
        NR_TRY(run(NR_SAMPLE_INPUT, &plan, optional_of_x));
    }
    if (!optional_of_grid || !optional_of_grid->numel) return NORCH_OK;
    plan.x = from->data;
    plan.slope = optional_of_grid->data;
    return run(NR_SAMPLE_GRID, &plan, optional_of_grid);
}
