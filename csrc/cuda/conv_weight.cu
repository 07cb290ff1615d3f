/* conv_weight: the weight of a convolution of float32 on tensor cores (mma.cuh): sums over all positions of the batch.
 *
 *                          32 positions a round        a block: BM channels of y x BN columns, 4 warps, 3 stages, as in
 *     BN columns   +--------------------------+        conv_mma.cu; columns are taps of channels of x:
 *                  |  x, seen through the tap |          by tap    32 columns are a tap of 32 channels: a thread looks
 *                  +--------------------------+                    once whether its position sees the tap
 *     BM channels  |  y                       |          by table  as the weight has them; a table in shared memory
 *                  +--------------------------+                    says where each column reads
 *                                                        wide      one tap at stride 1: four positions a copy
 *
 * Positions are along the rows of both in shared memory. There are few tiles and many positions. The positions are
 * divided into parts that fill the device in whole waves, and the parts are added in order. Results that are NaN are
 * summed again by plain products. */
#include "conv_mma.cuh"

#define STAGES 3

template <int BM_, int BN_, int blocks_> struct weight_shape {
    static constexpr int BM = BM_, BN = BN_, blocks = blocks_;
    static constexpr int WM = 32, WN = BN / 2, TM = WM / 16, TN = WN / 8; /* of a warp: two by two of them */
    static constexpr int stage = (BM + BN) * BK;
    static constexpr int bytes = STAGES * stage * 4 + BN * (int)sizeof(tap_entry);
    static_assert(BM == 64 && TN % 2 == 0 && BN % 32 == 0, "");
};
using large = weight_shape<64, 128, 2>;
using middle = weight_shape<64, 96, 2>;
using slim = weight_shape<64, 32, 3>;

enum column_order { BY_TAP, BY_TABLE, WIDE };

struct mma_weight_args {
    weight_args w;
    int32_t chunks;  /* by tap: of 32 channels */
    int32_t columns; /* of all tiles */
    divisor of_chunks, of_columns;
    bool in_order; /* w.out has columns in the order of the tiles, g.columns of them: other stores would scatter */
};

/* Column n in the order of the tiles: a channel of x and a tap; false: there is none. */
template <int order> DEVICE bool find_column(const mma_weight_args &g, int n, int *channel, int *tap) {
    if constexpr (order == BY_TABLE) {
        *channel = (int)quotient((uint32_t)n, g.w.taps);
        *tap = n - *channel * (int)g.w.taps.size;
        return n < g.w.n;
    }
    *tap = (int)quotient((uint32_t)n / 32, g.of_chunks);
    *channel = n - *tap * g.chunks * 32;
    return *channel < g.w.in && *tap < (int)g.w.taps.size;
}

/* The offset of a column from a position in x. */
DEVICE tap_entry entry_of(const weight_args &w, int channel, int tap) {
    const int r = (int)quotient((uint32_t)tap, w.tap_columns), s = tap - r * (int)w.tap_columns.size;
    tap_entry e;
    e.row = r * w.dilation[0];
    e.column = s * w.dilation[1];
    e.source = channel * w.size[0] * w.size[1] + e.row * w.size[1] + e.column;
    e.weight = channel * (int)w.taps.size + tap;
    return e;
}

DEVICE bool sees(const weight_args &w, const position_entry &p, const tap_entry &e) {
    return (uint32_t)(p.row + e.row) < (uint32_t)w.size[0] && (uint32_t)(p.column + e.column) < (uint32_t)w.size[1];
}

/* The index of position k of a row in shared memory: 16-byte chunks are exchanged, so that those of eight rows
 * meet all banks. */
DEVICE uint32_t place(int row, int k) { return (uint32_t)(row * BK + ((k / 4 ^ (row & 7)) * 4 + k % 4)) * 4; }

/* exact: TF32 holds every number of x and y. */
template <class S, int order, bool wide_y, bool exact>
__global__ void __launch_bounds__(THREADS, S::blocks) sum_weight_mma(const mma_weight_args g) {
    DYNAMIC_SHARED(uint32_t, memory);
    TELL_SHARED(S::bytes);
    const weight_args &w = g.w;
    const int tiles_m = (w.m + S::BM - 1) / S::BM, group = (int)blockIdx.y;
    const int m0 = (int)blockIdx.x % tiles_m * S::BM, n0 = (int)blockIdx.x / tiles_m * S::BN;
    const int k_begin = (int)blockIdx.z * w.k_part, k_end = w.k - k_begin < w.k_part ? w.k : k_begin + w.k_part;
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int warp_m = warp / 2 * S::WM, warp_n = warp % 2 * S::WN;
    const uint32_t base = shared_address(memory);
    const float *x = static_cast<const float *>(w.x), *y = static_cast<const float *>(w.y);
    const int64_t x_plane = (int64_t)w.size[0] * w.size[1], y_plane = w.positions.size;
    tap_entry *table = reinterpret_cast<tap_entry *>(memory + STAGES * S::stage);
    if (order != WIDE) { /* by tap: the first of each 32 columns is looked up */
        for (int n = (int)threadIdx.x; n < S::BN; n += THREADS) {
            int channel, tap;
            tap_entry e = {0, 0, INT32_MIN / 2, 0}; /* which no position sees */
            if (find_column<order>(g, n0 + n, &channel, &tap)) {
                e = entry_of(w, channel, tap);
                e.weight = w.in - channel; /* how many channels are left */
            }
            table[n] = e;
        }
        __syncthreads();
    }

    int next = k_begin;       /* the first position of the round that is copied next */
    position_entry here, run; /* of this lane; of the four that one of the eight lanes of a row copies */
    const uint32_t spot = place(warp, lane), spot4 = place(warp + 4, lane);
    const uint32_t wide_spot = place((int)threadIdx.x / 8, lane % 8 * 4);
    auto set_addresses = [&]() {
        here = position_of(w, group, next + lane < k_end ? next + lane : k_begin);
        run.x = __shfl_sync(0xffffffffu, here.x, lane % 8 * 4);
        run.y = __shfl_sync(0xffffffffu, here.y, lane % 8 * 4);
    };
    const constant<true> four = {};
    const constant<false> single = {};
    /* 32 rows of 32 positions, `plane` apart, of which `left` exist, or zeros: a warp takes every fourth row, or a lane
     * copies four positions at once. */
    auto copy_rows = [&](uint32_t to, const float *from, int64_t plane, int left, bool is_seen, auto at_once) {
        if constexpr (decltype(at_once)::value) {
            const bool in = is_seen && next + lane % 8 * 4 < k_end;
            const int row = (int)threadIdx.x / 8;
            from += row * plane;
            copy_async<16>(to + wide_spot, from, in && row < left);
            copy_async<16>(to + wide_spot + 16 * BK * 4, from + 16 * plane, in && row + 16 < left);
        } else {
            const bool in = is_seen && next + lane < k_end;
            from += warp * plane;
            if (left >= 32) {
#pragma unroll
                for (int e = 0; e < 32; e += 4, from += 4 * plane)
                    copy_async<4>(to + (e % 8 ? spot4 : spot) + e / 8 * 8 * BK * 4, from, in);
            } else {
#pragma unroll
                for (int e = 0; e < 32; e += 4, from += 4 * plane)
                    copy_async<4>(to + (e % 8 ? spot4 : spot) + e / 8 * 8 * BK * 4, from, in && warp + e < left);
            }
        }
    };
    auto copy_y = [&](int stage) {
        const uint32_t to = base + (uint32_t)(stage * S::stage * 4);
        const float *from = y + (wide_y ? run.y : here.y) + m0 * y_plane;
#pragma unroll
        for (int e = 0; e < S::BM; e += 32)
            copy_rows(to + e * BK * 4, from + e * y_plane, y_plane, w.m - m0 - e, true, constant<wide_y>());
    };
    /* 32 columns from `first` on. */
    auto copy_x = [&](int stage, int first) {
        const uint32_t to = base + (uint32_t)((stage * S::stage + (S::BM + first) * BK) * 4);
        if constexpr (order == WIDE) {
            copy_rows(to, x + run.x + (n0 + first) * x_plane, x_plane, w.n - n0 - first, true, four);
        } else if constexpr (order == BY_TAP) {
            const tap_entry tap = table[first];
            copy_rows(to, x + here.x + tap.source, x_plane, tap.weight, sees(w, here, tap), single);
        } else {
            const bool in = next + lane < k_end;
#pragma unroll
            for (int e = 0; e < 32; e += 4) {
                const tap_entry tap = table[first + warp + e];
                copy_async<4>(to + (e % 8 ? spot4 : spot) + e / 8 * 8 * BK * 4, x + here.x + tap.source,
                              in && sees(w, here, tap));
            }
        }
    };
    /* A quarter of a round: y and columns with the first, and the addresses of the next round with the last. */
    auto copy = [&](int stage, int e) {
        if (next < k_end) {
            if (e == 0) {
                set_addresses();
                copy_y(stage);
            }
            if (e * 32 < S::BN) copy_x(stage, e * 32);
        }
        if (e < 3) return;
        commit_copies();
        next += BK;
    };

    uint32_t a[2][S::TM][4], b[2][S::TN][2];
    auto load = [&](int stage, int e, int to) {
        const uint32_t from = base + (uint32_t)(stage * S::stage * 4);
#pragma unroll
        for (int i = 0; i < S::TM; i++)
            load_matrices(a[to][i], from + place(warp_m + i * 16 + lane % 16, e * 8 + lane / 16 * 4));
#pragma unroll
        for (int j = 0; j < S::TN; j += 2) {
            uint32_t four[4];
            load_matrices(four, from + S::BM * BK * 4 +
                                    place(warp_n + j * 8 + lane / 16 * 8 + lane % 8, e * 8 + lane / 8 % 2 * 4));
            b[to][j][0] = four[0];
            b[to][j][1] = four[1];
            b[to][j + 1][0] = four[2];
            b[to][j + 1][1] = four[3];
        }
    };
    float sum[S::TM][S::TN][4] = {}, round_sum[S::TM][S::TN][4];
#pragma unroll 1
    for (int s = 0; s < STAGES - 1; s++)
#pragma unroll
        for (int e = 0; e < 4; e++) copy(s, e);
    wait_copies<STAGES - 2>();
    __syncthreads();
    load(0, 0, 0);
    int stage = 0, free = STAGES - 1;
    auto multiply = [&](auto quarter) {
        constexpr int e = decltype(quarter)::value, last = BK / 8 - 1;
        if constexpr (e == 0) copy(free, 0);
        if constexpr (e < last) copy(free, e + 1);
        if constexpr (e == last) {
            free = free + 1 == STAGES ? 0 : free + 1;
            stage = stage + 1 == STAGES ? 0 : stage + 1;
            wait_copies<STAGES - 2>();
            __syncthreads();
        }
        load(stage, (e + 1) % (BK / 8), (e + 1) % 2);
        multiply_eight<e == 0, e == last, exact>(sum, round_sum, a[e % 2], b[e % 2]);
    };
    for (int k = k_begin; k < k_end; k += BK) {
        multiply(constant<0>());
        multiply(constant<1>());
        multiply(constant<2>());
        multiply(constant<3>());
    }
    wait_copies<0>();

    const int64_t pitch = g.in_order ? g.columns : w.n;
    float *out = static_cast<float *>(w.out) + blockIdx.z * w.part_stride + group * w.m * pitch;
    const int first_m = m0 + warp_m + lane / 4, first_n = n0 + warp_n + lane % 4 * 2;
    bool is_number = true;
#pragma unroll
    for (int j = 0; j < S::TN; j++)
#pragma unroll
        for (int one = 0; one < 2; one++) {
            int channel, tap;
            const int n = first_n + j * 8 + one;
            if (!find_column<order>(g, n, &channel, &tap)) continue;
            const int64_t at = g.in_order ? n : channel * (int)w.taps.size + tap;
#pragma unroll
            for (int i = 0; i < S::TM * 2; i++) {
                if (first_m + i * 8 >= w.m) continue;
                const float found = sum[i / 2][j][i % 2 * 2 + one];
                is_number &= found == found;
                out[(first_m + i * 8) * pitch + at] = found;
            }
        }
    if (is_number || exact) return;
    for (int which = 0; which < S::TM * S::TN * 4; which++) {
        const int m = first_m + which / S::TN / 2 * 8, n = first_n + which % S::TN * 8 + which / S::TN % 2;
        int channel, tap;
        if (!find_column<order>(g, n, &channel, &tap) || m >= w.m) continue;
        const tap_entry e = entry_of(w, channel, tap);
        float *found = out + m * pitch + (g.in_order ? n : e.weight);
        if (*found == *found) continue;
        float again = 0;
        for (int k = k_begin; k < k_end; k++) {
            const position_entry p = position_of(w, group, k);
            again += (sees(w, p, e) ? x[p.x + e.source] : 0.0f) * y[p.y + m * y_plane];
        }
        *found = again;
    }
}

/* The parts of each element, in order, from the order of the tiles to that of the weight. */
__global__ void __launch_bounds__(NR_BLOCK) add_taps(const mma_weight_args g, float *out) {
    const int64_t i = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= g.w.part_stride) return;
    const int row = (int)quotient((uint32_t)i, g.of_columns), n = (int)i - row * g.columns;
    int channel, tap;
    if (!find_column<BY_TAP>(g, n, &channel, &tap)) return;
    const float *parts = static_cast<const float *>(g.w.out) + i;
    float sum = *parts;
#pragma unroll 8
    for (int part = 1; part < g.w.parts; part++) sum += parts[part * g.w.part_stride];
    out[row * (int64_t)g.w.n + channel * (int)g.w.taps.size + tap] = sum;
}

/* ---- which shape, order and parts -------------------------------------------------------------------------------- */

/* The number of parts that takes the least time: work that fills waves of blocks, and writes and reads of each part. A
 * part has at least 8 rounds. */
static int64_t parts_for(const weight_args &w, int64_t tiles, int64_t area, int64_t slots) {
    const double work = 2.0 * (double)w.k * (double)area / 60e12, traffic = 8.0 * (double)w.m * w.n * w.groups / 2e12;
    int64_t best = 1, most = 4 * slots / tiles;
    double least = 1e300;
    if (most > w.k / (8 * BK)) most = w.k / (8 * BK);
    for (int64_t parts = 1; parts <= most; parts++) {
        const int64_t waves = (tiles * parts + slots - 1) / slots;
        const double time = work * (double)(waves * slots) / (double)(tiles * parts) + traffic * (double)parts;
        if (time < least) {
            least = time;
            best = parts;
        }
    }
    return best;
}

template <class S, int order> static int32_t run(const nr_call *call, weight_args w, void *out) {
    const nr_gpu *gpu = gpu_of(call);
    mma_weight_args g = {};
    g.chunks = (w.in + 31) / 32;
    g.of_chunks = divisor_of(g.chunks);
    g.columns = order == BY_TAP ? g.chunks * 32 * (int32_t)w.taps.size : w.n;
    g.of_columns = divisor_of(g.columns);
    const int64_t tiles = (int64_t)((w.m + S::BM - 1) / S::BM) * ((g.columns + S::BN - 1) / S::BN) * w.groups;
    cut(&w, parts_for(w, tiles, tiles * S::BM * S::BN, (int64_t)S::blocks * gpu->multiprocessors), BK);
    g.in_order = order == BY_TAP && w.parts > 1 && (int64_t)w.groups * w.m * g.columns <= INT32_MAX;
    w.part_stride = (int64_t)w.groups * w.m * (g.in_order ? g.columns : w.n);
    const size_t bytes = (size_t)(w.part_stride * w.parts) * sizeof(float);
    void *parts = w.parts > 1 ? nr_cuda_scratch(gpu, bytes) : nullptr;
    if (w.parts > 1 && !parts) return NORCH_ERROR_MEMORY;
    w.out = parts ? parts : out;
    g.w = w;
    const bool wide_y = w.positions.size % 4 == 0 && is_aligned(w.y, 16);
    using kernels = void (*)(const mma_weight_args);
    static const kernels all[2][2] = {{sum_weight_mma<S, order, false, false>, sum_weight_mma<S, order, false, true>},
                                      {sum_weight_mma<S, order, true, false>, sum_weight_mma<S, order, true, true>}};
    const kernels kernel = all[wide_y][w.exact];
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::bytes);
    if (error == cudaSuccess) {
        LAUNCH(kernel, dim3((unsigned)(tiles / w.groups), (unsigned)w.groups, (unsigned)w.parts), THREADS, S::bytes,
               gpu->stream, g);
        error = cudaGetLastError();
    }
    if (error == cudaSuccess && g.in_order) {
        LAUNCH(add_taps, blocks_for(w.part_stride, NR_BLOCK), NR_BLOCK, 0, gpu->stream, g, static_cast<float *>(out));
        error = cudaGetLastError();
    }
    int32_t failed = error == cudaSuccess ? NORCH_OK : nr_cuda_fail(nr_call_name(call), error);
    if (parts && !failed && !g.in_order) failed = nr_conv_add_parts(call, out, parts, w.part_stride, w.parts);
    if (parts) nr_cuda_scratch_free(gpu, parts, bytes);
    return failed;
}

/* The wider tiles do more products for each copied element, unless more of their columns are empty. */
template <int order> static int32_t run_fitting(const nr_call *call, const weight_args &w, void *out, int64_t columns) {
    const int64_t by_large = (columns + 127) / 128 * 128, by_middle = (columns + 95) / 96 * 96;
    return by_large * 20 <= by_middle * 21 ? run<large, order>(call, w, out) : run<middle, order>(call, w, out);
}

/* Not if a tile would be mostly empty, nor for so few positions that plain tiles take little time. */
bool nr_conv_weight_mma_pays(const nr_call *call, const weight_args &w) {
    if (call->dtype != NORCH_FLOAT32 || gpu_of(call)->capability < 80) return false;
    return w.m >= 8 && w.n >= 8 && w.k >= 256 && (double)w.m * w.n * w.k * w.groups >= 1e6;
}

int32_t nr_conv_weight_mma(const nr_call *call, weight_args w, void *out) {
    const bool one_tap =
        w.taps.size == 1 && w.stride[0] == 1 && w.stride[1] == 1 && w.padding[0] == 0 && w.padding[1] == 0;
    const bool same_size = (int64_t)w.size[0] * w.size[1] == w.positions.size && (int32_t)w.columns.size == w.size[1];
    if (one_tap && same_size && w.positions.size % 4 == 0 && w.n > 64 && is_aligned(w.x, 16))
        return run<large, WIDE>(call, w, out);
    if (w.n <= 32) return run<slim, BY_TABLE>(call, w, out);
    const int64_t padded = (w.in + 31) / 32 * 32;
    if (padded * 7 > w.in * 8) return run_fitting<BY_TABLE>(call, w, out, w.n);
    return run_fitting<BY_TAP>(call, w, out, padded * w.taps.size);
}
