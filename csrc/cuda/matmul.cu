/* matmul: products of strided, batched matrices in full precision, tile by tile (tile.cuh, which names the method).
 *
 *             N by BN                 a block computes a tile of C; blockIdx.x: which; y: of which item of the batch
 *           +----+----+----+
 *   M by BM | 0  | 1  | 2  |          Where C has few tiles and K is long, K is cut by shape alone, blockIdx.z:
 *           +----+----+----+            K  [ part 0    | part 1    | part 2 ]    sums [part][item][m][n] in scratch,
 *           | 3  | 4  | 5  |                                                     added in order by add_parts
 *           +----+----+----+
 *
 * BM and BN, from 128 down to 32, are as large as leaves no multiprocessor idle. */
#include "../families/matmul.h"
#include "matmul_16bit.cuh"
#include "tile.cuh"

struct matmul_args {
    const void *a, *b, *bias;
    void *c;
    int32_t m, n, k;
    int64_t a_row, a_col, b_row, b_col, c_row;
    int32_t k_part, parts; /* parts > 1: c holds sums of k_part terms, [part][batch][m][n] */
    int64_t part_stride;
    bool c_wide;   /* 16 bytes of a row of C may be written at once */
    nest<3> batch; /* c, a, b, in elements */
};

/* A thread's run of `count` neighbours of a row, `left` of them in the matrix. */
template <int count, class To, class From> DEVICE void put_run(To *to, const From *from, int left, bool wide) {
    if (wide && left >= count) {
        pack<To, count> all;
#pragma unroll
        for (int q = 0; q < count; q++) all.v[q] = (To)from[q];
        *reinterpret_cast<pack<To, count> *>(to) = all;
        return;
    }
#pragma unroll
    for (int q = 0; q < count; q++)
        if (q < left) to[q] = (To)from[q];
}

template <class S, int way_a, int way_b>
__global__ void __launch_bounds__(NR_BLOCK, way_a == EACH ? 1 : S::blocks) multiply(const matmul_args g) {
    using T = typename S::T;
    using A = typename S::A;
    const int tiles_n = (g.n + S::BN - 1) / S::BN;
    const int row0 = (int)blockIdx.x / tiles_n * S::BM, col0 = (int)blockIdx.x % tiles_n * S::BN;
    int64_t at[3];
    g.batch.find(blockIdx.y, at);
    const int k_begin = (int)blockIdx.z * g.k_part;
    const int k_end = g.k - k_begin < g.k_part ? g.k : k_begin + g.k_part;
    matrix_source<T, S::BM, S::BK, way_a> a(static_cast<const T *>(g.a) + at[1], g.a_row, g.a_col, row0, g.m, k_begin,
                                            k_end, g.a_col == 1 || g.a_row != 1);
    matrix_source<T, S::BN, S::BK, way_b> b(static_cast<const T *>(g.b) + at[2], g.b_col, g.b_row, col0, g.n, k_begin,
                                            k_end, g.b_row == 1 && g.b_col != 1);
    A sum[S::TM][S::TN] = {};
    multiply_tiles<S>(sum, a, b, (k_end - k_begin + S::BK - 1) / S::BK, [] {});

    const bool whole = g.parts == 1;
    T *c = static_cast<T *>(g.c) + at[0];
    A *partial = static_cast<A *>(g.c) + blockIdx.z * g.part_stride + (int64_t)blockIdx.y * g.m * g.n;
    const T *bias = static_cast<const T *>(g.bias);
#pragma unroll
    for (int j = 0; j < S::TN; j += S::RUN_N) {
        const int col = col0 + S::column(j), left = g.n - col;
        A start[S::RUN_N];
#pragma unroll
        for (int q = 0; q < S::RUN_N; q++) start[q] = bias && whole && q < left ? (A)bias[col + q] : A(0);
#pragma unroll
        for (int i = 0; i < S::TM; i++) {
            const int row = row0 + S::row(i);
            if (row >= g.m) continue;
            A run[S::RUN_N];
#pragma unroll
            for (int q = 0; q < S::RUN_N; q++) run[q] = sum[i][j + q] + start[q];
            if (whole)
                put_run<S::RUN_N>(c + (int64_t)row * g.c_row + col, run, left, g.c_wide);
            else
                put_run<S::RUN_N>(partial + (int64_t)row * g.n + col, run, left, g.n % 4 == 0);
        }
    }
}

/* The parts of each element, in order, and the bias. */
template <class T, class A>
__global__ void __launch_bounds__(NR_BLOCK) add_parts(const matmul_args g, const void *partials) {
    int64_t i = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x, area = (int64_t)g.m * g.n;
    if (i >= area) return;
    int64_t at[3], row = i / g.n, col = i % g.n;
    g.batch.find(blockIdx.y, at);
    const A *parts = static_cast<const A *>(partials) + (int64_t)blockIdx.y * area + i;
    A sum = g.bias ? (A) static_cast<const T *>(g.bias)[col] : A(0);
#pragma unroll 8
    for (int part = 0; part < g.parts; part++) sum += parts[part * g.part_stride];
    (static_cast<T *>(g.c) + at[0])[row * g.c_row + col] = (T)sum;
}

/* ---- which tiles, and how they are read -------------------------------------------------------------------------- */

typedef void (*matmul_kernel)(matmul_args);

struct matmul_shape {
    int32_t bm, bn;
    matmul_kernel each, wide[2][2]; /* [A along k][B along k]; NULL: there are none */
};

/* Kernels of one dtype, from large tiles to small ones, for what has few rows or columns or tiles. */
struct matmul_kernels {
    matmul_shape shape[3];
    int32_t shapes;
    void (*add_parts)(matmul_args, const void *);
    int32_t sum_size;
};

template <class S> static constexpr matmul_shape shape_of() { return {S::BM, S::BN, multiply<S, EACH, EACH>, {}}; }
template <class S> static constexpr matmul_shape wide_shape_of() {
    return {S::BM,
            S::BN,
            multiply<S, EACH, EACH>,
            {{multiply<S, WIDE_ALONG_OUTER, WIDE_ALONG_OUTER>, multiply<S, WIDE_ALONG_OUTER, WIDE_ALONG_K>},
             {multiply<S, WIDE_ALONG_K, WIDE_ALONG_OUTER>, multiply<S, WIDE_ALONG_K, WIDE_ALONG_K>}}};
}

template <class T, class A, int BM, int BK, int TM> static const matmul_kernels *kernels_of() {
    using large = tile_shape<T, A, BM, BM, BK, TM, TM>;
    using small = tile_shape<T, A, 32, 32, 16, 2, 2>;
    static const matmul_kernels all = {{shape_of<large>(), shape_of<small>()}, 2, add_parts<T, A>, (int)sizeof(A)};
    return &all;
}

static const matmul_kernels *float32_kernels() {
    using large = tile_shape<float, float, 128, 128, 8, 8, 8>;
    using middle = tile_shape<float, float, 64, 64, 16, 4, 4>;
    using small = tile_shape<float, float, 32, 32, 32, 2, 2>;
    static const matmul_kernels all = {{wide_shape_of<large>(), wide_shape_of<middle>(), wide_shape_of<small>()},
                                       3,
                                       add_parts<float, float>,
                                       (int)sizeof(float)};
    return &all;
}

template <class D> static const matmul_kernels *kernels_for() {
    using T = typename D::T;
    if constexpr (is_same<T, float>)
        return float32_kernels();
    else if constexpr (is_same<T, double>)
        return kernels_of<double, double, 64, 8, 4>();
    else if constexpr (D::kind == NR_KIND_B)
        return nullptr;
    else if constexpr (sizeof(T) == 8)
        return kernels_of<T, uint64_t, 32, 16, 2>();
    else
        return kernels_of<T, uint32_t, 64, 16, 4>();
}

static const matmul_kernels *find(int32_t dtype) {
    switch (dtype) {
#define WIDE(NAME, name, ...) \
    case NORCH_##NAME: return kernels_for<dtype_##name>();
#define NARROW(...)
#include "../dtypes.def"
    }
    return nullptr;
}

#define MOST_BATCHES 65535 /* blockIdx.y */
#define BUSY 128           /* blocks that leave no multiprocessor of a middling device idle; by shape, not by device */

/* Whether four neighbours of a matrix may be moved at once: dense in one direction, of a size that 4 divides, all rows
 * and batches at multiples of 4 from an address at a multiple of 16 bytes. */
static bool is_wide(const void *x, int64_t dense_size, int64_t other_stride, const nr_matmul_plan &p, int operand) {
    bool wide = dense_size % 4 == 0 && other_stride % 4 == 0 && is_aligned(x, 16);
    for (int32_t d = 0; d < p.batch_ndim; d++) wide = wide && p.batch_stride[operand][d] % 4 == 0;
    return wide;
}

/* The kernel of a shape that reads these matrices fastest. */
static matmul_kernel way_for(const matmul_shape &shape, const nr_matmul_plan &p) {
    const bool a_along = p.a_col == 1, b_along = p.b_col != 1;
    if (!shape.wide[0][0] || (!a_along && p.a_row != 1) || (b_along && p.b_row != 1)) return shape.each;
    const bool a_wide = a_along ? is_wide(p.a, p.k, p.a_row, p, 1) : is_wide(p.a, p.m, p.a_col, p, 1);
    const bool b_wide = b_along ? is_wide(p.b, p.k, p.b_col, p, 2) : is_wide(p.b, p.n, p.b_row, p, 2);
    return a_wide && b_wide ? shape.wide[a_along][b_along] : shape.each;
}

static int64_t tiles_of(const matmul_shape &shape, const nr_matmul_plan &p) {
    return ((p.m + shape.bm - 1) / shape.bm) * ((p.n + shape.bn - 1) / shape.bn);
}

static int32_t run_batches(const nr_call *call, const nr_matmul_plan &p, const matmul_kernels *kernels) {
    const nr_gpu *gpu = gpu_of(call);
    matmul_args g = {};
    g.a = p.a;
    g.b = p.b;
    g.bias = p.bias;
    g.c = p.c;
    g.m = (int32_t)p.m;
    g.n = (int32_t)p.n;
    g.k = (int32_t)p.k;
    g.a_row = p.a_row;
    g.a_col = p.a_col;
    g.b_row = p.b_row;
    g.b_col = p.b_col;
    g.c_row = p.c_row;
    g.c_wide = call->dtype == NORCH_FLOAT32 && is_wide(p.c, p.n, p.c_row, p, 0);
    g.batch = nest_of<3>(p.batch_ndim, p.batch, p.batch_stride);
    int64_t batches = 1;
    for (int32_t d = 0; d < p.batch_ndim; d++) batches *= p.batch[d];
    int which = 0; /* the largest tiles that fill the device and that the matrix half fills */
    for (; which < kernels->shapes - 1; which++) {
        const matmul_shape &shape = kernels->shape[which];
        const int64_t enough = shape.bm >= 128 ? 2 * BUSY : BUSY; /* with few large ones some wait for one more */
        if (p.m * 2 > shape.bm && p.n * 2 > shape.bn && tiles_of(shape, p) * batches >= enough) break;
    }
    const matmul_shape &shape = kernels->shape[which];
    const matmul_kernel kernel = way_for(shape, p);
    const int64_t tiles = tiles_of(shape, p);
    g.parts = 1;
    g.k_part = g.k;
    if (tiles * batches < BUSY && g.k >= 512) {
        int64_t parts = 2 * BUSY / (tiles * batches);
        if (parts > g.k / 256) parts = g.k / 256;
        g.k_part = (int32_t)(((g.k + parts - 1) / parts + 31) / 32 * 32);
        g.parts = (g.k + g.k_part - 1) / g.k_part;
    }
    dim3 grid((unsigned)tiles, (unsigned)batches, (unsigned)g.parts);
    if (g.parts == 1) {
        LAUNCH(kernel, grid, NR_BLOCK, 0, gpu->stream, g);
        return launched(call);
    }
    g.part_stride = batches * p.m * p.n;
    size_t bytes = (size_t)(g.part_stride * g.parts * kernels->sum_size);
    void *partials = nr_cuda_scratch(gpu, bytes);
    if (!partials) return NORCH_ERROR_MEMORY;
    g.c = partials;
    LAUNCH(kernel, grid, NR_BLOCK, 0, gpu->stream, g);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) {
        g.c = p.c;
        LAUNCH(kernels->add_parts, dim3(blocks_for(p.m * p.n, NR_BLOCK), (unsigned)batches), NR_BLOCK, 0, gpu->stream,
               g, (const void *)partials);
        error = cudaGetLastError();
    }
    nr_cuda_scratch_free(gpu, partials, bytes);
    TRY(nr_call_name(call), error);
    return NORCH_OK;
}

/* The outermost batch loop in parts, where there are more batches than a grid has rows. */
static int32_t run_some(const nr_call *call, nr_matmul_plan p, const matmul_kernels *kernels, int64_t size) {
    int64_t batches = 1;
    for (int32_t d = 0; d < p.batch_ndim; d++) batches *= p.batch[d];
    if (batches <= MOST_BATCHES) return run_batches(call, p, kernels);
    int32_t last = p.batch_ndim - 1;
    int64_t whole = p.batch[last], step = whole > 1 ? (whole + 1) / 2 : 1;
    if (whole == 1) {
        p.batch_ndim--;
        return run_some(call, p, kernels, size);
    }
    for (int64_t from = 0; from < whole; from += step) {
        nr_matmul_plan part = p;
        part.batch[last] = whole - from < step ? whole - from : step;
        part.c = static_cast<char *>(p.c) + from * p.batch_stride[0][last] * size;
        part.a = static_cast<const char *>(p.a) + from * p.batch_stride[1][last] * size;
        part.b = static_cast<const char *>(p.b) + from * p.batch_stride[2][last] * size;
        NR_TRY(run_some(call, part, kernels, size));
    }
    return NORCH_OK;
}

/* The epilogue of a product, as a separate launch: the kernels of products have no registers left for it. */
static int32_t end_in(const nr_call *call, const nr_matmul_plan &p) {
    const int64_t size = nr_library->dtypes[call->dtype].size;
    nr_plan all = {};
    all.operands = 2;
    all.ndim = 1;
    all.numel = p.m * p.n;
    for (int32_t d = 0; d < p.batch_ndim; d++) all.numel *= p.batch[d];
    all.size[0] = all.numel;
    for (int o = 0; o < 2; o++) {
        all.data[o] = static_cast<char *>(p.c);
        all.stride[o][0] = size;
    }
    nr_call epilogue = *call;
    epilogue.family = NR_POINTWISE;
    epilogue.plan = &all;
    return nr_cuda_pointwise(&epilogue);
}

int32_t nr_cuda_matmul(const nr_call *call) {
    const nr_matmul_plan &p = *static_cast<const nr_matmul_plan *>(call->plan);
    if (call->dtype == NORCH_FLOAT16 || call->dtype == NORCH_BFLOAT16) return nr_cuda_matmul_16bit(call, p);
    const matmul_kernels *kernels = find(call->dtype);
    const char *name = nr_library->dtypes[call->dtype].name;
    if (!kernels) return nr_library->fail(NORCH_ERROR_DTYPE, "matmul: no cuda kernel for dtype %s", name);
    if (p.m > INT32_MAX - 1024 || p.n > INT32_MAX - 1024 || p.k > INT32_MAX - 1024)
        return nr_library->fail(NORCH_ERROR_SHAPE,
                                "matmul: a CUDA kernel takes sizes up to 2147483647, not (%lld, %lld, %lld)",
                                (long long)p.m, (long long)p.n, (long long)p.k);
    NR_TRY(run_some(call, p, kernels, nr_library->dtypes[call->dtype].size));
    return call->kernel ? end_in(call, p) : NORCH_OK;
}
