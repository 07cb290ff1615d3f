/* math_f64: the part of math.h for double, and what math_f32.h computes in double. Included by math.h
 * alone, before the names exp, log ... become macros: so here they are still those of libm.
 *
 * exp and log reduce the argument as in Tang, "Table-driven implementation of the exponential function"
 * and "... of the logarithm function" (ACM TOMS 1989, 1990), tables replaced by polynomials fitted by
 * Remez exchange. Selects keep NaN: a comparison with NaN is false and the false arm holds the argument. */

NR_INLINE uint64_t nr_bits_f64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

NR_INLINE double nr_from_bits_f64(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Adding and taking away 1.5 2^52 rounds |x| < 2^51 to an integer, half to even; in between, the low
 * bits of the sum are that integer in two's complement. */
#define NR_MAGIC_F64 0x1.8p52

NR_INLINE double nr_nearest_f64(double x) { return (x + NR_MAGIC_F64) - NR_MAGIC_F64; }

/* 2^n for integers -1022 <= n <= 1023. */
NR_INLINE double nr_two_to_f64(double n) { return nr_from_bits_f64((nr_bits_f64(n + NR_MAGIC_F64) + 1023) << 52); }

/* e^r - 1 for |r| <= ln(2) / 2. */
NR_INLINE double nr_expm1_reduced_f64(double r) {
    double p = NR_POLY(r, 0.50000000000000056, 0.16666666666666685, 0.041666666666573426, 0.0083333333333146676,
                       0.0013888888932491819, 0.0001984126990290091, 2.4801504270162955e-05, 2.7557228038025912e-06,
                       2.7626408479405591e-07, 2.5114456284815899e-08);
    return NR_FMA(r * r, p, r);
}

/* x - n ln(2), n ln(2) taken in two parts of which the first is exact. */
NR_INLINE double nr_minus_ln2_f64(double x, double n) {
    return (x - n * 0.69314718055920821) - n * 7.3710025651677989e-13;
}

/* y 2^n, rounded once though 2^n itself be out of range. */
NR_INLINE double nr_scaled_f64(double y, double n) {
    double half = nr_nearest_f64(n * 0.5);
    return y * nr_two_to_f64(half) * nr_two_to_f64(n - half);
}

/* As nr_exp_f32. */
NR_INLINE double nr_exp_f64(double x) {
    double y = x < -746.0 ? 0.0 : x;
    y = y > 709.782712893384 ? 709.782712893384 : y;
    const bool low = y < -708.0;
    double t = NR_FMA(y, 1.4426950408889634, NR_MAGIC_F64), n = t - NR_MAGIC_F64;
    double r = NR_FMA(n, -7.3710025651677989e-13, NR_FMA(n, -0.69314718055920821, y));
    uint64_t bits = nr_bits_f64(1.0 + nr_expm1_reduced_f64(r)) + (nr_bits_f64(t) << 52) + (low ? 128ull << 52 : 0ull);
    double result = nr_from_bits_f64(bits) * (low ? 0x1p-128 : 1.0);
    result = x <= 709.782712893384 ? result : x + HUGE_VAL; /* NaN stays one */
    return x < -746.0 ? 0.0 : result;
}

NR_INLINE double nr_exp_beside_1_f64(double x) { return nr_exp_f64(x); }

NR_INLINE double nr_exp2_f64(double x) {
    x = x < -1076.0 ? -1076.0 : x;
    x = x > 1025.0 ? 1025.0 : x;
    double n = nr_nearest_f64(x);
    return nr_scaled_f64(1.0 + nr_expm1_reduced_f64((x - n) * 0.69314718055994531), n);
}

NR_INLINE double nr_expm1_f64(double x) {
    double y = x < -40.0 ? -40.0 : x;
    y = y > 710.0 ? 710.0 : y;
    double n = nr_nearest_f64(y * 1.4426950408889634);
    double p = nr_expm1_reduced_f64(nr_minus_ln2_f64(y, n));
    double half = nr_two_to_f64(n - 1.0); /* 2^n would overflow before the result does */
    double result = 2.0 * NR_FMA(half, p, half - 0.5);
    return fabs(x) < 0x1p-54 ? x : result; /* keeps -0 */
}

/* k ln(2) + log(1 + f), sqrt(1/2) <= 1 + f < sqrt(2), in powers of f / (2 + f). */
NR_INLINE double nr_log_reduced_f64(double k, double f) {
    double s = f / (2.0 + f), z = s * s, square = 0.5 * f * f;
    double tail = z * NR_POLY(z, 0.66666666666667307, 0.39999999999435404, 0.28571428738538585, 0.22222198915525462,
                              0.18183548540081448, 0.15314414635015616, 0.14792628296834404);
    return k * 0.69314718055920821 + (f - (square - (s * (square + tail) + k * 7.3710025651677989e-13)));
}

NR_INLINE double nr_log_f64(double x) {
    bool tiny = x < 0x1p-1022;
    uint64_t bits = nr_bits_f64(tiny ? x * 0x1p54 : x) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    double f = nr_from_bits_f64((bits & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    double k = nr_from_bits_f64((bits >> 52) | 0x4330000000000000u) - (0x1p52 + 1023.0); /* exponent by way of 2^52 */
    k = tiny ? k - 54.0 : k;
    double y = nr_log_reduced_f64(k, f);
    y = x < HUGE_VAL ? y : x;
    y = x == 0 ? -HUGE_VAL : y;
    return x < 0 ? (double)NAN : y;
}

/* As nr_log1p_f32. */
NR_INLINE double nr_log1p_f64(double x) {
    double sum = 1.0 + x, lost = x < 1.0 ? x - (sum - 1.0) : 1.0 - (sum - x);
    uint64_t bits = nr_bits_f64(sum) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    double f = nr_from_bits_f64((bits & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    double k = nr_from_bits_f64((bits >> 52) | 0x4330000000000000u) - (0x1p52 + 1023.0);
    double scale = nr_from_bits_f64(0x7fe0000000000000u - (bits & 0x7ff0000000000000u));
    double y = nr_log_reduced_f64(k, x < 0x1p60 ? NR_FMA(lost, scale, f) : f);
    y = x < HUGE_VAL ? y : x;
    y = x == -1.0 ? -HUGE_VAL : y;
    y = x == 0 ? x : y; /* -0 */
    return x < -1.0 ? (double)NAN : y;
}

NR_INLINE double nr_log1p_unit_f64(double x) {
    const bool upper = x > 0.41421356237309503;
    return nr_log_reduced_f64(upper ? 1.0 : 0.0, upper ? 0.5 * (x - 1.0) : x);
}

NR_INLINE double nr_tanh_f64(double x) {
    double y = fabs(x);
    y = y > 20.0 ? 20.0 : y;
    double t = nr_expm1_f64(2.0 * y);
    return copysign(t / (t + 2.0), x);
}

/* ---- by libm ----------------------------------------------------------------------------------- */

NR_INLINE double nr_log2_f64(double x) { return log2(x); }
NR_INLINE double nr_log10_f64(double x) { return log10(x); }
NR_INLINE double nr_sin_f64(double x) { return sin(x); }
NR_INLINE double nr_cos_f64(double x) { return cos(x); }
NR_INLINE double nr_tan_f64(double x) { return tan(x); }
NR_INLINE double nr_asin_f64(double x) { return asin(x); }
NR_INLINE double nr_acos_f64(double x) { return acos(x); }
NR_INLINE double nr_atan_f64(double x) { return atan(x); }
NR_INLINE double nr_atan2_f64(double y, double x) { return atan2(y, x); }
NR_INLINE double nr_sinh_f64(double x) { return sinh(x); }
NR_INLINE double nr_cosh_f64(double x) { return cosh(x); }
NR_INLINE double nr_asinh_f64(double x) { return asinh(x); }
NR_INLINE double nr_acosh_f64(double x) { return acosh(x); }
NR_INLINE double nr_atanh_f64(double x) { return atanh(x); }
NR_INLINE double nr_erf_f64(double x) { return erf(x); }
NR_INLINE double nr_erfc_f64(double x) { return erfc(x); }
NR_INLINE double nr_lgamma_f64(double x) {
    int sign; /* lgamma() itself would leave it in a global variable */
    return lgamma_r(x, &sign);
}
NR_INLINE double nr_hypot_f64(double a, double b) { return hypot(a, b); }
NR_INLINE double nr_power_f64(double a, double b) { return pow(a, b); }

/* ---- rounding, choosing ------------------------------------------------------------------------ */

NR_INLINE double nr_sqrt_f64(double x) { return sqrt(x); }
NR_INLINE double nr_absolute_f64(double x) { return fabs(x); }

#if defined(__SSE4_1__) || defined(__aarch64__) /* one instruction each */
NR_INLINE double nr_round_even_f64(double x) { return rint(x); }
NR_INLINE double nr_floor_f64(double x) { return floor(x); }
NR_INLINE double nr_ceil_f64(double x) { return ceil(x); }
NR_INLINE double nr_trunc_f64(double x) { return trunc(x); }
#else
NR_INLINE double nr_round_even_f64(double x) {
    double y = fabs(x);
    return copysign(y < 0x1p52 ? (y + 0x1p52) - 0x1p52 : y, x);
}
NR_INLINE double nr_floor_f64(double x) {
    double y = nr_round_even_f64(x);
    return y - (y > x ? 1.0 : 0.0);
}
NR_INLINE double nr_ceil_f64(double x) { return -nr_floor_f64(-x); }
NR_INLINE double nr_trunc_f64(double x) { return copysign(nr_floor_f64(fabs(x)), x); }
#endif

NR_INLINE bool nr_infinite_f64(double x) { return fabs(x) == HUGE_VAL; }
NR_INLINE bool nr_finite_f64(double x) { return fabs(x) < HUGE_VAL; }
/* A NaN on either side wins; the select before is one instruction, which gives b where one is NaN. */
NR_INLINE double nr_larger_f64(double a, double b) {
    double one = a > b ? a : b;
    return a != a ? a : one;
}
NR_INLINE double nr_smaller_f64(double a, double b) {
    double one = a < b ? a : b;
    return a != a ? a : one;
}
/* smaller(larger(x, low), high), with conditions that compilers do not merge into branches. */
NR_INLINE double nr_bounded_f64(double x, double low, double high) {
    double y = x > low ? x : low;
    y = y < high ? y : high;
    return isunordered(x, low) ? x + low : y;
}

/* fmod(a, b); with a fused multiply-add the rest is exact, one divisor off at most as the quotient is. */
NR_INLINE double nr_rest_f64(double a, double b) {
    double quotient = a / b, size = fabs(b);
    if (NR_HAS_FMA && (fabs(quotient) < 0x1p52) & (size < HUGE_VAL)) {
        double rest = copysign(1.0, a) * nr_fma_f64(-(double)(int64_t)quotient, b, a);
        return copysign(rest < 0 ? rest + size : rest, a);
    }
    return fmod(a, b);
}

/* take ? a : b without the branch that compilers make of it, which would be a guess for each element. */
NR_INLINE double nr_choose_f64(bool take, double a, double b) {
    uint64_t mask = (uint64_t)0 - (uint64_t)take;
    return nr_from_bits_f64((nr_bits_f64(a) & mask) | (nr_bits_f64(b) & ~mask));
}

/* The rest of a / b with the sign of b. */
NR_INLINE double nr_floor_remainder_f64(double a, double b) {
    double rest = nr_rest_f64(a, b);
    return nr_choose_f64((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest);
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

NR_INLINE double nr_silu_slope_f64(double x) {
    double s = 1.0 / (1.0 + nr_exp_f64(-x));
    return s * (1.0 + x * (1.0 - s));
}

/* sin(pi x) / (pi x); x is taken modulo 2 before it is multiplied. */
NR_INLINE double nr_sinc_f64(double x) {
    double whole = nr_round_even_f64(x), half = 0.5 * whole;
    double sine = sin(3.1415926535897931 * (x - whole));
    double wave = nr_floor_f64(half) == half ? sine : -sine;
    return x == 0 ? 1.0 : wave / (3.1415926535897931 * x);
}

/* tanh(log(1 + e^x)), which is 1 to the last bit from 20 on. */
NR_INLINE double nr_mish_gate_f64(double x) {
    double e = nr_exp_f64(x > 20.0 ? 20.0 : x), w = e * (e + 2.0);
    return w / (w + 2.0);
}

NR_INLINE double nr_mish_slope_f64(double x) {
    double y = x > 20.0 ? 20.0 : x, e = nr_exp_f64(y), w = e * (e + 2.0);
    double gate = w / (w + 2.0), rest = 2.0 / (w + 2.0); /* 1 - gate */
    return gate + y * (e / (e + 1.0)) * rest * (1.0 + gate);
}

/* The distribution function of the normal distribution. */
NR_INLINE double nr_normal_f64(double x) { return 0.5 * nr_erfc_f64(x * -0.70710678118654752440); }

/* The derivative of x normal(x), which is that function plus x times the density. */
NR_INLINE double nr_gelu_slope_f64(double x) {
    return nr_normal_f64(x) + x * (0.39894228040143267794 * nr_exp_f64(-0.5 * x * x));
}

/* x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3), for its derivative; beyond 20 that is 0 or 1. */
NR_INLINE double nr_gelu_tanh_slope_f64(double x) {
    double y = x > 20.0 ? 20.0 : x;
    y = y < -20.0 ? -20.0 : y;
    double square = y * y, twice = y * NR_FMA(square, 0.071354816272600248, 1.5957691216057308);
    double s = 1.0 / (1.0 + nr_exp_f64(-twice));
    return s + y * s * (1.0 - s) * NR_FMA(square, 0.21406444881780074, 1.5957691216057308);
}

NR_INLINE bool nr_signed_down_f64(double x) { return copysign(1.0, x) < 0; }
NR_INLINE double nr_copysign_f64(double x, double sign) { return copysign(x, sign); }
NR_INLINE double nr_trunc_quotient_f64(double a, double b) { return nr_trunc_f64(a / b); }
NR_INLINE double nr_trunc_remainder_f64(double a, double b) { return nr_rest_f64(a, b); }
