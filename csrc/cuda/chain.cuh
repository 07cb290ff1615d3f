/* chain: the argument that the launcher of chains (chain.cu) passes to their kernels (chain_dtype.cu): a small program,
 * with a step for each call.
 *
 *   step      op    out         in                          operands   0: x, strides   1: 0.5   2: y, strides
 *   0         mul   register 0  operand 0, operand 1
 *   1         tanh  register 0  register 0
 *   2         add   operand 2   register 0, operand 0
 */
#ifndef NR_CUDA_CHAIN_H
#define NR_CUDA_CHAIN_H

#include "cuda.cuh"
extern "C" {
#include "../families/chain.h"
}

#define NR_CHAIN_COPY 255 /* the op of a copy or cast */
static_assert(NR_OP_COUNT <= NR_CHAIN_COPY, "the op of a step is a byte");

/* out and in: a register, or NR_CHAIN_REGISTERS + an operand. */
struct chain_step {
    uint8_t op, out, in[NR_MAX_OPERANDS - 1];
    uint8_t inputs, first, from, to; /* dtypes in memory: of the first input, of the others, of the result */
};

/* In memory, or a number of the dtype that the kernel computes on. */
struct chain_operand {
    char *data; /* NULL: a number, whose bits are the first stride */
    int64_t stride[NR_CHAIN_LOOPS];
};

struct chain_args {
    uint32_t n;
    int32_t count, ndim;
    divisor size[NR_CHAIN_LOOPS];
    chain_step steps[NR_CHAIN_CALLS];
    chain_operand operands[NR_CHAIN_OPERANDS];
};

typedef void (*chain_kernel)(chain_args);
#define WIDE(NAME, name, ...) chain_kernel nr_chain_kernel_##name();
#define NARROW(...)
#include "../dtypes.def"

#endif
