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

/* Several index tensors have become offsets in bytes (axis_size is INT64_MAX then); one of them that was out of range
 * lies far below all others. */
#define LOST (INT64_MIN / 2)

DEVICE void report(const index_args &a, int64_t index) {
    if (a.report->found) return;
    a.report->op = NR_INDEXING;
    a.report->index = index;
    a.report->size = a.axis_size;
    __threadfence_system();
    a.report->found = 1;
}

/* The place in bytes that an index stands for; LOST where there is none. */
DEVICE int64_t place_of(const index_args &a, int64_t index) {
    if (a.axis_size == INT64_MAX ? index > LOST / 2 : index >= 0 && index < a.axis_size) return index * a.axis_stride;
    if (a.axis_size != INT64_MAX) report(a, index);
    return LOST;
}

template <class W> __global__ void __launch_bounds__(NR_BLOCK) gather(const index_args a) {
    uint32_t i = blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= a.n) return;
    int64_t at[3];
    a.where.find(i, at);
    int64_t place = place_of(a, *reinterpret_cast<const int64_t *>(a.index + at[1]));
    *reinterpret_cast<W *>(a.dense + at[0]) =
        place != LOST ? *reinterpret_cast<const W *>(a.target + at[2] + place) : (W)0;
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
        int64_t place = place_of(a, *reinterpret_cast<const int64_t *>(a.index + at[1] + more[1]));
        if (place == LOST) continue;
        S *to = reinterpret_cast<S *>(a.target + at[2] + place);
        *to = combined<D, kind>(*to, *reinterpret_cast<const S *>(a.dense + at[0] + more[0]));
    }
}

/* Moves by the size of an element, and sums of floats: each element by a thread of its own. */
template <class W> __global__ void __launch_bounds__(NR_BLOCK) move_by_chance(const index_args a) {
    uint32_t i = blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= a.n) return;
    int64_t at[3];
    a.where.find(i, at);
    int64_t place = place_of(a, *reinterpret_cast<const int64_t *>(a.index + at[1]));
    if (place != LOST) *reinterpret_cast<W *>(a.target + at[2] + place) = *reinterpret_cast<const W *>(a.dense + at[0]);
}

template <class F> __global__ void __launch_bounds__(NR_BLOCK) add_by_chance(const index_args a) {
    uint32_t i = blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= a.n) return;
    int64_t at[3];
    a.where.find(i, at);
    int64_t place = place_of(a, *reinterpret_cast<const int64_t *>(a.index + at[1]));
    if (place != LOST)
        atomicAdd(reinterpret_cast<F *>(a.target + at[2] + place), *reinterpret_cast<const F *>(a.dense + at[0]));
}

typedef void (*index_kernel)(index_args);

/* Writes look at the size of an element alone; products and extremes are of wide dtypes. */
#define BY_SIZE(kernel, size) \
    ((size) == 1 ? kernel<uint8_t> : (size) == 2 ? kernel<uint16_t> : (size) == 4 ? kernel<uint32_t> : kernel<uint64_t>)

template <int kind> static index_kernel combining(int32_t number) {
    switch (number) {
#define ROW(name) \
    case dtype_##name::code: return scatter_in_order<dtype_##name, kind>;
        NR_WIDE_DTYPES(ROW)
#undef ROW
    }
    return nullptr;
}

/* The kernel that writes in order. What is only moved goes by size, under the name of a dtype of that size. */
static index_kernel in_order(const nr_call *call) {
    switch (call->op) {
    case NR_SCATTER_ADD: return combining<NR_SCATTER_ADD>(call->dtype);
    case NR_SCATTER_PROD: return combining<NR_SCATTER_PROD>(call->dtype);
    case NR_SCATTER_AMAX: return combining<NR_SCATTER_AMAX>(call->dtype);
    case NR_SCATTER_AMIN: return combining<NR_SCATTER_AMIN>(call->dtype);
    }
    switch (nr_library->dtypes[call->dtype].size) {
    case 1: return scatter_in_order<dtype_uint8, NR_SCATTER>;
    case 2: return scatter_in_order<dtype_float16, NR_SCATTER>;
    case 4: return scatter_in_order<dtype_int32, NR_SCATTER>;
    }
    return scatter_in_order<dtype_int64, NR_SCATTER>;
}

/* The one that does not, where there is one. */
static index_kernel by_chance(const nr_call *call) {
    if (call->op == NR_SCATTER) return BY_SIZE(move_by_chance, nr_library->dtypes[call->dtype].size);
    if (call->op != NR_SCATTER_ADD) return nullptr;
    return call->dtype == NORCH_FLOAT32   ? add_by_chance<float>
           : call->dtype == NORCH_FLOAT64 ? add_by_chance<double>
                                          : nullptr;
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
    LAUNCH(in_order(call), blocks_for(a.n, NR_BLOCK), NR_BLOCK, 0, gpu_of(call)->stream, a);
    LAUNCHED(call);
    return NORCH_OK;
}

static bool deterministic() {
    static const char *wanted = getenv("NORCH_DETERMINISTIC");
    return wanted && *wanted && *wanted != '0';
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
    int64_t steps = 1;
    for (int32_t d = 0; d < plan.nest.ndim; d++)
        if (plan.nest.stride[2][d] == 0) steps *= plan.nest.size[d];
    bool busy = steps <= 64 || plan.nest.numel / steps >= 4096;
    index_kernel quick = by_chance(call);
    if (quick && !busy && !deterministic())
        return in_parts(plan.nest, [&](const nr_plan &part) { return run_part(call, part, quick); });
    return in_parts(plan.nest, [&](const nr_plan &part) { return run_in_order(call, part); });
}
