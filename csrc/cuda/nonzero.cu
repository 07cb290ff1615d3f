/* nonzero: the coordinates of what is true, a block a chunk. Chunks are counted first, and the host, which must know how
 * many there are, determines where each of them writes.
 *
 *   truth    [ chunk: 5 true ][ chunk: 0 ][ chunk: 3 ]     count_chunks, then running sums on the host
 *   counts   0                5           5           8    write_chunks: in rounds of 8 bytes a thread,
 *   round    thread  0  1  2  3  ...                         bits that each finds in its bytes:     2 0 1 2
 *            [8 bytes][8 bytes][ ...                         true ones before it, by warp shuffles: 0 2 2 3
 *
 * Scans in a warp, then over warps: Harris, Sengupta and Owens, "Parallel Prefix Sum (Scan) with CUDA" (GPU Gems 3, 2007). */
#include "../families/index.h"
#include "cuda.cuh"

#define WARPS (NR_BLOCK / 32)
#define BYTES 8 /* that a thread looks at in a round */

struct nonzero_args {
    const uint8_t *truth;
    int64_t n, *counts, *out, row, column;
    int32_t ndim;
    int64_t size[NORCH_MAX_DIMS];
    bool aligned;
};

/* Bit b: byte i + b is true. */
DEVICE uint32_t bits_of(const nonzero_args &a, int64_t i, int64_t end) {
    uint32_t bits = 0;
    if (a.aligned && i + BYTES <= end) {
        const auto eight = *reinterpret_cast<const pack<uint8_t, BYTES> *>(a.truth + i);
#pragma unroll
        for (int b = 0; b < BYTES; b++) bits |= (uint32_t)(eight.v[b] != 0) << b;
    } else {
        for (int b = 0; b < BYTES; b++)
            if (i + b < end) bits |= (uint32_t)(a.truth[i + b] != 0) << b;
    }
    return bits;
}

/* How many threads before this one in the block have counted, and all of them; memory: a number a warp. */
DEVICE int32_t counted_before(int32_t own, int32_t *memory, int32_t *all) {
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int32_t upto = own;
    for (int distance = 1; distance < 32; distance *= 2) {
        const int32_t left = __shfl_up_sync(0xffffffffu, upto, distance);
        if (lane >= distance) upto += left;
    }
    if (lane == 31) memory[warp] = upto;
    __syncthreads();
    int32_t before = upto - own;
    *all = 0;
    for (int w = 0; w < WARPS; w++) {
        if (w < warp) before += memory[w];
        *all += memory[w];
    }
    __syncthreads();
    return before;
}

__global__ void __launch_bounds__(NR_BLOCK) count_chunks(const nonzero_args a) {
    __shared__ int32_t memory[WARPS];
    const int64_t first = (int64_t)blockIdx.x * NR_NONZERO_CHUNK;
    const int64_t end = a.n - first < NR_NONZERO_CHUNK ? a.n : first + NR_NONZERO_CHUNK;
    int32_t own = 0, all;
    for (int64_t i = first + (int)threadIdx.x * BYTES; i < end; i += NR_BLOCK * BYTES)
        own += __popc(bits_of(a, i, end));
    counted_before(own, memory, &all);
    if (threadIdx.x == 0) a.counts[blockIdx.x] = all;
}

__global__ void __launch_bounds__(NR_BLOCK) write_chunks(const nonzero_args a) {
    __shared__ int32_t memory[WARPS];
    const int64_t first = (int64_t)blockIdx.x * NR_NONZERO_CHUNK;
    const int64_t end = a.n - first < NR_NONZERO_CHUNK ? a.n : first + NR_NONZERO_CHUNK;
    int64_t written = a.counts[blockIdx.x];
    for (int64_t round = first; round < end; round += NR_BLOCK * BYTES) {
        const int64_t i = round + (int)threadIdx.x * BYTES;
        const uint32_t bits = bits_of(a, i, end);
        int32_t all, before = counted_before(__popc(bits), memory, &all);
        for (int b = 0; b < BYTES; b++) {
            if (!(bits >> b & 1)) continue;
            int64_t *to = a.out + (written + before++) * a.row, position = i + b;
            for (int32_t d = a.ndim - 1; d >= 0; d--) {
                to[d * a.column] = position % a.size[d];
                position /= a.size[d];
            }
        }
        written += all;
    }
}

int32_t nr_cuda_nonzero(const nr_call *call) {
    const nr_nonzero_plan &p = *static_cast<const nr_nonzero_plan *>(call->plan);
    const nr_gpu *gpu = gpu_of(call);
    const int64_t chunks = (p.n + NR_NONZERO_CHUNK - 1) / NR_NONZERO_CHUNK;
    p.counts[0] = 0;
    if (chunks == 0) return NORCH_OK;
    const size_t bytes = (size_t)chunks * sizeof(int64_t);
    nonzero_args a = {};
    a.truth = p.truth;
    a.n = p.n;
    a.out = p.out;
    a.row = p.row;
    a.column = p.column;
    a.ndim = p.ndim;
    memcpy(a.size, p.size, sizeof a.size);
    a.aligned = is_aligned(p.truth, BYTES);
    a.counts = static_cast<int64_t *>(nr_cuda_scratch(gpu, bytes));
    if (!a.counts) return NORCH_ERROR_MEMORY;
    cudaError_t error = cudaSuccess;
    if (call->op == NR_COUNT) {
        LAUNCH(count_chunks, (unsigned)chunks, NR_BLOCK, 0, gpu->stream, a);
        error = cudaGetLastError();
        if (error == cudaSuccess)
            error = cudaMemcpyAsync(p.counts + 1, a.counts, bytes, cudaMemcpyDeviceToHost, gpu->stream);
        if (error == cudaSuccess) error = cudaStreamSynchronize(gpu->stream);
        for (int64_t i = 0; i < chunks && error == cudaSuccess; i++) p.counts[i + 1] += p.counts[i];
    } else {
        error = cudaMemcpyAsync(a.counts, p.counts, bytes, cudaMemcpyHostToDevice, gpu->stream);
        if (error == cudaSuccess) {
            LAUNCH(write_chunks, (unsigned)chunks, NR_BLOCK, 0, gpu->stream, a);
            error = cudaGetLastError();
        }
    }
    nr_cuda_scratch_free(gpu, a.counts, bytes);
    TRY("nonzero", error);
    return NORCH_OK;
}
