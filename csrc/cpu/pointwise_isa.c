/* pointwise_isa: the elementwise kernels, compiled once per instruction set: the formulas of ops.def, with the
 * functions of math.h, in the loops of pointwise_loops.h, for each dtype. */
#if defined(__GNUC__) && !defined(__clang__)
/* Unswitching copies the loop for each value of a condition on a scalar operand, and the copies are not vectorised. */
#pragma GCC optimize("no-unswitch-loops")
#endif

#include "domain.h"
#include "math.h"
#include "pointwise.h"
#include "stream.h"

#define C(number) ((T)(number))
#define PACKED 128 /* elements of a packing buffer */
#define EASY(stride) ((stride) == 0 || (stride) == sizeof(S) || (stride) == 2 * sizeof(S)) /* cheap to pack */

#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed" /* not every formula can be vectorised */
#endif
/* Formulas for all dtypes compare unsigned numbers with 0, and (for NaN) integers with themselves. */
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wtype-limits"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wbool-compare"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
#endif

/* The kernels that a build has; for others the table keeps those of the narrower build (cpu.c). AVX2 repeats what gains
 * by it, such as 64-bit comparisons and 32-bit products, which SSE2 lacks; AVX-512 leaves out what it does not make
 * faster, such as scalar series, and some short rows, for the size of the library. */
#if defined(NR_ISA_BASELINE)
#define BUILT(kind, bits) 1
#define ROW_BUILT(op) true
#elif !defined(__AVX512F__)
#define BUILT(kind, bits) (bits >= 32)
#define ROW_BUILT(op) true
#else
#define BUILT(kind, bits) (kind == 'f')
#define ROW_BUILT(op) gains(op, sizeof(T) == sizeof(double))
INLINE bool gains(int op, bool wide) {
    switch (op) {
    case NR_OP_nextafter:
    case NR_OP_significand:
    case NR_OP_exponent:
    case NR_OP_round_decimals:
    case NR_OP_round_tens:
    case NR_OP_copysign:
    case NR_OP_hypot:
    case NR_OP_digamma:
    case NR_OP_zeta:
    case NR_OP_igamma:
    case NR_OP_igammac:
    case NR_OP_poisson: return false;
    case NR_OP_i0:
    case NR_OP_i0e:
    case NR_OP_i1:
    case NR_OP_i1e:
    case NR_OP_lgamma: return !wide;
    default: return true;
    }
}
#endif

#define TEMPLATE "pointwise_rows.h"
#define WANTED BUILT
#include "each_dtype.h"

#ifdef __AVX512F__
/* Square roots of 16 floats: the instruction takes twice the time of an estimate, a step of Newton's method for the
 * root s and for h = 1 / 2s, and a correction by the rest x - s^2, which is exact. The result is rounded correctly for
 * every x from 2^-95 (tests/ops/test_pointwise.py); smaller rests may underflow. */
static inline __m512 sqrt_16(__m512 x) {
    const __m512i below = _mm512_sub_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x10000000));
    if (_mm512_cmplt_epu32_mask(below, _mm512_set1_epi32(0x6f800000)) != 0xffff) return _mm512_sqrt_ps(x);
    const __m512 half = _mm512_set1_ps(0.5f), y = _mm512_rsqrt14_ps(x);
    __m512 s = _mm512_mul_ps(x, y), h = _mm512_mul_ps(y, half), miss = _mm512_fnmadd_ps(s, h, half);
    s = _mm512_fmadd_ps(s, miss, s);
    h = _mm512_fmadd_ps(h, miss, h);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(s, s, x), h, s);
}

static void sqrt_float32(int64_t n, char *const *p, const int64_t *s, bool streams) {
    int64_t done = 0;
    if (!streams && s[0] == 4 && s[1] == 4)
        for (; done + 16 <= n; done += 16) _mm512_storeu_ps(p[0] + 4 * done, sqrt_16(_mm512_loadu_ps(p[1] + 4 * done)));
    if (done < n) kernel_sqrt_float32(n - done, (char *const[]){p[0] + 4 * done, p[1] + 4 * done}, s, streams);
}
#endif

/* Repeats each of `rows` scalars, `step` bytes apart, n times, by whole vectors: a row overwrites the excess of the one
 * before. */
void NR_ISA(nr_fill_rows)(char *buffer, const char *from, int64_t step, int64_t n, int64_t rows, int64_t size) {
#define FILL(WORD)                                                                             \
    for (; rows > 0; rows--, from += step, buffer += n * (int64_t)sizeof(WORD)) {              \
        typedef WORD words __attribute__((vector_size(NR_FILL_BYTES), aligned(1), may_alias)); \
        const words number = (words){0} + *(const WORD *)(const void *)from;                   \
        for (int64_t i = 0; i < n * (int64_t)sizeof(WORD); i += NR_FILL_BYTES)                 \
            *(words *)(void *)(buffer + i) = number;                                           \
    }
    switch (size) {
    case 1: FILL(uint8_t) break;
    case 2: FILL(uint16_t) break;
    case 4: FILL(uint32_t) break;
    default: FILL(uint64_t)
    }
#undef FILL
}

void NR_ISA(nr_fill_pointwise)(nr_kernel_rows kernels) {
#define LINE OF_DTYPE(fill)(kernels);
#define TEMPLATE "each_line.h"
#define WANTED BUILT
#include "each_dtype.h"
#ifdef __AVX512F__
    kernels[NR_OP_sqrt][NORCH_FLOAT32] = (nr_kernel)sqrt_float32;
#endif
}
