/* conv_depthwise: convolutions to few channels of a group, float32, kernels of 3 x 3, 5 x 5 and 7 x 7 at strides 1 and
 * 2. Memory bounds them, so a thread computes a run of four neighbours of a row and keeps the elements that these share
 * in registers:
 *
 *   x   o o o o o o            y   4 neighbours       forward  each row of x is read once for all taps of the run
 *       o o o o o o   <-->                            weight   a thread keeps the sums of all taps over runs that it
 *       o o o o o o                                            gets of some samples; a block adds those of its threads
 *
 * The parts of the weight, one for some samples, are added in order. */
#include "conv.cuh"

#define RUN 4
#define THREADS 128

/* The columns of x that a run of outputs reads, and one row of x there, with zeros outside. */
template <int K, int step> struct seen_row {
    static constexpr int count = (RUN - 1) * step + K;
    float v[count];
    DEVICE seen_row(const float *x, int row, int column, const int32_t *size) {
        const bool inside = (uint32_t)row < (uint32_t)size[0];
        x += (int64_t)row * size[1] + column;
#pragma unroll
        for (int i = 0; i < count; i++) v[i] = inside && (uint32_t)(column + i) < (uint32_t)size[1] ? x[i] : 0.0f;
    }
};

struct run_grid {
    divisor runs, rows, groups; /* of a row, of a plane, of a sample */
    int32_t total;              /* runs of all samples and, of one channel, groups */
};

/* A thread: a run of M channels. Of one channel, threads take runs of all groups; of several, a block has one group,
 * and shares the weights of some channels of x at a time, with 0 for channels beyond the last. */
template <int K, int step, int M>
__global__ void __launch_bounds__(THREADS) correlate_runs(const correlation c, const run_grid g) {
    constexpr int SHARED = M == 1 ? 1 : 16; /* channels */
    __shared__ pack<float, M> weights[SHARED][K * K];
    const int which = (int)(blockIdx.x * THREADS + threadIdx.x);
    const bool in = which < g.total;
    if (M == 1 && !in) return;
    const int line = (int)quotient(in ? (uint32_t)which : 0, g.runs), j = (which - line * (int)g.runs.size) * RUN;
    const int plane_number = (int)quotient((uint32_t)line, g.rows), i = line - plane_number * (int)g.rows.size;
    const int group =
        M > 1 ? (int)blockIdx.y : plane_number - (int)quotient((uint32_t)plane_number, g.groups) * (int)g.groups.size;
    const int64_t item = M > 1 ? (int64_t)plane_number * c.groups + group : plane_number,
                  x_plane = (int64_t)c.size[0] * c.size[1];
    const float *weight = static_cast<const float *>(c.weight) + group * c.weight_group + c.weight_tap[0];
    const float *x = static_cast<const float *>(c.source) + item * c.channels * x_plane;
    float sum[M][RUN];
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int q = 0; q < RUN; q++)
            sum[m][q] = c.bias && m < c.m ? static_cast<const float *>(c.bias)[group * c.m + m] : 0.0f;
    for (int first = 0; first < c.channels; first += SHARED) {
        const int end = c.channels - first < SHARED ? c.channels - first : SHARED;
        if (M > 1) {
            __syncthreads();
            for (int at = (int)threadIdx.x; at < end * K * K * M; at += THREADS) {
                const int m = at % M, t = at / M % (K * K), channel = at / M / (K * K);
                weights[channel][t].v[m] = m < c.m ? weight[m * c.weight_m + (first + channel) * c.weight_channel +
                                                            t / K * c.weight_tap[1] + t % K * c.weight_tap[2]]
                                                   : 0.0f;
            }
            __syncthreads();
            if (!in) continue;
        }
        for (int channel = 0; channel < end; channel++, x += x_plane)
#pragma unroll
            for (int r = 0; r < K; r++) {
                const seen_row<K, step> row(x, i * step + c.low[0] + r, j * step + c.low[1], c.size);
#pragma unroll
                for (int s = 0; s < K; s++) {
                    pack<float, M> w;
                    if (M > 1)
                        w = weights[channel][r * K + s];
                    else
                        w.v[0] =
                            weight[(first + channel) * c.weight_channel + r * c.weight_tap[1] + s * c.weight_tap[2]];
#pragma unroll
                    for (int m = 0; m < M; m++)
#pragma unroll
                        for (int q = 0; q < RUN; q++) sum[m][q] += w.v[m] * row.v[q * step + s];
                }
            }
    }
    if (!in) return;
    const int columns = (int)c.columns.size;
    float *out = static_cast<float *>(c.out) + item * c.out_group + (int64_t)i * columns + j;
    bool is_number = true;
#pragma unroll
    for (int m = 0; m < M; m++, out += c.out_plane) {
        if (m >= c.m) break;
#pragma unroll
        for (int q = 0; q < RUN; q++) is_number &= sum[m][q] == sum[m][q];
        if (columns % RUN == 0 && c.out_wide) {
            *reinterpret_cast<pack<float, RUN> *>(out) = {{sum[m][0], sum[m][1], sum[m][2], sum[m][3]}};
            continue;
        }
#pragma unroll
        for (int q = 0; q < RUN; q++)
            if (j + q < columns) out[q] = sum[m][q];
    }
    if (is_number || !c.adjoint) return;
    const int sample = (int)quotient((uint32_t)item, g.groups), local_group = (int)item - sample * (int)g.groups.size;
#pragma unroll 1
    for (int at = 0; at < c.m * RUN; at++) {
        const int m = at / RUN, column = j + at % RUN;
        if (column >= columns) continue;
        const output_position here(c, local_group, sample * (int)c.positions.size + i * columns + column);
        float *to = static_cast<float *>(c.out) + here.out + m * c.out_plane;
        if (*to != *to) *to = sum_inside<float>(c, local_group, m, here);
    }
}

struct run_weight_args {
    weight_args w;
    divisor runs, rows;
    int32_t samples, a_part; /* of the batch */
};

/* A block: one channel of x with one of y, in the samples of a part. */
template <int K, int step> __global__ void __launch_bounds__(THREADS) sum_weight_runs(const run_weight_args g) {
    __shared__ float sums[THREADS / 32][K * K];
    const weight_args &w = g.w;
    const int in = (int)blockIdx.x % w.in, m = (int)blockIdx.x / w.in, group = (int)blockIdx.y;
    const int from = (int)blockIdx.z * g.a_part, samples = g.samples - from < g.a_part ? g.samples - from : g.a_part;
    const int64_t x_plane = (int64_t)w.size[0] * w.size[1], y_plane = w.positions.size;
    const int columns = (int)w.columns.size, a_plane = (int)(g.runs.size * g.rows.size);
    const float *x = static_cast<const float *>(w.x) + (((int64_t)from * w.groups + group) * w.in + in) * x_plane;
    const float *y = static_cast<const float *>(w.y) + (((int64_t)from * w.groups + group) * w.m + m) * y_plane;
    float sum[K][K] = {};
    int sample = 0, run = (int)threadIdx.x; /* of the plane */
    for (;;) {
        for (; run >= a_plane && sample < samples; run -= a_plane) {
            sample++;
            x += w.groups * w.in * x_plane;
            y += w.groups * w.m * y_plane;
        }
        if (sample >= samples) break;
        const int i = (int)quotient((uint32_t)run, g.runs), j = (run - i * (int)g.runs.size) * RUN;
        float slope[RUN];
#pragma unroll
        for (int q = 0; q < RUN; q++) slope[q] = j + q < columns ? y[(int64_t)i * columns + j + q] : 0.0f;
#pragma unroll
        for (int r = 0; r < K; r++) {
            const seen_row<K, step> row(x, i * step - w.padding[0] + r, j * step - w.padding[1], w.size);
#pragma unroll
            for (int s = 0; s < K; s++)
#pragma unroll
                for (int q = 0; q < RUN; q++)
                    if (q == 0 || j + q < columns) sum[r][s] += slope[q] * row.v[q * step + s];
        }
        run += THREADS;
    }
#pragma unroll
    for (int r = 0; r < K; r++)
#pragma unroll
        for (int s = 0; s < K; s++) {
            float all = sum[r][s];
#pragma unroll
            for (int half = 16; half > 0; half /= 2) all += __shfl_xor_sync(0xffffffffu, all, half);
            if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32][r * K + s] = all;
        }
    __syncthreads();
    if (threadIdx.x >= K * K) return;
    float all = sums[0][threadIdx.x];
    for (int warp = 1; warp < THREADS / 32; warp++) all += sums[warp][threadIdx.x];
    float *out = static_cast<float *>(w.out) + blockIdx.z * w.part_stride + ((int64_t)group * w.m + m) * w.n;
    out[in * K * K + (int)threadIdx.x] = all;
}

/* ---- which kernel ------------------------------------------------------------------------------------------------ */

#define KERNELS(name, ...)                                      \
    {                                                           \
        {name<3, 1, ##__VA_ARGS__>, name<3, 2, ##__VA_ARGS__>}, \
        {name<5, 1, ##__VA_ARGS__>, name<5, 2, ##__VA_ARGS__>}, \
        {name<7, 1, ##__VA_ARGS__>, name<7, 2, ##__VA_ARGS__>}, \
    }

static bool has_kernel(int64_t rows, int64_t columns, int64_t step0, int64_t step1) {
    return rows == columns && (rows == 3 || rows == 5 || rows == 7) && step0 == step1 && (step0 == 1 || step0 == 2);
}

bool nr_conv_runs_pay(const nr_call *call, const correlation &c, int32_t groups) {
    const int64_t columns = c.tap_columns.size, runs = (c.columns.size + RUN - 1) / RUN;
    bool dense = c.out_whole && c.out_column == 1 && c.phases.count.size == 1;
    for (int d = 0; d < 2; d++) dense = dense && (c.tap_step[d] == 1 || (c.tap_step[d] == -1 && c.step[d] == 1));
    return call->dtype == NORCH_FLOAT32 && dense && groups == c.groups && c.m <= FEW &&
           (c.channels <= FEW || c.m > 1) && has_kernel(c.taps.size / columns, columns, c.step[0], c.step[1]) &&
           (double)c.n / c.columns.size * (double)runs * c.groups < 1e9;
}

int32_t nr_conv_runs(const nr_call *call, const correlation &all, int32_t groups) {
    using kernel = void (*)(const correlation, const run_grid);
    static const kernel one[3][2] = KERNELS(correlate_runs, 1), few[3][2] = KERNELS(correlate_runs, FEW);
    correlation c = all;
    for (int d = 0; d < 2; d++) { /* taps that go backward, from the other end */
        if (c.tap_step[d] != -1) continue;
        const int32_t last = (int32_t)(d ? c.tap_columns.size : c.taps.size / c.tap_columns.size) - 1;
        c.low[d] -= last;
        c.weight_tap[0] += last * c.weight_tap[1 + d];
        c.weight_tap[1 + d] = -c.weight_tap[1 + d];
        c.tap_step[d] = 1;
    }
    run_grid g;
    g.runs = divisor_of((c.columns.size + RUN - 1) / RUN);
    g.rows = divisor_of(c.positions.size / c.columns.size);
    g.groups = divisor_of(groups);
    g.total = (int32_t)(c.n / (int32_t)c.columns.size * (int32_t)g.runs.size * (c.m == 1 ? groups : 1));
    LAUNCH((c.m == 1 ? one : few)[c.tap_columns.size / 2 - 1][c.step[0] - 1],
           dim3(blocks_for(g.total, THREADS), c.m == 1 ? 1u : (unsigned)groups), THREADS, 0, gpu_of(call)->stream, c,
           g);
    return launched(call);
}

bool nr_conv_weight_runs_pay(const nr_call *call, const weight_args &w) {
    const int64_t columns = w.tap_columns.size;
    return call->dtype == NORCH_FLOAT32 && w.k > 0 && w.m <= FEW && w.in <= FEW && w.dilation[0] == 1 &&
           w.dilation[1] == 1 && has_kernel(w.taps.size / columns, columns, w.stride[0], w.stride[1]);
}

int32_t nr_conv_weight_runs(const nr_call *call, weight_args w, void *out) {
    using kernel = void (*)(const run_weight_args);
    static const kernel kernels[3][2] = KERNELS(sum_weight_runs);
    const nr_gpu *gpu = gpu_of(call);
    run_weight_args g = {};
    g.runs = divisor_of((w.columns.size + RUN - 1) / RUN);
    g.rows = divisor_of(w.positions.size / w.columns.size);
    g.samples = w.k / (int32_t)w.positions.size;
    const int64_t blocks = (int64_t)w.groups * w.m * w.in, slots = (int64_t)12 * gpu->multiprocessors;
    int64_t parts = (slots + blocks - 1) / blocks;
    if (parts > g.samples) parts = g.samples;
    g.a_part = (int32_t)((g.samples + parts - 1) / parts);
    w.parts = (g.samples + g.a_part - 1) / g.a_part;
    w.part_stride = (int64_t)w.groups * w.m * w.n;
    const size_t bytes = (size_t)(w.part_stride * w.parts) * sizeof(float);
    void *scratch = w.parts > 1 ? nr_cuda_scratch(gpu, bytes) : nullptr;
    if (w.parts > 1 && !scratch) return NORCH_ERROR_MEMORY;
    w.out = scratch ? scratch : out;
    g.w = w;
    LAUNCH(kernels[w.tap_columns.size / 2 - 1][w.stride[0] - 1],
           dim3((unsigned)(w.m * w.in), (unsigned)w.groups, (unsigned)w.parts), THREADS, 0, gpu->stream, g);
    int32_t failed = launched(call);
    if (scratch && !failed) failed = nr_conv_add_parts(call, out, scratch, w.part_stride, w.parts);
    if (scratch) nr_cuda_scratch_free(gpu, scratch, bytes);
    return failed;
}
