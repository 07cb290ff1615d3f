/* pointwise: launches the elementwise kernels: the dense one where every operand is a row of elements or one number,
 * else the strided one. The kernels: pointwise_dtype.cu.
 *
 *   dense     [ thread 0: x x x x | thread 1: x x x x | ...     neighbours, up to 16 bytes an access (2-byte dtypes: 8)
 *   runs      row 0 [ thread 0: x x x x | thread 1: ... ]       strided, but its rows are made of such accesses
 *             row 1 [ ...                               ]
 *   strided   thread i: element i, its position by division     from the innermost loop outwards (nest, cuda.cuh)
 *
 * Neighbouring threads touch neighbours, a warp few lines of memory: CUDA C++ Best Practices Guide,
 * "Coalesced Access to Global Memory". */
#include "pointwise.cuh"

/* Bytes of an element of operand o. */
static int64_t size_of(const nr_call *call, const pointwise_kernel *kernel, int o) {
    bool is_bool = (o == 0 && kernel->truth) || (o == 1 && kernel->choice);
    return is_bool ? 1 : nr_library->dtypes[call->dtype].size;
}

/* Input o; a number in the plan has the dtype in which the kernel computes. */
static operand input_of(const nr_call *call, const pointwise_kernel *kernel, const nr_plan &plan, int o) {
    const nr_dtype_row *dtypes = nr_library->dtypes;
    return operand_of(plan, o, o == 1 && kernel->choice ? 1 : dtypes[dtypes[call->dtype].wide].size);
}

static int32_t run_dense(const nr_call *call, const pointwise_kernel *kernel) {
    const nr_plan &plan = *static_cast<const nr_plan *>(call->plan);
    dense_args a = {};
    a.out = plan.data[0];
    a.n = plan.numel;
    a.number = call->dtype;
    const bool halves = nr_library->dtypes[call->dtype].size == 2;
    const int width = halves ? 8 : kernel->width;
    a.aligned = is_aligned(a.out, size_of(call, kernel, 0) * width);
    for (int o = 1; o < plan.operands; o++) {
        a.in[o - 1] = input_of(call, kernel, plan, o);
        a.in[o - 1].step = plan.stride[o][0] != 0;
        if (plan.stride[o][0]) a.aligned = a.aligned && is_aligned(plan.data[o], size_of(call, kernel, o) * width);
    }
    return run_blocks(call, halves ? kernel->halves : kernel->dense, blocks_for(a.n, NR_BLOCK * width), a);
}

/* Whether the innermost rows are whole runs of neighbours that one access may take, for every operand except those with
 * one number a row: sums with a row or a column, for example. */
static bool has_runs(const nr_call *call, const pointwise_kernel *kernel, const nr_plan &plan) {
    if (plan.ndim == 0 || plan.size[0] % kernel->width != 0 || plan.stride[0][0] == 0) return false;
    for (int o = 0; o < plan.operands; o++) {
        if (is_immediate(plan, o) || plan.stride[o][0] == 0) continue;
        const int64_t size = size_of(call, kernel, o);
        bool whole = plan.stride[o][0] == size && is_aligned(plan.data[o], size * kernel->width);
        for (int32_t d = 1; d < plan.ndim; d++) whole = whole && plan.stride[o][d] % (size * kernel->width) == 0;
        if (!whole) return false;
    }
    return true;
}

static int32_t run_strided(const nr_call *call, const pointwise_kernel *kernel, const nr_plan &plan) {
    strided_args a = {};
    a.out = plan.data[0];
    a.number = call->dtype;
    a.runs = has_runs(call, kernel, plan);
    nr_plan walked = plan;
    if (a.runs) {
        walked.size[0] /= kernel->width;
        for (int o = 0; o < plan.operands; o++) walked.stride[o][0] *= kernel->width;
    }
    a.n = (uint32_t)(a.runs ? plan.numel / kernel->width : plan.numel);
    a.where = nest_of<NR_INPUTS + 1>(walked.ndim, walked.size, walked.stride);
    for (int o = 0; o < NR_INPUTS + 1; o++) {
        if (o >= 1 && o < plan.operands) {
            a.in[o - 1] = input_of(call, kernel, plan, o);
            a.in[o - 1].step = plan.stride[o][0] != 0;
        }
        for (int32_t d = 0; o >= plan.operands && d < plan.ndim; d++) a.where.stride[o][d] = 0;
    }
    return run_blocks(call, kernel->strided, blocks_for(a.n, NR_BLOCK), a);
}

int32_t nr_cuda_pointwise(const nr_call *call) {
    const nr_plan &plan = *static_cast<const nr_plan *>(call->plan);
    const pointwise_kernel *kernel =
        reinterpret_cast<const pointwise_kernel *>(reinterpret_cast<uintptr_t>(call->kernel));
    if (plan.numel == 0) return NORCH_OK;
    bool rows = plan.ndim == 1 && plan.stride[0][0] == size_of(call, kernel, 0);
    for (int o = 1; o < plan.operands; o++)
        rows = rows && (plan.stride[o][0] == 0 || plan.stride[o][0] == size_of(call, kernel, o));
    if (rows) return run_dense(call, kernel);
    return in_parts(plan, [&](const nr_plan &part) { return run_strided(call, kernel, part); });
}
