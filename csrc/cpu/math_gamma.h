/* math_gamma: lgamma, zeta and the modified Bessel functions of float, in double and without branches but for rare
 * arguments; included by math.h alone, after math_special.h, which has those of double. The polynomials interpolate at
 * Chebyshev nodes, to 1.7e-10 at most. */

/* lgamma(x) for normal x > 0, as in math_hard.h: from 3 on by Stirling's series, from 1 to 3 by a polynomial between
 * the zeros, below 1 as lgamma(x + 1) - log(x). */
NR_INLINE double nr_lgamma_right(double x) {
    const bool large = x >= 3.0, small = x <= 1.0; /* at 1, 0 of the other zero: no -0 */
    double t = small ? x - 1.0 : x - 2.0;          /* from the second zero */
    double high =
        NR_POLY(t, 0.0001798884008053009, -8.1824451191998674e-05, 4.3584988032127069e-05, -2.0244296438057547e-05,
                2.3377832871042997e-06, -1.0423813294330275e-06, 4.8487533968048041e-06, -2.3012771824866161e-06);
    double p =
        NR_POLY(t, 0.42278433506504504, -0.10031730165840978, 0.032965004891564564, -0.012384194230569828,
                0.0049985523000045133, -0.0021080884426724371, 0.00091607536529108029, -0.0004060405522927123, high);
    double near = t * (t + 1.0) * p, log_x = nr_log_wide(large || small ? x : 1.0);
    double inverse = 1.0 / x, z = inverse * inverse;
    double rest = NR_POLY(z, 0.083333333302401821, -0.0027777637763285708, 0.00079261127919281105,
                          -0.00056718139863679191, 0.00050453184981697863);
    double far = NR_FMA(x - 0.5, log_x, NR_FMA(rest, inverse, 0.91893853320467274 - x));
    return large ? far : small ? near - log_x : near;
}
NR_INLINE float nr_quick_lgamma_f32(float x) { return (float)nr_lgamma_right((double)x); }

/* lgamma(x) of all others too, by gamma(x) gamma(-x) = -pi / (x sin(pi x)); NaN where little is left of that sum, and
 * where x is not finite. */
NR_INLINE float nr_most_lgamma_f32(float x) {
    double y = fabs((double)x), quarters = y < 0x1p40 ? 2.0 * y : 0.0, whole = nr_nearest_f64(quarters);
    double sine = fabs(nr_wave(quarters - whole, nr_bits_f64(whole + NR_MAGIC_F64)));
    double right = nr_lgamma_right(y), log_sine = nr_log_wide(y * sine);
    double left = 1.1447298858494002 - log_sine - right;
    left = 16.0 * fabs(left) < fabs(log_sine) + fabs(right) ? (double)NAN : left;
    left = sine == 0 ? HUGE_VAL : left;
    return y < HUGE_VAL ? (float)(x > 0 ? right : left) : NAN;
}

NR_FUNCTION float nr_rest_lgamma_f32(float x) { return (float)nr_lgamma_f64((double)x); }

NR_INLINE float nr_lgamma_f32(float x) {
    float y = NR_HAS_FMA ? nr_most_lgamma_f32(x) : x >= 0x1p-126f && x < INFINITY ? nr_quick_lgamma_f32(x) : NAN;
    return y == y ? y : nr_rest_lgamma_f32(x);
}

/* zeta(2, q), the derivative of digamma, for q > 0: six terms where q is below 6, two of them a division, and the
 * series of Abramowitz and Stegun, 6.4.12. */
NR_INLINE bool nr_easy_trigamma_f32(float s, float q) { return (s == 2.0f) & (q > 0) & (q < INFINITY); }
NR_INLINE float nr_quick_trigamma_f32(float s, float number) {
    (void)s;
    double q = (double)number, sum = 0;
    const bool small = q < 6.0;
    for (int k = 0; k < 3; k++) {
        double a = (q + k) * (q + k), b = (q + 5 - k) * (q + 5 - k);
        sum += (a + b) / (a * b);
    }
    double x = 1.0 / (small ? q + 6.0 : q), z = x * x;
    double series = NR_POLY(z, 0.16666666666666667, -0.033333333333333333, 0.023809523809523810, -0.033333333333333333,
                            0.075757575757575758, -0.25311355311355311);
    double tail = NR_FMA(z * x, series, NR_FMA(0.5, z, x));
    return (float)(small ? sum + tail : tail);
}
NR_FUNCTION float nr_zeta_f32(float s, float q) {
    return nr_easy_trigamma_f32(s, q) ? nr_quick_trigamma_f32(s, q) : (float)nr_zeta_f64((double)s, (double)q);
}

/* I_0 and I_1 / x up to 8, in z = x^2. */
NR_INLINE double nr_i0_near(double z) {
    return NR_POLY(z, 1.0000000000058611, 0.24999999996905267, 0.015625000027048107, 0.00043402776849957883,
                   6.7816856792870155e-06, 6.7816665600435101e-08, 4.7096211527589059e-10, 2.4022716027732928e-12,
                   9.4025160610592267e-15, 2.8620200600087968e-17, 7.7339602254171403e-20, 1.0574942023526734e-22,
                   4.7732171658938447e-25);
}
NR_INLINE double nr_i1_near(double z) {
    return NR_POLY(z, 0.49999999999050082, 0.062500000042734177, 0.0026041666348843476, 5.4253481467278973e-05,
                   6.7816701554947675e-07, 5.6515259391106224e-09, 3.3632455960175409e-11, 1.5042654553973722e-13,
                   5.1533658912037023e-16, 1.5456262162831077e-18, 2.3291947609270553e-21, 1.1460832451641068e-23);
}
/* sqrt(x) e^-x I_0(x) and sqrt(x) e^-x I_1(x) for x from 8 on, in u = 1 / x. */
NR_INLINE double nr_i0_far(double u) {
    return NR_POLY(u, 0.39894228034354307, 0.049867840549602679, 0.028041472408219491, 0.029795531189729222,
                   0.027148996777109424, 0.37372990791265248, -2.1243656474720254, 9.0385684603424075);
}
NR_INLINE double nr_i1_far(double u) {
    return NR_POLY(u, 0.39894228046785835, -0.14960341881409817, -0.046740560043871636, -0.041565394036402387,
                   -0.03749649809320469, -0.43168450284335902, 2.3845738716666438, -10.173210441691838);
}

/* near and far of |x|, each with the argument clamped to its range; scaled: times e^-|x|. */
#define NR_BESSEL(name, odd)                                                                       \
    NR_INLINE double nr_##name##_wide(double x, bool scaled) {                                     \
        double size = fabs(x), less = size < 8.0 ? size : 8.0, more = size < 8.0 ? 8.0 : size;     \
        double near = nr_##name##_near(less * less) * ((odd) ? less : 1.0), u = 1.0 / more;        \
        double far = nr_##name##_far(u) * sqrt(u), e = nr_exp_wide(scaled ? -less : more);         \
        double result = size < 8.0 ? (scaled ? near * e : near) : scaled ? far : far * e;          \
        result = size < HUGE_VAL || scaled ? result : size;                                        \
        result = x == x ? result : x;                                                              \
        return (odd) ? copysign(result, x) : result;                                               \
    }                                                                                              \
    NR_INLINE float nr_##name##_f32(float x) { return (float)nr_##name##_wide((double)x, false); } \
    NR_INLINE float nr_##name##e_f32(float x) { return (float)nr_##name##_wide((double)x, true); }
NR_BESSEL(i0, false)
NR_BESSEL(i1, true)
#undef NR_BESSEL
