/* pointwise_isa: the elementwise kernels, compiled once an instruction set. The formulas are ops.def's,
 * the functions that they call math.h's, the loops and their picture pointwise_loops.h's; here each dtype is only given
 * its types. */
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
#define INLINED static inline __attribute__((always_inline))

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

#define T float
#define S float
#define LABEL float32
#define DTYPE NORCH_FLOAT32
#define KIND_OF_DTYPE F
#define QUICK_IF nr_easy_f32
#define QUICK(name)                                                \
    (NR_OP_##name == NR_OP_remainder ? nr_easy_floor_remainder_f32 \
     : NR_OP_##name == NR_OP_fmod    ? nr_easy_rest_f32            \
                                     : NULL)
#include "pointwise_rows.h"

#define T double
#define S double
#define LABEL float64
#define DTYPE NORCH_FLOAT64
#define KIND_OF_DTYPE F
#define QUICK_IF NULL
#define QUICK(name) NULL
#include "pointwise_rows.h"

#ifdef NR_ISA_BASELINE
#define T bool
#define S uint8_t
#define LABEL truth
#define DTYPE NORCH_BOOL
#define KIND_OF_DTYPE B
#define QUICK_IF NULL
#define QUICK(name) NULL
#include "pointwise_rows.h"

#define T uint8_t
#define S uint8_t
#define LABEL uint8
#define DTYPE NORCH_UINT8
#define KIND_OF_DTYPE I
#define QUICK_IF NULL
#define QUICK(name) NULL
#include "pointwise_rows.h"

#define T int32_t
#define S int32_t
#define LABEL int32
#define DTYPE NORCH_INT32
#define KIND_OF_DTYPE I
#define QUICK_IF NULL
#define QUICK(name) NULL
#include "pointwise_rows.h"

#endif

/* SSE2 compares no 64 bits, AVX2 does; the build above it takes these from there. */
#ifndef __AVX512F__
#define T int64_t
#define S int64_t
#define LABEL int64
#define DTYPE NORCH_INT64
#define KIND_OF_DTYPE I
#define QUICK_IF NULL
#define QUICK(name) NULL
#include "pointwise_rows.h"
#endif

/* Each of `rows` numbers, `step` bytes apart, n times, by whole vectors: what is too much the next ones cover. */
void NR_ISA(nr_spread)(char *room, const char *from, int64_t step, int64_t n, int64_t rows, int64_t size) {
#define SPREAD(WORD)                                                                                              \
    for (; rows > 0; rows--, from += step, room += n * (int64_t)sizeof(WORD)) {                                   \
        typedef WORD words __attribute__((vector_size(NR_SPREAD), aligned(1), may_alias));                        \
        const words number = (words){0} + *(const WORD *)(const void *)from;                                      \
        for (int64_t i = 0; i < n * (int64_t)sizeof(WORD); i += NR_SPREAD) *(words *)(void *)(room + i) = number; \
    }
    switch (size) {
    case 1: SPREAD(uint8_t) break;
    case 2: SPREAD(uint16_t) break;
    case 4: SPREAD(uint32_t) break;
    default: SPREAD(uint64_t)
    }
#undef SPREAD
}

void NR_ISA(nr_fill_pointwise)(nr_kernel_rows kernels) {
    fill_kernels_float32(kernels);
    fill_kernels_float64(kernels);
#ifdef NR_ISA_BASELINE
    fill_kernels_truth(kernels);
    fill_kernels_uint8(kernels);
    fill_kernels_int32(kernels);
#endif
#ifndef __AVX512F__
    fill_kernels_int64(kernels);
#endif
}
