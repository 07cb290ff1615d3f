/* softmax: softmax and its logarithm along an axis, forward and backward.
 *
 *   rows      block: [ team | team | .. ]    a team of threads a row (rows.cuh), in registers where it fits:
 *                                            its largest element, the sum of e^(x - top), out
 *   columns   block: c0 c1 .. c15 thread 0   inner > 1: 16 neighbouring columns and up to 16 threads down each, which
 *                    c0 c1 .. c15 thread 1   combine what they found in shared memory in a fixed order; many or short
 *                    ...                     columns: a thread each
 *
 * The largest element is subtracted first, so that nothing overflows (Blanchard, Higham and
 * Higham, IMA J. Numer. Anal. 41, 2021). */
#include "../families/softmax.h"
#include "rows.cuh"

struct softmax_args {
    void *out;
    const void *x, *result;
    int64_t rows, n, inner; /* inner: elements from one of a row to the next, 1 for rows */
    int32_t team;
    bool wide, log;
};

template <class T, int packs> __global__ void __launch_bounds__(NR_BLOCK) softmax_rows(const softmax_args a) {
    using A = share_sum<T, packs>;
    constexpr int W = line::W<T>;
    const int64_t row = (int64_t)blockIdx.x * (NR_BLOCK / a.team) + threadIdx.x / a.team;
    const line l = {row < a.rows ? a.n : 0, (int)threadIdx.x % a.team, a.team, a.wide};
    const int64_t first = (row < a.rows ? row : 0) * a.n;
    share<T, packs> x(l, static_cast<const T *>(a.x) + first);
    T top = -(T)INFINITY;
    each_pack<T, packs>(l, [&](int64_t p) {
        T v[W];
        x.get(l, p, v);
#pragma unroll
        for (int k = 0; k < W; k++) top = l.at<T>(p, k) < l.n && v[k] > top ? v[k] : top;
    });
    top = largest_of(l, top);
    A sum = 0;
    each_pack<T, packs>(l, [&](int64_t p) {
        T v[W];
        x.get(l, p, v);
#pragma unroll
        for (int k = 0; k < W; k++) {
            const T e = exp(v[k] - top);
            sum += l.at<T>(p, k) < l.n ? (A)e : A(0);
            if constexpr (packs > 0) x.held[p][k] = a.log ? v[k] - top : e; /* what the result is made of */
        }
    });
    sum = add_up(l, sum);
    const T scale = a.log ? T(0) : (T)(A(1) / sum), shift = a.log ? (T)log(sum) : T(0);
    each_pack<T, packs>(l, [&](int64_t p) {
        T v[W];
        x.get(l, p, v);
#pragma unroll
        for (int k = 0; k < W; k++) {
            if constexpr (packs == 0) v[k] = a.log ? v[k] - top : exp(v[k] - top);
            v[k] = a.log ? v[k] - shift : v[k] * scale;
        }
        l.store(static_cast<T *>(a.out) + first, v, p);
    });
}

/* x: the gradient. out = y (x - the sum of x y), or, of the logarithm, x - exp(y) times the sum of x. */
template <class T, int packs> __global__ void NR_ROW_BOUNDS(T) softmax_rows_backward(const softmax_args a) {
    using A = share_sum<T, packs>;
    constexpr int W = line::W<T>;
    const int64_t row = (int64_t)blockIdx.x * (NR_BLOCK / a.team) + threadIdx.x / a.team;
    const line l = {row < a.rows ? a.n : 0, (int)threadIdx.x % a.team, a.team, a.wide};
    const int64_t first = (row < a.rows ? row : 0) * a.n;
    const share<T, packs> x(l, static_cast<const T *>(a.x) + first), y(l, static_cast<const T *>(a.result) + first);
    A sum = 0;
    each_pack<T, packs>(l, [&](int64_t p) {
        T v[W], r[W];
        x.get(l, p, v);
        y.get(l, p, r);
#pragma unroll
        for (int k = 0; k < W; k++) sum += (A)(a.log ? v[k] : v[k] * r[k]); /* zeros behind the last */
    });
    const T all = (T)add_up(l, sum);
    each_pack<T, packs>(l, [&](int64_t p) {
        T v[W], r[W];
        x.get(l, p, v);
        y.get(l, p, r);
#pragma unroll
        for (int k = 0; k < W; k++) v[k] = a.log ? v[k] - exp(r[k]) * all : r[k] * (v[k] - all);
        l.store(static_cast<T *>(a.out) + first, v, p);
    });
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

#define COLUMNS 16 /* that a block takes if a column has more than one thread */

/* The combined values of the threads of a column, which are `distance` apart in the block. */
template <class Join> DEVICE double joined(double value, int distance, int team, double *memory, const Join &join) {
    double *mine = memory + threadIdx.x;
    const int member = (int)threadIdx.x / distance;
    for (int half = team / 2; half > 0; half /= 2) {
        *mine = value;
        __syncthreads();
        if (member < half) value = join(value, mine[half * distance]);
        __syncthreads();
    }
    if (team > 1) {
        *mine = value;
        __syncthreads();
        value = memory[(int)threadIdx.x % distance];
        __syncthreads();
    }
    return value;
}

template <class T, bool is_backward> __global__ void NR_ROW_BOUNDS(T) softmax_columns(const softmax_args a) {
    __shared__ double memory[NR_BLOCK];
    const int distance = NR_BLOCK / a.team;
    const int64_t column = (int64_t)blockIdx.x * distance + (int)threadIdx.x % distance;
    const int64_t n = column < a.rows ? a.n : 0, step = a.inner, jump = a.team;
    const int64_t member = (int)threadIdx.x / distance;
    const int64_t first = column < a.rows ? column / a.inner * a.n * a.inner + column % a.inner : 0;
    const T *x = static_cast<const T *>(a.x) + first, *y = static_cast<const T *>(a.result) + first;
    T *out = static_cast<T *>(a.out) + first;
    const auto meeting = [&](double value, auto join) { return joined(value, distance, a.team, memory, join); };
    const auto plus = [](double p, double q) { return p + q; };
    double sum = 0;
    if constexpr (is_backward) {
        for (int64_t i = member; i < n; i += jump) sum += (double)(a.log ? x[i * step] : x[i * step] * y[i * step]);
        const T all = (T)meeting(sum, plus);
        for (int64_t i = member; i < n; i += jump)
            out[i * step] = a.log ? x[i * step] - exp(y[i * step]) * all : y[i * step] * (x[i * step] - all);
    } else {
        T top = -(T)INFINITY;
        for (int64_t i = member; i < n; i += jump) top = x[i * step] > top ? x[i * step] : top;
        top = (T)meeting((double)top, [](double p, double q) { return q > p ? q : p; });
        for (int64_t i = member; i < n; i += jump) sum += (double)exp(x[i * step] - top);
        sum = meeting(sum, plus);
        const T scale = (T)(1.0 / sum), shift = (T)log(sum);
        for (int64_t i = member; i < n; i += jump) {
            const T d = x[i * step] - top;
            out[i * step] = a.log ? d - shift : exp(d) * scale;
        }
    }
}

template <class T> static int32_t run(const nr_call *call, const nr_softmax_plan &p) {
    const bool is_backward = call->op == NR_SOFTMAX_BACKWARD || call->op == NR_LOG_SOFTMAX_BACKWARD;
    softmax_args a = {};
    a.out = p.out;
    a.x = p.x;
    a.result = p.result;
    a.rows = p.outer * p.inner;
    a.n = p.n;
    a.inner = p.inner;
    a.log = call->op == NR_LOG_SOFTMAX_FORWARD || call->op == NR_LOG_SOFTMAX_BACKWARD;
    cudaStream_t stream = gpu_of(call)->stream;
    if (p.inner == 1) {
        const row_shape shape = row_shape_of<T>(a.rows, a.n);
        a.team = shape.team;
        a.wide = a.n % line::W<T> == 0 && is_aligned(a.out, 16) && is_aligned(a.x, 16) && is_aligned(a.result, 16);
        auto kernel = with_packs(shape.packs, [&](auto n) {
            constexpr int packs = decltype(n)::packs;
            return is_backward ? softmax_rows_backward<T, packs> : softmax_rows<T, packs>;
        });
        LAUNCH(kernel, shape.blocks, NR_BLOCK, 0, stream, a);
    } else { /* a thread for each column if they are many, or short */
        a.team = a.rows < 16384 && a.n >= 64 ? NR_BLOCK / COLUMNS : 1;
        auto kernel = is_backward ? softmax_columns<T, true> : softmax_columns<T, false>;
        LAUNCH(kernel, blocks_for(a.rows, NR_BLOCK / a.team), NR_BLOCK, 0, stream, a);
    }
    return launched(call);
}

int32_t nr_cuda_softmax(const nr_call *call) {
    const nr_softmax_plan &p = *static_cast<const nr_softmax_plan *>(call->plan);
    if (p.outer == 0 || p.n == 0 || p.inner == 0) return NORCH_OK;
    return call->dtype == NORCH_FLOAT32 ? run<float>(call, p) : run<double>(call, p);
}
