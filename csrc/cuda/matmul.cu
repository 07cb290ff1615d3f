/* matmul: products of strided, batched matrices in full precision, tile by tile through shared memory.
 *
 * A block computes a BM x BN tile of C. Its threads read the next BK columns of A and rows of B into registers while
 * they multiply the present ones out of shared memory, where two of each lie in turn; a thread keeps TM x TN elements
 * in registers. Where C has few tiles and K is long, K is cut by shape alone and the parts are added in order.
 * Method: Volkov, Demmel, "Benchmarking GPUs to tune dense linear algebra" (SC 2008), and what grew from it. */
#include "cuda.cuh"

struct matmul_args {
    const void *a, *b, *bias;
    void *c;
    int32_t m, n, k;
    int64_t a_row, a_col, b_row, b_col, c_row;
    int32_t k_part, parts; /* parts > 1: c holds sums of k_part terms, [part][batch][m][n] */
    int64_t part_stride;
    bool a_wide, b_wide; /* 4 elements of the dense direction may be read at once */
    nest<3> batch;       /* c, a, b, in elements */
};

/* Where thread t reads element e of a tile of `outer` x BK (outer: M or N): `along` says which direction is dense. */
template <int outer, int BK> struct spot {
    int o, k;
    DEVICE spot(int t, int e, bool along_k) {
        int at = t + e * NR_BLOCK;
        o = along_k ? at / BK : at % outer;
        k = along_k ? at % BK : at / outer;
    }
};

/* Elements of a tile into registers; outside of the matrix there are zeros. Four dense neighbours at a time if wide. */
template <class T, int outer, int BK, int count>
DEVICE void fetch(T (&to)[count], const T *x, int64_t stride_o, int64_t stride_k, int o0, int k0, int o_end, int k_end,
                  bool along_k, bool wide) {
    if constexpr (sizeof(T) == 4 && count % 4 == 0) {
        if (wide) {
#pragma unroll
            for (int e = 0; e < count; e += 4) {
                int at = (int)threadIdx.x + e / 4 * NR_BLOCK;
                int o = along_k ? at / (BK / 4) : at % (outer / 4) * 4;
                int k = along_k ? at % (BK / 4) * 4 : at / (outer / 4);
                bool in = o0 + o < o_end && k0 + k < k_end; /* wide only if 4 divides the dense size */
                pack<T, 4> all = {};
                if (in)
                    all = *reinterpret_cast<const pack<T, 4> *>(x + (int64_t)(o0 + o) * stride_o +
                                                                (int64_t)(k0 + k) * stride_k);
                for (int q = 0; q < 4; q++) to[e + q] = all.v[q];
            }
            return;
        }
    }
#pragma unroll
    for (int e = 0; e < count; e++) {
        spot<outer, BK> s((int)threadIdx.x, e, along_k);
        bool in = o0 + s.o < o_end && k0 + s.k < k_end;
        to[e] = in ? x[(int64_t)(o0 + s.o) * stride_o + (int64_t)(k0 + s.k) * stride_k] : T(0);
    }
}

template <class T, int outer, int BK, int count, int pitch>
DEVICE void put(T (&tile)[BK][pitch], const T (&from)[count], bool along_k, bool wide) {
    if constexpr (sizeof(T) == 4 && count % 4 == 0) {
        if (wide) {
#pragma unroll
            for (int e = 0; e < count; e += 4) {
                int at = (int)threadIdx.x + e / 4 * NR_BLOCK;
                int o = along_k ? at / (BK / 4) : at % (outer / 4) * 4;
                int k = along_k ? at % (BK / 4) * 4 : at / (outer / 4);
                if (along_k) {
                    for (int q = 0; q < 4; q++) tile[k + q][o] = from[e + q];
                } else {
                    pack<T, 4> all = {{from[e], from[e + 1], from[e + 2], from[e + 3]}};
                    *reinterpret_cast<pack<T, 4> *>(&tile[k][o]) = all;
                }
            }
            return;
        }
    }
#pragma unroll
    for (int e = 0; e < count; e++) {
        spot<outer, BK> s((int)threadIdx.x, e, along_k);
        tile[s.k][s.o] = from[e];
    }
}

/* T the elements, A the sums. A thread's rows are RUN neighbours in each of TM / RUN places, and so its columns, so
 * that neighbouring threads read neighbouring words of shared memory. */
template <class T, class A, int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__(NR_BLOCK) multiply(const matmul_args g) {
    constexpr int RUN_M = TM < 4 ? TM : 4, RUN_N = TN < 4 ? TN : 4;
    constexpr int across = BN / TN, a_count = BM * BK / NR_BLOCK, b_count = BN * BK / NR_BLOCK;
    static_assert(BM / TM * across == NR_BLOCK && a_count > 0 && b_count > 0, "the tiles do not fit the threads");
    __shared__ __align__(32) T a_tile[2][BK][BM + 4];
    __shared__ __align__(32) T b_tile[2][BK][BN + 4];
    const int tx = (int)threadIdx.x % across, ty = (int)threadIdx.x / across;
    const int tiles_n = (g.n + BN - 1) / BN;
    const int row0 = (int)blockIdx.x / tiles_n * BM, col0 = (int)blockIdx.x % tiles_n * BN;
    const int part = (int)blockIdx.z;
    int64_t at[3];
    g.batch.find(blockIdx.y, at);
    const T *a = static_cast<const T *>(g.a) + at[1], *b = static_cast<const T *>(g.b) + at[2];
    const int k_begin = part * g.k_part, k_end = k_begin + g.k_part < g.k ? k_begin + g.k_part : g.k;
    const bool a_along = g.a_col == 1 || g.a_row != 1, b_along = g.b_row == 1 && g.b_col != 1;

    A sum[TM][TN] = {};
    T a_next[a_count], b_next[b_count];
    fetch<T, BM, BK>(a_next, a, g.a_row, g.a_col, row0, k_begin, g.m, k_end, a_along, g.a_wide);
    fetch<T, BN, BK>(b_next, b, g.b_col, g.b_row, col0, k_begin, g.n, k_end, b_along, g.b_wide);
    int now = 0;
    put<T, BM, BK>(a_tile[0], a_next, a_along, g.a_wide);
    put<T, BN, BK>(b_tile[0], b_next, b_along, g.b_wide);
    __syncthreads();
    for (int k0 = k_begin; k0 < k_end; k0 += BK) {
        const bool more = k0 + BK < k_end;
        if (more) {
            fetch<T, BM, BK>(a_next, a, g.a_row, g.a_col, row0, k0 + BK, g.m, k_end, a_along, g.a_wide);
            fetch<T, BN, BK>(b_next, b, g.b_col, g.b_row, col0, k0 + BK, g.n, k_end, b_along, g.b_wide);
        }
#pragma unroll
        for (int k = 0; k < BK; k++) {
            T x[TM], y[TN];
#pragma unroll
            for (int i = 0; i < TM; i += RUN_M) {
                pack<T, RUN_M> run = *reinterpret_cast<const pack<T, RUN_M> *>(
                    &a_tile[now][k][ty * RUN_M + i / RUN_M * (BM / TM * RUN_M)]);
                for (int q = 0; q < RUN_M; q++) x[i + q] = run.v[q];
            }
#pragma unroll
            for (int j = 0; j < TN; j += RUN_N) {
                pack<T, RUN_N> run = *reinterpret_cast<const pack<T, RUN_N> *>(
                    &b_tile[now][k][tx * RUN_N + j / RUN_N * (across * RUN_N)]);
                for (int q = 0; q < RUN_N; q++) y[j + q] = run.v[q];
            }
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++) sum[i][j] += (A)x[i] * (A)y[j];
        }
        if (more) { /* the other pair of tiles is free: all threads have passed the last barrier */
            put<T, BM, BK>(a_tile[now ^ 1], a_next, a_along, g.a_wide);
            put<T, BN, BK>(b_tile[now ^ 1], b_next, b_along, g.b_wide);
        }
        __syncthreads();
        now ^= 1;
    }

    const bool whole = g.parts == 1;
    T *c = static_cast<T *>(g.c) + at[0];
    A *partial = static_cast<A *>(g.c) + part * g.part_stride + (int64_t)blockIdx.y * g.m * g.n;
    const T *bias = static_cast<const T *>(g.bias);
#pragma unroll
    for (int i = 0; i < TM; i++) {
        int row = row0 + ty * RUN_M + i / RUN_M * (BM / TM * RUN_M) + i % RUN_M;
        if (row >= g.m) continue;
#pragma unroll
        for (int j = 0; j < TN; j++) {
            int col = col0 + tx * RUN_N + j / RUN_N * (across * RUN_N) + j % RUN_N;
            if (col >= g.n) continue;
            if (whole)
                c[(int64_t)row * g.c_row + col] = (T)(sum[i][j] + (bias ? (A)bias[col] : A(0)));
            else
                partial[(int64_t)row * g.n + col] = sum[i][j];
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
    for (int part = 0; part < g.parts; part++) sum += parts[part * g.part_stride];
    (static_cast<T *>(g.c) + at[0])[row * g.c_row + col] = (T)sum;
}

/* Kernels of one dtype: a large tile, and a small one for what has few rows or columns. */
struct matmul_kernels {
    void (*kernel[2])(matmul_args);
    int32_t bm[2], bn[2];
    void (*add_parts)(matmul_args, const void *);
    int32_t sum_size;
};

template <class T, class A, int BM, int BN, int BK, int TM, int TN> static const matmul_kernels *kernels_of() {
    static const matmul_kernels all = {{multiply<T, A, BM, BN, BK, TM, TN>, multiply<T, A, 32, 32, 16, 2, 2>},
                                       {BM, 32},
                                       {BN, 32},
                                       add_parts<T, A>,
                                       (int)sizeof(A)};
    return &all;
}

static const matmul_kernels *find(int32_t dtype) {
    switch (dtype) {
    case NORCH_FLOAT32: return kernels_of<float, float, 128, 128, 16, 8, 8>();
    case NORCH_FLOAT64: return kernels_of<double, double, 64, 64, 8, 4, 4>();
    case NORCH_UINT8: return kernels_of<uint8_t, uint32_t, 64, 64, 16, 4, 4>();
    case NORCH_INT32: return kernels_of<int32_t, uint32_t, 64, 64, 16, 4, 4>();
    case NORCH_INT64: return kernels_of<int64_t, uint64_t, 32, 32, 16, 2, 2>();
    }
    return nullptr;
}

#define MOST_BATCHES 65535 /* blockIdx.y */

/* Whether four neighbours of a matrix may be read at once: dense in one direction, of a size that 4 divides, all rows
 * and batches at multiples of 4 from an address at a multiple of 16 bytes. */
static bool is_wide(const void *x, int64_t dense_size, int64_t other_stride, const nr_matmul_plan &p, int operand) {
    bool wide = dense_size % 4 == 0 && other_stride % 4 == 0 && is_aligned(x, 16);
    for (int32_t d = 0; d < p.batch_ndim; d++) wide = wide && p.batch_stride[operand][d] % 4 == 0;
    return wide;
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
    g.batch = nest_of<3>(p.batch_ndim, p.batch, p.batch_stride);
    int64_t batches = 1;
    for (int32_t d = 0; d < p.batch_ndim; d++) batches *= p.batch[d];
    if (call->dtype == NORCH_FLOAT32) {
        g.a_wide = p.a_col == 1   ? is_wide(p.a, p.k, p.a_row, p, 1)
                   : p.a_row == 1 ? is_wide(p.a, p.m, p.a_col, p, 1)
                                  : false;
        g.b_wide = p.b_col == 1   ? is_wide(p.b, p.n, p.b_row, p, 2)
                   : p.b_row == 1 ? is_wide(p.b, p.k, p.b_col, p, 2)
                                  : false;
    }
    /* Large tiles where they leave no multiprocessor of a middling device idle; by shape, not by device. */
    int64_t large = ((p.m + kernels->bm[0] - 1) / kernels->bm[0]) * ((p.n + kernels->bn[0] - 1) / kernels->bn[0]);
    int which = p.m > 48 && p.n > 48 && large * batches >= 64 ? 0 : 1;
    int64_t tiles =
        ((p.m + kernels->bm[which] - 1) / kernels->bm[which]) * ((p.n + kernels->bn[which] - 1) / kernels->bn[which]);
    g.parts = 1;
    g.k_part = g.k;
    if (tiles * batches < 128 && g.k >= 512) {
        int64_t parts = 256 / (tiles * batches);
        if (parts > g.k / 256) parts = g.k / 256;
        g.k_part = (int32_t)(((g.k + parts - 1) / parts + 15) / 16 * 16);
        g.parts = (g.k + g.k_part - 1) / g.k_part;
    }
    dim3 grid((unsigned)tiles, (unsigned)batches, (unsigned)g.parts);
    if (g.parts == 1) {
        LAUNCH(kernels->kernel[which], grid, NR_BLOCK, 0, gpu->stream, g);
        LAUNCHED(call);
        return NORCH_OK;
    }
    g.part_stride = batches * p.m * p.n;
    size_t bytes = (size_t)(g.part_stride * g.parts * kernels->sum_size);
    void *partials = nr_cuda_scratch(gpu, bytes);
    if (!partials) return NORCH_ERROR_MEMORY;
    g.c = partials;
    LAUNCH(kernels->kernel[which], grid, NR_BLOCK, 0, gpu->stream, g);
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

int32_t nr_cuda_matmul(const nr_call *call) {
    const nr_matmul_plan &p = *static_cast<const nr_matmul_plan *>(call->plan);
    const matmul_kernels *kernels = find(call->dtype);
    const char *name = nr_library->dtypes[call->dtype].name;
    if (!kernels) return nr_library->fail(NORCH_ERROR_DTYPE, "matmul: no cuda kernel for dtype %s", name);
    if (p.m > INT32_MAX - 1024 || p.n > INT32_MAX - 1024 || p.k > INT32_MAX - 1024)
        return nr_library->fail(NORCH_ERROR_SHAPE,
                                "matmul: a CUDA kernel takes sizes up to 2147483647, not (%lld, %lld, %lld)",
                                (long long)p.m, (long long)p.n, (long long)p.k);
    return run_some(call, p, kernels, nr_library->dtypes[call->dtype].size);
}
