/* gather: elements at indices, RUN at a time, by the instructions that processors have for it. */
#ifndef NR_GATHER_H
#define NR_GATHER_H

#ifdef __AVX2__
#include <immintrin.h>
#endif
#include "cpu.h"

#define RUN 32
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
#else
#define GATHER(x, at, to) EACH(to)[i] = (at)[i] < 0 ? 0 : (x)[(at)[i]]
#endif

#endif
