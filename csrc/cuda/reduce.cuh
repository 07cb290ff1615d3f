/* reduce: the shape of the reduction kernels: what the launcher (reduce.cu) passes to those that reduce_dtype.cu
 * makes of the REDUCE rows of ops.def. */
#ifndef NR_CUDA_REDUCE_H
#define NR_CUDA_REDUCE_H

#include "cuda.cuh"

/* A block of NR_BLOCK threads reduces NR_BLOCK / team outputs, `team` threads (a power of 2) each. Outputs are
 * neighbours in the block when `across` (their elements lie side by side), else the threads of a team are. The
 * elements of an output are cut into parts, part blockIdx.y of each into a partial state. */
struct reduce_args {
    char *out;
    const char *in;
    char *partials; /* [part][output], NULL where there is one part */
    int64_t outputs, count, part_size;
    int64_t out_step;                        /* columns: bytes from an output to the next */
    int32_t team, parts, number, out_number; /* the dtypes that memory holds */
    int32_t pitch;                           /* narrow rows: elements from row to row in shared memory */
    bool across, row, dense; /* row: the elements of an output are one row, at stride[0]; dense: without gaps */
    double param;
    nest<2> kept; /* out, in; columns: of packs */
    nest<1> reduced;
};

struct reduce_kernel {
    void (*reduce)(reduce_args);
    void (*columns)(reduce_args);
    void (*narrow_rows)(reduce_args);
    void (*merge)(reduce_args);
    int32_t state_size, width; /* width: outputs that a thread of `columns` has */
};

/* How many neighbouring threads reduce each row, if one launch of a call does it so; otherwise 0. in: the first
 * element. *narrow: the rows are short, and taken step by step (reduce_rows.cuh). */
int32_t nr_cuda_row_team(const nr_call *call, const char *in, bool *narrow);

#endif
