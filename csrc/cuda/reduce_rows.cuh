/* reduce_rows: the REDUCE rows of ops.def as classes, and the order in which threads of a team combine the elements of
 * a row of one output: which the kernels of single reductions (reduce_dtype.cu) and of chains (chain_dtype.cu) share,
 * so that both give the same bits. Files that include this are compiled without contraction, as formulas.cuh says.
 *
 *   take        t0 t1 .. t7 | t0 t1 .. t7 | ...                 each team-th element, four to eight at once
 *   take_wide   t0 t0 t0 t0 t1 t1 t1 t1 .. | t0 t0 t0 t0 ...    neighbours in 16 bytes, four such runs at once
 *   step by step, in the order of take, where rows are narrow
 *   merge       t0 .. t31 --halves on halves, by shuffles--> a state a warp --shared memory--> one, of warps in order
 *
 * The states and their steps are those of the CPU (cpu/reduce_states.h, with their sources). */
#ifndef NR_CUDA_REDUCE_ROWS_H
#define NR_CUDA_REDUCE_ROWS_H

#include "math.cuh"
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
#define STATE(kind)                           \
    template <class D> struct state_##kind {  \
        using T = typename D::T;              \
        using ACC = typename D::A;            \
        using MASK = int32_t;                 \
        NR_FIELDS_##kind(VALUE, INDEX, INDEX) \
    };
STATE(ONE)
STATE(EXTREME)
STATE(TRUTH_STATE)
STATE(VALUE_INDEX)
STATE(SQUARES)
STATE(MOMENTS)
#undef VALUE
#undef INDEX

#define LEAST least_element<T>()
#define MOST largest_element<T>()
/* The dtype of a row's result; a result computed in D may be stored in the narrow dtype of the input. */
#define OUT_SAME D
#define OUT_FLOAT D
#define OUT_SUM typename choose<D::kind == NR_KIND_F, D, dtype_int64>::type
#define OUT_TRUTH dtype_bool
#define OUT_INDEX dtype_int64

#define VALUE_OF(finish)                                                       \
    static DEVICE typename Out::T value(const State &s, int64_t n, double p) { \
        (void)n, (void)p;                                                      \
        return (typename Out::T)(finish);                                      \
    }
#define REDUCE(name, domain, result, kind, identity, step_of, merge_of, finish) \
    template <class D> struct row_##name {                                      \
        using T = typename D::T;                                                \
        using ACC = typename D::A;                                              \
        using State = state_##kind<D>;                                          \
        using Out = OUT_##result;                                               \
        static DEVICE State begin() {                                           \
            const T x = 0;                                                      \
            State s = {};                                                       \
            (void)x;                                                            \
            identity;                                                           \
            return s;                                                           \
        }                                                                       \
        template <class S, class I> static DEVICE void step(S &s, T x, I i) {   \
            (void)i;                                                            \
            if constexpr (is_same<State, state_MOMENTS<D>>)                     \
                if (s.n++ == 0) s.origin = x;                                   \
            step_of;                                                            \
        }                                                                       \
        static DEVICE void merge(State &s, const State &t) { merge_of; }        \
        VALUE_OF(finish)                                                        \
    };
#define FINISH(name, domain, result, of, finish)         \
    template <class D> struct row_##name : row_##of<D> { \
        using T = typename D::T;                         \
        using ACC = typename D::A;                       \
        using State = typename row_##of<D>::State;       \
        using Out = OUT_##result;                        \
        VALUE_OF(finish)                                 \
    };
#include "../ops.def"

/* ---- means and norms whose plain sums overflow or underflow: a second, scaled sum -------------------------------- */

#define NR_SCALE 0x1p+600

/* The sum times 2^-64 is finite if the elements are; if it loses digits, the plain sum does not overflow. */
template <class D> struct scaled_mean {
    using T = typename D::T;
    using ACC = typename D::A;
    struct State {
        ACC sum, scaled;
    };
    using Out = D;
    static DEVICE State begin() { return {0, 0}; }
    template <class S, class I> static DEVICE void step(S &s, T x, I) {
        s.sum += x;
        s.scaled = NR_FMA((ACC)x, (ACC)NR_SUM_SCALE, s.scaled);
    }
    static DEVICE void merge(State &s, const State &t) {
        s.sum += t.sum;
        s.scaled += t.scaled;
    }
    static DEVICE T value(const State &s, int64_t n, double) {
        return s.sum - s.sum == 0 ? s.sum / (ACC)n : s.scaled / (ACC)n * (ACC)NR_SUM_BACK;
    }
};
template <> struct row_mean<dtype_float32> : scaled_mean<dtype_float32> {};
template <> struct row_mean<dtype_float64> : scaled_mean<dtype_float64> {};

/* Squares of small, of ordinary and of large elements: Blue, "A Portable Fortran Program to Find the Euclidean Norm of
 * a Vector" (1978), but each of all elements. */
template <> struct row_norm<dtype_float64> {
    struct State {
        double small, squares, large;
    };
    using Out = dtype_float64;
    static DEVICE State begin() { return {0, 0, 0}; }
    template <class S, class I> static DEVICE void step(S &s, double x, I) {
        const double up = x * NR_SCALE, down = x * (1 / NR_SCALE);
        s.small = NR_FMA(up, up, s.small);
        s.squares = NR_FMA(x, x, s.squares);
        s.large = NR_FMA(down, down, s.large);
    }
    static DEVICE void merge(State &s, const State &t) {
        s.small += t.small;
        s.squares += t.squares;
        s.large += t.large;
    }
    static DEVICE double value(const State &s, int64_t, double) {
        if (s.squares < 1e-280) return sqrt(s.small) * (1 / NR_SCALE);
        return s.squares < 1e+300 ? sqrt(s.squares) : sqrt(s.large) * NR_SCALE;
    }
};

/* A number of elements of one output at once, of which number k has the index at(k). A VALUE_INDEX counts them in 32
 * bits. */
template <class Row, class D, int n, class Index>
DEVICE void steps(typename Row::State &s, const typename D::T (&x)[n], const Index &at) {
    using T = typename D::T;
    if constexpr (is_same<typename Row::State, state_VALUE_INDEX<D>>) {
        struct {
            T v;
            int32_t i;
        } local = {x[0], -1};
#pragma unroll
        for (int k = 0; k < n; k++) Row::step(local, x[k], k);
        const typename Row::State best = {local.v, at(local.i)};
        Row::merge(s, best);
    } else {
#pragma unroll
        for (int k = 0; k < n; k++) Row::step(s, x[k], at(k));
    }
}

/* Elements that one access takes. */
template <class D> constexpr int width_of = sizeof(typename D::S) >= 8 ? 2 : sizeof(typename D::S) == 4 ? 4 : 8;

/* ---- the elements of a row, by a team of threads ----------------------------------------------------------------- */

/* The positions of the elements of a row. */
template <class D> struct row_in_memory {
    using T = typename D::T;
    const char *in;
    int64_t stride; /* bytes */
    int32_t number; /* the dtype in memory */

    DEVICE T one(int64_t i) const { return load_one<D>(number, in + i * stride); }
    template <int n> DEVICE void spread(T *to, int64_t i, int64_t apart) const {
        const char *x = in + i * stride;
#pragma unroll
        for (int k = 0; k < n; k++) to[k] = load_one<D>(number, x + k * (stride * apart));
    }
    template <int n> DEVICE void neighbours(T *to, int64_t i) const {
        load<D, n>(to, number, {in, 0, 1}, i, i + n, true);
    }
};

/* Elements from `first` to `last`, each `team`-th of them. */
template <class Row, class D, class From>
DEVICE void take(typename Row::State &s, const From &from, int64_t first, int64_t last, int64_t team) {
    constexpr int n = sizeof(typename D::S) == 8 ? 4 : 8; /* loads under way at once */
    int64_t i = first;
    for (; i + (n - 1) * team < last; i += n * team) {
        typename D::T e[n];
        from.template spread<n>(e, i, team);
        steps<Row, D>(s, e, [&](int k) { return i + k * team; });
    }
    for (; i < last; i += team) Row::step(s, from.one(i), i);
}

/* Dense elements, up to 16 bytes an access. */
template <class Row, class D, class From>
DEVICE void take_wide(typename Row::State &s, const From &from, int64_t first, int64_t last, int64_t member,
                      int64_t team) {
    constexpr int n = width_of<D>;
    const int64_t jump = team * n;
    int64_t i = first + member * n;
    for (; i + 3 * jump + n <= last; i += 4 * jump) { /* four loads under way at once */
        typename D::T e[4 * n];
#pragma unroll
        for (int u = 0; u < 4; u++) from.template neighbours<n>(e + u * n, i + u * jump);
        steps<Row, D>(s, e, [&](int k) { return i + k / n * jump + k % n; });
    }
    for (; i + n <= last; i += jump) {
        typename D::T e[n];
        from.template neighbours<n>(e, i);
        steps<Row, D>(s, e, [&](int k) { return i + k; });
    }
    for (; i < last; i++) Row::step(s, from.one(i), i);
}

/* Whether the elements of a row are taken by take_wide; the row begins at `in`, whose address thus decides the
 * bits of a float sum (NR_ALIGNMENT). */
template <class D> DEVICE bool is_wide(const char *in, int64_t stride) {
    return reinterpret_cast<uintptr_t>(in) % (uintptr_t)(stride * width_of<D>) == 0;
}

/* The state of the lane that is `by` lanes further in the warp. */
template <class State> DEVICE State state_of_lane(const State &s, int by) {
    uint32_t words[(sizeof(State) + 3) / 4] = {};
    memcpy(words, &s, sizeof s);
    for (uint32_t &word : words) word = __shfl_down_sync(0xffffffffu, word, by);
    State other;
    memcpy(&other, words, sizeof other);
    return other;
}

/* The states of a team of neighbouring threads, merged in an order that depends on their number alone; the first thread
 * gets the result. */
template <class Row> DEVICE void merge_neighbours(typename Row::State &s, typename Row::State *of_warps, int team) {
    for (int half = (team < 32 ? team : 32) / 2; half > 0; half /= 2) Row::merge(s, state_of_lane(s, half));
    if (team <= 32) return;
    const int warp = (int)threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) of_warps[warp] = s;
    __syncthreads();
    if ((int)threadIdx.x % team == 0)
        for (int w = 1; w < team / 32; w++) Row::merge(s, of_warps[warp + w]);
}

#endif
