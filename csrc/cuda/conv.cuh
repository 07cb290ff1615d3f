/* conv: declarations that the files of convolutions share. They describe a convolution to kernels as a product of
 * matrices that are never stored, and the meaning of their rows and columns.
 *
 *   conv.cu          chooses; the plans of the two directions
 *   conv_plain.cu    any dtype and device: tiles of tile.cuh, and a thread an element for groups of few channels
 *   conv_mma.cu      correlations of float32, float16 and bfloat16 on tensor cores
 *   conv_weight.cu   the weight of float32 on tensor cores, and of what was widened to it
 *   conv_winograd.cu the same of 3 x 3 kernels of many channels
 *   conv_depthwise.cu  few channels in a group */
#ifndef NR_CUDA_CONV_H
#define NR_CUDA_CONV_H

#include "../families/conv.h"
#include "cuda.cuh"

#define MOST_GROUPS 65535 /* blockIdx.y */
#define FEW 4             /* up to this number of channels of a group tiles do not pay */

/* Phases of positions, those equal modulo the stride, as further rows of the product: row m is phase m % count of
 * channel m / count. A position is then a cell of stride x stride elements of the output. */
struct phase_rows {
    divisor count, columns; /* count 1: none */
    int32_t stride[2], padding[2], kernel[2], size[2];
};

/* A correlation of a source (batch, groups, channels, size): out[m][position p] = bias[m] + the sum over channels and
 * taps t of weight[m][channel][t] source[channel][p * step + low + t * tap_step]. */
struct correlation {
    const void *source, *weight, *bias;
    void *out;
    int32_t groups, channels, m, n, k; /* n: positions of the whole batch; k: channels * taps */
    int32_t size[2], step[2], low[2], tap_step[2];
    divisor columns, positions; /* of the grid */
    divisor tap_columns, taps;
    int64_t weight_group, weight_m, weight_channel; /* strides in elements */
    int32_t weight_tap[3];                          /* of the first tap, of its rows and columns */
    int64_t out_group, out_plane, out_row, out_column;
    bool out_wide;  /* 16 bytes of a row of positions may be written at once */
    bool out_whole; /* every element of the output is written */
    bool adjoint;   /* positions outside the source are skipped: 0 times an infinite weight would be NaN */
    phase_rows phases;
};

/* The meaning of the k-th row of the product, in a table for the threads of a block. */
struct tap_entry {
    int32_t source, weight, row, column;
};

DEVICE tap_entry tap_of(const correlation &c, int k) {
    const uint32_t channel = quotient((uint32_t)k, c.taps), tap = (uint32_t)k - channel * c.taps.size;
    const uint32_t r = quotient(tap, c.tap_columns), s = tap - r * c.tap_columns.size;
    tap_entry e;
    e.row = (int32_t)r * c.tap_step[0];
    e.column = (int32_t)s * c.tap_step[1];
    e.source = (int32_t)channel * c.size[0] * c.size[1] + e.row * c.size[1] + e.column;
    e.weight = (int32_t)(channel * c.weight_channel) + c.weight_tap[0] + (int32_t)r * c.weight_tap[1] +
               (int32_t)s * c.weight_tap[2];
    return e;
}

/* The offsets at which position n reads and writes. */
struct output_position {
    int64_t source, out; /* of its sample's first channel in the group; the source's is that of tap 0 */
    int32_t row, column;

    DEVICE output_position(const correlation &c, int group, int n) {
        const uint32_t sample = quotient((uint32_t)n, c.positions), rest = (uint32_t)n - sample * c.positions.size;
        const uint32_t i = quotient(rest, c.columns), j = rest - i * c.columns.size;
        const int64_t item = (int64_t)sample * c.groups + group;
        row = (int32_t)i * c.step[0] + c.low[0];
        column = (int32_t)j * c.step[1] + c.low[1];
        source = item * c.channels * c.size[0] * c.size[1] + (int64_t)row * c.size[1] + column;
        out = item * c.out_group + i * c.out_row + j * c.out_column;
    }

    DEVICE bool sees(const correlation &c, const tap_entry &e) const {
        return ((uint32_t)(row + e.row) < (uint32_t)c.size[0]) & ((uint32_t)(column + e.column) < (uint32_t)c.size[1]);
    }
};

/* One element by plain products, without positions outside the source. */
template <class T> DEVICE T sum_inside(const correlation &c, int group, int m, const output_position &here) {
    const T *x = static_cast<const T *>(c.source) + here.source;
    const T *weight = static_cast<const T *>(c.weight) + group * c.weight_group + m * c.weight_m;
    T sum = c.bias ? static_cast<const T *>(c.bias)[(int64_t)group * c.m + m] : T(0);
#pragma unroll 1
    for (int k = 0; k < c.k && sum == sum; k++) {
        const tap_entry e = tap_of(c, k);
        if (here.sees(c, e)) sum += weight[e.weight] * x[e.source];
    }
    return sum;
}

/* The weight as sums over all positions: out[m = channel of y][n = tap of a channel of x]. */
struct weight_args {
    const void *x, *y;
    void *out;                   /* parts > 1: [part][group][m][n] */
    int32_t groups, in, m, n, k; /* n: taps of all channels; k: positions of the whole batch */
    int32_t size[2], stride[2], padding[2], dilation[2];
    divisor columns, positions, tap_columns, taps;
    int32_t k_part, parts;
    int64_t part_stride;
    bool exact; /* x and y were widened from 16 bits: TF32 holds them */
};

/* What position k means for all taps and channels: its offset in y, and in x that of tap 0. */
struct position_entry {
    int64_t x, y;
    int32_t row, column;
};

DEVICE position_entry position_of(const weight_args &w, int group, int k) {
    const uint32_t sample = quotient((uint32_t)k, w.positions), rest = (uint32_t)k - sample * w.positions.size;
    const uint32_t i = quotient(rest, w.columns), j = rest - i * w.columns.size;
    const int64_t item = (int64_t)sample * w.groups + group;
    position_entry p;
    p.row = (int32_t)i * w.stride[0] - w.padding[0];
    p.column = (int32_t)j * w.stride[1] - w.padding[1];
    p.x = item * w.in * w.size[0] * w.size[1] + (int64_t)p.row * w.size[1] + p.column;
    p.y = item * w.m * w.positions.size + rest;
    return p;
}

/* Divides the positions of the weight into at most `most` parts, each a multiple of `round`. */
static inline void cut(weight_args *w, int64_t most, int round) {
    const int64_t parts = most < 1 ? 1 : most;
    w->k_part = (int32_t)(((w->k + parts - 1) / parts + round - 1) / round * round);
    w->parts = (w->k + w->k_part - 1) / w->k_part;
}

/* ---- the files ------------------------------------------------------------------------------------------------- */

/* Each launches for some groups, at most MOST_GROUPS, from group 0 of what the arguments point at. */
int32_t nr_conv_plain(const nr_call *call, const correlation &c, int32_t groups);
bool nr_conv_mma_pays(const nr_call *call, const correlation &c, int32_t groups);
int32_t nr_conv_mma(const nr_call *call, const correlation &c, int32_t groups);
bool nr_conv_runs_pay(const nr_call *call, const correlation &c, int32_t groups);
int32_t nr_conv_runs(const nr_call *call, const correlation &c, int32_t groups);

/* The weight: w lacks only out, k_part, parts and part_stride. */
int32_t nr_conv_weight_plain(const nr_call *call, weight_args w, void *out);
bool nr_conv_weight_mma_pays(const nr_call *call, const weight_args &w);
int32_t nr_conv_weight_mma(const nr_call *call, weight_args w, void *out);
bool nr_conv_winograd_pays(const nr_call *call, const weight_args &w);
int32_t nr_conv_winograd(const nr_call *call, const weight_args &w, void *out);
bool nr_conv_weight_runs_pay(const nr_call *call, const weight_args &w);
int32_t nr_conv_weight_runs(const nr_call *call, weight_args w, void *out);

/* The bias alone, or zeros: to `items` planes, of which `channels` are a sample. */
int32_t nr_conv_fill(const nr_call *call, void *out, const void *bias, int64_t items, int64_t channels, int64_t plane);
/* The parts of each element, in order: out[i] = the sum of parts[part][i]; n elements of call's dtype. */
int32_t nr_conv_add_parts(const nr_call *call, void *out, const void *parts, int64_t n, int count);

#endif
