/* reduce_dtype: every REDUCE row of ops.def over one dtype; compiled once a dtype. The order in which elements are
 * combined follows from shape and layout (strides, and whether rows begin where one access takes 16 bytes), so results
 * do not depend on chance.
 *
 *   a thread's elements --steps--> its state, in registers     four to eight loads under way at once
 *   along     t0 .. t31 --merge, halves on halves, by shuffles--> a state a warp --shared memory--> one, warps in order
 *   across    members of a team, apart in the block --merge, halves on halves, in shared memory--> one
 *   columns   the same, a thread with as many neighbouring outputs as 16 bytes hold
 *   narrow    short rows, side by side: memory --16 bytes a thread--> shared memory --a row or part a thread--> state
 *   reduce.cu has the picture of what each thread takes, reduce_rows.cuh the order in rows */
#include "reduce.cuh"
#include "reduce_rows.cuh"

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* The elements of one output over several dimensions from `first` to `last`, each `team`-th of them. */
template <class Row, class D>
DEVICE void take_nest(typename Row::State &s, const reduce_args &a, const char *in, int64_t first, int64_t last,
                      int64_t team) {
    for (int64_t i = first; i < last; i += team) {
        int64_t at;
        a.reduced.find((uint32_t)i, &at);
        Row::step(s, load_one<D>(a.number, in + at), i);
    }
}

/* The same of `team` threads that are `distance` apart, each with the states of n outputs; states: n a thread. */
template <class Row, int n>
DEVICE void merge_apart(typename Row::State (&s)[n], typename Row::State *states, int team, int distance) {
    typename Row::State *mine = states + threadIdx.x;
    const int member = (int)threadIdx.x / distance;
    for (int half = team / 2; half > 0; half /= 2) {
        if (member < 2 * half)
            for (int k = 0; k < n; k++) mine[k * NR_BLOCK] = s[k];
        __syncthreads();
        if (member < half)
            for (int k = 0; k < n; k++) Row::merge(s[k], mine[k * NR_BLOCK + half * distance]);
    }
}

/* Writes the result of a part of output `output`, or of all of it. */
template <class Row> DEVICE void finish(const reduce_args &a, const typename Row::State &s, int64_t output, char *out) {
    if (a.partials)
        reinterpret_cast<typename Row::State *>(a.partials)[(int64_t)blockIdx.y * a.outputs + output] = s;
    else
        store_one<typename Row::Out>(a.out_number, out, Row::value(s, a.count, a.param));
}

template <template <class> class RowOf, class D>
__global__ void __launch_bounds__(NR_BLOCK, 4) reduce(const reduce_args a) {
    using Row = RowOf<D>;
    using State = typename Row::State;
    DYNAMIC_SHARED(State, states);
    TELL_SHARED(NR_BLOCK * sizeof(State));
    const int team = a.team, outputs = NR_BLOCK / team, t = threadIdx.x;
    const int member = a.across ? t / outputs : t % team, local_output = a.across ? t % outputs : t / team;
    const int64_t output = (int64_t)blockIdx.x * outputs + local_output;
    State s[1] = {Row::begin()};
    int64_t at[2] = {0, 0};
    if (output < a.outputs) {
        a.kept.find((uint32_t)output, at);
        int64_t first = (int64_t)blockIdx.y * a.part_size, last = first + a.part_size;
        if (last > a.count) last = a.count;
        const char *in = a.in + at[1];
        const row_in_memory<D> row = {in, a.reduced.stride[0][0], a.number};
        if (!a.row)
            take_nest<Row, D>(s[0], a, in, first + member, last, team);
        else if (a.dense && is_wide<D>(in, row.stride))
            take_wide<Row, D>(s[0], row, first, last, member, team);
        else
            take<Row, D>(s[0], row, first + member, last, team);
    }
    if (a.across)
        merge_apart<Row>(s, states, team, outputs);
    else
        merge_neighbours<Row>(s[0], states, team);
    if (member == 0 && output < a.outputs) finish<Row>(a, s[0], output, a.out + at[0]);
}

/* Outputs whose elements are neighbours: each thread takes as many as one access reads. */
template <template <class> class RowOf, class D>
__global__ void __launch_bounds__(NR_BLOCK, 4) columns(const reduce_args a) {
    using Row = RowOf<D>;
    using State = typename Row::State;
    DYNAMIC_SHARED(State, states);
    constexpr int n = width_of<D>;
    constexpr int rows = sizeof(typename D::S) == 8 || sizeof(State) > 8 ? 4 : 8; /* loads under way at once */
    const int team = a.team, packs = NR_BLOCK / team, member = (int)threadIdx.x / packs;
    const int64_t pack = (int64_t)blockIdx.x * packs + (int)threadIdx.x % packs;
    State s[n];
    for (State &one : s) one = Row::begin();
    int64_t at[2] = {0, 0};
    if (pack * n < a.outputs) {
        a.kept.find((uint32_t)pack, at);
        int64_t i = (int64_t)blockIdx.y * a.part_size, last = i + a.part_size;
        if (last > a.count) last = a.count;
        const int64_t stride = a.reduced.stride[0][0], jump = stride * team;
        i += member;
        const char *x = a.in + at[1] + i * stride;
        for (; i + (rows - 1) * team < last; i += rows * team, x += rows * jump) {
            typename D::T e[rows][n];
#pragma unroll
            for (int r = 0; r < rows; r++) load<D, n>(e[r], a.number, {x + r * jump, 0, 1}, 0, n, true);
#pragma unroll
            for (int k = 0; k < n; k++) {
                typename D::T column[rows];
#pragma unroll
                for (int r = 0; r < rows; r++) column[r] = e[r][k];
                steps<Row, D>(s[k], column, [&](int r) { return i + r * team; });
            }
        }
        for (; i < last; i += team, x += jump) {
            typename D::T e[n];
            load<D, n>(e, a.number, {x, 0, 1}, 0, n, true);
#pragma unroll
            for (int k = 0; k < n; k++) Row::step(s[k], e[k], i);
        }
    }
    merge_apart<Row>(s, states, team, packs);
    if (member != 0 || pack * n >= a.outputs) return;
#pragma unroll
    for (int k = 0; k < n; k++) finish<Row>(a, s[k], pack * n + k, a.out + at[0] + k * a.out_step);
}

/* Rows of at most NARROW elements, one after another in memory: a block brings its rows into shared memory, pitch
 * elements apart, so that the threads of a warp find theirs in different banks. */
template <template <class> class RowOf, class D>
__global__ void __launch_bounds__(NR_BLOCK, 4) narrow_rows(const reduce_args a) {
    using Row = RowOf<D>;
    const int team = a.team, outputs = NR_BLOCK / team, member = (int)threadIdx.x % team,
              local_output = (int)threadIdx.x / team;
    const int64_t first = (int64_t)blockIdx.x * outputs, output = first + local_output;
    const int count = (int)a.count;
    const int64_t left = (a.outputs - first) * count; /* elements from the first of this block on */
    const int here = left < (int64_t)outputs * count ? (int)left : outputs * count;
    typename Row::State s = Row::begin();
    with_stored<D>(a.number, [&](auto stored) {
        using Stored = decltype(stored);
        using S = typename Stored::S;
        constexpr int n = 16 / sizeof(S);
        DYNAMIC_SHARED(S, rows);
        const S *in = reinterpret_cast<const S *>(a.in) + first * count;
        for (int i = (int)threadIdx.x * n; i < here; i += NR_BLOCK * n) {
            int row = (int)quotient((uint32_t)i, a.reduced.size[0]), column = i - row * count;
            pack<S, n> all = {};
            if (i + n <= here)
                all = *reinterpret_cast<const pack<S, n> *>(in + i);
            else
#pragma unroll
                for (int k = 0; k < n; k++)
                    if (i + k < here) all.v[k] = in[i + k];
#pragma unroll
            for (int k = 0; k < n; k++) {
                if (i + k < here) rows[row * a.pitch + column] = all.v[k];
                if (++column == count) column = 0, row++;
            }
        }
        __syncthreads();
        if (output < a.outputs)
            for (int i = member; i < count; i += team) Row::step(s, widen<Stored>(rows[local_output * a.pitch + i]), i);
    });
    merge_neighbours<Row>(s, nullptr, team);
    if (member != 0 || output >= a.outputs) return;
    int64_t at[2];
    a.kept.find((uint32_t)output, at);
    finish<Row>(a, s, output, a.out + at[0]);
}

/* The parts of each output; a team takes them in turns. */
template <template <class> class RowOf, class D>
__global__ void __launch_bounds__(NR_BLOCK, 2) merge(const reduce_args a) {
    using Row = RowOf<D>;
    using State = typename Row::State;
    DYNAMIC_SHARED(State, states);
    TELL_SHARED(NR_BLOCK * sizeof(State));
    const int outputs = NR_BLOCK / a.team, member = (int)threadIdx.x / outputs;
    const int64_t output = (int64_t)blockIdx.x * outputs + (int)threadIdx.x % outputs;
    const State *all = reinterpret_cast<const State *>(a.partials) + output;
    State s[1] = {Row::begin()};
    if (output < a.outputs)
#pragma unroll 4
        for (int part = member; part < a.parts; part += a.team) Row::merge(s[0], all[(int64_t)part * a.outputs]);
    merge_apart<Row>(s, states, a.team, outputs);
    if (member != 0 || output >= a.outputs) return;
    int64_t at[2];
    a.kept.find((uint32_t)output, at);
    store_one<typename Row::Out>(a.out_number, a.out + at[0], Row::value(s[0], a.count, a.param));
}

template <template <class> class Row, class D, int domain> static void enter(nr_kernel_rows kernels, int op) {
    if constexpr ((domain & D::kind) != 0) {
        static const reduce_kernel entry = {
            reduce<Row, D>, columns<Row, D>, narrow_rows<Row, D>, merge<Row, D>, (int)sizeof(typename Row<D>::State),
            width_of<D>};
        kernels[op][D::code] = reinterpret_cast<nr_kernel>(reinterpret_cast<uintptr_t>(&entry));
    }
}

void NR_JOIN2(nr_fill_reduce, NR_DTYPE_NAME)(nr_kernel_rows kernels) {
    using D = NR_JOIN2(dtype, NR_DTYPE_NAME);
#define REDUCE(name, domain, ...) enter<row_##name, D, NR_DOMAIN_##domain>(kernels, NR_OP_##name);
#define FINISH REDUCE
#include "../ops.def"
}
