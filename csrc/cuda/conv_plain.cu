/* conv_plain: convolutions and their weights of any dtype, on any device, as products by tiles (tile.cuh, with the
 * picture): a thread reads its elements of the matrices from the tensors, with zeros for taps in the padding. If a
 * group has few output channels, a thread sums each element. The shape alone determines how sums are divided; their
 * parts are added in order. */
#include "conv.cuh"
#include "tile.cuh"

#define BUSY 128   /* blocks that leave no multiprocessor of a middling device idle */
#define SHALLOW 32 /* rows of a product that shared memory holds at once */

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
    output_position here;
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
            const bool is_row = in && k + e * k_on < left;
            const tap_entry tap = is_row ? entries[k + e * k_on] : tap_entry{};
            next[e] = is_row & here.sees(c, tap) ? x[tap.source] : T(0);
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
        const T *from = x + (left > 0 ? entries[threadIdx.x % BK].weight : 0);
#pragma unroll
        for (int e = 0; e < count; e++, from += o_on * c.weight_m)
            next[e] = left > 0 && e * o_on < m_left ? *from : T(0);
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

/* Writes a block's tile, the bias added. */
template <class S, class T>
DEVICE void put_tile(const correlation &c, int group, int m0, int n0, const T (&sum)[S::TM][S::TN]) {
    const T *bias = static_cast<const T *>(c.bias) + (int64_t)group * c.m;
    T *out = static_cast<T *>(c.out);
    bool is_number = true;
#pragma unroll
    for (int j = 0; j < S::TN; j += S::RUN_N) {
        const int n = n0 + S::column(j);
        if (n >= c.n) continue;
        int64_t to[S::RUN_N] = {output_position(c, group, n).out};
#pragma unroll
        for (int q = 1; q < S::RUN_N; q++)
            if (!c.out_wide && n + q < c.n) to[q] = output_position(c, group, n + q).out;
#pragma unroll
        for (int i = 0; i < S::TM; i++) {
            const int m = m0 + S::row(i);
            if (m >= c.m) continue;
            const T start = c.bias ? bias[m] : T(0);
            if (c.out_wide) { /* runs of RUN_N stay inside the matrix and inside a sample */
                pack<T, S::RUN_N> run;
#pragma unroll
                for (int q = 0; q < S::RUN_N; q++) run.v[q] = sum[i][j + q] + start;
                *reinterpret_cast<pack<T, S::RUN_N> *>(out + to[0] + m * c.out_plane) = run;
            } else {
#pragma unroll
                for (int q = 0; q < S::RUN_N; q++)
                    if (n + q < c.n) out[to[q] + m * c.out_plane] = sum[i][j + q] + start;
            }
#pragma unroll
            for (int q = 0; q < S::RUN_N; q++) is_number &= sum[i][j + q] == sum[i][j + q];
        }
    }
    if (is_number || !c.adjoint) return;
#pragma unroll 1
    for (int j = 0; j < S::TN; j++)
#pragma unroll 1
        for (int i = 0; i < S::TM; i++) {
            const int m = m0 + S::row(i), n = n0 + S::column(j);
            if (m >= c.m || n >= c.n) continue;
            const output_position here(c, group, n);
            T *to = out + here.out + m * c.out_plane;
            if (*to != *to) *to = sum_inside<T>(c, group, m, here);
        }
}

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
    put_tile<S>(c, group, m0, n0, sum);
}

/* At most SHALLOW rows, as in first layers: all are in shared memory at once, and only existing ones are multiplied:
 * rounds would pad them, and load for one round more. */
template <class S> __global__ void __launch_bounds__(NR_BLOCK, S::blocks) correlate_shallow(const correlation c) {
    using T = typename S::T;
    constexpr int a_pitch = S::BM + NR_TILE_GAP, b_pitch = S::BN + NR_TILE_GAP;
    __shared__ tap_entry entries[SHALLOW];
    __shared__ __align__(16) T a_tile[SHALLOW * a_pitch], b_tile[SHALLOW * b_pitch];
    const int tiles_n = (c.n + S::BN - 1) / S::BN, group = (int)blockIdx.y;
    const int m0 = (int)blockIdx.x / tiles_n * S::BM, n0 = (int)blockIdx.x % tiles_n * S::BN;
    if ((int)threadIdx.x < c.k) entries[threadIdx.x] = tap_of(c, (int)threadIdx.x);
    weight_source<T, S::BM, SHALLOW> a(c, entries, group, m0);
    position_source<T, S::BN, SHALLOW> b(c, entries, group, n0);
    __syncthreads();
    a.fetch();
    b.fetch();
    a.put(a_tile);
    b.put(b_tile);
    __syncthreads();
    T sum[S::TM][S::TN] = {};
    for (int k = 0; k < c.k; k++)
        multiply_outer<S>(sum, a_tile + S::row(0) + k * a_pitch, b_tile + S::column(0) + k * b_pitch);
    put_tile<S>(c, group, m0, n0, sum);
}

/* A thread an element. */
template <class T> __global__ void __launch_bounds__(NR_BLOCK, 4) correlate_few(const correlation c) {
    const int64_t n = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (n >= c.n) return;
    const int group = (int)blockIdx.y, m = (int)blockIdx.z;
    const output_position here(c, group, (int)n);
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

/* Taps of x, n of them from n0 on, or channels of y: neighbouring threads take neighbouring positions, each
 * always those that are equal modulo BK. */
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

/* A block computes an element of a part: tiles of groups with few channels would be mostly empty. */
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
template <class D>
__global__ void __launch_bounds__(NR_BLOCK)
    add_parts(typename D::S *out, const typename D::T *parts, int64_t n, int64_t stride, int count) {
    const int64_t i = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= n) return;
    typename D::T sum = parts[i];
#pragma unroll 8
    for (int part = 1; part < count; part++) sum += parts[part * stride + i];
    out[i] = narrow<D>(sum);
}

template <class T>
__global__ void __launch_bounds__(NR_BLOCK)
    fill_planes(T *out, const T *bias, int64_t items, int64_t channels, int64_t plane) {
    const int64_t i = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= plane) return;
    for (int64_t item = blockIdx.y; item < items; item += gridDim.y)
        out[item * plane + i] = bias ? bias[item % channels] : T(0);
}

/* ---- which kernel ------------------------------------------------------------------------------------------------ */

template <class S> static int64_t tiles_of(int64_t m, int64_t n) {
    return ((m + S::BM - 1) / S::BM) * ((n + S::BN - 1) / S::BN);
}

/* Launches `correlate` with tiles of shape S if they fill the device or are the last choice. */
template <class S> static bool correlate_by(const nr_call *call, const correlation &c, int32_t groups, bool last) {
    const int64_t tiles = tiles_of<S>(c.m, c.n);
    if (!last && ((S::BM > 32 && c.m * 2 <= S::BM) || tiles * groups < BUSY)) return false;
    auto kernel = c.k <= SHALLOW ? correlate_shallow<S> : correlate<S>;
    LAUNCH(kernel, dim3((unsigned)tiles, (unsigned)groups), NR_BLOCK, 0, gpu_of(call)->stream, c);
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

template <class T> static int32_t plain(const nr_call *call, const correlation &c, int32_t groups) {
    if (c.m <= FEW)
        LAUNCH(correlate_few<T>, dim3(blocks_for(c.n, NR_BLOCK), (unsigned)groups, (unsigned)c.m), NR_BLOCK, 0,
               gpu_of(call)->stream, c);
    else
        correlate_tiled<T>(call, c, groups);
    return launched(call);
}

int32_t nr_conv_plain(const nr_call *call, const correlation &c, int32_t groups) {
    return call->dtype == NORCH_FLOAT32 ? plain<float>(call, c, groups) : plain<double>(call, c, groups);
}

template <class T>
static int32_t fill(const nr_call *call, void *out, const void *bias, int64_t items, int64_t channels, int64_t plane) {
    const dim3 grid(blocks_for(plane, NR_BLOCK), (unsigned)(items < MOST_GROUPS ? items : MOST_GROUPS));
    LAUNCH(fill_planes<T>, grid, NR_BLOCK, 0, gpu_of(call)->stream, static_cast<T *>(out), static_cast<const T *>(bias),
           items, channels, plane);
    return launched(call);
}

int32_t nr_conv_fill(const nr_call *call, void *out, const void *bias, int64_t items, int64_t channels, int64_t plane) {
    if (items == 0) return NORCH_OK;
    switch (nr_library->dtypes[call->dtype].size) {
    case 2: return fill<uint16_t>(call, out, bias, items, channels, plane);
    case 4: return fill<float>(call, out, bias, items, channels, plane);
    }
    return fill<double>(call, out, bias, items, channels, plane);
}

template <class D> static int32_t add(const nr_call *call, void *out, const void *parts, int64_t n, int count) {
    LAUNCH(add_parts<D>, blocks_for(n, NR_BLOCK), NR_BLOCK, 0, gpu_of(call)->stream, static_cast<typename D::S *>(out),
           static_cast<const typename D::T *>(parts), n, n, count);
    return launched(call);
}

int32_t nr_conv_add_parts(const nr_call *call, void *out, const void *parts, int64_t n, int count) {
    switch (call->dtype) {
    case NORCH_FLOAT16: return add<dtype_float16>(call, out, parts, n, count);
    case NORCH_BFLOAT16: return add<dtype_bfloat16>(call, out, parts, n, count);
    case NORCH_FLOAT32: return add<dtype_float32>(call, out, parts, n, count);
    }
    return add<dtype_float64>(call, out, parts, n, count);
}

template <class T> static int32_t weight(const nr_call *call, weight_args w, void *out) {
    using large = tile_shape<T, T, 64, 64, 16, 4, 4>;
    using small = tile_shape<T, T, 32, 32, 16, 2, 2>;
    const nr_gpu *gpu = gpu_of(call);
    const int64_t groups = w.groups;
    const bool few = w.m <= FEW && groups * w.m * w.n >= BUSY;
    const bool is_large = !few && w.m > 32 && w.n > 32;
    const int64_t tiles = few ? (int64_t)w.m * w.n : is_large ? tiles_of<large>(w.m, w.n) : tiles_of<small>(w.m, w.n);
    w.parts = 1;
    w.k_part = w.k;
    if (tiles * groups < 4 * BUSY && w.k >= 1024) {
        int64_t parts = 4 * BUSY / (tiles * groups), deepest = w.k / 512;
        cut(&w, parts < deepest ? parts : deepest, 16);
    }
    w.part_stride = groups * w.m * w.n;
    const size_t bytes = (size_t)(w.part_stride * w.parts) * sizeof(T);
    void *parts = w.parts > 1 ? nr_cuda_scratch(gpu, bytes) : nullptr;
    if (w.parts > 1 && !parts) return NORCH_ERROR_MEMORY;
    w.out = parts ? parts : out;
    auto kernel = few ? sum_weight_few<T> : is_large ? sum_weight<large> : sum_weight<small>;
    LAUNCH(kernel, dim3((unsigned)tiles, (unsigned)groups, (unsigned)w.parts), NR_BLOCK, 0, gpu->stream, w);
    int32_t failed = launched(call);
    if (parts && !failed) failed = nr_conv_add_parts(call, out, parts, w.part_stride, w.parts);
    if (parts) nr_cuda_scratch_free(gpu, parts, bytes);
    return failed;
}

int32_t nr_conv_weight_plain(const nr_call *call, weight_args w, void *out) {
    return call->dtype == NORCH_FLOAT32 ? weight<float>(call, w, out) : weight<double>(call, w, out);
}
