/* softmax_isa: softmax and log-softmax, forward and backward, along rows, or along several columns side by side;
 * compiled once per instruction set. A block is summed in lanes, and blocks in double. The largest element is
 * subtracted first, so that nothing overflows (Blanchard, Higham and Higham, IMA J. Numer. Anal. 41, 2021).
 *
 *   x    [ block of 1024 | block | block | ... ]   1. the largest of the row
 *   out  [ e^(x - top)   | ...                 ]   2. block by block, and its sum while it is in the first cache
 *   out  [ times 1 / sum | ...                 ]   3. the division by the sum; log-softmax: x - (top + log(sum)) */
#include <math.h>
#include <stdbool.h>

#include "../families/softmax.h"
#include "cpu.h"
#include "math.h"

#define BLOCK 1024                    /* elements of a row that wait in the first cache for their sum */
#define WIDTH 64                      /* columns at once, at most */
#define STEPS 64                      /* rows that a column adds up before it goes to double */
#define SHORT 24                      /* elements of rows that are turned into columns */
#define LOGS(n) ((n) <= 128 ? 16 : 1) /* rows whose logarithms are taken together */
#define CHUNK 16384                   /* elements from which a second thread pays */

#define TEMPLATE "softmax_loops.h"
#define WANTED(kind, bits) (kind == 'f')
#include "each_dtype.h"

typedef struct job {
    const nr_softmax_plan *plan;
    void (*kernel)(const nr_softmax_plan *p, int64_t tile);
    int64_t tiles, tiles_in_chunk; /* a tile is a row, some columns, or some short rows */
} job;

static void run_chunk(void *context, int64_t chunk) {
    const job *j = context;
    int64_t begin = chunk * j->tiles_in_chunk, end = begin + j->tiles_in_chunk;
    for (int64_t t = begin; t < end && t < j->tiles; t++) j->kernel(j->plan, t);
}

int32_t NR_ISA(nr_run_softmax)(const nr_call *call) {
#define KERNELS(dtype)                                                                                        \
    {                                                                                                         \
        {row_softmax_##dtype, row_log_softmax_##dtype, row_softmax_backward_##dtype,                          \
         row_log_softmax_backward_##dtype},                                                                   \
            {columns_##dtype, log_columns_##dtype, columns_backward_##dtype, log_columns_backward_##dtype}, { \
            short_##dtype, log_short_##dtype, NULL, log_short_backward_##dtype                                \
        }                                                                                                     \
    }
    static void (*const kernels[2][3][4])(const nr_softmax_plan *p, int64_t tile) = {KERNELS(float32),
                                                                                     KERNELS(float64)};
    const nr_softmax_plan *p = call->plan;
    enum {
        ROWS,
        COLUMNS,
        SHORT_ROWS
    } way = p->inner > 1                                       ? COLUMNS
            : p->n <= SHORT && call->op != NR_SOFTMAX_BACKWARD ? SHORT_ROWS
                                                               : ROWS;
    int64_t side = way == COLUMNS ? p->inner : p->outer;
    int64_t width = way != ROWS ? WIDTH : call->op == NR_LOG_SOFTMAX_FORWARD ? LOGS(p->n) : 1;
    if (side < width) width = side;
    job j = {.plan = p, .kernel = kernels[call->dtype == NORCH_FLOAT64][way][call->op]};
    j.tiles = (side + width - 1) / width * (way == COLUMNS ? p->outer : 1);
    j.tiles_in_chunk = CHUNK / (p->n * width) + 1;
    nr_parallel((j.tiles + j.tiles_in_chunk - 1) / j.tiles_in_chunk, run_chunk, &j);
    return NORCH_OK;
}
