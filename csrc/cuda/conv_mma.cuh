/* conv_mma: what the files of convolutions on tensor cores share: eight rows of a
 * product of float32, or of 16-bit pairs. */
#ifndef NR_CUDA_CONV_MMA_H
#define NR_CUDA_CONV_MMA_H

#include "conv.cuh"
#include "mma.cuh"

#define BK 32       /* rows or positions of a round */
#define THREADS 128 /* of a block: four warps */

template <int n> struct constant {
    static constexpr int value = n;
};

/* sum += a b of TM x TN pieces of 16 x 8, of D, float16 or bfloat16: each word is two of k, so that eight are k16. */
template <class D, int TM, int TN>
DEVICE void multiply_pairs(float (&sum)[TM][TN][4], const uint32_t (&a)[TM][4], const uint32_t (&b)[TN][2]) {
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) mma_16bit<D>(sum[i][j], a[i], b[j][0], b[j][1]);
}

/* round += a b of TM x TN pieces of 16 x 8; exact: of numbers that TF32 holds, else each number as a big and a
 * small part, where small times small is left out. first: round starts from zero; last: sum += round, in float32,
 * since tensor cores cut their sums. */
template <bool first, bool last, bool exact = false, int TM, int TN>
DEVICE void multiply_eight(float (&sum)[TM][TN][4], float (&round)[TM][TN][4], const uint32_t (&a)[TM][4],
                           const uint32_t (&b)[TN][2]) {
    uint32_t b_big[TN][2], b_small[TN][2];
    auto begin = [&](int i, const uint32_t (&of_a)[4], const uint32_t (&of_b)[TN][2]) {
#pragma unroll
        for (int j = 0; j < TN; j++)
            if constexpr (first)
                mma_tf32_from_zero(round[i][j], of_a, of_b[j][0], of_b[j][1]);
            else
                mma_tf32(round[i][j], of_a, of_b[j][0], of_b[j][1]);
    };
    if constexpr (!exact)
#pragma unroll
        for (int j = 0; j < TN; j++)
#pragma unroll
            for (int h = 0; h < 2; h++) split_tf32(b[j][h], &b_big[j][h], &b_small[j][h]);
#pragma unroll
    for (int i = 0; i < TM; i++) {
        if constexpr (exact) {
            begin(i, a[i], b);
        } else {
            uint32_t big[4], small[4];
#pragma unroll
            for (int q = 0; q < 4; q++) split_tf32(a[i][q], &big[q], &small[q]);
            begin(i, small, b_big);
#pragma unroll
            for (int j = 0; j < TN; j++) mma_tf32(round[i][j], big, b_small[j][0], b_small[j][1]);
#pragma unroll
            for (int j = 0; j < TN; j++) mma_tf32(round[i][j], big, b_big[j][0], b_big[j][1]);
        }
        if constexpr (last)
#pragma unroll
            for (int j = 0; j < TN; j++)
#pragma unroll
                for (int q = 0; q < 4; q++) sum[i][j][q] += round[i][j][q];
    }
}

#endif
