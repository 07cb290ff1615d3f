/* matmul_vector: products of a matrix and a vector, from either side. They take the time of reading the matrix once, by
 * 16 bytes if its layout allows that, with many reads in flight.
 *
 *   rows dense       a warp reads two rows of the matrix: k ------->       its lanes' sums are added by shuffles;
 *                    of few long rows, a block each                        and then its warps', in order
 *   columns dense    a warp reads a row of 32 W columns at a time, a block's warps in turns:
 *                        | | | |  k                                        a lane has W sums; warps' are added in order
 *                        v v v v
 *
 * x B is B transposed times x. If this gives too few blocks, k is divided into parts. */
#include "matmul.cuh"

#define WARPS (NR_BLOCK / 32)

/* A number that is read once need not stay in a cache. */
template <class T, int n> DEVICE pack<T, n> read_once(const T *from) {
    pack<T, n> all;
#ifdef CUDASIM
    all = *reinterpret_cast<const pack<T, n> *>(from);
#else
    if constexpr (sizeof(pack<T, n>) == 16) {
        const float4 bytes = __ldcs(reinterpret_cast<const float4 *>(from));
        memcpy(&all, &bytes, 16);
    } else {
        all.v[0] = __ldcs(from);
    }
#endif
    return all;
}

/* The place of this part's sums, [part][batch][row], or the result itself. */
template <class T> DEVICE void put_sum(const matmul_args &g, int64_t c_at, int row, T sum) {
    if (g.parts > 1) {
        static_cast<T *>(g.c)[blockIdx.z * g.part_stride + (int64_t)blockIdx.y * g.m + row] = sum;
        return;
    }
    if (g.bias) sum += static_cast<const T *>(g.bias)[row * g.bias_row];
    put_one(g, static_cast<T *>(g.c) + c_at + row * g.c_row, sum);
}

/* A, (m, k), dense along k, times B, (k, 1): `warps` of them share `rows` rows. W > 1: B is dense too, and is_wide()
 * holds for both. */
template <class T, int W, int warps, int rows>
__global__ void __launch_bounds__(NR_BLOCK) multiply_rows(const matmul_args g) {
    int64_t at[3];
    g.batch.find(blockIdx.y, at);
    const int t = (int)threadIdx.x, warp = t / 32, lane = t % 32;
    const int row = ((int)blockIdx.x * WARPS + warp) / warps * rows;
    if (row >= g.m) return; /* all of a block, if its warps share rows */
    const int k_begin = (int)blockIdx.z * g.k_part;
    const int k_end = g.k - k_begin < g.k_part ? g.k : k_begin + g.k_part;
    const T *x = static_cast<const T *>(g.b) + at[2], *a[rows];
    T sum[rows] = {};
#pragma unroll
    for (int r = 0; r < rows; r++)
        a[r] = static_cast<const T *>(g.a) + at[1] + (row + r < g.m ? row + r : row) * g.a_row;
#pragma unroll 4
    for (int k = k_begin + t % (32 * warps) * W; k < k_end; k += 32 * warps * W) {
        pack<T, W> v;
        if constexpr (W > 1)
            v = *reinterpret_cast<const pack<T, W> *>(x + k);
        else
            v.v[0] = x[k * g.b_row];
#pragma unroll
        for (int r = 0; r < rows; r++) {
            const pack<T, W> w = read_once<T, W>(a[r] + k);
#pragma unroll
            for (int q = 0; q < W; q++) sum[r] = multiply_add(w.v[q], v.v[q], sum[r]);
        }
    }
#pragma unroll
    for (int r = 0; r < rows; r++)
        for (int bit = 16; bit > 0; bit /= 2) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], bit);
    if constexpr (warps > 1) {
        DYNAMIC_SHARED(T, shared); /* [warp] */
        if (lane == 0) shared[warp] = sum[0];
        __syncthreads();
        if (t > 0) return;
        for (int w = 1; w < warps; w++) sum[0] += shared[w];
    }
#pragma unroll
    for (int r = 0; r < rows; r++)
        if (lane == 0 && row + r < g.m) put_sum(g, at[0], row + r, sum[r]);
}

/* The same for an A that is dense along m. */
template <class T, int W> __global__ void __launch_bounds__(NR_BLOCK) multiply_columns(const matmul_args g) {
    DYNAMIC_SHARED(T, shared); /* [warp][row] */
    int64_t at[3];
    g.batch.find(blockIdx.y, at);
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, row0 = (int)blockIdx.x * 32 * W;
    const int row = row0 + lane * W, k_begin = (int)blockIdx.z * g.k_part;
    const int k_end = g.k - k_begin < g.k_part ? g.k : k_begin + g.k_part;
    const T *a = static_cast<const T *>(g.a) + at[1] + row, *x = static_cast<const T *>(g.b) + at[2];
    T sum[W] = {};
    if (row < g.m) {
#pragma unroll 8
        for (int k = k_begin + warp; k < k_end; k += WARPS) {
            const pack<T, W> w = read_once<T, W>(a + k * g.a_col);
            const T v = x[k * g.b_row];
#pragma unroll
            for (int q = 0; q < W; q++) sum[q] = multiply_add(w.v[q], v, sum[q]);
        }
    }
#pragma unroll
    for (int q = 0; q < W; q++) shared[(warp * W + q) * 32 + lane] = sum[q];
    __syncthreads();
    const int t = (int)threadIdx.x;
    if (t >= 32 * W || row0 + t >= g.m) return;
    T all = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) all += shared[(w * W + t % W) * 32 + t / W];
    put_sum(g, at[0], row0 + t, all);
}

bool nr_cuda_matmul_vector_takes(const nr_call *call, const nr_matmul_plan &p) {
    if (call->dtype != NORCH_FLOAT32 && call->dtype != NORCH_FLOAT64) return false;
    return (p.n == 1 && (p.a_col == 1 || p.a_row == 1)) || (p.m == 1 && (p.b_row == 1 || p.b_col == 1));
}

/* The same product with the operands exchanged and transposed. */
static nr_matmul_plan transposed(const nr_matmul_plan &p) {
    nr_matmul_plan t = p;
    t.a = p.b, t.b = p.a;
    t.m = p.n, t.n = p.m;
    t.a_row = p.b_col, t.a_col = p.b_row;
    t.b_row = p.a_col, t.b_col = p.a_row;
    t.c_row = 1; /* of a c of one row */
    memcpy(t.batch_stride[1], p.batch_stride[2], sizeof t.batch_stride[1]);
    memcpy(t.batch_stride[2], p.batch_stride[1], sizeof t.batch_stride[2]);
    return t;
}

template <class T> static int32_t multiply(const nr_call *call, const nr_matmul_plan &plan) {
    constexpr int W = 16 / (int)sizeof(T);
    const bool exchanged = plan.n != 1 || (plan.a_col != 1 && plan.a_row != 1);
    const nr_matmul_plan p = exchanged ? transposed(plan) : plan;
    const bool rows = p.a_col == 1;
    const bool wide = rows ? p.b_row == 1 && is_wide(p.a, p.k, p.a_row, p, 1, W, sizeof(T)) &&
                                 is_wide(p.b, p.k, 0, p, 2, W, sizeof(T))
                           : is_wide(p.a, p.m, p.a_col, p, 1, W, sizeof(T));
    const bool alone = p.m < 128 && p.k >= NR_BLOCK * W; /* a block for each row */
    const int64_t a_block = !rows   ? wide ? 32 * W : 32
                            : alone ? 1
                                    : 2 * WARPS,
                  shortest = !rows ? 128 : 1024; /* of k */
    const int64_t batches = batches_of(p), blocks = (p.m + a_block - 1) / a_block;
    const int64_t wanted = (int64_t)gpu_of(call)->multiprocessors * (rows ? 8 : 4) / (blocks * batches);
    const int64_t most = p.k / shortest;
    matmul_args g = matmul_args_of(call, p);
    g.bias_row = exchanged;
    if (wanted > 1 && most > 1) cut_k(&g, wanted < most ? wanted : most, 64);
    matmul_kernel kernel;
    if (!rows)
        kernel = wide ? multiply_columns<T, W> : multiply_columns<T, 1>;
    else if (alone)
        kernel = wide ? multiply_rows<T, W, WARPS, 1> : multiply_rows<T, 1, WARPS, 1>;
    else
        kernel = wide ? multiply_rows<T, W, 1, 2> : multiply_rows<T, 1, 1, 2>;
    const size_t shared = (size_t)(rows ? WARPS : NR_BLOCK * (wide ? W : 1)) * sizeof(T);
    return nr_cuda_matmul_launch(call, g, kernel, blocks, batches, NR_BLOCK, shared, add_parts<T, T>, sizeof(T));
}

int32_t nr_cuda_matmul_vector(const nr_call *call, const nr_matmul_plan &p) {
    return call->dtype == NORCH_FLOAT32 ? multiply<float>(call, p) : multiply<double>(call, p);
}
