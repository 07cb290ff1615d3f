/* rows: what softmax and normalize share: rows of n contiguous elements, each processed by a team of
 * threads, which hold it in registers if it fits, 16 bytes an access if its address allows that, and join their results
 * in a fixed order.
 *
 *   wide    [ t0 t0 t0 t0 | t1 t1 t1 t1 | ... of all the team ][ t0 t0 t0 t0 | ...      pack 0 of each, then pack 1
 *   else    [ t0 t1 t2 .. ][ t0 t1 t2 .. ][ ... ][ ...        ][ t0 t1 t2 .. ][ ...     W rounds make a pack
 *   meet    halves of a warp by shuffles, until all lanes have the result; then warps, in order, in shared memory
 *
 * Shuffles in a warp, then shared memory: Luitjens, "Faster Parallel Reductions on Kepler" (NVIDIA, 2014). */
#ifndef NR_CUDA_ROWS_H
#define NR_CUDA_ROWS_H

#include "cuda.cuh"

#define NR_WARPS (NR_BLOCK / 32)

/* Two blocks on a multiprocessor at least: of doubles and narrow elements the compiler spills some to have more, where
 * nothing is said (0). */
#define NR_ROW_BOUNDS(E) __launch_bounds__(NR_BLOCK, sizeof(E) == 4 ? 0 : 2)

/* An element of a narrow dtype in memory. The elements of rows are one of these, float or double; computed<E> is the
 * type in which they are computed. */
template <class D> struct stored {
    typename D::S bits;
    DEVICE operator typename D::T() const { return widen<D>(bits); }
    DEVICE stored &operator=(typename D::T x) {
        bits = narrow<D>(x);
        return *this;
    }
};
template <class E> struct computed_of {
    using type = E;
};
template <class D> struct computed_of<stored<D>> {
    using type = typename D::T;
};
template <class E> using computed = typename computed_of<E>::type;

/* The position of a thread: `member` of `team` (a power of 2) that share a row of n elements. */
struct line {
    int64_t n;
    int32_t member, team;
    bool wide; /* rows begin at multiples of 16 bytes, and have whole ones */

    template <class E> static constexpr int W = 16 / (int)sizeof(E);

    /* Element k of pack p of this thread. */
    template <class E> DEVICE int64_t at(int64_t p, int k) const {
        return wide ? (member + p * team) * W<E> + k : member + (p * W<E> + k) * team;
    }
    /* Makes the compiler compute the positions of elements again from here on: kept, they take more registers than the
     * row. */
    DEVICE void find_again() {
#ifdef __CUDA_ARCH__
        asm volatile("" : "+r"(team));
#endif
    }
    template <class E> DEVICE void load(computed<E> (&to)[W<E>], const E *x, int64_t p) const { load_as<E>(to, x, p); }
    /* Of x the elements at the places of pack p of a row of E. */
    template <class E, class X> DEVICE void load_as(computed<E> (&to)[W<E>], const X *x, int64_t p) const {
        constexpr int in_access = W<E> < W<X> ? W<E> : W<X>;
        if (wide) {
#pragma unroll
            for (int first = 0; first < W<E>; first += in_access) {
                pack<X, in_access> all = {};
                if (at<E>(p, 0) < n) all = *reinterpret_cast<const pack<X, in_access> *>(x + at<E>(p, first));
#pragma unroll
                for (int k = 0; k < in_access; k++) to[first + k] = all.v[k];
            }
        } else {
#pragma unroll
            for (int k = 0; k < W<E>; k++) to[k] = at<E>(p, k) < n ? (computed<E>)x[at<E>(p, k)] : computed<E>(0);
        }
    }
    template <class E> DEVICE void store(E *to, const computed<E> (&from)[W<E>], int64_t p) const {
        if (wide) {
            pack<E, W<E>> all;
#pragma unroll
            for (int k = 0; k < W<E>; k++) all.v[k] = from[k];
            if (at<E>(p, 0) < n) *reinterpret_cast<pack<E, W<E>> *>(to + at<E>(p, 0)) = all;
        } else {
#pragma unroll
            for (int k = 0; k < W<E>; k++)
                if (at<E>(p, k) < n) to[at<E>(p, k)] = from[k];
        }
    }
};

/* Calls what(p) for each pack of a thread; there are `packs` of them, or (0) as many as the row takes. */
template <class E, int packs, class Visit> DEVICE void each_pack(const line &l, const Visit &visit) {
    if constexpr (packs > 0) {
#pragma unroll
        for (int p = 0; p < packs; p++) visit(p);
    } else {
        const int64_t in_round = (int64_t)l.team * line::W<E>;
        for (int64_t p = 0; p * in_round < l.n; p++) visit(p);
    }
}

/* A thread's share of a row: read once, or (packs 0) each time it is needed. */
template <class E, int packs> struct share {
    static constexpr int W = line::W<E>;
    computed<E> held[packs > 0 ? packs : 1][W];
    const E *row;

    DEVICE share(const line &l, const E *x) : row(x) {
        if constexpr (packs > 0)
#pragma unroll
            for (int p = 0; p < packs; p++) l.load(held[p], x, p);
    }
    DEVICE void get(const line &l, int64_t p, computed<E> (&to)[W]) const {
        if constexpr (packs > 0)
#pragma unroll
            for (int k = 0; k < W; k++) to[k] = held[p][k];
        else
            l.load(to, row, p);
    }
};

/* Long rows are added up in double: a thread takes thousands of their elements. */
template <class T, int packs> using share_sum = typename choose<(packs > 0), T, double>::type;

/* The values of all threads of a team, joined; each thread gets the result. All threads of the block must call it. */
template <class A, class Join> DEVICE A meet(const line &l, A value, const Join &join) {
    for (int half = (l.team < 32 ? l.team : 32) / 2; half > 0; half /= 2)
        value = join(value, __shfl_xor_sync(0xffffffffu, value, half));
    if (l.team <= 32) return value;
    __shared__ A memory[NR_WARPS];
    const int warp = (int)threadIdx.x / 32, first = warp & -(l.team / 32);
    if (threadIdx.x % 32 == 0) memory[warp] = value;
    __syncthreads();
    value = memory[first];
    for (int w = 1; w < l.team / 32; w++) value = join(value, memory[first + w]);
    __syncthreads();
    return value;
}

template <class A> DEVICE A add_up(const line &l, A value) {
    return meet(l, value, [](A a, A b) { return a + b; });
}
template <class A> DEVICE A largest_of(const line &l, A value) {
    return meet(l, value, [](A a, A b) { return b > a ? b : a; });
}

/* ---- launching: a team for rows of this length, and the packs of each thread (0: too many) ----------------------- */

struct row_shape {
    int32_t team, packs;
    unsigned blocks;
};

/* Packs of narrow elements have the same number of bytes, so there are fewer packs. */
template <class E> constexpr int most_packs = 8 * (int)sizeof(E) / (int)sizeof(computed<E>);

template <class E> static row_shape row_shape_of(int64_t rows, int64_t n) {
    constexpr int W = line::W<E>, most = most_packs<E>;
    row_shape s = {8, 1, 0};
    while (s.team < NR_BLOCK && (int64_t)s.team * W * (most / 2) < n) s.team *= 2;
    while (s.packs < most && (int64_t)s.team * W * s.packs < n) s.packs *= 2;
    if ((int64_t)s.team * W * s.packs < n) s.packs = 0;
    s.blocks = blocks_for(rows, NR_BLOCK / s.team);
    return s;
}

/* Calls what(number) with the number of packs as a type. */
template <int n> struct number_of_packs {
    static constexpr int packs = n;
};
template <int most = 8, class Body> static auto with_packs(int32_t packs, const Body &body) {
    if constexpr (most == 8)
        if (packs == 8) return body(number_of_packs<8>());
    switch (packs) {
    case 1: return body(number_of_packs<1>());
    case 2: return body(number_of_packs<2>());
    case 4: return body(number_of_packs<4>());
    }
    return body(number_of_packs<0>());
}

#endif
