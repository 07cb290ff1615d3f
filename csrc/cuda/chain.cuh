/* chain: the argument that the launcher of chains (chain.cu) passes to their kernels (chain_dtype.cu): a small program,
 * with a step for each call.
 *
 *   step      op    role   out         in                          operands   0: x, strides   1: 0.5   2: y, strides
 *   0         mul   each   register 0  operand 0, operand 1        reductions 0: where x would be in memory, team
 *   1         sum   into   register 1  register 0, reduction 0
 *   2         sqrt  row    register 1  register 1                  registers  0: an element each   1: a row each
 *   3         div   each   operand 2   register 0, register 1
 */
#ifndef NR_CUDA_CHAIN_H
#define NR_CUDA_CHAIN_H

#include "elements.cuh"
extern "C" {
#include "../families/chain.h"
}

#define NR_CHAIN_COPY 255 /* the op of a copy or cast */
static_assert(NR_OP_COUNT <= NR_CHAIN_COPY, "the op of a step is a byte");

/* out and in: a register, or NR_CHAIN_REGISTERS + an operand; of a reduction in[1] is its number. */
struct chain_step {
    uint8_t op, role, out, in[NR_MAX_OPERANDS - 1];
    uint8_t inputs, first, from, to; /* dtypes in memory: of the first input, of the others, of the result */
};

/* In memory, or a number of the dtype that the kernel computes on. */
struct chain_operand {
    char *data; /* NULL: a number, whose bits are the first stride */
    int64_t stride[NR_CHAIN_LOOPS];
};

/* from: the elements, in memory or where memory would have them, as their order depends on the address. */
struct chain_reduction {
    chain_operand from;
    double param;
    int32_t team; /* threads that share a row, a power of 2 */
    bool narrow, dense;
};

struct chain_args {
    uint32_t n;                      /* elements, or rows */
    int32_t count, ndim, rows;       /* rows: of a block */
    divisor row;                     /* elements of a row */
    divisor size[NR_CHAIN_LOOPS];    /* first those of a row */
    uint32_t at[NR_CHAIN_REGISTERS]; /* where registers lie, in words */
    uint32_t by_row;                 /* a bit for each: it has one word for each row */
    chain_step steps[NR_CHAIN_CALLS];
    chain_operand operands[NR_CHAIN_OPERANDS];
    chain_reduction reductions[NR_CHAIN_REDUCTIONS];
};
static_assert(sizeof(chain_args) <= 4096, "what a kernel may have as arguments");

struct chain_kernels {
    void (*elements)(chain_args);
    void (*rows)(chain_args);
};
#define WIDE(NAME, name, ...) chain_kernels nr_chain_kernels_##name();
#define NARROW(...)
#include "../dtypes.def"

#endif
