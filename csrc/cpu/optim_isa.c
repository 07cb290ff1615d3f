/* optim: runs an optimizer's step over one tensor, in parts that threads share. */
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

static void run_chunk(void *context, int64_t chunk) {
    const nr_call *call = context;
    const nr_optim_plan *plan = call->plan;
    const bool narrow = call->dtype == NORCH_FLOAT32;
    const int64_t from = chunk * CHUNK, to = from + CHUNK < plan->n ? from + CHUNK : plan->n;
    if (call->op == NR_SGD)
        (narrow ? sgd_float32 : sgd_float64)(plan, from, to);
    else
        (narrow ? adam_float32 : adam_float64)(plan, from, to);
}

int32_t NR_ISA(nr_run_optim)(const nr_call *call) {
    const nr_optim_plan *plan = call->plan;
    if (plan->n <= CHUNK)
        run_chunk((void *)(uintptr_t)call, 0);
    else
        nr_parallel((plan->n + CHUNK - 1) / CHUNK, run_chunk, (void *)(uintptr_t)call);
    return NORCH_OK;
}
