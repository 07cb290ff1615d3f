/* cross_entropy_isa: the cross-entropy of logits, and of logarithms of probabilities (nll), with class indices, and
 * their gradients, compiled once per instruction set. The largest element is taken off first, so nothing overflows
 * (Blanchard, Higham and Higham, IMA J. Numer. Anal. 41, 2021).
 *
 *   x    [ row | row | row | ... ]   a tile: rows of few classes, whose exponentials fill a block, or one long row
 *   kept [ top log_sum | ...     ]   of each row, log_sum = log(sum(exp(x - top))): backward makes one pass
 *   out  the losses of the rows, or where they are reduced their sum, in order, in double precision */
#include <math.h>
#include <stdbool.h>
#include <string.h>

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

/* The loop of each kind: computes the losses or gradients of the items from first to before last, and returns whether
 * all of their targets are in range. An item is the `inner` rows of one place of the batch. */
typedef bool loop(const nr_cross_entropy_plan *p, void *out, int64_t first, int64_t last);
static loop *const loops[][2] = {
    [NR_CROSS_ENTROPY_FORWARD] = {forward_float32, forward_float64},
    [NR_CROSS_ENTROPY_BACKWARD] = {backward_float32, backward_float64},
    [NR_NLL_FORWARD] = {nll_float32, nll_float64},
    [NR_NLL_BACKWARD] = {nll_backward_float32, nll_backward_float64},
};

typedef struct job {
    const nr_cross_entropy_plan *plan;
    loop *run;
    void *out;
    int64_t items, items_in_chunk;
    _Atomic bool lost; /* a target is out of range */
} job;

static void run_chunk(void *context, int64_t chunk) {
    job *j = context;
    const int64_t first = chunk * j->items_in_chunk;
    if (!j->run(j->plan, j->out, first, least(first + j->items_in_chunk, j->items))) j->lost = true;
}

static int32_t check_targets(const char *name, const nr_cross_entropy_plan *p) {
    bool lost = false;
    for (int64_t i = 0; i < p->rows; i++) /* without branches: by vectors */
        lost |= p->target[i] != p->ignored && (uint64_t)p->target[i] >= (uint64_t)p->n;
    for (int64_t i = 0; lost && i < p->rows; i++) {
        const int64_t target = p->target[i];
        if (target != p->ignored && (target < 0 || target >= p->n))
            return nr_fail(NORCH_ERROR_INDEX, "%s: index %lld is out of range for size %lld at dimension 1", name,
                           (long long)target, (long long)p->n);
    }
    return NORCH_OK;
}

int32_t NR_ISA(nr_run_cross_entropy)(const nr_call *call) {
    const nr_cross_entropy_plan *p = call->plan;
    const bool single = call->dtype == NORCH_FLOAT32;
    job j = {.plan = p, .run = loops[call->op][single ? 0 : 1], .out = p->out};
    const char *name = call->op < NR_NLL_FORWARD ? "cross_entropy" : "nll";
    NR_TRY(check_targets(name, p)); /* before anything is written */
    const size_t bytes = (size_t)p->rows * (single ? sizeof(float) : sizeof(double));
    const bool reduces = p->reduced && (call->op == NR_CROSS_ENTROPY_FORWARD || call->op == NR_NLL_FORWARD);
    if (reduces && !(j.out = nr_scratch(bytes)))
        return nr_fail(NORCH_ERROR_MEMORY, "%s: no memory for %lld bytes of scratch", name, (long long)bytes);
    j.items = p->inner ? p->rows / p->inner : 0;
    j.items_in_chunk = CHUNK / (p->n * p->inner + 1) + 1;
    nr_parallel(ceil_div(j.items, j.items_in_chunk), run_chunk, &j);
    if (reduces && !j.lost) (single ? reduce_float32 : reduce_float64)(p, j.out);
    if (reduces) nr_scratch_free(j.out, bytes);
    if (!j.lost) return NORCH_OK;
    NR_TRY(check_targets(name, p));
    return nr_fail(NORCH_ERROR_INDEX, "%s: another thread wrote an index that is out of range", name);
}
