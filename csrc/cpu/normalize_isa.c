/* normalize_isa: rows made to have mean 0 and variance 1, and the gradients of that, built once an instruction set; the
 * loops, for each float type, are in normalize_loops.h. Statistics are computed anew going backward: a row is in the first cache
 * then, and they would cost more to store. */
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include "cpu.h"

#define CHUNK 16384     /* elements a thread takes at a time */
#define VECTOR 32       /* bytes of a row that are added up side by side */
#define PIECE 1024      /* elements after which those go into a sum of double precision */
#define ROWS_IN_SUM 256 /* rows added up in one go, for the gradient of the weight */

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

typedef struct norm {
    const nr_normalize_plan *plan;
    int32_t kind, dtype;
    int64_t each; /* rows in a chunk */
    void *sums;   /* weight: for each chunk, the two sums */
} norm;

#define NAME(x) NR_JOIN2(x, SUFFIX)

#define T float
#define SUFFIX f32
#define SQRT sqrtf
#include "normalize_loops.h"
#undef T
#undef SUFFIX
#undef SQRT

#define T double
#define SUFFIX f64
#define SQRT sqrt
#include "normalize_loops.h"

static void run_chunk(void *context, int64_t chunk) {
    const norm *s = context;
    int64_t first = chunk * s->each, last = least(first + s->each, s->plan->rows);
    (s->dtype == NORCH_FLOAT32 ? run_f32 : run_f64)(s, chunk, first, last);
}

int32_t NR_ISA(nr_run_normalize)(const nr_call *call) {
    const nr_normalize_plan *p = call->plan;
    norm s = {.plan = p, .kind = call->op, .dtype = call->dtype, .each = CHUNK / p->n + 1};
    if (call->op == NR_NORMALIZE_WEIGHT) s.each = ROWS_IN_SUM;
    int64_t chunks = (p->rows + s.each - 1) / s.each, element = call->dtype == NORCH_FLOAT32 ? 4 : 8;
    size_t bytes = (size_t)(chunks * 2 * p->n * element);
    if (call->op == NR_NORMALIZE_WEIGHT) {
        memset(p->out, 0, (size_t)(2 * p->n * element));
        if (chunks == 0) return NORCH_OK;
        s.sums = nr_scratch(bytes);
        if (!s.sums) return nr_fail(NORCH_ERROR_MEMORY, "norm: no memory for %lld bytes of scratch", (long long)bytes);
    }
    nr_parallel(chunks, run_chunk, &s);
    if (s.sums) {
        (call->dtype == NORCH_FLOAT32 ? add_chunks_f32 : add_chunks_f64)(p->out, s.sums, chunks, 2 * p->n);
        nr_scratch_free(s.sums, bytes);
    }
    return NORCH_OK;
}
