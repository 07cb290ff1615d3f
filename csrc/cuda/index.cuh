/* index: the code that reads and writes at indices share. Indices are checked when they are used: one that is out of
 * range reads 0 or adds nothing, and is reported at the next synchronization. */
#ifndef NR_CUDA_INDEX_H
#define NR_CUDA_INDEX_H

#include "../families/index.h"
#include "cuda.cuh"

/* Operands of a nest: 0 dense, 1 the indices, 2 the indexed tensor. */
struct index_args {
    char *dense, *target;
    const char *index;
    uint32_t n;
    int64_t axis_stride, axis_size;
    bool is_offset;
    volatile nr_report *report;
    nest<3> where;
};

/* Several index tensors have become offsets in bytes (is_offset); one of them that was out of range lies far below all
 * others. */
#define LOST (INT64_MIN / 2)

DEVICE void report_lost(const index_args &a, int64_t index) {
    if (a.report->found) return;
    a.report->index = index;
    a.report->size = a.axis_size;
    __threadfence_system();
    a.report->found = NR_LOST_INDEX;
}

/* The offset in bytes of an index; LOST if it is out of range. */
DEVICE int64_t offset_of(const index_args &a, int64_t index) {
    if (a.is_offset ? index > LOST / 2 : index >= 0 && index < a.axis_size) return index * a.axis_stride;
    if (!a.is_offset) report_lost(a, index);
    return LOST;
}

static inline index_args index_args_of(const nr_call *call, const nr_plan &nest) {
    const nr_index_plan &plan = *static_cast<const nr_index_plan *>(call->plan);
    index_args a = {};
    a.dense = nest.data[0];
    a.index = nest.data[1];
    a.target = nest.data[2];
    a.n = (uint32_t)nest.numel;
    a.axis_stride = plan.axis_stride;
    a.axis_size = plan.axis_size;
    a.is_offset = plan.is_offset;
    a.report = gpu_of(call)->report_on_device;
    a.where = nest_of<3>(nest.ndim, nest.size, nest.stride);
    return a;
}

/* Writes of a nest at indices: see scatter.cu. */
int32_t nr_cuda_scatter(const nr_call *call, const nr_plan &nest);
/* Sums at indices by integers (scatter_sums.cu); false if another method is faster, or none is needed. */
bool nr_cuda_sums_apply(const nr_call *call, int64_t columns, int64_t steps);
int32_t nr_cuda_scatter_sums(const nr_call *call, const nr_plan &nest, const nr_plan &columns);

#endif
