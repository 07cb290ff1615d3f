/* reduce: the reductions of ops.def: axes, dtypes, empty axes, and a plan of two loop nests. The backend has the loops.
 * */
#include <string.h>

#include "../families/reduce.h"
#include "ops.h"

/* A bit for each axis of x. */
typedef uint32_t axis_set;

static bool has(axis_set axes, int32_t axis) { return (axes >> axis & 1) != 0; }

static int32_t find_axes(const char *op, const norch_tensor *x, int64_t count, const int64_t *dims, axis_set *axes) {
    *axes = 0;
    if (count <= 0) { /* an empty tuple means all, as in PyTorch */
        *axes = (1u << x->ndim) - 1;
        return NORCH_OK;
    }
    for (int64_t i = 0; i < count; i++) {
        int32_t axis;
        if (!nr_axis(dims[i], x->ndim, &axis))
            return nr_fail(NORCH_ERROR_INDEX, "%s: axis %lld is out of range for %d dimensions", op, (long long)dims[i],
                           x->ndim);
        if (has(*axes, axis)) return nr_fail(NORCH_ERROR_VALUE, "%s: axis %d appears twice", op, axis);
        *axes |= 1u << axis;
    }
    if (x->ndim == 0) *axes = 0;
    return NORCH_OK;
}

/* Makes the plan's two nests: over the kept axes, of x and out, and over the reduced axes, of x. */
static void make_plan(nr_reduce_plan *plan, const norch_tensor *x, axis_set axes, norch_tensor *out, bool keep_order) {
    int64_t size_in = nr_size_of(x->dtype), step_out = nr_size_of(out->dtype);
    int64_t stride[2][NORCH_MAX_DIMS]; /* x first: the larger operand determines the loop order */
    nr_plan *kept = &plan->kept;
    kept->ndim = plan->ndim = 0;
    kept->data[0] = out->data;
    kept->data[1] = x->data;
    kept->numel = plan->count = 1;
    for (int32_t axis = x->ndim - 1; axis >= 0; axis--) {
        int64_t size = x->shape[axis];
        if (has(axes, axis)) {
            plan->count *= size;
            plan->size[plan->ndim] = size;
            plan->stride[plan->ndim++] = x->strides[axis] * size_in;
        } else {
            kept->numel *= size;
            kept->size[kept->ndim] = size;
            stride[0][kept->ndim] = x->strides[axis] * size_in;
            stride[1][kept->ndim++] = step_out;
            step_out *= size;
        }
    }
    kept->ndim = nr_nest_collapse(kept->ndim, kept->size, 2, stride, 0);
    for (int32_t d = 0; d < kept->ndim; d++) {
        kept->stride[0][d] = stride[1][d];
        kept->stride[1][d] = stride[0][d];
    }
    plan->ndim = nr_nest_collapse(plan->ndim, plan->size, 1, &plan->stride, keep_order);
    if (kept->ndim == 0) {
        kept->ndim = 1;
        kept->size[0] = 1;
        kept->stride[0][0] = kept->stride[1][0] = 0;
    }
    if (plan->ndim == 0 || plan->count == 0) { /* at most one element */
        plan->ndim = 1;
        plan->size[0] = plan->count;
        plan->stride[0] = 0;
    }
    kept->operands = plan->count ? 2 : 1; /* the address of no elements means nothing */
}

/* Approximate nanoseconds per element. */
static double cost(int32_t op) {
    switch (op) {
    case NR_OP_var:
    case NR_OP_std:
    case NR_OP_argmax:
    case NR_OP_argmin: return 0.5;
    default: return 0.2;
    }
}

/* Reduces x, of a dtype that the row has kernels for, over axes to a tensor of this shape. */
static norch_tensor *reduce(int32_t op, const norch_tensor *x, axis_set axes, int32_t ndim, const int64_t *shape,
                            double param) {
    const nr_op_row *row = &nr_ops[op];
    int32_t dtype = x->dtype;
    if (row->result == NR_TRUTH) dtype = NORCH_BOOL;
    if (row->result == NR_INDEX || (row->result == NR_SUM && !nr_is_float(dtype))) dtype = NORCH_INT64;
    norch_tensor *out = nr_make(ndim, shape, dtype, x);
    if (!out || out->numel == 0) return out;
    if (row->result == NR_INDEX && out->numel == x->numel) { /* argmax or argmin of single elements: 0 */
        norch_tensor *zeros = norch_full_like(out, -1, 0, 0);
        nr_release(out);
        return zeros;
    }
    nr_reduce_plan plan;
    make_plan(&plan, x, axes, out, row->result == NR_INDEX);
    plan.param = param;
    double work = cost(op) * (double)x->numel + 2.0 * (double)out->numel;
    return nr_finished(out, nr_run(NR_REDUCTION, op, &plan, work, x));
}

/* Reductions without an identity refuse an axis of size 0. */
static int32_t check_not_empty(int32_t op, const norch_tensor *x, axis_set axes, bool all) {
    bool has_identity = nr_ops[op].result != NR_INDEX && op != NR_OP_amax && op != NR_OP_amin;
    if (has_identity || x->numel > 0) return NORCH_OK;
    for (int32_t axis = 0; axis < x->ndim; axis++)
        if (has(axes, axis) && x->shape[axis] == 0) {
            bool value = all && nr_ops[op].result != NR_INDEX; /* as PyTorch's exceptions differ */
            return nr_fail(value ? NORCH_ERROR_VALUE : NORCH_ERROR_INDEX,
                           "%s: expected a non-empty axis, but axis %d of shape %s has size 0", nr_ops[op].name, axis,
                           nr_shape_of(x));
        }
    return NORCH_OK;
}

/* The dtype that the kernel computes on. */
static int32_t find_dtype(const nr_op_row *row, int32_t op, int32_t dtype, int32_t *compute) {
    *compute = row->result == NR_FLOAT && !nr_is_float(dtype) ? nr_default_dtype : dtype;
    if (nr_in_domain(op, *compute)) return NORCH_OK;
    const char *advice = row->domain == NR_DOMAIN_F ? "; convert it to a floating dtype first" : " is not supported";
    return nr_fail(NORCH_ERROR_DTYPE, "%s: %s input%s", row->name, nr_dtypes[dtype].name, advice);
}

/* ---- complex numbers ----------------------------------------------------------------------------- */

/* Reduces the real and imaginary parts of complex x over its axes, and, if `both`, over the axis of the parts too. */
static norch_tensor *reduce_parts(int32_t op, const norch_tensor *x, int64_t count, const int64_t *dims, bool keepdim,
                                  bool both, double param) {
    const char *name = nr_ops[op].name;
    axis_set axes;
    if (find_axes(name, x, count, dims, &axes)) return NULL;
    int64_t of_parts[NORCH_MAX_DIMS], n = 0;
    for (int32_t axis = 0; axis < x->ndim; axis++)
        if (has(axes, axis)) of_parts[n++] = axis;
    NR_OWNED norch_tensor *parts = norch_view_as_real(x);
    if (!parts) return NULL;
    NR_OWNED norch_tensor *out = n ? norch_reduce(op, parts, n, of_parts, keepdim, -1, param) : norch_clone(parts);
    if (!out || !both) return out ? norch_retain(out) : NULL;
    const int64_t axis = out->ndim - 1;
    return norch_reduce(op == NR_OP_var ? NR_OP_sum : NR_OP_norm, out, 1, &axis, false, -1, 0);
}

/* The sum or mean of all elements of a contiguous x: first down the columns of a matrix with rows of up to 32 numbers,
 * which vectorizes, then of the remaining row. */
static norch_tensor *reduce_rows(int32_t op, const norch_tensor *x) {
    const int64_t width = (x->numel & -x->numel) < 32 ? x->numel & -x->numel : 32, axis = 0;
    const int64_t rows[] = {x->numel / width, 2 * width}, row[] = {width, 2};
    NR_OWNED norch_tensor *parts = norch_view_as_real(x);
    NR_OWNED norch_tensor *wide = parts ? nr_make_view(parts, 2, rows, (const int64_t[]){2 * width, 1}, 0) : NULL;
    NR_OWNED norch_tensor *sums = wide ? norch_reduce(op, wide, 1, &axis, false, -1, 0) : NULL;
    NR_OWNED norch_tensor *pairs = sums ? nr_make_view(sums, 2, row, (const int64_t[]){2, 1}, 0) : NULL;
    return pairs ? nr_whole(norch_reduce(op, pairs, 1, &axis, false, -1, 0)) : NULL;
}

#define ENOUGH_FOR_BOOLS 4096 /* elements from which a cast to bool pays */

/* any() or all() of x cast to bool, which compares many elements at once. */
static norch_tensor *reduce_truth(int32_t op, const norch_tensor *x, int64_t count, const int64_t *dims, bool keepdim) {
    NR_OWNED norch_tensor *truth = norch_cast(x, NORCH_BOOL);
    return truth ? norch_reduce(op, truth, count, dims, keepdim, -1, 0) : NULL;
}

/* The sum and mean are those of the parts; the variance, a real number, is the sum of the parts' variances. */
static norch_tensor *reduce_complex(int32_t op, const norch_tensor *x, int64_t count, const int64_t *dims, bool keepdim,
                                    double param) {
    switch (op) {
    case NR_OP_sum:
    case NR_OP_mean:
        if (count <= 0 && !keepdim && x->contiguous && x->numel > 1) return reduce_rows(op, x);
        return nr_whole(reduce_parts(op, x, count, dims, keepdim, false, param));
    case NR_OP_norm:
    case NR_OP_var:
    case NR_OP_std:
        if (x->ndim > 0 || op == NR_OP_norm) return reduce_parts(op, x, count, dims, keepdim, true, param);
        break;
    case NR_OP_any:
    case NR_OP_all: return reduce_truth(op, x, count, dims, keepdim);
    }
    nr_refuse_complex(nr_ops[op].name, x->dtype);
    return NULL;
}

norch_tensor *norch_reduce(int64_t op, const norch_tensor *x, int64_t count, const int64_t *dims, bool keepdim,
                           int64_t dtype, double param) {
    const nr_op_row *row = nr_op_find(op, NR_REDUCE);
    if (!row || nr_check_tensor(row->name, x)) return NULL;
    if (dtype >= 0 && nr_check_dtype(row->name, dtype)) return NULL;
    if (nr_is_complex(x->dtype) || (dtype >= 0 && nr_is_complex((int32_t)dtype))) {
        NR_OWNED norch_tensor *cast = dtype >= 0 ? norch_cast(x, dtype) : nr_retained(x);
        return cast ? reduce_complex((int32_t)op, cast, count, dims, keepdim, param) : NULL;
    }
    const bool is_truth = op == NR_OP_any || op == NR_OP_all;
    if (is_truth && nr_is_float(x->dtype) && x->device_type == NORCH_CPU && x->numel >= ENOUGH_FOR_BOOLS &&
        x->numel <= (int64_t)x->storage->bytes / nr_size_of(x->dtype)) /* not an expanded x: a copy has no bounds */
        return reduce_truth((int32_t)op, x, count, dims, keepdim);
    if (row->result == NR_INDEX && count > 1)
        return NR_REFUSE(NORCH_ERROR_VALUE, "%s: takes one axis or all, not %lld", row->name, (long long)count);
    axis_set axes;
    int32_t code = (int32_t)op, compute;
    if (find_axes(row->name, x, count, dims, &axes) || check_not_empty(code, x, axes, count <= 0)) return NULL;
    if (find_dtype(row, code, dtype >= 0 ? (int32_t)dtype : x->dtype, &compute)) return NULL;

    int32_t ndim = 0;
    int64_t shape[NORCH_MAX_DIMS];
    for (int32_t axis = 0; axis < x->ndim; axis++) {
        if (!has(axes, axis))
            shape[ndim++] = x->shape[axis];
        else if (keepdim)
            shape[ndim++] = 1;
    }
    NR_OWNED norch_tensor *cast = x->dtype == compute ? NULL : norch_cast(x, compute);
    if (x->dtype != compute && !cast) return NULL;
    norch_tensor *out = reduce(code, cast ? cast : x, axes, ndim, shape, param);
    return dtype < 0 || row->result != NR_SUM ? out
                                              : nr_narrowed(out, (int32_t)dtype); /* small integers sum in int64 */
}

norch_tensor *norch_sum_to(norch_tensor *x, const norch_tensor *like) {
    if (nr_check_tensor("sum_to", x)) return NULL;
    if (!like) return NR_REFUSE(NORCH_ERROR_VALUE, "sum_to: no tensor given");
    if (!nr_same_device(x, like)) { /* moves the reduced x, which is smaller */
        norch_tensor there = *like;
        there.device_type = x->device_type;
        there.device_index = x->device_index;
        NR_OWNED norch_tensor *sum = norch_sum_to(x, &there);
        return sum ? norch_to_device(sum, like->device_type, like->device_index, 0) : NULL;
    }
    if (nr_is_complex(x->dtype) && !nr_is_complex(like->dtype)) {
        NR_OWNED norch_tensor *real = nr_part(x, 0);
        return real ? norch_sum_to(real, like) : NULL;
    }
    bool same = nr_same_shape(x->ndim, x->shape, like->ndim, like->shape);
    if (same && x->dtype == like->dtype) return norch_retain(x);
    if (same) return norch_cast(x, like->dtype);

    int32_t extra = x->ndim - like->ndim;
    axis_set axes = 0;
    bool fits = extra >= 0;
    for (int32_t axis = 0; axis < x->ndim && fits; axis++) {
        if (axis < extra || (like->shape[axis - extra] == 1 && x->shape[axis] != 1))
            axes |= 1u << axis;
        else
            fits = x->shape[axis] == like->shape[axis - extra];
    }
    if (!fits)
        return NR_REFUSE(NORCH_ERROR_SHAPE, "sum_to: shape %s is not a broadcast of %s", nr_shape_of(x),
                         nr_shape_of(like));
    if (nr_is_complex(x->dtype)) {
        norch_tensor parts = *like;
        parts.dtype = nr_part_of(like->dtype);
        parts.shape[parts.ndim++] = 2;
        NR_OWNED norch_tensor *of_x = norch_view_as_real(x);
        return of_x ? nr_whole(norch_sum_to(of_x, &parts)) : NULL;
    }
    norch_tensor *sum = reduce(NR_OP_sum, x, axes, like->ndim, like->shape, 0);
    return nr_narrowed(sum, like->dtype);
}
