/* reduce_isa: the reduction kernels, compiled once per instruction set. ops.def says what a reduction
 * computes, reduce_kind.h how it loops, with a picture; each dtype is included once. */
#if defined(__GNUC__) && !defined(__clang__)
/* This pass turns the selects of neighbouring steps into branches, and the loop stays scalar. */
#pragma GCC optimize("no-tree-pre")
#define ONE_COPY __attribute__((noinline, noclone))
#define VECTORS_FIRST _Pragma("GCC unroll 1") /* vectorizes short loops before they are unrolled */
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
#define UNUSED __attribute__((unused))

/* SSE2 has no extremes of integers and compares no 64 bits, AVX2 does; each build takes what it has not from the one above. */
#if defined(NR_ISA_BASELINE)
#define BUILT(kind, bits) 1
#elif !defined(__AVX512F__)
#define BUILT(kind, bits) (bits >= 32)
#else
#define BUILT(kind, bits) (kind == 'f')
#endif

#define TEMPLATE "reduce_loops.h"
#define WANTED BUILT
#include "each_dtype.h"

void NR_ISA(nr_fill_reduce)(nr_kernel_rows kernels) {
#define LINE OF_DTYPE(fill)(kernels);
#define TEMPLATE "each_line.h"
#define WANTED BUILT
#include "each_dtype.h"
}
