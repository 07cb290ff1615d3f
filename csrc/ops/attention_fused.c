/* attention_fused: attention for backends with fused kernels, which support masks, dropout, heads that share keys, and
 * more dtypes (families/attention.h). They load 16 bytes at a time, so misaligned operands are copied. */
#include <stdlib.h>
#include <string.h>
#include "attention_run.h"

#define WIDEST 256 /* row of a tile */
#define PIECE 16   /* bytes of a load */
#define MOST_ROWS (INT32_MAX / 2)
#define MOST_PITCH (1 << 24)

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

/* x: q, k, v, and in the backward pass also g and out. */
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
    int64_t shape[NORCH_MAX_DIMS], two[NORCH_MAX_DIMS] = {2};
    memcpy(shape, q->shape, sizeof shape);
    memcpy(two + 1, q->shape, (size_t)(q->ndim - 1) * sizeof *two);
    if (logsumexp &&
        (!logsumexp->contiguous || logsumexp->dtype != NORCH_FLOAT32 || logsumexp->device_type != q->device_type ||
         logsumexp->device_index != q->device_index || !nr_same_shape(logsumexp->ndim, logsumexp->shape, q->ndim, two)))
        return nr_fail(NORCH_ERROR_SHAPE, "%s: logsumexp is float32 of shape %s, contiguous and on %s", op,
                       nr_shape_text(q->ndim, two), nr_device_name(q));
    NR_TRY(nr_attention_check_dropout(op, q, seed, dropout));
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

/* Whether every row can be loaded 16 bytes at a time, and kernels can take the row strides. */
static bool is_aligned(const norch_tensor *x) {
    const int64_t size = nr_size_of(x->dtype);
    bool whole =
        x->strides[x->ndim - 1] == 1 && (uintptr_t)x->data % PIECE == 0 && llabs(x->strides[x->ndim - 2]) < MOST_PITCH;
    for (int32_t d = 0; d < x->ndim - 1; d++) whole &= x->strides[d] * size % PIECE == 0;
    return whole;
}

/* x: the operands in order. */
static int32_t run(nr_attention_kind kind, nr_attention_plan *plan, const norch_tensor *const *x,
                   const norch_tensor *seed, const norch_tensor *logsumexp) {
    const norch_tensor *mask = x[NR_ATTENTION_MASK];
    if (mask) {
        plan->mask_is_bool = mask->dtype == NORCH_BOOL;
        plan->mask_column = mask->strides[mask->ndim - 1];
    }
    plan->seed = seed ? seed->data : NULL;
    plan->logsumexp = logsumexp ? logsumexp->data : NULL;
    return nr_attention_run(kind, plan, x, is_aligned);
}

norch_tensor *norch_attention_fused(const norch_tensor *q, const norch_tensor *k, const norch_tensor *v,
                                    const norch_tensor *optional_mask, const norch_tensor *optional_seed,
                                    const norch_tensor *optional_logsumexp, double scale, bool causal, double dropout) {
    const char *op = "attention_fused";
    nr_attention_plan plan = {.scale = scale, .causal = causal, .dropout = dropout};
    const norch_tensor *x[NR_ATTENTION_OPERANDS] = {q, k, v};
    if (check(op, 3, x, &plan.group) ||
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
    nr_attention_plan plan = {.scale = scale, .causal = causal, .dropout = dropout};
    const norch_tensor *x[NR_ATTENTION_OPERANDS] = {q, k, v, g, out};
    norch_tensor *const *to = grads;
    NR_TRY(check(op, 5, x, &plan.group));
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
