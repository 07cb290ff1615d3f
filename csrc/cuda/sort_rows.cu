/* sort_rows: lanes short enough for one block, which sorts each of them digit by
 * digit without leaving its shared memory.
 *
 *   lane       3.0 -1.0 2.0 ...     registers: ITEMS keys a thread, and the place of each in the lane
 *   ranks      of the lowest digit                    radix.cuh
 *   exchange   keys and places through shared memory to their ranks, and back in that order
 *   again      for each digit in which the keys differ: integers of few values have few
 *   out        registers in order: neighbours write neighbours
 *   tiny       a warp a lane of at most 64: each key counts those before it
 *
 * A lane is filled up to a full tile by keys of all ones, which stay behind it: every pass is stable. */
#include "radix.cuh"

template <class T, int THREADS, int ITEMS> struct row_memory {
    key_type<T> keys[THREADS * ITEMS];
    uint16_t places[THREADS * ITEMS];
    radix_counts<THREADS> counts;
    key_type<T> differ[THREADS / 32];
};

/* Bits in which the keys of a block differ. */
template <int THREADS, class Key> DEVICE Key differences(Key value, Key *memory) {
    for (int half = 16; half > 0; half /= 2) value |= __shfl_xor_sync(NR_ALL, value, half);
    if constexpr (THREADS > 32) {
        if (threadIdx.x % 32 == 0) memory[threadIdx.x / 32] = value;
        __syncthreads();
        for (int w = 0; w < THREADS / 32; w++) value |= memory[w];
    }
    return value;
}

template <class T, int THREADS, int ITEMS>
__global__ void __launch_bounds__(THREADS) sort_row(const __grid_constant__ radix_args a) {
    using Key = key_type<T>;
    constexpr int EACH = NR_DIGITS / THREADS;
    __shared__ row_memory<T, THREADS, ITEMS> s;
    const radix_lane<T> lane(a, blockIdx.x);
    const int n = (int)a.n, warp = (int)threadIdx.x / 32, first = warp * 32 * ITEMS + (int)threadIdx.x % 32;
    Key key[ITEMS], differ = 0;
    uint16_t position[ITEMS];
    const Key front = lane.key(0);
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int at = first + i * 32;
        key[i] = at < n ? lane.key(at) : ~(Key)0;
        position[i] = (uint16_t)at;
        if (at < n) differ |= key[i] ^ front;
    }
    differ = differences<THREADS>(differ, s.differ);
#pragma unroll 1
    for (int pass = 0; pass < radix_key<T>::passes; pass++) {
        if (digit_of(differ, pass) == 0) continue;
        uint32_t rank[ITEMS], total[EACH], start[EACH];
        rank_in_warp(key, pass, rank, s.counts.of[warp]);
        starts_of_ranks<THREADS>(s.counts, total, start, [](const uint32_t (&)[EACH]) {});
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            rank[i] += s.counts.of[warp][digit_of(key[i], pass)];
            s.keys[rank[i]] = key[i];
            s.places[rank[i]] = position[i];
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            key[i] = s.keys[first + i * 32];
            position[i] = s.places[first + i * 32];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        if (first + i * 32 < n) lane.write(first + i * 32, key[i], lane.place(position[i]));
}

/* Lanes of at most 32 ITEMS elements, a warp each: a key's rank is the number of keys before it. */
template <class T, int ITEMS>
__global__ void __launch_bounds__(NR_BLOCK) rank_row(const __grid_constant__ radix_args a) {
    using Key = key_type<T>;
    const int64_t row = (int64_t)blockIdx.x * (NR_BLOCK / 32) + threadIdx.x / 32;
    if (row >= a.lanes) return;
    const radix_lane<T> lane(a, row);
    const int member = (int)threadIdx.x % 32, n = (int)a.n;
    Key key[ITEMS];
    int rank[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        key[i] = member + i * 32 < n ? lane.key(member + i * 32) : ~(Key)0;
        rank[i] = 0;
    }
#pragma unroll
    for (int from = 0; from < ITEMS; from++)
        for (int l = 0; l < 32 && from * 32 + l < n; l++) {
            const Key other = __shfl_sync(NR_ALL, key[from], l);
#pragma unroll
            for (int i = 0; i < ITEMS; i++) {
                const bool earlier = from * 32 + l < member + i * 32;
                rank[i] += other < key[i] || (earlier && other == key[i]);
            }
        }
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        if (member + i * 32 < n) lane.write(rank[i], key[i], lane.place(member + i * 32));
}

/* The longest lane that a block sorts: its keys and places fill the shared memory that a kernel may have. */
template <class T> constexpr int LONGEST = sizeof(key_type<T>) == 4 ? 4096 : 2048;

template <class T> static void launch_rows(const nr_call *call, const radix_args &a) {
    const cudaStream_t stream = gpu_of(call)->stream;
    const unsigned lanes = (unsigned)a.lanes;
    if (a.n <= 32)
        LAUNCH((rank_row<T, 1>), blocks_for(a.lanes, NR_BLOCK / 32), NR_BLOCK, 0, stream, a);
    else if (a.n <= 64)
        LAUNCH((rank_row<T, 2>), blocks_for(a.lanes, NR_BLOCK / 32), NR_BLOCK, 0, stream, a);
    else if (a.n <= 128)
        LAUNCH((sort_row<T, 32, 4>), lanes, 32, 0, stream, a);
    else if (a.n <= 512)
        LAUNCH((sort_row<T, 64, 8>), lanes, 64, 0, stream, a);
    else if (a.n <= 1024)
        LAUNCH((sort_row<T, 128, 8>), lanes, 128, 0, stream, a);
    else
        LAUNCH((sort_row<T, 256, LONGEST<T> / 256>), lanes, 256, 0, stream, a);
}

bool nr_cuda_sorts_rows(const nr_call *call, const radix_args &a) {
    return a.n <= with_sorted(call, a, [](auto x) { return LONGEST<decltype(x)>; });
}

int32_t nr_cuda_sort_rows(const nr_call *call, const radix_args &a) {
    with_sorted(call, a, [&](auto x) { return launch_rows<decltype(x)>(call, a); });
    return launched(call);
}
