/* matmul_float64: products of float64 on tensor cores of compute capability 9.0, whose sums are rounded as fma rounds
 * them. Tiles come through stages in shared memory as in mma_tile.cuh; here rows are GAP elements apart from the next,
 * so that the 16 lanes that are served at once, 4 rows of 4, find their 8 bytes in different banks either way.
 *
 * A warp loads the next 16 rows of A while it multiplies 16 others, and B of the next stage as the last of them are
 * done with this one's, so that tensor cores do not wait for shared memory, and one block of 128 x 128 keeps a
 * multiprocessor busy. Its tiles are read from L2 a third less often than two of 128 x 64. */
#include "matmul.cuh"
#include "mma_tile.cuh"

#define NR_FLOAT64_BK 16
#define GAP 4
#define STAGES 3

template <int outer, bool along> struct padded_tile {
    static constexpr bool along_k = along;
    static constexpr int BK = NR_FLOAT64_BK, rows = along_k ? outer : BK, columns = along_k ? BK : outer,
                         pitch = columns + GAP;
    static constexpr int size = rows * pitch, bytes = size * 8;
    static DEVICE uint32_t at(int row, int column) { return (uint32_t)(row * pitch + column) * 8; }
    static DEVICE double get(const double *tile, int o, int k) { return tile[along_k ? o * pitch + k : k * pitch + o]; }
};

template <int BM_, int BN_, int blocks_, bool a_along, bool b_along, bool wide> struct float64_shape {
    static constexpr int BM = BM_, BN = BN_, WM = BM / 2, WN = 32, across = BN / WN, threads = 64 * across;
    static constexpr int blocks = blocks_;
    static constexpr int TM = WM / 16, TN = WN / 8;
    static_assert(TM % 2 == 0, "rows of A take turns in two sets of registers");
    using A = padded_tile<BM, a_along>;
    using B = padded_tile<BN, b_along>;
    using copier_a = tile_copier<double, A, threads, wide ? 2 : 1>;
    using copier_b = tile_copier<double, B, threads, wide ? 2 : 1>;
    static constexpr int shared = STAGES * (A::bytes + B::bytes);
};

template <class S> __global__ void __launch_bounds__(S::threads, S::blocks) multiply_float64(const matmul_args g) {
#if NR_HAS_MMA
    DYNAMIC_SHARED(double, shared);
    TELL_SHARED(S::shared);
    double *a_stages = shared, *b_stages = shared + STAGES * S::A::size;
    const uint32_t a_at = shared_address(a_stages), b_at = shared_address(b_stages);
    const tile_place place = tile_of<S::BM, S::BN>(g);
    int64_t at[3];
    g.batch.find(blockIdx.y, at);
    const int k_begin = (int)blockIdx.z * g.k_part;
    const int k_end = g.k - k_begin < g.k_part ? g.k : k_begin + g.k_part;
    typename S::copier_a a(static_cast<const double *>(g.a) + at[1], S::A::along_k ? g.a_row : g.a_col, place.row, g.m,
                           k_begin, k_end);
    typename S::copier_b b(static_cast<const double *>(g.b) + at[2], S::B::along_k ? g.b_col : g.b_row, place.column,
                           g.n, k_begin, k_end);
    const int warp = (int)threadIdx.x / 32, row0 = warp / S::across * S::WM, column0 = warp % S::across * S::WN;
    const int row = row0 + (int)threadIdx.x % 32 / 4, column = column0 + (int)threadIdx.x % 32 / 4;
    const int t = (int)threadIdx.x % 4;
    double sum[S::TM][S::TN][4] = {}, a_part[2][8], b_part[S::TN][4];
    auto copy = [&](int stage) {
        a.copy(a_at + stage * S::A::bytes);
        b.copy(b_at + stage * S::B::bytes);
        commit_copies();
    };
    auto load_a = [&](int stage, int i) {
        const double *x = a_stages + stage * S::A::size;
#pragma unroll
        for (int r = 0; r < 8; r++) a_part[i % 2][r] = S::A::get(x, row + i * 16 + r % 2 * 8, r / 2 * 4 + t);
    };
    auto load_b = [&](int stage, int j) {
        const double *x = b_stages + stage * S::B::size;
#pragma unroll
        for (int r = 0; r < 4; r++) b_part[j][r] = S::B::get(x, column + j * 8, r * 4 + t);
    };
    auto next = [](int stage) { return stage + 1 == STAGES ? 0 : stage + 1; };
    for (int stage = 0; stage < STAGES - 1; stage++) copy(stage);
    wait_copies<STAGES - 2>();
    __syncthreads();
    load_a(0, 0);
#pragma unroll
    for (int j = 0; j < S::TN; j++) load_b(0, j);
    int filled = STAGES - 1, stage = 0;
    for (int rounds = (k_end - k_begin + NR_FLOAT64_BK - 1) / NR_FLOAT64_BK; rounds > 0; rounds--) {
        copy(filled);
        filled = next(filled);
#pragma unroll
        for (int i = 0; i < S::TM; i++) {
            const bool last = i == S::TM - 1;
            if (last) {
                stage = next(stage);
                wait_copies<STAGES - 2>();
                __syncthreads(); /* the next stage is there, and this one is free */
            }
            load_a(stage, last ? 0 : i + 1);
#pragma unroll
            for (int j = 0; j < S::TN; j++) {
                mma_float64(sum[i][j], a_part[i % 2], b_part[j]);
                if (last) load_b(stage, j);
            }
        }
    }

    const matmul_output<double> c(g, at[0]);
#pragma unroll
    for (int j = 0; j < S::TN; j++) {
        double start[2];
        const int first = place.column + column0 + j * 8 + 2 * t;
        c.load_bias<2>(start, first);
#pragma unroll
        for (int i = 0; i < S::TM * 2; i++) {
            const double run[2] = {start[0] + sum[i / 2][j][i % 2 * 2], start[1] + sum[i / 2][j][i % 2 * 2 + 1]};
            c.put<2>(place.row + row + i * 8, first, run);
        }
    }
    finish_block<double, S::BM, S::BN>(g, c.c, place.row, place.column);
#endif
}

template <int BM, int BN, int blocks, bool wide> static constexpr staged_shape shape_of(double alone, double full) {
    using S = float64_shape<BM, BN, blocks, true, true, wide>; /* of all layouts the largest, by its gaps */
    return staged_shape_of<S, BM, BN, blocks>(alone, full,
                                              {multiply_float64<float64_shape<BM, BN, blocks, false, false, wide>>,
                                               multiply_float64<float64_shape<BM, BN, blocks, false, true, wide>>,
                                               multiply_float64<float64_shape<BM, BN, blocks, true, false, wide>>,
                                               multiply_float64<float64_shape<BM, BN, blocks, true, true, wide>>});
}

/* In brackets: nanoseconds for a column of k of one tile that a multiprocessor has alone, and of all that it
 * holds (alone, full: matmul.cuh). Those of 128 x 128 are estimated; the others were measured on an H100
 * before A and B were loaded ahead. */
static staged_shape wide_shapes[] = {shape_of<128, 128, 1, true>(74, 74), shape_of<128, 64, 2, true>(54, 78),
                                     shape_of<64, 64, 3, true>(27, 65)};
static staged_shape narrow_shapes[] = {shape_of<128, 128, 1, false>(86, 86), shape_of<128, 64, 2, false>(60, 90),
                                       shape_of<64, 64, 3, false>(30, 75)};

bool nr_cuda_matmul_float64_takes(const nr_call *call, const nr_matmul_plan &p) {
    return call->dtype == NORCH_FLOAT64 && gpu_of(call)->capability >= 90 && is_dense(p) && p.m >= 16 && p.n >= 16 &&
           p.k >= NR_FLOAT64_BK;
}

int32_t nr_cuda_matmul_float64(const nr_call *call, const nr_matmul_plan &p) {
    static const staged_family family = {128, NR_FLOAT64_BK, add_parts<double, double>, sizeof(double)};
    return nr_cuda_matmul_staged(call, p, are_wide(p, 2, sizeof(double)) ? wide_shapes : narrow_shapes, 3, family);
}
