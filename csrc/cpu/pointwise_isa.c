/* pointwise_isa: the elementwise kernels, compiled once per instruction set. The formulas are ops.def's,
 * the functions that they call math.h's, the loops and their picture pointwise_loops.h's; included here once for each dtype. */
#if defined(__GNUC__) && !defined(__clang__)
/* A copy of the loop for each value of a condition on one number: they come out scalar. */
#pragma GCC optimize("no-unswitch-loops")
#endif

#include "domain.h"
#include "math.h"
#include "pointwise.h"
#include "stream.h"

#define C(number) ((T)(number))
#define PACKED 128 /* elements that are brought into order at once */
#define EASY(stride) ((stride) == 0 || (stride) == sizeof(S) || (stride) == 2 * sizeof(S)) /* to pack */

#if defined(__clang__)
#define IVDEP _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed" /* not every formula becomes vectors, and need not */
#else
#define IVDEP _Pragma("GCC ivdep")
#endif
/* A formula for all dtypes compares unsigned numbers with 0, and integers with themselves. */
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wtype-limits"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wbool-compare"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
#endif

/* SSE2 compares no 64 bits, AVX2 does; each build takes what it has not from the one above it. */
#if defined(NR_ISA_BASELINE)
#define BUILT(kind, bits) 1
#elif !defined(__AVX512F__)
#define BUILT(kind, bits) (kind == 'f' || bits == 64)
#else
#define BUILT(kind, bits) (kind == 'f')
#endif

#define TEMPLATE "pointwise_rows.h"
#define WANTED BUILT
#include "each_dtype.h"

/* Each of `rows` numbers, `step` bytes apart, n times, by whole vectors: each overwrites the excess of the one before. */
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
}
