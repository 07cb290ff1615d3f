/* radix_sort: lanes of any length, digit by digit from the lowest, each digit in one sweep over the keys. A block
 * sorts a tile by the digit in shared memory, reads from the tiles before it their number of keys of each digit, and
 * writes its keys behind them.
 *
 *   count     of each digit's values in a lane, all digits at once      -> where the keys of a value start in the lane
 *   sweep 0   x          -> keys and places  [ digit 0      | digit 1    | ... ]
 *   sweep 1   keys ...   -> keys and places, in the other buffer;  the last sweep writes indices and values
 *
 *   status    tile 0: 5 5 ready | tile 1: own count 3 | tile 2: own count 4 | tile 3 adds 4, 3 and then 5: 12 before it
 *
 * A tile takes its number when it begins, so that earlier tiles have begun, and no tile waits for one that cannot run.
 * A digit in which all keys of a lane agree takes no time: its blocks return at once.
 *
 * Adinets, Merrill, "Onesweep: A Faster Least Significant Digit Radix Sort for GPUs" (2022); decoupled look-back:
 * Merrill, Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back" (NVIDIA, 2016). */
#include "radix.cuh"

/* The source and target of a sweep of a lane: the lane itself, or one of two buffers. */
enum sweep_end : uint8_t { IDLE, LANE, BUFFER };
struct route {
    uint8_t from, to; /* IDLE: nothing to do; LANE; BUFFER, BUFFER + 1 */
};

template <class T> struct sweep_shape {
    static constexpr int ITEMS = sizeof(key_type<T>) == 4 ? 16 : 12, TILE = NR_BLOCK * ITEMS;
};

struct sweep_args {
    radix_args lanes;
    void *keys[2];
    uint32_t *places[2];
    uint32_t *starts; /* [lane][pass][digit]: counts, then where they start */
    route *routes;    /* [lane][pass] */
    uint32_t *status; /* [lane][tile][digit] of this pass */
    uint32_t *next;   /* the number of the tile that begins next */
    uint32_t tiles;   /* of a lane */
    int32_t pass, passes;
    uint32_t parts, part_size; /* of a lane, for counting */
};

#define COPIES 4 /* of each count: neighbours add to different ones, for keys are often alike */

/* How often each digit of each pass occurs in a part of a lane. */
template <class T, bool PLACES>
__global__ void __launch_bounds__(NR_BLOCK) count_digits(const __grid_constant__ sweep_args a) {
    using Key = key_type<T>;
    constexpr int PASSES = radix_key<T>::passes, ROUND = 8;
    __shared__ uint32_t counts[PASSES * NR_DIGITS][COPIES];
    for (int i = (int)threadIdx.x; i < PASSES * NR_DIGITS * COPIES; i += NR_BLOCK) counts[i / COPIES][i % COPIES] = 0;
    __syncthreads();
    const radix_lane<T, PLACES> lane(a.lanes, blockIdx.x / a.parts);
    const int64_t begin = (int64_t)(blockIdx.x % a.parts) * a.part_size;
    const int64_t end = begin + a.part_size < a.lanes.n ? begin + a.part_size : a.lanes.n;
    for (int64_t base = begin; base < end; base += NR_BLOCK * ROUND) {
        const int rest = end - base < NR_BLOCK * ROUND ? (int)(end - base) : NR_BLOCK * ROUND;
        Key key[ROUND];
#pragma unroll
        for (int r = 0; r < ROUND; r++) {
            const int i = r * NR_BLOCK + (int)threadIdx.x;
            key[r] = i < rest ? lane.key(base + i) : 0;
        }
#pragma unroll
        for (int r = 0; r < ROUND; r++) {
            const bool valid = r * NR_BLOCK + (int)threadIdx.x < rest;
            const Key other = key[r] ^ __shfl_sync(NR_ALL, key[r], 0);
#pragma unroll
            for (int p = 0; p < PASSES; p++) {
                uint32_t *to = counts[p * NR_DIGITS + digit_of(key[r], p)];
                if (__all_sync(NR_ALL, valid && digit_of(other, p) == 0)) { /* high digits of a warp are often equal */
                    if (threadIdx.x % 32 == 0) atomicAdd(to, 32u);
                } else if (valid) {
                    atomicAdd(to + threadIdx.x % COPIES, 1u);
                }
            }
        }
    }
    __syncthreads();
    uint32_t *to = a.starts + (int64_t)(blockIdx.x / a.parts) * PASSES * NR_DIGITS;
    for (int i = (int)threadIdx.x; i < PASSES * NR_DIGITS; i += NR_BLOCK) {
        uint32_t sum = 0;
        for (int c = 0; c < COPIES; c++) sum += counts[i][c];
        if (sum) atomicAdd(to + i, sum);
    }
}

/* A block a lane: where the keys of each digit start, and the route of each pass. */
__global__ void __launch_bounds__(NR_BLOCK) plan_passes(const __grid_constant__ sweep_args a) {
    __shared__ uint32_t memory[NR_BLOCK / 32];
    __shared__ bool differs[8];
    if (threadIdx.x < 8) differs[threadIdx.x] = true;
    __syncthreads();
    for (int p = 0; p < a.passes; p++) {
        uint32_t *start = a.starts + ((int64_t)blockIdx.x * a.passes + p) * NR_DIGITS + threadIdx.x;
        const uint32_t count = *start;
        if (count == (uint32_t)a.lanes.n) differs[p] = false;
        *start = sum_before<NR_BLOCK>(count, memory);
        __syncthreads();
    }
    if (threadIdx.x != 0) return;
    route *routes = a.routes + (int64_t)blockIdx.x * a.passes;
    int last = -1, swept = 0;
    for (int p = 0; p < a.passes; p++)
        if (differs[p]) last = p;
    if (last < 0) differs[last = 0] = true; /* all keys are equal: one pass writes them */
    for (int p = 0; p < a.passes; p++) {
        routes[p] = {IDLE, IDLE};
        if (!differs[p]) continue;
        routes[p].from = (uint8_t)(swept == 0 ? LANE : BUFFER + (swept + 1) % 2);
        routes[p].to = (uint8_t)(p == last ? LANE : BUFFER + swept % 2);
        swept++;
    }
}

/* The status of a tile: 0, nothing yet; 1 + its count of a digit; or, above OWN, the count of all tiles up to it. */
#define OWN 8192u

/* The number of keys of this thread's digit in the tiles before this one of a lane.
 * status: of that digit in its tile 0. */
DEVICE uint32_t look_back(const uint32_t *status, uint32_t tile) {
    uint32_t before = 0;
    while (tile-- > 0) {
        uint32_t told;
        do told = *(const volatile uint32_t *)(status + (int64_t)tile * NR_DIGITS);
        while (told == 0);
        if (told > OWN) return before + (told - OWN - 1);
        before += told - 1;
    }
    return before;
}

template <class T, bool PLACES>
__global__ void __launch_bounds__(NR_BLOCK, 3) sweep(const __grid_constant__ sweep_args a) {
    using Key = key_type<T>;
    constexpr int ITEMS = sweep_shape<T>::ITEMS, TILE = sweep_shape<T>::TILE;
    static_assert(TILE < OWN, "a tile's own count is told below OWN");
    __shared__ Key keys[TILE]; /* in order; then the places of them */
    __shared__ uint32_t base[NR_DIGITS], number;
    __shared__ radix_counts<NR_BLOCK> counts;
    uint32_t *const places = reinterpret_cast<uint32_t *>(keys);
    const int t = (int)threadIdx.x, warp = t / 32;
    if (t == 0) number = atomicAdd(a.next, 1u);
    __syncthreads();
    const uint32_t row = number / a.tiles, tile = number % a.tiles;
    const route way = a.routes[(int64_t)row * a.passes + a.pass];
    if (way.from == IDLE) return;
    const radix_lane<T, PLACES> lane(a.lanes, row);
    const int64_t first = (int64_t)tile * TILE, begin = row * a.lanes.n + first;
    const int count = (int)(a.lanes.n - first < TILE ? a.lanes.n - first : TILE), offset = warp * 32 * ITEMS + t % 32;

    Key key[ITEMS];
    uint32_t rank[ITEMS], total[1], start[1];
    if (way.from == LANE) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) key[i] = offset + i * 32 < count ? lane.key(first + offset + i * 32) : ~(Key)0;
    } else {
        const Key *from = static_cast<const Key *>(a.keys[way.from - BUFFER]) + begin;
#pragma unroll
        for (int i = 0; i < ITEMS; i++) key[i] = offset + i * 32 < count ? from[offset + i * 32] : ~(Key)0;
    }
    rank_in_warp(key, a.pass, rank, counts.of[warp]);
    uint32_t *status = a.status + (int64_t)row * a.tiles * NR_DIGITS + t;
    volatile uint32_t *told = status + (int64_t)tile * NR_DIGITS;
    starts_of_ranks<NR_BLOCK>(counts, total, start,
                              [&](const uint32_t (&sums)[1]) { *told = sums[0] + 1 + (tile == 0 ? OWN : 0); });
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        rank[i] += counts.of[warp][digit_of(key[i], a.pass)];
        keys[rank[i]] = key[i];
    }
    uint32_t place[ITEMS]; /* on their way while this tile waits for what others tell */
    if (!PLACES) {
    } else if (way.from == LANE) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) place[i] = offset + i * 32 < count ? lane.place(first + offset + i * 32) : 0;
    } else {
        const uint32_t *from = a.places[way.from - BUFFER] + begin;
#pragma unroll
        for (int i = 0; i < ITEMS; i++) place[i] = offset + i * 32 < count ? from[offset + i * 32] : 0;
    }
    const uint32_t before = look_back(status, tile);
    if (tile > 0) *told = before + total[0] + 1 + OWN;
    base[t] = a.starts[((int64_t)row * a.passes + a.pass) * NR_DIGITS + t] + before - start[0];
    __syncthreads();
    Key *to = way.to == LANE ? nullptr : static_cast<Key *>(a.keys[way.to - BUFFER]) + row * a.lanes.n;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int at = i * NR_BLOCK + t;
        key[i] = keys[at];
        if (to && at < count) to[base[digit_of(key[i], a.pass)] + (uint32_t)at] = key[i];
    }
    if constexpr (PLACES) {
        __syncthreads(); /* all keys are out of shared memory */
#pragma unroll
        for (int i = 0; i < ITEMS; i++) places[rank[i]] = place[i];
        __syncthreads();
    }
    uint32_t *to_places = PLACES && to ? a.places[way.to - BUFFER] + row * a.lanes.n : nullptr;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int at = i * NR_BLOCK + t;
        if (at >= count) continue;
        const uint32_t there = base[digit_of(key[i], a.pass)] + (uint32_t)at;
        if (!to)
            lane.write(there, key[i], PLACES ? places[at] : 0);
        else if constexpr (PLACES)
            to_places[there] = places[at];
    }
}

static int digits_of(uint32_t limit) {
    int digits = 1;
    while (digits < 4 && limit >> 8 * digits) digits++;
    return digits;
}

template <class T, bool PLACES> static int32_t sort_keys(const nr_call *call, const radix_args &lanes) {
    using Key = key_type<T>;
    constexpr int PASSES = radix_key<T>::passes, TILE = sweep_shape<T>::TILE;
    const nr_gpu *gpu = gpu_of(call);
    sweep_args a = {};
    a.lanes = lanes;
    a.passes = PASSES;
    a.tiles = blocks_for(lanes.n, TILE);
    const size_t elements = (size_t)(lanes.lanes * lanes.n), digits = (size_t)(lanes.lanes * PASSES) * NR_DIGITS;
    const size_t status = (size_t)lanes.lanes * a.tiles * NR_DIGITS, words = digits + PASSES + status * PASSES;
    scratch keys(gpu, 2 * elements * sizeof(Key)), places(gpu, PLACES ? 2 * elements * sizeof(uint32_t) : 0);
    scratch numbers(gpu, words * sizeof(uint32_t)), routes(gpu, (size_t)lanes.lanes * PASSES * sizeof(route));
    if (keys.failed() || places.failed() || numbers.failed() || routes.failed()) return NORCH_ERROR_MEMORY;
    for (int b = 0; b < 2; b++) {
        a.keys[b] = keys.memory + b * elements * sizeof(Key);
        a.places[b] = reinterpret_cast<uint32_t *>(places.memory) + b * elements;
    }
    a.starts = reinterpret_cast<uint32_t *>(numbers.memory);
    a.routes = reinterpret_cast<route *>(routes.memory);
    TRY(nr_call_name(call), cudaMemsetAsync(numbers.memory, 0, words * sizeof(uint32_t), gpu->stream));
    int64_t parts = gpu->multiprocessors * 8 / lanes.lanes + 1;
    a.part_size = (uint32_t)((lanes.n + parts - 1) / parts);
    if (a.part_size < TILE) a.part_size = TILE;
    a.parts = blocks_for(lanes.n, a.part_size);
    LAUNCH((count_digits<T, PLACES>), (unsigned)(lanes.lanes * a.parts), NR_BLOCK, 0, gpu->stream, a);
    LAUNCH(plan_passes, (unsigned)lanes.lanes, NR_BLOCK, 0, gpu->stream, a);
    const int digits_used = lanes.limit ? digits_of(lanes.limit) : PASSES;
    for (a.pass = 0; a.pass < digits_used; a.pass++) {
        a.next = a.starts + digits + a.pass;
        a.status = a.starts + digits + PASSES + a.pass * status;
        LAUNCH((sweep<T, PLACES>), (unsigned)(lanes.lanes * a.tiles), NR_BLOCK, 0, gpu->stream, a);
    }
    return launched(call);
}

int32_t nr_cuda_radix_sort(const nr_call *call, const radix_args &a) {
    if (a.n > UINT32_MAX - 2 * OWN)
        return nr_library->fail(NORCH_ERROR_VALUE, "%s: rows of %lld elements; at most %lld are sorted on %s",
                                nr_call_name(call), (long long)a.n, (long long)(UINT32_MAX - 2 * OWN),
                                call->backend->name);
    return with_sorted(call, a, [&](auto x) {
        using T = decltype(x);
        return a.indices ? sort_keys<T, true>(call, a) : sort_keys<T, false>(call, a);
    });
}
