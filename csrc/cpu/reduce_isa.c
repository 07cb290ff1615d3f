/* reduce_isa: the reduction kernels, compiled once per instruction set: the formulas of ops.def in the loops of
 * reduce_kind.h, for each dtype. */
#if defined(__GNUC__) && !defined(__clang__)
/* This pass turns selects into branches, which keeps loops from being vectorised. */
#pragma GCC optimize("no-tree-pre")
#define ONE_COPY __attribute__((noinline, noclone))
#define VECTORS_FIRST _Pragma("GCC unroll 1") /* vectorizes short loops before they are unrolled */
#define ONCE VECTORS_FIRST                    /* before a loop that runs once in a run of elements */
#else
#define ONE_COPY __attribute__((noinline))
#define VECTORS_FIRST
/* Unrolled, these loops take 17 kB of the compressed library, which a page has to load, and save no time. */
#if defined(__wasm__)
#define ONCE _Pragma("clang loop unroll(disable)")
#else
#define ONCE
#endif
#endif
#define IN_MEMORY(block) __asm__("" : "+m"(block)) /* keeps compilers from splitting the block into scalars */
#define NO_VECTORS __asm__("")                     /* keeps a loop that is not worth its size from being vectorised */

#include <math.h>
#include <stdbool.h>

#include "cpu.h"
#include "domain.h"
#include "math.h"
#include "reduce.h"
#include "reduce_states.h"

/* A formula that is not inlined keeps the loop around it from being vectorised. */
#define UNUSED __attribute__((unused))

/* The kernels that a build has; for others the table keeps those of the narrower build (cpu.c). AVX2 repeats what SSE2
 * lacks instructions for, such as integer minima and 64-bit comparisons. Whether numbers are 0 is seldom asked. */
#if defined(NR_ISA_BASELINE)
#define BUILT(kind, bits) 1
#define ROW_BUILT(op) true
#elif !defined(__AVX512F__)
#define BUILT(kind, bits) (bits >= 32)
#define ROW_BUILT(op) (sizeof(T) == 8 || ((op) != NR_OP_any && (op) != NR_OP_all))
#else
#define BUILT(kind, bits) (kind == 'f')
#define ROW_BUILT(op) ((op) != NR_OP_any && (op) != NR_OP_all)
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
