/* plan: see plan.h. */
#include "plan.h"

#include <stdbool.h>
#include "dtype.h"
#include "shape.h"

static void swap_loops(int64_t *size, int operands, int64_t (*stride)[NORCH_MAX_DIMS], int32_t i, int32_t j) {
    int64_t keep = size[i];
    size[i] = size[j];
    size[j] = keep;
    for (int o = 0; o < operands; o++) {
        keep = stride[o][i];
        stride[o][i] = stride[o][j];
        stride[o][j] = keep;
    }
}

/* Whether loop i belongs inside loop j. The first operand whose strides differ decides. */
static bool belongs_inside(int operands, int64_t (*stride)[NORCH_MAX_DIMS], int32_t i, int32_t j) {
    for (int o = 0; o < operands; o++) {
        int64_t a = stride[o][i] < 0 ? -stride[o][i] : stride[o][i];
        int64_t b = stride[o][j] < 0 ? -stride[o][j] : stride[o][j];
        if (a == b || a == 0 || b == 0)
            continue; /* a broadcast operand does not decide: stride 0 is fast in any loop */
        return a < b;
    }
    return false;
}

int32_t nr_nest_collapse(int32_t ndim, int64_t *size, int operands, int64_t (*stride)[NORCH_MAX_DIMS], int keep_order) {
    if (!keep_order)
        for (int32_t i = 1; i < ndim; i++) /* insertion sort: few loops, nearly sorted */
            for (int32_t j = i; j > 0 && belongs_inside(operands, stride, j, j - 1); j--)
                swap_loops(size, operands, stride, j, j - 1);
    int32_t dims = 0;
    for (int32_t i = 0; i < ndim; i++) {
        if (size[i] == 1) continue;
        bool joins = dims > 0;
        for (int o = 0; o < operands && joins; o++) joins = stride[o][i] == stride[o][dims - 1] * size[dims - 1];
        if (joins) {
            size[dims - 1] *= size[i];
            continue;
        }
        size[dims] = size[i];
        for (int o = 0; o < operands; o++) stride[o][dims] = stride[o][i];
        dims++;
    }
    return dims;
}

static void lay_out(nr_plan *plan, int32_t ndim, const int64_t *shape, int operands, const norch_tensor *const *xs,
                    int keep_order) {
    plan->operands = operands;
    plan->numel = 1;
    for (int o = 0; o < operands; o++) plan->data[o] = xs[o]->data;

    bool plain = true; /* fast path: all dense with one shape, or one element */
    for (int o = 0; o < operands && plain; o++) {
        bool dense = xs[o]->contiguous && nr_same_shape(xs[o]->ndim, xs[o]->shape, ndim, shape);
        plan->stride[o][0] = dense ? nr_size_of(xs[o]->dtype) : 0;
        plain = dense || (o > 0 && xs[o]->numel == 1);
    }
    if (plain) {
        plan->ndim = 1;
        plan->numel = plan->size[0] = xs[0]->numel;
        return;
    }
    for (int32_t d = 0; d < ndim; d++) {
        int32_t from = ndim - 1 - d;
        plan->size[d] = shape[from];
        plan->numel *= shape[from];
        for (int o = 0; o < operands; o++) {
            int32_t axis = xs[o]->ndim - 1 - d;
            bool moves = axis >= 0 && xs[o]->shape[axis] != 1;
            plan->stride[o][d] = moves ? xs[o]->strides[axis] * nr_size_of(xs[o]->dtype) : 0;
        }
    }
    plan->ndim = nr_nest_collapse(ndim, plan->size, operands, plan->stride, keep_order);
    if (plan->ndim == 0) { /* one element */
        plan->ndim = 1;
        plan->size[0] = 1;
        for (int o = 0; o < operands; o++) plan->stride[o][0] = 0;
    }
}

void nr_plan_make(nr_plan *plan, int32_t ndim, const int64_t *shape, int operands, const norch_tensor *const *xs) {
    lay_out(plan, ndim, shape, operands, xs, 0);
}

void nr_plan_in_order(nr_plan *plan, int32_t ndim, const int64_t *shape, int operands, const norch_tensor *const *xs) {
    lay_out(plan, ndim, shape, operands, xs, 1);
}
