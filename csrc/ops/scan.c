/* scan: cumsum, cumprod, cummax and cummin along an axis. Kernels exist for int64, float32 and float64. Other dtypes
 * are widened, which preserves the order of values and the low bits of integers. */
#include "../families/scan.h"
#include "axis.h"

norch_tensor *nr_scannable(const norch_tensor *x) {
    if (nr_is_float(x->dtype)) return nr_widened(x);
    return x->dtype == NORCH_INT64 ? nr_retained(x) : norch_cast(x, NORCH_INT64);
}

void nr_nest_without(nr_plan *nest, int32_t axis, int operands, const norch_tensor *const *xs) {
    norch_tensor flat[NR_MAX_OPERANDS];
    const norch_tensor *all[NR_MAX_OPERANDS];
    for (int o = 0; o < operands; o++) {
        flat[o] = *xs[o];
        if (axis < flat[o].ndim) flat[o].shape[axis] = 1;
        flat[o].numel = 1;
        for (int32_t d = 0; d < flat[o].ndim; d++) flat[o].numel *= flat[o].shape[d];
        flat[o].contiguous = 0;
        all[o] = &flat[o];
    }
    nr_plan_make(nest, flat[0].ndim, flat[0].shape, operands, all);
}

int64_t nr_step(const norch_tensor *x, int32_t axis) { return x->ndim ? x->strides[axis] * nr_size_of(x->dtype) : 0; }

static norch_tensor *scan(int32_t kind, const norch_tensor *x, int32_t axis, bool reverse, norch_tensor *values) {
    bool places = kind == NORCH_SCAN_MAX || kind == NORCH_SCAN_MIN;
    norch_tensor *out = nr_make(x->ndim, x->shape, places ? NORCH_INT64 : x->dtype, x);
    if (!out || out->numel == 0) return out;
    nr_scan_plan plan = {.n = x->ndim ? x->shape[axis] : 1, .step = {nr_step(out, axis), nr_step(x, axis)}};
    plan.values = values ? values->data : NULL;
    nr_nest_without(&plan.nest, axis, 2, (const norch_tensor *[]){out, x});
    for (int o = 0; o < 2 && reverse; o++) {
        plan.nest.data[o] += (plan.n - 1) * plan.step[o];
        plan.step[o] = -plan.step[o];
    }
    double cost = kind == NORCH_SCAN_LOGSUMEXP ? 30.0 : 1.0;
    return nr_finished(out, nr_run(NR_SCAN, kind, &plan, cost * (double)x->numel, x));
}

norch_tensor *norch_scan(int64_t kind, const norch_tensor *x, int64_t dim, bool reverse) {
    static const char *const names[] = {"cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"};
    if (kind < 0 || kind > NORCH_SCAN_MIN)
        return NR_REFUSE(NORCH_ERROR_VALUE, "scan: %lld is not a kind of scan", (long long)kind);
    int32_t axis;
    if (nr_check_real(names[kind], x) || nr_check_axis(names[kind], dim, x->ndim, &axis)) return NULL;
    if (kind == NORCH_SCAN_LOGSUMEXP && !nr_is_float(x->dtype))
        return NR_REFUSE(NORCH_ERROR_DTYPE, "logcumsumexp: %s input; convert it to a floating dtype first",
                         nr_dtypes[x->dtype].name);
    NR_OWNED norch_tensor *wide = nr_scannable(x);
    if (!wide) return NULL;
    norch_tensor *out = scan((int32_t)kind, wide, axis, reverse && kind <= NORCH_SCAN_LOGSUMEXP, NULL);
    return out && nr_is_float(out->dtype) ? nr_narrowed(out, x->dtype) : out;
}

norch_tensor *norch_scan_extreme(const norch_tensor *x, int64_t dim, bool least, norch_tensor *values) {
    const char *op = least ? "cummin" : "cummax";
    int32_t axis;
    if (nr_check_real(op, x) || nr_check_axis(op, dim, x->ndim, &axis) ||
        nr_check_written(op, "values", values, x, x->ndim, x->shape))
        return NULL;
    NR_OWNED norch_tensor *wide = nr_scannable(x);
    if (!wide) return NULL;
    const int32_t kind = least ? NORCH_SCAN_MIN : NORCH_SCAN_MAX;
    if (x->device_type != NORCH_CUDA && wide->dtype == x->dtype && values->contiguous && !norch_overlaps(values, x))
        return scan(kind, wide, axis, false, values);
    norch_tensor *index = scan(kind, wide, axis, false, NULL);
    NR_OWNED norch_tensor *taken = index ? norch_gather(x, dim, index) : NULL;
    return nr_finished(index, taken ? nr_copy_into(values, taken) : NORCH_ERROR_MEMORY);
}
