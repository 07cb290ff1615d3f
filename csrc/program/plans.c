/* plans: see plans.h. All information about a plan comes from its declaration (core/fields.h). */
#include "plans.h"

#include "../core/fields.h"

typedef const nr_plan_visitor *visitor;

static void note(visitor v, const void *at, size_t bytes) {
    if (v->numbers) v->numbers(v->context, at, bytes);
}

static void note_dims(visitor v, const void *numbers, size_t bytes, int32_t ndim) {
    const int64_t *at = numbers, *end = at + bytes / sizeof *at;
    for (; at < end; at += NORCH_MAX_DIMS) note(v, at, (size_t)ndim * sizeof *at);
}

/* addresses, of any pointer type of the plan */
static void visit_addresses(visitor v, void *addresses, size_t bytes, bool written) {
    void **at = addresses, **end = at + bytes / sizeof *at;
    for (; at < end; at++)
        if (*at && v->address) v->address(v->context, at, written);
}

/* A scalar of the plan that is converted from memory before each run counts as this memory. */
static void visit_nest(visitor v, const nr_call *call, nr_plan *nest, uint32_t written) {
    const size_t row = (size_t)nest->ndim * sizeof(int64_t);
    if (v->nest) v->nest(v->context, nest);
    note(v, &nest->ndim, sizeof nest->ndim);
    note(v, &nest->operands, sizeof nest->operands);
    note(v, nest->size, row);
    for (int32_t o = 0; o < nest->operands; o++) {
        note(v, nest->stride[o], row);
        if (!nr_in_plan(nest, o)) {
            visit_addresses(v, &nest->data[o], sizeof nest->data[o], written >> o & 1);
        } else if (call->load) {
            note(v, &nest->number[o].dtype, sizeof nest->number[o].dtype);
            visit_addresses(v, &nest->number[o].at, sizeof nest->number[o].at, false);
        } else {
            note(v, &nest->value[o], sizeof nest->value[o]);
        }
    }
    int64_t sizes[NORCH_MAX_DIMS];
    for (int32_t d = 0; d < nest->ndim && v->sizes; d++) sizes[d] = nest->size[nest->ndim - 1 - d];
    if (v->sizes) v->sizes(v->context, nest->ndim, sizes);
}

/* ---- fields ------------------------------------------------------------------------------------------ */

/* The names of a field have one type, so that they lie in memory like an array of it. */
#define FIRST(name, ...) (p->name)
#define BYTES(type, ...) sizeof(struct { __typeof__(type) __VA_ARGS__; })
#define IS_POINTER(x) \
    (__builtin_classify_type(x) == 5 && __builtin_types_compatible_p(__typeof__(x), __typeof__(1 ? x : x)))
#define SUM(count, term)                                   \
    ({                                                     \
        int64_t sum = 0;                                   \
        for (int64_t i = 0; i < (count); i++) sum += term; \
        sum;                                               \
    })

#define VISIT_NUM(type, ...)                                                                    \
    _Static_assert(!IS_POINTER(FIRST(__VA_ARGS__, )), #__VA_ARGS__ ": IN, OUT, KEY or OTHER?"); \
    VISIT_KEY(type, __VA_ARGS__)
#define VISIT_DIMS(ndim, type, ...) note_dims(v, &FIRST(__VA_ARGS__, ), BYTES(type, __VA_ARGS__), ndim);
#define VISIT_IN(...) VISIT_OUT_IF(false, __VA_ARGS__)
#define VISIT_OUT(...) VISIT_OUT_IF(true, __VA_ARGS__)
#define VISIT_OUT_IF(condition, type, ...) \
    visit_addresses(v, &FIRST(__VA_ARGS__, ), BYTES(type, __VA_ARGS__), condition);
#define VISIT_NEST(written, name) visit_nest(v, call, &p->name, written);
#define VISIT_ITEMS(type, name, count)                                                            \
    if (v->items) v->items(v->context, (const void **)&p->name, (size_t)p->count * sizeof(type)); \
    note(v, &p->count, sizeof p->count);                                                          \
    for (int64_t i = 0; i < p->count; i++) visit_##type(v, call, (type *)&p->name[i]);
#define VISIT_KEY(type, ...) note(v, &FIRST(__VA_ARGS__, ), BYTES(type, __VA_ARGS__));
#define VISIT_OTHER(...)
#define VISIT_SIZES(...)                                                \
    if (v->sizes) {                                                     \
        const int64_t all[] = {__VA_ARGS__};                            \
        v->sizes(v->context, (int32_t)(sizeof all / sizeof *all), all); \
    }

#undef NR_PLAN_VISIT
#define NR_PLAN_VISIT(type, ...)                                         \
    static void visit_##type(visitor v, const nr_call *call, void *of) { \
        type *p = of;                                                    \
        const int32_t op = call->op;                                     \
        (void)op;                                                        \
        NR_MAP(VISIT_, __VA_ARGS__)                                      \
    }

#include "../families/attention.h"
#include "../families/batch_norm.h"
#include "../families/check.h"
#include "../families/conv.h"
#include "../families/cross_entropy.h"
#include "../families/distance.h"
#include "host_call.h"
#include "../families/index.h"
#include "../families/join.h"
#include "../families/matmul.h"
#include "../families/normalize.h"
#include "../families/optim.h"
#include "../families/pool.h"
#define NR_SHARED static inline __attribute__((unused))
#include "../families/quantized.h"
#include "../families/random.h"
#include "../families/recurrent.h"
#include "../families/reduce.h"
#include "../families/resample.h"
#include "../families/sample.h"
#include "../families/scan.h"
#include "../families/softmax.h"
#include "../families/sort.h"

NR_PLAN(nr_pointwise_plan, NEST(1, nest)); /* which call it an nr_plan */
NR_PLAN(nr_copy_plan, NEST(1, nest));

/* ---- families ---------------------------------------------------------------------------------------- */

enum { PLAIN = 0, FAILS = 1, VARIES = 2, WAITS = 4 };

static const struct {
    size_t bytes;
    void (*visit)(visitor v, const nr_call *call, void *plan);
    int traits;
} families[] = {
#define FAMILY(NAME, name, label, traits) [NR_##NAME] = {sizeof(nr_##name##_plan), visit_nr_##name##_plan, traits},
#include "../families.def"
    [NR_HOST_CALL] = {sizeof(nr_host_call_plan), visit_nr_host_call_plan, FAILS | WAITS},
};

static bool has_nonzero_plan(const nr_call *call) { return call->family == NR_INDEXING && call->op >= NR_COUNT; }

size_t nr_plan_bytes(const nr_call *call) { return has_nonzero_plan(call) ? 0 : families[call->family].bytes; }

void nr_plan_visit(const nr_call *call, void *plan, const nr_plan_visitor *v) {
    if (has_nonzero_plan(call))
        visit_nr_nonzero_plan(v, call, plan);
    else
        families[call->family].visit(v, call, plan);
}

typedef struct listed {
    int32_t count;
    int64_t *sizes;
} listed;

static void list_sizes(void *of, int32_t count, const int64_t *sizes) {
    listed *to = of;
    for (int32_t i = 0; i < count; i++) to->sizes[i] = sizes[i];
    to->count = count;
}

int32_t nr_plan_sizes(const nr_call *call, int64_t sizes[NORCH_MAX_DIMS]) {
    listed to = {.sizes = sizes};
    nr_plan_visit(call, (void *)(uintptr_t)call->plan, &(nr_plan_visitor){.sizes = list_sizes, .context = &to});
    return to.count;
}

bool nr_divides(const nr_call *call) {
    return call->family == NR_POINTWISE && nr_op_divides(call->op) && !nr_is_float(call->dtype);
}

bool nr_has_effects(const nr_call *call) { return families[call->family].traits & FAILS || nr_divides(call); }

bool nr_is_launch_only(const nr_call *call) { return !(families[call->family].traits & (VARIES | WAITS)); }

bool nr_is_empty(const nr_call *call) {
    return (call->family == NR_POINTWISE || call->family == NR_COPY) && ((const nr_plan *)call->plan)->numel == 0;
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
    if (call->family == NR_ATTENTION) { /* backward computes the scores again, and four products of their size */
        const nr_attention_plan *p = call->plan;
        const bool back = call->op == NR_ATTENTION_BACKWARD || call->op == NR_ATTENTION_FUSED_BACKWARD;
        const int64_t widths = back ? 3 * p->width + 2 * p->value_width : p->width + p->value_width;
        return p->queries * p->keys * widths * p->group * product(p->batch_ndim, p->batch);
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
