/* matmul_16bit: the code that the kernels of float16 and bfloat16 products share with the float32 ones by wgmma:
 * arguments, the order of tiles, and the conversion of sums to elements of C. Sums are float32, the bias is added to
 * them, relu applied if it is the epilogue, and the result is rounded once; other activations come after that, as
 * epilogue.cuh says.
 *
 *   matmul_16bit.cu    which kernel; those by mma.sync, for compute capability 8.0 and later; the parts of a sum
 *   matmul_wgmma.cu    those by wgmma, for 9.0
 */
#ifndef NR_CUDA_MATMUL_16BIT_H
#define NR_CUDA_MATMUL_16BIT_H

#include "matmul.cuh"
#include "mma.cuh"

/* Products on a device of capability 8.0 or later; the plan is one of float16 or bfloat16. */
int32_t nr_cuda_matmul_16bit(const nr_call *call, const nr_matmul_plan &p);

/* A product of outer x k by k x outer, of sizes m and n; c is of the dtype, or, with parts > 1, float sums of k_part
 * terms each, [part][batch][m][n]. */
struct product_16bit : matmul_operands {
    int32_t k_part, parts, batches;
    int64_t a_outer, a_k, b_outer, b_k; /* strides */
    int64_t c_end;                      /* elements of a part */
    bool c_wide;                        /* 16 bytes of a row of C may be written at once */
};

/* A kernel for C: tiles of bm x bn, bk at a time; the number of blocks on a multiprocessor, each of which a tile keeps
 * for bm * bn * (k + start) / speed clocks, as measured. */
struct tile_16bit {
    int bm, bn, bk, blocks;
    double speed, start;
};

/* Of all batches. */
static inline int64_t tiles_of(const tile_16bit &tile, const product_16bit &g) {
    return (int64_t)((g.m + tile.bm - 1) / tile.bm) * ((g.n + tile.bn - 1) / tile.bn) * g.batches;
}

/* Runs the kernel and the number of parts that are estimated to end first. The sizes fit int32_t; float32, which only
 * wgmma multiplies here, satisfies nr_wgmma_takes(). */
int32_t nr_cuda_matmul_tiles(const nr_call *call, const nr_matmul_plan &p, int64_t batches);

/* matmul_wgmma.cu: whether its kernels can run and read an operand, 1 (a) or 2 (b), and
 * both; their tiles; a launch of one. */
#define NR_WGMMA_TILES 4
bool nr_wgmma_reads(const nr_call *call, const nr_matmul_plan &p, int operand);
bool nr_wgmma_takes(const nr_call *call, const nr_matmul_plan &p);
const tile_16bit &nr_wgmma_tile(int32_t dtype, int which);
int32_t nr_wgmma_launch(const nr_call *call, const nr_matmul_plan &p, const product_16bit &g, int which);

/* ---- which tile -------------------------------------------------------------------------------------------------- */

/* Tiles that run at the same time are of few rows and columns of C, which then lie in the L2 cache: columns of
 * STRIPE_TILES tiles each, then the next such stripe. */
#define STRIPE_TILES 16

struct work_item {
    int row, col, batch, part;
};

template <int BM, int BN> DEVICE work_item item_of(const product_16bit &g, int work) {
    const int down = (g.m + BM - 1) / BM, across = (g.n + BN - 1) / BN, tiles = down * across;
    const int tile = work % tiles, item = work / tiles;
    const int stripe = tile / (STRIPE_TILES * across), in = tile % (STRIPE_TILES * across);
    const int rows = down - stripe * STRIPE_TILES < STRIPE_TILES ? down - stripe * STRIPE_TILES : STRIPE_TILES;
    return {(stripe * STRIPE_TILES + in % rows) * BM, in / rows * BN, item % g.batches, item / g.batches};
}

/* ---- the end of a tile ------------------------------------------------------------------------------------------- */

/* Two numbers as neighbours of a narrow dtype, rounded to nearest, ties to even. */
template <class D> DEVICE uint32_t narrow_pair(float low, float high) {
#if NR_HAS_MMA && !defined CUDASIM
    uint32_t pair;
    if constexpr (D::code == NORCH_BFLOAT16)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return narrow<D>(low) | (uint32_t)narrow<D>(high) << 16;
#endif
}

/* Lane t of a quad has word t of four tiles; it gets the four words of tile t. */
DEVICE void exchange_in_quad(uint32_t (&word)[4]) {
    const bool odd = threadIdx.x & 1, high = threadIdx.x & 2;
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        const uint32_t got = __shfl_xor_sync(0xffffffffu, odd ? word[i] : word[i + 1], 1);
        (odd ? word[i] : word[i + 1]) = got;
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint32_t got = __shfl_xor_sync(0xffffffffu, high ? word[i] : word[i + 2], 2);
        (high ? word[i] : word[i + 2]) = got;
    }
}

/* One part of C, a tile's sums of which lie in the registers of a warp as mma and wgmma leave them: of 8 columns lane t
 * of a quad has columns 2t and 2t + 1, rows being 8 lanes apart. */
template <class D> struct tile_end {
    using S = typename D::S;
    const product_16bit &g;
    S *c;
    float *sums; /* of a part, or C itself, if it is float32 */
    int64_t sums_row;
    bool sums_paired; /* two of them may be written at once */
    bool relu;
    int col; /* of this lane in the first 8 columns, a multiple of 2 */
    float bias[8];

    DEVICE tile_end(const product_16bit &product, const work_item &at, int64_t c_at, int first_col)
        : g(product), c(static_cast<S *>(product.c) + c_at),
          sums(static_cast<float *>(product.c) + at.part * product.c_end + (int64_t)at.batch * product.m * product.n),
          sums_row(product.n), sums_paired(product.n % 2 == 0), relu(product.relu && product.parts == 1),
          col(first_col + (int)threadIdx.x % 4 * 2) {
        if constexpr (is_same<S, float>)
            if (g.parts == 1) sums = c, sums_row = g.c_row, sums_paired = g.c_wide;
    }

    /* Before rows of the 32 columns from the j-th on. */
    DEVICE void load_bias(int j) {
        const S *from = static_cast<const S *>(g.bias);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const int at = col + j + i / 2 * 8 + i % 2;
            bias[i] = from && g.parts == 1 && at < g.n ? widen<D>(from[at]) : 0.0f;
        }
    }

    /* Applies the activation to `rows` of the tile's BN columns, once these threads have stored them. */
    template <int BN> DEVICE void finish(int row, int rows, int first_col, int thread, int threads) const {
        finish_tile<D, BN>(c + row * g.c_row + first_col, g.c_row, g.m - row < rows ? g.m - row : rows, g.n - first_col,
                           g.c_wide, g.activation, thread, threads);
    }

    DEVICE float whole(const float (&x)[8], int i) const { return ended(x[i] + bias[i], relu); }

    DEVICE void round(const float (&x)[8], uint32_t (&word)[4]) {
#pragma unroll
        for (int i = 0; i < 4; i++) word[i] = narrow_pair<D>(whole(x, 2 * i), whole(x, 2 * i + 1));
    }

    /* x[2 i + e]: element e of this lane in the i-th 8 of these 32 columns. All lanes
     * call it. The residual has no bias. */
    DEVICE void store(int row, int j, float (&x)[8]) {
        if (g.residual && g.parts == 1 && row < g.m)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float pair[2] = {x[2 * i], x[2 * i + 1]};
                const int at = col + j + i * 8;
                add_residual<D>(g, pair, c + row * g.c_row + at, g.n - at);
                x[2 * i] = pair[0], x[2 * i + 1] = pair[1];
            }
        if (is_same<S, float> || g.parts > 1) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float pair[2] = {whole(x, 2 * i), whole(x, 2 * i + 1)};
                store_pair(sums, sums_row, sums_paired, row, col + j + i * 8, pair);
            }
            return;
        }
        if constexpr (!is_same<S, float>) store_narrow(row, j, x);
    }

    DEVICE void store_narrow(int row, int j, const float (&x)[8]) {
        uint32_t word[4];
        round(x, word);
        if (g.c_wide) {
            exchange_in_quad(word);
            const int column = (col & ~7) + j + (int)threadIdx.x % 4 * 8;
            if (row < g.m && column < g.n)
                *reinterpret_cast<pack<uint32_t, 4> *>(c + row * g.c_row + column) = {word[0], word[1], word[2],
                                                                                      word[3]};
            return;
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const S pair[2] = {(S)word[i], (S)(word[i] >> 16)};
            store_pair(c, g.c_row, false, row, col + j + i * 8, pair);
        }
    }

    template <class T> DEVICE void store_pair(T *matrix, int64_t pitch, bool both, int row, int at, const T *x) {
        if (row >= g.m) return;
        T *to = matrix + row * pitch + at;
        if (both && at < g.n) {
            *reinterpret_cast<pack<T, 2> *>(to) = {x[0], x[1]};
        } else {
            if (at < g.n) to[0] = x[0];
            if (at + 1 < g.n) to[1] = x[1];
        }
    }
};

#endif
