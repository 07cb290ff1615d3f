/* scatter: writes to and sums into indexed positions. The loops that move the target
 * are columns, the others their steps.
 *
 *   in order   a thread a column:     for each step i, from the first on: target[index[i]] += dense[i]
 *   sorted     index  2 0 2 1   ->    order  1 | 3 | 0 2      a thread a step; the first of equal indices takes all,
 *              step   0 1 2 3         index  0 | 1 | 2 2      here steps 0 and 2; the sort is stable (sort.cu)
 *   sums       by integers: scatter_sums.cu
 *   wide       sorted sums of float32, in rows of whole 16 bytes: a thread takes four columns
 *
 *   long runs  index  5 5 5 5 | 5 5 5 5 | 5 7 7 7     are cut at multiples of PIECE: a piece's part of a longer
 *              tail --------^   head --^  ^-- head    run is kept, and joined in order by a thread a run
 *
 * Writes are in order, so that results are the same at every run and the last write to a position stays. It is the
 * plain method without atomics, whose order varies; sorted, it is the reduction by key of Thrust (Bell and Hoberock,
 * GPU Computing Gems, 2011). */
#include "index.cuh"
#include "radix.cuh"

#define PIECE 512 /* steps of a run that a thread takes */

struct scatter_args {
    index_args to; /* the nest holds the columns */
    uint32_t steps;
    divisor columns;
    nest<2> along;                /* the steps of a column: dense and index */
    const int64_t *order, *index; /* of the steps by their index, and their indices: [lane][steps] */
    bool one_lane;                /* of indices for all columns, or one each */
    char *heads, *tails;          /* [piece][column]: what is left of runs that are cut */
    uint32_t pieces;
};

/* The combination of a written element with the former one, by kind; NaN takes precedence. */
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

/* The same of W neighbours. */
template <class D, int kind, int W>
DEVICE pack<typename D::S, W> combined(pack<typename D::S, W> a, const pack<typename D::S, W> &b) {
#pragma unroll
    for (int q = 0; q < W; q++) a.v[q] = combined<D, kind>(a.v[q], b.v[q]);
    return a;
}

template <class D, int kind> __global__ void __launch_bounds__(NR_BLOCK) scatter_in_order(const scatter_args a) {
    using S = typename D::S;
    uint32_t i = blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= a.to.n) return;
    int64_t at[3], more[2];
    a.to.where.find(i, at);
    for (uint32_t k = 0; k < a.steps; k++) {
        a.along.find(k, more);
        int64_t offset = offset_of(a.to, *reinterpret_cast<const int64_t *>(a.to.index + at[1] + more[1]));
        if (offset == LOST) continue;
        S *to = reinterpret_cast<S *>(a.to.target + at[2] + offset);
        *to = combined<D, kind>(*to, *reinterpret_cast<const S *>(a.to.dense + at[0] + more[0]));
    }
}

/* A step of a column, or of W neighbours as one, in the order of indices. */
template <class D, int W> struct sorted_step {
    using S = pack<typename D::S, W>;
    const scatter_args &a;
    int64_t column, step, at[3];
    const int64_t *order, *index;

    DEVICE sorted_step(const scatter_args &args, uint32_t number) : a(args) {
        step = quotient(number, a.columns);
        column = number - step * a.to.n;
        a.to.where.find((uint32_t)column, at);
        const int64_t first = a.one_lane ? 0 : column * a.steps;
        order = a.order + first;
        index = a.index + first;
    }
    DEVICE bool begins(int64_t k) const { return k == 0 || index[k - 1] != index[k]; }
    DEVICE bool ends(int64_t k) const { return k + 1 == a.steps || index[k + 1] != index[k]; }
    DEVICE S source(int64_t k) const {
        int64_t more[2];
        a.along.find((uint32_t)order[k], more);
        return *reinterpret_cast<const S *>(a.to.dense + at[0] + more[0]);
    }
    DEVICE S *target(int64_t offset) const { return reinterpret_cast<S *>(a.to.target + at[2] + offset); }
    DEVICE S &kept(char *where, int64_t piece) const { return reinterpret_cast<S *>(where)[piece * a.to.n + column]; }
};

/* A thread a step: where a run begins, or a piece in a run, it takes the following steps in the piece. The last write
 * stays. */
template <class D, int kind, int W> __global__ void __launch_bounds__(NR_BLOCK) scatter_sorted(const scatter_args a) {
    using S = pack<typename D::S, W>;
    const uint32_t number = blockIdx.x * NR_BLOCK + threadIdx.x;
    if (number >= a.to.n * a.steps) return;
    const sorted_step<D, W> sorted(a, number);
    int64_t k = sorted.step;
    const int64_t index = sorted.index[k],
                  offset = kind == NR_SCATTER && !sorted.ends(k) ? LOST : offset_of(a.to, index);
    if (offset == LOST) return;
    if constexpr (kind == NR_SCATTER) {
        *sorted.target(offset) = sorted.source(k);
    } else {
        const bool begins = sorted.begins(k);
        if (!begins && k % PIECE != 0) return;
        const int64_t piece = k / PIECE, end = (piece + 1) * PIECE < a.steps ? (piece + 1) * PIECE : a.steps;
        S value = sorted.source(k);
        for (k++; k < end && sorted.index[k] == index; k++) value = combined<D, kind, W>(value, sorted.source(k));
        if (!begins)
            sorted.kept(a.heads, piece) = value;
        else if (k == end && !sorted.ends(k - 1))
            sorted.kept(a.tails, piece) = value;
        else
            *sorted.target(offset) = combined<D, kind, W>(*sorted.target(offset), value);
    }
}

/* A thread a piece of a column: a run that leaves it gets the rest from the next pieces. */
template <class D, int kind, int W> __global__ void __launch_bounds__(NR_BLOCK) join_pieces(const scatter_args a) {
    using S = pack<typename D::S, W>;
    const sorted_step<D, W> sorted(a, blockIdx.x * NR_BLOCK + threadIdx.x);
    const int64_t piece = sorted.step; /* the number is that of a piece here */
    if (piece + 1 >= a.pieces) return;
    const int64_t last = (piece + 1) * PIECE - 1, index = sorted.index[last];
    if (sorted.ends(last)) return;
    if (piece > 0 && sorted.index[piece * PIECE - 1] == index) return; /* the run began before this piece */
    const int64_t offset = offset_of(a.to, index);
    if (offset == LOST) return;
    int64_t low = last + 1, high = a.steps; /* the run ends where its index does */
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (sorted.index[middle] == index)
            low = middle + 1;
        else
            high = middle;
    }
    const int64_t next = (low - 1) / PIECE + 1;
    S value = sorted.kept(a.tails, piece);
#pragma unroll 8
    for (int64_t p = piece + 1; p < next; p++) value = combined<D, kind, W>(value, sorted.kept(a.heads, p));
    *sorted.target(offset) = combined<D, kind, W>(*sorted.target(offset), value);
}

typedef void (*scatter_kernel)(scatter_args);
struct scatter_kernels {
    scatter_kernel in_order, sorted, join;
};
template <class D, int kind, int W = 1> static scatter_kernels scatter_of() {
    return {scatter_in_order<D, kind>, scatter_sorted<D, kind, W>, join_pieces<D, kind, W>};
}

/* Four columns of a sum of float32 as one, if they are neighbours that begin at multiples of 16 bytes. */
#define WIDE_COLUMNS 4
static bool widen_columns(const nr_call *call, nr_plan *columns, const nr_plan &along, bool one_lane) {
    const nr_index_plan &plan = *static_cast<const nr_index_plan *>(call->plan);
    const int64_t size = sizeof(float), wide = WIDE_COLUMNS * size;
    if (call->op != NR_SCATTER_ADD || call->dtype != NORCH_FLOAT32 || !one_lane || columns->ndim == 0) return false;
    int64_t all = plan.axis_stride | along.stride[0][0] | columns->size[0] * size;
    for (int o = 0; o < 3; o += 2) {
        if (columns->stride[o][0] != size || !is_aligned(columns->data[o], wide)) return false;
        for (int32_t d = 1; d < columns->ndim; d++) all |= columns->stride[o][d];
    }
    if (all % wide) return false;
    columns->size[0] /= WIDE_COLUMNS;
    columns->numel /= WIDE_COLUMNS;
    for (int o = 0; o < 3; o += 2) columns->stride[o][0] = wide;
    return true;
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

/* Elements that are only moved are dispatched by size, under the name of a dtype of that size. */
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

/* The steps of a column in the order of their indices, and those, for one column or all of them. */
static int32_t sort_steps(const nr_call *call, const nr_plan &columns, const nr_plan &along, const scatter_args &to,
                          int64_t *order, int64_t *index) {
    radix_args a = {};
    int64_t stride[3][NORCH_MAX_DIMS];
    const int32_t ndim = to.one_lane ? 0 : columns.ndim;
    a.lanes = 1;
    for (int32_t d = 0; d < ndim; d++) {
        stride[0][d] = stride[2][d] = a.lanes * along.numel * (int64_t)sizeof(int64_t);
        stride[1][d] = columns.stride[1][d];
        a.lanes *= columns.size[d];
    }
    a.where = nest_of<3>(ndim, columns.size, stride);
    a.indices = reinterpret_cast<char *>(order);
    a.in = columns.data[1];
    a.values = reinterpret_cast<char *>(index);
    a.n = a.count = along.numel;
    a.step[0] = a.step[2] = sizeof(int64_t);
    a.step[1] = along.stride[1][0];
    if (to.to.axis_size < UINT32_MAX) a.limit = (uint32_t)to.to.axis_size;
    nr_call sort = *call;
    sort.dtype = NORCH_INT64;
    return nr_cuda_sorts_rows(&sort, a) ? nr_cuda_sort_rows(&sort, a) : nr_cuda_radix_sort(&sort, a);
}

static int32_t run_sorted(const nr_call *call, const nr_plan &plan, const nr_plan &along, scatter_args &a) {
    const nr_gpu *gpu = gpu_of(call);
    nr_plan columns = plan;
    const bool wide = widen_columns(call, &columns, along, a.one_lane);
    const scatter_kernels kernels = wide ? scatter_of<dtype_float32, NR_SCATTER_ADD, WIDE_COLUMNS>() : kernels_of(call);
    a.to = index_args_of(call, columns);
    const size_t steps = (size_t)((a.one_lane ? 1 : columns.numel) * along.numel);
    a.columns = divisor_of(a.to.n);
    a.pieces = blocks_for(along.numel, PIECE);
    const bool joins = call->op != NR_SCATTER && a.pieces > 1;
    const size_t kept =
        (size_t)a.pieces * a.to.n * (size_t)nr_library->dtypes[call->dtype].size * (wide ? WIDE_COLUMNS : 1);
    const scratch order(gpu, 2 * steps * sizeof(int64_t)), pieces(gpu, joins ? 2 * kept : 0);
    if (order.failed() || pieces.failed()) return NORCH_ERROR_MEMORY;
    int64_t *places = reinterpret_cast<int64_t *>(order.memory);
    NR_TRY(sort_steps(call, columns, along, a, places, places + steps));
    a.order = places;
    a.index = places + steps;
    a.heads = pieces.memory;
    a.tails = pieces.memory + kept;
    LAUNCH(kernels.sorted, blocks_for((int64_t)a.to.n * a.steps, NR_BLOCK), NR_BLOCK, 0, gpu->stream, a);
    if (joins) LAUNCH(kernels.join, blocks_for((int64_t)a.to.n * a.pieces, NR_BLOCK), NR_BLOCK, 0, gpu->stream, a);
    return launched(call);
}

#define BUSY 4096 /* columns that keep a device busy */
#define FEW 64    /* steps that are not worth sorting */

int32_t nr_cuda_scatter(const nr_call *call, const nr_plan &nest) {
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
    const bool shared = one_lane && columns.numel >= 8; /* indices: sorting them costs less than what they move */
    if (along.numel > FEW && !shared && nr_cuda_sums_apply(call, columns.numel, along.numel))
        return nr_cuda_scatter_sums(call, nest, columns);
    scatter_args a = {};
    a.to = index_args_of(call, columns);
    a.steps = (uint32_t)along.numel;
    a.along = nest_of<2>(along.ndim, along.size, along.stride);
    a.one_lane = one_lane;
    if (along.numel > FEW && along.ndim == 1 && (one_lane || columns.numel < BUSY))
        return run_sorted(call, columns, along, a);
    return run_blocks(call, kernels_of(call).in_order, blocks_for(a.to.n, NR_BLOCK), a);
}
