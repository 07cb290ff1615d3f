/* index: reads from, writes to and sums into indexed places. Indices are checked where they are used: one that is out of range
 * reads 0 or adds nothing, and is reported when the host next waits.
 *
 * Sums of floats go through atomic additions, whose order is chance, only where a thread a column would leave the
 * device idle and NORCH_DETERMINISTIC is not set: else each thread adds all that lands in its column, in order. */
#include <stdlib.h>

#include "cuda.cuh"

struct index_args {
    char *dense, *target;
    const char *index;
    uint32_t n;
    int64_t axis_stride, axis_size;
    volatile nr_report *report;
    nest<3> where;
    /* sums in order: the loops above hold the columns, these the elements of one */
    uint32_t steps;
    nest<2> along;
};

/* Whether an index lies within its axis. Offsets, which know no axis, are checked where they are made. */
DEVICE bool fits(const index_args &a, int64_t index) {
    return a.axis_size == INT64_MAX ? index != INT64_MIN : index >= 0 && index < a.axis_size;
}

/* The place in bytes that an index stands for, or -1. */
DEVICE int64_t place_of(const index_args &a, int64_t index) {
    if (fits(a, index)) return index * a.axis_stride;
    if (!a.report->found) {
        a.report->op = NR_INDEXING;
        a.report->index = index;
        a.report->size = a.axis_size;
        __threadfence_system();
        a.report->found = 1;
    }
    return -1;
}

template <class W> __global__ void __launch_bounds__(NR_BLOCK) gather(const index_args a) {
    uint32_t i = blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= a.n) return;
    int64_t at[3];
    a.where.find(i, at);
    int64_t index = *reinterpret_cast<const int64_t *>(a.index + at[1]);
    bool good = fits(a, index);
    int64_t place = good ? index * a.axis_stride : place_of(a, index);
    *reinterpret_cast<W *>(a.dense + at[0]) = good ? *reinterpret_cast<const W *>(a.target + at[2] + place) : (W)0;
}

/* What two elements add up to. */
template <class D> DEVICE typename D::S sum_of(typename D::S a, typename D::S b) {
    if constexpr (D::kind == NR_KIND_B)
        return (a | b) != 0;
    else if constexpr (D::kind == NR_KIND_F)
        return narrow<D>(widen<D>(a) + widen<D>(b));
    else
        return (typename D::S)((uint64_t)a + (uint64_t)b);
}

/* What is left of an element a and one that is written over it. */
template <class D, int kind> DEVICE typename D::S combined(typename D::S a, typename D::S b) {
    if constexpr (kind == NR_SCATTER) return b;
    if constexpr (kind == NR_SCATTER_ADD) return sum_of<D>(a, b);
    const auto x = widen<D>(a), y = widen<D>(b);
    if constexpr (kind == NR_SCATTER_PROD && D::kind == NR_KIND_B) return x && y;
    if constexpr (kind == NR_SCATTER_PROD && D::kind != NR_KIND_B) return narrow<D>(x * y);
    if constexpr (kind == NR_SCATTER_AMAX) return x < y || y != y ? b : a;
    return x > y || y != y ? b : a;
}

/* Each offset, or that of before, and what its index adds; a negative index counts from the end. */
__global__ void __launch_bounds__(NR_BLOCK) offsets(const index_args a) {
    uint32_t i = blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= a.n) return;
    int64_t at[3];
    a.where.find(i, at);
    int64_t index = *reinterpret_cast<const int64_t *>(a.index + at[1]);
    if (index < 0 && index >= -a.axis_size) index += a.axis_size;
    int64_t before = a.target ? *reinterpret_cast<const int64_t *>(a.target + at[2]) : 0;
    bool good = index >= 0 && index < a.axis_size && before != INT64_MIN;
    if (!good && before != INT64_MIN) place_of(a, index);
    *reinterpret_cast<int64_t *>(a.dense + at[0]) = good ? before + index * a.axis_stride : INT64_MIN;
}

template <class D, int kind> __global__ void __launch_bounds__(NR_BLOCK) scatter_in_order(const index_args a) {
    using S = typename D::S;
    uint32_t i = blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= a.n) return;
    int64_t at[3], more[2];
    a.where.find(i, at);
    for (uint32_t k = 0; k < a.steps; k++) {
        a.along.find(k, more);
        int64_t index = *reinterpret_cast<const int64_t *>(a.index + at[1] + more[1]);
        bool good = fits(a, index);
        int64_t place = good ? index * a.axis_stride : place_of(a, index);
        if (!good) continue;
        S *to = reinterpret_cast<S *>(a.target + at[2] + place);
        *to = combined<D, kind>(*to, *reinterpret_cast<const S *>(a.dense + at[0] + more[0]));
    }
}

template <class F> __global__ void __launch_bounds__(NR_BLOCK) scatter_by_chance(const index_args a) {
    uint32_t i = blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= a.n) return;
    int64_t at[3];
    a.where.find(i, at);
    int64_t index = *reinterpret_cast<const int64_t *>(a.index + at[1]);
    bool good = fits(a, index);
    int64_t place = good ? index * a.axis_stride : place_of(a, index);
    if (good) atomicAdd(reinterpret_cast<F *>(a.target + at[2] + place), *reinterpret_cast<const F *>(a.dense + at[0]));
}

typedef void (*index_kernel)(index_args);

/* Writes look at the size of an element alone; products and extremes are of wide dtypes. */
static index_kernel scatter_of(int32_t kind, int32_t number) {
    const int64_t size = nr_library->dtypes[number].size;
    if (kind == NR_SCATTER)
        return size == 1   ? scatter_in_order<dtype_uint8, NR_SCATTER>
               : size == 2 ? scatter_in_order<dtype_int16, NR_SCATTER>
               : size == 4 ? scatter_in_order<dtype_int32, NR_SCATTER>
                           : scatter_in_order<dtype_int64, NR_SCATTER>;
    switch (number) {
#define ROW(name)                                                                          \
    case dtype_##name::code:                                                               \
        return kind == NR_SCATTER_ADD    ? scatter_in_order<dtype_##name, NR_SCATTER_ADD>  \
               : kind == NR_SCATTER_PROD ? scatter_in_order<dtype_##name, NR_SCATTER_PROD> \
               : kind == NR_SCATTER_AMAX ? scatter_in_order<dtype_##name, NR_SCATTER_AMAX> \
                                         : scatter_in_order<dtype_##name, NR_SCATTER_AMIN>;
        NR_WIDE_DTYPES(ROW)
#undef ROW
    }
    return nullptr;
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
    LAUNCHED(call);
    return NORCH_OK;
}

/* Splits the nest into loops that move the target, one thread each, and the others, which a thread goes through. */
static int32_t run_in_order(const nr_call *call, const nr_plan &nest) {
    const nr_index_plan &plan = *static_cast<const nr_index_plan *>(call->plan);
    nr_plan columns = nest, along = nest;
    columns.ndim = along.ndim = 0;
    columns.numel = along.numel = 1;
    for (int32_t d = 0; d < nest.ndim; d++) {
        nr_plan &to = nest.stride[2][d] != 0 ? columns : along;
        to.size[to.ndim] = nest.size[d];
        for (int o = 0; o < 3; o++) to.stride[o][to.ndim] = nest.stride[o][d];
        to.numel *= nest.size[d];
        to.ndim++;
    }
    index_args a = {};
    a.dense = nest.data[0];
    a.index = nest.data[1];
    a.target = nest.data[2];
    a.n = (uint32_t)columns.numel;
    a.steps = (uint32_t)along.numel;
    a.axis_stride = plan.axis_stride;
    a.axis_size = plan.axis_size;
    a.report = gpu_of(call)->report_on_device;
    a.where = nest_of<3>(columns.ndim, columns.size, columns.stride);
    a.along = nest_of<2>(along.ndim, along.size, along.stride);
    LAUNCH(scatter_of(call->op, call->dtype), blocks_for(a.n, NR_BLOCK), NR_BLOCK, 0, gpu_of(call)->stream, a);
    LAUNCHED(call);
    return NORCH_OK;
}

static bool deterministic() {
    static const char *wanted = getenv("NORCH_DETERMINISTIC");
    return wanted && *wanted && *wanted != '0';
}

int32_t nr_cuda_index(const nr_call *call) {
    const nr_index_plan &plan = *static_cast<const nr_index_plan *>(call->plan);
    if (plan.nest.numel == 0) return NORCH_OK;
    if (call->op == NR_GATHER) {
        int64_t size = nr_library->dtypes[call->dtype].size;
        index_kernel kernel = size == 1   ? gather<uint8_t>
                              : size == 2 ? gather<uint16_t>
                              : size == 4 ? gather<uint32_t>
                                          : gather<uint64_t>;
        return in_parts(plan.nest, [&](const nr_plan &part) { return run_part(call, part, kernel); });
    }
    if (call->op == NR_OFFSETS)
        return in_parts(plan.nest, [&](const nr_plan &part) { return run_part(call, part, offsets); });
    int64_t steps = 1;
    for (int32_t d = 0; d < plan.nest.ndim; d++)
        if (plan.nest.stride[2][d] == 0) steps *= plan.nest.size[d];
    bool busy = steps <= 64 || plan.nest.numel / steps >= 4096;
    index_kernel by_chance = call->dtype == NORCH_FLOAT32   ? scatter_by_chance<float>
                             : call->dtype == NORCH_FLOAT64 ? scatter_by_chance<double>
                                                            : nullptr;
    if (call->op == NR_SCATTER_ADD && by_chance && !busy && !deterministic())
        return in_parts(plan.nest, [&](const nr_plan &part) { return run_part(call, part, by_chance); });
    return in_parts(plan.nest, [&](const nr_plan &part) { return run_in_order(call, part); });
}
