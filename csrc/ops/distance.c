/* distance: checks and plans of distances between rows, and of their gradients. */
#include <math.h>

#include "../families/distance.h"
#include "ops.h"

static const char op[] = "distances";

/* Nanoseconds per difference, for nr_call.work. */
#define NANOSECONDS 0.2

/* The plan for a (..., rows, width) and b (..., columns, width). */
static int32_t make_plan(const norch_tensor *a, const norch_tensor *b, double p, nr_distance_plan *plan) {
    NR_TRY(nr_check_tensor(op, a));
    NR_TRY(nr_check_tensor(op, b));
    NR_TRY(nr_check_full_float(op, a));
    NR_TRY(nr_check_same_device(op, a, b));
    const int32_t lead = a->ndim - 2;
    if (lead < 0 || b->ndim != a->ndim || b->dtype != a->dtype || !nr_same_shape(lead, a->shape, lead, b->shape) ||
        a->shape[lead + 1] != b->shape[lead + 1])
        return nr_fail(NORCH_ERROR_SHAPE, "%s: rows of shape %s and dtype %s, and of %s and %s", op, nr_shape_of(a),
                       nr_dtypes[a->dtype].name, nr_shape_of(b), nr_dtypes[b->dtype].name);
    if (p != 1 && p != 2 && p != (double)INFINITY)
        return nr_fail(NORCH_ERROR_VALUE, "%s: there is no kernel for the norm of order %g", op, p);
    if (a->device_type == NORCH_CUDA)
        return nr_fail(NORCH_ERROR_DEVICE, "%s: %s has no kernel for it", op, nr_device_name(a));
    *plan = (nr_distance_plan){.batch = 1, .rows = a->shape[lead], .columns = b->shape[lead]};
    plan->width = a->shape[lead + 1];
    plan->norm = p == (double)INFINITY ? 0 : (int64_t)p;
    for (int32_t d = 0; d < lead; d++) plan->batch *= a->shape[d];
    return NORCH_OK;
}

/* Runs on dense operands, and returns out. */
static norch_tensor *run(nr_distance_kind kind, nr_distance_plan *plan, const norch_tensor *a, const norch_tensor *b,
                         const norch_tensor *weight, norch_tensor *out) {
    if (!out || !out->numel) return out;
    plan->a = a->data;
    plan->b = b->data;
    plan->weight = weight ? weight->data : NULL;
    plan->out = out->data;
    const double differences = (double)plan->batch * (double)plan->rows * (double)plan->columns;
    return nr_finished(out,
                       nr_run(NR_DISTANCE, kind, plan, differences * ((double)plan->width + 8) * NANOSECONDS, out));
}

norch_tensor *norch_distances(const norch_tensor *a, const norch_tensor *optional_b, double p) {
    const norch_tensor *b = optional_b ? optional_b : a;
    nr_distance_plan plan;
    if (make_plan(a, b, p, &plan)) return NULL;
    int64_t shape[NORCH_MAX_DIMS];
    const int32_t lead = a->ndim - 2, ndim = optional_b ? a->ndim : a->ndim - 1;
    for (int32_t d = 0; d < lead; d++) shape[d] = a->shape[d];
    shape[lead] = plan.rows;
    shape[lead + 1] = plan.columns;
    if (nr_check_shape(op, a->ndim, shape)) return NULL; /* also the pairs: empty rows may be very many */
    if (!optional_b) shape[lead] = plan.rows * (plan.rows - 1) / 2;
    NR_OWNED norch_tensor *from = nr_dense(a, a->dtype), *to = from && optional_b ? nr_dense(b, a->dtype) : NULL;
    if (!from || (optional_b && !to)) return NULL;
    return run(optional_b ? NR_DISTANCE_FORWARD : NR_DISTANCE_PAIRS, &plan, from, to ? to : from, NULL,
               nr_make(ndim, shape, a->dtype, a));
}

norch_tensor *norch_distances_backward(const norch_tensor *weight, const norch_tensor *a, const norch_tensor *b,
                                       double p) {
    nr_distance_plan plan;
    if (make_plan(a, b, p, &plan)) return NULL;
    int64_t shape[NORCH_MAX_DIMS];
    const int32_t lead = a->ndim - 2;
    for (int32_t d = 0; d <= lead; d++) shape[d] = a->shape[d];
    shape[lead + 1] = plan.columns;
    if (nr_check_written(op, "the weights", weight, a, a->ndim, shape)) return NULL;
    if (plan.norm == 0) return NR_REFUSE(NORCH_ERROR_VALUE, "%s: the largest has no kernel for its gradient", op);
    NR_OWNED norch_tensor *from = nr_dense(a, a->dtype), *to = from ? nr_dense(b, a->dtype) : NULL;
    NR_OWNED norch_tensor *factors = to ? nr_dense(weight, a->dtype) : NULL;
    if (!factors) return NULL;
    return run(NR_DISTANCE_BACKWARD, &plan, from, to, factors, nr_make(a->ndim, a->shape, a->dtype, a));
}
