/* optim: runs an optimizer's step, tensor by tensor, in parts that threads share.
 *
 *   param  [ 16384 elements | 16384 | ... ]    all that belongs to an element is read once and written once:
 *   grad   [                |       |     ]    param, momentum (or both averages) stay in registers between
 *   state  [                |       |     ]    the lines of a formula, which optim_loops.h holds */
#include <math.h>

#include "cpu.h"

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
    if (j->call->op == NR_SGD)
        (narrow ? sgd_float32 : sgd_float64)(plan, j->item, from, to);
    else
        (narrow ? adam_float32 : adam_float64)(plan, j->item, from, to);
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
