/* formulas: a class for each pointwise row of ops.def, whose f computes one element of type T. The kernel of a single
 * operation and the kernels of chains call the same f. Files that include this are compiled without contraction (the
 * Makefile), so that no product is rounded with a sum in one kernel and without it in another. */
#ifndef NR_CUDA_FORMULAS_H
#define NR_CUDA_FORMULAS_H

#include "math.cuh"

#define C(number) ((T)(number))
#define RESULT_SAME T
#define RESULT_FLOAT T
#define RESULT_TRUTH bool

#define UNARY(name, domain, result, formula)                  \
    template <class T> struct row_##name {                    \
        using R = RESULT_##result;                            \
        static DEVICE R f(T x, T, T) { return (R)(formula); } \
    };
#define BINARY(name, domain, result, formula)                   \
    template <class T> struct row_##name {                      \
        using R = RESULT_##result;                              \
        static DEVICE R f(T a, T b, T) { return (R)(formula); } \
    };
#define TERNARY(name, domain, result, formula)                    \
    template <class T> struct row_##name {                        \
        using R = RESULT_##result;                                \
        static DEVICE R f(T a, T b, T c) { return (R)(formula); } \
    };
#define CHOICE(name, domain, result, formula)                        \
    template <class T> struct row_##name {                           \
        using R = RESULT_##result;                                   \
        static DEVICE R f(bool a, T b, T c) { return (R)(formula); } \
    };
#include "../ops.def"
#undef C

#endif
