/* conv_weight: the weight of a convolution of float32 on tensor cores (mma.cuh): sums over all positions of the batch.
 *
 *                          32 positions a round        a block: BM channels of y x BN columns, 4 warps, 3 stages, as in
 *     BN columns   +--------------------------+        conv_mma.cu; columns are taps of channels of x:
 *                  |  x, seen through the tap |          by tap    32 columns are one tap of 32 channels, and a thread looks
 *                  +--------------------------+                    once whether its position sees the tap
 *     BM channels  |  y                       |          by table  as the weight has them: a table in shared memory says
 *                  +--------------------------+                    where each column reads
 *                                                        wide      one tap at stride 1: four positions a copy
 *
 * Positions lie along the rows of both in shared memory. There are few tiles and many positions: these are cut into parts that
 * fill the device in whole waves, and the parts are added in order. What comes out as NaN is summed again by plain products. */
#include "conv_mma.cuh"

#define BK 32
#define THREADS 128
#define STAGES 3

template <int BM_, int BN_, int blocks_> struct weight_shape {
    static constexpr int BM = BM_, BN = BN_, blocks = blocks_;
    static constexpr int WM = 32, WN = BN / 2, TM = WM / 16, TN = WN / 8; /* of a warp: two by two of them */
    static constexpr int stage = (BM + BN) * BK;
    static constexpr int bytes = STAGES * stage * 4 + BN * (int)sizeof(tap_entry);
    static_assert(BM == 64 && TN % 2 == 0 && BN % 32 == 0, "");
};
using wide_shape = weight_shape<64, 128, 2>;
using middle_shape = weight_shape<64, 96, 2>;
using narrow_shape = weight_shape<64, 32, 3>;

enum column_order { BY_TAP, BY_TABLE, WIDE };

struct mma_weight_args {
    weight_args w;
    int32_t chunks; /* by tap: of 32 channels */
    int32_t columns;
    divisor of_chunks;
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

/* What a column adds to a position's place in x. */
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

/* Where position k of a row lies in shared memory: 16-byte chunks are exchanged, so that eight rows' meet all banks. */
DEVICE uint32_t place(int row, int k) { return (uint32_t)(row * BK + ((k / 4 ^ (row & 7)) * 4 + k % 4)) * 4; }

/* Copies `rows` rows of 32 positions that lie `plane` apart, four at a time; of a tensor whose positions are y's. */
template <int rows> DEVICE void copy_wide(uint32_t to, const float *from, int64_t plane, bool in, int left) {
    const int k = (int)threadIdx.x % 8 * 4, row = (int)threadIdx.x / 8;
    from += row * plane;
#pragma unroll
    for (int e = 0; e < rows; e += 16, from += 16 * plane)
        copy_async<16>(to + place(row + e, k), from, in && row + e < left);
}

template <class S, int order, bool wide_y>
__global__ void __launch_bounds__(THREADS, S::blocks) sum_weight_mma(const mma_weight_args g) {
    DYNAMIC_SHARED(uint32_t, memory);
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
            if (find_column<order>(g, n0 + n, &channel, &tap)) e = entry_of(w, channel, tap);
            table[n] = e;
        }
        __syncthreads();
    }

    int next = k_begin; /* the first position of the round that is copied next */
    auto copy = [&](int stage) {
        const uint32_t to_y = base + (uint32_t)(stage * S::stage * 4), to_x = to_y + S::BM * BK * 4;
        if (next < k_end) {
            if constexpr (wide_y || order == WIDE) {
                const int k = next + (int)threadIdx.x % 8 * 4;
                const bool in = k < k_end;
                const position_entry p = position_of(w, group, in ? k : 0);
                if constexpr (wide_y) copy_wide<S::BM>(to_y, y + p.y + m0 * y_plane, y_plane, in, w.m - m0);
                if constexpr (order == WIDE) copy_wide<S::BN>(to_x, x + p.x + n0 * x_plane, x_plane, in, w.n - n0);
            }
            if constexpr (!wide_y || order != WIDE) {
                const bool in = next + lane < k_end;
                const position_entry p = position_of(w, group, in ? next + lane : 0);
                if constexpr (!wide_y) {
                    const float *from = y + p.y + (m0 + warp) * y_plane;
#pragma unroll
                    for (int e = 0; e < S::BM; e += 4, from += 4 * y_plane)
                        copy_async<4>(to_y + place(warp + e, lane), from, in && m0 + warp + e < w.m);
                }
                if constexpr (order == BY_TAP) {
#pragma unroll
                    for (int first = 0; first < S::BN; first += 32) {
                        const tap_entry tap = table[first];
                        const bool is_seen = in && sees(w, p, tap);
                        const float *from = x + p.x + tap.source + warp * x_plane;
                        const int left = w.in - (n0 + first) % (g.chunks * 32) - warp;
#pragma unroll
                        for (int e = 0; e < 32; e += 4, from += 4 * x_plane)
                            copy_async<4>(to_x + place(first + warp + e, lane), from, is_seen && e < left);
                    }
                }
                if constexpr (order == BY_TABLE) {
#pragma unroll
                    for (int e = 0; e < S::BN; e += 4) {
                        const tap_entry tap = table[warp + e];
                        copy_async<4>(to_x + place(warp + e, lane), x + p.x + tap.source, in && sees(w, p, tap));
                    }
                }
            }
        }
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
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) copy(s);
    wait_copies<STAGES - 2>();
    __syncthreads();
    load(0, 0, 0);
    int stage = 0, free = STAGES - 1;
    auto multiply = [&](auto quarter) {
        constexpr int e = decltype(quarter)::value, last = BK / 8 - 1;
        if constexpr (e == 0) copy(free);
        if constexpr (e == last) {
            free = free + 1 == STAGES ? 0 : free + 1;
            stage = stage + 1 == STAGES ? 0 : stage + 1;
            wait_copies<STAGES - 2>();
            __syncthreads();
        }
        load(stage, (e + 1) % (BK / 8), (e + 1) % 2);
        multiply_eight<e == 0, e == last>(sum, round_sum, a[e % 2], b[e % 2]);
    };
    for (int k = k_begin; k < k_end; k += BK) {
        multiply(constant<0>());
        multiply(constant<1>());
        multiply(constant<2>());
        multiply(constant<3>());
    }
    wait_copies<0>();

    float *out = static_cast<float *>(w.out) + blockIdx.z * w.part_stride + (int64_t)group * w.m * w.n;
    const int first_m = m0 + warp_m + lane / 4, first_n = n0 + warp_n + lane % 4 * 2;
    bool is_number = true;
#pragma unroll
    for (int j = 0; j < S::TN; j++)
#pragma unroll
        for (int one = 0; one < 2; one++) {
            int channel, tap;
            if (!find_column<order>(g, first_n + j * 8 + one, &channel, &tap)) continue;
            const int64_t at = channel * (int)w.taps.size + tap;
#pragma unroll
            for (int i = 0; i < S::TM * 2; i++) {
                if (first_m + i * 8 >= w.m) continue;
                const float found = sum[i / 2][j][i % 2 * 2 + one];
                is_number &= found == found;
                out[(first_m + i * 8) * (int64_t)w.n + at] = found;
            }
        }
    if (is_number) return;
    for (int which = 0; which < S::TM * S::TN * 4; which++) {
        const int m = first_m + which / S::TN / 2 * 8;
        int channel, tap;
        if (!find_column<order>(g, first_n + which % S::TN * 8 + which / S::TN % 2, &channel, &tap) || m >= w.m)
            continue;
        const tap_entry e = entry_of(w, channel, tap);
        float *found = out + m * (int64_t)w.n + e.weight;
        if (*found == *found) continue;
        float again = 0;
        for (int k = k_begin; k < k_end; k++) {
            const position_entry p = position_of(w, group, k);
            again += (sees(w, p, e) ? x[p.x + e.source] : 0.0f) * y[p.y + m * y_plane];
        }
        *found = again;
    }
}

/* ---- which shape, order and parts ---------------------------------------------------------------------------------- */

/* So many parts that tiles * parts blocks fill the slots of the device in waves that are as full as may be; a part has at
 * least 8 rounds. */
static int64_t parts_for(int64_t tiles, int64_t slots, int64_t k) {
    int64_t best = 1, most = 4 * slots / tiles;
    double fullest = 0;
    if (most > k / (8 * BK)) most = k / (8 * BK);
    for (int64_t parts = 1; parts <= most; parts++) {
        const int64_t waves = (tiles * parts + slots - 1) / slots;
        const double full = (double)(tiles * parts) / (double)(waves * slots);
        if (full > fullest + 0.02) {
            fullest = full;
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
    const int64_t tiles = (int64_t)((w.m + S::BM - 1) / S::BM) * ((g.columns + S::BN - 1) / S::BN);
    cut(&w, parts_for(tiles * w.groups, (int64_t)S::blocks * gpu->multiprocessors, w.k), BK);
    w.part_stride = (int64_t)w.groups * w.m * w.n;
    const size_t bytes = (size_t)(w.part_stride * w.parts) * sizeof(float);
    void *parts = w.parts > 1 ? nr_cuda_scratch(gpu, bytes) : nullptr;
    if (w.parts > 1 && !parts) return NORCH_ERROR_MEMORY;
    w.out = parts ? parts : out;
    g.w = w;
    const bool wide_y = w.positions.size % 4 == 0 && is_aligned(w.y, 16);
    auto kernel = wide_y ? sum_weight_mma<S, order, true> : sum_weight_mma<S, order, false>;
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::bytes);
    if (error == cudaSuccess) {
        LAUNCH(kernel, dim3((unsigned)tiles, (unsigned)w.groups, (unsigned)w.parts), THREADS, S::bytes, gpu->stream, g);
        error = cudaGetLastError();
    }
    int32_t failed = error == cudaSuccess ? NORCH_OK : nr_cuda_fail(nr_call_name(call), error);
    if (parts && !failed) failed = nr_conv_add_parts(call, out, parts, w.part_stride, w.parts);
    if (parts) nr_cuda_scratch_free(gpu, parts, bytes);
    return failed;
}

bool nr_conv_weight_mma_pays(const nr_call *call, const weight_args &w) {
    if (call->dtype != NORCH_FLOAT32 || gpu_of(call)->capability < 80) return false;
    return w.m >= 8 && w.n >= 8 && w.k >= 256 && (double)w.m * w.n * w.k * w.groups >= 1e6;
}

int32_t nr_conv_weight_mma(const nr_call *call, weight_args w, void *out) {
    const bool plain =
        w.taps.size == 1 && w.stride[0] == 1 && w.stride[1] == 1 && w.padding[0] == 0 && w.padding[1] == 0;
    if (plain && w.positions.size % 4 == 0 && (int64_t)w.size[0] * w.size[1] == w.positions.size && w.n > 64 &&
        is_aligned(w.x, 16))
        return run<wide_shape, WIDE>(call, w, out);
    if (w.n <= 32) return run<narrow_shape, BY_TABLE>(call, w, out);
    const int32_t padded = (w.in + 31) / 32 * 32;
    if (padded * 7 > w.in * 8) return run<middle_shape, BY_TABLE>(call, w, out);
    return run<middle_shape, BY_TAP>(call, w, out);
}
