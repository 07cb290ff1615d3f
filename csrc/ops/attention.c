/* attention: checks of queries, keys and values, and the plan. Vaswani et al., "Attention Is All You Need" (2017).
 * Kernels take strided operands, because heads are views; only operands with rows that are not contiguous are copied.
 * */
#include <string.h>

#include "attention_run.h"

/* Rough speed of one core, for nr_call.work. */
#define OPERATIONS_PER_NS 10.0

static bool rows_are_contiguous(const norch_tensor *x) {
    return x->strides[x->ndim - 1] == 1 || x->shape[x->ndim - 1] <= 1;
}

static const char *const roles[] = {"query", "key", "value", "gradient"};

/* x: q, k, v and, if count is 4, g. */
static int32_t check(const char *op, int count, const norch_tensor *const *x) {
    for (int i = 0; i < count; i++) {
        NR_TRY(nr_check_real(op, x[i]));
        if (x[i]->dtype != x[0]->dtype || (x[i]->dtype != NORCH_FLOAT32 && x[i]->dtype != NORCH_FLOAT64))
            return nr_fail(NORCH_ERROR_DTYPE, "%s: expected all float32 or all float64, but the %s is %s", op, roles[i],
                           nr_dtypes[x[i]->dtype].name);
        if (x[i]->ndim < 2 || x[i]->ndim != x[0]->ndim ||
            !nr_same_shape(x[0]->ndim - 2, x[0]->shape, x[i]->ndim - 2, x[i]->shape))
            return nr_fail(NORCH_ERROR_SHAPE, "%s: query of shape %s, %s of shape %s", op, nr_shape_of(x[0]), roles[i],
                           nr_shape_of(x[i]));
    }
    int32_t rows = x[0]->ndim - 2, columns = rows + 1;
    const int64_t *q = x[0]->shape, *k = x[1]->shape, *v = x[2]->shape;
    if (q[columns] != k[columns] || k[rows] != v[rows])
        return nr_fail(NORCH_ERROR_SHAPE, "%s: sizes %lld and %lld of queries and keys, %lld keys and %lld values", op,
                       (long long)q[columns], (long long)k[columns], (long long)k[rows], (long long)v[rows]);
    if (count == 4 && (x[3]->shape[rows] != q[rows] || x[3]->shape[columns] != v[columns]))
        return nr_fail(NORCH_ERROR_SHAPE, "%s: a gradient of shape %s for %lld queries and values of %lld", op,
                       nr_shape_of(x[3]), (long long)q[rows], (long long)v[columns]);
    return nr_check_devices(op, count, x);
}

/* The strides of operand o. The heads of a group are the inner part of the axis before the rows. */
static void lay_out(nr_attention_plan *plan, int o, const norch_tensor *x) {
    const int32_t rows = x->ndim - 2;
    const bool one_a_group =
        o == NR_ATTENTION_K || o == NR_ATTENTION_V || o == NR_ATTENTION_GRAD_K || o == NR_ATTENTION_GRAD_V;
    plan->row[o] = x->strides[rows];
    for (int32_t d = 0; d < rows; d++) plan->batch_stride[o][d] = x->strides[rows - 1 - d];
    if (rows == 0 || one_a_group) return;
    plan->group_stride[o] = x->strides[rows - 1];
    plan->batch_stride[o][0] *= plan->group;
}

int32_t nr_attention_run(nr_attention_kind kind, nr_attention_plan *plan, const norch_tensor *const *x,
                         bool (*fits)(const norch_tensor *x)) {
    void *const fields[] = {&plan->q,      &plan->k,      &plan->v,      &plan->g,   &plan->out,
                            &plan->grad_q, &plan->grad_k, &plan->grad_v, &plan->mask};
    norch_tensor *copy[NR_ATTENTION_OPERANDS] = {NULL};
    const norch_tensor *q = x[NR_ATTENTION_Q], *k = x[NR_ATTENTION_K], *v = x[NR_ATTENTION_V];
    const int32_t rows = q->ndim - 2, columns = rows + 1;
    int32_t status = NORCH_OK;
    for (int o = 0; o < NR_ATTENTION_OPERANDS && status == NORCH_OK; o++) {
        const norch_tensor *operand = x[o];
        if (!operand) continue;
        const bool read = o < NR_ATTENTION_OUT || (o == NR_ATTENTION_OUT && kind == NR_ATTENTION_FUSED_BACKWARD);
        if (read && !fits(operand)) operand = copy[o] = norch_clone(operand);
        if (!operand) {
            status = NORCH_ERROR_MEMORY;
            break;
        }
        *(const void **)fields[o] = operand->data;
        lay_out(plan, o, operand);
    }
    plan->queries = q->shape[rows];
    plan->width = q->shape[columns];
    plan->keys = k->shape[rows];
    plan->value_width = v->shape[columns];
    double scores = (double)plan->queries * (double)plan->keys * (double)plan->group;
    for (int32_t d = 0; d < rows; d++) scores *= (double)(plan->batch[d] = k->shape[rows - 1 - d]);
    plan->batch_ndim =
        rows > 1 ? nr_nest_collapse(rows, plan->batch, NR_ATTENTION_OPERANDS, plan->batch_stride, 1) : rows;
    if (status == NORCH_OK) {
        const bool back = kind == NR_ATTENTION_BACKWARD || kind == NR_ATTENTION_FUSED_BACKWARD;
        const double work = scores * (double)(plan->width + plan->value_width + 8) * (back ? 5 : 2);
        status = nr_run(NR_ATTENTION, kind, plan, work / OPERATIONS_PER_NS, q);
    }
    nr_release_all(NR_ATTENTION_OPERANDS, copy);
    return status;
}

int32_t nr_attention_check_dropout(const char *op, const norch_tensor *q, const norch_tensor *seed, double dropout) {
    if (seed && (seed->dtype != NORCH_INT64 || seed->numel != 1 || !nr_same_device(q, seed) || !seed->storage))
        return nr_fail(NORCH_ERROR_VALUE, "%s: the seed is one int64 on %s", op, nr_device_name(q));
    if (!(dropout >= 0 && dropout <= 1))
        return nr_fail(NORCH_ERROR_VALUE, "%s: dropout with probability %g", op, dropout);
    return NORCH_OK;
}

/* The mask as a view of shape (..., L, S), whose rows are contiguous. */
static norch_tensor *expanded(const char *op, const norch_tensor *mask, const norch_tensor *q, int64_t keys) {
    int64_t shape[NORCH_MAX_DIMS];
    if (nr_check_tensor(op, mask) || nr_check_same_device(op, q, mask)) return NULL;
    if (mask->dtype != NORCH_BOOL && mask->dtype != q->dtype)
        return NR_REFUSE(NORCH_ERROR_DTYPE, "%s: a mask of %s for a query of %s", op, nr_dtypes[mask->dtype].name,
                         nr_dtypes[q->dtype].name);
    memcpy(shape, q->shape, sizeof shape);
    shape[q->ndim - 1] = keys;
    if (mask->ndim != q->ndim)
        return NR_REFUSE(NORCH_ERROR_SHAPE, "%s: a mask of shape %s, not %s", op, nr_shape_of(mask),
                         nr_shape_text(q->ndim, shape));
    NR_OWNED norch_tensor *rows = rows_are_contiguous(mask) ? nr_retained(mask) : norch_clone(mask);
    norch_tensor *view = rows ? norch_expand(rows, q->ndim, shape) : NULL;
    if (!view || rows_are_contiguous(view)) return view;
    norch_tensor *whole = norch_clone(view); /* a mask with one number for each query */
    nr_release(view);
    return whole;
}

/* Puts the mask, of which `mask` keeps a view, and dropout into the plan; only the CPU's kernels of these kinds have
 * them. */
static int32_t take_options(const char *op, nr_attention_plan *plan, const norch_tensor **x,
                            const norch_tensor *mask_in, norch_tensor **mask, const norch_tensor *seed,
                            double dropout) {
    const norch_tensor *q = x[NR_ATTENTION_Q], *k = x[NR_ATTENTION_K];
    if ((mask_in || seed) && q->device_type != NORCH_CPU)
        return nr_fail(NORCH_ERROR_DEVICE, "%s: a mask and dropout are for the CPU, not for %s", op, nr_device_name(q));
    NR_TRY(nr_attention_check_dropout(op, q, seed, dropout));
    if (mask_in) {
        if (!(*mask = expanded(op, mask_in, q, k->shape[k->ndim - 2]))) return norch_last_error_kind();
        plan->mask_is_bool = mask_in->dtype == NORCH_BOOL;
    }
    x[NR_ATTENTION_MASK] = *mask;
    plan->seed = seed ? seed->data : NULL;
    plan->dropout = dropout;
    return NORCH_OK;
}

norch_tensor *norch_attention(const norch_tensor *q, const norch_tensor *k, const norch_tensor *v,
                              const norch_tensor *optional_mask, const norch_tensor *optional_seed, double scale,
                              bool causal, double dropout) {
    const char *op = "attention";
    const norch_tensor *x[NR_ATTENTION_OPERANDS] = {q, k, v};
    nr_attention_plan plan = {.scale = scale, .causal = causal, .group = 1};
    NR_OWNED norch_tensor *mask = NULL;
    if (check(op, 3, x) || take_options(op, &plan, x, optional_mask, &mask, optional_seed, dropout)) return NULL;
    norch_tensor *out = norch_empty_like(q, v->shape[v->ndim - 1]);
    if (!out || out->numel == 0) return out;
    x[NR_ATTENTION_OUT] = out;
    return nr_finished(out, nr_attention_run(NR_ATTENTION_FORWARD, &plan, x, rows_are_contiguous));
}

int32_t norch_attention_backward(const norch_tensor *g, const norch_tensor *q, const norch_tensor *k,
                                 const norch_tensor *v, const norch_tensor *optional_mask,
                                 const norch_tensor *optional_seed, double scale, bool causal, double dropout,
                                 int64_t n, const void *grads) {
    const char *op = "attention_backward";
    const norch_tensor *x[NR_ATTENTION_OPERANDS] = {q, k, v, g};
    norch_tensor *const *out = grads;
    nr_attention_plan plan = {.scale = scale, .causal = causal, .group = 1};
    NR_OWNED norch_tensor *mask = NULL;
    NR_TRY(check(op, 4, x));
    NR_TRY(take_options(op, &plan, x, optional_mask, &mask, optional_seed, dropout));
    if (n != 3) return nr_fail(NORCH_ERROR_VALUE, "%s: %lld gradients to write, not 3", op, (long long)n);
    for (int i = 0; i < 3; i++) {
        NR_TRY(nr_check_written(op, "a gradient", out[i], x[i], x[i]->ndim, x[i]->shape));
        if (!rows_are_contiguous(out[i]))
            return nr_fail(NORCH_ERROR_SHAPE, "%s: the rows of the gradient of a %s are not contiguous", op, roles[i]);
        x[NR_ATTENTION_GRAD_Q + i] = out[i];
    }
    if (q->numel == 0 && k->numel == 0 && v->numel == 0) return NORCH_OK;
    return nr_attention_run(NR_ATTENTION_BACKWARD, &plan, x, rows_are_contiguous);
}
