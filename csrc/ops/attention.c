/* attention: checks of queries, keys and values, and the plan. Vaswani et al., "Attention Is All You Need" (2017).
 * Kernels take strided operands, because heads are views; only operands whose rows are not contiguous are copied. */
#include "../families/attention.h"
#include "ops.h"

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

/* Copies operands whose rows are not contiguous, and runs. written: out, or the three gradients. */
static int32_t run(nr_attention_kind kind, nr_attention_plan *plan, const norch_tensor *const x[4],
                   norch_tensor *const written[4]) {
    const int32_t ndim = x[0]->ndim, rows = ndim - 2, columns = ndim - 1;
    norch_tensor *copy[4] = {NULL};
    int32_t status = NORCH_OK;
    const void **data[] = {&plan->q, &plan->k, &plan->v, &plan->g};
    void **to[] = {&plan->out, &plan->grad_q, &plan->grad_k, &plan->grad_v};
    for (int i = 0; i < NR_ATTENTION_MASK && status == NORCH_OK; i++) {
        const norch_tensor *one = i < 4 ? x[i] : written[i - 4];
        if (!one) continue;
        if (i < 4 && !rows_are_contiguous(one)) one = copy[i] = norch_clone(one);
        if (!one) {
            status = NORCH_ERROR_MEMORY;
            break;
        }
        if (i < 4)
            *data[i] = one->data;
        else
            *to[i - 4] = one->data;
        plan->row[i] = one->strides[rows];
        for (int32_t d = 0; d < rows; d++) plan->batch_stride[i][d] = one->strides[rows - 1 - d];
    }
    plan->queries = x[0]->shape[rows];
    plan->width = x[0]->shape[columns];
    plan->keys = x[1]->shape[rows];
    plan->value_width = x[2]->shape[columns];
    double items = 1;
    for (int32_t d = 0; d < rows; d++) items *= (double)(plan->batch[d] = x[0]->shape[rows - 1 - d]);
    plan->batch_ndim =
        rows > 1 ? nr_nest_collapse(rows, plan->batch, NR_ATTENTION_OPERANDS, plan->batch_stride, 1) : rows;
    if (status == NORCH_OK) {
        double scores = items * (double)plan->queries * (double)plan->keys;
        double work = scores * (double)(plan->width + plan->value_width + 8) * (kind == NR_ATTENTION_BACKWARD ? 5 : 2);
        status = nr_run(NR_ATTENTION, kind, plan, work / OPERATIONS_PER_NS, x[0]);
    }
    nr_release_all(4, copy);
    return status;
}

norch_tensor *norch_attention(const norch_tensor *q, const norch_tensor *k, const norch_tensor *v, double scale,
                              bool causal) {
    const norch_tensor *x[] = {q, k, v, NULL};
    if (check("attention", 3, x)) return NULL;
    norch_tensor *out = norch_empty_like(q, v->shape[v->ndim - 1]);
    if (!out || out->numel == 0) return out;
    nr_attention_plan plan = {.scale = scale, .causal = causal != 0};
    norch_tensor *const written[4] = {out};
    return nr_finished(out, run(NR_ATTENTION_FORWARD, &plan, x, written));
}

int32_t norch_attention_backward(const norch_tensor *g, const norch_tensor *q, const norch_tensor *k,
                                 const norch_tensor *v, double scale, bool causal, int64_t n, const void *grads) {
    const char *op = "attention_backward";
    const norch_tensor *x[] = {q, k, v, g};
    norch_tensor *const *out = grads;
    NR_TRY(check(op, 4, x));
    if (n != 3) return nr_fail(NORCH_ERROR_VALUE, "%s: %lld gradients to write, not 3", op, (long long)n);
    for (int i = 0; i < 3; i++) {
        NR_TRY(nr_check_written(op, "a gradient", out[i], x[i], x[i]->ndim, x[i]->shape));
        if (!rows_are_contiguous(out[i]))
            return nr_fail(NORCH_ERROR_SHAPE, "%s: the rows of the gradient of a %s are not contiguous", op, roles[i]);
    }
    if (q->numel == 0 && k->numel == 0 && v->numel == 0) return NORCH_OK;
    nr_attention_plan plan = {.scale = scale, .causal = causal != 0};
    norch_tensor *const written[4] = {NULL, out[0], out[1], out[2]};
    return run(NR_ATTENTION_BACKWARD, &plan, x, written);
}
