/* conv_mma: correlations on tensor cores (mma.cuh): of float32, each number as a sum of two that they multiply exactly;
 * of float16 and bfloat16, two channels as one word, which replaces a number of float32 in fragments.
 *
 *                      32 rows a round                  a block: BM channels x BN positions, 4 warps, 2 or 3
 *                 +------- BN positions -------+        stages: while a round is multiplied, the next are copied.
 *    weights      |  x, a position a thread:   |        A round sums from zero and is then added in float32:
 *   +-------+     |  a row is a tap of a       |        tensor cores cut their sums, which would drift in time.
 *   |  BM   |     |  channel, read where the   |
 *   +-------+     |  position sees it, or 0    |
 *                 +----------------------------+
 *
 * The rows of the product have an order in which they are cheap to read:
 *
 *   by tap     a round is one tap of 32 channels: a thread looks once where its position sees the tap
 *   by table   rows as the weight has them, where channels are few: a table in shared memory says where each row reads
 *   wide       kernels of one tap at stride 1: four positions a copy
 *
 * The weights are arranged beforehand as a lane reads them, 16 bytes for a 16 x 8 piece. Results of float32 that are
 * NaN are summed again by plain products, since the parts of an infinity are not numbers. If a matrix has few tiles,
 * the rounds are divided into parts, which are added in order. Source of the two parts: see split_tf32. */
#include "conv_mma.cuh"

#define TABLE_ROUNDS 8 /* that are known at once: twice the stages, since some write while others read */

/* Shapes of tiles; a warp has WM x WN, and a multiprocessor should hold `blocks`. */
template <int BM_, int BN_, int WM_, int WN_, int stages_, int blocks_> struct mma_shape {
    static constexpr int BM = BM_, BN = BN_, WM = WM_, WN = WN_, stages = stages_, blocks = blocks_;
    static constexpr int TM = WM / 16, TN = WN / 8, across = BN / WN;
    static constexpr int pitch = BN + 8; /* of x's rows: a warp's 16-byte reads meet all banks */
    static constexpr int weights = BM * BK, stage = weights + BK * pitch;
    static constexpr int bytes = stages * stage * 4 + TABLE_ROUNDS * BK * (int)sizeof(tap_entry);
    static constexpr int each = BN / THREADS; /* positions of a thread */
    static_assert(BM / WM * across * 32 == THREADS && TN % 4 == 0 && BN % THREADS == 0, "");
};
using large = mma_shape<64, 128, 32, 64, 3, 2>;
using middle = mma_shape<32, 128, 32, 32, 3, 3>;
using flat = mma_shape<16, 256, 16, 64, 2, 3>;

struct mma_args {
    correlation c;                   /* of 16 bits: its channels are words, and source points at words */
    int32_t channels;                /* in all */
    const uint32_t *arranged;        /* [group][tile of channels][round][8 rows][16 channels][lane][4] */
    int32_t rounds, part_rounds;     /* part_rounds < rounds: c.out holds parts of float32 */
    int64_t group_size, part_stride; /* of arranged, of c.out */
};

enum row_order { BY_TAP, BY_TABLE, WIDE };

/* Row k of the product in the order of the rounds; false: it is beyond the last. */
template <int order> DEVICE bool find_row(const correlation &c, int k, int *channel, int *tap) {
    if constexpr (order == BY_TABLE) {
        *channel = (int)quotient((uint32_t)k, c.taps);
        *tap = k - *channel * (int)c.taps.size;
        return k < c.k;
    }
    const int round = k / BK, chunk = (int)quotient((uint32_t)round, c.taps);
    *tap = round - chunk * (int)c.taps.size;
    *channel = chunk * BK + k % BK;
    return *channel < c.channels;
}

/* The weight of row m of the output, a channel and a tap; NULL where the phase of that row does not reach the tap. */
template <class T> DEVICE const T *weight_at(const correlation &c, const T *weight, int m, int channel, int tap) {
    const int r = (int)quotient((uint32_t)tap, c.tap_columns), s = tap - r * (int)c.tap_columns.size;
    const phase_rows &p = c.phases;
    weight += channel * c.weight_channel;
    if (p.count.size == 1)
        return weight + (m * c.weight_m + c.weight_tap[0] + r * c.weight_tap[1] + s * c.weight_tap[2]);
    const int row = (int)quotient((uint32_t)m, p.count), phase = m - row * (int)p.count.size;
    const int down = (int)quotient((uint32_t)phase, p.columns), across = phase - down * (int)p.columns.size;
    const int i = down + p.padding[0] - (c.low[0] + r) * p.stride[0];
    const int j = across + p.padding[1] - (c.low[1] + s) * p.stride[1];
    const bool reached = i >= 0 && i < p.kernel[0] && j >= 0 && j < p.kernel[1];
    return reached ? weight + (row * c.weight_m + i * p.kernel[1] + j) : nullptr;
}

template <class D, class S, int order>
__global__ void __launch_bounds__(NR_BLOCK) arrange(const mma_args g, uint32_t *to) {
    const int64_t i = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= g.group_size) return;
    const int q = (int)(i % 4), lane = (int)(i / 4 % 32), rest = (int)(i / 128);
    const int piece = rest % (S::BM / 16), eight = rest / (S::BM / 16) % (BK / 8);
    const int round = rest / (S::BM / 16 * BK / 8) % g.rounds, tile = rest / (S::BM / 16 * BK / 8) / g.rounds;
    const int m = tile * S::BM + piece * 16 + lane / 4 + q % 2 * 8;
    const int k = round * BK + eight * 8 + lane % 4 + q / 2 * 4;
    int channel, tap;
    using W = typename D::S;
    const W *weight = static_cast<const W *>(g.c.weight) + blockIdx.y * g.c.weight_group;
    const bool is_there = find_row<order>(g.c, k, &channel, &tap) && m < g.c.m;
    constexpr int each = 4 / (int)sizeof(W); /* channels of a word */
    W word[each] = {};
#pragma unroll
    for (int e = 0; e < each; e++)
        if (is_there && channel * each + e < g.channels)
            if (const W *one = weight_at(g.c, weight, m, channel * each + e, tap)) word[e] = *one;
    memcpy(&to[blockIdx.y * g.group_size + i], word, 4);
}

/* Two channels of a group as words, [group of a sample][pair][position], with zeros beside an odd one; `run`
 * neighbouring positions a thread. */
template <int run>
__global__ void __launch_bounds__(NR_BLOCK)
    pair_channels(const uint16_t *x, uint32_t *words, int32_t channels, divisor runs, divisor pairs, int64_t all) {
    const uint32_t i = blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= all) return;
    const uint32_t pair = quotient(i, runs), item = quotient(pair, pairs), channel = (pair - item * pairs.size) * 2;
    const int64_t plane = (int64_t)runs.size * run, at = (int64_t)(i - pair * runs.size) * run;
    const uint16_t *from = x + ((int64_t)item * channels + channel) * plane + at;
    const auto first = *reinterpret_cast<const pack<uint16_t, run> *>(from);
    pack<uint16_t, run> second = {};
    if ((int)channel + 1 < channels) second = *reinterpret_cast<const pack<uint16_t, run> *>(from + plane);
    pack<uint32_t, run> both;
#pragma unroll
    for (int q = 0; q < run; q++) both.v[q] = first.v[q] | (uint32_t)second.v[q] << 16;
    *reinterpret_cast<pack<uint32_t, run> *>(words + (int64_t)pair * plane + at) = both;
}

/* ---- x, round by round: copy(to, e) copies rows 8 e to 8 e + 7, next() is the next round ------------------------- */

template <class S, int order> struct mma_source;

template <class S> struct mma_source<S, BY_TAP> {
    const correlation &c;
    const float *x[S::each], *from[S::each];
    int32_t row[S::each], column[S::each], r, s, left; /* left: channels from the round's first on */
    int64_t plane;
    bool in[S::each], sees[S::each];

    DEVICE mma_source(const correlation &g, tap_entry *, int group, int n0, int round)
        : c(g), plane((int64_t)g.size[0] * g.size[1]) {
        int channel, tap;
        find_row<BY_TAP>(g, round * BK, &channel, &tap);
        r = (int)quotient((uint32_t)tap, g.tap_columns);
        s = tap - r * (int)g.tap_columns.size;
        left = g.channels - channel;
#pragma unroll
        for (int p = 0; p < S::each; p++) {
            const int n = n0 + p * THREADS + (int)threadIdx.x;
            in[p] = n < g.n;
            const output_position here(g, group, in[p] ? n : 0);
            row[p] = here.row;
            column[p] = here.column;
            x[p] = static_cast<const float *>(g.source) + here.source + channel * plane;
        }
        set_addresses();
    }

    DEVICE void set_addresses() {
        const int down = r * c.tap_step[0], across = s * c.tap_step[1];
#pragma unroll
        for (int p = 0; p < S::each; p++) {
            sees[p] = in[p] && (uint32_t)(row[p] + down) < (uint32_t)c.size[0] &&
                      (uint32_t)(column[p] + across) < (uint32_t)c.size[1];
            from[p] = x[p] + (down * c.size[1] + across);
        }
    }

    DEVICE void next() {
        if (++s == (int)c.tap_columns.size) {
            s = 0;
            if (++r * (int)c.tap_columns.size == (int)c.taps.size) {
                r = 0;
                left -= BK;
#pragma unroll
                for (int p = 0; p < S::each; p++) x[p] += BK * plane;
            }
        }
        set_addresses();
    }

    DEVICE void copy(uint32_t to, int e) {
#pragma unroll
        for (int p = 0; p < S::each; p++) {
            const uint32_t cell = to + (e * 8 * S::pitch + p * THREADS + (int)threadIdx.x) * 4;
            if (left >= BK) {
#pragma unroll
                for (int k = 0; k < 8; k++, from[p] += plane) copy_async<4>(cell + k * S::pitch * 4, from[p], sees[p]);
            } else {
#pragma unroll
                for (int k = 0; k < 8; k++, from[p] += plane)
                    copy_async<4>(cell + k * S::pitch * 4, from[p], sees[p] && e * 8 + k < left);
            }
        }
    }
};

template <class S> struct mma_source<S, BY_TABLE> {
    const correlation &c;
    const float *x[S::each];
    int32_t row[S::each], column[S::each], round;
    bool in[S::each];
    tap_entry *table;

    DEVICE mma_source(const correlation &g, tap_entry *memory, int group, int n0, int round)
        : c(g), round(round), table(memory) {
#pragma unroll
        for (int p = 0; p < S::each; p++) {
            const int n = n0 + p * THREADS + (int)threadIdx.x;
            in[p] = n < g.n;
            const output_position here(g, group, in[p] ? n : 0);
            row[p] = here.row;
            column[p] = here.column;
            x[p] = static_cast<const float *>(g.source) + here.source;
        }
        for (int ahead = 0; ahead < S::stages; ahead++) write(round + ahead);
        __syncthreads();
    }

    /* Writes the taps of a round, which is copied after the next barrier. */
    DEVICE void write(int which) {
        if (threadIdx.x >= BK) return;
        const int k = which * BK + (int)threadIdx.x;
        tap_entry tap = {0, 0, INT32_MIN / 2, 0}; /* which no position sees */
        if (k < c.k) tap = tap_of(c, k);
        table[which % TABLE_ROUNDS * BK + threadIdx.x] = tap;
    }

    DEVICE void next() {
        round++;
        write(round + S::stages - 1);
    }

    DEVICE void copy(uint32_t to, int e) {
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const tap_entry tap = table[round % TABLE_ROUNDS * BK + e * 8 + k];
#pragma unroll
            for (int p = 0; p < S::each; p++) {
                const bool sees = in[p] && (uint32_t)(row[p] + tap.row) < (uint32_t)c.size[0] &&
                                  (uint32_t)(column[p] + tap.column) < (uint32_t)c.size[1];
                copy_async<4>(to + ((e * 8 + k) * S::pitch + p * THREADS + (int)threadIdx.x) * 4, x[p] + tap.source,
                              sees);
            }
        }
    }
};

/* A warp takes the 128 positions of every fourth row: four of them lie in one sample. */
template <class S> struct mma_source<S, WIDE> {
    const float *x;
    int32_t left;
    int64_t plane;
    bool in;

    DEVICE mma_source(const correlation &g, tap_entry *, int group, int n0, int round)
        : left(g.channels - round * BK - (int)threadIdx.x / 32), plane((int64_t)g.size[0] * g.size[1]) {
        static_assert(S::BN == 128, "");
        const int n = n0 + (int)threadIdx.x % 32 * 4;
        in = n < g.n;
        x = static_cast<const float *>(g.source) + output_position(g, group, in ? n : 0).source +
            (round * BK + (int)threadIdx.x / 32) * plane;
    }

    DEVICE void next() { left -= BK; }

    DEVICE void copy(uint32_t to, int e) {
#pragma unroll
        for (int k = 0; k < 8; k += 4, x += 4 * plane)
            copy_async<16>(to + ((e * 8 + k + (int)threadIdx.x / 32) * S::pitch + (int)threadIdx.x % 32 * 4) * 4, x,
                           in && e * 8 + k < left);
    }
};

/* ---- the product ------------------------------------------------------------------------------------------------- */

/* One element by plain products, of the rounds of a part. */
template <int order>
DEVICE float sum_plainly(const mma_args &g, const float *weight, const output_position &here, int m, int begin,
                         int end) {
    const correlation &c = g.c;
    const float *x = static_cast<const float *>(c.source) + here.source;
    float sum = 0;
    for (int k = begin * BK; k < end * BK; k++) {
        int channel, tap;
        if (!find_row<order>(c, k, &channel, &tap)) continue;
        const tap_entry e = tap_of(c, channel * (int)c.taps.size + tap);
        const bool sees = here.sees(c, e);
        const float *factor = sees || !c.adjoint ? weight_at(c, weight, m, channel, tap) : nullptr;
        if (factor) sum += *factor * (sees ? x[e.source] : 0.0f);
    }
    return sum;
}

/* The address to which row m of position `here` is written; false: none. */
DEVICE bool find_out(const correlation &c, const output_position &here, int m, int64_t *at) {
    if (m >= c.m) return false;
    const phase_rows &p = c.phases;
    if (p.count.size == 1) {
        *at = here.out + m * c.out_plane;
        return true;
    }
    const int row = (int)quotient((uint32_t)m, p.count), phase = m - row * (int)p.count.size;
    const int down = (int)quotient((uint32_t)phase, p.columns), across = phase - down * (int)p.columns.size;
    *at = here.out + row * c.out_plane + down * p.size[1] + across;
    return (here.row - c.low[0]) * p.stride[0] + down < p.size[0] &&
           (here.column - c.low[1]) * p.stride[1] + across < p.size[1];
}

template <class D> DEVICE float bias_of(const correlation &c, int group, int m) {
    if (!c.bias || blockIdx.z > 0) return 0;
    const int channel = (int)quotient((uint32_t)m, c.phases.count),
              of_group = (int)quotient((uint32_t)c.m, c.phases.count);
    return widen<D>(static_cast<const typename D::S *>(c.bias)[(int64_t)group * of_group + channel]);
}

template <class D, class S, int order>
__global__ void __launch_bounds__(THREADS, S::blocks) correlate_mma(const mma_args g) {
    constexpr bool is_float32 = is_same<D, dtype_float32>;
    DYNAMIC_SHARED(uint32_t, memory);
    TELL_SHARED(S::bytes);
    const correlation &c = g.c;
    const int tiles_m = (c.m + S::BM - 1) / S::BM, tile_m = (int)blockIdx.x % tiles_m, group = (int)blockIdx.y;
    const int n0 = (int)blockIdx.x / tiles_m * S::BN;
    const int begin = (int)blockIdx.z * g.part_rounds;
    const int rounds = g.rounds - begin < g.part_rounds ? g.rounds - begin : g.part_rounds;
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, t = lane % 4;
    const int warp_m = warp / S::across * S::TM, warp_n = warp % S::across * S::WN;
    const uint32_t base = shared_address(memory);
    mma_source<S, order> x(c, reinterpret_cast<tap_entry *>(memory + S::stages * S::stage), group, n0, begin);
    const uint32_t *weights = g.arranged + group * g.group_size + ((int64_t)tile_m * g.rounds + begin) * S::weights +
                              (int64_t)threadIdx.x * 4;

    /* A quarter of a round; the last one turns to the next. Three quarters of the products hide the copies. */
    auto copy = [&](int left, int stage, int e) {
        const uint32_t to = base + (uint32_t)(stage * S::stage * 4);
        if (left > 0) {
            x.copy(to + S::weights * 4, e);
#pragma unroll
            for (int i = e; i < S::weights / 4 / THREADS; i += 4)
                copy_async<16>(to + (uint32_t)(i * THREADS + (int)threadIdx.x) * 16, weights + i * THREADS * 4, true);
        }
        if (e < BK / 8 - 1) return;
        commit_copies();
        x.next();
        weights += S::weights;
    };
    uint32_t a[2][S::TM][4], b[2][S::TN][2];
    auto load = [&](int stage, int e, int to) {
        const uint32_t *from = memory + stage * S::stage;
#pragma unroll
        for (int i = 0; i < S::TM; i++) {
            const auto four =
                *reinterpret_cast<const pack<uint32_t, 4> *>(from + ((e * (S::BM / 16) + warp_m + i) * 32 + lane) * 4);
#pragma unroll
            for (int q = 0; q < 4; q++) a[to][i][q] = four.v[q];
        }
        /* four neighbouring positions are column g of four products */
        from += S::weights + warp_n + lane / 4 * 4;
#pragma unroll
        for (int j = 0; j < S::TN; j += 4)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const auto four =
                    *reinterpret_cast<const pack<uint32_t, 4> *>(from + (e * 8 + t + h * 4) * S::pitch + j * 8);
#pragma unroll
                for (int q = 0; q < 4; q++) b[to][j + q][h] = four.v[q];
            }
    };
    float sum[S::TM][S::TN][4] = {}, round_sum[S::TM][S::TN][4];
#pragma unroll 1
    for (int s = 0; s < S::stages - 1; s++)
#pragma unroll 1
        for (int e = 0; e < BK / 8; e++) copy(rounds - s, s, e);
    wait_copies<S::stages - 2>();
    __syncthreads();
    load(0, 0, 0);
    int stage = 0, free = S::stages - 1;
    auto multiply = [&](auto quarter, int left) {
        constexpr int e = decltype(quarter)::value, last = BK / 8 - 1;
        if constexpr (e == 0) copy(left - (S::stages - 1), free, 0);
        if constexpr (e < last) copy(left - (S::stages - 1), free, e + 1);
        if constexpr (e == last) {
            free = free + 1 == S::stages ? 0 : free + 1;
            stage = stage + 1 == S::stages ? 0 : stage + 1;
            wait_copies<S::stages - 2>();
            __syncthreads();
        }
        load(stage, (e + 1) % (BK / 8), (e + 1) % 2);
        if constexpr (is_float32)
            multiply_eight<e == 0, e == last>(sum, round_sum, a[e % 2], b[e % 2]);
        else
            multiply_pairs<D>(sum, a[e % 2], b[e % 2]);
    };
    for (int left = rounds; left > 0; left--) {
        multiply(constant<0>(), left);
        multiply(constant<1>(), left);
        multiply(constant<2>(), left);
        multiply(constant<3>(), left);
    }
    wait_copies<0>();

    using Out = typename D::S;
    const bool is_narrow = !is_float32 && g.part_rounds == g.rounds;
    float *out = static_cast<float *>(c.out) + blockIdx.z * g.part_stride;
    auto put = [&](int64_t at, auto run, const float *x) {
        constexpr int n = decltype(run)::value;
        pack<float, n> wide;
        pack<Out, n> rounded;
#pragma unroll
        for (int q = 0; q < n; q++) wide.v[q] = x[q], rounded.v[q] = narrow<D>(x[q]);
        if (is_narrow)
            *reinterpret_cast<pack<Out, n> *>(static_cast<Out *>(c.out) + at) = rounded;
        else
            *reinterpret_cast<pack<float, n> *>(out + at) = wide;
    };
    const int first_m = tile_m * S::BM + warp_m * 16 + lane / 4, first_n = n0 + warp_n + t * 8;
    bool is_number = true;
#pragma unroll
    for (int j = 0; j < S::TN; j += 4)
#pragma unroll
        for (int run = 0; run < 2; run++) { /* of four neighbours, one from each product */
            const int n = first_n + j * 8 + run * 4;
            if (n >= c.n) continue;
            const output_position here(c, group, n);
#pragma unroll
            for (int i = 0; i < S::TM; i++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const int m = first_m + i * 16 + h * 8;
                    if (m >= c.m) continue;
                    const float bias = bias_of<D>(c, group, m);
                    float four[4];
#pragma unroll
                    for (int q = 0; q < 4; q++) {
                        four[q] = sum[i][j + q][h * 2 + run] + bias;
                        if (n + q < c.n) is_number &= four[q] == four[q];
                    }
                    if (c.out_wide) { /* four positions are neighbours in one sample */
                        put(here.out + m * c.out_plane, constant<4>(), four);
                        continue;
                    }
#pragma unroll
                    for (int q = 0; q < 4; q++) {
                        int64_t at;
                        if (n + q < c.n && find_out(c, output_position(c, group, n + q), m, &at))
                            put(at, constant<1>(), &four[q]);
                    }
                }
        }
    if (is_number || !is_float32) return;
    const float *weight = static_cast<const float *>(c.weight) + group * c.weight_group;
    for (int one = 0; one < S::TM * S::TN * 4; one++) {
        const int n = first_n + one % S::TN / 4 * 32 + one % 4 + one / S::TN % 2 * 4;
        const int m = first_m + one / S::TN / 2 * 8;
        if (n >= c.n) continue;
        const output_position here(c, group, n);
        int64_t at;
        if (find_out(c, here, m, &at) && !(out[at] == out[at]))
            out[at] = sum_plainly<order>(g, weight, here, m, begin, begin + rounds) + bias_of<D>(c, group, m);
    }
}

/* ---- which shape, order and parts -------------------------------------------------------------------------------- */

template <class D, class S, int order> static int32_t run(const nr_call *call, const mma_args &args, int32_t groups) {
    const nr_gpu *gpu = gpu_of(call);
    mma_args g = args;
    const correlation &c = args.c;
    const int64_t tiles_m = (c.m + S::BM - 1) / S::BM, tiles = tiles_m * ((c.n + S::BN - 1) / S::BN);
    g.rounds = order == BY_TABLE ? (c.k + BK - 1) / BK : (c.channels + BK - 1) / BK * (int32_t)c.taps.size;
    g.part_rounds = g.rounds;
    const int64_t slots = (int64_t)S::blocks * gpu->multiprocessors;
    int32_t parts = 1;
    if (c.out_whole && groups == c.groups && tiles * groups * 4 <= slots * 3) {
        int64_t most = slots / (tiles * groups), deepest = g.rounds / 4;
        if (most > deepest) most = deepest;
        if (most > 1) {
            g.part_rounds = (int32_t)((g.rounds + most - 1) / most);
            parts = (g.rounds + g.part_rounds - 1) / g.part_rounds;
        }
    }
    g.group_size = tiles_m * g.rounds * S::weights;
    g.part_stride = (int64_t)c.n * groups * c.m;
    const size_t arranged = (size_t)(groups * g.group_size) * sizeof(float);
    const size_t bytes = arranged + (parts > 1 ? (size_t)(parts * g.part_stride) * sizeof(float) : 0);
    uint32_t *scratch = static_cast<uint32_t *>(nr_cuda_scratch(gpu, bytes));
    if (!scratch) return NORCH_ERROR_MEMORY;
    g.arranged = scratch;
    if (parts > 1) g.c.out = scratch + groups * g.group_size;
    LAUNCH((arrange<D, S, order>), dim3(blocks_for(g.group_size, NR_BLOCK), (unsigned)groups), NR_BLOCK, 0, gpu->stream,
           g, scratch);
    cudaError_t error =
        cudaFuncSetAttribute(correlate_mma<D, S, order>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::bytes);
    if (error == cudaSuccess) {
        LAUNCH((correlate_mma<D, S, order>), dim3((unsigned)tiles, (unsigned)groups, (unsigned)parts), THREADS,
               S::bytes, gpu->stream, g);
        error = cudaGetLastError();
    }
    int32_t failed = NORCH_OK;
    if (error != cudaSuccess)
        failed = nr_cuda_fail(nr_call_name(call), error);
    else if (parts > 1)
        failed = nr_conv_add_parts(call, c.out, g.c.out, g.part_stride, parts);
    nr_cuda_scratch_free(gpu, scratch, bytes);
    return failed;
}

/* Not below a round of rows, nor where the products take less time than arranging the weights. */
bool nr_conv_mma_pays(const nr_call *call, const correlation &c, int32_t groups) {
    if (call->dtype != NORCH_FLOAT32 || gpu_of(call)->capability < 80) return false;
    const double work = (double)c.m * c.n * c.k * groups;
    return c.m >= 3 && c.k >= 32 && c.n >= 64 && work >= 1e6;
}

template <class D> static int32_t choose_shape(const nr_call *call, const mma_args &g, int32_t groups) {
    const correlation &c = g.c;
    const int32_t padded = (c.channels + BK - 1) / BK * BK;
    const bool by_tap = padded * 7 <= c.channels * 8; /* else zeros would be most of what is multiplied */
    if (c.m <= 16) return by_tap ? run<D, flat, BY_TAP>(call, g, groups) : run<D, flat, BY_TABLE>(call, g, groups);
    if (c.m <= 32) return by_tap ? run<D, middle, BY_TAP>(call, g, groups) : run<D, middle, BY_TABLE>(call, g, groups);
    const bool wide = c.taps.size == 1 && c.step[0] == 1 && c.step[1] == 1 && c.low[0] == 0 && c.low[1] == 0 &&
                      c.positions.size % 4 == 0 && (int64_t)c.size[0] * c.size[1] == c.positions.size &&
                      (int32_t)c.columns.size == c.size[1] && is_aligned(c.source, 16);
    if (wide && by_tap) return run<D, large, WIDE>(call, g, groups);
    return by_tap ? run<D, large, BY_TAP>(call, g, groups) : run<D, large, BY_TABLE>(call, g, groups);
}

int32_t nr_conv_mma(const nr_call *call, const correlation &c, int32_t groups) {
    mma_args g = {};
    g.c = c;
    g.channels = c.channels;
    if (call->dtype == NORCH_FLOAT32) return choose_shape<dtype_float32>(call, g, groups);
    const int64_t plane = (int64_t)c.size[0] * c.size[1], items = c.n / (int64_t)c.positions.size * c.groups;
    g.c.channels = (c.channels + 1) / 2;
    g.c.k = g.c.channels * (int32_t)c.taps.size;
    const int64_t words = items * g.c.channels * plane;
    const scratch paired(gpu_of(call), (size_t)words * sizeof(uint32_t));
    if (paired.failed()) return NORCH_ERROR_MEMORY;
    g.c.source = paired.memory;
    const int run = plane % 4 == 0 && is_aligned(c.source, 8) ? 4 : 1;
    LAUNCH((run == 4 ? pair_channels<4> : pair_channels<1>), blocks_for(words / run, NR_BLOCK), NR_BLOCK, 0,
           gpu_of(call)->stream, static_cast<const uint16_t *>(c.source), reinterpret_cast<uint32_t *>(paired.memory),
           c.channels, divisor_of(plane / run), divisor_of(g.c.channels), words / run);
    NR_TRY(launched(call));
    return call->dtype == NORCH_FLOAT16 ? choose_shape<dtype_float16>(call, g, groups)
                                        : choose_shape<dtype_bfloat16>(call, g, groups);
}
