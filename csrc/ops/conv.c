/* conv: checks, shapes and plans of convolutions over two axes, and of their adjoints with respect to input and weight.
 * norch/ops/conv.py adds an axis of size 1 for one-dimensional ones, and handles padding modes. */
#include "../families/conv.h"
#include "ops.h"

#define OPERATIONS_PER_NS 10.0
#define GEOMETRY_LIMIT ((int64_t)1 << 31)
#define AREA_LIMIT 1e15
#define FEW_CHANNELS 16

static int32_t check(const char *op, const norch_tensor *a, const norch_tensor *b, const norch_tensor *bias) {
    const norch_tensor *all[] = {a, b, bias};
    for (int i = 0; i < (bias ? 3 : 2); i++) {
        NR_TRY(nr_check_real(op, all[i]));
        int32_t wanted = i == 2 ? 1 : 4;
        if (all[i]->ndim != wanted)
            return nr_fail(NORCH_ERROR_SHAPE, "%s: expected %d dimensions, got shape %s", op, wanted,
                           nr_shape_of(all[i]));
        if (all[i]->dtype != a->dtype)
            return nr_fail(NORCH_ERROR_DTYPE, "%s: expected all to have the same dtype, but got %s and %s", op,
                           nr_dtypes[a->dtype].name, nr_dtypes[all[i]->dtype].name);
    }
    if (!nr_is_narrow(a->dtype) || !nr_is_float(a->dtype)) NR_TRY(nr_check_full_float(op, a));
    return nr_check_devices(op, bias ? 3 : 2, all);
}

/* Whether the operands are float16 or bfloat16 and no kernel takes these, or a group of x or y has so few channels that
 * the CPU's float32 is faster. Then wide gets them in float32 (NULL: an error is set); narrow_result() releases them. */
static bool widens(norch_tensor **wide, const norch_tensor *a, const norch_tensor *b, const norch_tensor *bias,
                   int64_t groups, int64_t in, int64_t y_channels) {
    const bool few = groups > 1 && (in < FEW_CHANNELS || y_channels / groups < FEW_CHANNELS);
    if (!nr_needs_widening(a, NR_CONV) && !(few && a->device_type == NORCH_CPU && nr_is_narrow(a->dtype))) return false;
    wide[0] = nr_widened(a);
    wide[1] = wide[0] ? nr_widened(b) : NULL;
    wide[2] = wide[1] && bias ? nr_widened(bias) : NULL;
    if (bias && !wide[2]) nr_release(wide[1]), wide[1] = NULL;
    return true;
}

/* Releases the wide operands and converts their result `out` back to dtype. */
static norch_tensor *narrow_result(norch_tensor *const *wide, norch_tensor *out, int32_t dtype) {
    nr_release_all(3, wide);
    return nr_narrowed(out, dtype);
}

/* Reads the geometry into the plan, whose batch, channels, size and kernel are set; computes the output size. */
static int32_t read_geometry(const char *op, const int64_t *geometry, nr_conv_plan *plan) {
    double area = 1;
    for (int d = 0; d < 2; d++) {
        plan->stride[d] = geometry[d];
        plan->padding[d] = geometry[2 + d];
        plan->dilation[d] = geometry[6 + d];
        int64_t after = geometry[4 + d], k = plan->kernel[d];
        if (plan->stride[d] < 1 || plan->dilation[d] < 1 || plan->stride[d] > GEOMETRY_LIMIT ||
            plan->dilation[d] > GEOMETRY_LIMIT)
            return nr_fail(NORCH_ERROR_VALUE, "%s: stride %lld and dilation %lld must be positive", op,
                           (long long)plan->stride[d], (long long)plan->dilation[d]);
        /* padding at the end may be negative: it crops */
        if (plan->padding[d] < 0 || plan->padding[d] > GEOMETRY_LIMIT || after < -plan->size[d] ||
            after > GEOMETRY_LIMIT)
            return nr_fail(NORCH_ERROR_VALUE, "%s: negative (or enormous) padding %lld", op,
                           (long long)(plan->padding[d] < 0 ? plan->padding[d] : after));
        if (k < 1 || k > GEOMETRY_LIMIT)
            return nr_fail(NORCH_ERROR_SHAPE, "%s: a kernel of size %lld", op, (long long)k);
        int64_t span = (k - 1) * plan->dilation[d] + 1, padded = plan->size[d] + plan->padding[d] + after;
        if (padded < span)
            return nr_fail(NORCH_ERROR_SHAPE, "%s: a kernel that spans %lld does not fit the padded size %lld", op,
                           (long long)span, (long long)padded);
        plan->result[d] = (padded - span) / plan->stride[d] + 1;
        if (plan->result[d] == 1) plan->stride[d] = 1; /* so that equal calls have equal plans */
        area *= (double)(padded + 1);
    }
    if (area > AREA_LIMIT) return nr_fail(NORCH_ERROR_SHAPE, "%s: a padded plane of %g elements", op, area);
    if (plan->groups < 1) return nr_fail(NORCH_ERROR_VALUE, "%s: groups is %lld", op, (long long)plan->groups);
    return NORCH_OK;
}

/* Checks that channels == groups * each. */
static int32_t check_channels(const char *op, const char *role, int64_t channels, int64_t groups, int64_t each) {
    if (groups >= 1 && each >= 1 && channels == groups * each) return NORCH_OK;
    return nr_fail(NORCH_ERROR_SHAPE, "%s: %lld %s channels are not %lld groups of %lld", op, (long long)channels, role,
                   (long long)groups, (long long)each);
}

static int32_t check_result(const char *op, const nr_conv_plan *plan, const norch_tensor *y) {
    if (y->shape[2] == plan->result[0] && y->shape[3] == plan->result[1]) return NORCH_OK;
    return nr_fail(NORCH_ERROR_SHAPE, "%s: size (%lld, %lld) would come from shape %s, but makes (%lld, %lld)", op,
                   (long long)plan->size[0], (long long)plan->size[1], nr_shape_of(y), (long long)plan->result[0],
                   (long long)plan->result[1]);
}

/* Makes the output, copies operands that are not contiguous, and runs the plan. */
static norch_tensor *run(nr_conv_plan *plan, nr_conv_kind kind, const norch_tensor *a, const norch_tensor *b,
                         const norch_tensor *bias, const int64_t *shape) {
    norch_tensor *copies[3], *out = nr_make(4, shape, a->dtype, a);
    if (!out || out->numel == 0) return out;
    const norch_tensor *dense[] = {a, b, bias};
    if (nr_make_dense(3, dense, copies)) return nr_finished(out, NORCH_ERROR_MEMORY);
    plan->bias = bias ? dense[2]->data : NULL;
    plan->x = kind == NR_CONV_INPUT ? out->data : dense[0]->data;
    plan->y = kind == NR_CONV_FORWARD ? out->data : dense[kind == NR_CONV_INPUT ? 0 : 1]->data;
    plan->weight = kind == NR_CONV_WEIGHT ? out->data : dense[1]->data;
    double work = 2.0 / OPERATIONS_PER_NS * (double)plan->batch * (double)(plan->groups * plan->out) *
                  (double)plan->in * (double)(plan->kernel[0] * plan->kernel[1]) *
                  (double)(plan->result[0] * plan->result[1]);
    int32_t status = nr_run(NR_CONV, kind, plan, work, out);
    nr_release_all(3, copies);
    return nr_finished(out, status);
}

static int32_t check_bias(const char *op, const norch_tensor *bias, int64_t channels) {
    if (!bias || bias->shape[0] == channels) return NORCH_OK;
    return nr_fail(NORCH_ERROR_SHAPE, "%s: a bias of size %lld for %lld channels", op, (long long)bias->shape[0],
                   (long long)channels);
}

norch_tensor *norch_conv(const norch_tensor *x, const norch_tensor *weight, const norch_tensor *optional_bias,
                         int64_t count, const int64_t *geometry) {
    const char *op = "conv";
    norch_tensor *wide[3];
    if (check(op, x, weight, optional_bias) || nr_check_numbers(op, 9, count)) return NULL;
    if (widens(wide, x, weight, optional_bias, geometry[8], weight->shape[1], weight->shape[0]))
        return narrow_result(wide, wide[1] ? norch_conv(wide[0], wide[1], wide[2], count, geometry) : NULL, x->dtype);
    nr_conv_plan plan = {.batch = x->shape[0], .groups = geometry[8], .in = weight->shape[1]};
    if (check_channels(op, "input", x->shape[1], plan.groups, plan.in)) return NULL;
    plan.out = weight->shape[0] / plan.groups;
    if (check_channels(op, "output", weight->shape[0], plan.groups, plan.out)) return NULL;
    for (int d = 0; d < 2; d++) plan.size[d] = x->shape[2 + d], plan.kernel[d] = weight->shape[2 + d];
    if (read_geometry(op, geometry, &plan) || check_bias(op, optional_bias, weight->shape[0])) return NULL;
    const int64_t shape[] = {plan.batch, weight->shape[0], plan.result[0], plan.result[1]};
    return run(&plan, NR_CONV_FORWARD, x, weight, optional_bias, shape);
}

norch_tensor *norch_conv_input(const norch_tensor *y, const norch_tensor *weight, const norch_tensor *optional_bias,
                               int64_t count, const int64_t *geometry, int64_t axes, const int64_t *size) {
    const char *op = "conv_transpose";
    norch_tensor *wide[3];
    if (check(op, y, weight, optional_bias) || nr_check_numbers(op, 9, count) || nr_check_numbers(op, 2, axes))
        return NULL;
    if (widens(wide, y, weight, optional_bias, geometry[8], weight->shape[1], y->shape[1])) {
        norch_tensor *out = wide[1] ? norch_conv_input(wide[0], wide[1], wide[2], count, geometry, axes, size) : NULL;
        return narrow_result(wide, out, y->dtype);
    }
    nr_conv_plan plan = {.batch = y->shape[0], .groups = geometry[8], .in = weight->shape[1]};
    if (plan.groups >= 1) plan.out = weight->shape[0] / plan.groups;
    if (check_channels(op, "weight", weight->shape[0], plan.groups, plan.out)) return NULL;
    if (check_channels(op, "input", y->shape[1], plan.groups, plan.out)) return NULL;
    if (check_channels(op, "output", plan.groups * plan.in, plan.groups, plan.in)) return NULL;
    for (int d = 0; d < 2; d++) {
        plan.size[d] = size[d], plan.kernel[d] = weight->shape[2 + d];
        if (size[d] < 0 || size[d] > GEOMETRY_LIMIT * 16)
            return NR_REFUSE(NORCH_ERROR_SHAPE, "%s: an output of size %lld", op, (long long)size[d]);
    }
    if (read_geometry(op, geometry, &plan) || check_result(op, &plan, y)) return NULL;
    if (check_bias(op, optional_bias, plan.groups * plan.in)) return NULL;
    const int64_t shape[] = {plan.batch, plan.groups * plan.in, size[0], size[1]};
    if (nr_check_shape(op, 4, shape)) return NULL;
    return run(&plan, NR_CONV_INPUT, y, weight, optional_bias, shape);
}

/* Sums y over all axes except channels, for a backend whose kernel does not do so. */
static int32_t sum_channels(const norch_tensor *y, norch_tensor *sums) {
    const int64_t dims[] = {0, 2, 3};
    NR_OWNED norch_tensor *found = norch_reduce(NR_OP_sum, y, 3, dims, 0, -1, 0);
    return found ? norch_copy(sums, found) : NORCH_ERROR_MEMORY;
}

norch_tensor *norch_conv_weight(const norch_tensor *x, const norch_tensor *y, int64_t count, const int64_t *geometry,
                                int64_t axes, const int64_t *kernel, norch_tensor *optional_sums) {
    const char *op = "conv_weight";
    if (check(op, x, y, NULL) || nr_check_numbers(op, 9, count) || nr_check_numbers(op, 2, axes)) return NULL;
    nr_conv_plan plan = {.batch = x->shape[0], .groups = geometry[8]};
    if (x->shape[0] != y->shape[0])
        return NR_REFUSE(NORCH_ERROR_SHAPE, "%s: batches of %lld and %lld", op, (long long)x->shape[0],
                         (long long)y->shape[0]);
    if (plan.groups >= 1) plan.in = x->shape[1] / plan.groups, plan.out = y->shape[1] / plan.groups;
    if (check_channels(op, "input", x->shape[1], plan.groups, plan.in)) return NULL;
    if (check_channels(op, "output", y->shape[1], plan.groups, plan.out)) return NULL;
    for (int d = 0; d < 2; d++) plan.size[d] = x->shape[2 + d], plan.kernel[d] = kernel[d];
    if (read_geometry(op, geometry, &plan) || check_result(op, &plan, y)) return NULL;
    const int64_t shape[] = {y->shape[1], plan.in, kernel[0], kernel[1]};
    if (nr_check_shape(op, 4, shape)) return NULL;
    if (optional_sums) {
        if (nr_check_written(op, "sums", optional_sums, y, 1, &y->shape[1])) return NULL;
        if (!optional_sums->contiguous) return NR_REFUSE(NORCH_ERROR_SHAPE, "%s: sums are not contiguous", op);
        if (y->device_type == NORCH_CPU && !nr_is_narrow(y->dtype))
            plan.sums = optional_sums->data;
        else if (sum_channels(y, optional_sums))
            return NULL;
    }
    norch_tensor *wide[3];
    if (widens(wide, x, y, NULL, plan.groups, plan.in, y->shape[1])) {
        norch_tensor *out = wide[1] ? norch_conv_weight(wide[0], wide[1], count, geometry, axes, kernel, NULL) : NULL;
        return narrow_result(wide, out, x->dtype);
    }
    return run(&plan, NR_CONV_WEIGHT, x, y, NULL, shape);
}
