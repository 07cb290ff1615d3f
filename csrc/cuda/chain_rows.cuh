/* chain_rows: an element of a chain, where its operands lie, and the reduction of rows: what the kernels
 * that take a chain step by step (chain_dtype.cu) and those compiled for one chain (chain_compile.cu)
 * share. It needs nothing of the host.
 *
 * A register holds what memory would give back: a value is rounded to the narrow dtype of
 * its step, and a truth is 0 or 1. */
#ifndef NR_CUDA_CHAIN_ROWS_H
#define NR_CUDA_CHAIN_ROWS_H

#include "chain.cuh"
#include "formulas.cuh"
#include "reduce_rows.cuh"

/* A value after a round trip through memory of that dtype. */
template <class D> DEVICE typename D::T rounded(int32_t number, typename D::T x) {
    if (number == NORCH_BOOL) return x != 0;
    with_stored<D>(number, [&](auto stored) {
        using Stored = decltype(stored);
        x = widen<Stored>(narrow<Stored>(x));
    });
    return x;
}

/* Element i of all, and where its registers lie: word `word` of those of elements, `row` of those of rows. loops: how
 * many the chain has, where that is known. */
template <class D, int loops = 0> struct element_of {
    using T = typename D::T;
    const chain_args &a;
    T *registers;
    uint32_t word, row, at[NR_CHAIN_LOOPS];

    DEVICE int32_t ndim() const { return loops ? loops : a.ndim; }

    DEVICE element_of(const chain_args &chain, T *all, uint32_t i, uint32_t first_word, uint32_t local_row)
        : a(chain), registers(all), word(first_word), row(local_row) {
#pragma unroll
        for (int32_t d = 0; d < ndim(); d++) {
            const uint32_t rest = d + 1 < ndim() ? quotient(i, a.size[d]) : 0;
            at[d] = i - rest * a.size[d].size;
            i = rest;
        }
    }

    DEVICE T &in_register(int r) const { return registers[a.at[r] + (a.by_row >> r & 1 ? row : word)]; }

    DEVICE char *address(const chain_operand &x) const {
        char *data = x.data;
#pragma unroll
        for (int32_t d = 0; d < ndim(); d++) data += (int64_t)at[d] * x.stride[d];
        return data;
    }

    /* Operand k, an element in memory of that dtype. */
    DEVICE T load(int k, int32_t number) const {
        const char *from = address(a.operands[k]);
        return number == NORCH_BOOL ? *(const uint8_t *)from != 0 : load_one<D>(number, from);
    }

    /* Operand k, a number. */
    DEVICE T constant(int k, int32_t number) const {
        const uint64_t value = (uint64_t)a.operands[k].stride[0];
        return number == NORCH_BOOL ? immediate<uint8_t>(value) != 0 : widen<D>(immediate<typename D::S>(value));
    }

    DEVICE void store(int k, int32_t number, T x) const {
        char *to = address(a.operands[k]);
        if (number == NORCH_BOOL)
            *(uint8_t *)to = x != 0;
        else
            store_one<D>(number, to, x);
    }

    DEVICE T read(int where, int32_t number) const {
        if (where < NR_CHAIN_REGISTERS) return in_register(where);
        const int k = where - NR_CHAIN_REGISTERS;
        return a.operands[k].data ? load(k, number) : constant(k, number);
    }

    DEVICE void write(int where, int32_t number, T x) const {
        if (where < NR_CHAIN_REGISTERS)
            in_register(where) = rounded<D>(number, x);
        else
            store(where - NR_CHAIN_REGISTERS, number, x);
    }
};

/* The rows of a block: `here` of them, the first of which is row `first` of all. */
struct rows_of_block {
    uint32_t first, here;
    DEVICE explicit rows_of_block(const chain_args &a) : first(blockIdx.x * (uint32_t)a.rows), here((uint32_t)a.rows) {
        if (a.n - first < here) here = a.n - first;
    }
};

/* A row in a register; row_in_memory is a row in memory. */
template <class D> struct row_in_register {
    using T = typename D::T;
    const T *words;

    DEVICE T one(int64_t i) const { return words[i]; }
    template <int n> DEVICE void spread(T *to, int64_t i, int64_t apart) const {
#pragma unroll
        for (int k = 0; k < n; k++) to[k] = words[i + k * apart];
    }
    template <int n> DEVICE void neighbours(T *to, int64_t i) const { spread<n>(to, i, 1); }
};

struct warp_state {
    double words[4];
};
template <class D> struct shared_of {
    typename D::T *registers;
    warp_state *of_warps;
};

template <class Row, class D, class From>
DEVICE void take_row(typename Row::State &s, const chain_reduction &r, const From &from, const char *in,
                     int32_t count) {
    const int32_t member = (int32_t)threadIdx.x & (r.team - 1);
    if (r.narrow)
        for (int32_t i = member; i < count; i += r.team) Row::step(s, from.one(i), i);
    else if (r.dense && is_wide<D>(in, r.from.stride[0]))
        take_wide<Row, D>(s, from, 0, count, member, r.team);
    else
        take<Row, D>(s, from, member, count, r.team);
}

/* Reduces the rows of a block. */
template <class Row, class D, int loops = 0>
DEVICE void reduce_rows(const chain_args &a, const chain_step &step, const shared_of<D> &shared,
                        const rows_of_block &rows) {
    using State = typename Row::State;
    static_assert(sizeof(State) <= sizeof shared.of_warps[0], "what a warp has");
    const chain_reduction &r = a.reductions[step.in[1]];
    const uint32_t local_row = threadIdx.x / (uint32_t)r.team, count = a.row.size;
    const element_of<D, loops> one(a, shared.registers,
                                   (local_row < rows.here ? rows.first + local_row : rows.first) * count,
                                   local_row * count, local_row);
    State s = Row::begin();
    if (local_row < rows.here) {
        const char *in = one.address(r.from);
        if (step.in[0] < NR_CHAIN_REGISTERS)
            take_row<Row, D>(s, r, row_in_register<D>{&one.in_register(step.in[0])}, in, (int32_t)count);
        else
            take_row<Row, D>(s, r, row_in_memory<D>{in, r.from.stride[0], step.from}, in, (int32_t)count);
    }
    merge_neighbours<Row>(s, reinterpret_cast<State *>(shared.of_warps), r.team);
    if (local_row >= rows.here || (threadIdx.x & (uint32_t)(r.team - 1)) != 0) return;
    const auto value = Row::value(s, count, r.param);
    if (step.out < NR_CHAIN_REGISTERS)
        one.write(step.out, step.to, (typename D::T)value); /* never an index, or a sum that is wider than D */
    else
        store_one<typename Row::Out>(step.to, one.address(a.operands[step.out - NR_CHAIN_REGISTERS]), value);
}

#endif
