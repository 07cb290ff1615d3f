/* reduce_dtype: every REDUCE row of ops.def over one dtype; compiled once a dtype. The order in which elements are
 * combined follows from shape and layout (strides, and whether rows begin where one access takes 16 bytes), so results
 * do not depend on chance.
 *
 *   a thread's elements --step--> its state, in registers      four to eight loads under way at once
 *   along     t0 .. t31 --merge, halves on halves, by shuffles--> a state a warp --shared memory--> one, of warps in order
 *   across    members of a team, apart in the block --merge, halves on halves, in shared memory--> one
 *   reduce.cu has the picture of what each thread takes
 *
 * The states and their steps are those of the CPU (cpu/reduce_states.h, with their sources). */
#include "math.cuh"
#include "reduce.cuh"
#include "../cpu/reduce_states.h"

/* ---- a class a row: the state, how it begins, takes an element, merges with another, and what it gives -------- */

template <class T> DEVICE T least_element() {
    if constexpr (is_floating<T>)
        return -(T)INFINITY;
    else
        return T(-1) < T(1) ? (T)((uint64_t)1 << (8 * sizeof(T) - 1)) : T(0);
}
template <class T> DEVICE T largest_element() {
    if constexpr (is_floating<T>)
        return (T)INFINITY;
    else
        return (T) ~(int64_t)least_element<T>();
}

#define VALUE(type, name) type name;
#define INDEX(name) int64_t name;
#define STATE(kind)                          \
    template <class D> struct state_##kind { \
        using T = typename D::T;             \
        using ACC = typename D::A;           \
        using MASK = int32_t;                \
        NR_FIELDS_##kind(VALUE, INDEX)       \
    };
STATE(ONE)
STATE(EXTREME)
STATE(TRUTH_STATE)
STATE(VALUE_INDEX)
STATE(MOMENTS)
#undef VALUE
#undef INDEX

#define LEAST least_element<T>()
#define MOST largest_element<T>()
/* The dtype of what a row writes; one that is computed with D may be stored as narrow as the input is. */
#define OUT_SAME D
#define OUT_FLOAT D
#define OUT_SUM typename choose<D::kind == NR_KIND_F, D, dtype_int64>::type
#define OUT_TRUTH dtype_bool
#define OUT_INDEX dtype_int64

#define REDUCE(name, domain, result, kind, identity, step_of, merge_of, finish)    \
    template <class D> struct row_##name {                                         \
        using T = typename D::T;                                                   \
        using ACC = typename D::A;                                                 \
        using State = state_##kind<D>;                                             \
        using Out = OUT_##result;                                                  \
        static DEVICE State begin() {                                              \
            State s = {};                                                          \
            identity;                                                              \
            return s;                                                              \
        }                                                                          \
        static DEVICE void step(State &s, T x, int64_t i) {                        \
            (void)i;                                                               \
            step_of;                                                               \
        }                                                                          \
        static DEVICE void merge(State &s, const State &t) { merge_of; }           \
        static DEVICE typename Out::T value(const State &s, int64_t n, double p) { \
            (void)n, (void)p;                                                      \
            return (typename Out::T)(finish);                                      \
        }                                                                          \
    };
#include "../ops.def"

/* Elements that one access takes. */
template <class D> constexpr int width_of = sizeof(typename D::S) >= 8 ? 2 : sizeof(typename D::S) == 4 ? 4 : 8;

/* ---- kernels -------------------------------------------------------------------------------------------------------- */

/* The elements of one output from `first` to `last`, each `team`-th of them. */
template <class Row, class D>
DEVICE void take(typename Row::State &s, const reduce_args &a, const char *in, int64_t first, int64_t last,
                 int64_t team) {
    constexpr int n = sizeof(typename D::S) == 8 ? 4 : 8; /* loads under way at once */
    int64_t i = first;
    if (a.row) {
        const int64_t stride = a.reduced.stride[0][0], jump = stride * team;
        const char *x = in + first * stride;
        for (; i + (n - 1) * team < last; i += n * team, x += n * jump) {
            typename D::T e[n];
#pragma unroll
            for (int k = 0; k < n; k++) e[k] = load_one<D>(a.number, x + k * jump);
#pragma unroll
            for (int k = 0; k < n; k++) Row::step(s, e[k], i + k * team);
        }
        for (; i < last; i += team, x += jump) Row::step(s, load_one<D>(a.number, x), i);
        return;
    }
    for (; i < last; i += team) {
        int64_t at;
        a.reduced.find((uint32_t)i, &at);
        Row::step(s, load_one<D>(a.number, in + at), i);
    }
}

/* Dense elements, up to 16 bytes an access. */
template <class Row, class D>
DEVICE void take_wide(typename Row::State &s, const reduce_args &a, const char *in, int64_t first, int64_t last,
                      int64_t member, int64_t team) {
    constexpr int n = width_of<D>;
    operand x = {in, 0, 1};
    typename D::T e[n];
    const int64_t jump = team * n;
    int64_t i = first + member * n;
    for (; i + 3 * jump + n <= last; i += 4 * jump) { /* four loads under way at once */
        typename D::T more[4][n];
#pragma unroll
        for (int u = 0; u < 4; u++) load<D, n>(more[u], a.number, x, i + u * jump, last, true);
#pragma unroll
        for (int u = 0; u < 4; u++)
            for (int k = 0; k < n; k++) Row::step(s, more[u][k], i + u * jump + k);
    }
    for (; i + n <= last; i += jump) {
        load<D, n>(e, a.number, x, i, last, true);
        for (int k = 0; k < n; k++) Row::step(s, e[k], i + k);
    }
    for (; i < last; i++) Row::step(s, load_one<D>(a.number, in + i * a.reduced.stride[0][0]), i);
}

/* The state of the lane that is `by` further on in the warp. */
template <class State> DEVICE State state_of_lane(const State &s, int by) {
    uint32_t words[(sizeof(State) + 3) / 4] = {};
    memcpy(words, &s, sizeof s);
    for (uint32_t &word : words) word = __shfl_down_sync(0xffffffffu, word, by);
    State other;
    memcpy(&other, words, sizeof other);
    return other;
}

/* What a team of neighbouring threads has, merged in an order that their number alone tells; its first thread gets it. */
template <class Row> DEVICE void merge_neighbours(typename Row::State &s, typename Row::State *of_warps, int team) {
    for (int half = (team < 32 ? team : 32) / 2; half > 0; half /= 2) Row::merge(s, state_of_lane(s, half));
    if (team <= 32) return;
    const int warp = (int)threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) of_warps[warp] = s;
    __syncthreads();
    if ((int)threadIdx.x % team == 0)
        for (int w = 1; w < team / 32; w++) Row::merge(s, of_warps[warp + w]);
}

/* The same of `team` threads that are `distance` apart. */
template <class Row>
DEVICE void merge_apart(typename Row::State &s, typename Row::State *states, int team, int distance) {
    typename Row::State *mine = states + threadIdx.x;
    const int member = (int)threadIdx.x / distance;
    for (int half = team / 2; half > 0; half /= 2) {
        *mine = s;
        __syncthreads();
        if (member < half) Row::merge(s, mine[half * distance]);
        __syncthreads();
    }
}

template <template <class> class RowOf, class D>
__global__ void __launch_bounds__(NR_BLOCK, 4) reduce(const reduce_args a) {
    using Row = RowOf<D>;
    using State = typename Row::State;
    DYNAMIC_SHARED(State, states);
    TELL_SHARED(NR_BLOCK * sizeof(State));
    const int team = a.team, outputs = NR_BLOCK / team, t = threadIdx.x;
    const int member = a.across ? t / outputs : t % team, own = a.across ? t % outputs : t / team;
    const int64_t output = (int64_t)blockIdx.x * outputs + own;
    State s = Row::begin();
    int64_t at[2] = {0, 0};
    if (output < a.outputs) {
        a.kept.find((uint32_t)output, at);
        int64_t first = (int64_t)blockIdx.y * a.part_size, last = first + a.part_size;
        if (last > a.count) last = a.count;
        const char *in = a.in + at[1];
        if (a.dense && reinterpret_cast<uintptr_t>(in) % (uintptr_t)(a.reduced.stride[0][0] * width_of<D>) == 0)
            take_wide<Row, D>(s, a, in, first, last, member, team);
        else
            take<Row, D>(s, a, in, first + member, last, team);
    }
    if (a.across)
        merge_apart<Row>(s, states, team, outputs);
    else
        merge_neighbours<Row>(s, states, team);
    if (member != 0 || output >= a.outputs) return;
    if (a.partials)
        reinterpret_cast<State *>(a.partials)[(int64_t)blockIdx.y * a.outputs + output] = s;
    else
        store_one<typename Row::Out>(a.out_number, a.out + at[0], Row::value(s, a.count, a.param));
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
    State s = Row::begin();
    if (output < a.outputs)
#pragma unroll 4
        for (int part = member; part < a.parts; part += a.team) Row::merge(s, all[(int64_t)part * a.outputs]);
    merge_apart<Row>(s, states, a.team, outputs);
    if (member != 0 || output >= a.outputs) return;
    int64_t at[2];
    a.kept.find((uint32_t)output, at);
    store_one<typename Row::Out>(a.out_number, a.out + at[0], Row::value(s, a.count, a.param));
}

template <template <class> class Row, class D, int domain> static void enter(nr_kernel_rows kernels, int op) {
    if constexpr ((domain & D::kind) != 0) {
        static const reduce_kernel entry = {reduce<Row, D>, merge<Row, D>, (int)sizeof(typename Row<D>::State)};
        kernels[op][D::code] = reinterpret_cast<nr_kernel>(reinterpret_cast<uintptr_t>(&entry));
    }
}

void NR_JOIN2(nr_fill_reduce, NR_DTYPE_NAME)(nr_kernel_rows kernels) {
    using D = NR_JOIN2(dtype, NR_DTYPE_NAME);
#define REDUCE(name, domain, result, kind, identity, step, merge, finish) \
    enter<row_##name, D, NR_DOMAIN_##domain>(kernels, NR_OP_##name);
#include "../ops.def"
}
