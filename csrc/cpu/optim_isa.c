/* optim_isa: runs a step of an optimizer, tensor by tensor, in parts that threads share; built once per instruction
 * set.
 *
 *   param  [ 16384 elements | 16384 | ... ]    all that belongs to an element is read once and written once; the
 *   grad   [                |       |     ]    formulas are the rows of optim.def, the loops around them
 *   state  [                |       |     ]    optim_loops.h's */
#include "math.h"

#include "../families/optim.h"
#include "cpu.h"

#define UNUSED __attribute__((unused))
#define C(number) ((T)(number))
#define CHUNK 16384 /* elements a thread takes at a time */

typedef void step_loop(const nr_optim_plan *plan, const nr_optim_item *item, int64_t from, int64_t to, int has);

/* A copy of the loop for each set of state tensors, in which the presence of each is a constant. The first `needed` of
 * `count` are always present. */
INLINE void specialized(step_loop *step, int needed, int count, const nr_optim_plan *plan, const nr_optim_item *item,
                        int64_t from, int64_t to) {
    const bool a = needed > 0 || (count > 0 && item->state[0]), b = needed > 1 || (count > 1 && item->state[1]);
    const bool c = needed > 2 || (count > 2 && item->state[2]);
    if (c)
        b ? (a ? step(plan, item, from, to, 7) : step(plan, item, from, to, 6))
          : (a ? step(plan, item, from, to, 5) : step(plan, item, from, to, 4));
    else
        b ? (a ? step(plan, item, from, to, 3) : step(plan, item, from, to, 2))
          : (a ? step(plan, item, from, to, 1) : step(plan, item, from, to, 0));
}

/* For the k-th state tensor of a row, which is there where bit k of `has` is set. */
#define FIND(k, one)                    \
    T *restrict at##k = item->state[k]; \
    UNUSED const bool has_##one = (has >> k & 1) != 0;
#define COUNT(k, one) +1
#define LOAD(k, one) T one = has_##one ? at##k[i] : C(0);
#define STORE(k, one) \
    if (has_##one) at##k[i] = one;

#define TEMPLATE "optim_loops.h"
#define WANTED(kind, bits) (kind == 'f')
#include "each_dtype.h"

/* The step of one tensor, which threads share. */
typedef struct job {
    const nr_call *call;
    const nr_optim_item *item;
} job;

static void run_chunk(void *context, int64_t chunk) {
    const job *j = context;
    const int64_t from = chunk * CHUNK, to = from + CHUNK < j->item->n ? from + CHUNK : j->item->n;
    static void (*const steps[][2])(const nr_optim_plan *, const nr_optim_item *, int64_t, int64_t) = {
#define OPTIMIZER(name, ...) {name##_float64, name##_float32},
#include "../optim.def"
    };
    steps[j->call->op][j->call->dtype == NORCH_FLOAT32](j->call->plan, j->item, from, to);
}

int32_t NR_ISA(nr_run_optim)(const nr_call *call) {
    const nr_optim_plan *plan = call->plan;
    for (int64_t i = 0; i < plan->count; i++) {
        job j = {call, &plan->items[i]};
        nr_parallel((j.item->n + CHUNK - 1) / CHUNK, run_chunk, &j);
    }
    return NORCH_OK;
}
