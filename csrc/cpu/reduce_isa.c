/* reduce_isa: the reduction kernels, compiled once an instruction set. ops.def says what a reduction
 * computes, reduce_kind.h how it loops, with a picture; this file names the types. */
#if defined(__GNUC__) && !defined(__clang__)
/* This pass turns the selects of neighbouring steps into branches, and the loop stays scalar. */
#pragma GCC optimize("no-tree-pre")
#define ONE_COPY __attribute__((noinline, noclone))
#define VECTORS_FIRST _Pragma("GCC unroll 1") /* short loops shall become vectors before they are unrolled */
#else
#define ONE_COPY __attribute__((noinline))
#define VECTORS_FIRST
#endif
#define IN_MEMORY(block) __asm__("" : "+m"(block)) /* else halves of it become scalars */

#include <math.h>
#include <stdbool.h>

#include "cpu.h"
#include "domain.h"
#include "math.h"
#include "reduce.h"
#include "reduce_states.h"

/* Without this the formulas stay calls, and the loops around them scalar. */
#define INLINE static inline __attribute__((always_inline))
#define UNUSED __attribute__((unused))

#define DTYPE float32
#define NUMBER NORCH_FLOAT32
#define KIND_OF_DTYPE F
#define S float
#define T float
#define ACC float
#define MASK int32_t
#define POSITION int32_t
#define LEAST (-(float)INFINITY)
#define MOST ((float)INFINITY)
#include "reduce_loops.h"

#define DTYPE float64
#define NUMBER NORCH_FLOAT64
#define KIND_OF_DTYPE F
#define S double
#define T double
#define ACC double
#define MASK int64_t
#define POSITION int64_t
#define LEAST (-(double)INFINITY)
#define MOST ((double)INFINITY)
#include "reduce_loops.h"

#ifdef NR_ISA_BASELINE

#define DTYPE boolean
#define NUMBER NORCH_BOOL
#define KIND_OF_DTYPE B
#define S uint8_t
#define T bool
#define ACC int64_t
#define MASK uint8_t
#define POSITION int32_t
#define LEAST 0
#define MOST 1
#include "reduce_loops.h"

#define DTYPE uint8
#define NUMBER NORCH_UINT8
#define KIND_OF_DTYPE I
#define S uint8_t
#define T uint8_t
#define ACC int64_t
#define MASK uint8_t
#define POSITION int32_t
#define LEAST 0
#define MOST UINT8_MAX
#include "reduce_loops.h"

#endif

/* SSE2 has no extremes of integers and compares no 64 bits, AVX2 does; the build above it takes these from there. */
#ifndef __AVX512F__

#define DTYPE int32
#define NUMBER NORCH_INT32
#define KIND_OF_DTYPE I
#define S int32_t
#define T int32_t
#define ACC int64_t
#define MASK int32_t
#define POSITION int32_t
#define LEAST INT32_MIN
#define MOST INT32_MAX
#include "reduce_loops.h"

#define DTYPE int64
#define NUMBER NORCH_INT64
#define KIND_OF_DTYPE I
#define S int64_t
#define T int64_t
#define ACC int64_t
#define MASK int64_t
#define POSITION int64_t
#define LEAST INT64_MIN
#define MOST INT64_MAX
#include "reduce_loops.h"

#endif

void NR_ISA(nr_fill_reduce)(nr_kernel_rows kernels) {
    fill_float32(kernels);
    fill_float64(kernels);
#ifdef NR_ISA_BASELINE
    fill_boolean(kernels);
    fill_uint8(kernels);
#endif
#ifndef __AVX512F__
    fill_int32(kernels);
    fill_int64(kernels);
#endif
}
