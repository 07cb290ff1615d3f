/* chain_dtype: the kernels of chains that compute on one dtype. Compiled once a dtype.
 *
 *   elements   a thread takes one element through all steps
 *   rows       [ row: t0 t1 .. t255 t0 t1 .. | row ... ]   a block has whole rows, and takes them through a phase of steps:
 *              calls of each element | a reduction of each row | calls of each row | calls of each element ...
 *
 * Between two steps an element lies in a register of the chain: a numbered word of each thread in shared memory. All threads of
 * a warp take the same way through the table of formulas. A reduction combines the elements in the order of the kernel
 * that it has alone (reduce_rows.cuh).
 *
 * A register holds what memory would give back: a value is rounded to the narrow dtype of its step, and a truth is 0 or 1. */
#include "chain.cuh"
#include "formulas.cuh"
#include "reduce_rows.cuh"

template <class D> DEVICE typename D::T apply(int op, typename D::T x, typename D::T y, typename D::T z) {
    using T = typename D::T;
    switch (op) {
#define CASE(name, domain, first)                                                                   \
    case NR_OP_##name:                                                                              \
        if constexpr ((NR_DOMAIN_##domain & D::kind) != 0) return (T)row_##name<T>::f(first, y, z); \
        break;
#define UNARY(name, domain, ...) CASE(name, domain, x)
#define BINARY(name, domain, ...) CASE(name, domain, x)
#define TERNARY(name, domain, ...) CASE(name, domain, x)
#define CHOICE(name, domain, ...) CASE(name, domain, x != 0)
#include "../ops.def"
    }
    return x; /* a copy */
}

/* A value as memory of that dtype gives it back. */
template <class D> DEVICE typename D::T rounded(int32_t number, typename D::T x) {
    if (number == NORCH_BOOL) return x != 0;
    with_stored<D>(number, [&](auto stored) {
        using Stored = decltype(stored);
        x = widen<Stored>(narrow<Stored>(x));
    });
    return x;
}

/* Element i of all, and where its registers lie: word `word` of those of elements, `row` of those of rows. */
template <class D> struct element_of {
    using T = typename D::T;
    const chain_args &a;
    T *registers;
    uint32_t word, row, at[NR_CHAIN_LOOPS];

    DEVICE element_of(const chain_args &chain, T *all, uint32_t i, uint32_t own, uint32_t own_row)
        : a(chain), registers(all), word(own), row(own_row) {
        for (int32_t d = 0; d < a.ndim; d++) {
            const uint32_t rest = d + 1 < a.ndim ? quotient(i, a.size[d]) : 0;
            at[d] = i - rest * a.size[d].size;
            i = rest;
        }
    }

    DEVICE T &in_register(int r) const { return registers[a.at[r] + (a.by_row >> r & 1 ? row : word)]; }

    DEVICE char *address(const chain_operand &x) const {
        char *data = x.data;
        for (int32_t d = 0; d < a.ndim; d++) data += (int64_t)at[d] * x.stride[d];
        return data;
    }

    DEVICE T read(int where, int32_t number) const {
        if (where < NR_CHAIN_REGISTERS) return in_register(where);
        const chain_operand &x = a.operands[where - NR_CHAIN_REGISTERS];
        const uint64_t value = (uint64_t)x.stride[0];
        if (number == NORCH_BOOL) return (x.data ? *(const uint8_t *)address(x) : immediate<uint8_t>(value)) != 0;
        return x.data ? load_one<D>(number, address(x)) : widen<D>(immediate<typename D::S>(value));
    }

    DEVICE void write(int where, int32_t number, T x) const {
        if (where < NR_CHAIN_REGISTERS) {
            in_register(where) = rounded<D>(number, x);
            return;
        }
        char *to = address(a.operands[where - NR_CHAIN_REGISTERS]);
        if (number == NORCH_BOOL)
            *(uint8_t *)to = x != 0;
        else
            store_one<D>(number, to, x);
    }

    /* The steps from `first` to `last`, none of which reduces. */
    DEVICE void run(int32_t first, int32_t last) const {
        for (int32_t s = first; s < last; s++) {
            const chain_step &step = a.steps[s];
            T x[NR_MAX_OPERANDS - 1] = {};
            for (int o = 0; o < NR_MAX_OPERANDS - 1; o++)
                if (o < step.inputs) x[o] = read(step.in[o], o == 0 ? step.first : step.from);
            write(step.out, step.to, apply<D>(step.op, x[0], x[1], x[2]));
        }
    }
};

template <class D> __global__ void __launch_bounds__(NR_BLOCK) run_elements(const __grid_constant__ chain_args a) {
    using T = typename D::T;
    __shared__ T registers[NR_CHAIN_REGISTERS * NR_BLOCK];
    const uint32_t i = blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i < a.n) element_of<D>(a, registers, i, threadIdx.x, 0).run(0, a.count);
}

/* ---- rows ---------------------------------------------------------------------------------------------------------- */

/* A row in a register, as row_in_memory is one in memory. */
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
    double words[3];
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

/* Reduces `here` rows of a block, the first of which is row `first` of all. */
template <class Row, class D>
DEVICE void reduce_rows(const chain_args &a, const chain_step &step, const shared_of<D> &shared, uint32_t first,
                        uint32_t here) {
    using State = typename Row::State;
    static_assert(sizeof(State) <= sizeof shared.of_warps[0], "what a warp has");
    const chain_reduction &r = a.reductions[step.in[1]];
    const uint32_t own = threadIdx.x / (uint32_t)r.team, count = a.row.size;
    const element_of<D> one(a, shared.registers, (own < here ? first + own : first) * count, own * count, own);
    State s = Row::begin();
    if (own < here) {
        const char *in = one.address(r.from);
        if (step.in[0] < NR_CHAIN_REGISTERS)
            take_row<Row, D>(s, r, row_in_register<D>{&one.in_register(step.in[0])}, in, (int32_t)count);
        else
            take_row<Row, D>(s, r, row_in_memory<D>{in, r.from.stride[0], step.from}, in, (int32_t)count);
    }
    merge_neighbours<Row>(s, reinterpret_cast<State *>(shared.of_warps), r.team);
    if (own >= here || (threadIdx.x & (uint32_t)(r.team - 1)) != 0) return;
    const auto value = Row::value(s, count, r.param);
    if (step.out < NR_CHAIN_REGISTERS)
        one.write(step.out, step.to, (typename D::T)value); /* never an index, or a sum that is wider than D */
    else
        store_one<typename Row::Out>(step.to, one.address(a.operands[step.out - NR_CHAIN_REGISTERS]), value);
}

template <class D>
DEVICE void reduce_step(const chain_args &a, const chain_step &step, const shared_of<D> &shared, uint32_t first,
                        uint32_t here) {
    switch (step.op) {
#define REDUCE(name, domain, ...)                                        \
    case NR_OP_##name:                                                   \
        if constexpr ((NR_DOMAIN_##domain & D::kind) != 0)               \
            reduce_rows<row_##name<D>, D>(a, step, shared, first, here); \
        break;
#include "../ops.def"
    }
}

/* Two blocks of doubles on a multiprocessor at least, as in rows.cuh. */
template <class D>
__global__ void __launch_bounds__(NR_BLOCK, sizeof(typename D::T) == 8 ? 2 : 0)
    run_rows(const __grid_constant__ chain_args a) {
    using T = typename D::T;
    DYNAMIC_SHARED(T, registers);
    TELL_SHARED(NR_CHAIN_SHARED);
    __shared__ warp_state of_warps[NR_BLOCK / 32];
    const shared_of<D> shared = {registers, of_warps};
    const uint32_t first = blockIdx.x * (uint32_t)a.rows, left = a.n - first, row = a.row.size;
    const uint32_t here = left < (uint32_t)a.rows ? left : (uint32_t)a.rows;
    for (int32_t s = 0, end; s < a.count; s = end) {
        const chain_step &step = a.steps[s];
        end = s + 1;
        if (step.role == NR_INTO_ROW) {
            reduce_step<D>(a, step, shared, first, here);
        } else {
            while (end < a.count && a.steps[end].role == step.role) end++;
            const bool each = step.role == NR_EACH;
            for (uint32_t i = threadIdx.x; i < (each ? here * row : here); i += NR_BLOCK)
                element_of<D>(a, registers, first * row + (each ? i : i * row), i, each ? quotient(i, a.row) : i)
                    .run(s, end);
        }
        __syncthreads();
    }
}

chain_kernels NR_JOIN2(nr_chain_kernels, NR_DTYPE_NAME)() {
    using D = NR_JOIN2(dtype, NR_DTYPE_NAME);
    return {run_elements<D>, run_rows<D>};
}
