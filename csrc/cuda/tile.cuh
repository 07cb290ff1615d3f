/* tile: the loop that products and convolutions share. A block computes a BM x BN tile of C = A B. Its threads read the
 * next BK columns of A and rows of B into registers while they multiply the current ones from shared memory, which
 * holds two of each in turn; a thread keeps TM x TN sums in registers.
 *
 *                     B  +--------- BN ---------+      one round:  fetch  the next tiles, global memory to registers
 *                    BK  |         | y |        |                  each k: x and y, shared memory to registers;
 *      A   BK            +---------+---+--------+                          sums += x y, TM x TN of them a thread
 *        +----+          |                      |                  put    the next tiles into the other two
 *     BM | x  | -------> |        |sums|        |                         places in shared memory
 *        +----+          +----------------------+ C
 *
 * The sources of A and B define them:
 *
 *   fetch()      reads the thread's elements of the next BK columns; zeros behind the last
 *   put(tile)    writes them to tile[k][outer], rows being outer + NR_TILE_GAP apart
 *
 * Method: Volkov, Demmel, "Benchmarking GPUs to tune dense linear algebra" (SC 2008), and later work. */
#ifndef NR_CUDA_TILE_H
#define NR_CUDA_TILE_H

#include "cuda.cuh"

/* Elements between the rows of a tile, so that writes along k go to different banks of shared memory. */
#define NR_TILE_GAP 4

/* A warp is 4 x 8 threads. A thread's rows are RUN_M neighbours in each of TM / RUN_M places, and so its columns: what
 * a warp reads of a tile at once are neighbours, which no two banks of shared memory serve twice. Lanes that differ in
 * bit 1 share their rows, those that differ in bit 0 their columns: shared memory answers 16 bytes a lane in 2 turns
 * where all such pairs ask for the same, else in 4 (forums.developer.nvidia.com/t/77228). */
template <class Element, class Sum, int BM_, int BN_, int BK_, int TM_, int TN_> struct tile_shape {
    using T = Element;
    using A = Sum;
    static constexpr int BM = BM_, BN = BN_, BK = BK_, TM = TM_, TN = TN_;
    static constexpr int RUN_M = TM < 4 ? TM : 4, RUN_N = TN < 4 ? TN : 4;
    static constexpr int down = BM / TM / 4, across = BN / TN / 8; /* warps */
    static constexpr int a_count = BM * BK / NR_BLOCK, b_count = BN * BK / NR_BLOCK;
    static_assert(down * across * 32 == NR_BLOCK && a_count > 0 && b_count > 0, "the tiles do not fit the threads");
    /* The number of blocks that a multiprocessor should hold. */
    static constexpr int blocks = sizeof(Sum) == 8 ? 1 : TM * TN > 32 ? 2 : TM * TN > 4 ? 3 : 1;

    /* The positions of row i and column j of this thread in the tile. */
    static DEVICE int row(int i) {
        int warp = (int)threadIdx.x / 32 / across, lane = (int)threadIdx.x % 32 / 16 * 2 + (int)threadIdx.x % 2;
        return warp * 4 * TM + lane * RUN_M + i / RUN_M * 4 * RUN_M + i % RUN_M;
    }
    static DEVICE int column(int j) {
        int warp = (int)threadIdx.x / 32 % across, lane = (int)threadIdx.x % 16 / 2;
        return warp * 8 * TN + lane * RUN_N + j / RUN_N * 8 * RUN_N + j % RUN_N;
    }
};

/* sum += the outer product of a column of A and a row of B: x and y point at this thread's first elements. */
template <class S>
DEVICE void multiply_outer(typename S::A (&sum)[S::TM][S::TN], const typename S::T *x_from,
                           const typename S::T *y_from) {
    using T = typename S::T;
    T x[S::TM], y[S::TN];
#pragma unroll
    for (int i = 0; i < S::TM; i += S::RUN_M) {
        auto run = *reinterpret_cast<const pack<T, S::RUN_M> *>(x_from + i * 4);
#pragma unroll
        for (int q = 0; q < S::RUN_M; q++) x[i + q] = run.v[q];
    }
#pragma unroll
    for (int j = 0; j < S::TN; j += S::RUN_N) {
        auto run = *reinterpret_cast<const pack<T, S::RUN_N> *>(y_from + j * 8);
#pragma unroll
        for (int q = 0; q < S::RUN_N; q++) y[j + q] = run.v[q];
    }
#pragma unroll
    for (int i = 0; i < S::TM; i++)
#pragma unroll
        for (int j = 0; j < S::TN; j++) sum[i][j] = multiply_add((typename S::A)x[i], (typename S::A)y[j], sum[i][j]);
}

/* Adds to sum the products of BK * rounds columns of A with rows of B. step(): called by all threads once a round. */
template <class S, class SourceA, class SourceB, class Step>
DEVICE void multiply_tiles(typename S::A (&sum)[S::TM][S::TN], SourceA &a, SourceB &b, int rounds, const Step &step) {
    using T = typename S::T;
    constexpr int BK = S::BK;
    constexpr int a_pitch = S::BM + NR_TILE_GAP, b_pitch = S::BN + NR_TILE_GAP, a_size = BK * a_pitch,
                  b_size = BK * b_pitch;
    __shared__ __align__(16) T a_tiles[2 * a_size], b_tiles[2 * b_size];
    const T *x_from = a_tiles + S::row(0), *y_from = b_tiles + S::column(0);
    int a_now = 0, b_now = 0; /* which of the two */
    a.fetch();
    b.fetch();
    a.put(a_tiles);
    b.put(b_tiles);
    __syncthreads();
    constexpr bool BY_ROUND =
        S::TM * S::TN <= 4; /* with so few sums the sums of a round are added first at little cost: less error */
    for (; rounds > 0; rounds--) {
        typename S::A of_round[S::TM][S::TN] = {};
        auto &to = BY_ROUND ? of_round : sum;
        a.fetch(); /* after the last round nothing is in reach; a branch here would put the loads behind the sums */
        b.fetch();
        step();
#pragma unroll
        for (int k = 0; k < BK; k++) multiply_outer<S>(to, x_from + a_now + k * a_pitch, y_from + b_now + k * b_pitch);
#pragma unroll
        for (int i = 0; BY_ROUND && i < S::TM; i++)
#pragma unroll
            for (int j = 0; j < S::TN; j++) sum[i][j] += of_round[i][j];
        a_now ^= a_size;
        b_now ^= b_size;
        a.put(a_tiles + a_now); /* free: all threads have passed the last barrier */
        b.put(b_tiles + b_now);
        __syncthreads();
    }
}

/* ---- a matrix as a source -------------------------------------------------------------------------------------- */

/* How a matrix is read: an element at a time, or 16 bytes along k, or along the other direction. */
enum matrix_way { EACH, WIDE_ALONG_K, WIDE_ALONG_OUTER };

/* `outer` (rows of A, columns of B) from o0 on, below o_end; strides in elements. */
template <class T, int outer, int BK, int way> struct matrix_source {
    static constexpr int W = way == EACH ? 1 : 16 / (int)sizeof(T), count = outer * BK / NR_BLOCK, accesses = count / W;
    static constexpr int k_step = way == WIDE_ALONG_K ? W : 1, o_step = way == WIDE_ALONG_OUTER ? W : 1;
    static_assert(count % W == 0, "a thread's part of the tile is no whole number of accesses");
    static constexpr int pitch = outer + NR_TILE_GAP;
    const T *x; /* this thread's next element */
    int64_t stride_o, stride_k;
    bool by_k;           /* neighbouring threads read along k */
    int spot;            /* where its first element lies in a tile */
    int reach[accesses]; /* how far the matrix goes on along k, for each access */
    T next[count];

    /* Columns from k_begin on, below k_end. */
    DEVICE matrix_source(const T *matrix, int64_t row_stride, int64_t column_stride, int o0, int o_end, int k_begin,
                         int k_end, bool along_k)
        : stride_o(way == WIDE_ALONG_OUTER ? 1 : row_stride), stride_k(way == WIDE_ALONG_K ? 1 : column_stride),
          by_k(way == WIDE_ALONG_K || (way == EACH && along_k)) {
        const int t = (int)threadIdx.x;
        const int o = by_k ? t / (BK / k_step) : t % (outer / o_step) * o_step;
        const int k = by_k ? t % (BK / k_step) * k_step : t / (outer / o_step);
        spot = k * pitch + o;
        x = matrix + (o0 + o) * stride_o + (k_begin + k) * stride_k;
#pragma unroll
        for (int e = 0; e < accesses; e++) /* wide only if W divides the dense size */
            reach[e] = o0 + o + e * o_on() < o_end ? k_end - k_begin - k - e * k_on() : 0;
    }

    /* From one access of this thread to the next. */
    DEVICE int o_on() const { return by_k ? NR_BLOCK / (BK / k_step) : 0; }
    DEVICE int k_on() const { return by_k ? 0 : NR_BLOCK / (outer / o_step); }

    DEVICE void fetch() {
#pragma unroll
        for (int e = 0; e < accesses; e++) {
            pack<T, W> all = {};
            if (reach[e] > 0)
                all = *reinterpret_cast<const pack<T, W> *>(x + (by_k ? e * o_on() * stride_o : e * k_on() * stride_k));
            reach[e] -= BK;
#pragma unroll
            for (int q = 0; q < W; q++) next[e * W + q] = all.v[q];
        }
        x += BK * stride_k;
    }

    DEVICE void put(T *tile) const {
#pragma unroll
        for (int e = 0; e < accesses; e++) {
            T *to = tile + spot + e * (k_on() * pitch + o_on());
            if constexpr (way == WIDE_ALONG_OUTER) {
                pack<T, W> all;
#pragma unroll
                for (int q = 0; q < W; q++) all.v[q] = next[e * W + q];
                *reinterpret_cast<pack<T, W> *>(to) = all;
            } else {
#pragma unroll
                for (int q = 0; q < W; q++) to[q * pitch] = next[e * W + q];
            }
        }
    }
};

#endif
