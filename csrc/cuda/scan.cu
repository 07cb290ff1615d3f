/* scan: running sums, products and extremes along lanes, which the positions of the other axes tell apart.
 *
 *   rows     lane  [ t0 t1 t2 t3 | t0 t1 .. ]       short lanes, each dense: a team of a warp takes a chunk at a time
 *   columns  lanes   0 1 2 3 ..                     lanes beside one another: a thread a lane, or a strip of one
 *            strip 0 . . . .   strip 1 . . . .
 *   parts    lane  [ part 0: tile | tile ][ part 1: tile | tile ][ part 2 ]   long lanes: a block a part
 *            tile  [ pack 0: w0 w1 .. w7 | pack 1: w0 w1 .. w7 | ... ]
 *            warp    x x x x   x x x x   x x x x   ...   4 neighbours a thread: their total, the threads before it by
 *                    shuffles, then all warps of the tile by one of them, the carry before it
 *
 * Parts, of columns too, learn the totals of those before theirs from a kernel that ran first (Blelloch, "Prefix Sums
 * and Their Applications", 1990). The second begins where the first ended, at what the cache still has. (Look-back in
 * one kernel is no faster, and joins totals in an order that varies from run to run.) Shape and layout alone determine
 * how a lane is divided, and so its results. float sums run in double, as on the CPU. */
#include "../families/scan.h"
#include "cuda.cuh"

#define ITEMS 4 /* neighbours that a thread combines by itself */
#define WARPS (NR_BLOCK / 32)
#define MOST_PARTS 2560 /* of all lanes */
#define MOST_COLUMN_PARTS 128
#define ALL_LANES 0xffffffffu

struct scan_args {
    char *out;
    const char *in;
    char *totals; /* [lane][part]; of columns [part][lane] */
    int64_t lanes, n, part_size, strip_size, step[2];
    int32_t parts, team;    /* threads of a row, or lanes of a block of columns */
    bool wide_in, wide_out; /* neighbours lie side by side, where one access may take ITEMS of them */
    nest<2> where;
};

/* ---- what runs: a state, and how a later one joins it ------------------------------------------------------------ */

template <class T> struct sum_scan {
    using In = T;
    using Out = T;
    using State = typename choose<is_same<T, int64_t>, int64_t, double>::type;
    static constexpr int PACKS = sizeof(T) == 4 ? 4 : 2; /* of ITEMS elements that a thread takes of a tile */
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
/* log(exp(a) + exp(b)); equal infinities have no distance. It is not inlined, because it is long and used in many
 * places. */
static __device__ __attribute__((noinline)) double add_exponentials(double a, double b) {
    double high = a > b ? a : b, low = a > b ? b : a;
    if (a != a || b != b) return a + b;
    return high == low && high - high != 0 ? high : high + log1p(exp(low - high));
}
template <class T> struct exponential_scan : sum_scan<T> {
    static constexpr int PACKS = 1;
    static DEVICE double begin() { return -(double)INFINITY; }
    static DEVICE double join(double a, double b) { return add_exponentials(a, b); }
};

/* The index of the last best element so far; a NaN is better than all numbers, and only a later NaN replaces it. */
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

/* ---- states of a warp and of a block, in order ------------------------------------------------------------------- */

/* A state that a shuffle brings from another thread of the warp. */
template <class S, class Shuffle> DEVICE S brought(S s, const Shuffle &shuffle) { return shuffle(s); }
template <class T, class Shuffle> DEVICE best<T> brought(best<T> s, const Shuffle &shuffle) {
    return {shuffle(s.value), shuffle(s.index)};
}
template <class S> DEVICE S from_before(S s, int distance) {
    return brought(s, [&](auto x) { return __shfl_up_sync(ALL_LANES, x, distance); });
}
template <class S> DEVICE S from_behind(S s, int distance) {
    return brought(s, [&](auto x) { return __shfl_down_sync(ALL_LANES, x, distance); });
}
template <class S> DEVICE S from_thread(S s, int thread) {
    return brought(s, [&](auto x) { return __shfl_sync(ALL_LANES, x, thread); });
}

/* The values of the threads of a team, a warp or a power of two of its threads, joined up to this one. */
template <class Scan> DEVICE typename Scan::State join_to_here(typename Scan::State state, int team = 32) {
    const int member = (int)threadIdx.x % team;
#pragma unroll
    for (int distance = 1; distance < 32 && distance < team; distance *= 2) {
        const typename Scan::State before = from_before(state, distance);
        if (member >= distance) state = Scan::join(before, state);
    }
    return state;
}

/* The values of all threads of a warp, joined: the first thread gets the result. */
template <class Scan> DEVICE typename Scan::State join_warp(typename Scan::State state) {
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const typename Scan::State behind = from_behind(state, distance);
        if (lane % (2 * distance) == 0) state = Scan::join(state, behind);
    }
    return state;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* N neighbours of a lane from element i on, of which those before `last` are there;
 * backward lanes have negative steps. */
template <class In, int N>
DEVICE void load_neighbours(const scan_args &a, const char *lane, int64_t i, int64_t last, In (&to)[N]) {
    const char *from = lane + i * a.step[1];
    if (N == ITEMS && a.wide_in && i + N <= last) {
        const bool back = a.step[1] < 0;
        const auto all = *reinterpret_cast<const pack<In, N> *>(back ? from + (N - 1) * a.step[1] : from);
#pragma unroll
        for (int k = 0; k < N; k++) to[k] = back ? all.v[N - 1 - k] : all.v[k];
    } else {
#pragma unroll
        for (int k = 0; k < N; k++) to[k] = i + k < last ? *reinterpret_cast<const In *>(from + k * a.step[1]) : In();
    }
}

/* Joins N neighbours from element i on to `before`; each(k, state) at every one that is there. */
template <class Scan, int N, class Each>
DEVICE typename Scan::State join_on(typename Scan::State before, int64_t i, int64_t last,
                                    const typename Scan::In (&x)[N], const Each &each) {
    if (i + N <= last) {
#pragma unroll
        for (int k = 0; k < N; k++) each(k, before = Scan::join(before, Scan::of(x[k], i + k)));
    } else {
#pragma unroll
        for (int k = 0; k < N; k++)
            if (i + k < last) each(k, before = Scan::join(before, Scan::of(x[k], i + k)));
    }
    return before;
}

/* Writes the running states of N neighbours, marked to leave the cache first: the cache keeps input that is yet to be
 * read. */
template <class Scan, int N>
DEVICE void write_on(const scan_args &a, char *lane, typename Scan::State before, int64_t i, int64_t last,
                     const typename Scan::In (&x)[N]) {
    using Out = typename Scan::Out;
    char *to = lane + i * a.step[0];
    pack<Out, N> all;
    join_on<Scan>(before, i, last, x, [&](int k, typename Scan::State s) { all.v[k] = Scan::value(s); });
    if (N == ITEMS && a.wide_out && i + N <= last) {
        const bool back = a.step[0] < 0;
        pack<Out, N> turned;
#pragma unroll
        for (int k = 0; k < N; k++) turned.v[k] = back ? all.v[N - 1 - k] : all.v[k];
        float4 words[sizeof all / sizeof(float4) + 1];
        memcpy(words, &turned, sizeof turned);
        float4 *at = reinterpret_cast<float4 *>(back ? to + (N - 1) * a.step[0] : to);
#pragma unroll
        for (int w = 0; w < (int)(sizeof all / sizeof(float4)); w++) __stcs(at + w, words[w]);
    } else {
#pragma unroll
        for (int k = 0; k < N; k++)
            if (i + k < last) *reinterpret_cast<Out *>(to + k * a.step[0]) = all.v[k];
    }
}

/* Short dense lanes: a team each. */
template <class Scan, int N> __global__ void __launch_bounds__(NR_BLOCK) scan_rows(const scan_args a) {
    using State = typename Scan::State;
    using In = typename Scan::In;
    const int t = (int)threadIdx.x, member = t % a.team, teams = NR_BLOCK / a.team;
    const int64_t row = (int64_t)blockIdx.x * teams + t / a.team, n = row < a.lanes ? a.n : 0;
    int64_t at[2] = {0, 0};
    if (n) a.where.find((uint32_t)row, at);
    State carry = Scan::begin();
    for (int64_t first = 0; first < a.n; first += a.team * N) { /* all threads of a warp, for they shuffle */
        const int64_t i = first + member * N;
        In x[N];
        load_neighbours(a, a.in + at[1], i, n, x);
        const State joined = join_to_here<Scan>(join_on<Scan>(Scan::begin(), i, n, x, [](int, State) {}), a.team);
        const State left = from_before(joined, 1), all = from_thread(joined, t % 32 | (a.team - 1));
        write_on<Scan>(a, a.out + at[0], member ? Scan::join(carry, left) : carry, i, n, x);
        carry = Scan::join(carry, all);
    }
}

/* Lanes side by side: strips of a part of each, a thread a strip. Without WRITES: the totals of parts. */
template <class Scan, bool WRITES> __global__ void __launch_bounds__(NR_BLOCK) scan_columns(const scan_args a) {
    using State = typename Scan::State;
    using In = typename Scan::In;
    constexpr int BATCH = 8; /* loads under way at once */
    __shared__ __align__(16) unsigned char memory[NR_BLOCK * sizeof(State)];
    State *of_strips = reinterpret_cast<State *>(memory);
    const int t = (int)threadIdx.x, column = t % a.team, strip = t / a.team, strips = NR_BLOCK / a.team;
    const int64_t lane = (int64_t)blockIdx.x * a.team + column, part = blockIdx.y;
    const int64_t end = (part + 1) * a.part_size < a.n ? (part + 1) * a.part_size : a.n;
    const int64_t first = part * a.part_size + strip * a.strip_size;
    const int64_t last = lane >= a.lanes ? first : first + a.strip_size < end ? first + a.strip_size : end;
    int64_t at[2] = {0, 0};
    if (lane < a.lanes) a.where.find((uint32_t)lane, at);
    State *totals = reinterpret_cast<State *>(a.totals) + lane, before = Scan::begin();
    if (!WRITES || strips > 1) {
        State total = Scan::begin();
        for (int64_t i = first; i < last; i += BATCH) {
            In x[BATCH];
            load_neighbours(a, a.in + at[1], i, last, x);
            total = join_on<Scan>(total, i, last, x, [](int, State) {});
        }
        of_strips[t] = total;
        __syncthreads();
    }
    if (lane >= a.lanes) return;
    if constexpr (WRITES) {
#pragma unroll 8
        for (int64_t p = 0; p < part; p++) before = Scan::join(before, totals[p * a.lanes]);
        for (int s = 0; s < strip; s++) before = Scan::join(before, of_strips[s * a.team + column]);
        for (int64_t i = first; i < last; i += BATCH) {
            In x[BATCH];
            load_neighbours(a, a.in + at[1], i, last, x);
            before = join_on<Scan>(before, i, last, x, [&](int k, State s) {
                *reinterpret_cast<typename Scan::Out *>(a.out + at[0] + (i + k) * a.step[0]) = Scan::value(s);
            });
        }
    } else if (strip == 0) {
        for (int s = 0; s < strips; s++) before = Scan::join(before, of_strips[s * a.team + column]);
        totals[part * a.lanes] = before;
    }
}

/* The position of a block: a part of a lane, of which a thread takes ITEMS neighbours PACKS times in a tile. */
template <class Scan> struct scan_place {
    using State = typename Scan::State;
    static constexpr int TILE = NR_BLOCK * ITEMS * Scan::PACKS;
    const scan_args &a;
    int64_t lane, part, first, last, at[2];

    DEVICE scan_place(const scan_args &args, unsigned block)
        : a(args), lane(block / (unsigned)args.parts), part(block % (unsigned)args.parts) {
        first = part * a.part_size;
        last = first + a.part_size < a.n ? first + a.part_size : a.n;
        a.where.find((uint32_t)lane, at);
    }
    DEVICE State *totals() const { return reinterpret_cast<State *>(a.totals) + lane * a.parts; }
    DEVICE int64_t index(int64_t tile, int p) const { return tile + (p * NR_BLOCK + (int)threadIdx.x) * ITEMS; }
    DEVICE void load(int64_t i, typename Scan::In (&to)[ITEMS]) const { load_neighbours(a, a.in + at[1], i, last, to); }
    DEVICE State join_to(State before, int64_t i, const typename Scan::In (&x)[ITEMS]) const {
        return join_on<Scan>(before, i, last, x, [](int, State) {});
    }
};

/* The values of the threads of a block, joined in order: lane 0 of the first warp gets the result. */
template <class Scan>
DEVICE typename Scan::State join_block(typename Scan::State state, typename Scan::State *of_warps) {
    const int t = (int)threadIdx.x;
    state = join_warp<Scan>(state);
    if (t % 32 == 0) of_warps[t / 32] = state;
    __syncthreads();
    if (t < 32) state = join_warp<Scan>(t < WARPS ? of_warps[t] : Scan::begin());
    __syncthreads();
    return state;
}

template <class Scan> __global__ void __launch_bounds__(NR_BLOCK) total_of_part(const scan_args a) {
    using State = typename Scan::State;
    using In = typename Scan::In;
    constexpr int PACKS = Scan::PACKS;
    __shared__ __align__(16) unsigned char memory[WARPS * sizeof(State)];
    State *of_warps = reinterpret_cast<State *>(memory);
    const scan_place<Scan> place(a, blockIdx.x);
    State total = Scan::begin();
    for (int64_t tile = place.first; tile < place.last; tile += place.TILE) {
        In x[PACKS][ITEMS];
#pragma unroll
        for (int p = 0; p < PACKS; p++) place.load(place.index(tile, p), x[p]);
#pragma unroll
        for (int p = 0; p < PACKS; p++) {
            const auto join_elements = [&](State s) { return place.join_to(s, place.index(tile, p), x[p]); };
            if constexpr (Scan::ORDERED)
                total = Scan::join(total, join_block<Scan>(join_elements(Scan::begin()), of_warps));
            else
                total = join_elements(total);
        }
    }
    if constexpr (!Scan::ORDERED) total = join_block<Scan>(total, of_warps);
    if (threadIdx.x == 0) place.totals()[place.part] = total;
}

/* The joined totals of the parts before this one of its lane: each thread joins several, then all threads. */
template <class Scan>
DEVICE typename Scan::State carry_of(const typename Scan::State *totals, int64_t parts,
                                     typename Scan::State *of_warps) {
    using State = typename Scan::State;
    const int t = (int)threadIdx.x;
    const int64_t each = Scan::ORDERED ? (parts + NR_BLOCK - 1) / NR_BLOCK : 1, step = Scan::ORDERED ? 1 : NR_BLOCK;
    const int64_t end = Scan::ORDERED && (t + 1) * each < parts ? (t + 1) * each : parts;
    State state = Scan::begin();
#pragma unroll 4
    for (int64_t i = t * each; i < end; i += step) state = Scan::join(state, totals[i]);
    state = join_warp<Scan>(state);
    if (t % 32 == 0) of_warps[t / 32] = state;
    __syncthreads();
    State carry = of_warps[0];
    for (int w = 1; w < WARPS; w++) carry = Scan::join(carry, of_warps[w]);
    __syncthreads();
    return carry;
}

template <class Scan> __global__ void __launch_bounds__(NR_BLOCK, 3) scan_part(const scan_args a) {
    using State = typename Scan::State;
    using In = typename Scan::In;
    constexpr int PACKS = Scan::PACKS, TOTALS = PACKS * WARPS;
    static_assert(TOTALS <= 32, "a warp joins the totals of all");
    __shared__ __align__(16) unsigned char memory[(TOTALS + 1) * sizeof(State)];
    State *before = reinterpret_cast<State *>(memory); /* each warp's share of each pack; the last: all of the tile */
    const scan_place<Scan> place(a, gridDim.x - 1 - blockIdx.x);
    const int t = (int)threadIdx.x, lane = t % 32;
    State carry = Scan::begin();
    for (int64_t tile = place.first; tile < place.last; tile += place.TILE) {
        In x[PACKS][ITEMS];
        State left[PACKS]; /* of the threads of the warp before this one */
#pragma unroll
        for (int p = 0; p < PACKS; p++) place.load(place.index(tile, p), x[p]);
        if (tile == place.first && place.part > 0) carry = carry_of<Scan>(place.totals(), place.part, before);
#pragma unroll
        for (int p = 0; p < PACKS; p++) {
            const State joined = join_to_here<Scan>(place.join_to(Scan::begin(), place.index(tile, p), x[p]));
            left[p] = from_before(joined, 1);
            if (lane == 0) left[p] = Scan::begin();
            if (lane == 31) before[p * WARPS + t / 32] = joined;
        }
        __syncthreads();
        if (t < 32) { /* totals of warps become what comes before them */
            const State joined = join_to_here<Scan>(t < TOTALS ? before[t] : Scan::begin());
            const State run = from_before(joined, 1);
            if (t < TOTALS) before[t] = t == 0 ? carry : Scan::join(carry, run);
            if (t == 31) before[TOTALS] = Scan::join(carry, joined);
        }
        __syncthreads();
#pragma unroll
        for (int p = 0; p < PACKS; p++) {
            const int64_t i = place.index(tile, p);
            if (i >= place.last) continue;
            write_on<Scan>(a, a.out + place.at[0], Scan::join(before[p * WARPS + t / 32], left[p]), i, place.last,
                           x[p]);
        }
        carry = before[TOTALS];
        __syncthreads(); /* the next tile writes where this one is read */
    }
}

struct scan_kernels {
    void (*rows)(scan_args), (*wide_rows)(scan_args), (*column_totals)(scan_args), (*columns)(scan_args);
    void (*total)(scan_args), (*part)(scan_args);
    int32_t state_size, in_size, out_size, tile;
};

template <class Scan> static const scan_kernels *kernels_of() {
    static const scan_kernels all = {
        scan_rows<Scan, 1>,
        scan_rows<Scan, ITEMS>,
        scan_columns<Scan, false>,
        scan_columns<Scan, true>,
        total_of_part<Scan>,
        scan_part<Scan>,
        (int)sizeof(typename Scan::State),
        (int)sizeof(typename Scan::In),
        (int)sizeof(typename Scan::Out),
        scan_place<Scan>::TILE,
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
    if constexpr (is_same<T, int64_t>)
        return nullptr; /* logcumsumexp takes floats */
    else
        return kernels_of<exponential_scan<T>>();
}

/* Whether every group of ITEMS neighbours of operand o can be accessed at once, forward or backward. */
static bool is_wide(const nr_plan &lanes, int o, int64_t n, int64_t step, int64_t size) {
    const char *lowest = lanes.data[o] + (step < 0 ? (n - 1) * step : 0);
    bool aligned = (step == size || (step == -size && n % ITEMS == 0)) && is_aligned(lowest, ITEMS * size);
    for (int32_t d = 0; d < lanes.ndim; d++) aligned = aligned && lanes.stride[o][d] % (ITEMS * size) == 0;
    return aligned;
}

static int64_t ceiling(int64_t n, int64_t by) { return (n + by - 1) / by; }

/* The totals of parts, if there are several, and then the scan. */
static int32_t with_totals(const nr_call *call, const scan_kernels *kernels, scan_args &a, void (*total)(scan_args),
                           void (*scan)(scan_args), dim3 grid) {
    const nr_gpu *gpu = gpu_of(call);
    const scratch totals(gpu, a.parts > 1 ? (size_t)(a.lanes * a.parts * kernels->state_size) : 0);
    if (totals.failed()) return NORCH_ERROR_MEMORY;
    a.totals = totals.memory;
    if (a.totals) LAUNCH(total, grid, NR_BLOCK, 0, gpu->stream, a);
    LAUNCH(scan, grid, NR_BLOCK, 0, gpu->stream, a);
    return launched(call);
}

static int32_t run_rows(const nr_call *call, const scan_kernels *kernels, scan_args &a) {
    const bool wide = a.wide_in && a.wide_out;
    for (a.team = 1; a.team < 32 && a.team * (wide ? ITEMS : 1) < a.n;) a.team *= 2;
    return run_blocks(call, wide ? kernels->wide_rows : kernels->rows, blocks_for(a.lanes, NR_BLOCK / a.team), a);
}

#define ENOUGH 65536 /* threads that keep a device busy */

static int32_t run_columns(const nr_call *call, const scan_kernels *kernels, scan_args &a) {
    a.wide_in = false; /* neighbours of a lane lie apart */
    a.team =
        NR_BLOCK; /* a thread a lane; few lanes have strips of 16 or more elements, with 32 neighbours beside each */
    while (a.team > 32 && a.lanes * (NR_BLOCK / a.team) < ENOUGH && a.n * a.team >= 32 * NR_BLOCK) a.team /= 2;
    while (a.team > 1 && a.team / 2 >= a.lanes) a.team /= 2;
    const int64_t strips = NR_BLOCK / a.team, blocks = ceiling(a.lanes, a.team), most = a.n / (64 * strips);
    int64_t parts = strips == 1 ? 1 : 4 * ENOUGH / NR_BLOCK / blocks;
    parts = parts < MOST_COLUMN_PARTS ? parts : MOST_COLUMN_PARTS;
    parts = parts < most ? parts : most;
    a.strip_size = ceiling(a.n, (parts > 1 ? parts : 1) * strips);
    a.part_size = a.strip_size * strips;
    a.parts = (int32_t)ceiling(a.n, a.part_size);
    const dim3 grid((unsigned)blocks, (unsigned)a.parts);
    return with_totals(call, kernels, a, kernels->column_totals, kernels->columns, grid);
}

#define SHORT 256   /* elements of a row for a team, */
#define MEDIUM 1024 /* or of one of MANY rows */
#define MANY 2048

static int32_t run_part(const nr_call *call, const nr_plan &lanes) {
    const nr_scan_plan &plan = *static_cast<const nr_scan_plan *>(call->plan);
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
    a.wide_out = is_wide(lanes, 0, a.n, a.step[0], kernels->out_size);
    a.wide_in = is_wide(lanes, 1, a.n, a.step[1], kernels->in_size);
    if (a.lanes > 1 && lanes.stride[0][0] < (a.step[0] < 0 ? -a.step[0] : a.step[0]))
        return run_columns(call, kernels, a);
    if (a.n <= SHORT || (a.n <= MEDIUM && a.lanes >= MANY)) return run_rows(call, kernels, a);
    const int64_t tiles = ceiling(a.n, kernels->tile);
    const int64_t parts = tiles * a.lanes <= MOST_PARTS ? tiles : MOST_PARTS / a.lanes + 1;
    a.part_size = ceiling(tiles, parts) * kernels->tile;
    a.parts = (int32_t)ceiling(a.n, a.part_size);
    return with_totals(call, kernels, a, kernels->total, kernels->part, (unsigned)(a.lanes * a.parts));
}

int32_t nr_cuda_scan(const nr_call *call) {
    const nr_scan_plan &plan = *static_cast<const nr_scan_plan *>(call->plan);
    if (plan.n == 0 || plan.nest.numel == 0) return NORCH_OK;
    return in_parts(plan.nest, [&](const nr_plan &part) { return run_part(call, part); });
}
