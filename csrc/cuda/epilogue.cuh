/* epilogue: the activation at the end of a product, by the formulas of ops.def.
 *
 * relu is applied to sums in registers. A formula there would take registers from the sums, and its code would be
 * repeated for each sum of a thread. So a block stores its tile of C unfinished, and finishes it while it is in the
 * caches:
 *
 *   sums --bias, relu--> C --read by 4, activation, written--> C
 *
 * The results equal those of a launch of the activation bit for bit: C has been rounded to its dtype, and files that
 * include this are compiled without contraction, as formulas.cuh says. */
#ifndef NR_CUDA_EPILOGUE_H
#define NR_CUDA_EPILOGUE_H

#include "formulas.cuh"

/* The rows that kernels of products apply to a tile: the activations that Sequential fuses (norch/nn/activation.py). */
__host__ __device__ constexpr bool is_activation(int op) {
    return op == NR_OP_sigmoid || op == NR_OP_tanh || op == NR_OP_silu || op == NR_OP_gelu || op == NR_OP_gelu_tanh;
}

/* One of them, of n numbers; none leaves them as they are. */
template <class T, int n> DEVICE void activate(int op, T (&x)[n]) {
    if constexpr (is_floating<T>) switch (op) {
#define UNARY(name, domain, result, formula)                                                         \
    case NR_OP_##name:                                                                               \
        if constexpr (is_activation(NR_OP_##name))                                                   \
            _Pragma("unroll") for (int q = 0; q < n; q++) x[q] = row_##name<T>::f(x[q], x[q], x[q]); \
        break;
#include "../ops.def"
        }
}

/* Finishes `rows` x `columns` of C, of a tile BN wide, which these threads have written and of which all of them know.
 * wide: 16 bytes of a row may be moved at once. */
template <class D, int BN>
DEVICE void finish_tile(typename D::S *c, int64_t c_row, int rows, int columns, bool wide, int op, int thread,
                        int threads) {
    using S = typename D::S;
    constexpr int W = sizeof(S) == 8 ? 2 : 4, runs = BN / W;
#pragma unroll 1
    for (int i = thread; i < rows * runs; i += threads) {
        const int first = i % runs * W, left = columns - first;
        if (left <= 0) continue;
        S *at = c + i / runs * c_row + first;
        pack<S, W> run = {};
        if (wide) run = *reinterpret_cast<pack<S, W> *>(at);
#pragma unroll
        for (int q = 0; q < W; q++)
            if (!wide && q < left) run.v[q] = at[q];
        typename D::T x[W];
#pragma unroll
        for (int q = 0; q < W; q++) x[q] = widen<D>(run.v[q]);
        activate(op, x);
#pragma unroll
        for (int q = 0; q < W; q++) run.v[q] = narrow<D>(x[q]);
        if (wide) *reinterpret_cast<pack<S, W> *>(at) = run;
#pragma unroll
        for (int q = 0; q < W; q++)
            if (!wide && q < left) at[q] = run.v[q];
    }
}

#endif
