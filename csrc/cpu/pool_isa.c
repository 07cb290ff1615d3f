/* pool_isa: windows over planes, built once per instruction set. A row of windows is computed side by side, tap by tap,
 * so that the inner loops run along rows and become vectors; pool_loops.h holds them, for each float type.
 *
 *   planes    [ whole planes, about CHUNK elements ][ about CHUNK ][ ... ]      a thread takes a chunk, plane by plane
 *
 *   x, padded   . a b c d e .     window j sees three columns from j on: tap 0 lies inside for windows 1 to 4, tap 1
 *   windows     0 1 2 3 4         for all, tap 2 for 0 to 3. find_ranges does this once, for every row of every plane
 *
 * Shapes and strides: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning" (2016), chapter 3. */
#include <math.h>
#include <string.h>
#include "../families/pool.h"
#include "cpu.h"

#define CHUNK 16384 /* elements a thread takes at a time */
#define RUN 128     /* windows whose means are computed side by side */
#define LINE 1024   /* columns of them whose rows are added up first */

/* Bytes of windows whose maxima are computed side by side: rows are short, wider vectors would stay half empty. */
#ifdef __AVX2__
#define VECTOR 32
#define EVEN_float32 0, 2, 4, 6, 8, 10, 12, 14
#define EVEN_float64 0, 2, 4, 6
#else
#define VECTOR 16
#define EVEN_float32 0, 2, 4, 6
#define EVEN_float64 0, 2
#endif

/* Every other element of two vectors; gcc has the common builtin only since version 12. */
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, order) __builtin_shufflevector(a, b, order)
#else
#define SHUFFLE(a, b, order) __builtin_shuffle(a, b, (NAME(lanes)){order})
#endif

/* A call, and for each tap of a row the windows for which it lies inside: [from, to). */
typedef struct job {
    const nr_pool_plan *plan;
    int32_t kind, dtype;
    int64_t *from, *to;
    int64_t each; /* planes in a chunk */
} job;

static void find_ranges(const nr_pool_plan *p, int64_t *from, int64_t *to) {
    int64_t step = p->stride[1];
    for (int64_t c = 0; c < p->kernel[1]; c++) {
        int64_t shift = p->padding[1] - c * p->dilation[1],
                last = p->size[1] - 1 + shift; /* window j sees j * step - shift */
        from[c] = shift > 0 ? (shift + step - 1) / step : 0;
        to[c] = last < 0 ? 0 : least(last / step + 1, p->result[1]);
    }
}

/* How many elements window i counts along axis d. */
static int64_t counted(const nr_pool_plan *p, int d, int64_t i) {
    int64_t begin = i * p->stride[d] - p->padding[d], end = begin + p->kernel[d];
    if (p->count_padding) return least(end, p->size[d] + p->padding[d]) - begin;
    return least(end, p->size[d]) - (begin > 0 ? begin : 0);
}

/* Where window i of those that divide the plane begins along axis d; where it ends. */
static int64_t begin_of(const nr_pool_plan *p, int d, int64_t i) { return i * p->size[d] / p->result[d]; }
static int64_t end_of(const nr_pool_plan *p, int d, int64_t i) {
    return ((i + 1) * p->size[d] + p->result[d] - 1) / p->result[d];
}

#define NAME OF_DTYPE
#define TEMPLATE "pool_loops.h"
#define WANTED(kind, bits) (kind == 'f')
#include "each_dtype.h"

static void run_chunk(void *context, int64_t chunk) {
    const job *s = context;
    int64_t first = chunk * s->each, last = least(first + s->each, s->plan->planes);
    for (int64_t i = first; i < last; i++)
        (s->dtype == NORCH_FLOAT32 ? run_float32 : run_float64)(s, (nr_pool_kind)s->kind, i, last);
}

int32_t NR_ISA(nr_run_pool)(const nr_call *call) {
    const nr_pool_plan *p = call->plan;
    size_t bytes = (size_t)p->kernel[1] * 2 * sizeof(int64_t);
    job s = {.plan = p, .kind = call->op, .dtype = call->dtype, .from = nr_scratch(bytes)};
    if (!s.from) return nr_fail(NORCH_ERROR_MEMORY, "pool: no memory for %lld bytes of scratch", (long long)bytes);
    s.to = s.from + p->kernel[1];
    if (p->stride[1] > 0) find_ranges(p, s.from, s.to);
    s.each = CHUNK / greatest(p->size[0] * p->size[1], p->result[0] * p->result[1]) + 1;
    nr_parallel((p->planes + s.each - 1) / s.each, run_chunk, &s);
    nr_scratch_free(s.from, bytes);
    return NORCH_OK;
}
