/* sort: argsort of lanes by a method that depends on their length, and searches by bisection. All methods are stable.
 *
 *   a few of many    topk.cu          the k-th key bit by bit, in registers
 *   short lanes      sort_rows.cu     a block a lane, in shared memory
 *   long lanes       radix_sort.cu    all of the device, a sweep over the keys a digit */
#include "../families/sort.h"
#include "radix.cuh"

struct search_args {
    char *out;
    const char *in, *row;
    int64_t values, n, step;
    bool right;
    nest<3> where;
};

/* The number of elements that precede each value; compared as in PyTorch, so that NaN comes last. */
template <class T> __global__ void __launch_bounds__(NR_BLOCK) search(const search_args a) {
    int64_t i = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= a.values) return;
    int64_t at[3], low = 0, high = a.n;
    a.where.find((uint32_t)i, at);
    T value = *reinterpret_cast<const T *>(a.in + at[1]);
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        T there = *reinterpret_cast<const T *>(a.row + at[2] + middle * a.step);
        if (a.right ? !(there > value) : !(there >= value))
            low = middle + 1;
        else
            high = middle;
    }
    *reinterpret_cast<int64_t *>(a.out + at[0]) = low;
}

static int32_t sort_part(const nr_call *call, const nr_plan &lanes) {
    const nr_sort_plan &plan = *static_cast<const nr_sort_plan *>(call->plan);
    radix_args a = {};
    a.indices = lanes.data[0];
    a.in = lanes.data[1];
    a.values = lanes.data[2];
    for (int o = 0; o < 3; o++) a.step[o] = plan.step[o];
    a.lanes = lanes.numel;
    a.n = plan.n;
    a.count = plan.count;
    a.flip = plan.descending ? UINT64_MAX : 0;
    a.where = nest_of<3>(lanes.ndim, lanes.size, lanes.stride);
    if (nr_cuda_selects(a.n, a.count)) return nr_cuda_select(call, a);
    return nr_cuda_sorts_rows(call, a) ? nr_cuda_sort_rows(call, a) : nr_cuda_radix_sort(call, a);
}

static int32_t search_part(const nr_call *call, const nr_plan &values) {
    const nr_sort_plan &plan = *static_cast<const nr_sort_plan *>(call->plan);
    search_args a = {};
    a.out = values.data[0];
    a.in = values.data[1];
    a.row = values.data[2];
    a.values = values.numel;
    a.n = plan.n;
    a.step = plan.step[1];
    a.right = plan.right;
    a.where = nest_of<3>(values.ndim, values.size, values.stride);
    void (*kernel)(search_args) = call->dtype == NORCH_INT64     ? search<int64_t>
                                  : call->dtype == NORCH_FLOAT32 ? search<float>
                                                                 : search<double>;
    return run_blocks(call, kernel, blocks_for(a.values, NR_BLOCK), a);
}

int32_t nr_cuda_sort(const nr_call *call) {
    const nr_sort_plan &plan = *static_cast<const nr_sort_plan *>(call->plan);
    if (call->op == NR_SELECT)
        return nr_library->fail(NORCH_ERROR_DEVICE, "%s: CUDA devices have no kernel for order statistics; use sort()",
                                nr_call_name(call));
    if (plan.nest.numel == 0) return NORCH_OK;
    if (call->op == NR_SEARCH) return in_parts(plan.nest, [&](const nr_plan &part) { return search_part(call, part); });
    if (plan.n == 0 || plan.count == 0) return NORCH_OK;
    return in_parts(plan.nest, [&](const nr_plan &part) { return sort_part(call, part); });
}
