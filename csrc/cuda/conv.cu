/* conv: convolutions and their adjoints as products of matrices (tile.cuh, with the picture) that exist nowhere:
 * what a thread needs of them it reads from the tensors, with zeros where a tap lies in the padding.
 *
 *   forward    y[channel][position] = weight[channel][tap of a channel of x] x[tap of a channel][position]
 *   input      the same from y, with the taps that reach a phase: positions of x that are equal modulo the stride
 *   weight     weight[channel][tap of a channel] = y[channel][position] x[position][tap of a channel]
 *
 * Positions run over the batch, too. Where a group has few output channels (depthwise convolutions) a thread sums each
 * element by itself. Sums are cut by shape alone, and their parts added in order. The way of looking at it: Chetlur et
 * al., "cuDNN: Efficient Primitives for Deep Learning" (2014). */
#include "../families/conv.h"
#include "tile.cuh"

#define FEW 4                             /* channels of a group that are not worth tiles */
#define MOST_POSITIONS ((int64_t)1 << 30) /* of one launch */
#define MOST_GROUPS 65535                 /* blockIdx.y */
#define BUSY 128                          /* blocks that leave no multiprocessor of a middling device idle */

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
    int64_t out_plane, out_row, out_column;
    bool out_wide; /* 16 bytes of a row of positions may be written at once */
};

/* What the k-th row of the product means, for the threads of a block to look up. */
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

/* Where position n reads and writes. */
struct spot {
    int64_t source, out; /* of its sample's first channel in the group; the source's is that of tap 0 */
    int32_t row, column;

    DEVICE spot(const correlation &c, int group, int n) {
        const uint32_t sample = quotient((uint32_t)n, c.positions), rest = (uint32_t)n - sample * c.positions.size;
        const uint32_t i = quotient(rest, c.columns), j = rest - i * c.columns.size;
        const int64_t item = (int64_t)sample * c.groups + group;
        row = (int32_t)i * c.step[0] + c.low[0];
        column = (int32_t)j * c.step[1] + c.low[1];
        source = item * c.channels * c.size[0] * c.size[1] + (int64_t)row * c.size[1] + column;
        out = item * c.m * c.out_plane + i * c.out_row + j * c.out_column;
    }

    DEVICE bool sees(const correlation &c, const tap_entry &e) const {
        return (uint32_t)(row + e.row) < (uint32_t)c.size[0] && (uint32_t)(column + e.column) < (uint32_t)c.size[1];
    }
};

/* Sources look up the taps of a round in shared memory; those of the next are written meanwhile. */
template <int BK> struct tap_table {
    tap_entry *entries; /* [2][BK] */
    int next;           /* the k whose taps are to be written */

    DEVICE tap_table(tap_entry *memory) : entries(memory), next(0) {}
    DEVICE void write(const correlation &c) {
        const int k = next + (int)threadIdx.x;
        if (threadIdx.x < BK && k < c.k) entries[k / BK % 2 * BK + threadIdx.x] = tap_of(c, k);
        next += BK;
    }
};

/* Taps of positions: neighbouring threads take neighbouring positions. */
template <class T, int outer, int BK> struct position_source {
    static constexpr int count = outer * BK / NR_BLOCK, k_on = NR_BLOCK / outer;
    static_assert(NR_BLOCK % outer == 0 && count > 0, "a thread takes one position");
    const correlation &c;
    const T *x;
    const tap_entry *entries;
    spot here;
    int k, left; /* this thread's first row in a round; rows to come */
    bool in;
    T next[count];

    DEVICE position_source(const correlation &g, const tap_entry *entries, int group, int n0)
        : c(g), x(static_cast<const T *>(g.source)), entries(entries),
          here(g, group, n0 + (int)threadIdx.x % outer < g.n ? n0 + (int)threadIdx.x % outer : 0),
          k((int)threadIdx.x / outer), left(g.k), in(n0 + (int)threadIdx.x % outer < g.n) {
        x += here.source;
    }

    DEVICE void fetch() {
#pragma unroll
        for (int e = 0; e < count; e++) {
            next[e] = T(0);
            if (in && k + e * k_on < left) {
                const tap_entry tap = entries[k + e * k_on];
                if (here.sees(c, tap)) next[e] = x[tap.source];
            }
        }
        left -= BK;
    }

    DEVICE void put(T *tile) const {
#pragma unroll
        for (int e = 0; e < count; e++)
            tile[(k + e * k_on) * (outer + NR_TILE_GAP) + (int)threadIdx.x % outer] = next[e];
    }
};

/* Weights of output channels: neighbouring threads read along k. */
template <class T, int outer, int BK> struct weight_source {
    static constexpr int count = outer * BK / NR_BLOCK, o_on = NR_BLOCK / BK;
    static_assert(NR_BLOCK % BK == 0 && count > 0, "a thread takes one row");
    const correlation &c;
    const T *x;
    const tap_entry *entries;
    int o, left, m_left;
    T next[count];

    DEVICE weight_source(const correlation &g, const tap_entry *entries, int group, int m0)
        : c(g), x(static_cast<const T *>(g.weight)), entries(entries), o((int)threadIdx.x / BK),
          left(g.k - (int)threadIdx.x % BK), m_left(g.m - m0 - o) {
        x += group * g.weight_group + (m0 + o) * g.weight_m;
    }

    DEVICE void fetch() {
        const int64_t tap = left > 0 ? entries[threadIdx.x % BK].weight : 0;
#pragma unroll
        for (int e = 0; e < count; e++) next[e] = left > 0 && e * o_on < m_left ? x[tap + e * o_on * c.weight_m] : T(0);
        left -= BK;
    }

    DEVICE void put(T *tile) const {
#pragma unroll
        for (int e = 0; e < count; e++) tile[(int)threadIdx.x % BK * (outer + NR_TILE_GAP) + o + e * o_on] = next[e];
    }
};

/* Turns a source to the other half of the table after each fetch. */
template <class Source, int BK> struct turning : Source {
    using Source::Source;
    int half = 0;
    DEVICE void fetch() {
        Source::fetch();
        half ^= BK;
        this->entries += half ? BK : -BK;
    }
};

template <class S> __global__ void __launch_bounds__(NR_BLOCK) correlate(const correlation c) {
    using T = typename S::T;
    __shared__ tap_entry entries[2 * S::BK];
    const int tiles_n = (c.n + S::BN - 1) / S::BN, group = (int)blockIdx.y;
    const int m0 = (int)blockIdx.x / tiles_n * S::BM, n0 = (int)blockIdx.x % tiles_n * S::BN;
    tap_table<S::BK> table(entries);
    table.write(c);
    table.write(c);
    turning<weight_source<T, S::BM, S::BK>, S::BK> a(c, entries, group, m0);
    turning<position_source<T, S::BN, S::BK>, S::BK> b(c, entries, group, n0);
    T sum[S::TM][S::TN] = {};
    __syncthreads();
    multiply_tiles<S>(sum, a, b, (c.k + S::BK - 1) / S::BK, [&] { table.write(c); });

    const T *bias = static_cast<const T *>(c.bias) + (int64_t)group * c.m;
    T *out = static_cast<T *>(c.out);
#pragma unroll
    for (int j = 0; j < S::TN; j += S::RUN_N) {
        const int n = n0 + S::column(j);
        if (n >= c.n) continue;
        int64_t to[S::RUN_N];
#pragma unroll
        for (int q = 0; q < S::RUN_N; q++) to[q] = n + q < c.n ? spot(c, group, n + q).out : 0;
#pragma unroll
        for (int i = 0; i < S::TM; i++) {
            const int m = m0 + S::row(i);
            if (m >= c.m) continue;
            const T start = c.bias ? bias[m] : T(0);
            if (c.out_wide) { /* runs of RUN_N neither leave the matrix nor a sample */
                pack<T, S::RUN_N> run;
#pragma unroll
                for (int q = 0; q < S::RUN_N; q++) run.v[q] = sum[i][j + q] + start;
                *reinterpret_cast<pack<T, S::RUN_N> *>(out + to[0] + m * c.out_plane) = run;
            } else {
#pragma unroll
                for (int q = 0; q < S::RUN_N; q++)
                    if (n + q < c.n) out[to[q] + m * c.out_plane] = sum[i][j + q] + start;
            }
        }
    }
}

/* A thread an element. */
template <class T> __global__ void __launch_bounds__(NR_BLOCK, 4) correlate_few(const correlation c) {
    const int64_t n = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (n >= c.n) return;
    const int group = (int)blockIdx.y, m = (int)blockIdx.z;
    const spot here(c, group, (int)n);
    const T *x = static_cast<const T *>(c.source) + here.source;
    const T *weight = static_cast<const T *>(c.weight) + group * c.weight_group + m * c.weight_m;
    T sum = c.bias ? static_cast<const T *>(c.bias)[(int64_t)group * c.m + m] : T(0);
    for (int channel = 0; channel < c.channels; channel++) {
        const T *plane = x + (int64_t)channel * c.size[0] * c.size[1];
        const T *kernel = weight + channel * c.weight_channel + c.weight_tap[0];
        for (uint32_t r = 0; r * c.tap_columns.size < c.taps.size; r++)
            for (uint32_t s = 0; s < c.tap_columns.size; s++) {
                tap_entry e;
                e.row = (int32_t)r * c.tap_step[0];
                e.column = (int32_t)s * c.tap_step[1];
                if (here.sees(c, e))
                    sum += kernel[(int32_t)r * c.weight_tap[1] + (int32_t)s * c.weight_tap[2]] *
                           plane[e.row * c.size[1] + e.column];
            }
    }
    static_cast<T *>(c.out)[here.out + m * c.out_plane] = sum;
}

/* ---- the weight: sums over all positions ------------------------------------------------------------------------- */

struct weight_args {
    const void *x, *y;
    void *out;                   /* parts > 1: [part][group][m][n] */
    int32_t groups, in, m, n, k; /* n: taps of all channels; k: positions of the whole batch */
    int32_t size[2], stride[2], padding[2], dilation[2];
    divisor columns, positions, tap_columns, taps;
    int32_t k_part, parts;
    int64_t part_stride;
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

/* Taps of x, n of them from n0 on, or channels of y: neighbouring threads take neighbouring positions, each always those
 * that are equal modulo BK. */
template <class T, int outer, int BK, bool of_x> struct gradient_source {
    static constexpr int count = outer * BK / NR_BLOCK, o_on = NR_BLOCK / BK;
    static_assert(NR_BLOCK % BK == 0 && count > 0, "a thread takes one row");
    const weight_args &w;
    int group, k, k_end, o, o_left;
    int32_t row[count], column[count], offset[count]; /* of_x: of each tap */
    T next[count];

    DEVICE gradient_source(const weight_args &g, int group, int o0, int k_begin, int k_end)
        : w(g), group(group), k(k_begin + (int)threadIdx.x % BK), k_end(k_end), o((int)threadIdx.x / BK),
          o_left((of_x ? g.n : g.m) - o0 - o) {
#pragma unroll
        for (int e = 0; e < count; e++) {
            const uint32_t n = (uint32_t)(o0 + o + e * o_on), channel = quotient(n, g.taps);
            const uint32_t tap = n - channel * g.taps.size, r = quotient(tap, g.tap_columns);
            row[e] = (int32_t)r * g.dilation[0];
            column[e] = (int32_t)(tap - r * g.tap_columns.size) * g.dilation[1];
            offset[e] = of_x ? (int32_t)channel * g.size[0] * g.size[1] + row[e] * g.size[1] + column[e] : (int32_t)n;
        }
    }

    DEVICE void fetch() {
        const bool in = k < k_end;
        const position_entry p = position_of(w, group, in ? k : 0);
#pragma unroll
        for (int e = 0; e < count; e++) {
            next[e] = T(0);
            if (!in || e * o_on >= o_left) continue;
            if constexpr (of_x) {
                if ((uint32_t)(p.row + row[e]) < (uint32_t)w.size[0] &&
                    (uint32_t)(p.column + column[e]) < (uint32_t)w.size[1])
                    next[e] = static_cast<const T *>(w.x)[p.x + offset[e]];
            } else {
                next[e] = static_cast<const T *>(w.y)[p.y + (int64_t)offset[e] * w.positions.size];
            }
        }
        k += BK;
    }

    DEVICE void put(T *tile) const {
#pragma unroll
        for (int e = 0; e < count; e++) tile[(int)threadIdx.x % BK * (outer + NR_TILE_GAP) + o + e * o_on] = next[e];
    }
};

template <class S> __global__ void __launch_bounds__(NR_BLOCK) sum_weight(const weight_args w) {
    using T = typename S::T;
    const int tiles_n = (w.n + S::BN - 1) / S::BN, group = (int)blockIdx.y, part = (int)blockIdx.z;
    const int m0 = (int)blockIdx.x / tiles_n * S::BM, n0 = (int)blockIdx.x % tiles_n * S::BN;
    const int k_begin = part * w.k_part, k_end = w.k - k_begin < w.k_part ? w.k : k_begin + w.k_part;
    gradient_source<T, S::BM, S::BK, false> a(w, group, m0, k_begin, k_end);
    gradient_source<T, S::BN, S::BK, true> b(w, group, n0, k_begin, k_end);
    T sum[S::TM][S::TN] = {};
    multiply_tiles<S>(sum, a, b, (k_end - k_begin + S::BK - 1) / S::BK, [] {});
    T *out = static_cast<T *>(w.out) + part * w.part_stride + (int64_t)group * w.m * w.n;
#pragma unroll
    for (int i = 0; i < S::TM; i++)
#pragma unroll
        for (int j = 0; j < S::TN; j++) {
            const int m = m0 + S::row(i), n = n0 + S::column(j);
            if (m < w.m && n < w.n) out[(int64_t)m * w.n + n] = sum[i][j];
        }
}

/* A block an element of a part: groups of few channels make tiles that are mostly empty. */
template <class T> __global__ void __launch_bounds__(NR_BLOCK) sum_weight_few(const weight_args w) {
    __shared__ T sums[NR_BLOCK];
    const int m = (int)blockIdx.x / w.n, n = (int)blockIdx.x % w.n, group = (int)blockIdx.y, part = (int)blockIdx.z;
    const int t = (int)threadIdx.x;
    const int k_begin = part * w.k_part, k_end = w.k - k_begin < w.k_part ? w.k : k_begin + w.k_part;
    const uint32_t channel = quotient((uint32_t)n, w.taps), tap = (uint32_t)n - channel * w.taps.size;
    const uint32_t r = quotient(tap, w.tap_columns), s = tap - r * w.tap_columns.size;
    const int32_t row = (int32_t)r * w.dilation[0], column = (int32_t)s * w.dilation[1];
    const T *x = static_cast<const T *>(w.x) + (int64_t)channel * w.size[0] * w.size[1] + row * w.size[1] + column;
    const T *y = static_cast<const T *>(w.y) + (int64_t)m * w.positions.size;
    T sum = 0;
    for (int k = k_begin + t; k < k_end; k += NR_BLOCK) {
        const position_entry p = position_of(w, group, k);
        if ((uint32_t)(p.row + row) < (uint32_t)w.size[0] && (uint32_t)(p.column + column) < (uint32_t)w.size[1])
            sum += x[p.x] * y[p.y];
    }
    sums[t] = sum;
    for (int half = NR_BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) sums[t] += sums[t + half];
    }
    if (t == 0) static_cast<T *>(w.out)[part * w.part_stride + ((int64_t)group * w.m + m) * w.n + n] = sums[0];
}

/* The parts of each element, in order. */
template <class T>
__global__ void __launch_bounds__(NR_BLOCK) add_parts(T *out, const T *parts, int64_t n, int64_t stride, int count) {
    const int64_t i = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= n) return;
    T sum = parts[i];
#pragma unroll 8
    for (int part = 1; part < count; part++) sum += parts[part * stride + i];
    out[i] = sum;
}

/* ---- which kernel, and what it is told ---------------------------------------------------------------------------- */

template <class S> static int64_t tiles_of(int64_t m, int64_t n) {
    return ((m + S::BM - 1) / S::BM) * ((n + S::BN - 1) / S::BN);
}

/* Launches `correlate` with tiles of shape S where they fill the device or are the last choice. */
template <class S> static bool correlate_by(const nr_call *call, const correlation &c, int32_t groups, bool last) {
    const int64_t tiles = tiles_of<S>(c.m, c.n);
    if (!last && ((S::BM > 32 && c.m * 2 <= S::BM) || tiles * groups < BUSY)) return false;
    LAUNCH(correlate<S>, dim3((unsigned)tiles, (unsigned)groups), NR_BLOCK, 0, gpu_of(call)->stream, c);
    return true;
}

template <class T> static void correlate_tiled(const nr_call *call, const correlation &c, int32_t groups) {
    if constexpr (sizeof(T) == 4) {
        if (correlate_by<tile_shape<T, T, 128, 128, 8, 8, 8>>(call, c, groups, false)) return;
        if (correlate_by<tile_shape<T, T, 64, 128, 16, 4, 8>>(call, c, groups, false)) return;
        if (correlate_by<tile_shape<T, T, 32, 128, 16, 4, 4>>(call, c, groups, false)) return;
    } else {
        if (correlate_by<tile_shape<T, T, 64, 64, 8, 4, 4>>(call, c, groups, false)) return;
    }
    correlate_by<tile_shape<T, T, 32, 32, 16, 2, 2>>(call, c, groups, true);
}

/* One launch, or several where there are more groups than a grid has rows. */
template <class T> static int32_t run_correlation(const nr_call *call, const correlation &all) {
    if (all.n == 0) return NORCH_OK;
    const int64_t channel = (int64_t)all.size[0] * all.size[1];
    for (int32_t from = 0; from < all.groups; from += MOST_GROUPS) {
        const int32_t groups = all.groups - from < MOST_GROUPS ? all.groups - from : MOST_GROUPS;
        correlation c = all;
        c.source = static_cast<const T *>(all.source) + from * all.channels * channel;
        c.weight = static_cast<const T *>(all.weight) + from * all.weight_group;
        c.bias = all.bias ? static_cast<const T *>(all.bias) + (int64_t)from * all.m : nullptr;
        c.out = static_cast<T *>(all.out) + (int64_t)from * all.m * all.out_plane;
        if (c.m <= FEW)
            LAUNCH(correlate_few<T>, dim3(blocks_for(c.n, NR_BLOCK), (unsigned)groups, (unsigned)c.m), NR_BLOCK, 0,
                   gpu_of(call)->stream, c);
        else
            correlate_tiled<T>(call, c, groups);
        if (int32_t failed = launched(call)) return failed;
    }
    return NORCH_OK;
}

/* Fills what all correlations of a call share, but the grid: its columns and its positions in a sample. */
template <class T> static void set_grid(correlation *c, int64_t batch, int64_t rows, int64_t columns) {
    c->n = (int32_t)(batch * rows * columns);
    c->columns = divisor_of(columns);
    c->positions = divisor_of(rows * columns);
    c->out_wide = c->out_column == 1 && c->out_row == columns && rows * columns % 4 == 0 && c->out_plane % 4 == 0 &&
                  is_aligned(c->out, 4 * sizeof(T));
}

template <class T> static int32_t forward(const nr_call *call, const nr_conv_plan &p) {
    correlation c = {};
    const int64_t taps = p.kernel[0] * p.kernel[1];
    c.source = p.x;
    c.weight = p.weight;
    c.bias = p.bias;
    c.out = p.y;
    c.groups = (int32_t)p.groups;
    c.channels = (int32_t)p.in;
    c.m = (int32_t)p.out;
    c.k = (int32_t)(p.in * taps);
    for (int d = 0; d < 2; d++) {
        c.size[d] = (int32_t)p.size[d];
        c.step[d] = (int32_t)p.stride[d];
        c.low[d] = (int32_t)-p.padding[d];
        c.tap_step[d] = (int32_t)p.dilation[d];
    }
    c.tap_columns = divisor_of(p.kernel[1]);
    c.taps = divisor_of(taps);
    c.weight_group = p.out * p.in * taps;
    c.weight_m = p.in * taps;
    c.weight_channel = taps;
    c.weight_tap[1] = (int32_t)p.kernel[1];
    c.weight_tap[2] = 1;
    c.out_plane = p.result[0] * p.result[1];
    c.out_row = p.result[1];
    c.out_column = 1;
    set_grid<T>(&c, p.batch, p.result[0], p.result[1]);
    return run_correlation<T>(call, c);
}

/* Taps along one axis that reach positions phase + i * stride of x: the first, how many, and from one to the next; where
 * the first finds i in y, and how much further back each next one does. */
struct phase_taps {
    int64_t first, count, on, low, back;
};

static phase_taps taps_of(const nr_conv_plan &p, int d, int64_t phase) {
    phase_taps t = {0, 0, 1, 0, 0};
    for (int64_t r = 0; r < p.kernel[d]; r++) {
        const int64_t shifted = phase + p.padding[d] - r * p.dilation[d];
        if (shifted % p.stride[d] != 0) continue;
        if (t.count == 0) {
            t.first = r;
            t.low = shifted / p.stride[d];
        } else if (t.count == 1) {
            t.on = r - t.first;
            t.back = t.low - shifted / p.stride[d];
        }
        t.count++;
    }
    return t;
}

template <class T> static int32_t input(const nr_call *call, const nr_conv_plan &p) {
    const int64_t taps = p.kernel[0] * p.kernel[1];
    for (int64_t row = 0; row < p.stride[0] && row < p.size[0]; row++)
        for (int64_t column = 0; column < p.stride[1] && column < p.size[1]; column++) {
            const phase_taps t[2] = {taps_of(p, 0, row), taps_of(p, 1, column)};
            correlation c = {};
            c.source = p.y;
            c.weight = p.weight;
            c.bias = p.bias;
            c.out = static_cast<T *>(p.x) + row * p.size[1] + column;
            c.groups = (int32_t)p.groups;
            c.channels = (int32_t)p.out;
            c.m = (int32_t)p.in;
            c.k = (int32_t)(p.out * t[0].count * t[1].count);
            for (int d = 0; d < 2; d++) {
                c.size[d] = (int32_t)p.result[d];
                c.step[d] = 1;
                c.low[d] = (int32_t)t[d].low;
                c.tap_step[d] = (int32_t)-t[d].back;
            }
            c.tap_columns = divisor_of(t[1].count);
            c.taps = divisor_of(t[0].count * t[1].count);
            if (c.k == 0) c.channels = 0; /* the bias alone, or zeros */
            c.weight_group = p.out * p.in * taps;
            c.weight_m = taps;
            c.weight_channel = p.in * taps;
            c.weight_tap[0] = (int32_t)(t[0].first * p.kernel[1] + t[1].first);
            c.weight_tap[1] = (int32_t)(t[0].on * p.kernel[1]);
            c.weight_tap[2] = (int32_t)t[1].on;
            c.out_plane = p.size[0] * p.size[1];
            c.out_row = p.size[1] * p.stride[0];
            c.out_column = p.stride[1];
            set_grid<T>(&c, p.batch, (p.size[0] - row + p.stride[0] - 1) / p.stride[0],
                        (p.size[1] - column + p.stride[1] - 1) / p.stride[1]);
            NR_TRY(run_correlation<T>(call, c));
        }
    return NORCH_OK;
}

/* Calls run(part) for parts of the batch that have few enough positions for one launch. */
template <class T, class Run> static int32_t in_batches(const nr_conv_plan &p, const Run &run) {
    const int64_t x = p.size[0] * p.size[1], y = p.result[0] * p.result[1], positions = x > y ? x : y;
    const int64_t most = positions < MOST_POSITIONS ? MOST_POSITIONS / (positions + 1) + 1 : 1;
    for (int64_t from = 0; from < p.batch; from += most) {
        nr_conv_plan part = p;
        part.batch = p.batch - from < most ? p.batch - from : most;
        part.x = static_cast<T *>(p.x) + from * p.groups * p.in * x;
        part.y = static_cast<T *>(p.y) + from * p.groups * p.out * y;
        NR_TRY(run(part));
    }
    return NORCH_OK;
}

template <class T> static int32_t weight(const nr_call *call, const nr_conv_plan &p) {
    using large = tile_shape<T, T, 64, 64, 16, 4, 4>;
    using small = tile_shape<T, T, 32, 32, 16, 2, 2>;
    const nr_gpu *gpu = gpu_of(call);
    weight_args w = {};
    w.x = p.x;
    w.y = p.y;
    w.groups = (int32_t)p.groups;
    w.in = (int32_t)p.in;
    w.m = (int32_t)p.out;
    w.n = (int32_t)(p.in * p.kernel[0] * p.kernel[1]);
    w.k = (int32_t)(p.batch * p.result[0] * p.result[1]);
    for (int d = 0; d < 2; d++) {
        w.size[d] = (int32_t)p.size[d];
        w.stride[d] = (int32_t)p.stride[d];
        w.padding[d] = (int32_t)p.padding[d];
        w.dilation[d] = (int32_t)p.dilation[d];
    }
    w.columns = divisor_of(p.result[1]);
    w.positions = divisor_of(p.result[0] * p.result[1]);
    w.tap_columns = divisor_of(p.kernel[1]);
    w.taps = divisor_of(p.kernel[0] * p.kernel[1]);
    const bool few = p.out <= FEW && p.groups * w.m * w.n >= BUSY;
    const bool is_large = !few && w.m > 32 && w.n > 32;
    const int64_t tiles = few ? (int64_t)w.m * w.n : is_large ? tiles_of<large>(w.m, w.n) : tiles_of<small>(w.m, w.n);
    w.parts = 1;
    w.k_part = w.k;
    if (tiles * p.groups < 4 * BUSY && w.k >= 1024) {
        int64_t parts = 4 * BUSY / (tiles * p.groups), deepest = w.k / 512;
        if (parts > deepest) parts = deepest;
        if (parts < 1) parts = 1;
        w.k_part = (int32_t)(((w.k + parts - 1) / parts + 15) / 16 * 16);
        w.parts = (w.k + w.k_part - 1) / w.k_part;
    }
    w.part_stride = p.groups * w.m * w.n;
    const size_t bytes = (size_t)(w.part_stride * w.parts) * sizeof(T);
    T *parts = w.parts > 1 ? static_cast<T *>(nr_cuda_scratch(gpu, bytes)) : nullptr;
    if (w.parts > 1 && !parts) return NORCH_ERROR_MEMORY;
    w.out = parts ? parts : p.weight;
    auto kernel = few ? sum_weight_few<T> : is_large ? sum_weight<large> : sum_weight<small>;
    LAUNCH(kernel, dim3((unsigned)tiles, (unsigned)p.groups, (unsigned)w.parts), NR_BLOCK, 0, gpu->stream, w);
    cudaError_t error = cudaGetLastError();
    if (parts && error == cudaSuccess) {
        LAUNCH(add_parts<T>, blocks_for(w.part_stride, NR_BLOCK), NR_BLOCK, 0, gpu->stream, static_cast<T *>(p.weight),
               (const T *)parts, w.part_stride, w.part_stride, (int)w.parts);
        error = cudaGetLastError();
    }
    if (parts) nr_cuda_scratch_free(gpu, parts, bytes);
    TRY(nr_call_name(call), error);
    return NORCH_OK;
}

template <class T> static int32_t run(const nr_call *call, const nr_conv_plan &p) {
    if (call->op == NR_CONV_WEIGHT) return weight<T>(call, p);
    return in_batches<T>(p, [&](const nr_conv_plan &part) {
        return call->op == NR_CONV_FORWARD ? forward<T>(call, part) : input<T>(call, part);
    });
}

int32_t nr_cuda_conv(const nr_call *call) {
    const nr_conv_plan &p = *static_cast<const nr_conv_plan *>(call->plan);
    const int64_t taps = p.kernel[0] * p.kernel[1], channels = p.in > p.out ? p.in : p.out;
    const double x = (double)p.size[0] * (double)p.size[1], y = (double)p.result[0] * (double)p.result[1];
    const double most = (double)NR_MOST_ELEMENTS;
    /* 32 bits count the taps of a position, the elements of a sample, and, for the weight, all positions */
    if ((double)channels * (double)taps > most || (double)p.in * x > most || (double)p.out * y > most ||
        (double)p.padding[0] > most || (double)p.padding[1] > most || (double)p.groups > most ||
        (call->op == NR_CONV_WEIGHT && ((double)p.batch * y > most || p.groups > MOST_GROUPS)))
        return nr_library->fail(NORCH_ERROR_SHAPE,
                                "conv: %lld samples of %lld groups of %lld and %lld channels, sizes (%lld, %lld) and "
                                "(%lld, %lld) are more than a CUDA kernel counts",
                                (long long)p.batch, (long long)p.groups, (long long)p.in, (long long)p.out,
                                (long long)p.size[0], (long long)p.size[1], (long long)p.result[0],
                                (long long)p.result[1]);
    return call->dtype == NORCH_FLOAT32 ? run<float>(call, p) : run<double>(call, p);
}
