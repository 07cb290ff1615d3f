/* attention_fused: attention for backends with fused kernels, which support masks, dropout, heads that share keys, and
 * more dtypes (families/attention.h). They load 16 bytes at a time: operands that are not aligned to that are
 * copied. */
#include <stdlib.h>
#include <string.h>
#include "../families/attention.h"
#include "ops.h"

#define WIDEST 256 /* row of a tile */
#define PIECE 16   /* bytes of a load */
#define MOST_ROWS (INT32_MAX / 2)
#define MOST_PITCH (1 << 24)
/* Rough speed of one core of the CPU, for nr_call.work. */
#define OPERATIONS_PER_NS 10.0

static bool fits(int64_t width) { return width > 0 && width <= WIDEST; }

bool norch_attention_fuses(const norch_tensor *q, const norch_tensor *k, const norch_tensor *v) {
    if (!q || !k || !v || !q->storage || !q->storage->backend->fuses_attention) return false;
    if (q->ndim < 2 || k->ndim < 2 || v->ndim < 2 || q->numel == 0 || k->numel == 0) return false;
    if (q->dtype != NORCH_FLOAT32 && q->dtype != NORCH_FLOAT16 && q->dtype != NORCH_BFLOAT16) return false;
    const int64_t width = q->shape[q->ndim - 1];
    return fits(width) && fits(v->shape[v->ndim - 1]) && q->shape[q->ndim - 2] <= MOST_ROWS &&
           k->shape[k->ndim - 2] <= MOST_ROWS && q->numel / width <= MOST_ROWS;
}

/* ---- checks ---------------------------------------------------------------------------------------------------- */

/* x: q, k, v, and in the backward pass g and out. */
static int32_t check(const char *op, int count, const norch_tensor *const *x, int64_t *group) {
    static const char *const roles[] = {"query", "key", "value", "gradient", "result"};
    for (int i = 0; i < count; i++) {
        NR_TRY(nr_check_real(op, x[i]));
        if (x[i]->dtype != x[0]->dtype)
            return nr_fail(NORCH_ERROR_DTYPE, "%s: a query of %s, but the %s is %s", op, nr_dtypes[x[0]->dtype].name,
                           roles[i], nr_dtypes[x[i]->dtype].name);
    }
    if (!norch_attention_fuses(x[0], x[1], x[2]))
        return nr_fail(NORCH_ERROR_DEVICE, "%s: no kernel on %s for %s of shape %s", op, nr_device_name(x[0]),
                       nr_dtypes[x[0]->dtype].name, nr_shape_of(x[0]));
    const int32_t rows = x[0]->ndim - 2, columns = rows + 1;
    const int64_t *q = x[0]->shape, *k = x[1]->shape, *v = x[2]->shape;
    *group = 1;
    for (int i = 1; i < count; i++) {
        bool same = x[i]->ndim == x[0]->ndim;
        for (int32_t d = 0; same && d < rows; d++) same = x[i]->shape[d] == (i < 3 && d == rows - 1 ? k[d] : q[d]);
        if (!same)
            return nr_fail(NORCH_ERROR_SHAPE, "%s: query of shape %s, %s of shape %s", op, nr_shape_of(x[0]), roles[i],
                           nr_shape_of(x[i]));
    }
    if (rows > 0) {
        if (q[rows - 1] % k[rows - 1])
            return nr_fail(NORCH_ERROR_SHAPE, "%s: %lld heads of query cannot share %lld of key and value", op,
                           (long long)q[rows - 1], (long long)k[rows - 1]);
        *group = q[rows - 1] / k[rows - 1];
    }
    if (q[columns] != k[columns] || k[rows] != v[rows])
        return nr_fail(NORCH_ERROR_SHAPE, "%s: sizes %lld and %lld of queries and keys, %lld keys and %lld values", op,
                       (long long)q[columns], (long long)k[columns], (long long)k[rows], (long long)v[rows]);
    const int64_t size = nr_size_of(x[0]->dtype);
    if (q[columns] * size % PIECE || v[columns] * size % PIECE)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: rows of %lld and %lld %s are not whole pieces of %d bytes", op,
                       (long long)q[columns], (long long)v[columns], nr_dtypes[x[0]->dtype].name, PIECE);
    for (int i = 3; i < count; i++)
        if (x[i]->shape[rows] != q[rows] || x[i]->shape[columns] != v[columns])
            return nr_fail(NORCH_ERROR_SHAPE, "%s: a %s of shape %s for %lld queries and values of %lld", op, roles[i],
                           nr_shape_of(x[i]), (long long)q[rows], (long long)v[columns]);
    return nr_check_devices(op, count, x);
}

static int32_t check_others(const char *op, const norch_tensor *q, int64_t keys, const norch_tensor *mask,
                            const norch_tensor *seed, const norch_tensor *logsumexp, double dropout) {
    int64_t shape[NORCH_MAX_DIMS];
    memcpy(shape, q->shape, sizeof shape);
    if (logsumexp && (!logsumexp->contiguous || logsumexp->dtype != NORCH_FLOAT32 ||
                      logsumexp->device_type != q->device_type || logsumexp->device_index != q->device_index ||
                      !nr_same_shape(logsumexp->ndim, logsumexp->shape, q->ndim - 1, shape)))
        return nr_fail(NORCH_ERROR_SHAPE, "%s: logsumexp is float32 of shape %s, contiguous and on %s", op,
                       nr_shape_text(q->ndim - 1, shape), nr_device_name(q));
    if (seed && (seed->dtype != NORCH_INT64 || seed->numel != 1 || !nr_same_device(q, seed) || !seed->storage))
        return nr_fail(NORCH_ERROR_VALUE, "%s: the seed is one int64 on %s", op, nr_device_name(q));
    if (!(dropout >= 0 && dropout <= 1))
        return nr_fail(NORCH_ERROR_VALUE, "%s: dropout with probability %g", op, dropout);
    if (!mask) return NORCH_OK;
    shape[q->ndim - 1] = keys;
    if (!mask->storage || !nr_same_shape(mask->ndim, mask->shape, q->ndim, shape))
        return nr_fail(NORCH_ERROR_SHAPE, "%s: a mask of shape %s, not %s", op, nr_shape_of(mask),
                       nr_shape_text(q->ndim, shape));
    if (mask->dtype != NORCH_BOOL && mask->dtype != q->dtype)
        return nr_fail(NORCH_ERROR_DTYPE, "%s: a mask of %s for a query of %s", op, nr_dtypes[mask->dtype].name,
                       nr_dtypes[q->dtype].name);
    return nr_check_same_device(op, q, mask);
}

/* ---- the plan -------------------------------------------------------------------------------------------------- */

/* Whether every row can be loaded 16 bytes at a time, and row strides fit the kernels. */
static bool is_aligned(const norch_tensor *x) {
    const int64_t size = nr_size_of(x->dtype);
    bool whole =
        x->strides[x->ndim - 1] == 1 && (uintptr_t)x->data % PIECE == 0 && llabs(x->strides[x->ndim - 2]) < MOST_PITCH;
    for (int32_t d = 0; d < x->ndim - 1; d++) whole &= x->strides[d] * size % PIECE == 0;
    return whole;
}

/* The strides of operand o. The heads of a group are the inner part of the axis before the rows. */
static void lay_out(nr_attention_plan *plan, int o, const norch_tensor *x) {
    const int32_t rows = x->ndim - 2;
    const bool one_a_group =
        o == NR_ATTENTION_K || o == NR_ATTENTION_V || o == NR_ATTENTION_GRAD_K || o == NR_ATTENTION_GRAD_V;
    plan->row[o] = x->strides[rows];
    for (int32_t d = 0; d < rows; d++) plan->batch_stride[o][d] = x->strides[rows - 1 - d];
    if (rows == 0 || one_a_group) return;
    plan->fused.group_stride[o] = x->strides[rows - 1];
    plan->batch_stride[o][0] *= plan->fused.group;
}

/* x: the operands in their order; inputs that are not aligned are copied. */
static int32_t run(nr_attention_kind kind, nr_attention_plan *plan, const norch_tensor *const *x,
                   const norch_tensor *seed, const norch_tensor *logsumexp) {
    void *const fields[] = {&plan->q,      &plan->k,      &plan->v,      &plan->g,         &plan->out,
                            &plan->grad_q, &plan->grad_k, &plan->grad_v, &plan->fused.mask};
    norch_tensor *copy[NR_ATTENTION_OPERANDS] = {NULL};
    const int32_t rows = x[NR_ATTENTION_Q]->ndim - 2, columns = rows + 1;
    const norch_tensor *q = x[NR_ATTENTION_Q], *k = x[NR_ATTENTION_K], *v = x[NR_ATTENTION_V];
    int32_t status = NORCH_OK;
    for (int o = 0; o < NR_ATTENTION_OPERANDS && status == NORCH_OK; o++) {
        const norch_tensor *one = x[o];
        if (!one) continue;
        if ((o < NR_ATTENTION_OUT || (o == NR_ATTENTION_OUT && kind == NR_ATTENTION_FUSED_BACKWARD)) &&
            !is_aligned(one))
            one = copy[o] = norch_clone(one);
        if (!one) {
            status = NORCH_ERROR_MEMORY;
            break;
        }
        *(const void **)fields[o] = one->data;
        lay_out(plan, o, one);
    }
    if (x[NR_ATTENTION_MASK]) {
        plan->fused.mask_is_bool = x[NR_ATTENTION_MASK]->dtype == NORCH_BOOL;
        plan->fused.mask_column = x[NR_ATTENTION_MASK]->strides[columns];
    }
    plan->fused.seed = seed ? seed->data : NULL;
    plan->fused.logsumexp = logsumexp ? logsumexp->data : NULL;
    plan->queries = q->shape[rows];
    plan->width = q->shape[columns];
    plan->keys = k->shape[rows];
    plan->value_width = v->shape[columns];
    for (int32_t d = 0; d < rows; d++) plan->batch[d] = k->shape[rows - 1 - d];
    plan->batch_ndim =
        rows > 1 ? nr_nest_collapse(rows, plan->batch, NR_ATTENTION_OPERANDS, plan->batch_stride, 1) : rows;
    if (status == NORCH_OK) {
        const double scores = (double)(q->numel / plan->width) * (double)plan->keys;
        const double work =
            scores * (double)(plan->width + plan->value_width + 8) * (kind == NR_ATTENTION_FUSED_BACKWARD ? 5 : 2);
        status = nr_run(NR_ATTENTION, kind, plan, work / OPERATIONS_PER_NS, q);
    }
    nr_release_all(NR_ATTENTION_OPERANDS, copy);
    return status;
}

norch_tensor *norch_attention_fused(const norch_tensor *q, const norch_tensor *k, const norch_tensor *v,
                                    const norch_tensor *optional_mask, const norch_tensor *optional_seed,
                                    const norch_tensor *optional_logsumexp, double scale, bool causal, double dropout) {
    const char *op = "attention_fused";
    nr_attention_plan plan = {.scale = scale, .causal = causal != 0, .fused.dropout = dropout};
    const norch_tensor *x[NR_ATTENTION_OPERANDS] = {q, k, v};
    if (check(op, 3, x, &plan.fused.group) ||
        check_others(op, q, k->shape[k->ndim - 2], optional_mask, optional_seed, optional_logsumexp, dropout))
        return NULL;
    norch_tensor *out = norch_empty_like(q, v->shape[v->ndim - 1]);
    if (!out || out->numel == 0) return out;
    x[NR_ATTENTION_OUT] = out;
    x[NR_ATTENTION_MASK] = optional_mask;
    return nr_finished(out, run(NR_ATTENTION_FUSED, &plan, x, optional_seed, optional_logsumexp));
}

int32_t norch_attention_fused_backward(const norch_tensor *g, const norch_tensor *q, const norch_tensor *k,
                                       const norch_tensor *v, const norch_tensor *out, const norch_tensor *logsumexp,
                                       const norch_tensor *optional_mask, const norch_tensor *optional_seed,
                                       double scale, bool causal, double dropout, int64_t n, const void *grads) {
    const char *op = "attention_fused_backward";
    nr_attention_plan plan = {.scale = scale, .causal = causal != 0, .fused.dropout = dropout};
    const norch_tensor *x[NR_ATTENTION_OPERANDS] = {q, k, v, g, out};
    norch_tensor *const *to = grads;
    NR_TRY(check(op, 5, x, &plan.fused.group));
    NR_TRY(nr_check_real(op, logsumexp));
    NR_TRY(check_others(op, q, k->shape[k->ndim - 2], optional_mask, optional_seed, logsumexp, dropout));
    if (n != 3) return nr_fail(NORCH_ERROR_VALUE, "%s: %lld gradients to write, not 3", op, (long long)n);
    for (int i = 0; i < 3; i++) {
        NR_TRY(nr_check_written(op, "a gradient", to[i], x[i], x[i]->ndim, x[i]->shape));
        if (!is_aligned(to[i]))
            return nr_fail(NORCH_ERROR_SHAPE, "%s: gradient %d of strides that no kernel writes", op, i);
        x[NR_ATTENTION_GRAD_Q + i] = to[i];
    }
    x[NR_ATTENTION_MASK] = optional_mask;
    return run(NR_ATTENTION_FUSED_BACKWARD, &plan, x, optional_seed, logsumexp);
}
