/* index: reads from, writes to and sums into indexed positions. Indices are checked where they are used: one that is out
 * of range reads 0 or adds nothing, and is reported at the next synchronization.
 *
 *   gather     a thread an element:   dense[i] = target[index[i]]
 *   in order   a thread a column:     for each step i, from the first on: target[index[i]] += dense[i]
 *   sorted     index  2 0 2 1   ->    order  1 | 3 | 0 2      a thread a step; the first of equal indices takes them all,
 *              step   0 1 2 3         index  0 | 1 | 2 2      here steps 0 and 2; the sort is stable (sort.cu)
 *
 * What is written goes in order, so that sums are the CPU's and the last write to a place is the one that stays: each
 * thread goes down its column; or, where columns would leave the device idle, the indices of a column are sorted, and a
 * thread a place takes all that lands there. The plain way without atomics, whose order is chance; sorted, it is the
 * reduction by key of Thrust (Bell and Hoberock, GPU Computing Gems, 2011). */
#include "../families/index.h"
#include "../families/sort.h"
#include "cuda.cuh"

struct index_args {
    char *dense, *target;
    const char *index;
    uint32_t n;
    int64_t axis_stride, axis_size;
    volatile nr_report *report;
    nest<3> where;
    /* writes: the loops above hold the columns, these the elements of one */
    uint32_t steps;
    nest<2> along;
    const int64_t *order; /* of the steps by their index: [lane][steps], a lane a column or one for all */
    bool one_lane;
};

/* Several index tensors have become offsets in bytes (axis_size is INT64_MAX then); one of them that was out of range
 * lies far below all others. */
#define LOST (INT64_MIN / 2)

DEVICE void report(const index_args &a, int64_t index) {
    if (a.report->found) return;
    a.report->index = index;
    a.report->size = a.axis_size;
    __threadfence_system();
    a.report->found = NR_LOST_INDEX;
}

/* The offset in bytes of an index; LOST where it is out of range. */
DEVICE int64_t offset_of(const index_args &a, int64_t index) {
    if (a.axis_size == INT64_MAX ? index > LOST / 2 : index >= 0 && index < a.axis_size) return index * a.axis_stride;
    if (a.axis_size != INT64_MAX) report(a, index);
    return LOST;
}

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
    if (!good) report(a, index);
    *reinterpret_cast<int64_t *>(a.dense + at[0]) =
        good && sum > LOST / 2 ? sum + (index < 0 ? index + size : index) * a.axis_stride : LOST;
}

/* How an element is written over another, by kind; a NaN wins over all. */
template <class D, int kind> DEVICE typename D::S combined(typename D::S a, typename D::S b) {
    using S = typename D::S;
    if constexpr (kind == NR_SCATTER)
        return b;
    else if constexpr (kind == NR_SCATTER_AMAX)
        return a < b || b != b ? b : a;
    else if constexpr (kind == NR_SCATTER_AMIN)
        return a > b || b != b ? b : a;
    else if constexpr (D::kind == NR_KIND_B)
        return kind == NR_SCATTER_ADD ? a || b : a && b;
    else if constexpr (D::kind == NR_KIND_F)
        return kind == NR_SCATTER_ADD ? a + b : a * b;
    else /* in 64 bits wrapping is defined, and the low ones are those of any width */
        return (S)(kind == NR_SCATTER_ADD ? (uint64_t)a + (uint64_t)b : (uint64_t)a * (uint64_t)b);
}

template <class D, int kind> __global__ void __launch_bounds__(NR_BLOCK) scatter_in_order(const index_args a) {
    using S = typename D::S;
    uint32_t i = blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= a.n) return;
    int64_t at[3], more[2];
    a.where.find(i, at);
    for (uint32_t k = 0; k < a.steps; k++) {
        a.along.find(k, more);
        int64_t offset = offset_of(a, *reinterpret_cast<const int64_t *>(a.index + at[1] + more[1]));
        if (offset == LOST) continue;
        S *to = reinterpret_cast<S *>(a.target + at[2] + offset);
        *to = combined<D, kind>(*to, *reinterpret_cast<const S *>(a.dense + at[0] + more[0]));
    }
}

/* A thread a step of a column, in the order of indices: the first of those with one index writes them all. */
template <class D, int kind> __global__ void __launch_bounds__(NR_BLOCK) scatter_sorted(const index_args a) {
    using S = typename D::S;
    const int64_t t = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x, column = t % a.n, step = t / a.n;
    if (step >= a.steps) return;
    int64_t at[3], more[2];
    a.where.find((uint32_t)column, at);
    const int64_t *order = a.order + (a.one_lane ? 0 : column * a.steps);
    const auto index_of = [&](int64_t k) {
        a.along.find((uint32_t)order[k], more);
        return *reinterpret_cast<const int64_t *>(a.index + at[1] + more[1]);
    };
    if (step > 0 && index_of(step - 1) == index_of(step)) return;
    const int64_t index = index_of(step), offset = offset_of(a, index);
    if (offset == LOST) return;
    S *to = reinterpret_cast<S *>(a.target + at[2] + offset), value = *to;
    for (int64_t k = step; k < a.steps && index_of(k) == index; k++)
        value = combined<D, kind>(value, *reinterpret_cast<const S *>(a.dense + at[0] + more[0]));
    *to = value;
}

typedef void (*index_kernel)(index_args);

/* Writes look at the size of an element alone; products and extremes are of wide dtypes. */
#define BY_SIZE(kernel, size) \
    ((size) == 1 ? kernel<uint8_t> : (size) == 2 ? kernel<uint16_t> : (size) == 4 ? kernel<uint32_t> : kernel<uint64_t>)

struct scatter_kernels {
    index_kernel in_order, sorted;
};
template <class D, int kind> static scatter_kernels scatter_of() {
    return {scatter_in_order<D, kind>, scatter_sorted<D, kind>};
}

template <int kind> static scatter_kernels combining(int32_t number) {
    switch (number) {
#define WIDE(NAME, name, ...) \
    case NORCH_##NAME: return scatter_of<dtype_##name, kind>();
#define NARROW(...)
#include "../dtypes.def"
    }
    return {};
}

/* What is only moved goes by size, under the name of a dtype of that size. */
static scatter_kernels kernels_of(const nr_call *call) {
    switch (call->op) {
    case NR_SCATTER_ADD: return combining<NR_SCATTER_ADD>(call->dtype);
    case NR_SCATTER_PROD: return combining<NR_SCATTER_PROD>(call->dtype);
    case NR_SCATTER_AMAX: return combining<NR_SCATTER_AMAX>(call->dtype);
    case NR_SCATTER_AMIN: return combining<NR_SCATTER_AMIN>(call->dtype);
    }
    switch (nr_library->dtypes[call->dtype].size) {
    case 1: return scatter_of<dtype_uint8, NR_SCATTER>();
    case 2: return scatter_of<dtype_float16, NR_SCATTER>();
    case 4: return scatter_of<dtype_int32, NR_SCATTER>();
    }
    return scatter_of<dtype_int64, NR_SCATTER>();
}

static int32_t run_part(const nr_call *call, const nr_plan &nest, index_kernel kernel) {
    const nr_index_plan &plan = *static_cast<const nr_index_plan *>(call->plan);
    index_args a = {};
    a.dense = nest.data[0];
    a.index = nest.data[1];
    a.target = nest.data[2];
    a.n = (uint32_t)nest.numel;
    a.axis_stride = plan.axis_stride;
    a.axis_size = plan.axis_size;
    a.report = gpu_of(call)->report_on_device;
    a.where = nest_of<3>(nest.ndim, nest.size, nest.stride);
    LAUNCH(kernel, blocks_for(a.n, NR_BLOCK), NR_BLOCK, 0, gpu_of(call)->stream, a);
    return launched(call);
}

/* The numbers of a column's steps in the order of their indices, for one column or all of them. */
static int32_t sort_steps(const nr_call *call, const nr_plan &columns, const nr_plan &along, bool one_lane,
                          int64_t *order) {
    nr_sort_plan plan = {};
    plan.nest = columns;
    if (one_lane) {
        plan.nest.ndim = 0;
        plan.nest.numel = 1;
    }
    plan.nest.operands = 2;
    plan.nest.data[0] = reinterpret_cast<char *>(order);
    int64_t lanes = 1;
    for (int32_t d = 0; d < plan.nest.ndim; d++) {
        plan.nest.stride[0][d] = lanes * along.numel * (int64_t)sizeof(int64_t);
        lanes *= plan.nest.size[d];
    }
    plan.n = plan.count = along.numel;
    plan.step[0] = sizeof(int64_t);
    plan.step[1] = along.stride[1][0];
    nr_call sort = *call;
    sort.op = NR_ARGSORT;
    sort.dtype = NORCH_INT64;
    sort.plan = &plan;
    return nr_cuda_sort(&sort);
}

#define BUSY 4096 /* columns that keep a device busy */
#define FEW 64    /* steps that are not worth sorting */

/* Splits the nest into loops that move the target, the columns, and the others, their steps. */
static int32_t run_scatter(const nr_call *call, const nr_plan &nest) {
    const nr_index_plan &plan = *static_cast<const nr_index_plan *>(call->plan);
    const nr_gpu *gpu = gpu_of(call);
    nr_plan columns = nest, along = nest;
    columns.ndim = along.ndim = 0;
    columns.numel = along.numel = 1;
    bool one_lane = true;
    for (int32_t d = 0; d < nest.ndim; d++) {
        const bool moves = nest.stride[2][d] != 0;
        nr_plan &to = moves ? columns : along;
        to.size[to.ndim] = nest.size[d];
        for (int o = 0; o < 3; o++) to.stride[o][to.ndim] = nest.stride[o][d];
        to.numel *= nest.size[d];
        to.ndim++;
        one_lane = one_lane && !(moves && nest.stride[1][d] != 0);
    }
    index_args a = {};
    a.dense = nest.data[0];
    a.index = nest.data[1];
    a.target = nest.data[2];
    a.n = (uint32_t)columns.numel;
    a.steps = (uint32_t)along.numel;
    a.axis_stride = plan.axis_stride;
    a.axis_size = plan.axis_size;
    a.report = gpu->report_on_device;
    a.where = nest_of<3>(columns.ndim, columns.size, columns.stride);
    a.along = nest_of<2>(along.ndim, along.size, along.stride);
    a.one_lane = one_lane;
    const scatter_kernels kernels = kernels_of(call);
    if (along.numel <= FEW || columns.numel >= BUSY || along.ndim > 1) {
        LAUNCH(kernels.in_order, blocks_for(a.n, NR_BLOCK), NR_BLOCK, 0, gpu->stream, a);
        return launched(call);
    }
    const size_t bytes = (size_t)((one_lane ? 1 : columns.numel) * along.numel) * sizeof(int64_t);
    int64_t *order = static_cast<int64_t *>(nr_cuda_scratch(gpu, bytes));
    if (!order) return NORCH_ERROR_MEMORY;
    int32_t status = sort_steps(call, columns, along, one_lane, order);
    cudaError_t error = cudaSuccess;
    if (status == NORCH_OK) {
        a.order = order;
        LAUNCH(kernels.sorted, blocks_for(nest.numel, NR_BLOCK), NR_BLOCK, 0, gpu->stream, a);
        error = cudaGetLastError();
    }
    nr_cuda_scratch_free(gpu, order, bytes);
    TRY(nr_call_name(call), error);
    return status;
}

int32_t nr_cuda_index(const nr_call *call) {
    const nr_index_plan &plan = *static_cast<const nr_index_plan *>(call->plan);
    if (call->op >= NR_COUNT) return nr_cuda_nonzero(call);
    if (plan.nest.numel == 0) return NORCH_OK;
    if (call->op == NR_GATHER || call->op == NR_OFFSETS) {
        index_kernel kernel = BY_SIZE(gather, nr_library->dtypes[call->dtype].size);
        if (call->op == NR_OFFSETS) kernel = offsets;
        return in_parts(plan.nest, [&](const nr_plan &part) { return run_part(call, part, kernel); });
    }
    return in_parts(plan.nest, [&](const nr_plan &part) { return run_scatter(call, part); });
}
