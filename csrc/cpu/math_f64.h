/* math_f64: the part of math.h for double, and what math_f32.h computes in double. Included by math.h alone, before the
 * names exp, log ... become macros: so here they are still those of libm. The template math_float.h holds what float
 * has alike. */

#define T double
#define F(name) nr_##name##_f64
#include "math_float.h"
#define NR_MAGIC_F64 0x1.8p52

NR_INLINE double nr_expm1_reduced_f64(double r) {
    double p = NR_POLY(r, 0.50000000000000056, 0.16666666666666685, 0.041666666666573426, 0.0083333333333146676,
                       0.0013888888932491819, 0.0001984126990290091, 2.4801504270162955e-05, 2.7557228038025912e-06,
                       2.7626408479405591e-07, 2.5114456284815899e-08);
    return NR_FMA(r * r, p, r);
}

NR_INLINE double nr_exp_reduced_f64(double r) { return 1.0 + nr_expm1_reduced_f64(r); }

/* In powers of f / (2 + f). */
NR_INLINE double nr_log_reduced_f64(double k, double f) {
    double s = f / (2.0 + f), z = s * s, square = 0.5 * f * f;
    double tail = z * NR_POLY(z, 0.66666666666667307, 0.39999999999435404, 0.28571428738538585, 0.22222198915525462,
                              0.18183548540081448, 0.15314414635015616, 0.14792628296834404);
    return k * 0.69314718055920821 + (f - (square - (s * (square + tail) + k * 7.3710025651677989e-13)));
}

/* The products with k are exact, but for the last few bits of the other summand. */
NR_INLINE double nr_log_parts_f64(double k, double f) { return nr_log_reduced_f64(k, f); }
NR_INLINE double nr_log2_parts_f64(double k, double f) {
    double y = nr_log_reduced_f64(0.0, f);
    return NR_FMA(y, 1.4426950408889634, NR_FMA(y, 2.0355273740931033e-17, k));
}
NR_INLINE double nr_log10_parts_f64(double k, double f) {
    double y = nr_log_reduced_f64(0.0, f);
    return NR_FMA(k, 0.30102999566383914, NR_FMA(y, 0.43429448190325182, k * 1.4205023227266099e-13));
}

/* By way of 2^52: not every instruction set converts 64-bit integers. */
NR_INLINE double nr_exponent_f64(uint64_t bits) {
    return nr_from_bits_f64((bits >> 52) | 0x4330000000000000u) - (0x1p52 + 1023.0);
}

NR_INLINE double nr_exp_beside_1_f64(double x) { return nr_exp_f64(x); }
NR_INLINE double nr_exp_below_f64(double x) { return nr_exp_f64(x); }

NR_INLINE double nr_tanh_f64(double x) {
    double y = fabs(x);
    y = y > 20.0 ? 20.0 : y;
    double t = nr_expm1_f64(2.0 * y);
    return copysign(t / (t + 2.0), x);
}

/* e^x / 2 for x >= 0, which may be finite where e^x is not. */
NR_INLINE double nr_half_exp(double x) {
    double y = 710.4758600739439 < x ? 710.4758600739439 : x;
    double t = NR_FMA(y, 1.4426950408889634, NR_MAGIC_F64), n = t - NR_MAGIC_F64;
    double r = NR_FMA(n, -7.3710025651677989e-13, NR_FMA(n, -0.69314718055920821, y));
    double half = nr_from_bits_f64(nr_bits_f64(nr_exp_reduced_f64(r)) + (nr_bits_f64(t) << 52) - ((uint64_t)1 << 52));
    return x <= 710.4758600739439 ? half : x + HUGE_VAL;
}
NR_INLINE double nr_sinh_f64(double x) {
    double a = fabs(x), z = a * a, half = nr_half_exp(a);
    double p = NR_POLY(z, 0.16666666666666667, 0.0083333333333333333, 0.00019841269841269841, 2.7557319223985891e-06,
                       2.5052108385441719e-08, 1.6059043836821615e-10, 7.6471637318198165e-13, 2.8114572543455208e-15,
                       8.2206352466243297e-18);
    return copysign(a < 1.0 ? NR_FMA(a * z, p, a) : half - 0.25 / half, x);
}
NR_INLINE double nr_cosh_f64(double x) {
    double half = nr_half_exp(fabs(x));
    return half + 0.25 / half;
}
/* log1p(2a / (1 - a)) / 2. The quotient is 2a + 2a a / (1 - a): the second term, with most of the rounding, is the
 * smaller one for a < 1/2, where the logarithm does not reduce errors much. NaN beyond 1. */
NR_INLINE double nr_atanh_f64(double x) {
    double a = fabs(x), twice = 2.0 * a, quotient = twice + twice * a / (1.0 - a);
    return copysign(0.5 * nr_log1p_f64(nr_choose_f64(a > 1.0, -2.0, quotient)), x);
}

/* ---- by libm ----------------------------------------------------------------------------------- */

NR_INLINE double nr_lgamma_f64(double x) { return nr_system_lgamma(x); }
NR_INLINE double nr_hypot_f64(double a, double b) { return hypot(a, b); }

/* ---- remainders -------------------------------------------------------------------------------- */

/* fmod(a, b); with a fused multiply-add the rest is exact, one divisor off at most as the quotient is. */
NR_INLINE double nr_rest_f64(double a, double b) {
    double quotient = a / b, size = fabs(b);
    if (NR_HAS_FMA && (fabs(quotient) < 0x1p52) & (size < HUGE_VAL)) {
        double rest = copysign(1.0, a) * nr_fma_f64(-(double)(int64_t)quotient, b, a);
        return copysign(rest < 0 ? rest + size : rest, a);
    }
    return fmod(a, b);
}

/* floor(a / b), from the exact rest so that the quotient's rounding cannot carry it over an integer. */
NR_INLINE double nr_floor_quotient_f64(double a, double b) {
    double rest = nr_rest_f64(a, b);
    double near = (a - rest) / b - (double)((rest != 0) & ((rest < 0) != (b < 0)));
    double whole = nr_floor_f64(near);
    whole += (double)(near - whole > 0.5);
    double quotient = nr_choose_f64(near == 0, copysign(0.0, a / b), whole);
    return b == 0 ? a / b : quotient;
}
