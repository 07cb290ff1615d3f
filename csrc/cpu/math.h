/* math: the functions that the formulas of ops.def call on the CPU, under one name for every type.
 *
 * All is static inline and free of branches, so that a loop around a formula turns into vectors; what
 * calls libm instead says so below. Reduction states live with the reductions, not here. Include this
 * after every system header: exp, log ... are macros from here on.
 *
 * Largest error met in ulp over all exponents (tests/native/math_accuracy.c); edges as in C99 Annex F.
 *   float32, in float   exp 0.98  exp2 0.99  expm1 1.45  log 0.83  tanh 1.16  erf 1.33
 *            in double  log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh asinh acosh atanh
 *                       erfc power: 0.501, for every argument
 *   float64             exp 1.01  exp2 1.08  expm1 2.12  log 0.82  tanh 2.52
 * The others of float64 are libm's. floor_quotient and floor_remainder branch to fmod now and then, and
 * powers of integers loop. */
#ifndef NR_MATH_H
#define NR_MATH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define NR_INLINE static inline __attribute__((always_inline))

#if defined(__FMA__) || defined(__aarch64__)
#define NR_HAS_FMA 1
#else
#define NR_HAS_FMA 0
#endif

NR_INLINE float nr_fma_f32(float a, float b, float c) { return NR_HAS_FMA ? __builtin_fmaf(a, b, c) : a * b + c; }
NR_INLINE double nr_fma_f64(double a, double b, double c) { return NR_HAS_FMA ? __builtin_fma(a, b, c) : a * b + c; }

/* a * b + c, rounded once where the processor can; chosen by c so that nested calls stay short. */
#define NR_FMA(a, b, c) _Generic((c), float: nr_fma_f32, double: nr_fma_f64)(a, b, c)

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

#include "math_f64.h"
#include "math_f32.h"
#include "math_int.h"

/* ---- one name for every type ------------------------------------------------------------------- */

/* clang-format off */
#define NR_OF_FLOATS(name, x) _Generic((x), float: nr_##name##_f32, double: nr_##name##_f64)
#define NR_OF_INTEGERS(name) uint8_t: nr_##name##_u8, int32_t: nr_##name##_i32, int64_t: nr_##name##_i64
#define NR_OF_NUMBERS(name, x) \
    _Generic((x), float: nr_##name##_f32, double: nr_##name##_f64, NR_OF_INTEGERS(name))
#define NR_OF_ALL(name, x) \
    _Generic((x), float: nr_##name##_f32, double: nr_##name##_f64, NR_OF_INTEGERS(name), bool: nr_##name##_b8)
#define complement(x) _Generic((x), NR_OF_INTEGERS(complement), bool: nr_complement_b8)(x)
/* clang-format on */

#define exp(x) NR_OF_FLOATS(exp, x)(x)
#define exp2(x) NR_OF_FLOATS(exp2, x)(x)
#define expm1(x) NR_OF_FLOATS(expm1, x)(x)
#define log(x) NR_OF_FLOATS(log, x)(x)
#define log2(x) NR_OF_FLOATS(log2, x)(x)
#define log10(x) NR_OF_FLOATS(log10, x)(x)
#define log1p(x) NR_OF_FLOATS(log1p, x)(x)
#define sin(x) NR_OF_FLOATS(sin, x)(x)
#define cos(x) NR_OF_FLOATS(cos, x)(x)
#define tan(x) NR_OF_FLOATS(tan, x)(x)
#define asin(x) NR_OF_FLOATS(asin, x)(x)
#define acos(x) NR_OF_FLOATS(acos, x)(x)
#define atan(x) NR_OF_FLOATS(atan, x)(x)
#define atan2(y, x) NR_OF_FLOATS(atan2, y)(y, x)
#define sinh(x) NR_OF_FLOATS(sinh, x)(x)
#define cosh(x) NR_OF_FLOATS(cosh, x)(x)
#define tanh(x) NR_OF_FLOATS(tanh, x)(x)
#define asinh(x) NR_OF_FLOATS(asinh, x)(x)
#define acosh(x) NR_OF_FLOATS(acosh, x)(x)
#define atanh(x) NR_OF_FLOATS(atanh, x)(x)
#define erf(x) NR_OF_FLOATS(erf, x)(x)
#define erfc(x) NR_OF_FLOATS(erfc, x)(x)
#define sqrt(x) NR_OF_FLOATS(sqrt, x)(x)
#define silu_slope(x) NR_OF_FLOATS(silu_slope, x)(x)

#define floor(x) NR_OF_NUMBERS(floor, x)(x)
#define ceil(x) NR_OF_NUMBERS(ceil, x)(x)
#define trunc(x) NR_OF_NUMBERS(trunc, x)(x)
#define round_even(x) NR_OF_NUMBERS(round_even, x)(x)
#define absolute(x) NR_OF_NUMBERS(absolute, x)(x)
#define power(a, b) NR_OF_NUMBERS(power, a)(a, b)
#define floor_quotient(a, b) NR_OF_NUMBERS(floor_quotient, a)(a, b)
#define floor_remainder(a, b) NR_OF_NUMBERS(floor_remainder, a)(a, b)
#define bounded(x, low, high) NR_OF_NUMBERS(bounded, x)(x, low, high)

#define larger(a, b) NR_OF_ALL(larger, a)(a, b)
#define smaller(a, b) NR_OF_ALL(smaller, a)(a, b)
#define infinite(x) NR_OF_ALL(infinite, x)(x)
#define finite(x) NR_OF_ALL(finite, x)(x)

#endif
