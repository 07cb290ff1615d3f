/* matmul: what the ways of computing products share: their arguments, sums in parts, and the question whether a way takes
 * a product. Each way is a page of its own, matmul_*.cu; matmul.cu has the table of them, and the tiles that take what no
 * other does. */
#ifndef NR_CUDA_MATMUL_H
#define NR_CUDA_MATMUL_H

#include "../families/matmul.h"
#include "cuda.cuh"

/* A way of computing products. The plan's batches fit blockIdx.y, its sizes int32_t. */
struct matmul_way {
    bool (*takes)(const nr_call *, const nr_matmul_plan &);
    int32_t (*run)(const nr_call *, const nr_matmul_plan &);
};

struct matmul_args {
    const void *a, *b, *bias;
    void *c;
    int32_t m, n, k;
    int64_t a_row, a_col, b_row, b_col, c_row;
    int64_t bias_row;      /* from one row to the next: 0, but where C is a column that was a row */
    int32_t k_part, parts; /* parts > 1: c holds sums of k_part terms, [part][batch][m][n]; blockIdx.z: the part */
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

/* The parts of each element, in order, and the bias. */
template <class T, class A>
__global__ void __launch_bounds__(NR_BLOCK) add_parts(const matmul_args g, const void *partials) {
    int64_t i = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x, area = (int64_t)g.m * g.n;
    if (i >= area) return;
    int64_t at[3], row = i / g.n, col = i % g.n;
    g.batch.find(blockIdx.y, at);
    const A *parts = static_cast<const A *>(partials) + (int64_t)blockIdx.y * area + i;
    A sum = g.bias ? (A) static_cast<const T *>(g.bias)[row * g.bias_row + col] : A(0);
#pragma unroll 8
    for (int part = 0; part < g.parts; part++) sum += parts[part * g.part_stride];
    (static_cast<T *>(g.c) + at[0])[row * g.c_row + col] = (T)sum;
}

typedef void (*matmul_kernel)(const matmul_args);
typedef void (*matmul_adder)(const matmul_args, const void *);

/* ---- on the host ------------------------------------------------------------------------------------------------- */

static inline int64_t batches_of(const nr_matmul_plan &p) {
    int64_t batches = 1;
    for (int32_t d = 0; d < p.batch_ndim; d++) batches *= p.batch[d];
    return batches;
}

/* Whether `elements` neighbours of a matrix, a power of two, may be moved at once: dense in one direction, of a size that
 * they divide, all rows and batches at multiples of them from an address at a multiple of their bytes. */
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
    g.c_wide = is_wide(p.c, p.n, p.c_row, p, 0, 16 / size, size);
    g.batch = nest_of<3>(p.batch_ndim, p.batch, p.batch_stride);
    g.parts = 1;
    g.k_part = g.k;
    return g;
}

/* Cuts k into at most so many parts, all of a multiple of `step` but the last. */
static inline void cut_k(matmul_args *g, int64_t parts, int64_t step) {
    g->k_part = (int32_t)((((g->k + parts - 1) / parts) + step - 1) / step * step);
    g->parts = (g->k + g->k_part - 1) / g->k_part;
}

/* Launches the kernel over (blocks, batches, parts), and adds the parts, whose sums are of sum_size bytes. */
int32_t nr_cuda_matmul_launch(const nr_call *call, matmul_args g, matmul_kernel kernel, int64_t blocks, int64_t batches,
                              unsigned threads, size_t shared, matmul_adder add_parts, size_t sum_size);

/* Lets a kernel have so many bytes of dynamic shared memory on the device of the call; *allowed: a bit for each device
 * that does. */
int32_t nr_cuda_allow_shared(const nr_call *call, const void *kernel, int32_t bytes, uint64_t *allowed);

/* ---- the ways that have a page of their own ----------------------------------------------------------------------- */

bool nr_cuda_matmul_vector_takes(const nr_call *call, const nr_matmul_plan &p);
int32_t nr_cuda_matmul_vector(const nr_call *call, const nr_matmul_plan &p);
bool nr_cuda_matmul_tf32_takes(const nr_call *call, const nr_matmul_plan &p);
int32_t nr_cuda_matmul_tf32(const nr_call *call, const nr_matmul_plan &p);

#endif
