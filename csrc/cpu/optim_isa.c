/* optim_isa: runs an optimizer's step, tensor by tensor, in parts that threads share; built once an instruction set.
 *
 *   param  [ 16384 elements | 16384 | ... ]    all that belongs to an element is read once and written once:
 *   grad   [                |       |     ]    param, momentum (or both averages) stay in registers between
 *   state  [                |       |     ]    the lines of a formula, which optim_loops.h holds, with its sources */
#include <math.h>

#include "../families/optim.h"
#include "cpu.h"

#define INLINE static inline __attribute__((always_inline))
#define CHUNK 16384 /* elements a thread takes at a time */

#define T float
#define NAME float32
#define SQRT sqrtf
#include "optim_loops.h"
#define T double
#define NAME float64
#define SQRT sqrt
#include "optim_loops.h"

/* One tensor on its way through the threads. */
typedef struct job {
    const nr_call *call;
    const nr_optim_item *item;
} job;

static void run_chunk(void *context, int64_t chunk) {
    const job *j = context;
    const nr_optim_plan *plan = j->call->plan;
    const bool narrow = j->call->dtype == NORCH_FLOAT32;
    const int64_t from = chunk * CHUNK, to = from + CHUNK < j->item->n ? from + CHUNK : j->item->n;
    static void (*const steps[][2])(const nr_optim_plan *, const nr_optim_item *, int64_t, int64_t) = {
        [NR_SGD] = {sgd_float64, sgd_float32},
        [NR_ADAM] = {adam_float64, adam_float32},
        [NR_RMSPROP] = {rmsprop_float64, rmsprop_float32},
        [NR_ADAGRAD] = {adagrad_float64, adagrad_float32},
    };
    steps[j->call->op][narrow](plan, j->item, from, to);
}

int32_t NR_ISA(nr_run_optim)(const nr_call *call) {
    const nr_optim_plan *plan = call->plan;
    for (int64_t i = 0; i < plan->count; i++) {
        job j = {call, &plan->items[i]};
        if (j.item->n <= CHUNK)
            run_chunk(&j, 0);
        else
            nr_parallel((j.item->n + CHUNK - 1) / CHUNK, run_chunk, &j);
    }
    return NORCH_OK;
}
