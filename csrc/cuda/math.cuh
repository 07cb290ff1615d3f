/* math: the functions that the formulas of ops.def call on a GPU, under one name for every type; exp, log, sin ...
 * are CUDA's own, overloaded for float and double (errors of 1 to 4 ulp: CUDA C++ Programming Guide, appendix on
 * mathematical functions). The CPU's twin is cpu/math.h, whose integers are included here. */
#ifndef NR_CUDA_MATH_H
#define NR_CUDA_MATH_H

#include "elements.cuh"

template <class T> constexpr bool is_floating = false;
template <> constexpr bool is_floating<float> = true;
template <> constexpr bool is_floating<double> = true;

/* ---- integers: templates, beside which the functions of floats are exact matches ------------------------- */

#define NR_INLINE template <class T> DEVICE
#define F(name) integer_##name
#include "../cpu/math_integer.h"
#undef F
#undef NR_INLINE

#define UNARY(name) \
    template <class T> DEVICE T name(T x) { return integer_##name(x); }
#define BINARY(name) \
    template <class T> DEVICE T name(T a, T b) { return integer_##name(a, b); }
UNARY(absolute)
UNARY(complement)
BINARY(power)
BINARY(floor_quotient)
BINARY(floor_remainder)
BINARY(trunc_quotient)
BINARY(trunc_remainder)
BINARY(gcd)
BINARY(lcm)
BINARY(shifted_left)
BINARY(shifted_right)
#undef UNARY
#undef BINARY
template <class T> DEVICE bool signed_down(T x) { return x < 0; }
DEVICE bool complement(bool x) { return !x; }

/* ---- floats ---------------------------------------------------------------------------------------------- */

DEVICE float absolute(float x) { return fabsf(x); }
DEVICE double absolute(double x) { return fabs(x); }
DEVICE float power(float a, float b) { return powf(a, b); }
DEVICE double power(double a, double b) { return pow(a, b); }
DEVICE float round_even(float x) { return rintf(x); }
DEVICE double round_even(double x) { return rint(x); }
DEVICE float signed_like(float x, float y) { return copysignf(x, y); }
DEVICE double signed_like(double x, double y) { return copysign(x, y); }

/* The rest of a / b with the sign of b. */
template <class T> DEVICE T remainder_of_floats(T a, T b) {
    T rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
DEVICE float floor_remainder(float a, float b) { return remainder_of_floats(a, b); }
DEVICE double floor_remainder(double a, double b) { return remainder_of_floats(a, b); }

/* floor(a / b), from the exact rest so that the quotient's rounding cannot carry it over an integer. */
template <class T> DEVICE T quotient_of_floats(T a, T b) {
    T rest = fmod(a, b);
    T near = (a - rest) / b - (rest != 0 && (rest < 0) != (b < 0) ? T(1) : T(0));
    T whole = floor(near);
    whole += near - whole > T(0.5) ? T(1) : T(0);
    T result = near == 0 ? signed_like(T(0), a / b) : whole;
    return b == 0 ? a / b : result;
}
DEVICE float floor_quotient(float a, float b) { return quotient_of_floats(a, b); }
DEVICE double floor_quotient(double a, double b) { return quotient_of_floats(a, b); }

DEVICE float next_after(float a, float b) { return nextafterf(a, b); }
DEVICE double next_after(double a, double b) { return nextafter(a, b); }
/* Not named significand: that is a function of the host in glibc, which a double would match first. */
template <class T> DEVICE T significand_of(T x) {
    int power = 0;
    return x - x == 0 ? frexp(x, &power) : x;
}
template <class T> DEVICE T exponent_of(T x) {
    int power = 0;
    if (x - x == 0) frexp(x, &power);
    return T(power);
}

DEVICE float trunc_quotient(float a, float b) { return truncf(a / b); }
DEVICE double trunc_quotient(double a, double b) { return ::trunc(a / b); }
DEVICE float trunc_remainder(float a, float b) { return fmodf(a, b); }
DEVICE double trunc_remainder(double a, double b) { return fmod(a, b); }
DEVICE bool signed_down(float x) { return copysignf(1.0f, x) < 0; }
DEVICE bool signed_down(double x) { return copysign(1.0, x) < 0; }

/* erfinv, digamma, zeta, Bessel functions and incomplete gamma functions: the CPU's. */
#define NR_INLINE static DEVICE
#define NR_FUNCTION static DEVICE
#define NR_FMA(a, b, c) fma(a, b, c)
DEVICE double nr_log_f64(double x) { return log(x); }
DEVICE double nr_exp_f64(double x) { return exp(x); }
DEVICE double nr_erf_f64(double x) { return erf(x); }
DEVICE double nr_erfc_f64(double x) { return erfc(x); }
DEVICE double nr_log_wide(double x) { return log(x); }
DEVICE double nr_floor_f64(double x) { return ::floor(x); }
DEVICE double nr_round_even_f64(double x) { return rint(x); }
#include "../cpu/math_poly.h"
#include "../cpu/math_special.h"
#undef NR_INLINE
#undef NR_FUNCTION
DEVICE float inverse_erf(float x) { return nr_erfinv_f32(x); }
DEVICE double inverse_erf(double x) { return nr_erfinv_f64(x); }
template <class T> DEVICE T digamma(T x) { return T(nr_digamma_f64((double)x)); }
template <class T> DEVICE T zeta(T s, T q) { return T(nr_zeta_f64((double)s, (double)q)); }
template <class T> DEVICE T bessel_i0(T x) { return T(nr_i0_f64((double)x)); }
template <class T> DEVICE T bessel_i0e(T x) { return T(nr_i0e_f64((double)x)); }
template <class T> DEVICE T bessel_i1(T x) { return T(nr_i1_f64((double)x)); }
template <class T> DEVICE T bessel_i1e(T x) { return T(nr_i1e_f64((double)x)); }
template <class T> DEVICE T igamma(T a, T x) { return T(nr_igamma_f64((double)a, (double)x)); }
template <class T> DEVICE T igammac(T a, T x) { return T(nr_igammac_f64((double)a, (double)x)); }
template <class T> DEVICE T poisson(T rate, T u) { return T(nr_poisson_f64((double)rate, (double)u)); }

template <class T> DEVICE T sinc(T x) {
    double whole = rint((double)x), half = 0.5 * whole, pi = 3.1415926535897931;
    double sine = sin(pi * ((double)x - whole));
    return T(x == 0 ? 1.0 : (::floor(half) == half ? sine : -sine) / (pi * (double)x));
}

/* ---- every type ------------------------------------------------------------------------------------------ */

template <class T> DEVICE bool is_infinite(T x) { return is_floating<T> && x == x && x - x != 0; }
template <class T> DEVICE bool is_finite(T x) { return !is_floating<T> || x - x == 0; }
template <class T> DEVICE T exp_beside_1(T x) { return exp(x); }
template <class T> DEVICE T log1p_unit(T x) { return log1p(x); }

#define C(number) T(number)
#define SLOPE(name) template <class T> DEVICE T name(T x)
#define SLOPE_GELU
#include "../slopes.h"
#undef C

template <class A, class B> DEVICE auto larger(A a, B b) { return (a > b) | (a != a) ? a : b; }
template <class A, class B> DEVICE auto smaller(A a, B b) { return (a < b) | (a != a) ? a : b; }
template <class T> DEVICE T bounded(T x, T low, T high) { return smaller(larger(x, low), high); }

/* Rounding leaves integers as they are. */
template <class T> DEVICE T whole_floor(T x) { return x; }
template <class T> DEVICE T whole_ceil(T x) { return x; }
template <class T> DEVICE T whole_trunc(T x) { return x; }
template <class T> DEVICE T round_even(T x) { return x; }
DEVICE float whole_floor(float x) { return floorf(x); }
DEVICE double whole_floor(double x) { return ::floor(x); }
DEVICE float whole_ceil(float x) { return ceilf(x); }
DEVICE double whole_ceil(double x) { return ::ceil(x); }
DEVICE float whole_trunc(float x) { return truncf(x); }
DEVICE double whole_trunc(double x) { return ::trunc(x); }
/* From here on, in formulas: CUDA's functions would convert integers to double. */
#define floor(x) whole_floor(x)
#define ceil(x) whole_ceil(x)
#define trunc(x) whole_trunc(x)
#define finite(x) is_finite(x) /* the C library has a function of this name */
#define infinite(x) is_infinite(x)
#define erfinv(x) inverse_erf(x)

#endif
