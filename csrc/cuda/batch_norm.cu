/* batch_norm: channels made to have mean 0 and variance 1, and the gradients of that. A block takes `width`
 * neighbouring channels of some samples; its threads stay each in one channel.
 *
 *   long planes    sample 0 [ t0 t0 t0 t0 | t1 t1 t1 t1 | ...        width 1: all threads take a channel's planes, one
 *                  sample 1   .. t254 ..  | t255 ..     | t0 ...     after the other, 16 bytes an access
 *   short planes   sample 0 [ t0 | t1 | ... of all its channels      a thread an element of a sample's channels:
 *                  sample 1 [ t32| t33| ...                          long accesses; its rows are some samples apart
 *
 *   sum            [ part 0 | part 1 | ... ]    a block writes some sums over its part of a channel's samples
 *   apply          a block adds up the parts of its channels, in order, and takes its part again, the last part first:
 *                  that is what the second cache still holds. Where there is one part only, both are one kernel
 *
 * Forward, sums are taken about a first element: of d = x - x0 and of d^2, so that nothing cancels (Chan, Golub and
 * LeVeque, "Algorithms for Computing the Sample Variance", 1983). Backward: algorithm 1 of Ioffe and Szegedy, "Batch
 * Normalization" (2015). Channels whose numbers float does not hold are computed in double precision. */
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
    void *partial;                        /* (channels, parts), of sums<n> */
};

template <int n> struct sums {
    double v[n];

    DEVICE void add(const sums &other) {
#pragma unroll
        for (int k = 0; k < n; k++) v[k] += other.v[k];
    }
};

/* The channel of a thread, and its units. */
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
    /* Calls what(i) with the offset of the first element of each unit. */
    template <int W, class Visit> DEVICE void each(const batch_norm_args &a, const Visit &visit) const {
        if (unit >= last) return;
        int64_t in = unit % a.in_sample, at = unit / a.in_sample * a.sample + base;
#pragma unroll 4
        for (int64_t u = unit; u < last; u += a.rows) {
            visit(at + in * W);
            at += a.step_samples * a.sample;
            in += a.step_in_sample;
            if (in >= a.in_sample) {
                in -= a.in_sample;
                at += a.sample;
            }
        }
    }
};

/* The sums of all threads of a channel in this block, in each of these threads. */
template <int n> DEVICE sums<n> joined(const batch_norm_args &a, sums<n> partial) {
    if (a.span == 1) {
        const line all = {0, (int)threadIdx.x, NR_BLOCK, false};
#pragma unroll
        for (int k = 0; k < n; k++) partial.v[k] = add_up(all, partial.v[k]);
        return partial;
    }
    __shared__ sums<n> memory[NR_BLOCK];
    const int thread = (int)threadIdx.x, inner = (int)a.p.inner;
    memory[thread] = partial;
    __syncthreads();
    if (thread < a.span)
        for (int i = thread + a.span; i < a.span * a.rows; i += a.span) partial.add(memory[i]);
    __syncthreads();
    memory[thread] = partial;
    __syncthreads();
    sums<n> all = {};
    for (int i = 0, from = thread % a.span / inner * inner; i < inner; i++) all.add(memory[from + i]);
    __syncthreads();
    return all;
}

template <int n> DEVICE sums<n> of_parts(const batch_norm_args &a, int64_t channel) {
    sums<n> all = {};
    if (channel >= a.p.channels) return all;
#pragma unroll 8
    for (int32_t part = 0; part < a.parts; part++)
        all.add(static_cast<const sums<n> *>(a.partial)[channel * a.parts + part]);
    return all;
}

template <class T, int W> DEVICE pack<T, W> pack_at(const void *x, int64_t i) {
    return *reinterpret_cast<const pack<T, W> *>(static_cast<const T *>(x) + i);
}
template <class T> DEVICE T number_at(const void *x, int64_t i, T otherwise) {
    return x ? static_cast<const T *>(x)[i] : otherwise;
}

/* The numbers with which a channel's elements are computed: in T, or, if wide, in double precision. */
template <class T> struct channel_numbers {
    T mean;
    double scale, factor; /* factor: scale times weight */
    double rest = 0;      /* corrects the rounding of the mean of a batch */
    bool wide = false;

    DEVICE channel_numbers(const batch_norm_args &a, int64_t channel, T mean, double variance) : mean(mean) {
        const T weight = number_at(a.p.weight, channel, T(1));
        const T narrow = T(1) / sqrt((T)variance + (T)a.p.eps), product = narrow * weight;
        if constexpr (sizeof(T) == sizeof(float)) {
            const bool fits = fabs(product) >= 1.17549435e-38f && fabs(product) <= 3.40282347e+38f;
            wide = NR_IS_OUT_OF_RANGE(T, variance, a.p.eps) || (weight != 0 && !fits);
        }
        scale = wide ? 1 / sqrt(variance + a.p.eps) : (double)narrow;
        factor = wide ? scale * (double)weight : (double)product;
    }
};

DEVICE int64_t channel_in(const batch_norm_args &a, const batch_norm_thread &t) {
    return t.channel < a.p.channels ? t.channel : 0;
}
template <class T> DEVICE channel_numbers<T> stored_numbers(const batch_norm_args &a, const batch_norm_thread &t) {
    const int64_t channel = channel_in(a, t);
    return {a, channel, static_cast<const T *>(a.p.mean)[channel],
            (double)static_cast<const T *>(a.p.variance)[channel]};
}

/* Calls what(x) with x of the type to compute in. */
template <class T, class Body> DEVICE auto in_type(bool wide, const Body &body) {
    if constexpr (sizeof(T) == sizeof(float))
        if (wide) return body(double(0));
    return body(T(0));
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

template <class T> DEVICE double origin_of(const batch_norm_args &a, int64_t channel) {
    return channel < a.p.channels ? (double)static_cast<const T *>(a.p.x)[channel * a.p.inner] : 0;
}

/* The sums of d and d^2 about the channel's first element. A thread computes them about its own first element, in T
 * unless T loses digits, and then moves them. */
template <class T, int W> DEVICE sums<2> deviations(const batch_norm_args &a, const batch_norm_thread &t) {
    T origin = 0;
    double n = 0;
    const auto add = [&](auto zero) {
        auto sum = zero, squares = zero;
        n = 0;
        t.each<W>(a, [&](int64_t i) {
            const auto x = pack_at<T, W>(a.p.x, i);
            if (n == 0) origin = x.v[0];
#pragma unroll
            for (int k = 0; k < W; k++) {
                const auto d = (decltype(zero))x.v[k] - (decltype(zero))origin;
                sum += d;
                squares += d * d;
            }
            n += W;
        });
        return sums<2>{{(double)sum, (double)squares}};
    };
    sums<2> all = add(T(0));
    if (NR_IS_OUT_OF_RANGE(T, all.v[1], a.p.eps)) all = in_type<T>(true, add);
    const double shift = n > 0 ? (double)origin - origin_of<T>(a, t.channel) : 0;
    return {{all.v[0] + n * shift, all.v[1] + shift * (2 * all.v[0] + n * shift)}};
}

/* The statistics of a channel from those sums; the first thread of the first part stores them. */
template <class T>
DEVICE channel_numbers<T> batch_numbers(const batch_norm_args &a, const batch_norm_thread &t, const sums<2> &sums) {
    const double n = (double)(a.p.batch * a.p.inner), shift = sums.v[0] / n, squares = sums.v[1] - sums.v[0] * shift;
    const double variance = squares < 0 ? 0 : squares / n, mean = origin_of<T>(a, t.channel) + shift;
    if (t.first && t.part == 0) {
        static_cast<T *>(a.p.mean)[t.channel] = (T)mean;
        static_cast<T *>(a.p.variance)[t.channel] = (T)variance;
        const auto move = [&](void *running, double to) {
            T *one = static_cast<T *>(running) + t.channel;
            if (running) *one = (T)((1 - a.p.momentum) * (double)*one + a.p.momentum * to);
        };
        move(a.p.running_mean, mean);
        move(a.p.running_variance, n > 1 ? variance * (n / (n - 1)) : variance);
    }
    channel_numbers<T> c(a, channel_in(a, t), (T)mean, variance);
    c.rest = mean - (double)(T)mean;
    return c;
}

template <class T, int W>
DEVICE void normalize(const batch_norm_args &a, const batch_norm_thread &t, const channel_numbers<T> &c) {
    const T bias = t.channel < a.p.channels ? number_at(a.p.bias, t.channel, T(0)) : T(0);
    in_type<T>(c.wide, [&](auto zero) {
        using A = decltype(zero);
        const A mean = (A)c.mean, factor = (A)c.factor, shift = (A)((double)bias - c.rest * c.factor);
        t.each<W>(a, [&](int64_t i) {
            auto x = pack_at<T, W>(a.p.x, i);
#pragma unroll
            for (int k = 0; k < W; k++) x.v[k] = (T)(((A)x.v[k] - mean) * factor + shift);
            *reinterpret_cast<pack<T, W> *>(static_cast<T *>(a.p.out) + i) = x;
        });
    });
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* Four sums if the statistics are those of x, else the first two: of g d, d = x - mean, of g, of d, and, if wide, of
 * d^2. */
enum { OF_GD, OF_G, OF_D, OF_DD };

template <class T, int W, int n>
DEVICE sums<n> products(const batch_norm_args &a, const batch_norm_thread &t, const channel_numbers<T> &c) {
    const auto add = [&](auto zero) {
        using A = decltype(zero);
        A all[n] = {};
        t.each<W>(a, [&](int64_t i) {
            const auto x = pack_at<T, W>(a.p.x, i), g = pack_at<T, W>(a.p.g, i);
#pragma unroll
            for (int k = 0; k < W; k++) {
                const A d = (A)x.v[k] - (A)c.mean;
                all[OF_GD] += (A)g.v[k] * d;
                all[OF_G] += (A)g.v[k];
                if constexpr (n > OF_D) all[OF_D] += d;
                if constexpr (n > OF_DD && sizeof(A) > sizeof(T)) all[OF_DD] += d * d;
            }
        });
        sums<n> found;
#pragma unroll
        for (int k = 0; k < n; k++) found.v[k] = (double)all[k];
        return found;
    };
    const sums<n> all = in_type<T>(c.wide, add);
    return c.wide || all.v[OF_GD] - all.v[OF_GD] == 0 ? all : in_type<T>(true, add);
}

/* grad_x = weight scale (g - mean(g) - h mean(g h)), or without the means where statistics are not those of x. */
template <class T, int W, int n>
DEVICE void differentiate(const batch_norm_args &a, const batch_norm_thread &t, channel_numbers<T> c,
                          const sums<n> &sums) {
    constexpr bool training = n > OF_D;
    const double share = 1 / (double)(a.p.batch * a.p.inner);
    double product = sums.v[OF_GD], of_g = 0, of_h = 0;
    if constexpr (training) {
        const double rest = sums.v[OF_D] * share; /* of the mean, which is stored rounded */
        product -= rest * sums.v[OF_G];
        if (c.wide) /* the variance is stored in T */
            c = channel_numbers<T>(a, channel_in(a, t), c.mean, sums.v[OF_DD] * share - rest * rest), c.wide = true;
        of_h = product * share * c.scale * c.scale;
        of_g = sums.v[OF_G] * share - rest * of_h;
    }
    if (t.first && t.part == 0 && a.p.grad_affine) {
        static_cast<T *>(a.p.grad_affine)[t.channel] = (T)(product * c.scale);
        static_cast<T *>(a.p.grad_affine)[a.p.channels + t.channel] = (T)sums.v[OF_G];
    }
    in_type<T>(c.wide, [&](auto zero) {
        using A = decltype(zero);
        const A center = (A)c.mean, factor = (A)c.factor, slope = (A)of_h, mean = (A)of_g;
        t.each<W>(a, [&](int64_t i) {
            auto g = pack_at<T, W>(a.p.g, i);
            if constexpr (training) {
                const auto x = pack_at<T, W>(a.p.x, i);
#pragma unroll
                for (int k = 0; k < W; k++) g.v[k] = (T)(factor * ((A)g.v[k] - mean - ((A)x.v[k] - center) * slope));
            } else {
#pragma unroll
                for (int k = 0; k < W; k++) g.v[k] = (T)((A)g.v[k] * factor);
            }
            *reinterpret_cast<pack<T, W> *>(static_cast<T *>(a.p.grad_x) + i) = g;
        });
    });
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

enum { SUM = 1, APPLY = 2, BOTH = SUM | APPLY };

/* The number of sums of a kind. */
template <int kind> constexpr int sums_of = kind == NR_BATCH_NORM_TRAINING_BACKWARD ? OF_DD + 1 : 2;

template <class T, int W, int kind, int phase>
__global__ void __launch_bounds__(NR_BLOCK) batch_norm_kernel(const batch_norm_args a) {
    const batch_norm_thread t(a, phase == APPLY);
    if constexpr (kind == NR_BATCH_NORM_EVALUATION) {
        normalize<T, W>(a, t, stored_numbers<T>(a, t));
    } else {
        constexpr int n = sums_of<kind>;
        sums<n> all;
        if constexpr ((phase & SUM) != 0) {
            if constexpr (kind == NR_BATCH_NORM_TRAINING)
                all = joined(a, deviations<T, W>(a, t));
            else
                all = joined(a, products<T, W, n>(a, t, stored_numbers<T>(a, t)));
        } else {
            all = of_parts<n>(a, t.channel);
        }
        if constexpr (phase == SUM) {
            if (t.first) static_cast<sums<n> *>(a.partial)[t.channel * a.parts + t.part] = all;
        } else if constexpr (kind == NR_BATCH_NORM_TRAINING) {
            normalize<T, W>(a, t, batch_numbers<T>(a, t, all));
        } else {
            differentiate<T, W>(a, t, stored_numbers<T>(a, t), all);
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
    const scratch partial(gpu, (size_t)(a.p.channels * a.parts) * sizeof(sums<sums_of<kind>>));
    if (partial.failed()) return NORCH_ERROR_MEMORY;
    a.partial = partial.memory;
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
