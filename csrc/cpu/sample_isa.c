/* sample_isa: images sampled at coordinates, and the gradients, built once per instruction set. RUN points at a time: for
 * each axis where the coordinates lie and which elements have a weight there; their products are the taps of a point.
 * sample_loops.h holds the loops, for each float type.
 *
 *   x    a b c d        a point between f and g, b and c:    y = w0 b + w1 c + w2 f + w3 g, of every channel
 *        e f g h        outside x a tap reads 0
 *
 * The taps are computed once for all channels. A task has whole runs of points, or, for the gradient of x, to which
 * points anywhere add, whole channels: threads do not change the order of sums. Jaderberg et al., "Spatial Transformer
 * Networks" (2015), section 3.3; cubic weights: Keys, "Cubic convolution interpolation" (1981), a = -0.75. */
#include <math.h>
#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif
#include "../families/sample.h"
#include "cpu.h"

#define RUN 32
#define MOST_TAPS 16
#define TASK 8      /* runs of points of a task, */
#define CHANNELS 16 /* or channels */

#define FLOOR(x) _Generic((x), float: floorf, default: floor)(x)
#define RINT(x) _Generic((x), float: rintf, default: rint)(x)

#define EACH for (int i = 0; i < RUN; i++)

/* at[i] < 0 ? 0 : x[at[i]], of a run: compilers make no gathers of it. */
#if defined __AVX512F__
#define GATHER(x, at, to)                                                      \
    for (int i = 0; i < RUN; i += (int)(64 / sizeof *(to))) {                  \
        const __m512i here = _mm512_loadu_si512((at) + i);                     \
        _Generic(*(to), float: gather_f, double: gather_d)(x, here, (to) + i); \
    }
static inline void gather_f(const float *x, __m512i at, float *to) {
    const __mmask16 inside = _mm512_cmpge_epi32_mask(at, _mm512_setzero_si512());
    _mm512_storeu_ps(to, _mm512_mask_i32gather_ps(_mm512_setzero_ps(), inside, at, x, 4));
}
static inline void gather_d(const double *x, __m512i at, double *to) {
    const __mmask8 inside = _mm512_cmpge_epi64_mask(at, _mm512_setzero_si512());
    _mm512_storeu_pd(to, _mm512_mask_i64gather_pd(_mm512_setzero_pd(), inside, at, x, 8));
}
#elif defined __AVX2__
#define GATHER(x, at, to)                                                      \
    for (int i = 0; i < RUN; i += (int)(32 / sizeof *(to))) {                  \
        const __m256i here = _mm256_loadu_si256((const __m256i *)((at) + i));  \
        _Generic(*(to), float: gather_f, double: gather_d)(x, here, (to) + i); \
    }
static inline void gather_f(const float *x, __m256i at, float *to) { /* the sign bit of a mask chooses */
    const __m256 inside = _mm256_castsi256_ps(_mm256_xor_si256(at, _mm256_set1_epi32(-1)));
    _mm256_storeu_ps(to, _mm256_mask_i32gather_ps(_mm256_setzero_ps(), x, at, inside, 4));
}
static inline void gather_d(const double *x, __m256i at, double *to) {
    const __m256d inside = _mm256_castsi256_pd(_mm256_xor_si256(at, _mm256_set1_epi32(-1)));
    _mm256_storeu_pd(to, _mm256_mask_i64gather_pd(_mm256_setzero_pd(), x, (__m256i)at, inside, 8));
}
#endif

typedef struct job {
    const nr_sample_plan *plan;
    int32_t kind, dtype;
    int64_t parts; /* tasks of an image */
} job;

#define NAME OF_DTYPE
#define TEMPLATE "sample_loops.h"
#define WANTED(kind, bits) (kind == 'f')
#include "each_dtype.h"

static void run_task(void *context, int64_t task) {
    const job *j = context;
    (j->dtype == NORCH_FLOAT32 ? run_float32 : run_float64)(j, task / j->parts, task % j->parts);
}

int32_t NR_ISA(nr_run_sample)(const nr_call *call) {
    const nr_sample_plan *p = call->plan;
    job j = {.plan = p, .kind = call->op, .dtype = call->dtype};
    j.parts = call->op == NR_SAMPLE_INPUT ? ceil_div(p->channels, CHANNELS) : ceil_div(p->points, TASK * RUN);
    nr_parallel(p->images * j.parts, run_task, &j);
    return NORCH_OK;
}
