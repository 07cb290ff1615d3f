/* reduce: the number of threads that share an output, and of parts of its elements: enough of both to keep the device
 * busy. Both depend on shape and strides alone, so that a result is the same each time.
 *
 *   along     x  [ t0 t1 .. t7 | t0 t1 .. t7 | ... ]   a team of neighbouring threads an output: they read neighbours
 *   narrow    x  [ o0 o0 o0 | o1 o1 o1 | ... ]         the same of short rows, which shared memory lines up
 *   across    x  [ o0 o1 o2 .. ]  member 0 of each     neighbouring threads have neighbouring outputs; the members of a
 *                [ o0 o1 o2 .. ]  member 1             team, a row of the block each, go down in turns
 *   columns   x  [ o0-3 o4-7 .. ] member 0 of each     the same, with as many outputs a thread as 16 bytes hold
 *   parts     x  [ blockIdx.y 0 | 1 | 2 | ...      ]   few outputs, many elements: a state a part, then a second launch
 *
 * Harris, "Optimizing Parallel Reduction in CUDA" (NVIDIA, 2007); with shuffles: Luitjens, "Faster Parallel
 * Reductions on Kepler" (NVIDIA, 2014). */
#include "../families/reduce.h"
#include "reduce.cuh"

#define BUSY 2048       /* blocks that keep any device busy */
#define PART_LEAST 4096 /* elements that a part is worth its launch for */
#define ROWS_LEAST 32   /* rows of columns that a thread is worth a part for */
#define NARROW 64       /* elements of a row that shared memory lines up */

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

/* Whether neighbouring outputs can be taken `width` at a time: their elements, of `size` bytes, are neighbours too, and
 * every address is one that wide accesses may take. */
static bool are_columns(const reduce_args &a, const nr_reduce_plan &plan, const nr_plan &kept, int64_t size,
                        int width) {
    const int64_t bytes = size * width;
    bool can = a.across && a.row && kept.stride[1][0] == size && kept.size[0] % width == 0 && is_aligned(a.in, bytes) &&
               plan.stride[0] % bytes == 0;
    for (int32_t d = 1; d < kept.ndim; d++) can = can && kept.stride[1][d] % bytes == 0;
    return can;
}

/* Whether the rows are short, and lie one after another from a multiple of 16 bytes on. */
static bool are_narrow(const reduce_args &a, const nr_plan &kept, int64_t size) {
    return a.dense && a.count > 0 && a.count <= NARROW && kept.ndim == 1 && kept.stride[1][0] == a.count * size &&
           is_aligned(a.in, 16);
}

static int32_t narrow_team(int64_t count) {
    int32_t team = 1;
    while (team * 16 < count) team *= 2;
    return team;
}

static int32_t run_narrow(const nr_call *call, const reduce_kernel *kernel, reduce_args a, int64_t size) {
    a.team = narrow_team(a.count);
    a.pitch = (int32_t)((a.count + a.team - 1) / a.team | 1) * a.team;
    const int outputs = NR_BLOCK / a.team;
    LAUNCH(kernel->narrow_rows, blocks_for(a.outputs, outputs), NR_BLOCK, (size_t)(outputs * a.pitch * size),
           gpu_of(call)->stream, a);
    return launched(call);
}

/* The arguments, except how outputs are shared and divided. */
static reduce_args args_of(const nr_call *call, const nr_plan &kept, const char *in) {
    const nr_reduce_plan &plan = *static_cast<const nr_reduce_plan *>(call->plan);
    reduce_args a = {};
    a.out = kept.data[0];
    a.in = in;
    a.outputs = kept.numel;
    a.count = plan.count;
    a.param = plan.param;
    a.kept = nest_of<2>(kept.ndim, kept.size, kept.stride);
    a.reduced = nest_of<1>(plan.ndim, plan.size, &plan.stride);
    a.row = plan.ndim == 1;
    a.number = call->dtype;
    a.out_number = call->dtype; /* where the result is of another dtype the kernel knows that */
    const int64_t inner = magnitude(kept.stride[1][0]), along = magnitude(plan.stride[0]);
    a.across = kept.size[0] > 1 && inner != 0 && (inner < along || along == 0);
    a.dense = a.row && !a.across && plan.stride[0] == nr_library->dtypes[call->dtype].size;
    return a;
}

/* Sets how many threads share what a team has, `width` neighbouring outputs, and into how many parts it is
 * cut; gives the number of blocks. */
static int64_t divide(reduce_args &a, int width) {
    const int64_t items = a.outputs / width;
    /* Across, what is left are 32 or at least 8 neighbours that are read together; of columns 128 bytes, or all. */
    int most = !a.across ? NR_BLOCK : a.outputs >= 32 ? NR_BLOCK / 32 : NR_BLOCK / 8;
    if (width > 1)
        for (most = NR_BLOCK; most > NR_BLOCK / 8 && NR_BLOCK / most < items;) most /= 2;
    a.team = 1;
    while (a.team < most && a.team * 4 <= a.count) a.team *= 2;
    /* With enough outputs, a thread each; of a row 8, which read neighbouring elements, and more where it is long. */
    const int64_t enough = a.across ? BUSY : BUSY / 2;
    while (a.team > (a.across ? 1 : 8) && items * a.team / NR_BLOCK > enough && (a.across || a.team * 32 > a.count))
        a.team /= 2;
    const int64_t blocks = (items * a.team + NR_BLOCK - 1) / NR_BLOCK;
    const int64_t least = width > 1 ? ROWS_LEAST * a.team : PART_LEAST, whole = width > 1 ? least : 64;
    a.parts = 1;
    a.part_size = a.count;
    if (blocks < BUSY && a.count >= 2 * least) {
        int64_t parts = 2 * BUSY / blocks; /* short ones, so that the last are done soon */
        if (parts > a.count / least) parts = a.count / least;
        a.part_size = ((a.count + parts - 1) / parts + whole - 1) / whole * whole;
        a.parts = (int32_t)((a.count + a.part_size - 1) / a.part_size);
    }
    return blocks;
}

int32_t nr_cuda_row_team(const nr_call *call, const char *in, bool *narrow) {
    const nr_reduce_plan &plan = *static_cast<const nr_reduce_plan *>(call->plan);
    reduce_args a = args_of(call, plan.kept, in);
    if (!a.row || a.across || a.outputs > NR_MOST_ELEMENTS) return 0;
    *narrow = are_narrow(a, plan.kept, nr_library->dtypes[call->dtype].size);
    if (*narrow) return narrow_team(a.count);
    divide(a, 1);
    return a.parts == 1 ? a.team : 0;
}

static int32_t run_part(const nr_call *call, const nr_plan &kept) {
    const nr_reduce_plan &plan = *static_cast<const nr_reduce_plan *>(call->plan);
    const reduce_kernel *kernel = reinterpret_cast<const reduce_kernel *>(reinterpret_cast<uintptr_t>(call->kernel));
    const nr_gpu *gpu = gpu_of(call);
    const int64_t size = nr_library->dtypes[call->dtype].size;
    reduce_args a = args_of(call, kept, kept.data[1]);
    if (are_narrow(a, kept, size)) return run_narrow(call, kernel, a, size);

    const int width = are_columns(a, plan, kept, size, kernel->width) ? kernel->width : 1;
    if (width > 1) {
        nr_plan packs = kept;
        packs.size[0] /= width;
        for (int o = 0; o < 2; o++) packs.stride[o][0] *= width;
        a.kept = nest_of<2>(packs.ndim, packs.size, packs.stride);
        a.out_step = kept.stride[0][0];
    }
    const int64_t blocks = divide(a, width);
    const scratch partials(gpu, a.parts > 1 ? (size_t)(a.outputs * a.parts * kernel->state_size) : 0);
    if (partials.failed()) return NORCH_ERROR_MEMORY;
    a.partials = partials.memory;
    /* States that are combined in shared memory: of all threads, or one of each warp. */
    const size_t states = (size_t)(NR_BLOCK * kernel->state_size);
    const size_t shared = a.team == 1 ? 0 : a.across ? states * (size_t)width : states / 32;
    void (*const run)(reduce_args) = width > 1 ? kernel->columns : kernel->reduce;
    LAUNCH(run, dim3((unsigned)blocks, (unsigned)a.parts), NR_BLOCK, shared, gpu->stream, a);
    if (a.parts > 1) {
        a.kept = nest_of<2>(kept.ndim, kept.size, kept.stride);
        a.team = 1;
        while (a.team < NR_BLOCK && a.team * 2 <= a.parts && a.outputs * a.team < BUSY * NR_BLOCK) a.team *= 2;
        LAUNCH(kernel->merge, blocks_for(a.outputs * a.team, NR_BLOCK), NR_BLOCK, a.team == 1 ? 0 : states, gpu->stream,
               a);
    }
    return launched(call);
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
