/* mma_tile: loads tiles of float32 matrices for the tensor cores, for products and other code that multiplies tiles.
 *
 *   global memory --copy_async--> stages in shared memory, each BK columns of A and rows of B --> fragments --> sums
 *
 *   stage  | 0: is multiplied | 1: is there, or on its way | 2: is filled with the round after next |   then they turn
 *
 * A tile has the layout of its matrix, in rows of the dense direction, so that no element moves alone. A row is
 * cut into chunks of 16 bytes, and chunk i of row r lies at place i ^ f(r) (a swizzle), so that elements which are read
 * at once are in different banks:
 *
 *   dense along k        load_matrices reads a chunk of 8 rows            f(r) = r % 8
 *   dense along outer    a quarter of a warp reads 2 chunks of 4 rows     f(r) = r % 4 * 2
 *
 * Along k load_matrices gives fragments as mma wants them: it moves words of 4 bytes, whatever they mean. Along the
 * other direction, row g of half h of an mma tile (mma.cuh) stands for row 4 g + h of 32 of the matrix: a lane's chunk
 * of 16 bytes then feeds four of them. `outer` names rows of A, columns of B. */
#ifndef NR_CUDA_MMA_TILE_H
#define NR_CUDA_MMA_TILE_H

#include "mma.cuh"

#define NR_TF32_BK 32

/* The layout of a tile of outer x NR_TF32_BK elements in shared memory. */
template <int outer, bool along> struct staged_tile {
    static constexpr bool along_k = along;
    static constexpr int BK = NR_TF32_BK, rows = along_k ? outer : BK, columns = along_k ? BK : outer;
    static constexpr int bytes = rows * columns * 4;

    static DEVICE uint32_t chunk_at(int row, int chunk) {
        const int swizzle = along_k ? row & 7 : (row & 3) << 1;
        return (uint32_t)(row * (columns * 4) + ((chunk ^ swizzle) << 4));
    }
    static DEVICE uint32_t at(int row, int column) { return chunk_at(row, column / 4) + column % 4 * 4; }
};

/* Copies tiles of a matrix of T one after the other along k, W elements at a time, and zeros behind its edges. */
template <class T, class Tile, int threads, int W> struct tile_copier {
    static constexpr bool along_k = Tile::along_k;
    static constexpr int a_row = Tile::columns / W; /* copies */
    static constexpr int count = Tile::rows * a_row / threads, step = threads / a_row;
    static_assert(Tile::rows * a_row % threads == 0 && threads % a_row == 0, "a tile is no whole number of copies");
    const T *x;             /* this thread's next element */
    int stride;             /* of the matrix's other direction */
    int outer_left, k_left; /* the number of elements up to the end of the matrix */
    int row, column;        /* its position in a tile */
    int whole;              /* tiles to come that lie in the matrix */

    /* `outer` elements from o0 on, below o_end, columns from k_begin on, below k_end. */
    DEVICE tile_copier(const T *matrix, int64_t other_stride, int o0, int o_end, int k_begin, int k_end)
        : stride((int)other_stride), row((int)threadIdx.x / a_row), column((int)threadIdx.x % a_row * W) {
        const int o = along_k ? row : column, k = along_k ? column : row;
        x = matrix + (along_k ? (o0 + o) * other_stride + k_begin + k : (k_begin + k) * other_stride + o0 + o);
        outer_left = o_end - o0 - o;
        k_left = k_end - k_begin - k;
        whole = o_end - o0 < (along_k ? Tile::rows : Tile::columns) ? 0 : (k_end - k_begin) / Tile::BK;
    }

    template <bool inside> DEVICE void copy_all(uint32_t to) const {
#pragma unroll
        for (int i = 0; i < count; i++) {
            const int r = i * step;
            const bool valid = along_k ? outer_left > r && k_left > 0 : k_left > r && outer_left > 0;
            copy_async<W *(int)sizeof(T)>(to + Tile::at(row + r, column), x + (int64_t)r * stride, inside || valid);
        }
    }

    DEVICE void copy(uint32_t to) {
        if (W == 1 && whole > 0) /* comparisons would take the time of such small copies */
            copy_all<true>(to);
        else
            copy_all<false>(to);
        whole--;
        x += along_k ? Tile::BK : (int64_t)Tile::BK * stride;
        k_left -= Tile::BK;
    }
};

/* A block's tiles: BM x BN of C, of which a warp has WM x WN. A and B dense along k or not, copied by 16 bytes or 4.
 * terms: 3 for float32's precision (3xTF32), 1 for the precision of TF32. */
template <int BM_, int BN_, int WM_, int WN_, int stages_, int blocks_, bool a_along_, bool b_along_, bool wide_,
          int terms_>
struct mma_shape {
    static constexpr int BM = BM_, BN = BN_, WM = WM_, WN = WN_, stages = stages_, blocks = blocks_, terms = terms_;
    static constexpr bool a_along = a_along_, b_along = b_along_, wide = wide_;
    static constexpr int across = BN / WN, threads = BM / WM * across * 32;
    static constexpr int TM = WM / 16, TN = WN / 8; /* mma tiles of a warp */
    using A = staged_tile<BM, a_along>;
    using B = staged_tile<BN, b_along>;
    using copier_a = tile_copier<float, A, threads, wide ? 4 : 1>;
    using copier_b = tile_copier<float, B, threads, wide ? 4 : 1>;
    static constexpr int shared = stages * (A::bytes + B::bytes);
    static_assert(WM % 32 == 0 && WN % 32 == 0, "fragments are loaded by 32 rows or columns");

    /* The positions of this thread's sums in the tile: sum[i][j][2 h + q] in row(i, h), column(j, q). */
    static DEVICE int row(int i, int h) {
        const int first = (int)threadIdx.x / 32 / across * WM, g = (int)threadIdx.x % 32 / 4;
        return first + (a_along ? i * 16 + h * 8 + g : i / 2 * 32 + g * 4 + i % 2 * 2 + h);
    }
    static DEVICE int column(int j, int q) {
        const int first = (int)threadIdx.x / 32 % across * WN, t = (int)threadIdx.x % 4;
        return first + (b_along ? j * 8 + t * 2 + q : j / 4 * 32 + t * 8 + q * 4 + j % 4);
    }
};

/* The stages in shared memory, of A and behind them of B, and the fragments that a warp has in registers. */
template <class S> struct mma_stages {
    const unsigned char *shared;
    uint32_t a_at, b_at;
    uint32_t a[2][S::TM][4], b[2][S::TN][2]; /* fragments of 8 columns, and of the next 8 */

    explicit DEVICE mma_stages(const unsigned char *dynamic_shared)
        : shared(dynamic_shared), a_at(shared_address(dynamic_shared)), b_at(a_at + S::stages * S::A::bytes) {}

    DEVICE void copy(int stage, typename S::copier_a &from_a, typename S::copier_b &from_b) {
        from_a.copy(a_at + stage * S::A::bytes);
        from_b.copy(b_at + stage * S::B::bytes);
        commit_copies();
    }

    DEVICE const pack<uint32_t, 4> &chunk(uint32_t at) const {
        return *reinterpret_cast<const pack<uint32_t, 4> *>(shared + at);
    }

    /* Columns 8 kk and on of a stage into fragments `to`. */
    DEVICE void load(int stage, int kk, int to) {
        const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
        const int warp = (int)threadIdx.x / 32, row0 = warp / S::across * S::WM, column0 = warp % S::across * S::WN;
        const uint32_t a_stage = stage * S::A::bytes, b_stage = stage * S::B::bytes;
        if constexpr (S::a_along) {
#pragma unroll
            for (int i = 0; i < S::TM; i++)
                load_matrices(a[to][i], a_at + a_stage + S::A::chunk_at(row0 + i * 16 + lane % 16, kk * 2 + lane / 16));
        } else {
#pragma unroll
            for (int i = 0; i < S::TM; i += 2)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const auto v = chunk(a_stage + S::A::chunk_at(kk * 8 + h * 4 + t, (row0 + i * 16) / 4 + g));
                    a[to][i][h * 2] = v.v[0], a[to][i][h * 2 + 1] = v.v[1];
                    a[to][i + 1][h * 2] = v.v[2], a[to][i + 1][h * 2 + 1] = v.v[3];
                }
        }
        if constexpr (S::b_along) {
#pragma unroll
            for (int j = 0; j < S::TN; j += 2) {
                uint32_t two[4];
                load_matrices(two,
                              b_at + b_stage +
                                  S::B::chunk_at(column0 + j * 8 + lane / 16 * 8 + lane % 8, kk * 2 + lane / 8 % 2));
                b[to][j][0] = two[0], b[to][j][1] = two[1], b[to][j + 1][0] = two[2], b[to][j + 1][1] = two[3];
            }
        } else {
#pragma unroll
            for (int j = 0; j < S::TN; j += 4)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const auto v = chunk(S::stages * S::A::bytes + b_stage +
                                         S::B::chunk_at(kk * 8 + h * 4 + t, (column0 + j * 8) / 4 + g));
#pragma unroll
                    for (int q = 0; q < 4; q++) b[to][j + q][h] = v.v[q];
                }
        }
    }
};

/* sum += the products of the fragments `from`, of which the small terms come first. first: partial begins at zero. */
template <class S>
DEVICE void multiply_fragments(float (&partial)[S::TM][S::TN][4], const mma_stages<S> &s, int from, bool first) {
    if constexpr (S::terms == 1) {
        uint32_t b[S::TN][2];
#pragma unroll
        for (int j = 0; j < S::TN; j++)
#pragma unroll
            for (int q = 0; q < 2; q++) b[j][q] = round_tf32(s.b[from][j][q]);
#pragma unroll
        for (int i = 0; i < S::TM; i++) {
            uint32_t a[4];
#pragma unroll
            for (int q = 0; q < 4; q++) a[q] = round_tf32(s.a[from][i][q]);
#pragma unroll
            for (int j = 0; j < S::TN; j++) mma_tf32(partial[i][j], a, b[j][0], b[j][1]);
        }
    } else {
        uint32_t b_big[S::TN][2], b_small[S::TN][2];
#pragma unroll
        for (int j = 0; j < S::TN; j++)
#pragma unroll
            for (int q = 0; q < 2; q++) split_tf32(s.b[from][j][q], &b_big[j][q], &b_small[j][q]);
#pragma unroll
        for (int i = 0; i < S::TM; i++) {
            uint32_t a_big[4], a_small[4];
#pragma unroll
            for (int q = 0; q < 4; q++) split_tf32(s.a[from][i][q], &a_big[q], &a_small[q]);
#pragma unroll
            for (int j = 0; j < S::TN; j++)
                if (first)
                    mma_tf32_from_zero(partial[i][j], a_small, b_big[j][0], b_big[j][1]);
                else
                    mma_tf32(partial[i][j], a_small, b_big[j][0], b_big[j][1]);
#pragma unroll
            for (int j = 0; j < S::TN; j++) mma_tf32(partial[i][j], a_big, b_small[j][0], b_small[j][1]);
#pragma unroll
            for (int j = 0; j < S::TN; j++) mma_tf32(partial[i][j], a_big, b_big[j][0], b_big[j][1]);
        }
    }
}

/* Adds to sum the products of NR_TF32_BK * rounds columns of A with rows of B. Tensor cores truncate their sums, and
 * the error grows with their length; so with three terms a round's sums start from zero and are then added to sum in
 * float32 (promotion). One barrier a round: behind it the stage that was multiplied last is free, and the next one is
 * there. */
template <class S>
DEVICE void multiply_staged(float (&sum)[S::TM][S::TN][4], mma_stages<S> &s, typename S::copier_a &a,
                            typename S::copier_b &b, int rounds) {
    constexpr int steps = NR_TF32_BK / 8;
    float partial[S::TM][S::TN][4];
#pragma unroll
    for (int stage = 0; stage < S::stages - 1; stage++) s.copy(stage, a, b);
    wait_copies<S::stages - 2>();
    __syncthreads();
    s.load(0, 0, 0);
    int filled = S::stages - 1, stage = 0;
    for (; rounds > 0; rounds--) {
#pragma unroll
        for (int kk = 0; kk < steps; kk++) {
            if (kk == 0) {
                s.copy(filled, a, b); /* behind the last column: zeros */
                filled = filled + 1 == S::stages ? 0 : filled + 1;
            }
            if (kk == steps - 1) {
                wait_copies<S::stages - 2>();
                __syncthreads();
                stage = stage + 1 == S::stages ? 0 : stage + 1;
            }
            s.load(stage, (kk + 1) % steps, (kk + 1) % 2);
            if constexpr (S::terms == 1)
                multiply_fragments<S>(sum, s, kk % 2, false);
            else
                multiply_fragments<S>(partial, s, kk % 2, kk == 0);
        }
        if constexpr (S::terms == 3) {
#pragma unroll
            for (int i = 0; i < S::TM; i++)
#pragma unroll
                for (int j = 0; j < S::TN; j++)
#pragma unroll
                    for (int q = 0; q < 4; q++) sum[i][j][q] += partial[i][j][q];
        }
    }
    wait_copies<0>();
    __syncthreads(); /* shared memory is free again */
}

template <class Tile> DEVICE uint32_t element_at(int outer, int k) {
    return Tile::along_k ? Tile::at(outer, k) : Tile::at(k, outer);
}

/* Whether a sum is NaN or infinite. Three terms may give NaN or an infinity of the wrong sign for infinities, for
 * numbers that round to one, and for products that overflow. */
DEVICE bool is_special(float sum) { return !(fabsf(sum) < INFINITY); }

/* Computes special sums again, in plain float32. This is rare, so no latency is hidden here. */
template <class S>
DEVICE void multiply_specials(float (&sum)[S::TM][S::TN][4], mma_stages<S> &s, typename S::copier_a &a,
                              typename S::copier_b &b, int rounds) {
    float again[S::TM][S::TN][4] = {};
    auto number = [&](uint32_t at) { return *reinterpret_cast<const float *>(s.shared + at); };
    for (; rounds > 0; rounds--) {
        s.copy(0, a, b);
        wait_copies<0>();
        __syncthreads();
#pragma unroll 1
        for (int k = 0; k < NR_TF32_BK; k++) {
            float x[S::TM][2];
#pragma unroll
            for (int i = 0; i < S::TM * 2; i++)
                x[i / 2][i % 2] = number(element_at<typename S::A>(S::row(i / 2, i % 2), k));
#pragma unroll
            for (int j = 0; j < S::TN * 2; j++) {
                const float y = number(S::stages * S::A::bytes + element_at<typename S::B>(S::column(j / 2, j % 2), k));
#pragma unroll
                for (int i = 0; i < S::TM * 2; i++)
                    again[i / 2][j / 2][i % 2 * 2 + j % 2] =
                        fmaf(x[i / 2][i % 2], y, again[i / 2][j / 2][i % 2 * 2 + j % 2]);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < S::TM; i++)
#pragma unroll
        for (int j = 0; j < S::TN; j++)
#pragma unroll
            for (int q = 0; q < 4; q++)
                if (is_special(sum[i][j][q])) sum[i][j][q] = again[i][j][q];
}

#endif
