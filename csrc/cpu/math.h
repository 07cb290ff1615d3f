/* math: the functions that the formulas of ops.def call on the CPU, under one name for every type.
 *
 * All functions are static inline and branch-free, so that a loop around a formula is vectorised, except those listed
 * below that call libm. Include this after every system header: exp, log ... are macros from here on.
 *
 * Largest error met in ulp over all exponents (tests/native/math_accuracy.c), with fused multiply-adds; edges as in C99
 * Annex F. float32, in float   exp 0.89  exp2 0.9  log 0.93  log2 1.0  log10 1.0  sin 1.2  cos 1.2  tan 1.5 asin 1.2
 * acos 1.1  atan 1.2  tanh 1.2  erf 1.33  expm1 1.45  log1p, log1p_unit 1.39 erfinv 1.53 in double  atan2 sinh cosh
 * asinh acosh atanh erfc hypot lgamma digamma sinc zeta i0 i0e i1 i1e, and sin cos tan of |x| > 2^17: 0.51, for every
 * argument; power 0.53 without fused multiply-adds: exp 1.2  log2 1.8  log10 1.9, sin cos tan erfinv in double float64
 * exp 1.01  exp2 1.08  expm1 2.12  log 0.82  log1p, log1p_unit 1.35  tanh 2.52  erfinv 1.9 log2 1.3  log10 1.6  sin 1.0
 * cos 1.1  tan 1.4  asin, acos 1.1  atan 1.9  sinh, cosh 1.5 atanh 1.8  asinh 1.6  acosh 1.4  erf 1.2  erfc 1.8  atan2
 * 2.0  power 1.2 sinc 2.8  digamma 4.5 right of 0, zeta 8 of whole exponents i0 i0e 4, i1 i1e 9, igamma igammac 14
 * above 1e-3 (tests/ops/test_special.py) The others of float64 are libm's, and its sin, cos, tan beyond 2^24, and
 * powers of bases that are not normal numbers above 0 or with exponents beyond 2^20; without fused multiply-adds its
 * asinh, acosh, erf, erfc (2.6), atan2, power. Rows of ops.def with short formulas for most arguments have them twice
 * (math_hard.h): the result for an element is the same bit for bit with any neighbours. Remainders branch to fmod now
 * and then, float32's only where nr_easy_f32 does not hold, and powers of integers loop; math_special.h says what it
 * does. */
#ifndef NR_MATH_H
#define NR_MATH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "../core/platform.h"

#define NR_INLINE static inline __attribute__((always_inline))
#define NR_FUNCTION static inline /* for what is too large to be copied into every loop */

#if defined(__FMA__) || defined(__aarch64__)
#define NR_HAS_FMA 1
#else
#define NR_HAS_FMA 0
#endif

NR_INLINE float nr_fma_f32(float a, float b, float c) { return NR_HAS_FMA ? __builtin_fmaf(a, b, c) : a * b + c; }
NR_INLINE double nr_fma_f64(double a, double b, double c) { return NR_HAS_FMA ? __builtin_fma(a, b, c) : a * b + c; }

/* a * b + c, rounded once where the processor can; chosen by c so that nested calls stay short. */
#define NR_FMA(a, b, c) _Generic((c), float: nr_fma_f32, double: nr_fma_f64)(a, b, c)

#include "math_poly.h"

#include "math_f64.h"
#include "math_f32.h"
#include "math_angle.h"
#include "math_double.h"
#include "math_special.h"
#include "math_gamma.h"
#include "math_hard.h"
#include "math_int.h"

/* ---- one name for every type ------------------------------------------------------------------- */

/* clang-format off */
#define NR_OF_FLOATS(name, x) _Generic((x), float: nr_##name##_f32, double: nr_##name##_f64)
#define NR_OF_NUMBERS(name, x) \
    _Generic((x), float: nr_##name##_f32, double: nr_##name##_f64, NR_OF_INTEGERS(name))
#define NR_OF_ALL(name, x) \
    _Generic((x), float: nr_##name##_f32, double: nr_##name##_f64, NR_OF_INTEGERS(name), bool: nr_##name##_b8)
#define complement(x) _Generic((x), NR_OF_INTEGERS(complement), bool: nr_complement_b8)(x)
#define shifted_left(x, n) _Generic((x), NR_OF_INTEGERS(shifted_left))(x, n)
#define gcd(a, b) _Generic((a), NR_OF_INTEGERS(gcd))(a, b)
#define lcm(a, b) _Generic((a), NR_OF_INTEGERS(lcm))(a, b)
#define shifted_right(x, n) _Generic((x), NR_OF_INTEGERS(shifted_right))(x, n)
/* clang-format on */

#define exp(x) NR_OF_FLOATS(exp, x)(x)
#define exp_beside_1(x) NR_OF_FLOATS(exp_beside_1, x)(x)
#define exp_below(x) NR_OF_FLOATS(exp_below, x)(x)
#define exp2(x) NR_OF_FLOATS(exp2, x)(x)
#define expm1(x) NR_OF_FLOATS(expm1, x)(x)
#define log(x) NR_OF_FLOATS(log, x)(x)
#define log2(x) NR_OF_FLOATS(log2, x)(x)
#define log10(x) NR_OF_FLOATS(log10, x)(x)
#define log1p(x) NR_OF_FLOATS(log1p, x)(x)
#define log1p_unit(x) NR_OF_FLOATS(log1p_unit, x)(x)
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
#define hypot(a, b) NR_OF_FLOATS(hypot, a)(a, b)
#define copysign(a, b) NR_OF_FLOATS(copysign, a)(a, b)
#define erf(x) NR_OF_FLOATS(erf, x)(x)
#define erfc(x) NR_OF_FLOATS(erfc, x)(x)
#define erfinv(x) NR_OF_FLOATS(erfinv, x)(x)
#define lgamma(x) NR_OF_FLOATS(lgamma, x)(x)
#define digamma(x) NR_OF_FLOATS(digamma, x)(x)
#define zeta(s, q) NR_OF_FLOATS(zeta, q)(s, q)
#define bessel_i0(x) NR_OF_FLOATS(i0, x)(x)
#define bessel_i0e(x) NR_OF_FLOATS(i0e, x)(x)
#define bessel_i1(x) NR_OF_FLOATS(i1, x)(x)
#define bessel_i1e(x) NR_OF_FLOATS(i1e, x)(x)
#define igamma(a, x) NR_OF_FLOATS(igamma, a)(a, x)
#define igammac(a, x) NR_OF_FLOATS(igammac, a)(a, x)
#define poisson(rate, u) NR_OF_FLOATS(poisson, rate)(rate, u)
#define sinc(x) NR_OF_FLOATS(sinc, x)(x)
#define sqrt(x) NR_OF_FLOATS(sqrt, x)(x)
#define significand_of(x) NR_OF_FLOATS(significand, x)(x)
#define exponent_of(x) NR_OF_FLOATS(binary_exponent, x)(x)
#define next_after(a, b) NR_OF_FLOATS(next_after, a)(a, b)
#define silu_slope(x) NR_OF_FLOATS(silu_slope, x)(x)
#define normal(x) NR_OF_FLOATS(normal, x)(x)
#define gelu_slope(x) NR_OF_FLOATS(gelu_slope, x)(x)
#define gelu_tanh_slope(x) NR_OF_FLOATS(gelu_tanh_slope, x)(x)
#define mish_gate(x) NR_OF_FLOATS(mish_gate, x)(x)
#define mish_slope(x) NR_OF_FLOATS(mish_slope, x)(x)

#define floor(x) NR_OF_NUMBERS(floor, x)(x)
#define ceil(x) NR_OF_NUMBERS(ceil, x)(x)
#define trunc(x) NR_OF_NUMBERS(trunc, x)(x)
#define round_even(x) NR_OF_NUMBERS(round_even, x)(x)
#define absolute(x) NR_OF_NUMBERS(absolute, x)(x)
#define power(a, b) NR_OF_NUMBERS(power, a)(a, b)
#define floor_quotient(a, b) NR_OF_NUMBERS(floor_quotient, a)(a, b)
#define floor_remainder(a, b) NR_OF_NUMBERS(floor_remainder, a)(a, b)
#define trunc_quotient(a, b) NR_OF_NUMBERS(trunc_quotient, a)(a, b)
#define trunc_remainder(a, b) NR_OF_NUMBERS(trunc_remainder, a)(a, b)
#define bounded(x, low, high) NR_OF_NUMBERS(bounded, x)(x, low, high)

#define larger(a, b) NR_OF_ALL(larger, a)(a, b)
#define smaller(a, b) NR_OF_ALL(smaller, a)(a, b)
#define infinite(x) NR_OF_ALL(infinite, x)(x)
#define finite(x) NR_OF_ALL(finite, x)(x)
#define signed_down(x) NR_OF_ALL(signed_down, x)(x)

/* ---- slopes ------------------------------------------------------------------------------------ */

#define C(number) ((T)(number))
#define T float
#define SLOPE(name) NR_INLINE T nr_##name##_f32(T x)
#include "../slopes.h"
#undef T
#define T double
#define SLOPE(name) NR_INLINE T nr_##name##_f64(T x)
#define SLOPE_GELU
#include "../slopes.h"
#undef T
#undef C

#endif
