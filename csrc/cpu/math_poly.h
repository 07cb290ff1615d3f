/* math_poly: polynomials, for the CPU and for GPUs. A file that includes it first defines
 * NR_FMA(a, b, c) = a * b + c. */
#ifndef NR_MATH_POLY_H
#define NR_MATH_POLY_H

/* NR_POLY(x, c0, c1, ... cn) = c0 + c1 x + ... + cn x^n by Horner's rule, n from 1 to 13. */
#define NR_POLY(x, ...)                                                                                               \
    NR_POLY_PICK(__VA_ARGS__, NR_P13, NR_P12, NR_P11, NR_P10, NR_P9, NR_P8, NR_P7, NR_P6, NR_P5, NR_P4, NR_P3, NR_P2, \
                 NR_P1, NR_P0)                                                                                        \
    (x, __VA_ARGS__)
#define NR_POLY_PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, n, name, ...) name
#define NR_P0(x, a) a
#define NR_P1(x, a, ...) NR_FMA(NR_P0(x, __VA_ARGS__), x, a)
#define NR_P2(x, a, ...) NR_FMA(NR_P1(x, __VA_ARGS__), x, a)
#define NR_P3(x, a, ...) NR_FMA(NR_P2(x, __VA_ARGS__), x, a)
#define NR_P4(x, a, ...) NR_FMA(NR_P3(x, __VA_ARGS__), x, a)
#define NR_P5(x, a, ...) NR_FMA(NR_P4(x, __VA_ARGS__), x, a)
#define NR_P6(x, a, ...) NR_FMA(NR_P5(x, __VA_ARGS__), x, a)
#define NR_P7(x, a, ...) NR_FMA(NR_P6(x, __VA_ARGS__), x, a)
#define NR_P8(x, a, ...) NR_FMA(NR_P7(x, __VA_ARGS__), x, a)
#define NR_P9(x, a, ...) NR_FMA(NR_P8(x, __VA_ARGS__), x, a)
#define NR_P10(x, a, ...) NR_FMA(NR_P9(x, __VA_ARGS__), x, a)
#define NR_P11(x, a, ...) NR_FMA(NR_P10(x, __VA_ARGS__), x, a)
#define NR_P12(x, a, ...) NR_FMA(NR_P11(x, __VA_ARGS__), x, a)
#define NR_P13(x, a, ...) NR_FMA(NR_P12(x, __VA_ARGS__), x, a)

#endif
