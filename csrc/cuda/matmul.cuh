/* matmul: what the algorithms for products share: their arguments, sums in parts, and the question whether one
 * takes a product. Each algorithm has a file, matmul_*.cu; matmul.cu has the table of them, and the tiles for products
 * that no other algorithm takes. */
#ifndef NR_CUDA_MATMUL_H
#define NR_CUDA_MATMUL_H

#include "../families/matmul.h"
#include "cuda.cuh"
#include "epilogue.cuh"

/* An algorithm for products. The plan's batches fit blockIdx.y, its sizes int32_t. */
struct matmul_way {
    bool (*takes)(const nr_call *, const nr_matmul_plan &);
    int32_t (*run)(const nr_call *, const nr_matmul_plan &);
};

/* The arguments of all kernels of products. */
struct matmul_operands {
    const void *a, *b, *bias, *residual; /* residual: in the layout of c, if not NULL */
    void *c;
    double alpha, beta;
    int32_t m, n, k;
    int32_t activation; /* the epilogue, if is_activation() */
    bool relu;          /* whether that is the epilogue */
    int64_t c_row;
    nest<3> batch; /* c, a, b, in elements */
};

/* Whether kernels apply the epilogue of a call. Other epilogues are a launch. */
static inline bool ends_in_kernel(const nr_call *call) {
    return nr_library->dtypes[call->dtype].kind == 'f' && (call->op == NR_OP_relu || is_activation(call->op));
}

static inline matmul_operands operands_of(const nr_call *call, const nr_matmul_plan &p) {
    const bool ends = ends_in_kernel(call), relu = ends && call->op == NR_OP_relu;
    return {p.a,
            p.b,
            p.bias,
            p.residual,
            p.c,
            p.alpha,
            p.beta,
            (int32_t)p.m,
            (int32_t)p.n,
            (int32_t)p.k,
            ends && !relu ? call->op : NR_NO_OP,
            relu,
            p.c_row,
            nest_of<3>(p.batch_ndim, p.batch, p.batch_stride)};
}

/* The row relu of ops.def, if it is the epilogue. */
template <class T> DEVICE T ended(T x, bool relu) {
    if constexpr (T(-1) < T(0)) return relu && x < 0 ? T(0) : x;
    return x;
}

/* Makes sums, n neighbours of C from `to` on, beta times the residual + alpha times them, in float for halves. */
template <class D, class T, int n>
DEVICE void add_residual(const matmul_operands &g, T (&sums)[n], const typename D::S *to, int left) {
    if (!g.residual) return;
    const auto *from = static_cast<const typename D::S *>(g.residual) + (to - static_cast<typename D::S *>(g.c));
#pragma unroll
    for (int q = 0; q < n; q++)
        if (q < left) sums[q] = (T)g.beta * widen<D>(from[q]) + (T)g.alpha * sums[q];
}

/* The dtype of float or double. */
template <class T> using dtype_of = typename choose<is_same<T, float>, dtype_float32, dtype_float64>::type;

struct matmul_args : matmul_operands {
    int64_t a_row, a_col, b_row, b_col;
    int64_t bias_row;      /* from one row to the next: 0, except if C is a column that was a row */
    int32_t k_part, parts; /* parts > 1: c holds sums of k_part terms, [part][batch][m][n]; blockIdx.z: the part */
    int64_t part_stride;
    int32_t lanes; /* that add the parts of an element: 1 or 32 */
    bool c_wide;   /* 16 bytes of a row of C may be written at once */
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

/* One element of C, at its epilogue's end. */
template <class T> DEVICE void put_one(const matmul_operands &g, T *to, T sum) {
    T one[1] = {sum};
    if constexpr (is_floating<T>) add_residual<dtype_of<T>>(g, one, to, 1);
    one[0] = ended(one[0], g.relu);
    activate(g.activation, one);
    *to = one[0];
}

/* The sum of the parts of each element, in order, by `lanes` threads of a warp in turns, and the bias. */
template <class T, class A>
__global__ void __launch_bounds__(NR_BLOCK) add_parts(const matmul_args g, const void *partials) {
    const int64_t thread = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x, area = (int64_t)g.m * g.n;
    const int64_t i = thread / g.lanes, lane = thread % g.lanes;
    if (i >= area) return;
    int64_t at[3], row = i / g.n, col = i % g.n;
    g.batch.find(blockIdx.y, at);
    const A *parts = static_cast<const A *>(partials) + (int64_t)blockIdx.y * area + i;
    A sum = 0;
#pragma unroll 8
    for (int64_t part = lane; part < g.parts; part += g.lanes) sum += parts[part * g.part_stride];
    if (g.lanes > 1)
        for (int bit = 16; bit > 0; bit /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, bit);
    if (lane > 0) return;
    if (g.bias) sum += (A) static_cast<const T *>(g.bias)[row * g.bias_row + col];
    put_one(g, static_cast<T *>(g.c) + at[0] + row * g.c_row + col, (T)sum);
}

/* The start of the tile of C that this block computes. Blocks that run together share TILE_GROUP rows of tiles, so that
 * they find B in the L2 cache. */
#define TILE_GROUP 8
struct tile_place {
    int row, column;
};
template <int BM, int BN> DEVICE tile_place tile_of(const matmul_args &g) {
    const int tiles_m = (g.m + BM - 1) / BM, tiles_n = (g.n + BN - 1) / BN;
    const int group = (int)blockIdx.x / (TILE_GROUP * tiles_n), in_group = (int)blockIdx.x % (TILE_GROUP * tiles_n);
    const int rest = tiles_m - group * TILE_GROUP, high = rest < TILE_GROUP ? rest : TILE_GROUP;
    return {(group * TILE_GROUP + in_group % high) * BM, in_group / high * BN};
}

/* Applies the activation to the tile of C that this block has stored. */
template <class T, int BM, int BN> DEVICE void finish_block(const matmul_args &g, T *c, int row, int column) {
    if constexpr (is_floating<T>) {
        if (g.activation < 0 || g.parts > 1) return;
        __syncthreads();
        finish_tile<dtype_of<T>, BN>(c + row * g.c_row + column, g.c_row, g.m - row < BM ? g.m - row : BM, g.n - column,
                                     g.c_wide, g.activation, (int)threadIdx.x, (int)blockDim.x);
    }
}

/* The output of this block: C, to which it adds the bias, or the sums of its part. */
template <class T> struct matmul_output {
    const matmul_args &g;
    T *c;
    const T *bias;
    int64_t c_row;
    int m, n;
    bool wide, whole;

    DEVICE matmul_output(const matmul_args &args, int64_t c_at)
        : g(args), c(static_cast<T *>(g.c)), m(g.m), n(g.n), whole(g.parts == 1) {
        c += whole ? c_at : blockIdx.z * g.part_stride + (int64_t)blockIdx.y * g.m * g.n;
        bias = whole ? static_cast<const T *>(g.bias) : nullptr;
        c_row = whole ? g.c_row : g.n;
        wide = whole ? g.c_wide : g.n % (16 / (int)sizeof(T)) == 0;
    }
    template <int count> DEVICE void load_bias(T (&to)[count], int column) const {
#pragma unroll
        for (int q = 0; q < count; q++) to[q] = bias && column + q < n ? bias[column + q] : T(0);
    }
    template <int count> DEVICE void put(int row, int column, const T (&run)[count]) const {
        if (row >= m) return;
        T values[count], *to = c + row * c_row + column;
#pragma unroll
        for (int q = 0; q < count; q++) values[q] = run[q];
        if (whole) add_residual<dtype_of<T>>(g, values, to, n - column);
#pragma unroll
        for (int q = 0; q < count; q++) values[q] = ended(values[q], g.relu && whole);
        put_run<count>(to, values, n - column, wide);
    }
};

typedef void (*matmul_kernel)(const matmul_args);
typedef void (*matmul_adder)(const matmul_args, const void *);

/* ---- on the host ------------------------------------------------------------------------------------------------- */

static inline int64_t batches_of(const nr_matmul_plan &p) {
    int64_t batches = 1;
    for (int32_t d = 0; d < p.batch_ndim; d++) batches *= p.batch[d];
    return batches;
}

/* Whether `elements` neighbours of a matrix, a power of two, may be moved at once: dense in one direction, of a size
 * that they divide, all rows and batches at multiples of them from an address at a multiple of their bytes. */
static inline bool is_wide(const void *x, int64_t dense_size, int64_t other_stride, const nr_matmul_plan &p,
                           int operand, int64_t elements, int64_t size) {
    int64_t all = dense_size | other_stride;
    for (int32_t d = 0; d < p.batch_ndim; d++) all |= p.batch_stride[operand][d];
    return all % elements == 0 && is_aligned(x, elements * size);
}

/* The arguments of the whole product, in one part. */
static inline matmul_args matmul_args_of(const nr_call *call, const nr_matmul_plan &p) {
    const int64_t size = nr_library->dtypes[call->dtype].size;
    matmul_args g = {};
    static_cast<matmul_operands &>(g) = operands_of(call, p);
    g.a_row = p.a_row;
    g.a_col = p.a_col;
    g.b_row = p.b_row;
    g.b_col = p.b_col;
    g.c_wide = is_wide(p.c, p.n, p.c_row, p, 0, 16 / size, size);
    g.parts = 1;
    g.k_part = g.k;
    return g;
}

/* Divides k into at most that many parts, all but the last a multiple of `step`. */
static inline void cut_k(matmul_args *g, int64_t parts, int64_t step) {
    g->k_part = (int32_t)((((g->k + parts - 1) / parts) + step - 1) / step * step);
    g->parts = (g->k + g->k_part - 1) / g->k_part;
}

/* Launches the kernel over (blocks, batches, parts), and adds the parts, whose sums are of sum_size bytes. */
int32_t nr_cuda_matmul_launch(const nr_call *call, matmul_args g, matmul_kernel kernel, int64_t blocks, int64_t batches,
                              unsigned threads, size_t shared, matmul_adder add_parts, size_t sum_size);

/* Tiles of one shape for tensor cores, of matrices that are dense in one direction. The nanoseconds that a
 * multiprocessor takes for a column of k of a single tile, and of `blocks`, the most that it holds. */
struct staged_kernel {
    matmul_kernel run;
    uint64_t allowed; /* a bit for each device that grants its shared memory */
};
struct staged_shape {
    int32_t bm, bn, blocks, shared, threads;
    double alone, full;
    staged_kernel kernel[2][2]; /* [A along k][B along k] */
};

/* S: the layout that takes the most shared memory; kernels: of B across k and along it,
 * for A across k, then A along it. */
template <class S, int BM, int BN, int blocks>
static constexpr staged_shape staged_shape_of(double alone, double full, const matmul_kernel (&kernels)[4]) {
    return {BM,         BN,    blocks, S::shared,
            S::threads, alone, full,   {{{kernels[0], 0}, {kernels[1], 0}}, {{kernels[2], 0}, {kernels[3], 0}}}};
}

/* The properties that tiles of a dtype share. */
struct staged_family {
    int32_t shortest_part, step; /* of k: at least, and a multiple of */
    matmul_adder add_parts;
    size_t sum_size;
};

/* Runs the shape and the number of parts that are estimated to end first. */
int32_t nr_cuda_matmul_staged(const nr_call *call, const nr_matmul_plan &p, staged_shape *shapes, int32_t count,
                              const staged_family &family);

/* Whether A and B are dense in one direction each, and their other strides fit an int. */
static inline bool is_dense(const nr_matmul_plan &p) {
    const int64_t a_stride = p.a_col == 1 ? p.a_row : p.a_col, b_stride = p.b_col == 1 ? p.b_row : p.b_col;
    return (p.a_col == 1 || p.a_row == 1) && (p.b_row == 1 || p.b_col == 1) && a_stride == (int32_t)a_stride &&
           b_stride == (int32_t)b_stride;
}
/* Whether W neighbours of both may be copied at once. */
static inline bool are_wide(const nr_matmul_plan &p, int64_t W, int64_t size) {
    return (p.a_col == 1 ? is_wide(p.a, p.k, p.a_row, p, 1, W, size) : is_wide(p.a, p.m, p.a_col, p, 1, W, size)) &&
           (p.b_col == 1 ? is_wide(p.b, p.n, p.b_row, p, 2, W, size) : is_wide(p.b, p.k, p.b_col, p, 2, W, size));
}

/* Allows a kernel so many bytes of dynamic shared memory on the device of the call; *allowed: a bit for each device
 * that does. */
int32_t nr_cuda_allow_shared(const nr_call *call, const void *kernel, int32_t bytes, uint64_t *allowed);

/* ---- the algorithms that have a file of their own ---------------------------------------------------------------- */

bool nr_cuda_matmul_vector_takes(const nr_call *call, const nr_matmul_plan &p);
int32_t nr_cuda_matmul_vector(const nr_call *call, const nr_matmul_plan &p);
bool nr_cuda_matmul_tf32_takes(const nr_call *call, const nr_matmul_plan &p);
int32_t nr_cuda_matmul_tf32(const nr_call *call, const nr_matmul_plan &p);
bool nr_cuda_matmul_float64_takes(const nr_call *call, const nr_matmul_plan &p);
int32_t nr_cuda_matmul_float64(const nr_call *call, const nr_matmul_plan &p);

#endif
