/* plans: see plans.h. Each family has a case in each function. */
#include "plans.h"

#include "../families/attention.h"
#include "../families/batch_norm.h"
#include "../families/check.h"
#include "../families/conv.h"
#include "../families/cross_entropy.h"
#include "host_call.h"
#include "../families/index.h"
#include "../families/join.h"
#include "../families/matmul.h"
#include "../families/normalize.h"
#include "../families/optim.h"
#include "../families/pool.h"
#define NR_SHARED static inline __attribute__((unused))
#include "../families/random.h"
#include "../families/recurrent.h"
#include "../families/reduce.h"
#include "../families/scan.h"
#include "../families/softmax.h"
#include "../families/sort.h"

size_t nr_plan_bytes(const nr_call *call) {
    switch (call->family) {
    case NR_POINTWISE:
    case NR_COPY: return sizeof(nr_plan);
    case NR_REDUCTION: return sizeof(nr_reduce_plan);
    case NR_MATMUL: return sizeof(nr_matmul_plan);
    case NR_INDEXING: return call->op >= NR_COUNT ? 0 : sizeof(nr_index_plan);
    case NR_RANDOM: return sizeof(nr_random_plan);
    case NR_OPTIM: return sizeof(nr_optim_plan);
    case NR_SCAN: return sizeof(nr_scan_plan);
    case NR_SORT: return sizeof(nr_sort_plan);
    case NR_SOFTMAX: return sizeof(nr_softmax_plan);
    case NR_CONV: return sizeof(nr_conv_plan);
    case NR_POOL: return sizeof(nr_pool_plan);
    case NR_NORMALIZE: return sizeof(nr_normalize_plan);
    case NR_ATTENTION: return sizeof(nr_attention_plan);
    case NR_BATCH_NORM: return sizeof(nr_batch_norm_plan);
    case NR_CROSS_ENTROPY: return sizeof(nr_cross_entropy_plan);
    case NR_RECURRENT: return sizeof(nr_recurrent_plan);
    case NR_CHECK: return sizeof(nr_check_plan);
    case NR_JOIN: return sizeof(nr_join_plan);
    case NR_HOST_CALL: return sizeof(nr_host_call_plan);
    default: return 0;
    }
}

typedef const nr_plan_visitor *visitor;

static void visit(visitor v, void *field, bool written) {
    void **at = field; /* a pointer to whatever type the plan gives it */
    if (*at) v->address(v->context, at, written);
}

static void note(visitor v, const void *at, size_t bytes) { v->numbers(v->context, at, bytes); }
#define NOTE(v, field) note(v, &(field), sizeof(field))

/* Visits the loops and operands of a nest; bit o of written: operand o is written. loads: scalars of the plan are
 * converted from memory before each run, so that this memory is visited instead. */
static void visit_loops(visitor v, nr_plan *nest, int32_t operands, uint32_t written, bool loads) {
    const size_t row = (size_t)nest->ndim * sizeof(int64_t);
    NOTE(v, nest->ndim);
    note(v, nest->size, row);
    for (int32_t o = 0; o < operands; o++) {
        note(v, nest->stride[o], row);
        if (!nr_in_plan(nest, o)) {
            visit(v, &nest->data[o], written >> o & 1);
        } else if (loads) {
            NOTE(v, nest->number[o].dtype);
            visit(v, &nest->number[o].at, false);
        } else {
            NOTE(v, nest->value[o]);
        }
    }
}

static void visit_nest(visitor v, nr_plan *nest, int32_t operands, uint32_t written) {
    visit_loops(v, nest, operands, written, false);
}

static void visit_index(visitor v, int32_t op, nr_index_plan *plan) {
    visit_nest(v, &plan->nest, 3, op == NR_GATHER || op == NR_OFFSETS ? 1 : 4);
    NOTE(v, plan->axis_stride);
    NOTE(v, plan->axis_size);
    NOTE(v, plan->is_offset);
    NOTE(v, plan->check.dimension);
    NOTE(v, plan->check.wraps);
}

static void visit_matmul(visitor v, nr_matmul_plan *plan) {
    const int64_t numbers[] = {plan->m,     plan->n,     plan->k,     plan->a_row,      plan->a_col,
                               plan->b_row, plan->b_col, plan->c_row, plan->batch_ndim, 0};
    const size_t row = (size_t)plan->batch_ndim * sizeof(int64_t);
    NOTE(v, numbers);
    note(v, plan->batch, row);
    for (int o = 0; o < 3; o++) note(v, plan->batch_stride[o], row);
    NOTE(v, plan->alpha);
    NOTE(v, plan->beta);
    visit(v, &plan->a, false);
    visit(v, &plan->b, false);
    visit(v, &plan->bias, false);
    visit(v, &plan->residual, false);
    visit(v, &plan->c, true);
}

static void visit_reduce(visitor v, nr_reduce_plan *plan) {
    const size_t row = (size_t)plan->ndim * sizeof(int64_t);
    visit_nest(v, &plan->kept, plan->count ? 2 : 1, 1); /* without elements the address of x means nothing */
    NOTE(v, plan->ndim);
    note(v, plan->size, row);
    note(v, plan->stride, row);
    NOTE(v, plan->count);
    NOTE(v, plan->param);
}

static void visit_random(visitor v, nr_random_plan *plan) {
    NOTE(v, plan->n);
    NOTE(v, plan->low);
    NOTE(v, plan->span);
    NOTE(v, plan->state);
    NOTE(v, plan->least);
    NOTE(v, plan->scale);
    visit(v, &plan->probability, false);
    visit(v, &plan->x, false);
    visit(v, &plan->out, true);
    visit(v, &plan->mask, true);
}

/* The hyperparameters are left out: a call reads them when it runs. */
static void visit_optim(visitor v, nr_optim_plan *plan) {
    NOTE(v, plan->count);
    for (int64_t i = 0; i < plan->count; i++) {
        nr_optim_item *item = (nr_optim_item *)&plan->items[i];
        NOTE(v, item->n);
        visit(v, &item->param, true);
        visit(v, &item->grad, false);
        for (int k = 0; k < NR_OPTIM_STATES; k++) visit(v, &item->state[k], true);
    }
}

static void visit_conv(visitor v, int32_t op, nr_conv_plan *plan) {
    const size_t pair = sizeof plan->size;
    note(v, &plan->batch, 4 * sizeof(int64_t));
    const void *const pairs[] = {plan->size, plan->result, plan->kernel, plan->stride, plan->padding, plan->dilation};
    for (int i = 0; i < 6; i++) note(v, pairs[i], pair);
    visit(v, &plan->x, op == NR_CONV_INPUT);
    visit(v, &plan->y, op == NR_CONV_FORWARD);
    visit(v, &plan->weight, op == NR_CONV_WEIGHT);
    visit(v, &plan->bias, false);
    visit(v, &plan->sums, true);
}

static void visit_pool(visitor v, int32_t op, nr_pool_plan *plan) {
    const bool back = op == NR_POOL_MAX_BACKWARD || op == NR_POOL_AVG_BACKWARD;
    const void *const pairs[] = {plan->size, plan->result, plan->kernel, plan->stride, plan->padding, plan->dilation};
    NOTE(v, plan->planes);
    for (int i = 0; i < 6; i++) note(v, pairs[i], sizeof plan->size);
    NOTE(v, plan->count_padding);
    NOTE(v, plan->divisor);
    visit(v, &plan->x, back);
    visit(v, &plan->y, !back);
    visit(v, &plan->index, op == NR_POOL_MAX);
}

static void visit_normalize(visitor v, nr_normalize_plan *plan) {
    note(v, &plan->rows, 4 * sizeof(int64_t));
    NOTE(v, plan->eps);
    NOTE(v, plan->affine_dtype);
    NOTE(v, plan->centered);
    visit(v, &plan->x, false);
    visit(v, &plan->g, false);
    visit(v, &plan->weight, false);
    visit(v, &plan->bias, false);
    visit(v, &plan->out, true);
    visit(v, &plan->grad_x, true);
    visit(v, &plan->grad_affine, true);
}

static void visit_batch_norm(visitor v, nr_batch_norm_plan *plan, int32_t op) {
    const bool writes = op == NR_BATCH_NORM_TRAINING;
    note(v, &plan->batch, 3 * sizeof(int64_t));
    NOTE(v, plan->momentum);
    NOTE(v, plan->eps);
    visit(v, &plan->x, false);
    visit(v, &plan->g, false);
    visit(v, &plan->weight, false);
    visit(v, &plan->bias, false);
    visit(v, &plan->mean, writes);
    visit(v, &plan->variance, writes);
    visit(v, &plan->running_mean, true);
    visit(v, &plan->running_variance, true);
    visit(v, &plan->out, true);
    visit(v, &plan->grad_x, true);
    visit(v, &plan->grad_affine, true);
}

static void visit_cross_entropy(visitor v, nr_cross_entropy_plan *plan, int32_t op) {
    const bool forward = op == NR_CROSS_ENTROPY_FORWARD;
    note(v, &plan->rows, 4 * sizeof(int64_t));
    NOTE(v, plan->smoothing);
    visit(v, &plan->x, false);
    visit(v, &plan->g, false);
    visit(v, &plan->target, false);
    visit(v, &plan->out, true);
    visit(v, &plan->log_sums, forward);
    visit(v, &plan->count, forward);
}

static void visit_recurrent(visitor v, nr_recurrent_plan *plan, int32_t op) {
    const bool forward = op == NR_LSTM_FORWARD || op == NR_GRU_FORWARD;
    void *const read[] = {&plan->from_x, &plan->from_h, &plan->state, plan->g, plan->g + 1, plan->g + 2, &plan->g_c};
    void *const written[] = {&plan->h, &plan->grad_x, &plan->grad_h, &plan->grad_state};
    note(v, &plan->rows, 2 * sizeof(int64_t));
    for (int i = 0; i < 7; i++) visit(v, read[i], false);
    visit(v, &plan->c, forward);
    visit(v, &plan->kept, forward);
    for (int i = 0; i < 4; i++) visit(v, written[i], true);
}

static void visit_attention(visitor v, int32_t op, nr_attention_plan *plan) {
    const bool back = op == NR_ATTENTION_BACKWARD || op == NR_ATTENTION_FUSED_BACKWARD;
    const size_t row = (size_t)plan->batch_ndim * sizeof(int64_t);
    void *const fields[] = {&plan->q,      &plan->k,      &plan->v,      &plan->g,         &plan->out,
                            &plan->grad_q, &plan->grad_k, &plan->grad_v, &plan->fused.mask};
    note(v, &plan->queries, 4 * sizeof(int64_t));
    NOTE(v, plan->scale);
    NOTE(v, plan->causal);
    NOTE(v, plan->fused.group);
    NOTE(v, plan->fused.mask_is_bool);
    NOTE(v, plan->fused.mask_column);
    NOTE(v, plan->fused.dropout);
    NOTE(v, plan->batch_ndim);
    note(v, plan->batch, row);
    for (int o = 0; o < NR_ATTENTION_OPERANDS; o++) {
        if (!*(void **)fields[o]) continue;
        NOTE(v, plan->row[o]);
        note(v, plan->batch_stride[o], row);
        NOTE(v, plan->fused.group_stride[o]);
        visit(v, fields[o], o == NR_ATTENTION_OUT ? !back : o > NR_ATTENTION_OUT && o < NR_ATTENTION_MASK);
    }
    visit(v, &plan->fused.seed, false);
    visit(v, &plan->fused.logsumexp, !back);
}

static void visit_check(visitor v, nr_check_plan *plan) {
    NOTE(v, plan->n);
    visit(v, &plan->x, false);
}

static void visit_host_call(visitor v, nr_host_call_plan *plan) {
    NOTE(v, plan->what);
    NOTE(v, plan->count);
    for (int64_t i = 0; i < plan->count; i++) {
        nr_host_memory *memory = (nr_host_memory *)&plan->memory[i];
        NOTE(v, memory->bytes);
        if (memory->bytes) visit(v, &memory->data, memory->written);
    }
}

static void visit_softmax(visitor v, nr_softmax_plan *plan) {
    note(v, &plan->outer, 3 * sizeof(int64_t));
    visit(v, &plan->x, false);
    visit(v, &plan->result, false);
    visit(v, &plan->out, true);
}

static void visit_scan(visitor v, nr_scan_plan *plan) {
    visit_nest(v, &plan->nest, 2, 1);
    NOTE(v, plan->n);
    NOTE(v, plan->step);
}

static void visit_sort(visitor v, int32_t op, nr_sort_plan *plan) {
    visit_nest(v, &plan->nest, 3, op == NR_SEARCH ? 1 : 5);
    NOTE(v, plan->n);
    NOTE(v, plan->count);
    NOTE(v, plan->step);
    NOTE(v, plan->descending);
    NOTE(v, plan->right);
}

static void visit_join(visitor v, nr_join_plan *plan) {
    NOTE(v, plan->count);
    for (int64_t i = 0; i < plan->count; i++) {
        nr_join_piece *piece = (nr_join_piece *)&plan->pieces[i];
        note(v, &piece->to_step, 4 * sizeof(int64_t));
        visit(v, &piece->to, true);
        visit(v, &piece->from, false);
    }
}

void nr_plan_visit(const nr_call *call, void *plan, const nr_plan_visitor *v) {
    switch (call->family) {
    case NR_POINTWISE: visit_loops(v, plan, ((nr_plan *)plan)->operands, 1, call->load != NULL); break;
    case NR_COPY: visit_loops(v, plan, 2, 1, call->load != NULL); break;
    case NR_REDUCTION: visit_reduce(v, plan); break;
    case NR_MATMUL: visit_matmul(v, plan); break;
    case NR_INDEXING: visit_index(v, call->op, plan); break;
    case NR_RANDOM: visit_random(v, plan); break;
    case NR_OPTIM: visit_optim(v, plan); break;
    case NR_SCAN: visit_scan(v, plan); break;
    case NR_SORT: visit_sort(v, call->op, plan); break;
    case NR_SOFTMAX: visit_softmax(v, plan); break;
    case NR_CONV: visit_conv(v, call->op, plan); break;
    case NR_POOL: visit_pool(v, call->op, plan); break;
    case NR_NORMALIZE: visit_normalize(v, plan); break;
    case NR_ATTENTION: visit_attention(v, call->op, plan); break;
    case NR_BATCH_NORM: visit_batch_norm(v, plan, call->op); break;
    case NR_CROSS_ENTROPY: visit_cross_entropy(v, plan, call->op); break;
    case NR_RECURRENT: visit_recurrent(v, plan, call->op); break;
    case NR_CHECK: visit_check(v, plan); break;
    case NR_JOIN: visit_join(v, plan); break;
    case NR_HOST_CALL: visit_host_call(v, plan); break;
    default: break;
    }
}

static int32_t sizes_of_nest(const nr_plan *nest, int64_t *sizes) {
    for (int32_t d = 0; d < nest->ndim; d++) sizes[d] = nest->size[nest->ndim - 1 - d];
    return nest->ndim;
}

static int32_t listed(int64_t *sizes, int32_t n, const int64_t *from) {
    for (int32_t i = 0; i < n; i++) sizes[i] = from[i];
    return n;
}

int32_t nr_plan_sizes(const nr_call *call, int64_t sizes[NORCH_MAX_DIMS]) {
    const void *plan = call->plan;
    switch (call->family) {
    case NR_MATMUL: {
        const nr_matmul_plan *p = plan;
        const int64_t all[] = {p->m, p->n, p->k};
        return listed(sizes, 3, all);
    }
    case NR_REDUCTION: {
        const nr_reduce_plan *p = plan;
        const int64_t all[] = {p->kept.numel, p->count};
        return listed(sizes, 2, all);
    }
    case NR_OPTIM: {
        const nr_optim_plan *p = plan;
        int64_t n = 0;
        for (int64_t i = 0; i < p->count; i++) n += p->items[i].n;
        return listed(sizes, 1, &n);
    }
    case NR_RANDOM: return listed(sizes, 1, &((const nr_random_plan *)plan)->n);
    case NR_SOFTMAX: return listed(sizes, 3, &((const nr_softmax_plan *)plan)->outer);
    case NR_CONV: {
        const nr_conv_plan *p = plan;
        const int64_t all[] = {p->batch, p->groups * p->out, p->result[0], p->result[1]};
        return listed(sizes, 4, all);
    }
    case NR_POOL: {
        const nr_pool_plan *p = plan;
        const int64_t all[] = {p->planes, p->result[0], p->result[1]};
        return listed(sizes, 3, all);
    }
    case NR_NORMALIZE: return listed(sizes, 2, &((const nr_normalize_plan *)plan)->rows);
    case NR_ATTENTION: return listed(sizes, 3, &((const nr_attention_plan *)plan)->queries);
    case NR_BATCH_NORM: return listed(sizes, 3, &((const nr_batch_norm_plan *)plan)->batch);
    case NR_CROSS_ENTROPY: return listed(sizes, 2, &((const nr_cross_entropy_plan *)plan)->rows);
    case NR_RECURRENT: return listed(sizes, 2, &((const nr_recurrent_plan *)plan)->rows);
    case NR_CHECK: return listed(sizes, 1, &((const nr_check_plan *)plan)->n);
    case NR_JOIN: {
        const nr_join_plan *p = plan;
        int64_t bytes = 0;
        for (int64_t i = 0; i < p->count; i++) bytes += p->pieces[i].rows * p->pieces[i].width;
        const int64_t all[] = {p->count, bytes / nr_size_of(call->dtype)};
        return listed(sizes, 2, all);
    }
    case NR_HOST_CALL: {
        const nr_host_call_plan *p = plan;
        int64_t bytes = 0;
        for (int64_t i = 0; i < p->count; i++) bytes += p->memory[i].bytes;
        return listed(sizes, 1, &bytes);
    }
    default: return sizes_of_nest(plan, sizes); /* a nest is the first field of the others */
    }
}

static int64_t product(int32_t n, const int64_t *sizes) {
    int64_t all = 1;
    for (int32_t i = 0; i < n; i++) all *= sizes[i];
    return all;
}

int64_t nr_plan_multiply_adds(const nr_call *call) {
    if (call->family == NR_MATMUL) {
        const nr_matmul_plan *p = call->plan;
        return p->m * p->n * p->k * product(p->batch_ndim, p->batch);
    }
    if (call->family == NR_CONV) {
        const nr_conv_plan *p = call->plan;
        return p->batch * p->groups * p->out * p->in * product(2, p->result) * product(2, p->kernel);
    }
    if (call->family == NR_ATTENTION) { /* backward: the scores again, and four products of their size */
        const nr_attention_plan *p = call->plan;
        const bool back = call->op == NR_ATTENTION_BACKWARD || call->op == NR_ATTENTION_FUSED_BACKWARD;
        const int64_t widths = back ? 3 * p->width + 2 * p->value_width : p->width + p->value_width;
        const bool fused = call->op == NR_ATTENTION_FUSED || call->op == NR_ATTENTION_FUSED_BACKWARD;
        return p->queries * p->keys * widths * (fused ? p->fused.group : 1) * product(p->batch_ndim, p->batch);
    }
    return 0;
}

int64_t nr_plan_element_size(const nr_call *call, int o) {
    const nr_op_row *row = &nr_ops[call->op];
    if (call->family == NR_COPY) return nr_size_of(o ? call->from_dtype : call->dtype);
    const bool truths = o == 0 ? row->result == NR_TRUTH : o == 1 && row->form == NR_CHOICE;
    if (truths) return 1;
    if (o == 0 && row->result == NR_INDEX) return sizeof(int64_t);
    if (o == 0 && row->result == NR_SUM && !nr_is_float(call->dtype)) return sizeof(int64_t);
    return nr_size_of(call->dtype);
}

int64_t nr_plan_dense_bytes(const nr_call *call) {
    if (call->family != NR_POINTWISE && call->family != NR_COPY) return 0;
    const nr_plan *plan = call->plan;
    int64_t bytes = nr_plan_element_size(call, 0);
    for (int32_t d = 0; d < plan->ndim; d++) {
        if (plan->stride[0][d] != bytes) return 0;
        bytes *= plan->size[d];
    }
    return bytes;
}

bool nr_has_effects(const nr_call *call) {
    return call->family == NR_INDEXING || call->family == NR_RANDOM || call->family == NR_OPTIM ||
           call->family == NR_CROSS_ENTROPY || call->family == NR_CHECK || call->family == NR_HOST_CALL ||
           (call->family == NR_POINTWISE && !nr_is_float(call->dtype));
}

bool nr_is_empty(const nr_call *call) {
    return (call->family == NR_POINTWISE || call->family == NR_COPY) && ((const nr_plan *)call->plan)->numel == 0;
}

bool nr_is_launch_only(const nr_call *call) {
    switch (call->family) {
    case NR_POINTWISE:
    case NR_COPY:
    case NR_REDUCTION:
    case NR_MATMUL:
    case NR_INDEXING:
    case NR_SCAN:
    case NR_SOFTMAX:
    case NR_CONV:
    case NR_POOL:
    case NR_NORMALIZE:
    case NR_BATCH_NORM:
    case NR_CROSS_ENTROPY:
    case NR_RECURRENT:
    case NR_ATTENTION:
    case NR_CHECK:
    case NR_JOIN: return true;
    default: return false; /* random numbers and optimizers, whose plans change; sorts, which may wait */
    }
}
