/* topk: the first few of each lane in order, without sorting the rest. A team (a warp, or a block) holds a part of a
 * lane in registers and finds the key of the k-th by its bits from the highest down: it counts the keys that are at
 * least as large as a trial. The keys before that key, and the first of its equals, are put in order by counting.
 *
 *   lane     [ part 0 ][ part 1 ][ part 2 ]     a team a part; short lanes have one, and are done
 *   found    [ k keys and places of each  ]     again a lane: selected from again, or sorted, when it is short
 *   out      [ k ]
 *
 * Parts keep their order, so equal elements keep theirs. Selection by digits: Alabi, Blanchard, Gordon,
 * Steinbach, "Fast K-selection Algorithms for Graphics Processing Units" (ACM JEA 17, 2012), here by
 * single bits, counted in registers. */
#include "radix.cuh"

#define MOST 128        /* selected elements */
#define WARP_ITEMS 1024 /* that a warp takes */
#define BLOCK_ITEMS 4096

struct select_args {
    radix_args lanes;
    uint32_t parts;
    void *keys; /* [lane][part][count]: the results of parts, unless there is one */
    uint32_t *places;
};

/* The sum over the threads of a team of THREADS; round: 0 and 1 by turns, so that one barrier is enough. */
template <int THREADS> DEVICE int team_sum(int value, int (*memory)[THREADS / 32], int round) {
    for (int half = 16; half > 0; half /= 2) value += __shfl_xor_sync(NR_ALL, value, half);
    if constexpr (THREADS > 32) {
        if (threadIdx.x % 32 == 0) memory[round][threadIdx.x / 32] = value;
        __syncthreads();
        value = 0;
        for (int w = 0; w < THREADS / 32; w++) value += memory[round][w];
    }
    return value;
}

/* Keys are turned round here: the largest come first. */
template <class T, int THREADS, int ITEMS>
__global__ void __launch_bounds__(THREADS) select_part(const __grid_constant__ select_args a) {
    using Key = key_type<T>;
    __shared__ Key found[MOST];
    __shared__ int positions[MOST], taken, memory[2][THREADS / 32];
    const int t = (int)threadIdx.x, count = (int)a.lanes.count;
    const uint32_t part = blockIdx.x % a.parts;
    const int64_t row = blockIdx.x / a.parts, first = (int64_t)part * THREADS * ITEMS;
    const radix_lane<T> lane(a.lanes, row);
    const int n = (int)(a.lanes.n - first < THREADS * ITEMS ? a.lanes.n - first : THREADS * ITEMS);
    const int wanted = count < n ? count : n;
    Key key[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) key[i] = i * THREADS + t < n ? ~lane.key(first + i * THREADS + t) : 0;
    if (t == 0) taken = 0;

    Key last = 0; /* the largest that `wanted` keys are not below */
    bool exact = false;
    for (int bit = 8 * (int)sizeof(Key) - 1; bit >= 0 && !exact; bit--) {
        const Key trial = last | (Key)1 << bit;
        int above = 0;
#pragma unroll
        for (int i = 0; i < ITEMS; i++) above += key[i] >= trial;
        above = team_sum<THREADS>(above, memory, bit & 1);
        if (above >= wanted) last = trial;
        exact = above == wanted;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        if (key[i] > last || (exact && key[i] == last)) { /* none of those behind the end: they are 0 */
            const int slot = atomicAdd(&taken, 1);
            found[slot] = key[i];
            positions[slot] = i * THREADS + t;
        }
    __syncthreads();
    int slot = taken;
    for (int i = 0; i < ITEMS && slot < wanted; i++) { /* equals of the last, in order */
        const bool equal = key[i] == last && i * THREADS + t < n;
        const uint32_t votes = __ballot_sync(NR_ALL, equal);
        int slot_of_equal = slot + __popc(votes & ((1u << t % 32) - 1)), all = __popc(votes);
        if constexpr (THREADS > 32) {
            if (t % 32 == 0) memory[i & 1][t / 32] = all;
            __syncthreads();
            all = 0;
            for (int w = 0; w < THREADS / 32; w++) {
                if (w < t / 32) slot_of_equal += memory[i & 1][w];
                all += memory[i & 1][w];
            }
        }
        if (equal && slot_of_equal < wanted) {
            found[slot_of_equal] = last;
            positions[slot_of_equal] = i * THREADS + t;
        }
        slot += all;
    }
    __syncthreads();
    for (int k = t; k < count; k += THREADS) {
        Key mine = 0;
        int64_t position = 0;
        int rank = k; /* behind the end of a short part: nothing, and last */
        if (k < wanted) {
            mine = found[k];
            position = positions[k];
            rank = 0;
            for (int j = 0; j < wanted; j++)
                rank += found[j] > mine || (found[j] == mine && positions[j] < (int)position);
        }
        const uint32_t place = k < wanted ? lane.place(first + position) : 0;
        if (a.parts == 1) {
            lane.write(rank, ~mine, place);
        } else {
            const int64_t to = (int64_t)blockIdx.x * count + rank;
            static_cast<Key *>(a.keys)[to] = ~mine;
            a.places[to] = place;
        }
    }
}

template <class T> static void launch_parts(const nr_call *call, const select_args &a) {
    const cudaStream_t stream = gpu_of(call)->stream;
    const unsigned blocks = (unsigned)(a.lanes.lanes * a.parts);
    if (a.lanes.n <= 256)
        LAUNCH((select_part<T, 32, 8>), blocks, 32, 0, stream, a);
    else if (a.lanes.n <= WARP_ITEMS)
        LAUNCH((select_part<T, 32, 32>), blocks, 32, 0, stream, a);
    else
        LAUNCH((select_part<T, 256, 16>), blocks, 256, 0, stream, a);
}

bool nr_cuda_selects(int64_t n, int64_t count) { return count <= MOST && count * 8 <= n && n <= UINT32_MAX; }

int32_t nr_cuda_select(const nr_call *call, const radix_args &lanes) {
    const nr_gpu *gpu = gpu_of(call);
    select_args a = {};
    a.lanes = lanes;
    a.parts = lanes.n <= BLOCK_ITEMS ? 1 : blocks_for(lanes.n, BLOCK_ITEMS);
    const size_t found = a.parts == 1 ? 0 : (size_t)(lanes.lanes * a.parts * lanes.count);
    const size_t key_size = call->dtype == NORCH_FLOAT32 ? sizeof(uint32_t) : sizeof(uint64_t);
    scratch keys(gpu, found * key_size), places(gpu, found * sizeof(uint32_t));
    if (keys.failed() || places.failed()) return NORCH_ERROR_MEMORY;
    a.keys = keys.memory;
    a.places = reinterpret_cast<uint32_t *>(places.memory);
    (call->dtype == NORCH_INT64     ? launch_parts<int64_t>
     : call->dtype == NORCH_FLOAT32 ? launch_parts<float>
                                    : launch_parts<double>)(call, a);
    NR_TRY(launched(call));
    if (a.parts == 1) return NORCH_OK;
    radix_args rest = lanes;
    rest.n = a.parts * lanes.count;
    rest.keys = a.keys;
    rest.places = a.places;
    return nr_cuda_sorts_rows(call, rest) ? nr_cuda_sort_rows(call, rest) : nr_cuda_select(call, rest);
}
