/* scan: running sums, products and extremes. Where lanes (positions of the other axes) are many and neighbours, a thread
 * goes along each; else a block goes along a part of one, tile by tile, its threads combining their shares in shared
 * memory (Hillis, Steele, CACM 29, 1986), and parts learn from the parts before them: the totals of all parts first,
 * then their running totals, then the elements (Blelloch, "Prefix Sums and Their Applications", 1990).
 *
 *   lane    [ part 0: tile | tile ][ part 1: tile | tile ][ part 2 ]    1. a block a part: only its total
 *   totals    a                      a + b                  a + b + c    2. a thread a lane: running totals
 *   tile    [ t0: x x x x | t1: x x x x | ...                      ]    3. a block a part: each thread ITEMS neighbours
 *             then t joins t - 1, t - 2, t - 4, ...                         by itself, shared memory, the carry before it
 *
 * How a lane is cut follows from the shape alone. float sums run in double, as on the CPU. */
#include "../families/scan.h"
#include "cuda.cuh"

#define ITEMS 4 /* neighbours that a thread combines by itself */
#define TILE (NR_BLOCK * ITEMS)

struct scan_args {
    char *out;
    const char *in;
    char *totals; /* [lane][part] */
    int64_t lanes, n, part_size, step[2];
    int32_t parts;
    nest<2> where;
};

/* ---- what runs: a state, and how a later one joins it ------------------------------------------------------------ */

template <class T> struct sum_scan {
    using In = T;
    using Out = T;
    using State = typename choose<is_same<T, int64_t>, int64_t, double>::type;
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
    static DEVICE State begin() { return {T(), -1}; }
    static DEVICE State of(T x, int64_t index) { return {x, index}; }
    static DEVICE State join(State a, State b) {
        if (a.index < 0 || b.index < 0) return b.index < 0 ? a : b;
        bool take = b.value != b.value || (sign > 0 ? b.value >= a.value : b.value <= a.value);
        return take ? b : a;
    }
    static DEVICE Out value(State s) { return s.index; }
};

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

/* A part of a lane: its total only, or every element, from the total of the parts before it. */
template <class Scan, bool only_total> __global__ void __launch_bounds__(NR_BLOCK) scan_part(const scan_args a) {
    using State = typename Scan::State;
    __shared__ __align__(16) unsigned char memory[2][NR_BLOCK * sizeof(State)];
    State *now = reinterpret_cast<State *>(memory[0]), *next = reinterpret_cast<State *>(memory[1]);
    const int t = (int)threadIdx.x;
    const int64_t lane = blockIdx.x / (unsigned)a.parts, part = blockIdx.x % (unsigned)a.parts;
    int64_t at[2], first = part * a.part_size, last = first + a.part_size;
    if (last > a.n) last = a.n;
    a.where.find((uint32_t)lane, at);
    State *totals = reinterpret_cast<State *>(a.totals) + lane * a.parts;
    State carry = !only_total && part > 0 ? totals[part - 1] : Scan::begin();
    for (int64_t tile = first; tile < last; tile += TILE) {
        State own[ITEMS];
        for (int k = 0; k < ITEMS; k++) {
            int64_t i = tile + t * ITEMS + k;
            own[k] = i < last ? Scan::of(*reinterpret_cast<const typename Scan::In *>(a.in + at[1] + i * a.step[1]), i)
                              : Scan::begin();
            if (k > 0) own[k] = Scan::join(own[k - 1], own[k]);
        }
        now[t] = own[ITEMS - 1];
        __syncthreads();
        for (int distance = 1; distance < NR_BLOCK; distance *= 2) {
            next[t] = t >= distance ? Scan::join(now[t - distance], now[t]) : now[t];
            __syncthreads();
            State *swap = now;
            now = next;
            next = swap;
        }
        if (!only_total) {
            State before = t > 0 ? Scan::join(carry, now[t - 1]) : carry;
            for (int k = 0; k < ITEMS; k++) {
                int64_t i = tile + t * ITEMS + k;
                if (i < last)
                    *reinterpret_cast<typename Scan::Out *>(a.out + at[0] + i * a.step[0]) =
                        Scan::value(Scan::join(before, own[k]));
            }
        }
        carry = Scan::join(carry, now[NR_BLOCK - 1]);
        __syncthreads(); /* the next tile writes where this one is read */
    }
    if (only_total && t == 0) totals[part] = carry;
}

/* The running totals of each lane's parts. */
template <class Scan> __global__ void __launch_bounds__(NR_BLOCK) scan_totals(const scan_args a) {
    int64_t lane = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (lane >= a.lanes) return;
    typename Scan::State *totals = reinterpret_cast<typename Scan::State *>(a.totals) + lane * a.parts;
    for (int part = 1; part < a.parts; part++) totals[part] = Scan::join(totals[part - 1], totals[part]);
}

struct scan_kernels {
    void (*lanes)(scan_args), (*total)(scan_args), (*totals)(scan_args), (*part)(scan_args);
    int32_t state_size;
};

template <class Scan> static const scan_kernels *kernels_of() {
    static const scan_kernels all = {scan_lanes<Scan>, scan_part<Scan, true>, scan_totals<Scan>, scan_part<Scan, false>,
                                     (int)sizeof(typename Scan::State)};
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
    int64_t parts = 1024 / a.lanes;
    if (parts > a.n / (4 * TILE)) parts = a.n / (4 * TILE);
    if (parts < 1) parts = 1;
    a.part_size = ((a.n + parts - 1) / parts + TILE - 1) / TILE * TILE;
    a.parts = (int32_t)((a.n + a.part_size - 1) / a.part_size);
    size_t bytes = (size_t)(a.lanes * a.parts * kernels->state_size);
    cudaError_t error = cudaSuccess;
    if (a.parts > 1) {
        a.totals = static_cast<char *>(nr_cuda_scratch(gpu, bytes));
        if (!a.totals) return NORCH_ERROR_MEMORY;
        LAUNCH(kernels->total, (unsigned)(a.lanes * a.parts), NR_BLOCK, 0, gpu->stream, a);
        LAUNCH(kernels->totals, blocks_for(a.lanes, NR_BLOCK), NR_BLOCK, 0, gpu->stream, a);
        error = cudaGetLastError();
    }
    if (error == cudaSuccess) {
        LAUNCH(kernels->part, (unsigned)(a.lanes * a.parts), NR_BLOCK, 0, gpu->stream, a);
        error = cudaGetLastError();
    }
    if (a.totals) nr_cuda_scratch_free(gpu, a.totals, bytes);
    TRY(nr_call_name(call), error);
    return NORCH_OK;
}

int32_t nr_cuda_scan(const nr_call *call) {
    const nr_scan_plan &plan = *static_cast<const nr_scan_plan *>(call->plan);
    if (plan.n == 0 || plan.nest.numel == 0) return NORCH_OK;
    return in_parts(plan.nest, [&](const nr_plan &part) { return run_part(call, part); });
}
