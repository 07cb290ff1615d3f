/* index: reads at indices, and the offsets in bytes for several index tensors. A thread reads an element, or ROW
 * neighbours that have indices side by side: dense[i] = target[index[i]]. Writes: scatter.cu. */
#include "index.cuh"

#define ROW 4 /* neighbours that a thread reads */

template <class W> __global__ void __launch_bounds__(NR_BLOCK) gather(const index_args a) {
    uint32_t i = blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= a.n) return;
    int64_t at[3];
    a.where.find(i, at);
    int64_t offset = offset_of(a, *reinterpret_cast<const int64_t *>(a.index + at[1]));
    *reinterpret_cast<W *>(a.dense + at[0]) =
        offset != LOST ? *reinterpret_cast<const W *>(a.target + at[2] + offset) : (W)0;
}

__global__ void __launch_bounds__(NR_BLOCK) offsets(const index_args a) {
    uint32_t i = blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= a.n) return;
    int64_t at[3];
    a.where.find(i, at);
    int64_t index = *reinterpret_cast<const int64_t *>(a.index + at[1]), size = a.axis_size;
    int64_t sum = a.target ? *reinterpret_cast<const int64_t *>(a.target + at[2]) : 0;
    bool good = index >= -size && index < size;
    if (!good) report_lost(a, index);
    *reinterpret_cast<int64_t *>(a.dense + at[0]) =
        good && sum > LOST / 2 ? sum + (index < 0 ? index + size : index) * a.axis_stride : LOST;
}

/* The same for ROW neighbours of the innermost loop, whose indices and results lie side by side. */
template <class W> __global__ void __launch_bounds__(NR_BLOCK) gather_row(const index_args a) {
    const uint32_t i = (blockIdx.x * NR_BLOCK + threadIdx.x) * ROW;
    if (i >= a.n) return;
    int64_t at[3];
    a.where.find(i, at);
    const auto index = *reinterpret_cast<const pack<int64_t, ROW> *>(a.index + at[1]);
    pack<W, ROW> all;
#pragma unroll
    for (int k = 0; k < ROW; k++) {
        const int64_t offset = offset_of(a, index.v[k]);
        const char *from = a.target + at[2] + k * a.where.stride[2][0];
        all.v[k] = offset != LOST ? *reinterpret_cast<const W *>(from + offset) : (W)0;
    }
    *reinterpret_cast<pack<W, ROW> *>(a.dense + at[0]) = all;
}

typedef void (*index_kernel)(index_args);

/* Whether operand o moves in whole rows of ROW elements, each at a multiple of its size. */
static bool has_rows(const nr_plan &nest, int o, int64_t size) {
    bool fits = nest.ndim > 0 && nest.size[0] % ROW == 0 && nest.stride[o][0] == size;
    for (int32_t d = 1; d < nest.ndim; d++) fits = fits && nest.stride[o][d] % (ROW * size) == 0;
    return fits && is_aligned(nest.data[o], ROW * size);
}

static int32_t read_part(const nr_call *call, const nr_plan &nest) {
    const int64_t size = nr_library->dtypes[call->dtype].size;
    const bool rows = call->op == NR_GATHER && has_rows(nest, 0, size) && has_rows(nest, 1, (int64_t)sizeof(int64_t));
    index_kernel kernel = rows ? BY_SIZE(gather_row, size) : BY_SIZE(gather, size);
    if (call->op == NR_OFFSETS) kernel = offsets;
    return run_blocks(call, kernel, blocks_for(nest.numel, NR_BLOCK * (rows ? ROW : 1)), index_args_of(call, nest));
}

int32_t nr_cuda_index(const nr_call *call) {
    const nr_index_plan &plan = *static_cast<const nr_index_plan *>(call->plan);
    if (call->op >= NR_COUNT) return nr_cuda_nonzero(call);
    if (plan.nest.numel == 0) return NORCH_OK;
    const bool reads = call->op == NR_GATHER || call->op == NR_OFFSETS;
    return in_parts(plan.nest, [&](const nr_plan &part) { return (reads ? read_part : nr_cuda_scatter)(call, part); });
}
