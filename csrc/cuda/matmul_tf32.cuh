/* matmul_tf32: the kernel of float32 products on tensor cores; matmul_tf32.cu chooses its tiles. Each number is split
 * into two of TF32, big + small, and
 *
 *   a b = small_a big_b + big_a small_b + big_a big_b          (3xTF32; small_a small_b is below float32's precision)
 *
 * Source: Ootomo, Yokota, "Recovering single precision accuracy from Tensor Cores" (2022); also of the remedy for sums
 * that tensor cores truncate, in mma_tile.cuh. */
#ifndef NR_CUDA_MATMUL_TF32_H
#define NR_CUDA_MATMUL_TF32_H

#include "matmul.cuh"
#include "mma_tile.cuh"

template <class S> __global__ void __launch_bounds__(S::threads, S::blocks) multiply_tf32(const matmul_args g) {
#if NR_HAS_MMA
    DYNAMIC_SHARED(unsigned char, shared);
    TELL_SHARED(S::shared);
    const tile_place place = tile_of<S::BM, S::BN>(g);
    int64_t at[3];
    g.batch.find(blockIdx.y, at);
    const int k_begin = (int)blockIdx.z * g.k_part;
    const int k_end = g.k - k_begin < g.k_part ? g.k : k_begin + g.k_part;
    const int rounds = (k_end - k_begin + NR_TF32_BK - 1) / NR_TF32_BK;
    auto a = [&] {
        return typename S::copier_a(static_cast<const float *>(g.a) + at[1], S::a_along ? g.a_row : g.a_col, place.row,
                                    g.m, k_begin, k_end);
    };
    auto b = [&] {
        return typename S::copier_b(static_cast<const float *>(g.b) + at[2], S::b_along ? g.b_col : g.b_row,
                                    place.column, g.n, k_begin, k_end);
    };
    float sum[S::TM][S::TN][4] = {};
    mma_stages<S> stages(shared);
    {
        auto from_a = a();
        auto from_b = b();
        multiply_staged<S>(sum, stages, from_a, from_b, rounds);
    }
    if constexpr (S::terms == 3) {
        bool special = false;
#pragma unroll
        for (int i = 0; i < S::TM; i++)
#pragma unroll
            for (int j = 0; j < S::TN; j++)
#pragma unroll
                for (int q = 0; q < 4; q++) special = special || is_special(sum[i][j][q]);
        if (__syncthreads_or(special)) {
            auto from_a = a();
            auto from_b = b();
            multiply_specials<S>(sum, stages, from_a, from_b, rounds);
        }
    }

    const matmul_output<float> c(g, at[0]);
    constexpr int run = S::b_along ? 2 : 4; /* neighbours of a row that a thread has */
#pragma unroll
    for (int e = 0; e < S::TN * 2 / run; e++) {
        const int j = S::b_along ? e : e / 2 * 4, first = S::b_along ? 0 : e % 2;
        const int column = place.column + S::column(j, first);
        float start[run];
        c.load_bias(start, column);
#pragma unroll
        for (int i = 0; i < S::TM * 2; i++) {
            float values[run];
#pragma unroll
            for (int q = 0; q < run; q++)
                values[q] =
                    start[q] + (S::b_along ? sum[i / 2][j][i % 2 * 2 + q] : sum[i / 2][j + q][i % 2 * 2 + first]);
            c.put(place.row + S::row(i / 2, i % 2), column, values);
        }
    }
    finish_block<float, S::BM, S::BN>(g, c.c, place.row, place.column);
#endif
}

#endif
