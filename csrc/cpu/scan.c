/* scan: cumsum, cumprod, cummax and the like, for several lanes (positions of the other axes) side by side: contiguous
 * ones as vectors, strided ones by fours, so that their dependent additions overlap. float sums are in double, as in
 * PyTorch. An axis is never cut, so that threads do not change the result.
 *
 *   cumsum(0)   state  [ up to 64 neighbours ]       cumsum(1)   four rows    0 -> 1 -> 2 -> ...
 *   row i       out = state += x, as vectors                     at a time:   0 -> 1 -> 2 -> ...
 *
 * A parallel scan (Blelloch, "Prefix Sums and Their Applications", 1990) would read the axis twice, and its sums would
 * depend on the cuts; cuda/scan.cu needs it, for its many threads. */
#include <math.h>
#include <string.h>

#include "../core/dtype.h"
#include "../families/scan.h"
#include "cpu.h"

#define WIDTH 64    /* lanes at once, at most */
#define CHUNK 32768 /* elements from which a second thread pays */

/* `width` lanes of n elements; step: to the next element, next: to the next lane (bytes). */
typedef struct lanes {
    char *out;
    const char *x;
    char *values; /* of extremes, which lie like `out`; or NULL */
    int64_t n, step[2], next[2], width;
} lanes;

#pragma GCC diagnostic ignored "-Wtautological-compare" /* it looks for NaN among integers too */
#define TEMPLATE "scan_loops.h"
#define WANTED(kind, bits) (kind == 'f' || (kind == 'i' && bits == 64))
#include "each_dtype.h"

typedef void (*scan_kernel)(const lanes *l);

static scan_kernel find_kernel(int32_t op, int32_t dtype) {
    static const scan_kernel kernels[][3] = {
        [NORCH_SCAN_SUM] = {sum_int64, sum_float32, sum_float64},
        [NORCH_SCAN_PROD] = {prod_int64, prod_float32, prod_float64},
        [NORCH_SCAN_LOGSUMEXP] = {NULL, logsumexp_float32, logsumexp_float64},
        [NORCH_SCAN_MAX] = {largest_int64, largest_float32, largest_float64},
        [NORCH_SCAN_MIN] = {smallest_int64, smallest_float32, smallest_float64},
    };
    return kernels[op][dtype == NORCH_INT64 ? 0 : dtype == NORCH_FLOAT32 ? 1 : 2];
}

typedef struct job {
    const nr_scan_plan *plan;
    scan_kernel kernel;
    int64_t size;                              /* of an element of x */
    int64_t width, row, tiles, tiles_in_chunk; /* a tile is `width` lanes of the innermost loop, row: tiles along it */
} job;

static void run_chunk(void *context, int64_t chunk) {
    const job *j = context;
    const nr_plan *nest = &j->plan->nest;
    int64_t begin = chunk * j->tiles_in_chunk, end = begin + j->tiles_in_chunk;
    for (int64_t t = begin; t < end && t < j->tiles; t++) {
        lanes l = {.out = nest->data[0], .x = nest->data[1], .n = j->plan->n, .width = j->width};
        int64_t first = t % j->row * j->width, rest = t / j->row;
        if (nest->size[0] - first < l.width) l.width = nest->size[0] - first;
        for (int32_t d = 0; d < nest->ndim; d++) {
            int64_t at = d == 0 ? first : rest % nest->size[d];
            if (d) rest /= nest->size[d];
            l.out += at * nest->stride[0][d];
            l.x += at * nest->stride[1][d];
        }
        for (int o = 0; o < 2; o++) {
            l.step[o] = j->plan->step[o];
            l.next[o] = nest->stride[o][0];
        }
        if (j->plan->values)
            l.values = (char *)j->plan->values + (l.out - nest->data[0]) / (int64_t)sizeof(int64_t) * j->size;
        j->kernel(&l);
    }
}

int32_t nr_run_scan(const nr_call *call) {
    const nr_scan_plan *plan = call->plan;
    job j = {.plan = plan, .kernel = find_kernel(call->op, call->dtype), .width = WIDTH};
    j.size = nr_size_of(call->dtype);
    if (j.width > plan->nest.size[0]) j.width = plan->nest.size[0];
    j.row = (plan->nest.size[0] + j.width - 1) / j.width;
    j.tiles = plan->nest.numel / plan->nest.size[0] * j.row;
    int64_t work = j.width * plan->n;
    j.tiles_in_chunk = work < CHUNK ? CHUNK / work : 1;
    nr_parallel((j.tiles + j.tiles_in_chunk - 1) / j.tiles_in_chunk, run_chunk, &j);
    return NORCH_OK;
}
