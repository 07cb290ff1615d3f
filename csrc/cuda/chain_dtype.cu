/* chain_dtype: the kernels of chains that compute on one dtype. Compiled once a dtype.
 *
 *   elements   a thread takes one element through all steps
 *   rows       [ row: t0 t1 .. t255 t0 t1 .. | row ... ]   a block takes whole rows through a phase of steps:
 *              calls of each element | a reduction of each row | calls of each row | calls of each element ...
 *
 * Between two steps an element lies in a register of the chain: a numbered word of each thread in shared memory. All
 * threads of a warp take the same way through the table of formulas. A reduction combines the elements in the order of
 * its single kernel (reduce_rows.cuh). If NVRTC is found, a chain runs in a kernel compiled for it instead
 * (chain_compile.cu). */
#include "chain_rows.cuh"
#include "cuda.cuh"

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

/* The steps from `first` to `last` of an element, none of which reduces. */
template <class D> DEVICE void run(const element_of<D> &one, int32_t first, int32_t last) {
    for (int32_t s = first; s < last; s++) {
        const chain_step &step = one.a.steps[s];
        typename D::T x[NR_MAX_OPERANDS - 1] = {};
        for (int o = 0; o < NR_MAX_OPERANDS - 1; o++)
            if (o < step.inputs) x[o] = one.read(step.in[o], o == 0 ? step.first : step.from);
        one.write(step.out, step.to, apply<D>(step.op, x[0], x[1], x[2]));
    }
}

template <class D> __global__ void __launch_bounds__(NR_BLOCK) run_elements(const __grid_constant__ chain_args a) {
    using T = typename D::T;
    __shared__ T registers[NR_CHAIN_REGISTERS * NR_BLOCK];
    const uint32_t i = blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i < a.n) run(element_of<D>(a, registers, i, threadIdx.x, 0), 0, a.count);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

template <class D>
DEVICE void reduce_step(const chain_args &a, const chain_step &step, const shared_of<D> &shared,
                        const rows_of_block &rows) {
    switch (step.op) {
#define REDUCE(name, domain, ...)                                                                                \
    case NR_OP_##name:                                                                                           \
        if constexpr ((NR_DOMAIN_##domain & D::kind) != 0) reduce_rows<row_##name<D>, D>(a, step, shared, rows); \
        break;
#define FINISH REDUCE
#include "../ops.def"
    }
}

/* At least two blocks of doubles on a multiprocessor, as in rows.cuh. */
template <class D>
__global__ void __launch_bounds__(NR_BLOCK, sizeof(typename D::T) == 8 ? 2 : 0)
    run_rows(const __grid_constant__ chain_args a) {
    using T = typename D::T;
    DYNAMIC_SHARED(T, registers);
    TELL_SHARED(NR_CHAIN_SHARED);
    __shared__ warp_state of_warps[NR_BLOCK / 32];
    const shared_of<D> shared = {registers, of_warps};
    const rows_of_block rows(a);
    const uint32_t row = a.row.size;
    for (int32_t s = 0, end; s < a.count; s = end) {
        const chain_step &step = a.steps[s];
        end = s + 1;
        if (step.role == NR_INTO_ROW) {
            reduce_step<D>(a, step, shared, rows);
        } else {
            while (end < a.count && a.steps[end].role == step.role) end++;
            const bool each = step.role == NR_EACH;
            for (uint32_t i = threadIdx.x; i < (each ? rows.here * row : rows.here); i += NR_BLOCK)
                run(element_of<D>(a, registers, rows.first * row + (each ? i : i * row), i,
                                  each ? quotient(i, a.row) : i),
                    s, end);
        }
        __syncthreads();
    }
}

chain_kernels NR_JOIN2(nr_chain_kernels, NR_DTYPE_NAME)() {
    using D = NR_JOIN2(dtype, NR_DTYPE_NAME);
    return {run_elements<D>, run_rows<D>};
}
