/* matmul: products of strided, batched matrices in full precision, tile by tile (tile.cuh, which names the method).
 *
 *             N by BN                 a block computes a tile of C; blockIdx.x: which; y: of which item of the batch
 *           +----+----+----+
 *   M by BM | 0  | 1  | 2  |          Where C has few tiles and K is long, K is cut by shape alone, blockIdx.z:
 *           +----+----+----+            K  [ part 0    | part 1    | part 2 ]    sums [part][item][m][n] in scratch,
 *           | 3  | 4  | 5  |                                                     added in order by add_parts
 *           +----+----+----+
 *
 * BM and BN, from 128 down to 32, are as large as possible without an idle multiprocessor. This computes the products
 * that no other method of the table at the end takes. */
#include "matmul.cuh"
#include "matmul_16bit.cuh"
#include "tile.cuh"

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
            T *to = c + (int64_t)row * g.c_row + col;
#pragma unroll
            for (int q = 0; q < S::RUN_N; q++) run[q] = sum[i][j + q] + start[q];
            if constexpr (is_floating<T>)
                if (whole) add_residual<dtype_of<T>>(g, run, to, left);
#pragma unroll
            for (int q = 0; q < S::RUN_N; q++) run[q] = ended(run[q], g.relu && whole);
            if (whole)
                put_run<S::RUN_N>(to, run, left, g.c_wide);
            else
                put_run<S::RUN_N>(partial + (int64_t)row * g.n + col, run, left, g.n % 4 == 0);
        }
    }
    finish_block<T, S::BM, S::BN>(g, c, row0, col0);
}

/* ---- which tiles, and how they are read -------------------------------------------------------------------------- */

struct matmul_shape {
    int32_t bm, bn;
    matmul_kernel each, wide[2][2]; /* [A along k][B along k]; NULL: there are none */
};

/* Kernels of one dtype, from large tiles to small tiles, for products with few rows, columns or tiles. */
struct matmul_kernels {
    matmul_shape shape[3];
    int32_t shapes;
    matmul_adder add_parts;
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

/* The kernel of a shape that reads these matrices fastest. */
static matmul_kernel way_for(const matmul_shape &shape, const nr_matmul_plan &p) {
    if (!shape.wide[0][0] || !is_dense(p) || !are_wide(p, 4, 4)) return shape.each;
    return shape.wide[p.a_col == 1][p.b_col != 1];
}

static int64_t tiles_of(const matmul_shape &shape, const nr_matmul_plan &p) {
    return ((p.m + shape.bm - 1) / shape.bm) * ((p.n + shape.bn - 1) / shape.bn);
}

static int32_t run_tiles(const nr_call *call, const nr_matmul_plan &p) {
    const matmul_kernels *kernels = find(call->dtype);
    matmul_args g = matmul_args_of(call, p);
    const int64_t batches = batches_of(p);
    int which = 0; /* the largest tiles that fill the device and that the matrix half fills */
    for (; which < kernels->shapes - 1; which++) {
        const matmul_shape &shape = kernels->shape[which];
        const int64_t enough = shape.bm >= 128 ? 2 * BUSY : BUSY; /* with few large ones some wait for one more */
        if (p.m * 2 > shape.bm && p.n * 2 > shape.bn && tiles_of(shape, p) * batches >= enough) break;
    }
    const matmul_shape &shape = kernels->shape[which];
    const int64_t tiles = tiles_of(shape, p);
    if (tiles * batches < BUSY && g.k >= 512) {
        const int64_t parts = 2 * BUSY / (tiles * batches);
        cut_k(&g, parts < g.k / 256 ? parts : g.k / 256, 32);
    }
    return nr_cuda_matmul_launch(call, g, way_for(shape, p), tiles, batches, NR_BLOCK, 0, kernels->add_parts,
                                 (size_t)kernels->sum_size);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

int32_t nr_cuda_matmul_launch(const nr_call *call, matmul_args g, matmul_kernel kernel, int64_t blocks, int64_t batches,
                              unsigned threads, size_t shared, matmul_adder add_parts, size_t sum_size) {
    const nr_gpu *gpu = gpu_of(call);
    const dim3 grid((unsigned)blocks, (unsigned)batches, (unsigned)g.parts);
    if (g.parts == 1) {
        LAUNCH(kernel, grid, threads, shared, gpu->stream, g);
        return launched(call);
    }
    const int64_t area = (int64_t)g.m * g.n;
    g.part_stride = batches * area;
    g.lanes = g.parts >= 32 && g.part_stride < 8192 ? 32 : 1;
    const size_t bytes = (size_t)(g.part_stride * g.parts) * sum_size;
    void *partials = nr_cuda_scratch(gpu, bytes), *c = g.c;
    if (!partials) return NORCH_ERROR_MEMORY;
    g.c = partials;
    LAUNCH(kernel, grid, threads, shared, gpu->stream, g);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) {
        g.c = c;
        LAUNCH(add_parts, dim3(blocks_for(area * g.lanes, NR_BLOCK), (unsigned)batches), NR_BLOCK, 0, gpu->stream, g,
               (const void *)partials);
        error = cudaGetLastError();
    }
    nr_cuda_scratch_free(gpu, partials, bytes);
    TRY(nr_call_name(call), error);
    return NORCH_OK;
}

int32_t nr_cuda_allow_shared(const nr_call *call, const void *kernel, int32_t bytes, uint64_t *allowed) {
    const uint64_t bit = (uint64_t)1 << gpu_of(call)->index;
    if (*allowed & bit) return NORCH_OK;
    TRY(nr_call_name(call), cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    *allowed |= bit; /* an entry that two threads may lose is computed again */
    return NORCH_OK;
}

/* ---- tiles of tensor cores --------------------------------------------------------------------------------------- */

#define BLOCK_COLUMNS 64 /* the time of the beginning and end of a block, in columns of k */
#define ADD_NS 5e-3      /* the time of writing and adding an element of a part */
#define PARTS_NS 4000    /* the fixed cost of parts: their memory, and a launch */
#define MOST_WAVES 4

struct staged_cut {
    staged_shape *shape;
    int64_t tiles, parts;
    double time;
};

/* Nanoseconds for a column of k of all blocks: whole waves, and a rest of which each multiprocessor has less. */
static double time_of(const staged_shape *shape, int64_t blocks, int64_t multiprocessors) {
    const int64_t slots = multiprocessors * shape->blocks;
    const double rest = (double)((blocks % slots + multiprocessors - 1) / multiprocessors);
    const double more = shape->blocks > 1 ? (shape->full - shape->alone) / (shape->blocks - 1) : 0.0;
    return (double)(blocks / slots) * shape->full + (rest > 0 ? shape->alone + (rest - 1) * more : 0.0);
}

/* If C has few tiles, k is divided so that tiles x parts fill whole waves from below:
 *
 *   parts = waves * slots / tiles        of 1, 2, 3 ... waves those that are estimated to end first
 *
 * So the device determines the parts of sums: one device gives the same bits each time, another may give other bits. */
static staged_cut cut_for(staged_shape *shape, const nr_gpu *gpu, const nr_matmul_plan &p, int64_t batches,
                          int32_t shortest_part) {
    const int64_t tiles = ((p.m + shape->bm - 1) / shape->bm) * ((p.n + shape->bn - 1) / shape->bn);
    const int64_t slots = (int64_t)gpu->multiprocessors * shape->blocks;
    const int64_t most = p.k < shortest_part ? 1 : p.k / shortest_part;
    staged_cut best = {shape, tiles, 1, 0};
    for (int64_t waves = 0; waves <= MOST_WAVES; waves++) {
        int64_t parts = waves * slots / (tiles * batches);
        if (waves > 0 && parts <= 1) continue;
        parts = parts < 1 ? 1 : parts < most ? parts : most;
        double time = time_of(shape, tiles * batches * parts, gpu->multiprocessors) *
                      ((double)p.k / (double)parts + BLOCK_COLUMNS);
        if (parts > 1) time += PARTS_NS + ADD_NS * (double)(parts * batches * p.m * p.n);
        if (waves == 0 || time < best.time) best.parts = parts, best.time = time;
        if (parts == most) break;
    }
    return best;
}

int32_t nr_cuda_matmul_staged(const nr_call *call, const nr_matmul_plan &p, staged_shape *shapes, int32_t count,
                              const staged_family &family) {
    const int64_t batches = batches_of(p);
    staged_cut best = cut_for(&shapes[0], gpu_of(call), p, batches, family.shortest_part);
    for (int32_t i = 1; i < count; i++) {
        const staged_cut other = cut_for(&shapes[i], gpu_of(call), p, batches, family.shortest_part);
        if (other.time < best.time) best = other;
    }
    staged_kernel *kernel = &best.shape->kernel[p.a_col == 1][p.b_col != 1];
    NR_TRY(nr_cuda_allow_shared(call, (const void *)kernel->run, best.shape->shared, &kernel->allowed));
    matmul_args g = matmul_args_of(call, p);
    if (best.parts > 1) cut_k(&g, best.parts, family.step);
    return nr_cuda_matmul_launch(call, g, kernel->run, best.tiles, batches, (unsigned)best.shape->threads,
                                 (size_t)best.shape->shared, family.add_parts, family.sum_size);
}

/* ---- which way --------------------------------------------------------------------------------------------------- */

static bool takes_all(const nr_call *, const nr_matmul_plan &) { return true; }

/* The first method that takes a product computes it. */
static const matmul_way ways[] = {
    {nr_cuda_matmul_vector_takes, nr_cuda_matmul_vector},
    {nr_cuda_matmul_tf32_takes, nr_cuda_matmul_tf32},
    {nr_cuda_matmul_float64_takes, nr_cuda_matmul_float64},
    {takes_all, run_tiles},
};

static int32_t run_batches(const nr_call *call, const nr_matmul_plan &p) {
    const matmul_way *way = ways;
    while (!way->takes(call, p)) way++;
    return way->run(call, p);
}

/* The outermost batch loop in parts, if there are more batches than a grid has rows. */
static int32_t run_split(const nr_call *call, nr_matmul_plan p, int64_t size) {
    if (batches_of(p) <= MOST_BATCHES) return run_batches(call, p);
    int32_t last = p.batch_ndim - 1;
    int64_t whole = p.batch[last], step = whole > 1 ? (whole + 1) / 2 : 1;
    if (whole == 1) {
        p.batch_ndim--;
        return run_split(call, p, size);
    }
    for (int64_t from = 0; from < whole; from += step) {
        nr_matmul_plan part = p;
        part.batch[last] = whole - from < step ? whole - from : step;
        part.c = static_cast<char *>(p.c) + from * p.batch_stride[0][last] * size;
        if (p.residual) part.residual = static_cast<const char *>(p.residual) + from * p.batch_stride[0][last] * size;
        part.a = static_cast<const char *>(p.a) + from * p.batch_stride[1][last] * size;
        part.b = static_cast<const char *>(p.b) + from * p.batch_stride[2][last] * size;
        NR_TRY(run_split(call, part, size));
    }
    return NORCH_OK;
}

/* The epilogue of a product, as a separate launch. */
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
    const bool is_16bit = call->dtype == NORCH_FLOAT16 || call->dtype == NORCH_BFLOAT16;
    if (!is_16bit && !find(call->dtype))
        return nr_library->fail(NORCH_ERROR_DTYPE, "matmul: no cuda kernel for dtype %s",
                                nr_library->dtypes[call->dtype].name);
    if (!is_16bit && (p.m > INT32_MAX - 1024 || p.n > INT32_MAX - 1024 || p.k > INT32_MAX - 1024))
        return nr_library->fail(NORCH_ERROR_SHAPE,
                                "matmul: a CUDA kernel takes sizes up to 2147483647, not (%lld, %lld, %lld)",
                                (long long)p.m, (long long)p.n, (long long)p.k);
    NR_TRY(is_16bit ? nr_cuda_matmul_16bit(call, p) : run_split(call, p, nr_library->dtypes[call->dtype].size));
    return call->kernel && !ends_in_kernel(call) ? end_in(call, p) : NORCH_OK;
}
