/* normalize_isa: layer, group and RMS normalisation and their gradients, built once per instruction set;
 * normalize_loops.h has the loops for each float type. The backward pass recomputes the statistics, from a row in the
 * first cache, which costs less than to store them.
 *
 *   x (rows, n)    [ row ][ row ][ row ] | [ row ][ row ][ row ] | ...     a thread takes a chunk: whole rows, together
 *   out            [ row ][ row ][ row ] | [ row ][ row ][ row ] | ...     about CHUNK elements
 *   sums, going    [ sums of g h, of g ] | [ sums of g h, of g ] | ...     one pair a chunk, added to row by row;
 *   backward         -> the gradients of weight and bias: chunk 0 + chunk 1 + ..., in this order
 *
 * Ba, Kiros and Hinton, "Layer Normalization" (2016); without the mean: Zhang and Sennrich (2019); of groups of
 * channels: Wu and He, "Group Normalization" (2018). */
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include "../families/normalize.h"
#include "cpu.h"
#include "math.h"

#define CHUNK 16384   /* elements a thread takes at a time */
#define VECTOR 32     /* bytes of a row that are added up side by side */
#define AT_ONCE 8     /* rows, of PIECE elements together, that take the same step one after the other */
#define PIECE 1024    /* elements after which those go into a sum of double precision */
#define MOST_ROWS 256 /* that a thread takes at a time: their sums make the gradient of the weight ... */
#define NEAR 4        /* of a variance: the square of an origin's distance from the mean, at most */
#define LEAST_ROWS 16 /* ... which need memory in addition to those of x */

typedef struct job {
    const nr_normalize_plan *plan;
    bool is_backward;
    int32_t dtype;
    int64_t each; /* rows in a chunk */
    void *sums;   /* for each chunk, the two sums, where they are wanted */
} job;

/* The index of the first weight of a row. */
static int64_t weights_of(const nr_normalize_plan *p, int64_t row) { return row * (p->n / p->inner) % p->weights; }

#define NAME OF_DTYPE
#define SQRT _Generic((T)0, float: sqrtf, double: sqrt)
#define TEMPLATE "normalize_loops.h"
#define WANTED(kind, bits) (kind == 'f')
#include "each_dtype.h"

static void run_chunk(void *context, int64_t chunk) {
    const job *s = context;
    int64_t first = chunk * s->each, last = least(first + s->each, s->plan->rows);
    (s->dtype == NORCH_FLOAT32 ? run_float32 : run_float64)(s, chunk, first, last);
}

int32_t NR_ISA(nr_run_normalize)(const nr_call *call) {
    const nr_normalize_plan *p = call->plan;
    const bool single = call->dtype == NORCH_FLOAT32;
    job s = {.plan = p, .is_backward = call->op == NR_NORMALIZE_BACKWARD, .dtype = call->dtype};
    size_t row = (size_t)(2 * p->weights) * (single ? sizeof(float) : sizeof(double));
    if (p->grad_affine) memset(p->grad_affine, 0, row);
    if (p->rows == 0 || p->n == 0) return NORCH_OK;
    s.each = least(CHUNK / p->n + 1, MOST_ROWS);
    if (p->grad_affine && s.each < LEAST_ROWS) s.each = LEAST_ROWS;
    int64_t chunks = (p->rows + s.each - 1) / s.each;
    if (p->grad_affine) {
        s.sums = nr_scratch((size_t)chunks * row);
        if (!s.sums)
            return nr_fail(NORCH_ERROR_MEMORY, "normalize_backward: no memory for %lld bytes of scratch",
                           (long long)((size_t)chunks * row));
    }
    nr_parallel(chunks, run_chunk, &s);
    if (s.sums) {
        (single ? add_chunks_float32 : add_chunks_float64)(p->grad_affine, s.sums, chunks, 2 * p->weights);
        nr_scratch_free(s.sums, (size_t)chunks * row);
    }
    return NORCH_OK;
}
