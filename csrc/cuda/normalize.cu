/* normalize: rows made to have mean 0 and variance 1, and the gradients of that; the statistics are recomputed going
 * backward, as on the CPU.
 *
 *   rows      a team of threads each, which hold it in registers (rows.cuh): mean, squares about it, out
 *   weight    x, g  [ part 0 of the rows ]  a block takes 32 packs of columns of a part: each lane a pack of columns,
 *                   [ part 1             ]  each warp every NR_WARPS-th row; warps combine in shared memory
 *             out   part 0 + part 1 + ...   in order, parts being cut by shape alone
 *   channel   a block takes all elements of one, each warp every NR_WARPS-th sample, each lane every 32nd element
 *
 * Ba, Kiros and Hinton, "Layer Normalization" (2016); without the mean: Zhang and Sennrich (2019). Wu and He, "Group
 * Normalization" (2018). Two passes for a variance: Chan, Golub and LeVeque, "Algorithms for Computing the Sample
 * Variance" (1983). */
#include "../families/normalize.h"
#include "rows.cuh"

struct normalize_args {
    const void *x, *g, *weight, *bias;
    void *out;
    int64_t rows, n, weights, each;
    double eps;
    int32_t team;
    bool centered, wide;
    void *moments; /* sums: mean and scale of each row */
    int64_t part_rows;
};

/* h = (x - mean) * scale */
template <class T> struct alignas(2 * sizeof(T)) moments {
    T mean, scale;
};

template <class T, int packs>
DEVICE moments<T> moments_of(const normalize_args &a, const line &l, const share<T, packs> &x) {
    using A = share_sum<T, packs>;
    constexpr int W = line::W<T>;
    moments<T> m = {};
    if (a.centered) {
        A sum = 0;
        each_pack<T, packs>(l, [&](int64_t p) {
            T v[W];
            x.get(l, p, v);
#pragma unroll
            for (int k = 0; k < W; k++) sum += (A)v[k]; /* zeros behind the last */
        });
        m.mean = (T)(add_up(l, sum) / (A)l.n);
    }
    A squares = 0;
    each_pack<T, packs>(l, [&](int64_t p) {
        T v[W];
        x.get(l, p, v);
#pragma unroll
        for (int k = 0; k < W; k++) {
            const T d = v[k] - m.mean;
            squares += l.at<T>(p, k) < l.n ? (A)(d * d) : A(0);
        }
    });
    m.scale = T(1) / sqrt((T)(add_up(l, squares) / (A)l.n) + (T)a.eps);
    return m;
}

/* The row of this thread's team; one behind the last is gone through for the meetings only, as one of no elements. */
template <class T> DEVICE int64_t row_of(const normalize_args &a, line *l) {
    const int64_t row = (int64_t)blockIdx.x * (NR_BLOCK / a.team) + threadIdx.x / a.team;
    *l = {row < a.rows ? a.n : 0, (int)threadIdx.x % a.team, a.team, a.wide};
    return row < a.rows ? row : 0;
}

/* Where the weights of a row begin, and pack p of them, in the order of its elements. */
DEVICE int64_t first_weight(const normalize_args &a, int64_t row) { return row * (a.n / a.each) % a.weights; }
template <class T>
DEVICE void load_weights(T (&to)[line::W<T>], const normalize_args &a, const line &l, const T *x, int64_t p) {
    if (a.each == 1) return l.load(to, x, p);
#pragma unroll
    for (int k = 0; k < line::W<T>; k++) to[k] = l.at<T>(p, k) < l.n ? x[l.at<T>(p, k) / a.each] : T(0);
}

template <class T, int packs> __global__ void __launch_bounds__(NR_BLOCK) normalize_rows(const normalize_args a) {
    constexpr int W = line::W<T>;
    line l;
    const int64_t row = row_of<T>(a, &l), first = row * a.n, from = first_weight(a, row);
    const share<T, packs> x(l, static_cast<const T *>(a.x) + first);
    const moments<T> m = moments_of(a, l, x);
    const T *weight = static_cast<const T *>(a.weight), *bias = static_cast<const T *>(a.bias);
    each_pack<T, packs>(l, [&](int64_t p) {
        T v[W], w[W], b[W];
        x.get(l, p, v);
        if (weight) load_weights(w, a, l, weight + from, p);
        if (bias) load_weights(b, a, l, bias + from, p);
#pragma unroll
        for (int k = 0; k < W; k++) {
            v[k] = (v[k] - m.mean) * m.scale;
            if (weight) v[k] *= w[k];
            if (bias) v[k] += b[k];
        }
        l.store(static_cast<T *>(a.out) + first, v, p);
    });
}

/* With f = g weight: out = scale (f - mean(f) - h mean(f h)), the first mean being left out where that of x was. */
template <class T, int packs> __global__ void __launch_bounds__(NR_BLOCK) normalize_input(const normalize_args a) {
    using A = share_sum<T, packs>;
    constexpr int W = line::W<T>;
    line l;
    const int64_t row = row_of<T>(a, &l), first = row * a.n, from = first_weight(a, row);
    const share<T, packs> x(l, static_cast<const T *>(a.x) + first);
    share<T, packs> g(l, static_cast<const T *>(a.g) + first);
    const T *weight = static_cast<const T *>(a.weight);
    const auto weighted = [&](int64_t p, T(&f)[W]) {
        g.get(l, p, f);
        if (!weight) return;
        T w[W];
        load_weights(w, a, l, weight + from, p);
#pragma unroll
        for (int k = 0; k < W; k++) f[k] *= w[k];
    };
    const moments<T> m = moments_of(a, l, x);
    A sum = 0, product = 0;
    each_pack<T, packs>(l, [&](int64_t p) {
        T f[W], v[W];
        weighted(p, f);
        x.get(l, p, v);
#pragma unroll
        for (int k = 0; k < W; k++) { /* f is 0 behind the last */
            sum += (A)f[k];
            product += (A)(f[k] * ((v[k] - m.mean) * m.scale));
        }
        if constexpr (packs > 0)
#pragma unroll
            for (int k = 0; k < W; k++) g.held[p][k] = f[k];
    });
    const T mean = a.centered ? (T)(add_up(l, sum) / (A)l.n) : T(0), slope = (T)(add_up(l, product) / (A)l.n);
    each_pack<T, packs>(l, [&](int64_t p) {
        T f[W], v[W];
        if constexpr (packs > 0)
            g.get(l, p, f);
        else
            weighted(p, f);
        x.get(l, p, v);
#pragma unroll
        for (int k = 0; k < W; k++) f[k] = m.scale * (f[k] - mean - (v[k] - m.mean) * m.scale * slope);
        l.store(static_cast<T *>(a.out) + first, f, p);
    });
}

/* ---- the weight ---------------------------------------------------------------------------------------------------- */

template <class T, int packs> __global__ void NR_ROW_BOUNDS find_moments(const normalize_args a) {
    line l;
    const int64_t row = row_of<T>(a, &l);
    const share<T, packs> x(l, static_cast<const T *>(a.x) + row * a.n);
    const moments<T> m = moments_of(a, l, x);
    if (l.n > 0 && l.member == 0) static_cast<moments<T> *>(a.moments)[row] = m;
}

/* A warp goes down W columns a lane, each warp of a block its share of the part's rows; out[part][2][n]. */
template <class T, int W> __global__ void __launch_bounds__(NR_BLOCK) sum_columns(const normalize_args a) {
    __shared__ T memory[NR_WARPS][2][32 * W];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int64_t column = ((int64_t)blockIdx.x * 32 + lane) * W, first = (int64_t)blockIdx.y * a.part_rows;
    const int64_t last = first + a.part_rows < a.rows ? first + a.part_rows : a.rows;
    const moments<T> *of = static_cast<const moments<T> *>(a.moments);
    T product[W] = {}, sum[W] = {};
    if (column < a.n)
#pragma unroll 4
        for (int64_t row = first + warp; row < last; row += NR_WARPS) {
            const moments<T> m = of[row];
            const auto x = *reinterpret_cast<const pack<T, W> *>(static_cast<const T *>(a.x) + row * a.n + column);
            const auto g = *reinterpret_cast<const pack<T, W> *>(static_cast<const T *>(a.g) + row * a.n + column);
#pragma unroll
            for (int k = 0; k < W; k++) {
                product[k] += g.v[k] * ((x.v[k] - m.mean) * m.scale);
                sum[k] += g.v[k];
            }
        }
#pragma unroll
    for (int k = 0; k < W; k++) {
        memory[warp][0][lane * W + k] = product[k];
        memory[warp][1][lane * W + k] = sum[k];
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < 2 * 32 * W; i += NR_BLOCK) {
        const int which = i / (32 * W), own = i % (32 * W);
        const int64_t to = (int64_t)blockIdx.x * 32 * W + own;
        if (to >= a.n) continue;
        T all = memory[0][which][own];
        for (int w = 1; w < NR_WARPS; w++) all += memory[w][which][own];
        static_cast<T *>(a.out)[((int64_t)blockIdx.y * 2 + which) * a.n + to] = all;
    }
}

/* For a weight that stands for more than one element, or not for each row: out[2][weights]. */
template <class T> __global__ void __launch_bounds__(NR_BLOCK) sum_channel(const normalize_args a) {
    const line l = {0, (int)threadIdx.x, NR_BLOCK, false};
    const int64_t channel = blockIdx.x, in_row = a.n / a.each, groups = a.weights / in_row;
    double product = 0, sum = 0;
    for (int64_t row = channel / in_row + threadIdx.x / 32 * groups; row < a.rows; row += NR_WARPS * groups) {
        const moments<T> m = static_cast<const moments<T> *>(a.moments)[row];
        const int64_t first = row * a.n + channel % in_row * a.each;
        const T *x = static_cast<const T *>(a.x) + first, *g = static_cast<const T *>(a.g) + first;
        for (int64_t i = threadIdx.x % 32; i < a.each; i += 32) {
            product += (double)(g[i] * ((x[i] - m.mean) * m.scale));
            sum += (double)g[i];
        }
    }
    product = add_up(l, product);
    sum = add_up(l, sum);
    if (threadIdx.x > 0) return;
    static_cast<T *>(a.out)[channel] = (T)product;
    static_cast<T *>(a.out)[a.weights + channel] = (T)sum;
}

template <class T> __global__ void __launch_bounds__(NR_BLOCK) add_parts(T *out, const T *parts, int64_t n, int count) {
    const int64_t i = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= n) return;
    T sum = parts[i];
#pragma unroll 8
    for (int part = 1; part < count; part++) sum += parts[part * n + i];
    out[i] = sum;
}

#define MOST_PARTS 128
#define PART_LEAST 64 /* rows */

template <class T> static int32_t run_sums(const nr_call *call, normalize_args a, const row_shape &shape) {
    const nr_gpu *gpu = gpu_of(call);
    constexpr int W = line::W<T>;
    void *out = a.out;
    const bool columns = a.weights == a.n && a.each == 1;
    int64_t parts = columns ? (a.rows + PART_LEAST - 1) / PART_LEAST : 1;
    if (parts > MOST_PARTS) parts = MOST_PARTS;
    if (parts < 1) parts = 1;
    a.part_rows = (a.rows + parts - 1) / parts;
    const size_t moments_bytes = (size_t)(a.rows > 0 ? a.rows : 1) * sizeof(moments<T>);
    const size_t parts_bytes = (size_t)(parts * 2 * a.n) * sizeof(T), bytes = moments_bytes + parts_bytes;
    char *scratch = static_cast<char *>(nr_cuda_scratch(gpu, bytes));
    if (!scratch) return NORCH_ERROR_MEMORY;
    a.moments = scratch;
    if (parts > 1) a.out = scratch + moments_bytes;
    if (a.rows > 0)
        LAUNCH(with_packs(shape.packs, [](auto n) { return find_moments<T, decltype(n)::packs>; }), shape.blocks,
               NR_BLOCK, 0, gpu->stream, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess && !columns) {
        LAUNCH(sum_channel<T>, (unsigned)a.weights, NR_BLOCK, 0, gpu->stream, a);
        error = cudaGetLastError();
    } else if (error == cudaSuccess) {
        const dim3 grid(blocks_for(a.n, 32 * (a.wide ? W : 1)), (unsigned)parts);
        LAUNCH((a.wide ? sum_columns<T, W> : sum_columns<T, 1>), grid, NR_BLOCK, 0, gpu->stream, a);
        error = cudaGetLastError();
    }
    if (parts > 1 && error == cudaSuccess) {
        LAUNCH(add_parts<T>, blocks_for(2 * a.n, NR_BLOCK), NR_BLOCK, 0, gpu->stream, static_cast<T *>(out),
               static_cast<const T *>(a.out), 2 * a.n, (int)parts);
        error = cudaGetLastError();
    }
    nr_cuda_scratch_free(gpu, scratch, bytes);
    TRY(nr_call_name(call), error);
    return NORCH_OK;
}

template <class T> static int32_t run(const nr_call *call, const nr_normalize_plan &p) {
    const void *all[] = {p.x, p.g, p.weight, p.bias, p.out, p.grad_x, p.grad_affine};
    normalize_args a = {};
    a.x = p.x;
    a.g = p.g;
    a.weight = p.weight;
    a.bias = p.bias;
    a.out = call->op == NR_NORMALIZE_FORWARD ? p.out : p.grad_x;
    a.rows = p.rows;
    a.n = p.n;
    a.weights = p.weights;
    a.each = p.inner;
    a.eps = p.eps;
    a.centered = p.centered;
    a.wide = p.n % line::W<T> == 0;
    for (const void *one : all) a.wide = a.wide && is_aligned(one, 16);
    const row_shape shape = row_shape_of<T>(p.rows, p.n);
    a.team = shape.team;
    auto kernel = with_packs(shape.packs, [&](auto n) {
        constexpr int packs = decltype(n)::packs;
        return call->op == NR_NORMALIZE_FORWARD ? normalize_rows<T, packs> : normalize_input<T, packs>;
    });
    if (p.rows > 0) {
        LAUNCH(kernel, shape.blocks, NR_BLOCK, 0, gpu_of(call)->stream, a);
        if (int32_t failed = launched(call)) return failed;
    }
    if (!p.grad_affine) return NORCH_OK;
    a.out = p.grad_affine;
    return run_sums<T>(call, a, shape);
}

int32_t nr_cuda_normalize(const nr_call *call) {
    const nr_normalize_plan &p = *static_cast<const nr_normalize_plan *>(call->plan);
    if (p.n == 0 || (p.rows == 0 && !p.grad_affine)) return NORCH_OK;
    return call->dtype == NORCH_FLOAT32 ? run<float>(call, p) : run<double>(call, p);
}
