/* normalize: scales rows to mean 0 and variance 1, and computes the gradients; backward recomputes the statistics, as
 * on the CPU. Rows of E are computed in T, which is E or has wider elements (rows.cuh).
 *
 *   rows      a team of threads each, which hold it in registers (rows.cuh): mean, squares about it, out
 *   weight    x, g  [ part 0 of the samples ]  a block takes 32 packs of columns of a part: each lane one pack,
 *                   [ part 1                ]  each warp every NR_WARPS-th sample; warps combine in shared memory
 *             out   part 0 + part 1 + ...      in order, parts being cut by shape alone
 *   channels  row [ c0 c0 c0 | c1 c1 c1 | ... ]  a weight for several elements: the team that has the row in the caches
 *                   t0 .. t31  t32 .. t63        goes through it again, some threads a channel, for the sums of g h and
 *                                                g; a block adds up those of a channel over the samples
 *
 * Ba, Kiros and Hinton, "Layer Normalization" (2016); without the mean: Zhang and Sennrich (2019). Wu and He, "Group
 * Normalization" (2018). Two passes for a variance: Chan, Golub and LeVeque, "Algorithms for Computing the Sample
 * Variance" (1983). */
#include "../families/normalize.h"
#include "rows.cuh"

struct normalize_args {
    const void *x, *g, *weight, *bias;
    void *out;
    int64_t rows, n, weights, each; /* each: elements that share a weight */
    double eps;
    int32_t team;
    bool centered, wide;  /* wide: rows are read 16 bytes at a time */
    bool whole;           /* packs lie in one channel each */
    bool wide_affine;     /* weight and bias are float32 where x has 16 bits */
    divisor each_by;      /* of n < 2^31 */
    void *moments;        /* mean and scale of each row, or NULL */
    void *sums;           /* of g h and of g, for each channel of each row, or NULL */
    int32_t channel_team; /* threads for a channel of a row */
    int64_t samples, part_samples;
};

/* h = (x - mean) * scale + shift: shift is the rounding error of the mean, a part of the deviation far from 0. */
template <class T> struct alignas(4 * sizeof(T)) moments {
    T mean, scale, shift;

    DEVICE T h(T x) const { return (x - mean) * scale + shift; }
};

/* The statistics of rows whose squares T does not hold, or not to all its digits. */
template <class E, int packs, class T = computed<E>>
DEVICE moments<T> wide_moments(const normalize_args &a, const line &l, const share<E, packs> &x) {
    constexpr int W = line::W<E>;
    double sum = 0, squares = 0;
    const auto each = [&](const auto &visit) {
        each_pack<E, packs>(l, [&](int64_t p) {
            T v[W];
            x.get(l, p, v);
#pragma unroll
            for (int k = 0; k < W; k++)
                if (l.at<E>(p, k) < l.n) visit((double)v[k]);
        });
    };
    each([&](double v) { sum += v; });
    const double mean = a.centered ? add_up(l, sum) / (double)l.n : 0;
    each([&](double v) { squares += (v - mean) * (v - mean); });
    const double scale = 1 / sqrt(add_up(l, squares) / (double)l.n + a.eps);
    const T rounded = (T)mean;
    return {rounded, (T)scale, (T)(((double)rounded - mean) * scale)};
}

template <class E, int packs, class T = computed<E>>
DEVICE moments<T> moments_of(const normalize_args &a, const line &l, const share<E, packs> &x) {
    using A = share_sum<T, packs>;
    constexpr int W = line::W<E>;
    moments<T> m = {};
    if (a.centered) {
        A sum = 0;
        each_pack<E, packs>(l, [&](int64_t p) {
            T v[W];
            x.get(l, p, v);
#pragma unroll
            for (int k = 0; k < W; k++) sum += (A)v[k]; /* zeros behind the last */
        });
        m.mean = (T)(add_up(l, sum) / (A)l.n);
    }
    A squares = 0, apart = 0;
    each_pack<E, packs>(l, [&](int64_t p) {
        T v[W];
        x.get(l, p, v);
#pragma unroll
        for (int k = 0; k < W; k++) {
            const T d = v[k] - m.mean;
            squares += l.at<E>(p, k) < l.n ? (A)(d * d) : A(0);
            apart += l.at<E>(p, k) < l.n ? (A)d : A(0);
        }
    });
    const A away = a.centered ? add_up(l, apart) / (A)l.n : A(0);
    const A variance = add_up(l, squares) / (A)l.n - away * away;
    m.scale = T(1) / sqrt((T)(variance < 0 ? A(0) : variance) + (T)a.eps);
    m.shift = -(T)away * m.scale;
    if constexpr (sizeof(T) == sizeof(float)) {
        const bool lost = l.n > 0 && NR_IS_OUT_OF_RANGE(T, variance, a.eps);
        if (__syncthreads_or(lost)) { /* seldom; all threads take part in sums */
            const moments<T> wide = wide_moments<E, packs>(a, l, x);
            if (lost) m = wide;
        }
    }
    return m;
}

/* The row of this thread's team. A team behind the last row takes part in barriers and shuffles only, with a row of no
 * elements. */
DEVICE int64_t row_of(const normalize_args &a, line *l) {
    const int64_t row = (int64_t)blockIdx.x * (NR_BLOCK / a.team) + threadIdx.x / a.team;
    *l = {row < a.rows ? a.n : 0, (int)threadIdx.x % a.team, a.team, a.wide};
    return row < a.rows ? row : 0;
}

/* The start of the weights of a row, the index of the weight of element i, and the weights of pack p. */
DEVICE int64_t first_weight(const normalize_args &a, int64_t row) { return row * (a.n / a.each) % a.weights; }
DEVICE int64_t channel_of(const normalize_args &a, int64_t i) {
    return a.n <= INT32_MAX ? quotient((uint32_t)i, a.each_by) : i / a.each;
}
template <class E, class X>
DEVICE void load_weights(computed<E> (&to)[line::W<E>], const normalize_args &a, const line &l, const X *x, int64_t p) {
    if (a.each == 1) return l.load_as<E>(to, x, p);
    computed<E> one = 0;
    if (a.whole && l.at<E>(p, 0) < l.n) one = x[channel_of(a, l.at<E>(p, 0))];
#pragma unroll
    for (int k = 0; k < line::W<E>; k++) {
        if (!a.whole && l.at<E>(p, k) < l.n) one = x[channel_of(a, l.at<E>(p, k))];
        to[k] = one;
    }
}
template <class E>
DEVICE void load_affine(computed<E> (&to)[line::W<E>], const normalize_args &a, const line &l, const void *x,
                        int64_t from, int64_t p) {
    if (!is_same<E, computed<E>> && a.wide_affine)
        load_weights<E>(to, a, l, static_cast<const computed<E> *>(x) + from, p);
    else
        load_weights<E>(to, a, l, static_cast<const E *>(x) + from, p);
}

template <class E, int packs> __global__ void NR_ROW_BOUNDS(E) normalize_rows(const normalize_args a) {
    using T = computed<E>;
    constexpr int W = line::W<E>;
    line l;
    const int64_t row = row_of(a, &l), first = row * a.n, from = first_weight(a, row);
    const share<E, packs> x(l, static_cast<const E *>(a.x) + first);
    const moments<T> m = moments_of(a, l, x);
    l.find_again();
    each_pack<E, packs>(l, [&](int64_t p) {
        T v[W], w[W], b[W];
        x.get(l, p, v);
        if (a.weight) load_affine<E>(w, a, l, a.weight, from, p);
        if (a.bias) load_affine<E>(b, a, l, a.bias, from, p);
#pragma unroll
        for (int k = 0; k < W; k++) {
            v[k] = m.h(v[k]);
            if (a.weight) v[k] *= w[k];
            if (a.bias) v[k] += b[k];
        }
        l.store(static_cast<E *>(a.out) + first, v, p);
    });
}

template <class T> struct two_sums {
    T product, sum;
};

/* For each channel of a row the sums of g h and of g. Rows without elements take part in the barriers and shuffles. */
template <class E, int packs, class T>
DEVICE void sum_channels(const normalize_args &a, const line &l, int64_t row, const moments<T> &m) {
    using A = share_sum<T, packs>;
    constexpr int W = line::W<E>;
    const int64_t in_row = a.n / a.each;
    const int channel_slot = l.member / a.channel_team, at_once = l.team / a.channel_team;
    for (int64_t first = 0; first < in_row; first += at_once) {
        const int64_t channel = first + channel_slot, from = row * a.n + channel * a.each;
        const line c = {l.n > 0 && channel < in_row ? a.each : 0, l.member % a.channel_team, a.channel_team, a.whole};
        A product = 0, sum = 0;
        each_pack<E, 0>(c, [&](int64_t p) {
            T x[W], g[W];
            c.load(x, static_cast<const E *>(a.x) + from, p);
            c.load(g, static_cast<const E *>(a.g) + from, p);
#pragma unroll
            for (int k = 0; k < W; k++) { /* g is 0 behind the last */
                product += (A)(g[k] * m.h(x[k]));
                sum += (A)g[k];
            }
        });
        product = add_up(c, product);
        sum = add_up(c, sum);
        if (c.n > 0 && c.member == 0) static_cast<two_sums<T> *>(a.sums)[row * in_row + channel] = {(T)product, (T)sum};
    }
}

/* With f = g weight: out = scale (f - mean(f) - h mean(f h)), without the first mean if x has no mean. */
template <class E, int packs> __global__ void NR_ROW_BOUNDS(E) normalize_input(const normalize_args a) {
    using T = computed<E>;
    using A = share_sum<T, packs>;
    constexpr int W = line::W<E>;
    line l;
    const int64_t row = row_of(a, &l), first = row * a.n, from = first_weight(a, row);
    const share<E, packs> x(l, static_cast<const E *>(a.x) + first);
    share<E, packs> g(l, static_cast<const E *>(a.g) + first);
    const auto weighted = [&](int64_t p, T(&f)[W]) {
        g.get(l, p, f);
        if (!a.weight) return;
        T w[W];
        load_affine<E>(w, a, l, a.weight, from, p);
#pragma unroll
        for (int k = 0; k < W; k++) f[k] *= w[k];
    };
    const moments<T> m = moments_of(a, l, x);
    if (a.moments && l.n > 0 && l.member == 0) static_cast<moments<T> *>(a.moments)[row] = m;
    A sum = 0, product = 0;
    l.find_again();
    each_pack<E, packs>(l, [&](int64_t p) {
        T f[W], v[W];
        weighted(p, f);
        x.get(l, p, v);
#pragma unroll
        for (int k = 0; k < W; k++) { /* f is 0 behind the last */
            sum += (A)f[k];
            product += (A)(f[k] * m.h(v[k]));
        }
        if constexpr (packs > 0)
#pragma unroll
            for (int k = 0; k < W; k++) g.held[p][k] = f[k];
    });
    const T mean = a.centered ? (T)(add_up(l, sum) / (A)l.n) : T(0), slope = (T)(add_up(l, product) / (A)l.n);
    l.find_again();
    each_pack<E, packs>(l, [&](int64_t p) {
        T f[W], v[W];
        if constexpr (packs > 0)
            g.get(l, p, f);
        else
            weighted(p, f);
        x.get(l, p, v);
#pragma unroll
        for (int k = 0; k < W; k++) f[k] = m.scale * (f[k] - mean - m.h(v[k]) * slope);
        l.store(static_cast<E *>(a.out) + first, f, p);
    });
    if (a.sums) sum_channels<E, packs>(a, l, row, m);
}

/* ---- the weight -------------------------------------------------------------------------------------------------- */

/* For a weight of one element: a warp processes W columns a lane, each warp of a block its share of the part's samples;
 * out[part][2][weights]. */
template <class E, int W, class To> __global__ void __launch_bounds__(NR_BLOCK) sum_columns(const normalize_args a) {
    using T = computed<E>;
    __shared__ T memory[NR_WARPS][2][32 * W];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int64_t column = ((int64_t)blockIdx.x * 32 + lane) * W, first = (int64_t)blockIdx.y * a.part_samples;
    const int64_t last = first + a.part_samples < a.samples ? first + a.part_samples : a.samples;
    const int64_t groups = a.weights / a.n;
    const moments<T> *of = static_cast<const moments<T> *>(a.moments) + column / a.n;
    T product[W] = {}, sum[W] = {};
    if (column < a.weights)
#pragma unroll 4
        for (int64_t sample = first + warp; sample < last; sample += NR_WARPS) {
            const moments<T> m = of[sample * groups];
            const int64_t at = sample * a.weights + column;
            const auto x = *reinterpret_cast<const pack<E, W> *>(static_cast<const E *>(a.x) + at);
            const auto g = *reinterpret_cast<const pack<E, W> *>(static_cast<const E *>(a.g) + at);
#pragma unroll
            for (int k = 0; k < W; k++) {
                const T slope = g.v[k];
                product[k] += slope * m.h(x.v[k]);
                sum[k] += slope;
            }
        }
#pragma unroll
    for (int k = 0; k < W; k++) {
        memory[warp][0][lane * W + k] = product[k];
        memory[warp][1][lane * W + k] = sum[k];
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < 2 * 32 * W; i += NR_BLOCK) {
        const int which = i / (32 * W), column = i % (32 * W);
        const int64_t to = (int64_t)blockIdx.x * 32 * W + column;
        if (to >= a.weights) continue;
        T all = memory[0][which][column];
        for (int w = 1; w < NR_WARPS; w++) all += memory[w][which][column];
        static_cast<To *>(a.out)[((int64_t)blockIdx.y * 2 + which) * a.weights + to] = all;
    }
}

/* For a weight of several elements: the sums of sum_channels() over the samples; out[2][weights]. */
template <class T, class To> __global__ void __launch_bounds__(NR_BLOCK) add_samples(const normalize_args a) {
    const line all = {a.samples, (int)threadIdx.x, NR_BLOCK, false};
    double product = 0, sum = 0;
    for (int64_t sample = threadIdx.x; sample < a.samples; sample += NR_BLOCK) {
        const two_sums<T> one = static_cast<const two_sums<T> *>(a.sums)[sample * a.weights + blockIdx.x];
        product += (double)one.product;
        sum += (double)one.sum;
    }
    product = add_up(all, product);
    sum = add_up(all, sum);
    if (threadIdx.x > 0) return;
    static_cast<To *>(a.out)[blockIdx.x] = (T)product;
    static_cast<To *>(a.out)[a.weights + blockIdx.x] = (T)sum;
}

template <class T, class To>
__global__ void __launch_bounds__(NR_BLOCK) add_parts(To *out, const T *parts, int64_t n, int count) {
    const int64_t i = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= n) return;
    T sum = parts[i];
#pragma unroll 8
    for (int part = 1; part < count; part++) sum += parts[part * n + i];
    out[i] = sum;
}

#define MOST_PARTS 128
#define PART_LEAST 64 /* samples */

template <class E> static int32_t launch_input(const nr_call *call, const normalize_args &a, const row_shape &shape) {
    if (a.rows == 0) return NORCH_OK;
    LAUNCH(with_packs<most_packs<E>>(shape.packs, [](auto n) { return normalize_input<E, decltype(n)::packs>; }),
           shape.blocks, NR_BLOCK, 0, gpu_of(call)->stream, a);
    return launched(call);
}

/* The gradients of input, weight and bias, the latter two of To. */
template <class E, class To>
static int32_t run_affine(const nr_call *call, normalize_args a, const row_shape &shape, To *grad_affine) {
    using T = computed<E>;
    const nr_gpu *gpu = gpu_of(call);
    a.samples = a.rows / (a.weights / (a.n / a.each));
    if (a.each > 1) {
        const scratch memory(gpu, (size_t)(a.samples * a.weights + 1) * sizeof(two_sums<T>));
        if (memory.failed()) return NORCH_ERROR_MEMORY;
        a.sums = memory.memory;
        for (a.channel_team = a.team; a.channel_team > 32 && a.team / a.channel_team < a.n / a.each;)
            a.channel_team /= 2;
        NR_TRY(launch_input<E>(call, a, shape));
        a.out = grad_affine;
        LAUNCH((add_samples<T, To>), (unsigned)a.weights, NR_BLOCK, 0, gpu->stream, a);
        return launched(call);
    }
    int64_t parts = (a.samples + PART_LEAST - 1) / PART_LEAST;
    if (parts > MOST_PARTS) parts = MOST_PARTS;
    if (parts < 1) parts = 1;
    a.part_samples = (a.samples + parts - 1) / parts;
    const size_t moments_bytes = (size_t)(a.rows + 1) * sizeof(moments<T>);
    const scratch memory(gpu, moments_bytes + (size_t)(parts * 2 * a.weights) * sizeof(T));
    if (memory.failed()) return NORCH_ERROR_MEMORY;
    a.moments = memory.memory;
    NR_TRY(launch_input<E>(call, a, shape));
    constexpr int W = line::W<E>;
    const dim3 grid(blocks_for(a.weights, 32 * (a.wide ? W : 1)), (unsigned)parts);
    if (parts == 1) {
        a.out = grad_affine;
        LAUNCH((a.wide ? sum_columns<E, W, To> : sum_columns<E, 1, To>), grid, NR_BLOCK, 0, gpu->stream, a);
        return launched(call);
    }
    a.out = memory.memory + moments_bytes;
    LAUNCH((a.wide ? sum_columns<E, W, T> : sum_columns<E, 1, T>), grid, NR_BLOCK, 0, gpu->stream, a);
    NR_TRY(launched(call));
    LAUNCH((add_parts<T, To>), blocks_for(2 * a.weights, NR_BLOCK), NR_BLOCK, 0, gpu->stream, grad_affine,
           static_cast<const T *>(a.out), 2 * a.weights, (int)parts);
    return launched(call);
}

template <class E> static int32_t run(const nr_call *call, const nr_normalize_plan &p) {
    const void *all[] = {p.x, p.g, p.weight, p.bias, p.out, p.grad_x};
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
    if (p.n <= INT32_MAX) a.each_by = divisor_of(p.inner);
    a.eps = p.eps;
    a.centered = p.centered;
    a.wide = p.n % line::W<E> == 0;
    for (const void *one : all) a.wide = a.wide && is_aligned(one, 16);
    a.whole = a.wide && p.inner % line::W<E> == 0;
    a.wide_affine = p.affine_dtype != call->dtype;
    const row_shape shape = row_shape_of<E>(p.rows, p.n);
    a.team = shape.team;
    if (call->op == NR_NORMALIZE_BACKWARD && p.grad_affine)
        return a.wide_affine ? run_affine<E>(call, a, shape, static_cast<computed<E> *>(p.grad_affine))
                             : run_affine<E>(call, a, shape, static_cast<E *>(p.grad_affine));
    if (call->op == NR_NORMALIZE_BACKWARD) return launch_input<E>(call, a, shape);
    LAUNCH(with_packs<most_packs<E>>(shape.packs, [](auto n) { return normalize_rows<E, decltype(n)::packs>; }),
           shape.blocks, NR_BLOCK, 0, gpu_of(call)->stream, a);
    return launched(call);
}

int32_t nr_cuda_normalize(const nr_call *call) {
    const nr_normalize_plan &p = *static_cast<const nr_normalize_plan *>(call->plan);
    if (p.n == 0 || (p.rows == 0 && !p.grad_affine)) return NORCH_OK;
    switch (call->dtype) {
    case NORCH_FLOAT16: return run<stored<dtype_float16>>(call, p);
    case NORCH_BFLOAT16: return run<stored<dtype_bfloat16>>(call, p);
    case NORCH_FLOAT32: return run<float>(call, p);
    }
    return run<double>(call, p);
}
