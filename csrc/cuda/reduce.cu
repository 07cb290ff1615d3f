/* reduce: how many threads share an output, and into how many parts its elements are cut: enough of both to keep
 * the device busy, and both by shape and strides, so that a result is the same each time.
 *
 *   along    x  [ t0 t1 .. t7 | t0 t1 .. t7 | ... ]   a team of neighbouring threads an output: they read neighbours
 *   across   x  [ o0 o1 o2 .. ]  member 0 of each     neighbouring threads have neighbouring outputs; the members of a
 *               [ o0 o1 o2 .. ]  member 1             team, a row of the block each, go down in turns
 *   parts    x  [ blockIdx.y 0 | 1 | 2 | ...      ]   few outputs, many elements: a state a part, then a second launch
 *
 * Harris, "Optimizing Parallel Reduction in CUDA" (NVIDIA, 2007); with shuffles: Luitjens, "Faster Parallel
 * Reductions on Kepler" (NVIDIA, 2014). */
#include "../families/reduce.h"
#include "reduce.cuh"

#define BUSY 2048       /* blocks that keep any device busy */
#define PART_LEAST 4096 /* elements that a part is worth its launch for */

static int32_t run_part(const nr_call *call, const nr_plan &kept) {
    const nr_reduce_plan &plan = *static_cast<const nr_reduce_plan *>(call->plan);
    const reduce_kernel *kernel = reinterpret_cast<const reduce_kernel *>(reinterpret_cast<uintptr_t>(call->kernel));
    const nr_gpu *gpu = gpu_of(call);
    reduce_args a = {};
    a.out = kept.data[0];
    a.in = kept.data[1];
    a.outputs = kept.numel;
    a.count = plan.count;
    a.param = plan.param;
    a.kept = nest_of<2>(kept.ndim, kept.size, kept.stride);
    a.reduced = nest_of<1>(plan.ndim, plan.size, &plan.stride);
    a.row = plan.ndim == 1;
    a.number = call->dtype;
    a.out_number = call->dtype; /* where the result is of another dtype the kernel knows that */
    int64_t inner = kept.stride[1][0] < 0 ? -kept.stride[1][0] : kept.stride[1][0];
    int64_t along = plan.stride[0] < 0 ? -plan.stride[0] : plan.stride[0];
    a.across = kept.size[0] > 1 && inner != 0 && (inner < along || along == 0);

    /* Across, what is left are 32 or at least 8 neighbours that are read together. */
    const int most = !a.across ? NR_BLOCK : a.outputs >= 32 ? NR_BLOCK / 32 : NR_BLOCK / 8;
    a.team = 1;
    while (a.team < most && a.team * 4 <= a.count) a.team *= 2;
    /* With enough outputs, a thread each; of a row 8, which read neighbouring elements, and more where it is long. */
    while (a.team > (a.across ? 1 : 8) && a.outputs * a.team / NR_BLOCK > BUSY && (a.across || a.team * 32 > a.count))
        a.team /= 2;
    a.dense = a.row && !a.across && plan.stride[0] == nr_library->dtypes[call->dtype].size;
    int64_t blocks = (a.outputs * a.team + NR_BLOCK - 1) / NR_BLOCK;
    a.parts = 1;
    a.part_size = a.count;
    if (blocks < BUSY && a.count >= 2 * PART_LEAST) {
        int64_t parts = 2 * BUSY / blocks; /* short ones, so that the last are done soon */
        if (parts > a.count / PART_LEAST) parts = a.count / PART_LEAST;
        a.part_size = ((a.count + parts - 1) / parts + 63) / 64 * 64;
        a.parts = (int32_t)((a.count + a.part_size - 1) / a.part_size);
    }
    size_t bytes = 0;
    if (a.parts > 1) {
        bytes = (size_t)(a.outputs * a.parts * kernel->state_size);
        a.partials = static_cast<char *>(nr_cuda_scratch(gpu, bytes));
        if (!a.partials) return NORCH_ERROR_MEMORY;
    }
    /* States that are combined in shared memory: those of all threads, or one of each warp. */
    const size_t states = (size_t)(NR_BLOCK * kernel->state_size);
    const size_t shared = a.team == 1 ? 0 : a.across ? states : states / 32;
    LAUNCH(kernel->reduce, dim3((unsigned)blocks, (unsigned)a.parts), NR_BLOCK, shared, gpu->stream, a);
    cudaError_t error = cudaGetLastError();
    if (a.parts > 1) {
        if (error == cudaSuccess) {
            a.team = 1;
            while (a.team < NR_BLOCK && a.team * 2 <= a.parts && a.outputs * a.team < BUSY * NR_BLOCK) a.team *= 2;
            LAUNCH(kernel->merge, blocks_for(a.outputs * a.team, NR_BLOCK), NR_BLOCK, a.team == 1 ? 0 : states,
                   gpu->stream, a);
            error = cudaGetLastError();
        }
        nr_cuda_scratch_free(gpu, a.partials, bytes);
    }
    TRY(nr_call_name(call), error);
    return NORCH_OK;
}

int32_t nr_cuda_reduce(const nr_call *call) {
    const nr_reduce_plan &plan = *static_cast<const nr_reduce_plan *>(call->plan);
    if (plan.kept.numel == 0) return NORCH_OK;
    if (plan.ndim > 1 && plan.count > INT32_MAX)
        return nr_library->fail(NORCH_ERROR_VALUE,
                                "%s: %lld elements over several dimensions in one output are more than a CUDA kernel "
                                "counts; use contiguous()",
                                nr_call_name(call), (long long)plan.count);
    return in_parts(plan.kept, [&](const nr_plan &part) { return run_part(call, part); });
}
