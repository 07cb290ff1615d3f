/* matmul_tf32: the kernel of float32 products on tensor cores; matmul_tf32.cu chooses its tiles. Each number is split
 * into two of TF32, big + small, and
 *
 *   a b = small_a big_b + big_a small_b + big_a big_b          (3xTF32; small_a small_b is below float32's precision)
 *
 * Source: Ootomo, Yokota, "Recovering single precision accuracy from Tensor Cores" (2022), who round where tensor cores
 * cut sums as mma_tile.cuh does it. */
#ifndef NR_CUDA_MATMUL_TF32_H
#define NR_CUDA_MATMUL_TF32_H

#include "matmul.cuh"
#include "mma_tile.cuh"

#define NR_TILE_GROUP 8 /* rows of tiles whose blocks run together, so that they find B in the L2 cache */

template <class S> __global__ void __launch_bounds__(S::threads, S::blocks) multiply_tf32(const matmul_args g) {
#if NR_HAS_MMA
    DYNAMIC_SHARED(unsigned char, shared);
    const int tiles_m = (g.m + S::BM - 1) / S::BM, tiles_n = (g.n + S::BN - 1) / S::BN;
    const int group = (int)blockIdx.x / (NR_TILE_GROUP * tiles_n),
              in_group = (int)blockIdx.x % (NR_TILE_GROUP * tiles_n);
    const int rest = tiles_m - group * NR_TILE_GROUP, high = rest < NR_TILE_GROUP ? rest : NR_TILE_GROUP;
    const int row0 = (group * NR_TILE_GROUP + in_group % high) * S::BM, column0 = in_group / high * S::BN;
    int64_t at[3];
    g.batch.find(blockIdx.y, at);
    const int k_begin = (int)blockIdx.z * g.k_part;
    const int k_end = g.k - k_begin < g.k_part ? g.k : k_begin + g.k_part;
    const int rounds = (k_end - k_begin + NR_TF32_BK - 1) / NR_TF32_BK;
    auto a = [&] {
        return typename S::copier_a(static_cast<const float *>(g.a) + at[1], S::a_along ? g.a_row : g.a_col, row0, g.m,
                                    k_begin, k_end);
    };
    auto b = [&] {
        return typename S::copier_b(static_cast<const float *>(g.b) + at[2], S::b_along ? g.b_col : g.b_row, column0,
                                    g.n, k_begin, k_end);
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
                for (int q = 0; q < 4; q++) special = special || sum[i][j][q] != sum[i][j][q];
        if (__syncthreads_or(special)) {
            auto from_a = a();
            auto from_b = b();
            multiply_specials<S>(sum, stages, from_a, from_b, rounds);
        }
    }

    const bool whole = g.parts == 1;
    float *c = whole ? static_cast<float *>(g.c) + at[0]
                     : static_cast<float *>(g.c) + blockIdx.z * g.part_stride + (int64_t)blockIdx.y * g.m * g.n;
    const int64_t c_row = whole ? g.c_row : g.n;
    const bool wide = whole ? g.c_wide : g.n % 4 == 0;
    const float *bias = whole ? static_cast<const float *>(g.bias) : nullptr;
    constexpr int run = S::b_along ? 2 : 4; /* neighbours of a row that a thread has */
#pragma unroll
    for (int e = 0; e < S::TN * 2 / run; e++) {
        const int j = S::b_along ? e : e / 2 * 4, first = S::b_along ? 0 : e % 2;
        const int column = column0 + S::column(j, first), left = g.n - column;
        float start[run];
#pragma unroll
        for (int q = 0; q < run; q++) start[q] = bias && q < left ? bias[column + q] : 0.0f;
#pragma unroll
        for (int i = 0; i < S::TM * 2; i++) {
            const int row = row0 + S::row(i / 2, i % 2);
            if (row >= g.m) continue;
            float values[run];
#pragma unroll
            for (int q = 0; q < run; q++)
                values[q] =
                    start[q] + (S::b_along ? sum[i / 2][j][i % 2 * 2 + q] : sum[i / 2][j + q][i % 2 * 2 + first]);
            put_run<run>(c + row * c_row + column, values, left, wide);
        }
    }
#endif
}

#endif
