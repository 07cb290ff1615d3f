/* batch_norm: channels made to have mean 0 and variance 1, and the gradients of that. A block takes `width` neighbouring channels
 * of some samples; its threads stay each in one channel.
 *
 *   long planes    sample 0 [ t0 t0 t0 t0 | t1 t1 t1 t1 | ...        width 1: all threads go along the planes of a channel, one
 *                  sample 1   .. t254 ..  | t255 ..     | t0 ...     after the other, 16 bytes an access
 *   short planes   sample 0 [ t0 | t1 | ... of all its channels      a thread an element of a sample's channels, so that accesses
 *                  sample 1 [ t32| t33| ...                          are as long as they can be; its rows are some samples apart
 *
 *   sum            [ part 0 | part 1 | ... ]    a block writes two sums over its part of a channel's samples
 *   apply          a block adds up the parts of its channels, in order, and goes through its part again, the last part first:
 *                  that is what the second cache still holds. Where there is one part only, both are one kernel
 *
 * Forward, sums are taken about a first element: of d = x - x0 and of d^2, so that nothing cancels (Chan, Golub and LeVeque,
 * "Algorithms for Computing the Sample Variance", 1983). Backward: algorithm 1 of Ioffe and Szegedy, "Batch Normalization" (2015). */
#include "../families/batch_norm.h"
#include "rows.cuh"

#define SHORT 16        /* elements of a plane up to which neighbouring channels share a block */
#define PART_LEAST 8192 /* elements of a block */
#define MOST_PARTS 128

struct batch_norm_args {
    nr_batch_norm_plan p;
    int64_t sample;                       /* elements of one */
    int64_t units, in_sample;             /* accesses of a thread's elements of a channel, and of a sample */
    int64_t in_part;                      /* units */
    int64_t step_samples, step_in_sample; /* from one unit of a thread to its next */
    int32_t parts, width, span, rows;     /* span: threads side by side; rows of these in a block */
    struct two_sums *partial;             /* (channels, parts) */
};

struct two_sums {
    double a, b;
};

/* Which channel a thread works for, and its units. */
struct batch_norm_thread {
    int64_t channel, base, unit, last, part;
    bool first; /* of its channel in this block */

    DEVICE batch_norm_thread(const batch_norm_args &a, bool backwards) {
        const int64_t block = backwards ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
        part = backwards ? gridDim.y - 1 - blockIdx.y : blockIdx.y;
        const int lane = (int)threadIdx.x % a.span, row = (int)threadIdx.x / a.span;
        channel = block * a.width + (a.span > 1 ? lane / (int)a.p.inner : 0);
        base = block * a.width * a.p.inner + lane;
        first = row == 0 && (a.span == 1 || lane % (int)a.p.inner == 0) && channel < a.p.channels;
        unit = part * a.in_part + row;
        last = (part + 1) * a.in_part < a.units ? (part + 1) * a.in_part : a.units;
        if (row >= a.rows || channel >= a.p.channels) last = 0;
    }
    /* Calls what(i) with the place of the first element of each unit. */
    template <int W, class What> DEVICE void each(const batch_norm_args &a, const What &what) const {
        if (unit >= last) return;
        int64_t in = unit % a.in_sample, at = unit / a.in_sample * a.sample + base;
#pragma unroll 4
        for (int64_t u = unit; u < last; u += a.rows) {
            what(at + in * W);
            at += a.step_samples * a.sample;
            in += a.step_in_sample;
            if (in >= a.in_sample) {
                in -= a.in_sample;
                at += a.sample;
            }
        }
    }
};

/* The sums of all threads of a channel in this block, for each of them. */
DEVICE two_sums joined(const batch_norm_args &a, two_sums own) {
    if (a.span == 1) {
        const line all = {0, (int)threadIdx.x, NR_BLOCK, false};
        own.a = add_up(all, own.a);
        own.b = add_up(all, own.b);
        return own;
    }
    __shared__ two_sums memory[NR_BLOCK];
    const int thread = (int)threadIdx.x, inner = (int)a.p.inner;
    memory[thread] = own;
    __syncthreads();
    if (thread < a.span)
        for (int i = thread + a.span; i < a.span * a.rows; i += a.span) {
            own.a += memory[i].a;
            own.b += memory[i].b;
        }
    __syncthreads();
    memory[thread] = own;
    __syncthreads();
    two_sums all = {0, 0};
    for (int i = 0, from = thread % a.span / inner * inner; i < inner; i++) {
        all.a += memory[from + i].a;
        all.b += memory[from + i].b;
    }
    __syncthreads();
    return all;
}

DEVICE two_sums of_parts(const batch_norm_args &a, int64_t channel) {
    two_sums all = {0, 0};
    if (channel >= a.p.channels) return all;
#pragma unroll 8
    for (int32_t part = 0; part < a.parts; part++) {
        const two_sums one = a.partial[channel * a.parts + part];
        all.a += one.a;
        all.b += one.b;
    }
    return all;
}

template <class T, int W> DEVICE pack<T, W> pack_at(const void *x, int64_t i) {
    return *reinterpret_cast<const pack<T, W> *>(static_cast<const T *>(x) + i);
}
template <class T> DEVICE T number_at(const void *x, int64_t i, T otherwise) {
    return x ? static_cast<const T *>(x)[i] : otherwise;
}

/* What a channel's elements are computed with. */
template <class T> struct channel_numbers {
    T mean, scale, weight, rest = 0; /* rest: what rounding the mean of a batch leaves */

    DEVICE channel_numbers(const batch_norm_args &a, int64_t channel, T mean, T variance)
        : mean(mean), scale(T(1) / sqrt(variance + (T)a.p.eps)), weight(number_at(a.p.weight, channel, T(1))) {}
};

template <class T> DEVICE channel_numbers<T> stored_numbers(const batch_norm_args &a, const batch_norm_thread &t) {
    const int64_t channel = t.channel < a.p.channels ? t.channel : 0;
    return {a, channel, static_cast<const T *>(a.p.mean)[channel], static_cast<const T *>(a.p.variance)[channel]};
}

/* ---- forward ---------------------------------------------------------------------------------------------------------- */

template <class T> DEVICE double origin_of(const batch_norm_args &a, int64_t channel) {
    return channel < a.p.channels ? (double)static_cast<const T *>(a.p.x)[channel * a.p.inner] : 0;
}

/* The sums of d and d^2 about the channel's first element: first about a thread's own, in T, then moved. */
template <class T, int W> DEVICE two_sums deviations(const batch_norm_args &a, const batch_norm_thread &t) {
    T own = 0, sum = 0, squares = 0;
    double n = 0;
    t.each<W>(a, [&](int64_t i) {
        const auto x = pack_at<T, W>(a.p.x, i);
        if (n == 0) own = x.v[0];
#pragma unroll
        for (int k = 0; k < W; k++) {
            const T d = x.v[k] - own;
            sum += d;
            squares += d * d;
        }
        n += W;
    });
    const double shift = n > 0 ? (double)own - origin_of<T>(a, t.channel) : 0;
    return {(double)sum + n * shift, (double)squares + shift * (2 * (double)sum + n * shift)};
}

/* The statistics of a channel from those sums; the first thread of the first part stores them. */
template <class T>
DEVICE channel_numbers<T> batch_numbers(const batch_norm_args &a, const batch_norm_thread &t, const two_sums &sums) {
    const double n = (double)(a.p.batch * a.p.inner), shift = sums.a / n, squares = sums.b - sums.a * shift;
    const double variance = squares < 0 ? 0 : squares / n;
    const T mean = (T)(origin_of<T>(a, t.channel) + shift);
    if (t.first && t.part == 0) {
        static_cast<T *>(a.p.mean)[t.channel] = mean;
        static_cast<T *>(a.p.variance)[t.channel] = (T)variance;
        const auto move = [&](void *running, double to) {
            T *one = static_cast<T *>(running) + t.channel;
            if (running) *one = (T)((1 - a.p.momentum) * (double)*one + a.p.momentum * to);
        };
        move(a.p.running_mean, (double)mean);
        move(a.p.running_variance, n > 1 ? variance * (n / (n - 1)) : variance);
    }
    channel_numbers<T> c(a, t.channel < a.p.channels ? t.channel : 0, mean, (T)variance);
    c.rest = (T)(origin_of<T>(a, t.channel) + shift - (double)mean);
    return c;
}

template <class T, int W>
DEVICE void normalize(const batch_norm_args &a, const batch_norm_thread &t, const channel_numbers<T> &c) {
    const T factor = c.scale * c.weight;
    const T bias = (t.channel < a.p.channels ? number_at(a.p.bias, t.channel, T(0)) : T(0)) - c.rest * factor;
    t.each<W>(a, [&](int64_t i) {
        auto x = pack_at<T, W>(a.p.x, i);
#pragma unroll
        for (int k = 0; k < W; k++) x.v[k] = (x.v[k] - c.mean) * factor + bias;
        *reinterpret_cast<pack<T, W> *>(static_cast<T *>(a.p.out) + i) = x;
    });
}

/* ---- backward --------------------------------------------------------------------------------------------------------- */

/* The sums of g h and of g. */
template <class T, int W>
DEVICE two_sums products(const batch_norm_args &a, const batch_norm_thread &t, const channel_numbers<T> &c) {
    T product = 0, sum = 0;
    t.each<W>(a, [&](int64_t i) {
        const auto x = pack_at<T, W>(a.p.x, i), g = pack_at<T, W>(a.p.g, i);
#pragma unroll
        for (int k = 0; k < W; k++) {
            product += g.v[k] * (x.v[k] - c.mean);
            sum += g.v[k];
        }
    });
    return {(double)(product * c.scale), (double)sum};
}

/* grad_x = weight scale (g - mean(g) - h mean(g h)), or without the means where statistics are not those of x. */
template <class T, int W>
DEVICE void differentiate(const batch_norm_args &a, const batch_norm_thread &t, const channel_numbers<T> &c,
                          const two_sums &sums, bool training) {
    if (t.first && t.part == 0 && a.p.grad_affine) {
        static_cast<T *>(a.p.grad_affine)[t.channel] = (T)sums.a;
        static_cast<T *>(a.p.grad_affine)[a.p.channels + t.channel] = (T)sums.b;
    }
    const double n = (double)(a.p.batch * a.p.inner);
    const T factor = c.scale * c.weight;
    const T slope = training ? (T)(sums.a / n) * c.scale : T(0), mean = training ? (T)(sums.b / n) : T(0);
    t.each<W>(a, [&](int64_t i) {
        auto g = pack_at<T, W>(a.p.g, i);
        if (training) {
            const auto x = pack_at<T, W>(a.p.x, i);
#pragma unroll
            for (int k = 0; k < W; k++) g.v[k] = factor * (g.v[k] - mean - (x.v[k] - c.mean) * slope);
        } else {
#pragma unroll
            for (int k = 0; k < W; k++) g.v[k] *= factor;
        }
        *reinterpret_cast<pack<T, W> *>(static_cast<T *>(a.p.grad_x) + i) = g;
    });
}

/* ---- kernels ---------------------------------------------------------------------------------------------------------- */

enum { SUM = 1, APPLY = 2, BOTH = SUM | APPLY };

template <class T, int W, int kind, int phase>
__global__ void __launch_bounds__(NR_BLOCK) batch_norm_kernel(const batch_norm_args a) {
    constexpr bool training = kind == NR_BATCH_NORM_TRAINING || kind == NR_BATCH_NORM_TRAINING_BACKWARD;
    const batch_norm_thread t(a, phase == APPLY);
    if constexpr (kind == NR_BATCH_NORM_EVALUATION) {
        normalize<T, W>(a, t, stored_numbers<T>(a, t));
    } else {
        two_sums sums;
        if constexpr ((phase & SUM) != 0) {
            if constexpr (kind == NR_BATCH_NORM_TRAINING)
                sums = joined(a, deviations<T, W>(a, t));
            else
                sums = joined(a, products<T, W>(a, t, stored_numbers<T>(a, t)));
        } else {
            sums = of_parts(a, t.channel);
        }
        if constexpr (phase == SUM) {
            if (t.first) a.partial[t.channel * a.parts + t.part] = sums;
        } else if constexpr (kind == NR_BATCH_NORM_TRAINING) {
            normalize<T, W>(a, t, batch_numbers<T>(a, t, sums));
        } else {
            differentiate<T, W>(a, t, stored_numbers<T>(a, t), sums, training);
        }
    }
}

template <class T, int W, int kind> static int32_t launch(const nr_call *call, batch_norm_args a) {
    const nr_gpu *gpu = gpu_of(call);
    const dim3 grid(blocks_for(a.p.channels, a.width), (unsigned)a.parts);
    if (kind == NR_BATCH_NORM_EVALUATION || a.parts == 1) {
        constexpr int phases = kind == NR_BATCH_NORM_EVALUATION ? APPLY : BOTH;
        LAUNCH((batch_norm_kernel<T, W, kind, phases>), grid, NR_BLOCK, 0, gpu->stream, a);
        return launched(call);
    }
    const scratch partial(gpu, (size_t)(a.p.channels * a.parts) * sizeof(two_sums));
    if (partial.failed()) return NORCH_ERROR_MEMORY;
    a.partial = reinterpret_cast<two_sums *>(partial.memory);
    LAUNCH((batch_norm_kernel<T, W, kind, SUM>), grid, NR_BLOCK, 0, gpu->stream, a);
    LAUNCH((batch_norm_kernel<T, W, kind, APPLY>), grid, NR_BLOCK, 0, gpu->stream, a);
    return launched(call);
}

template <class T, int W> static int32_t run(const nr_call *call, const nr_batch_norm_plan &p) {
    batch_norm_args a = {};
    a.p = p;
    a.sample = p.channels * p.inner;
    const bool is_short = p.inner < SHORT;
    a.width = is_short ? (int32_t)(32 / p.inner) : 1;
    if (a.width > p.channels) a.width = (int32_t)p.channels;
    a.span = is_short ? a.width * (int32_t)p.inner : 1;
    a.rows = NR_BLOCK / a.span;
    a.in_sample = is_short ? 1 : p.inner / W;
    a.units = p.batch * a.in_sample;
    a.step_samples = a.rows / a.in_sample;
    a.step_in_sample = a.rows % a.in_sample;
    int64_t parts = (a.width * p.batch * p.inner + PART_LEAST - 1) / PART_LEAST;
    if (parts > MOST_PARTS) parts = MOST_PARTS;
    a.in_part = (a.units + parts - 1) / parts;
    a.parts = (int32_t)((a.units + a.in_part - 1) / a.in_part);
    switch (call->op) {
    case NR_BATCH_NORM_TRAINING: return launch<T, W, NR_BATCH_NORM_TRAINING>(call, a);
    case NR_BATCH_NORM_EVALUATION: return launch<T, W, NR_BATCH_NORM_EVALUATION>(call, a);
    case NR_BATCH_NORM_TRAINING_BACKWARD: return launch<T, W, NR_BATCH_NORM_TRAINING_BACKWARD>(call, a);
    }
    return launch<T, W, NR_BATCH_NORM_EVALUATION_BACKWARD>(call, a);
}

template <class T> static int32_t run_wide(const nr_call *call, const nr_batch_norm_plan &p) {
    constexpr int W = line::W<T>;
    const bool wide = p.inner >= SHORT && p.inner % W == 0 && is_aligned(p.x, 16) && is_aligned(p.g, 16) &&
                      is_aligned(p.out, 16) && is_aligned(p.grad_x, 16);
    return wide ? run<T, W>(call, p) : run<T, 1>(call, p);
}

int32_t nr_cuda_batch_norm(const nr_call *call) {
    const nr_batch_norm_plan &p = *static_cast<const nr_batch_norm_plan *>(call->plan);
    if (p.batch == 0 || p.channels == 0 || p.inner == 0) {
        if (p.grad_affine && p.channels > 0)
            TRY(nr_call_name(call),
                cudaMemsetAsync(p.grad_affine, 0, (size_t)(2 * p.channels) * (call->dtype == NORCH_FLOAT32 ? 4 : 8),
                                gpu_of(call)->stream));
        return NORCH_OK;
    }
    return call->dtype == NORCH_FLOAT32 ? run_wide<float>(call, p) : run_wide<double>(call, p);
}
