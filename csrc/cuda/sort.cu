/* sort: elements become unsigned keys of the same order beside their indices, which settle ties, so that every way is
 * stable. Searches bisect.
 *
 *   (key, index)   [ RUN     ][ RUN     ][ RUN     ][ RUN ]   a block a run: a bitonic network in shared memory
 *   buffer 1       [ 2 RUN              ][ 2 RUN          ]   merged, a thread an item: it bisects the other run for how
 *   buffer 0       [ 4 RUN                                ]   many come before it, which gives its new position
 *   out            indices of the first `count`
 *
 * Networks: Batcher, "Sorting networks and their applications" (1968). Merging by bisection: Satish, Harris and Garland,
 * "Designing Efficient Sorting Algorithms for Manycore GPUs" (2009). */
#include "../families/sort.h"
#include "cuda.cuh"

#define RUN 1024 /* elements that a block sorts in shared memory */

struct item {
    uint64_t key;
    int64_t index;
};

struct sort_args {
    char *out;
    const char *in, *row;
    item *from, *to;
    int64_t lanes, n, count, step[2], run; /* run: the length of the runs sorted so far */
    uint64_t flip;
    int32_t width; /* of the network: a power of 2 */
    bool flag;
    nest<3> where;
};

/* ---- keys: -0 as 0, NaN above all -------------------------------------------------------------------------------- */

DEVICE uint64_t key_of(int64_t x) { return (uint64_t)x ^ (uint64_t)1 << 63; }
DEVICE uint64_t key_of(double x) {
    uint64_t bits, sign = (uint64_t)1 << 63;
    x += 0.0; /* -0 + 0 is 0 */
    memcpy(&bits, &x, sizeof bits);
    return x != x ? UINT64_MAX : bits & sign ? ~bits : bits | sign;
}
DEVICE uint64_t key_of(float x) { return key_of((double)x); }

DEVICE bool before(const item &a, const item &b) { return a.key != b.key ? a.key < b.key : a.index < b.index; }

/* ---- kernels ------------------------------------------------------------------------------------------------------ */

/* A block sorts one run of one lane; what a run lacks to a power of 2 are items behind all others. */
template <class T> __global__ void __launch_bounds__(NR_BLOCK) sort_runs(const sort_args a) {
    DYNAMIC_SHARED(item, items);
    const int64_t runs = (a.n + RUN - 1) / RUN, lane = blockIdx.x / runs, first = blockIdx.x % runs * RUN;
    int64_t at[3];
    a.where.find((uint32_t)lane, at);
    const int n = (int)(a.n - first < RUN ? a.n - first : RUN);
    for (int i = (int)threadIdx.x; i < a.width; i += NR_BLOCK) {
        items[i] = {UINT64_MAX, INT64_MAX};
        if (i >= n) continue;
        items[i].key = key_of(*reinterpret_cast<const T *>(a.in + at[1] + (first + i) * a.step[1])) ^ a.flip;
        items[i].index = first + i;
    }
    __syncthreads();
    for (int size = 2; size <= a.width; size *= 2)
        for (int distance = size / 2; distance > 0; distance /= 2) {
            for (int i = (int)threadIdx.x; i < a.width; i += NR_BLOCK) {
                int j = i ^ distance;
                bool up = (i & size) == 0;
                if (j > i && before(items[j], items[i]) == up) {
                    item swap = items[i];
                    items[i] = items[j];
                    items[j] = swap;
                }
            }
            __syncthreads();
        }
    if (a.to) {
        for (int i = (int)threadIdx.x; i < n; i += NR_BLOCK) a.to[lane * a.n + first + i] = items[i];
    } else { /* one run a lane: this is the result */
        for (int i = (int)threadIdx.x; i < n && i < a.count; i += NR_BLOCK)
            *reinterpret_cast<int64_t *>(a.out + at[0] + i * a.step[0]) = items[i].index;
    }
}

/* Each item goes behind those of its own run and those of the other that come before it. */
__global__ void __launch_bounds__(NR_BLOCK) merge_runs(const sort_args a) {
    int64_t i = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= a.lanes * a.n) return;
    int64_t lane = i / a.n, position = i % a.n, pair = position / (2 * a.run) * (2 * a.run);
    bool second = position - pair >= a.run;
    int64_t low = second ? pair : pair + a.run, high = low + a.run, own = second ? pair + a.run : pair;
    if (low > a.n) low = a.n;
    if (high > a.n) high = a.n;
    const item *all = a.from + lane * a.n, mine = all[position];
    int64_t start = low;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (before(all[middle], mine))
            low = middle + 1;
        else
            high = middle;
    }
    a.to[lane * a.n + pair + (position - own) + (low - start)] = mine;
}

__global__ void __launch_bounds__(NR_BLOCK) write_indices(const sort_args a) {
    int64_t i = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= a.lanes * a.count) return;
    int64_t at[3], lane = i / a.count, position = i % a.count;
    a.where.find((uint32_t)lane, at);
    *reinterpret_cast<int64_t *>(a.out + at[0] + position * a.step[0]) = a.from[lane * a.n + position].index;
}

/* How many elements precede each value; compared as PyTorch does, so that NaN comes last. */
template <class T> __global__ void __launch_bounds__(NR_BLOCK) search(const sort_args a) {
    int64_t i = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= a.lanes) return;
    int64_t at[3], low = 0, high = a.n;
    a.where.find((uint32_t)i, at);
    T value = *reinterpret_cast<const T *>(a.in + at[1]);
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        T there = *reinterpret_cast<const T *>(a.row + at[2] + middle * a.step[1]);
        if (a.flag ? !(there > value) : !(there >= value))
            low = middle + 1;
        else
            high = middle;
    }
    *reinterpret_cast<int64_t *>(a.out + at[0]) = low;
}

template <class T> static int32_t sort_lanes(const nr_call *call, sort_args a) {
    const nr_gpu *gpu = gpu_of(call);
    int64_t runs = (a.n + RUN - 1) / RUN;
    a.width = 1;
    while (a.width < a.n && a.width < RUN) a.width *= 2;
    size_t bytes = (size_t)(a.lanes * a.n) * sizeof(item), shared = (size_t)a.width * sizeof(item);
    if (runs == 1) {
        LAUNCH(sort_runs<T>, (unsigned)a.lanes, NR_BLOCK, shared, gpu->stream, a);
        return launched(call);
    }
    item *buffer[2];
    for (int b = 0; b < 2; b++) {
        buffer[b] = static_cast<item *>(nr_cuda_scratch(gpu, bytes));
        if (buffer[b]) continue;
        if (b) nr_cuda_scratch_free(gpu, buffer[0], bytes);
        return NORCH_ERROR_MEMORY;
    }
    a.to = buffer[0];
    LAUNCH(sort_runs<T>, (unsigned)(a.lanes * runs), NR_BLOCK, shared, gpu->stream, a);
    int now = 0;
    for (a.run = RUN; a.run < a.n; a.run *= 2, now ^= 1) {
        a.from = buffer[now];
        a.to = buffer[now ^ 1];
        LAUNCH(merge_runs, blocks_for(a.lanes * a.n, NR_BLOCK), NR_BLOCK, 0, gpu->stream, a);
    }
    a.from = buffer[now];
    LAUNCH(write_indices, blocks_for(a.lanes * a.count, NR_BLOCK), NR_BLOCK, 0, gpu->stream, a);
    cudaError_t error = cudaGetLastError();
    for (int b = 0; b < 2; b++) nr_cuda_scratch_free(gpu, buffer[b], bytes);
    TRY(nr_call_name(call), error);
    return NORCH_OK;
}

template <class T> static int32_t run_part(const nr_call *call, const nr_plan &lanes) {
    const nr_sort_plan &plan = *static_cast<const nr_sort_plan *>(call->plan);
    sort_args a = {};
    nr_plan nest = lanes;
    for (int32_t d = 0; call->op == NR_ARGSORT && d < nest.ndim; d++) nest.stride[2][d] = 0;
    a.out = lanes.data[0];
    a.in = lanes.data[1];
    a.lanes = lanes.numel;
    a.n = plan.n;
    a.count = plan.count;
    a.step[0] = plan.step[0];
    a.step[1] = plan.step[1];
    a.flag = plan.flag;
    a.flip = plan.flag ? UINT64_MAX : 0;
    a.where = nest_of<3>(nest.ndim, nest.size, nest.stride);
    if (call->op == NR_ARGSORT) return sort_lanes<T>(call, a);
    a.row = lanes.data[2];
    LAUNCH(search<T>, blocks_for(a.lanes, NR_BLOCK), NR_BLOCK, 0, gpu_of(call)->stream, a);
    return launched(call);
}

int32_t nr_cuda_sort(const nr_call *call) {
    const nr_sort_plan &plan = *static_cast<const nr_sort_plan *>(call->plan);
    if (plan.nest.numel == 0 || (call->op == NR_ARGSORT && (plan.n == 0 || plan.count == 0))) return NORCH_OK;
    return in_parts(plan.nest, [&](const nr_plan &part) {
        return call->dtype == NORCH_INT64     ? run_part<int64_t>(call, part)
               : call->dtype == NORCH_FLOAT32 ? run_part<float>(call, part)
                                              : run_part<double>(call, part);
    });
}
