/* nonzero: the coordinates of true elements, and the elements of another tensor there. A block takes a tile: tiles are
 * counted first, and the counts before each tile are added up, which gives the position of its output.
 *
 *   truth    [ tile: 5 true ][ tile: 0 ][ tile: 3 ]      count_tiles: 16 bytes a thread
 *   counts     5               0          3        8     add_up: running sums, and all, which the host waits for
 *              0               5          5
 *   tile     thread 0  1  2  3 ...                       visit_true: bits that each finds in its bytes,   2 0 1 2
 *            places    1 7 | 33 | 48 60 ...              those before it, and all places side by side,    0 2 2 3
 *                                                        so that neighbours write what neighbours read
 *
 * Scans in a warp, then over warps: Harris, Sengupta and Owens, "Parallel Prefix Sum
 * (Scan) with CUDA" (GPU Gems 3, 2007). */
#include "../families/index.h"
#include "cuda.cuh"

#define WARPS (NR_BLOCK / 32)
#define BYTES 16 /* that a thread looks at */
#define TILE (NR_BLOCK * BYTES)
static_assert(TILE == NR_NONZERO_CHUNK, "counts has a number a tile");

struct nonzero_args {
    const uint8_t *truth;
    int64_t n, *counts, row, column;
    const char *x;
    void *out;
    volatile nr_report *report;
    int32_t ndim;
    int64_t size[NORCH_MAX_DIMS];
    bool aligned;
};

/* Bit b: byte i + b is true. */
DEVICE uint32_t bits_of(const nonzero_args &a, int64_t i) {
    uint32_t bits = 0;
    if (a.aligned && i + BYTES <= a.n) {
        const auto words = *reinterpret_cast<const pack<uint32_t, BYTES / 4> *>(a.truth + i);
#pragma unroll
        for (int w = 0; w < BYTES / 4; w++) {
            const uint32_t word = words.v[w], low = 0x7f7f7f7fu;
            const uint32_t tops = ~(((word & low) + low) | word | low);    /* 0x80 of each byte that is 0 */
            bits |= (((tops ^ 0x80808080u) * 0x00204081u) >> 28) << 4 * w; /* the four of a word, side by side */
        }
    } else {
        for (int b = 0; b < BYTES; b++)
            if (i + b < a.n) bits |= (uint32_t)(a.truth[i + b] != 0) << b;
    }
    return bits;
}

/* The sum over the threads of a block before this one, and the sum over all; memory: a number a warp. */
template <class T> DEVICE T sum_before(T value, T *memory, T *all) {
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    T to_here = value;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const T left = __shfl_up_sync(0xffffffffu, to_here, distance);
        if (lane >= distance) to_here += left;
    }
    if (lane == 31) memory[warp] = to_here;
    __syncthreads();
    T before = to_here - value;
    *all = 0;
    for (int w = 0; w < WARPS; w++) {
        if (w < warp) before += memory[w];
        *all += memory[w];
    }
    return before;
}

__global__ void __launch_bounds__(NR_BLOCK) count_tiles(const nonzero_args a) {
    __shared__ int32_t memory[WARPS];
    int32_t all;
    sum_before(__popc(bits_of(a, (int64_t)blockIdx.x * TILE + (int)threadIdx.x * BYTES)), memory, &all);
    if (threadIdx.x == 0) a.counts[blockIdx.x] = all;
}

#define EACH 8 /* tiles of a thread in a round */

/* One block: replaces the counts of `tiles` by the sum of the counts before each. */
__global__ void __launch_bounds__(NR_BLOCK) add_up(const nonzero_args a, int64_t tiles) {
    __shared__ int64_t memory[WARPS];
    int64_t total = 0;
    for (int64_t round = 0; round < tiles; round += NR_BLOCK * EACH) {
        const int64_t first = round + (int)threadIdx.x * EACH;
        int64_t count[EACH], of_thread = 0, all;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            count[e] = first + e < tiles ? a.counts[first + e] : 0;
            of_thread += count[e];
        }
        int64_t before = total + sum_before(of_thread, memory, &all);
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (first + e < tiles) a.counts[first + e] = before;
            before += count[e];
        }
        total += all;
        __syncthreads(); /* the next round writes what this one reads */
    }
    if (threadIdx.x == 0) {
        a.report->total = total;
        __threadfence_system();
    }
}

/* Writes the output of the i-th true element, which is at `place`. */
struct write_place { /* its coordinates */
    static DEVICE void at(const nonzero_args &a, int64_t i, int64_t place) {
        int64_t *to = static_cast<int64_t *>(a.out) + i * a.row;
        for (int32_t d = a.ndim - 1; d > 0; d--) {
            const int64_t rest = place >> 32 ? place / a.size[d] : (int64_t)((uint32_t)place / (uint32_t)a.size[d]);
            to[d * a.column] = place - rest * a.size[d];
            place = rest;
        }
        if (a.ndim > 0) to[0] = place;
    }
};
template <class W> struct get_element {
    static DEVICE void at(const nonzero_args &a, int64_t i, int64_t place) {
        static_cast<W *>(a.out)[i] = reinterpret_cast<const W *>(a.x)[place];
    }
};
template <class W> struct put_element {
    static DEVICE void at(const nonzero_args &a, int64_t i, int64_t place) {
        static_cast<W *>(a.out)[place] = reinterpret_cast<const W *>(a.x)[i];
    }
};

template <class Visit> __global__ void __launch_bounds__(NR_BLOCK) visit_true(const nonzero_args a) {
    __shared__ int32_t memory[WARPS];
    __shared__ uint16_t places[TILE];
    const int64_t tile = (int64_t)blockIdx.x * TILE, written = a.counts[blockIdx.x];
    uint32_t bits = bits_of(a, tile + (int)threadIdx.x * BYTES);
    int32_t all, before = sum_before(__popc(bits), memory, &all);
    for (; bits; bits &= bits - 1) places[before++] = (uint16_t)(threadIdx.x * BYTES + __ffs((int)bits) - 1);
    __syncthreads();
    for (int32_t i = (int32_t)threadIdx.x; i < all; i += NR_BLOCK) Visit::at(a, written + i, tile + places[i]);
}

typedef void (*visit_kernel)(nonzero_args);
template <template <class> class Visit> static visit_kernel of_item(int64_t size) {
    switch (size) {
    case 1: return visit_true<Visit<uint8_t>>;
    case 2: return visit_true<Visit<uint16_t>>;
    case 4: return visit_true<Visit<uint32_t>>;
    }
    return visit_true<Visit<uint64_t>>;
}

int32_t nr_cuda_nonzero(const nr_call *call) {
    const nr_nonzero_plan &p = *static_cast<const nr_nonzero_plan *>(call->plan);
    const nr_gpu *gpu = gpu_of(call);
    const unsigned tiles = blocks_for(p.n, TILE);
    if (tiles == 0) {
        *p.total = 0;
        return NORCH_OK;
    }
    nonzero_args a = {};
    a.truth = p.truth;
    a.n = p.n;
    a.counts = p.counts;
    a.out = p.out;
    a.x = p.x;
    a.row = p.row;
    a.column = p.column;
    a.report = gpu->report_on_device;
    a.ndim = p.ndim;
    memcpy(a.size, p.size, sizeof a.size);
    a.aligned = is_aligned(p.truth, BYTES);
    if (call->op != NR_COUNT) {
        const visit_kernel kernel = call->op == NR_NONZERO    ? visit_true<write_place>
                                    : call->op == NR_MASK_GET ? of_item<get_element>(p.item)
                                                              : of_item<put_element>(p.item);
        return run_blocks(call, kernel, tiles, a);
    }
    LAUNCH(count_tiles, tiles, NR_BLOCK, 0, gpu->stream, a);
    LAUNCH(add_up, 1, NR_BLOCK, 0, gpu->stream, a, (int64_t)tiles);
    NR_TRY(launched(call));
    TRY(nr_call_name(call), cudaStreamSynchronize(gpu->stream));
    *p.total = gpu->report->total;
    return NORCH_OK;
}
