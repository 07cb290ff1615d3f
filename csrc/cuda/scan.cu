/* scan: running sums, products and extremes. Where lanes (positions of the other axes) are many and neighbours, a thread
 * goes along each; else blocks go along parts of them, a tile at a time, and learn the totals of the parts before theirs
 * from a kernel that ran first (Blelloch, "Prefix Sums and Their Applications", 1990).
 *
 *   lane     [ part 0: tile | tile ][ part 1: tile | tile ][ part 2 ]   1. a block a part: its total
 *   totals     a                      b                      c          2. a block a part: joins the totals before it, and
 *   tile     [ pack 0: w0 w1 .. w7 | pack 1: w0 w1 .. w7 | ... ]           goes through its tiles
 *   warp       x x x x   x x x x   x x x x   ...   4 neighbours a lane: their total, the lanes before it by shuffles,
 *              then all warps of the tile by one of them, the carry before it
 *
 * How a lane is cut follows from the shape alone, so results do. float sums run in double, as on the CPU. */
#include "../families/scan.h"
#include "cuda.cuh"

#define ITEMS 4 /* neighbours that a thread combines by itself */
#define WARPS (NR_BLOCK / 32)
#define MOST_PARTS 2048
#define ALL_LANES 0xffffffffu

struct scan_args {
    char *out;
    const char *in;
    char *totals; /* [lane][part] */
    int64_t lanes, n, part_size, step[2];
    int32_t parts;
    bool wide_in, wide_out; /* neighbours lie side by side, where one access may take ITEMS of them */
    nest<2> where;
};

/* ---- what runs: a state, and how a later one joins it ------------------------------------------------------------ */

template <class T> struct sum_scan {
    using In = T;
    using Out = T;
    using State = typename choose<is_same<T, int64_t>, int64_t, double>::type;
    static constexpr int PACKS = 2;        /* of ITEMS elements that a thread takes of a tile */
    static constexpr bool ORDERED = false; /* a total may join elements in any order, which is a fixed one still */
    static DEVICE State begin() { return 0; }
    static DEVICE State of(T x, int64_t) { return (State)x; }
    static DEVICE State join(State a, State b) { return (State)(a + b); }
    static DEVICE Out value(State s) { return (Out)s; }
};
template <class T> struct product_scan : sum_scan<T> {
    using State = typename sum_scan<T>::State;
    static DEVICE State begin() { return 1; }
    static DEVICE State join(State a, State b) { return a * b; }
};
template <class T> struct exponential_scan : sum_scan<T> {
    static constexpr int PACKS = 1;
    static DEVICE double begin() { return -(double)INFINITY; }
    static DEVICE double join(double a, double b) { /* log(exp(a) + exp(b)); equal infinities have no distance */
        double high = a > b ? a : b, low = a > b ? b : a;
        if (a != a || b != b) return a + b;
        return high == low && high - high != 0 ? high : high + log1p(exp(low - high));
    }
};

/* The index of the last of the best so far; a NaN is better than all numbers, and only a later NaN replaces it. */
template <class T> struct best {
    T value;
    int64_t index; /* -1: none yet */
};
template <class T, int sign> struct extreme_scan {
    using In = T;
    using Out = int64_t;
    using State = best<T>;
    static constexpr int PACKS = 2;
    static constexpr bool ORDERED = true;
    static DEVICE State begin() { return {T(), -1}; }
    static DEVICE State of(T x, int64_t index) { return {x, index}; }
    static DEVICE State join(State a, State b) {
        if (a.index < 0 || b.index < 0) return b.index < 0 ? a : b;
        bool take = b.value != b.value || (sign > 0 ? b.value >= a.value : b.value <= a.value);
        return take ? b : a;
    }
    static DEVICE Out value(State s) { return s.index; }
};

/* ---- states of a warp and of a block, in order ---------------------------------------------------------------------- */

/* The state of the lane so far before this one, or behind it. */
template <class S> DEVICE S from_before(S s, int distance) { return __shfl_up_sync(ALL_LANES, s, distance); }
template <class S> DEVICE S from_behind(S s, int distance) { return __shfl_down_sync(ALL_LANES, s, distance); }
template <class T> DEVICE best<T> from_before(best<T> s, int distance) {
    return {__shfl_up_sync(ALL_LANES, s.value, distance), __shfl_up_sync(ALL_LANES, s.index, distance)};
}
template <class T> DEVICE best<T> from_behind(best<T> s, int distance) {
    return {__shfl_down_sync(ALL_LANES, s.value, distance), __shfl_down_sync(ALL_LANES, s.index, distance)};
}

/* What the lanes of a warp have, joined up to this one. */
template <class Scan> DEVICE typename Scan::State join_to_lane(typename Scan::State own) {
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const typename Scan::State before = from_before(own, distance);
        if (lane >= distance) own = Scan::join(before, own);
    }
    return own;
}

/* What all lanes of a warp have, joined: lane 0 gets it. */
template <class Scan> DEVICE typename Scan::State join_warp(typename Scan::State own) {
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const typename Scan::State behind = from_behind(own, distance);
        if (lane % (2 * distance) == 0) own = Scan::join(own, behind);
    }
    return own;
}

/* ---- kernels --------------------------------------------------------------------------------------------------------- */

template <class Scan> __global__ void __launch_bounds__(NR_BLOCK) scan_lanes(const scan_args a) {
    int64_t lane = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (lane >= a.lanes) return;
    int64_t at[2];
    a.where.find((uint32_t)lane, at);
    char *out = a.out + at[0];
    const char *in = a.in + at[1];
    typename Scan::State s = Scan::begin();
    for (int64_t i = 0; i < a.n; i++, out += a.step[0], in += a.step[1]) {
        s = Scan::join(s, Scan::of(*reinterpret_cast<const typename Scan::In *>(in), i));
        *reinterpret_cast<typename Scan::Out *>(out) = Scan::value(s);
    }
}

/* Where a block is: a part of a lane, of which a thread takes ITEMS neighbours PACKS times in a tile. */
template <class Scan, int PACKS> struct scan_place {
    using In = typename Scan::In;
    using State = typename Scan::State;
    static constexpr int TILE = NR_BLOCK * ITEMS * PACKS;
    const scan_args &a;
    int64_t lane, part, first, last, at[2];

    DEVICE scan_place(const scan_args &args)
        : a(args), lane(blockIdx.x / (unsigned)args.parts), part(blockIdx.x % (unsigned)args.parts) {
        first = part * a.part_size;
        last = first + a.part_size < a.n ? first + a.part_size : a.n;
        a.where.find((uint32_t)lane, at);
    }
    DEVICE State *totals() const { return reinterpret_cast<State *>(a.totals) + lane * a.parts; }
    DEVICE int64_t index(int64_t tile, int p) const { return tile + (p * NR_BLOCK + (int)threadIdx.x) * ITEMS; }
    DEVICE void load(int64_t i, In (&to)[ITEMS]) const {
        const char *from = a.in + at[1] + i * a.step[1];
        if (a.wide_in && i + ITEMS <= last) {
            const auto all = *reinterpret_cast<const pack<In, ITEMS> *>(from);
#pragma unroll
            for (int k = 0; k < ITEMS; k++) to[k] = all.v[k];
        } else {
#pragma unroll
            for (int k = 0; k < ITEMS; k++)
                to[k] = i + k < last ? *reinterpret_cast<const In *>(from + k * a.step[1]) : In();
        }
    }
    /* The ITEMS neighbours from i on, joined to `before`; each(k, state) at every one. */
    template <class Each> DEVICE State join_on(State before, int64_t i, const In (&x)[ITEMS], const Each &each) const {
        if (i + ITEMS <= last) {
#pragma unroll
            for (int k = 0; k < ITEMS; k++) each(k, before = Scan::join(before, Scan::of(x[k], i + k)));
        } else {
#pragma unroll
            for (int k = 0; k < ITEMS; k++)
                if (i + k < last) each(k, before = Scan::join(before, Scan::of(x[k], i + k)));
        }
        return before;
    }
};

/* What the threads of a block have, joined in order: lane 0 of the first warp gets it. */
template <class Scan> DEVICE typename Scan::State join_block(typename Scan::State own, typename Scan::State *of_warps) {
    const int t = (int)threadIdx.x;
    own = join_warp<Scan>(own);
    if (t % 32 == 0) of_warps[t / 32] = own;
    __syncthreads();
    if (t < 32) own = join_warp<Scan>(t < WARPS ? of_warps[t] : Scan::begin());
    __syncthreads();
    return own;
}

template <class Scan, int PACKS> __global__ void __launch_bounds__(NR_BLOCK) total_of_part(const scan_args a) {
    using State = typename Scan::State;
    using In = typename Scan::In;
    __shared__ __align__(16) unsigned char memory[WARPS * sizeof(State)];
    State *of_warps = reinterpret_cast<State *>(memory);
    const scan_place<Scan, PACKS> place(a);
    State total = Scan::begin();
    for (int64_t tile = place.first; tile < place.last; tile += place.TILE) {
        In x[PACKS][ITEMS];
#pragma unroll
        for (int p = 0; p < PACKS; p++) place.load(place.index(tile, p), x[p]);
#pragma unroll
        for (int p = 0; p < PACKS; p++) {
            const auto own = [&](State s) { return place.join_on(s, place.index(tile, p), x[p], [](int, State) {}); };
            if constexpr (Scan::ORDERED)
                total = Scan::join(total, join_block<Scan>(own(Scan::begin()), of_warps));
            else
                total = own(total);
        }
    }
    if constexpr (!Scan::ORDERED) total = join_block<Scan>(total, of_warps);
    if (threadIdx.x == 0) place.totals()[place.part] = total;
}

/* What the parts before this one of its lane come to: each thread joins some, then all. */
template <class Scan>
DEVICE typename Scan::State carry_of(const typename Scan::State *totals, int64_t parts,
                                     typename Scan::State *of_warps) {
    using State = typename Scan::State;
    const int t = (int)threadIdx.x;
    const int64_t each = (parts + NR_BLOCK - 1) / NR_BLOCK;
    State own = Scan::begin();
    for (int64_t i = t * each; i < (t + 1) * each && i < parts; i++) own = Scan::join(own, totals[i]);
    own = join_warp<Scan>(own);
    if (t % 32 == 0) of_warps[t / 32] = own;
    __syncthreads();
    State carry = of_warps[0];
    for (int w = 1; w < WARPS; w++) carry = Scan::join(carry, of_warps[w]);
    __syncthreads();
    return carry;
}

template <class Scan, int PACKS> __global__ void __launch_bounds__(NR_BLOCK) scan_part(const scan_args a) {
    using State = typename Scan::State;
    using In = typename Scan::In;
    using Out = typename Scan::Out;
    constexpr int TOTALS = PACKS * WARPS, EACH = (TOTALS + 31) / 32;
    __shared__ __align__(16) unsigned char memory[(TOTALS + 1) * sizeof(State)];
    State *before = reinterpret_cast<State *>(memory); /* each warp's share of each pack; the last: all of the tile */
    const scan_place<Scan, PACKS> place(a);
    const int t = (int)threadIdx.x, lane = t % 32;
    State carry = place.part > 0 ? carry_of<Scan>(place.totals(), place.part, before) : Scan::begin();
    for (int64_t tile = place.first; tile < place.last; tile += place.TILE) {
        In x[PACKS][ITEMS];
        State left[PACKS]; /* of the lanes before this one */
#pragma unroll
        for (int p = 0; p < PACKS; p++) place.load(place.index(tile, p), x[p]);
#pragma unroll
        for (int p = 0; p < PACKS; p++) {
            const State own = place.join_on(Scan::begin(), place.index(tile, p), x[p], [](int, State) {});
            const State joined = join_to_lane<Scan>(own);
            left[p] = from_before(joined, 1);
            if (lane == 0) left[p] = Scan::begin();
            if (lane == 31) before[p * WARPS + t / 32] = joined;
        }
        __syncthreads();
        if (t < 32) { /* totals of warps become what comes before them */
            State own = Scan::begin(), total[EACH];
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                total[e] = t * EACH + e < TOTALS ? before[t * EACH + e] : Scan::begin();
                own = Scan::join(own, total[e]);
            }
            const State joined = join_to_lane<Scan>(own);
            State run = from_before(joined, 1);
            run = t == 0 ? carry : Scan::join(carry, run);
            __syncwarp();
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                if (t * EACH + e < TOTALS) before[t * EACH + e] = run;
                run = Scan::join(run, total[e]);
            }
            if (t == 31) before[TOTALS] = run;
        }
        __syncthreads();
#pragma unroll
        for (int p = 0; p < PACKS; p++) {
            const int64_t i = place.index(tile, p);
            if (i >= place.last) continue;
            char *to = a.out + place.at[0] + i * a.step[0];
            pack<Out, ITEMS> all;
            place.join_on(Scan::join(before[p * WARPS + t / 32], left[p]), i, x[p],
                          [&](int k, State s) { all.v[k] = Scan::value(s); });
            if (a.wide_out && i + ITEMS <= place.last) {
                *reinterpret_cast<pack<Out, ITEMS> *>(to) = all;
            } else {
#pragma unroll
                for (int k = 0; k < ITEMS; k++)
                    if (i + k < place.last) *reinterpret_cast<Out *>(to + k * a.step[0]) = all.v[k];
            }
        }
        carry = before[TOTALS];
        __syncthreads(); /* the next tile writes where this one is read */
    }
}

struct scan_kernels {
    void (*lanes)(scan_args), (*total)(scan_args), (*part)(scan_args), (*short_part)(scan_args);
    int32_t state_size, in_size, out_size, tile;
};

template <class Scan> static const scan_kernels *kernels_of() {
    constexpr int PACKS = Scan::PACKS;
    static const scan_kernels all = {
        scan_lanes<Scan>,
        total_of_part<Scan, PACKS>,
        scan_part<Scan, PACKS>,
        scan_part<Scan, 1>,
        (int)sizeof(typename Scan::State),
        (int)sizeof(typename Scan::In),
        (int)sizeof(typename Scan::Out),
        NR_BLOCK * ITEMS * PACKS,
    };
    return &all;
}

template <class T> static const scan_kernels *find(int32_t kind) {
    switch (kind) {
    case NORCH_SCAN_SUM: return kernels_of<sum_scan<T>>();
    case NORCH_SCAN_PROD: return kernels_of<product_scan<T>>();
    case NORCH_SCAN_MAX: return kernels_of<extreme_scan<T, 1>>();
    case NORCH_SCAN_MIN: return kernels_of<extreme_scan<T, -1>>();
    }
    return kernels_of<exponential_scan<T>>();
}

/* True where every group of ITEMS neighbours of operand o can be accessed at once. */
static bool is_wide(const nr_plan &lanes, int o, const void *data, int64_t step, int64_t size) {
    bool aligned = step == size && is_aligned(data, ITEMS * size);
    for (int32_t d = 0; d < lanes.ndim; d++) aligned = aligned && lanes.stride[o][d] % (ITEMS * size) == 0;
    return aligned;
}

static int32_t run_part(const nr_call *call, const nr_plan &lanes) {
    const nr_scan_plan &plan = *static_cast<const nr_scan_plan *>(call->plan);
    const nr_gpu *gpu = gpu_of(call);
    const scan_kernels *kernels = call->dtype == NORCH_INT64     ? find<int64_t>(call->op)
                                  : call->dtype == NORCH_FLOAT32 ? find<float>(call->op)
                                                                 : find<double>(call->op);
    scan_args a = {};
    a.out = lanes.data[0];
    a.in = lanes.data[1];
    a.lanes = lanes.numel;
    a.n = plan.n;
    a.step[0] = plan.step[0];
    a.step[1] = plan.step[1];
    a.where = nest_of<2>(lanes.ndim, lanes.size, lanes.stride);
    if (a.n <= 32 || a.lanes >= 16384) {
        LAUNCH(kernels->lanes, blocks_for(a.lanes, NR_BLOCK), NR_BLOCK, 0, gpu->stream, a);
        return launched(call);
    }
    a.wide_out = is_wide(lanes, 0, a.out, a.step[0], kernels->out_size);
    a.wide_in = is_wide(lanes, 1, a.in, a.step[1], kernels->in_size);
    const int64_t tiles = (a.n + kernels->tile - 1) / kernels->tile;
    const int64_t parts = tiles * a.lanes <= MOST_PARTS ? tiles : MOST_PARTS / a.lanes + 1;
    a.part_size = (tiles + parts - 1) / parts * kernels->tile;
    a.parts = (int32_t)((a.n + a.part_size - 1) / a.part_size);
    const bool is_short = a.n <= kernels->tile / 2;
    const scratch totals(gpu, a.parts > 1 ? (size_t)(a.lanes * a.parts * kernels->state_size) : 0);
    if (!totals.memory) return NORCH_ERROR_MEMORY;
    a.totals = totals.memory;
    const unsigned blocks = (unsigned)(a.lanes * a.parts);
    if (a.parts > 1) LAUNCH(kernels->total, blocks, NR_BLOCK, 0, gpu->stream, a);
    LAUNCH((is_short ? kernels->short_part : kernels->part), blocks, NR_BLOCK, 0, gpu->stream, a);
    return launched(call);
}

int32_t nr_cuda_scan(const nr_call *call) {
    const nr_scan_plan &plan = *static_cast<const nr_scan_plan *>(call->plan);
    if (plan.n == 0 || plan.nest.numel == 0) return NORCH_OK;
    return in_parts(plan.nest, [&](const nr_plan &part) { return run_part(call, part); });
}
