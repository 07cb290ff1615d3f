/* distance_isa: distances between rows, and their gradient, built once per instruction set; distance_loops.h holds the
 * loops, for each float type.
 *
 *            b0  b1  b2  b3          A task has some rows of a, and goes through all rows of b for each: b comes
 *       a0   .   .   .   .           from memory again, which takes less time than the differences. Pairs: b is a,
 *       a1   .   .   .   .           and only what lies above the diagonal is computed */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "../families/distance.h"
#include "cpu.h"
#include "math.h"

#ifdef __AVX2__
#define VECTOR 32
#else
#define VECTOR 16
#endif
#define BLOCK 64 /* bytes in whose lanes elements are added, with any instruction set in the same order */
#define SPAN 64  /* blocks whose sum is taken in the type of the elements; sums of spans in double precision */
/* A gradient: rows of b whose terms are summed before they are added to the result, and elements of a row at a time,
 * whose sums are on the stack. */
#define SUMMED_ROWS 64
#define SUMMED_WIDTH 256
#define CHUNK 16384 /* differences from which a second thread pays */

#ifndef __wasm__ /* a page waits for each byte: calls are composed of others there */

typedef struct job {
    const nr_distance_plan *plan;
    int32_t kind, dtype;
    int64_t rows; /* of a task */
} job;

#define NAME OF_DTYPE
#define TEMPLATE "distance_loops.h"
#define WANTED(kind, bits) (kind == 'f')
#include "each_dtype.h"

static void run_task(void *context, int64_t task) {
    const job *j = context;
    const nr_distance_plan *p = j->plan;
    const int64_t first = task * j->rows, last = least(first + j->rows, p->batch * p->rows);
    for (int64_t i = first; i < last; i++)
        (j->dtype == NORCH_FLOAT32 ? row_float32 : row_float64)(p, j->kind, i / p->rows, i % p->rows);
}

int32_t NR_ISA(nr_run_distance)(const nr_call *call) {
    const nr_distance_plan *p = call->plan;
    job j = {.plan = p, .kind = call->op, .dtype = call->dtype};
    j.rows = CHUNK / (p->columns * (p->width + 8) + 1) + 1;
    nr_parallel(ceil_div(p->batch * p->rows, j.rows), run_task, &j);
    return NORCH_OK;
}

#else

int32_t NR_ISA(nr_run_distance)(const nr_call *call) {
    (void)call;
    return nr_fail(NORCH_ERROR_DEVICE, "distances: no kernel in WebAssembly");
}

#endif
