/* cross_entropy: logits with class indices, read once forward and once backward.
 *
 *   rows      a team of threads each. 16 bytes an access, whatever the length of a row: the team begins at the last
 *             multiple of 16 bytes before it
 *             .. row 0 | 0 1 2 3 | 4 5 6 7 | ... | n-1 row 1 ..
 *   forward   each thread keeps its largest element, and the sum of exp(x - that), scaled when a larger one comes
 *             (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018); a team joins them in order.
 *             Losses that are reduced are added up by one block afterwards
 *   backward  out = (exp(x - top - log_sum) - [i = target]) g
 *   nll       a thread for each loss, and for each element of the gradient */
#include "../families/cross_entropy.h"
#include "rows.cuh"

struct cross_entropy_args {
    nr_cross_entropy_plan p;
    void *losses;
    int32_t team;
    bool aligned; /* x, and backward out, begin at multiples of 16 bytes */
    volatile nr_report *report;
};

/* Whether the row has a loss; a target out of range is reported, and skipped. */
DEVICE bool has_loss(const cross_entropy_args &a, int64_t target) {
    if (target == a.p.ignored) return false;
    if (target >= 0 && target < a.p.n) return true;
    if (!a.report->found) {
        a.report->index = target;
        a.report->size = a.p.n;
        __threadfence_system();
        a.report->found = NR_LOST_INDEX;
    }
    return false;
}

/* Calls whole(i) for packs of W elements, and single(i) for the other elements at the ends of a row. */
template <int W, class Whole, class Single>
DEVICE void along(const cross_entropy_args &a, int64_t row, int member, const Whole &whole, const Single &single) {
    const int64_t n = a.p.n, before = a.aligned ? row * n % W : 0, step = (int64_t)a.team * W;
    if (a.aligned) {
#pragma unroll 4
        for (int64_t i = member * W - before; i < n; i += step) {
            if (i >= 0 && i + W <= n)
                whole(i);
            else
                for (int64_t k = i < 0 ? 0 : i; k < i + W && k < n; k++) single(k);
        }
    } else {
        for (int64_t i = member; i < n; i += a.team) single(i);
    }
}

/* exp(x - top) for x <= top, also where both are -infinity. */
template <class T> DEVICE T power(T x, T top) { return x == -(T)INFINITY ? T(0) : exp(x - top); }

template <class T> __global__ void __launch_bounds__(NR_BLOCK) cross_entropy_rows(const cross_entropy_args a) {
    constexpr int W = line::W<T>;
    const int member = (int)threadIdx.x % a.team;
    const int64_t row = (int64_t)blockIdx.x * (NR_BLOCK / a.team) + threadIdx.x / a.team;
    const line l = {a.p.n, member, a.team, false};
    const bool is_row = row < a.p.rows;
    const T *x = static_cast<const T *>(a.p.x) + (is_row ? row : 0) * a.p.n;
    T top = -(T)INFINITY, sum = 0;
    double total = 0;
    const auto raise = [&](T to) {
        if (!(to > top)) return;
        sum *= power(top, to);
        top = to;
    };
    const auto single = [&](int64_t i) {
        raise(x[i]);
        sum += power(x[i], top);
        if (a.p.smoothing > 0) total += (double)x[i];
    };
    if (is_row)
        along<W>(
            a, row, member,
            [&](int64_t i) {
                const auto v = *reinterpret_cast<const pack<T, W> *>(x + i);
                T most = v.v[0];
#pragma unroll
                for (int k = 1; k < W; k++) most = v.v[k] > most ? v.v[k] : most;
                raise(most);
#pragma unroll
                for (int k = 0; k < W; k++) sum += power(v.v[k], top);
                if (a.p.smoothing > 0)
#pragma unroll
                    for (int k = 0; k < W; k++) total += (double)v.v[k];
            },
            single);
    const T all = largest_of(l, top);
    sum = (T)add_up(l, (double)(sum * power(top, all)));
    if (a.p.smoothing > 0) total = add_up(l, total);
    if (!is_row || member > 0) return;
    const int64_t target = a.p.target[row];
    const T log_sum = log(sum);
    T loss = 0;
    if (has_loss(a, target)) {
        loss = log_sum - (T)(1 - a.p.smoothing) * (x[target] - all);
        if (a.p.smoothing > 0) loss -= (T)(a.p.smoothing * (total / (double)a.p.n - (double)all));
    }
    static_cast<T *>(a.losses)[row] = loss;
    *reinterpret_cast<pack<T, 2> *>(static_cast<T *>(a.p.log_sums) + 2 * row) = {{all, log_sum}};
}

template <class T> __global__ void __launch_bounds__(NR_BLOCK) cross_entropy_reduce(const cross_entropy_args a) {
    const line l = {0, (int)threadIdx.x, NR_BLOCK, false};
    double sum = 0, count = 0;
#pragma unroll 16
    for (int64_t i = threadIdx.x; i < a.p.rows; i += NR_BLOCK) {
        sum += (double)static_cast<const T *>(a.losses)[i];
        const int64_t target = a.p.target[i];
        if (has_loss(a, target)) count += a.p.weight ? (double)static_cast<const T *>(a.p.weight)[target] : 1;
    }
    sum = add_up(l, sum);
    count = add_up(l, count);
    if (threadIdx.x > 0) return;
    *static_cast<T *>(a.p.out) = (T)(a.p.count ? sum / count : sum);
    if (a.p.count) *static_cast<T *>(a.p.count) = (T)count;
}

template <class T> __global__ void __launch_bounds__(NR_BLOCK) cross_entropy_backward(const cross_entropy_args a) {
    constexpr int W = line::W<T>;
    const int member = (int)threadIdx.x % a.team;
    const int64_t row = (int64_t)blockIdx.x * (NR_BLOCK / a.team) + threadIdx.x / a.team, n = a.p.n;
    if (row >= a.p.rows) return;
    const T *x = static_cast<const T *>(a.p.x) + row * n, *g = static_cast<const T *>(a.p.g);
    T *out = static_cast<T *>(a.p.out) + row * n;
    int64_t target = a.p.target[row];
    if (!has_loss(a, target)) target = -1;
    const auto kept = *reinterpret_cast<const pack<T, 2> *>(static_cast<const T *>(a.p.log_sums) + 2 * row);
    T factor = target < 0 ? T(0) : a.p.reduced ? *g : g[row];
    if (a.p.reduced && a.p.count && target >= 0) factor /= *static_cast<const T *>(a.p.count);
    const T share = (T)(a.p.smoothing / (double)n), rest = (T)(1 - a.p.smoothing);
    const auto slope = [&](T v, int64_t i) {
        const T all = exp((v - kept.v[0]) - kept.v[1]) - share;
        return target < 0 ? T(0) : (i == target ? all - rest : all) * factor;
    };
    along<W>(
        a, row, member,
        [&](int64_t i) {
            auto v = *reinterpret_cast<const pack<T, W> *>(x + i);
#pragma unroll
            for (int k = 0; k < W; k++) v.v[k] = slope(v.v[k], i + k);
            *reinterpret_cast<pack<T, W> *>(out + i) = v;
        },
        [&](int64_t i) { out[i] = slope(x[i], i); });
}

template <class T> __global__ void __launch_bounds__(NR_BLOCK) nll_rows(const cross_entropy_args a) {
    const int64_t row = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x, inner = a.p.inner;
    if (row >= a.p.rows) return;
    const T *x = static_cast<const T *>(a.p.x), *weight = static_cast<const T *>(a.p.weight);
    const int64_t target = a.p.target[row];
    T loss = 0;
    if (has_loss(a, target)) {
        loss = -x[(row / inner * a.p.n + target) * inner + row % inner];
        if (weight) loss *= weight[target];
    }
    static_cast<T *>(a.losses)[row] = loss;
}

template <class T> __global__ void __launch_bounds__(NR_BLOCK) nll_backward(const cross_entropy_args a) {
    const int64_t at = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x, inner = a.p.inner;
    if (at >= a.p.rows * a.p.n) return;
    const int64_t c = at / inner % a.p.n, row = at / inner / a.p.n * inner + at % inner, target = a.p.target[row];
    const T *g = static_cast<const T *>(a.p.g);
    T out = 0;
    if (has_loss(a, target) && target == c) {
        out = a.p.reduced ? -*g : -g[row];
        if (a.p.reduced && a.p.count) out /= *static_cast<const T *>(a.p.count);
        if (a.p.weight) out *= static_cast<const T *>(a.p.weight)[c];
    }
    static_cast<T *>(a.p.out)[at] = out;
}

template <class T> static int32_t run(const nr_call *call, const nr_cross_entropy_plan &p) {
    const nr_gpu *gpu = gpu_of(call);
    const bool is_backward = call->op == NR_CROSS_ENTROPY_BACKWARD, is_nll = call->op == NR_NLL_FORWARD;
    cross_entropy_args a = {};
    a.p = p;
    a.report = gpu->report_on_device;
    a.aligned = is_aligned(p.x, 16) && (!is_backward || is_aligned(p.out, 16));
    a.team = 8;
    while (a.team < NR_BLOCK && a.team * line::W<T> * 4 < p.n) a.team *= 2;
    const unsigned blocks = blocks_for(p.rows, is_nll ? NR_BLOCK : NR_BLOCK / a.team);
    if (call->op == NR_NLL_BACKWARD) return run_blocks(call, nll_backward<T>, blocks_for(p.rows * p.n, NR_BLOCK), a);
    if (is_backward) return run_blocks(call, cross_entropy_backward<T>, blocks, a);
    const scratch losses(gpu, p.reduced ? (size_t)(p.rows + 1) * sizeof(T) : 0);
    if (losses.failed()) return NORCH_ERROR_MEMORY;
    a.losses = p.reduced ? losses.memory : p.out;
    void (*const rows)(cross_entropy_args) = is_nll ? nll_rows<T> : cross_entropy_rows<T>;
    if (p.rows > 0) LAUNCH(rows, blocks, NR_BLOCK, 0, gpu->stream, a);
    if (p.reduced) LAUNCH(cross_entropy_reduce<T>, 1, NR_BLOCK, 0, gpu->stream, a);
    return launched(call);
}

int32_t nr_cuda_cross_entropy(const nr_call *call) {
    const nr_cross_entropy_plan &p = *static_cast<const nr_cross_entropy_plan *>(call->plan);
    return call->dtype == NORCH_FLOAT32 ? run<float>(call, p) : run<double>(call, p);
}
