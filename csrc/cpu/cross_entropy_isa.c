/* cross_entropy_isa: the cross-entropy of logits with class indices, and its gradient, compiled once per instruction
 * set. The largest element is taken off first, so nothing overflows (Blanchard, Higham and Higham, IMA J. Numer. Anal.
 * 41, 2021).
 *
 *   x    [ row | row | row | ... ]   a tile: rows of few classes, whose exponentials fill a block, or one long row
 *   kept [ top log_sum | ...     ]   of each row, log_sum = log(sum(exp(x - top))): backward makes one pass
 *   out  the losses of the rows, or where they are reduced their sum, in order, in double precision */
#include <math.h>
#include <stdbool.h>

#include "../families/cross_entropy.h"
#include "cpu.h"
#include "math.h"

#define BLOCK 1024  /* exponentials that wait in the first cache for their sum */
#define FEW 512     /* classes of rows that are handled together */
#define CHUNK 16384 /* elements from which a second thread pays */

/* The target of a row, read once, so that no other thread changes it between check and use; -1 if it is ignored, or out
 * of range, which sets *found to false. */
static int64_t target_of(const nr_cross_entropy_plan *p, int64_t row, bool *found) {
    const int64_t target = *(const volatile int64_t *)(p->target + row);
    if (target == p->ignored) return -1;
    if ((uint64_t)target < (uint64_t)p->n) return target;
    *found = false;
    return -1;
}

#define TEMPLATE "cross_entropy_loops.h"
#define WANTED(kind, bits) (kind == 'f')
#include "each_dtype.h"

typedef struct job {
    const nr_cross_entropy_plan *plan;
    void *losses;
    int64_t rows_in_chunk;
    bool single, is_backward;
    _Atomic bool lost; /* a target is out of range */
} job;

static void run_chunk(void *context, int64_t chunk) {
    job *j = context;
    const int64_t first = chunk * j->rows_in_chunk, last = least(first + j->rows_in_chunk, j->plan->rows);
    const bool found = j->is_backward
                           ? (j->single ? backward_float32 : backward_float64)(j->plan, first, last)
                           : (j->single ? forward_float32 : forward_float64)(j->plan, j->losses, first, last);
    if (!found) j->lost = true;
}

static int32_t check_targets(const nr_cross_entropy_plan *p) {
    for (int64_t i = 0; i < p->rows; i++) {
        const int64_t target = p->target[i];
        if (target != p->ignored && (target < 0 || target >= p->n))
            return nr_fail(NORCH_ERROR_INDEX, "cross_entropy: index %lld is out of range for size %lld at dimension 1",
                           (long long)target, (long long)p->n);
    }
    return NORCH_OK;
}

int32_t NR_ISA(nr_run_cross_entropy)(const nr_call *call) {
    const nr_cross_entropy_plan *p = call->plan;
    job j = {.plan = p, .losses = p->out, .single = call->dtype == NORCH_FLOAT32};
    j.is_backward = call->op == NR_CROSS_ENTROPY_BACKWARD;
    NR_TRY(check_targets(p)); /* before anything is written */
    const size_t bytes = (size_t)p->rows * (j.single ? sizeof(float) : sizeof(double));
    const bool reduces = p->reduced && !j.is_backward;
    if (reduces && !(j.losses = nr_scratch(bytes)))
        return nr_fail(NORCH_ERROR_MEMORY, "cross_entropy: no memory for %lld bytes of scratch", (long long)bytes);
    j.rows_in_chunk = CHUNK / (p->n + 1) + 1;
    nr_parallel(ceil_div(p->rows, j.rows_in_chunk), run_chunk, &j);
    if (reduces && !j.lost) (j.single ? reduce_float32 : reduce_float64)(p, j.losses);
    if (reduces) nr_scratch_free(j.losses, bytes);
    if (!j.lost) return NORCH_OK;
    NR_TRY(check_targets(p));
    return nr_fail(NORCH_ERROR_INDEX, "cross_entropy: another thread wrote an index that is out of range");
}
