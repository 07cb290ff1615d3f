/* chain_dtype: the kernel of chains that compute on one dtype: a thread takes one element through all steps of the chain. Between
 * two steps it lies in shared memory, a word a thread and register, where it may be picked by number. All threads of a
 * warp take the same way through the table of formulas. Compiled once a dtype.
 *
 * A register holds what memory would give back: a value is rounded to the narrow dtype of its step, and a truth is 0 or 1. */
#include "chain.cuh"
#include "formulas.cuh"

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

template <class D> struct element_of {
    using T = typename D::T;
    const chain_args &a;
    T *registers; /* those of this thread */
    uint32_t at[NR_CHAIN_LOOPS];

    DEVICE element_of(const chain_args &chain, T *own, uint32_t i) : a(chain), registers(own) {
        for (int32_t d = 0; d < a.ndim; d++) {
            const uint32_t rest = d + 1 < a.ndim ? quotient(i, a.size[d]) : 0;
            at[d] = i - rest * a.size[d].size;
            i = rest;
        }
    }

    DEVICE char *address(const chain_operand &x) const {
        char *data = x.data;
        for (int32_t d = 0; d < a.ndim; d++) data += (int64_t)at[d] * x.stride[d];
        return data;
    }

    DEVICE T read(int where, int32_t number) const {
        if (where < NR_CHAIN_REGISTERS) return registers[where * NR_BLOCK];
        const chain_operand &x = a.operands[where - NR_CHAIN_REGISTERS];
        const uint64_t value = (uint64_t)x.stride[0];
        if (number == NORCH_BOOL) return (x.data ? *(const uint8_t *)address(x) : immediate<uint8_t>(value)) != 0;
        return x.data ? load_one<D>(number, address(x)) : widen<D>(immediate<typename D::S>(value));
    }

    DEVICE void write(int where, int32_t number, T x) {
        if (where < NR_CHAIN_REGISTERS) {
            registers[where * NR_BLOCK] = rounded<D>(number, x);
            return;
        }
        char *to = address(a.operands[where - NR_CHAIN_REGISTERS]);
        if (number == NORCH_BOOL)
            *(uint8_t *)to = x != 0;
        else
            store_one<D>(number, to, x);
    }
};

template <class D> __global__ void __launch_bounds__(NR_BLOCK) run_chain(const __grid_constant__ chain_args a) {
    using T = typename D::T;
    __shared__ T registers[NR_CHAIN_REGISTERS * NR_BLOCK];
    const uint32_t i = blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= a.n) return;
    element_of<D> one(a, registers + threadIdx.x, i);
    for (int32_t s = 0; s < a.count; s++) {
        const chain_step &step = a.steps[s];
        T x[NR_MAX_OPERANDS - 1] = {};
        for (int o = 0; o < NR_MAX_OPERANDS - 1; o++)
            if (o < step.inputs) x[o] = one.read(step.in[o], o == 0 ? step.first : step.from);
        one.write(step.out, step.to, apply<D>(step.op, x[0], x[1], x[2]));
    }
}

chain_kernel NR_JOIN2(nr_chain_kernel, NR_DTYPE_NAME)() { return run_chain<NR_JOIN2(dtype, NR_DTYPE_NAME)>; }
