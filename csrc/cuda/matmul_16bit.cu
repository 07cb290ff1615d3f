/* matmul_16bit: products of float16 and bfloat16 matrices on tensor cores, by mma.sync (mma.cuh);
 * and which kernel computes a product.
 *
 *   B  BK [ stage 0 ][ stage 1 ][ stage 2 ]      Later stages are copied while a stage is multiplied. A warp
 *        +----------------------------------+    computes WM x WN of the block's BM x BN sums, k16 at a time, and loads
 *   A BM | WM x WN  |  warp 1  |            |    the registers of the next k16 meanwhile.
 *        +----------+----------+            |
 *        |  warp 2  |  warp 3  |            |    Rows of a stage are of the dense direction, in chunks of 16 bytes, the
 *        +----------------------------------+    chunk's number XORed with the row's: those that a warp accesses at
 *                                                once lie in different banks of shared memory.
 *
 * If C has few tiles, k is divided (blockIdx: part), and add_parts adds the parts in order.
 *
 * Method: Thakkar and others, CUTLASS ("Efficient GEMM in CUDA"). */
#include "matmul_16bit.cuh"

#include <stdlib.h>

/* The layout of a matrix: dense along k or along its outer direction, in rows of whole chunks of 16 bytes; or strided:
 * its elements are collected one by one. */
enum layout_16bit { ALONG_K, ALONG_OUTER, STRIDED };

/* BM x BN x BK a block, WM x WN a warp; the number of stages, and of blocks that should run on a multiprocessor. */
template <class D_, int BM_, int BN_, int BK_, int WM_, int WN_, int stages_, int blocks_> struct shape_16bit {
    using D = D_;
    static constexpr int BM = BM_, BN = BN_, BK = BK_, WM = WM_, WN = WN_, stages = stages_, blocks = blocks_;
    static constexpr int threads = BM / WM * (BN / WN) * 32, bytes = stages * (BM + BN) * BK * 2;
};

/* ---- from global to shared memory -------------------------------------------------------------------------------- */

/* A stage of one operand: `outer` x BK elements from (o0, k0) on, below (o_end, k_end); zeros beyond. */
template <int outer, int BK, int layout, int threads> struct source_16bit {
    static constexpr bool along_k = layout != ALONG_OUTER; /* in shared memory */
    static constexpr int rows = along_k ? outer : BK, chunks = (along_k ? BK : outer) / 8, bytes = rows * chunks * 16;
    static constexpr int accesses = rows * chunks / threads, step = threads / chunks;
    static_assert(rows * chunks % threads == 0 && threads % chunks == 0 && chunks >= 4, "");

    static DEVICE uint32_t place(int row, int chunk) {
        return (uint32_t)(row * chunks + (chunk ^ (chunks >= 8 ? row & 7 : row >> 1 & 3))) * 16;
    }

    const uint16_t *x; /* this thread's first chunk */
    int64_t pitch;
    int row, chunk, left_outer, left_k;

    DEVICE source_16bit(const uint16_t *matrix, int64_t outer_stride, int64_t k_stride, int o0, int o_end, int k0,
                        int k_end)
        : pitch(along_k ? outer_stride : k_stride), row((int)threadIdx.x / chunks), chunk((int)threadIdx.x % chunks) {
        const int o = o0 + (along_k ? row : chunk * 8), k = k0 + (along_k ? chunk * 8 : row);
        x = matrix + o * (along_k ? pitch : 1) + k * (along_k ? 1 : pitch);
        left_outer = o_end - o;
        left_k = k_end - k;
    }

    /* Begins to copy the next BK of k to a stage. */
    DEVICE void fetch(uint32_t to) {
#pragma unroll
        for (int i = 0; i < accesses; i++) {
            const bool valid = along_k ? left_outer > i * step && left_k > 0 : left_k > i * step && left_outer > 0;
            copy_async<16>(to + place(row + i * step, chunk), x + i * step * pitch, valid);
        }
        x += along_k ? BK : BK * pitch;
        left_k -= BK;
    }
    DEVICE void put(unsigned char *) {}
};

/* The same for strided elements. They pass through registers: fetch() reads them, put() writes them. */
template <int outer, int BK, int threads> struct source_16bit<outer, BK, STRIDED, threads> {
    using in_shared = source_16bit<outer, BK, ALONG_K, threads>;
    static constexpr bool along_k = true;
    static constexpr int chunks = BK / 8, bytes = in_shared::bytes, accesses = in_shared::accesses;
    static DEVICE uint32_t place(int row, int chunk) { return in_shared::place(row, chunk); }

    const uint16_t *x;
    int64_t outer_stride, k_stride;
    int left_outer, left_k;
    uint32_t next[accesses][4];

    DEVICE source_16bit(const uint16_t *matrix, int64_t o_stride, int64_t k_step, int o0, int o_end, int k0, int k_end)
        : x(matrix + o0 * o_stride + k0 * k_step), outer_stride(o_stride), k_stride(k_step), left_outer(o_end - o0),
          left_k(k_end - k0) {}

    /* Neighbouring threads read neighbouring elements. */
    DEVICE int row(int i) const {
        const int at = i * threads + (int)threadIdx.x;
        return k_stride == 1 ? at / chunks : at % outer;
    }
    DEVICE int chunk(int i) const {
        const int at = i * threads + (int)threadIdx.x;
        return k_stride == 1 ? at % chunks : at / outer;
    }

    DEVICE void fetch(uint32_t) {
#pragma unroll
        for (int i = 0; i < accesses; i++) {
            const int k = chunk(i) * 8, left = row(i) < left_outer ? left_k - k : 0;
            const uint16_t *from = x + row(i) * outer_stride + k * k_stride;
#pragma unroll
            for (int q = 0; q < 4; q++) {
                const uint32_t low = 2 * q < left ? from[2 * q * k_stride] : 0;
                const uint32_t high = 2 * q + 1 < left ? from[(2 * q + 1) * k_stride] : 0;
                next[i][q] = low | high << 16;
            }
        }
        x += BK * k_stride;
        left_k -= BK;
    }
    DEVICE void put(unsigned char *to) {
#pragma unroll
        for (int i = 0; i < accesses; i++)
            *reinterpret_cast<pack<uint32_t, 4> *>(to + place(row(i), chunk(i))) = {next[i][0], next[i][1], next[i][2],
                                                                                    next[i][3]};
    }
};

/* ---- the product ------------------------------------------------------------------------------------------------- */

template <class S, int layout_a, int layout_b>
__global__ void __launch_bounds__(S::threads, S::blocks) multiply(const product_16bit g) {
#if NR_HAS_MMA
    using D = typename S::D;
    using A = source_16bit<S::BM, S::BK, layout_a, S::threads>;
    using B = source_16bit<S::BN, S::BK, layout_b, S::threads>;
    constexpr int BK = S::BK, stages = S::stages, down = S::WM / 16, across = S::WN / 16;
    DYNAMIC_SHARED(unsigned char, shared);
    TELL_SHARED(S::bytes);
    unsigned char *a_stages = shared, *b_stages = shared + stages * A::bytes;
    const uint32_t a_at = shared_address(a_stages), b_at = shared_address(b_stages);
    const work_item at = item_of<S::BM, S::BN>(g, (int)blockIdx.x);
    int64_t item[3];
    g.batch.find((uint32_t)at.batch, item);
    const int k_begin = at.part * g.k_part, k_end = g.k - k_begin < g.k_part ? g.k : k_begin + g.k_part;
    A a(static_cast<const uint16_t *>(g.a) + item[1], g.a_outer, g.a_k, at.row, g.m, k_begin, k_end);
    B b(static_cast<const uint16_t *>(g.b) + item[2], g.b_outer, g.b_k, at.col, g.n, k_begin, k_end);
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int row = warp / (S::BN / S::WN) * S::WM, col = warp % (S::BN / S::WN) * S::WN; /* of the warp, in the tile */

    float sum[down][2 * across][4] = {};
    uint32_t x[2][down][4], y[2][across][4]; /* of this k16 and the next */
    auto load = [&](int stage, int kk, int to) {
#pragma unroll
        for (int i = 0; i < down; i++) {
            const int o = row + i * 16;
            if constexpr (A::along_k)
                load_matrices(x[to][i], a_at + stage * A::bytes + A::place(o + lane % 16, kk * 2 + lane / 16));
            else
                load_matrices_transposed(x[to][i],
                                         a_at + stage * A::bytes +
                                             A::place(kk * 16 + lane / 16 * 8 + lane % 8, o / 8 + lane / 8 % 2));
        }
#pragma unroll
        for (int j = 0; j < across; j++) {
            const int o = col + j * 16;
            if constexpr (B::along_k)
                load_matrices(y[to][j],
                              b_at + stage * B::bytes + B::place(o + lane / 16 * 8 + lane % 8, kk * 2 + lane / 8 % 2));
            else
                load_matrices_transposed(y[to][j],
                                         b_at + stage * B::bytes + B::place(kk * 16 + lane % 16, o / 8 + lane / 16));
        }
    };

    int filling = 0, stage = 0;
#pragma unroll
    for (; filling < stages - 1; filling++) {
        a.fetch(a_at + filling * A::bytes);
        b.fetch(b_at + filling * B::bytes);
        a.put(a_stages + filling * A::bytes);
        b.put(b_stages + filling * B::bytes);
        commit_copies();
    }
    wait_copies<stages - 2>();
    __syncthreads();
    load(0, 0, 0);
    for (int rounds = (k_end - k_begin + BK - 1) / BK; rounds > 0; rounds--) {
#pragma unroll
        for (int kk = 0; kk < BK / 16; kk++) {
            if (kk == 0) { /* all have left this stage at the last barrier */
                a.fetch(a_at + filling * A::bytes);
                b.fetch(b_at + filling * B::bytes);
                commit_copies();
            }
            if (kk == BK / 16 - 1) {
                a.put(a_stages + filling * A::bytes);
                b.put(b_stages + filling * B::bytes);
                filling = filling + 1 == stages ? 0 : filling + 1;
                stage = stage + 1 == stages ? 0 : stage + 1;
                wait_copies<stages - 2>();
                __syncthreads();
            }
            load(stage, (kk + 1) % (BK / 16), (kk + 1) % 2);
#pragma unroll
            for (int i = 0; i < down; i++)
#pragma unroll
                for (int j = 0; j < 2 * across; j++) {
                    const int to =
                        i % 2 ? 2 * across - 1 - j : j; /* there and back: registers are used again at once */
                    mma_16bit<D>(sum[i][to], x[kk % 2][i], y[kk % 2][to / 2][to % 2 * 2],
                                 y[kk % 2][to / 2][to % 2 * 2 + 1]);
                }
        }
    }

    tile_end<D> end(g, at, item[0], at.col + col);
#pragma unroll
    for (int j = 0; j < S::WN; j += 32) {
        end.load_bias(j);
#pragma unroll
        for (int i = 0; i < down; i++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float eight[8];
#pragma unroll
                for (int q = 0; q < 8; q++) eight[q] = sum[i][j / 8 + q / 2][h * 2 + q % 2];
                end.store(at.row + row + i * 16 + h * 8 + lane / 4, j, eight);
            }
    }
    if (g.activation < 0 || g.parts > 1) return;
    __syncthreads();
    end.template finish<S::BN>(at.row, S::BM, at.col, (int)threadIdx.x, S::threads);
#endif
}

/* The parts of W neighbours, in order, and the bias. */
template <class D, int W>
__global__ void __launch_bounds__(NR_BLOCK) add_parts(const product_16bit g, const float *sums) {
    using S = typename D::S;
    const int64_t all = (int64_t)g.m * g.n, i = ((int64_t)blockIdx.x * NR_BLOCK + threadIdx.x) * W;
    if (i >= all * g.batches) return;
    int64_t at[3], row = i % all / g.n, col = i % all % g.n;
    g.batch.find((uint32_t)(i / all), at);
    const float *from = sums + i;
    float sum[W] = {};
#pragma unroll 4
    for (int part = 0; part < g.parts; part++, from += g.c_end) {
        const pack<float, W> next = *reinterpret_cast<const pack<float, W> *>(from);
#pragma unroll
        for (int q = 0; q < W; q++) sum[q] += next.v[q];
    }
    pack<S, W> out;
#pragma unroll
    for (int q = 0; q < W; q++) sum[q] += g.bias ? widen<D>(static_cast<const S *>(g.bias)[col + q]) : 0.0f;
    S *to = static_cast<S *>(g.c) + at[0] + row * g.c_row + col;
    add_residual<D>(g, sum, to, W);
#pragma unroll
    for (int q = 0; q < W; q++) sum[q] = widen<D>(narrow<D>(ended(sum[q], g.relu)));
    activate(g.activation, sum);
#pragma unroll
    for (int q = 0; q < W; q++) out.v[q] = narrow<D>(sum[q]);
    *reinterpret_cast<pack<S, W> *>(to) = out;
}

/* ---- which kernel ------------------------------------------------------------------------------------------------ */

typedef void (*kernel_16bit)(product_16bit);

struct kernels_16bit {
    tile_16bit tile;
    int threads, bytes;
    kernel_16bit dense[2][2], strided; /* [A along k][B along k]; NULL: for the other layouts */
};

template <class S> static constexpr tile_16bit tile_of(double speed, double start) {
    return {S::BM, S::BN, S::BK, S::blocks, speed, start};
}
template <class S> static constexpr kernels_16bit dense_kernels(double speed, double start) {
    return {tile_of<S>(speed, start),
            S::threads,
            S::bytes,
            {{multiply<S, ALONG_OUTER, ALONG_OUTER>, multiply<S, ALONG_OUTER, ALONG_K>},
             {multiply<S, ALONG_K, ALONG_OUTER>, multiply<S, ALONG_K, ALONG_K>}},
            nullptr};
}
template <class S> static constexpr kernels_16bit strided_kernels(double speed, double start) {
    return {tile_of<S>(speed, start), S::threads, S::bytes, {}, multiply<S, STRIDED, STRIDED>};
}

#define KERNELS 4
template <class D> static const kernels_16bit *kernels_for() {
    static const kernels_16bit all[KERNELS] = {dense_kernels<shape_16bit<D, 128, 256, 64, 64, 64, 3, 1>>(1020, 170),
                                               dense_kernels<shape_16bit<D, 128, 128, 32, 64, 64, 4, 2>>(915, 115),
                                               dense_kernels<shape_16bit<D, 64, 64, 64, 32, 32, 3, 4>>(670, 150),
                                               strided_kernels<shape_16bit<D, 64, 64, 64, 32, 32, 3, 3>>(150, 150)};
    return all;
}

/* The layout of one operand. dense_size: along the direction in which it is dense, other_size across. */
static layout_16bit layout_of(const void *x, int64_t outer, int64_t k, int64_t outer_stride, int64_t k_stride,
                              const nr_matmul_plan &p, int operand) {
    const bool along_k = k_stride == 1;
    if (!along_k && outer_stride != 1) return STRIDED;
    const int64_t size = along_k ? k : outer, others = along_k ? outer : k, pitch = along_k ? outer_stride : k_stride;
    bool whole = size % 8 == 0 && (pitch % 8 == 0 || others == 1) && is_aligned(x, 16);
    for (int32_t d = 0; d < p.batch_ndim; d++) whole = whole && p.batch_stride[operand][d] % 8 == 0;
    return !whole ? STRIDED : along_k ? ALONG_K : ALONG_OUTER;
}

#define LEAST_PART 256 /* of k */

/* Clocks that a product may take. If there are fewer blocks than a multiprocessor should have, each runs alone for a
 * part of the time that they would share. */
static double clocks_of(const tile_16bit &tile, const product_16bit &g, int parts, int multiprocessors) {
    double each = (double)((tiles_of(tile, g) * parts + multiprocessors - 1) / multiprocessors);
    if (each < tile.blocks) each = (each + tile.blocks) / 2;
    const double sums = (double)g.c_end / multiprocessors, launch = 3400, sum = 0.6;
    return each * tile.bm * tile.bn * ((double)g.k / parts + tile.start) / tile.speed +
           (parts > 1 ? launch + sums * parts * sum : 0);
}

/* The best kernel so far. In the simulation, and in builds for measurements, NORCH_MATMUL_16BIT="2,3" asks for kernel 2
 * and 3 parts. */
struct choice_16bit {
    int which = -1, parts = 1, wished = -1, wished_parts = 1;
    double clocks = 0;

    choice_16bit() {
#if defined CUDASIM || defined NR_TUNE
        const char *text = getenv("NORCH_MATMUL_16BIT"), *comma = text ? strchr(text, ',') : nullptr;
        if (!comma) return;
        wished = atoi(text);
        wished_parts = atoi(comma + 1);
#endif
    }

    void consider(int index, const tile_16bit &tile, const product_16bit &g, int multiprocessors) {
        const int64_t tiles = tiles_of(tile, g), enough = (int64_t)2 * multiprocessors * tile.blocks;
        for (int n = 1; n == 1 || (n * LEAST_PART <= g.k && n * tiles <= enough); n++) {
            const double candidate =
                index == wished && n == wished_parts ? -1e9 : clocks_of(tile, g, n, multiprocessors);
            if (which < 0 || candidate < clocks) which = index, parts = n, clocks = candidate;
        }
    }
};

static const kernels_16bit *kernels_of_dtype(int32_t dtype) {
    return dtype == NORCH_FLOAT16 ? kernels_for<dtype_float16>() : kernels_for<dtype_bfloat16>();
}

/* The parts of sums, each of g.c_end elements, into C. */
template <class D> static void add(const product_16bit &g, const float *sums, bool wide, cudaStream_t stream) {
    const int64_t all = g.c_end;
    if (wide)
        LAUNCH((add_parts<D, 4>), blocks_for(all / 4, NR_BLOCK), NR_BLOCK, 0, stream, g, sums);
    else
        LAUNCH((add_parts<D, 1>), blocks_for(all, NR_BLOCK), NR_BLOCK, 0, stream, g, sums);
}

/* Runs a product whose parts and batches are set; launch(g): its kernel. */
template <class Launch> static int32_t run_parts(const nr_call *call, product_16bit g, const Launch &launch) {
    const nr_gpu *gpu = gpu_of(call);
    if (g.parts == 1) {
        NR_TRY(launch(g));
        return launched(call);
    }
    void *const c = g.c;
    const size_t bytes = (size_t)g.c_end * (size_t)g.parts * sizeof(float);
    void *sums = nr_cuda_scratch(gpu, bytes);
    if (!sums) return NORCH_ERROR_MEMORY;
    g.c = sums;
    int32_t status = launch(g);
    cudaError_t error = cudaGetLastError();
    if (status == NORCH_OK && error == cudaSuccess) {
        g.c = c;
        const bool wide = g.c_wide && g.n % 4 == 0;
        const auto add_for = call->dtype == NORCH_FLOAT16    ? add<dtype_float16>
                             : call->dtype == NORCH_BFLOAT16 ? add<dtype_bfloat16>
                                                             : add<dtype_float32>;
        add_for(g, static_cast<const float *>(sums), wide, gpu->stream);
        error = cudaGetLastError();
    }
    nr_cuda_scratch_free(gpu, sums, bytes);
    NR_TRY(status);
    TRY(nr_call_name(call), error);
    return NORCH_OK;
}

/* ---- matrices in rows that 16 bytes do not divide ---------------------------------------------------------------- */

/* A copy of an operand has such rows, each padded to a multiple of 16 bytes. */
struct row_copy {
    const uint16_t *x;
    uint16_t *to;
    int64_t step, pitch; /* of x: in a row, from row to row */
    int32_t size;
    uint32_t all; /* chunks of 16 bytes */
    divisor chunks, rows;
    nest<1> batch;
};

__global__ void __launch_bounds__(NR_BLOCK) copy_rows(const row_copy c) {
    const uint32_t i = blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= c.all) return;
    const uint32_t row = quotient(i, c.chunks), item = quotient(row, c.rows);
    const int32_t first = (int32_t)(i - row * c.chunks.size) * 8;
    int64_t at;
    c.batch.find(item, &at);
    const uint16_t *from = c.x + at + (row - item * c.rows.size) * c.pitch + first * c.step;
    pack<uint16_t, 8> chunk;
#pragma unroll
    for (int q = 0; q < 8; q++) chunk.v[q] = first + q < c.size ? from[q * c.step] : 0;
    *reinterpret_cast<pack<uint16_t, 8> *>(c.to + (int64_t)i * 8) = chunk;
}

/* An operand of a plan, 1 (a) or 2 (b): address, sizes and strides. */
struct operand_16bit {
    const void **x;
    int64_t outer, k, *outer_stride, *k_stride, *batch_stride;
};
static operand_16bit operand_of(nr_matmul_plan *p, int operand) {
    if (operand == 1) return {&p->a, p->m, p->k, &p->a_row, &p->a_col, p->batch_stride[1]};
    return {&p->b, p->n, p->k, &p->b_col, &p->b_row, p->batch_stride[2]};
}

/* Gives an operand of q, a plan like p, the strides of its copy, at no address yet; *copy: how to make it. */
static void plan_copy(const nr_matmul_plan &p, nr_matmul_plan *q, int operand, row_copy *copy) {
    const operand_16bit x = operand_of(q, operand);
    const bool along_k = *x.k_stride == 1 || *x.outer_stride != 1;
    const int64_t size = along_k ? x.k : x.outer, others = along_k ? x.outer : x.k, pitch = (size + 7) / 8 * 8;
    int64_t elements = pitch * others, batch[NORCH_MAX_DIMS], stride[1][NORCH_MAX_DIMS];
    *copy = {};
    copy->x = static_cast<const uint16_t *>(*x.x);
    copy->step = along_k ? *x.k_stride : *x.outer_stride;
    copy->pitch = along_k ? *x.outer_stride : *x.k_stride;
    copy->size = (int32_t)size;
    int32_t loops = 0;
    for (int32_t d = 0; d < p.batch_ndim; d++)
        if (x.batch_stride[d]) { /* else all batches read the first one */
            batch[loops] = p.batch[d];
            stride[0][loops++] = x.batch_stride[d];
            x.batch_stride[d] = elements;
            elements *= p.batch[d];
        }
    *x.x = nullptr;
    *x.k_stride = along_k ? 1 : pitch;
    *x.outer_stride = along_k ? pitch : 1;
    copy->all = (uint32_t)(elements / 8 < UINT32_MAX ? elements / 8 : UINT32_MAX);
    copy->chunks = divisor_of(pitch / 8);
    copy->rows = divisor_of(others);
    copy->batch = nest_of<1>(loops, batch, stride);
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

/* A product and the kernel that is best for it. */
struct ready_product {
    product_16bit g;
    layout_16bit a, b;
    bool wgmma;
    choice_16bit choice;

    kernel_16bit kernel_of(const kernels_16bit &one) const {
        return a != STRIDED && b != STRIDED ? one.dense[a == ALONG_K][b == ALONG_K] : one.strided;
    }
};

static ready_product prepare(const nr_call *call, const nr_matmul_plan &p, int64_t batches) {
    const nr_gpu *gpu = gpu_of(call);
    ready_product r = {};
    product_16bit &g = r.g;
    static_cast<matmul_operands &>(g) = operands_of(call, p);
    g.a_outer = p.a_row;
    g.a_k = p.a_col;
    g.b_outer = p.b_col;
    g.b_k = p.b_row;
    g.batches = (int32_t)batches;
    g.c_end = batches * p.m * p.n;
    g.c_wide = layout_of(p.c, p.m, p.n, p.c_row, 1, p, 0) == ALONG_K;
    r.wgmma = nr_wgmma_takes(call, p);
    for (int i = 0; i < NR_WGMMA_TILES && r.wgmma; i++)
        r.choice.consider(i, nr_wgmma_tile(call->dtype, i), g, gpu->multiprocessors);
    if (call->dtype == NORCH_FLOAT32) return r;
    r.a = layout_of(p.a, p.m, p.k, p.a_row, p.a_col, p, 1);
    r.b = layout_of(p.b, p.n, p.k, p.b_col, p.b_row, p, 2);
    const kernels_16bit *all = kernels_of_dtype(call->dtype);
    for (int i = 0; i < KERNELS; i++)
        if (r.kernel_of(all[i]) && all[i].bytes <= gpu->most_shared)
            r.choice.consider(NR_WGMMA_TILES + i, all[i].tile, g, gpu->multiprocessors);
    return r;
}

static int32_t run_prepared(const nr_call *call, const nr_matmul_plan &p, ready_product r) {
    product_16bit &g = r.g;
    const int which = r.choice.which;
    const kernels_16bit *kernels =
        which < NR_WGMMA_TILES ? nullptr : &kernels_of_dtype(call->dtype)[which - NR_WGMMA_TILES];
    const tile_16bit &tile = kernels ? kernels->tile : nr_wgmma_tile(call->dtype, which);
    const int32_t part = (g.k + r.choice.parts - 1) / r.choice.parts;
    g.k_part = (part + tile.bk - 1) / tile.bk * tile.bk;
    g.parts = g.k ? (g.k + g.k_part - 1) / g.k_part : 1;
    return run_parts(call, g, [&](const product_16bit &product) {
        if (!kernels) return nr_wgmma_launch(call, p, product, which);
        const kernel_16bit kernel = r.kernel_of(*kernels);
        const unsigned blocks = (unsigned)(tiles_of(tile, product) * product.parts);
        TRY("matmul", cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kernels->bytes));
        LAUNCH(kernel, blocks, kernels->threads, (size_t)kernels->bytes, gpu_of(call)->stream, product);
        return (int32_t)NORCH_OK;
    });
}

int32_t nr_cuda_matmul_tiles(const nr_call *call, const nr_matmul_plan &p, int64_t batches) {
    return run_prepared(call, p, prepare(call, p, batches));
}

/* The same product, from the copies of operands that have one. */
static int32_t run_copied(const nr_call *call, nr_matmul_plan q, const row_copy *copies, int64_t batches) {
    const nr_gpu *gpu = gpu_of(call);
    void *memory[2] = {};
    int32_t status = NORCH_OK;
    for (int i = 0; i < 2 && status == NORCH_OK; i++) {
        row_copy copy = copies[i];
        if (!copy.all) continue;
        memory[i] = nr_cuda_scratch(gpu, (size_t)copy.all * 16);
        if (!memory[i]) {
            status = NORCH_ERROR_MEMORY;
            break;
        }
        copy.to = static_cast<uint16_t *>(memory[i]);
        *operand_of(&q, i + 1).x = memory[i];
        LAUNCH(copy_rows, blocks_for(copy.all, NR_BLOCK), NR_BLOCK, 0, gpu->stream, copy);
        status = launched(call);
    }
    if (status == NORCH_OK) status = nr_cuda_matmul_tiles(call, q, batches);
    for (int i = 0; i < 2; i++)
        if (memory[i]) nr_cuda_scratch_free(gpu, memory[i], (size_t)copies[i].all * 16);
    return status;
}

/* Of one operand at a time, in chunks; the simulation is slow. */
#ifdef CUDASIM
#define MOST_COPIED ((uint32_t)(64 << 10) / 16)
#else
#define MOST_COPIED ((uint32_t)(256 << 20) / 16)
#endif
#define MOST_TILES ((int64_t)1 << 24) /* of 64 x 64, of a launch; so few that numbers of blocks are integers */

#define LARGEST (INT32_MAX - 1024) /* size */

static int32_t run_halves(const nr_call *call, const nr_matmul_plan &p, int cut);
enum { CUT_ROWS = -1, CUT_COLUMNS = -2 }; /* or a loop of the batch */

int32_t nr_cuda_matmul_16bit(const nr_call *call, const nr_matmul_plan &p) {
    int64_t batches = 1;
    int32_t last = -1;
    for (int32_t d = 0; d < p.batch_ndim; d++) {
        batches *= p.batch[d];
        if (p.batch[d] > 1) last = d;
    }
    if (p.k > LARGEST)
        return nr_library->fail(NORCH_ERROR_SHAPE, "matmul: a CUDA kernel takes inner sizes up to %d, not %lld",
                                LARGEST, (long long)p.k);
    if (p.m > LARGEST || p.n > LARGEST) return run_halves(call, p, p.m > LARGEST ? CUT_ROWS : CUT_COLUMNS);
    if (last >= 0 && ((p.m + 63) / 64) * ((p.n + 63) / 64) * batches > MOST_TILES) return run_halves(call, p, last);
    const ready_product r = prepare(call, p, batches);
    if (r.wgmma || (r.a != STRIDED && r.b != STRIDED) || p.k == 0) return run_prepared(call, p, r);

    nr_matmul_plan q = p;
    row_copy copies[2] = {};
    if (r.a == STRIDED) plan_copy(p, &q, 1, &copies[0]);
    if (r.b == STRIDED) plan_copy(p, &q, 2, &copies[1]);
    const int multiprocessors = gpu_of(call)->multiprocessors;
    const double chunks = (double)copies[0].all + copies[1].all, launches = 4000, chunks_in_clock = 0.4;
    const double copying = launches + chunks / multiprocessors / chunks_in_clock;
    if (prepare(call, q, batches).choice.clocks + copying >= r.choice.clocks) return run_prepared(call, p, r);
    if (copies[0].all <= MOST_COPIED && copies[1].all <= MOST_COPIED) return run_copied(call, q, copies, batches);
    const bool rows = copies[0].all > copies[1].all;
    if (last >= 0) return run_halves(call, p, last);
    if ((rows ? p.m : p.n) < 256) return run_prepared(call, p, r);
    return run_halves(call, p, rows ? CUT_ROWS : CUT_COLUMNS);
}

/* One half after the other: of the batches, or of C. */
static int32_t run_halves(const nr_call *call, const nr_matmul_plan &p, int cut) {
    for (int half = 0; half < 2; half++) {
        nr_matmul_plan part = p;
        int64_t *size = cut == CUT_ROWS ? &part.m : cut == CUT_COLUMNS ? &part.n : &part.batch[cut];
        const int64_t middle = *size / 128 ? *size / 128 * 64 : *size / 2, from = half ? middle : 0;
        const int64_t c = cut == CUT_ROWS ? p.c_row : cut == CUT_COLUMNS ? 1 : p.batch_stride[0][cut];
        const int64_t a = cut == CUT_ROWS ? p.a_row : cut == CUT_COLUMNS ? 0 : p.batch_stride[1][cut];
        const int64_t b = cut == CUT_ROWS ? 0 : cut == CUT_COLUMNS ? p.b_col : p.batch_stride[2][cut];
        *size = half ? *size - middle : middle;
        part.c = static_cast<uint16_t *>(p.c) + from * c;
        if (p.residual) part.residual = static_cast<const uint16_t *>(p.residual) + from * c;
        part.a = static_cast<const uint16_t *>(p.a) + from * a;
        part.b = static_cast<const uint16_t *>(p.b) + from * b;
        if (p.bias && cut == CUT_COLUMNS) part.bias = static_cast<const uint16_t *>(p.bias) + from;
        NR_TRY(nr_cuda_matmul_16bit(call, part));
    }
    return NORCH_OK;
}
