/* resample_isa: an axis resampled by weights, and the adjoint, built once per instruction set. resample_loops.h
 * holds the loops, for each float type.
 *
 *   x (outer, old, inner)    rows of inner elements: row i of y is a sum of rows of x, each times a weight; an axis with
 *   y (outer, size, inner)   none behind it: RUN elements of y at a time, gathered
 *
 * A task has whole outer positions, so that threads do not change the order of sums. */
#include <string.h>

#include "../families/resample.h"
#include "gather.h"

#define CHUNK 16384 /* elements of a task, about */

#ifndef __wasm__ /* a page waits for each byte: calls are composed of others there */

/* A call, and its taps: (taps, padded) elements of 4 or 8 bytes, of rows of whole runs, -1 and 0 where there are none.
 * gathers: nothing is behind the axis, and taps are those of what is written, n elements: for the adjoint the elements
 * of y to which each one of x contributed, in their order. */
typedef struct job {
    const nr_resample_plan *plan;
    int32_t kind, dtype;
    bool gathers;
    int64_t n, taps, padded, each; /* each: outer positions of a task */
    void *at, *weight;
} job;

#define NAME OF_DTYPE
#define TEMPLATE "resample_loops.h"
#define WANTED(kind, bits) (kind == 'f')
#include "each_dtype.h"

static void run_task(void *context, int64_t task) {
    const job *j = context;
    const int64_t first = task * j->each, last = least(first + j->each, j->plan->outer);
    for (int64_t outer = first; outer < last; outer++)
        (j->dtype == NORCH_FLOAT32 ? run_float32 : run_float64)(j, outer);
}

/* How many elements of y have a weight of each one of x, and the most that any has. */
static int64_t count_uses(const nr_resample_plan *p, int64_t *uses) {
    int64_t most = 0;
    memset(uses, 0, (size_t)p->old * sizeof *uses);
    for (int64_t i = 0; i < p->taps * p->size; i++) {
        const int64_t from = p->index[i];
        if (from >= 0 && from < p->old && ++uses[from] > most) most = uses[from];
    }
    return most;
}

int32_t NR_ISA(nr_run_resample)(const nr_call *call) {
    const nr_resample_plan *p = call->plan;
    job j = {
        .plan = p, .kind = call->op, .dtype = call->dtype, .gathers = p->inner == 1, .n = p->size, .taps = p->taps};
    for (int64_t i = 0; i < p->taps * p->size; i++)
        if (p->index[i] >= p->old)
            return nr_fail(NORCH_ERROR_INDEX, "resample: index %lld is out of range for size %lld",
                           (long long)p->index[i], (long long)p->old);
    const bool turns = j.gathers && call->op == NR_RESAMPLE_ADJOINT;
    const size_t counts = turns ? (size_t)p->old * sizeof(int64_t) : 0;
    int64_t *uses = turns ? nr_scratch(counts) : NULL;
    if (uses) {
        j.n = p->old, j.taps = count_uses(p, uses);
        j.gathers = j.taps * j.n <= 4 * (p->taps * p->size + RUN); /* else most would be padding */
        if (!j.gathers) j.n = p->size, j.taps = p->taps;
    }
    j.padded = ceil_div(j.n, RUN) * RUN;
    const size_t half = (size_t)(j.taps * j.padded) * 8, bytes = 2 * half + 8;
    j.at = turns && !uses ? NULL : nr_scratch(bytes);
    if (j.at) {
        j.weight = (char *)j.at + half;
        (call->dtype == NORCH_FLOAT32 ? spread_float32 : spread_float64)(&j, uses);
        j.each = CHUNK / (greatest(p->old, p->size) * p->inner) + 1;
        nr_parallel(ceil_div(p->outer, j.each), run_task, &j);
        nr_scratch_free(j.at, bytes);
    }
    if (uses) nr_scratch_free(uses, counts);
    if (j.at) return NORCH_OK;
    return nr_fail(NORCH_ERROR_MEMORY, "resample: no memory for %lld bytes of scratch", (long long)(bytes + counts));
}

#else

int32_t NR_ISA(nr_run_resample)(const nr_call *call) {
    (void)call;
    return nr_fail(NORCH_ERROR_DEVICE, "resample: no kernel in WebAssembly");
}

#endif
