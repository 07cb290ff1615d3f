/* math_double: functions of double in vectors, where libm has one number at a time; included by math.h alone, after
 * math_f64.h. They need fused multiply-adds, which give what a product or a quotient loses; without them, and for rare
 * arguments of powers, libm's serve.
 *
 * A sum "high + low" of two doubles holds what one would round away: Dekker, "A floating-point technique for extending
 * the available precision" (1971). The polynomials interpolate at Chebyshev nodes. */

/* log(sum + lost), lost being small, as in log1p(). */
NR_INLINE double nr_log_of_sum(double sum, double lost) {
    uint64_t bits = nr_bits_f64(sum) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    double f = nr_from_bits_f64((bits & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0, k = nr_exponent_f64(bits);
    double scale = nr_from_bits_f64(((uint64_t)2046 << 52) - (bits & (uint64_t)2047 << 52));
    return nr_log_reduced_f64(k, NR_FMA(lost, scale, f));
}

/* log(1 + t + low). */
NR_INLINE double nr_log1p_of_sum(double t, double low) {
    double sum = 1.0 + t, lost = t < 1.0 ? t - (sum - 1.0) : 1.0 - (sum - t);
    return nr_log_of_sum(sum, lost + low);
}

/* log(1 + t) with t = a + a^2 / (1 + sqrt(1 + a^2)); of large a log(2 a). */
NR_INLINE double nr_asinh_f64(double x) {
    if (!NR_HAS_FMA) return asinh(x);
    double a = fabs(x), less = a > 0x1p27 ? 1.0 : a, z = less * less, more = z / (1.0 + sqrt(1.0 + z)), t = less + more;
    double near = nr_log1p_of_sum(t, (less - t) + more), far = nr_log_f64(a) + 0.69314718055994531;
    return copysign(a > 0x1p27 ? far : near, x);
}

/* log(1 + t + s) with t = x - 1, which is exact, and s = sqrt(t (x + 1)). */
NR_INLINE double nr_acosh_f64(double x) {
    if (!NR_HAS_FMA) return acosh(x);
    double less = x > 0x1p27 ? 1.0 : x, t = less - 1.0, c = less + 1.0, v = t * c;
    double v_low = NR_FMA(t, c, -v) + t * ((less - c) + 1.0), s = sqrt(v);
    double s_low = v == 0 ? 0.0 : 0.5 * (NR_FMA(-s, s, v) + v_low) / s, w = s + t;
    double near = nr_log1p_of_sum(w, (s - w) + t + s_low), far = nr_log_f64(x) + 0.69314718055994531;
    return x < 1.0 ? (double)NAN : x > 0x1p27 ? far : near;
}

/* The angle is m quarters of pi and one of at most pi / 8, of the quotient of the smaller coordinate and the larger, or
 * about 1 of their difference and sum. */
NR_INLINE double nr_atan2_f64(double y, double x) {
    if (!NR_HAS_FMA) return atan2(y, x);
    double p = fabs(y), q = fabs(x), least = p < q ? p : q, most = p < q ? q : p;
    double scale = most > 0x1p1000 ? 0x1p-100 : most < 0x1p-900 ? 0x1p100 : 1.0;
    least = least == HUGE_VAL ? 1.0 : least * scale; /* both are infinite */
    most = least == 1.0 && most == HUGE_VAL && p == q ? 1.0 : most * scale;
    const bool middle = least > 0.41421356237309503 * most, over = p > q, left = copysign(1.0, x) < 0;
    double top = middle ? least - most : least, bottom = middle ? least + most : most;
    double r = most == 0 ? 0.0 : top / bottom, z = r * r;
    double w = r * z * NR_ATAN_TAIL(z), m = middle ? 1.0 : 0.0;
    m = over ? 2.0 - m : m;
    m = left ? 4.0 - m : m;
    double sign = over != left ? -1.0 : 1.0, high = m * 0.78539816339744828;
    double low = NR_FMA(m, 0.78539816339744828, -high) + m * 3.061616997868383e-17;
    double angle = copysign(high + NR_FMA(sign, r, NR_FMA(sign, w, low)), y);
    return ((y != y) | (x != x)) ? x + y : angle;
}

/* erfc(y) for y >= 0.6: e^(-y^2) p(t) / (y + 2) with t = (y - 2) / (y + 2); the rounding errors of the square, the sum
 * and the quotient are added to the exponent. */
NR_INLINE double nr_erfc_tail(double y) {
    y = y > 28.0 ? 28.0 : y;
    double d = y + 2.0, d_low = 2.0 - (d - y), inverse = 1.0 / d, t = (y - 2.0) * inverse, square = y * y;
    double rest = NR_FMA(-d, inverse, 1.0) - d_low * inverse, t_low = NR_FMA(t, rest, NR_FMA(y - 2.0, inverse, -t));
    double lost = NR_FMA(-0.6, t_low, rest - NR_FMA(y, y, -square)); /* p'(t) is about -0.6 p(t) */
    double high =
        NR_POLY(t, 0.00014447094444020424, 3.4148842813303081e-05, -2.1697535702655428e-05, -1.6119970629545186e-05,
                -1.1202176685440605e-06, 3.6372329757351314e-06, 1.9893907538282523e-06, 2.6700712927060477e-08,
                -5.5833489945895917e-07, -3.7642661288335963e-07, 4.2342906626632998e-09, 1.674159795443089e-07,
                2.8059692584682497e-08, -3.5754234146095937e-08);
    double q = NR_POLY(t, -0.68716068441381062, 0.27947209255605487, -0.036442231506877872, -0.021510661889503454,
                       0.0064791850676942375, 0.0030906120600047485, -0.00083729606175274448, -0.00066307352249565441,
                       3.4371432722573872e-05, high);
    double more = t * q, p = 1.021582705242023 + more;
    double p_low = (((1.021582705242023 - p) + more) + NR_FMA(t, q, -more)) - 1.7104089160663784e-17;
    double n = nr_nearest_f64(square * -1.4426950408889634);
    double r = NR_FMA(n, -7.3710025651677989e-13, NR_FMA(n, -0.69314718055920821, -square));
    double e = nr_expm1_reduced_f64(r), w = p * inverse, w_low = NR_FMA(p, inverse, -w) + p_low * inverse;
    return nr_scaled_f64(w + NR_FMA(w, NR_FMA(lost, 1.0 + e, e), w_low * (1.0 + e)), n);
}
/* erf(x) = x + x p(x^2) for |x| < 0.65. */
NR_INLINE double nr_erf_near(double x) {
    double z = x * x;
    double p = NR_POLY(z, 0.12837916709551259, -0.37612638903183748, 0.11283791670954922, -0.026866170645055833,
                       0.0052239776240112822, -0.0008548326864938169, 0.00012055322020987733, -1.4925162650000336e-05,
                       1.6448125627259076e-06, -1.6114976985940375e-07, 1.2220982884178646e-08);
    return NR_FMA(x, p, x);
}
NR_INLINE double nr_erf_f64(double x) {
    if (!NR_HAS_FMA) return erf(x);
    double y = fabs(x);
    return y < 0.6 ? nr_erf_near(x) : copysign(1.0 - nr_erfc_tail(y), x);
}
NR_INLINE double nr_erfc_f64(double x) {
    if (!NR_HAS_FMA) return erfc(x);
    double tail = nr_erfc_tail(fabs(x));
    return x < 0.6 && x > -0.6 ? 1.0 - nr_erf_near(x) : x < 0 ? 2.0 - tail : tail;
}

/* a^b = e^(b log a) for normal a > 0 and |b| up to 2^20: log a in two parts, by powers of s = f / (2 + f). */
NR_INLINE bool nr_easy_power_f64(double a, double b) {
    return NR_HAS_FMA && ((a >= 0x1p-1022) & (a < HUGE_VAL) & (fabs(b) <= 0x1p20));
}
NR_INLINE double nr_quick_power_f64(double a, double b) {
    double k, f = nr_split_f64(a, &k), d = 2.0 + f, inverse = 1.0 / d;
    double s = f * inverse, s_low = (NR_FMA(-s, d, f) - s * (f - (d - 2.0))) * inverse;
    double z = s * s, z_low = NR_FMA(s, s, -z) + 2.0 * s * s_low;
    double more = z * NR_POLY(z, 0.4, 0.28571428571428571, 0.22222222222222222, 0.18181818181818182,
                              0.15384615384615385, 0.13333333333333333, 0.11764705882352941, 0.10526315789473684,
                              0.095238095238095238, 0.086956521739130435, 0.08);
    double p = 0.66666666666666663 + more, p_low = (0.66666666666666663 - p) + more + 3.7007434154171886e-17;
    double u = z * p, u_low = NR_FMA(z, p, -u) + (z * p_low + z_low * p);
    double v = 2.0 + u, v_low = ((2.0 - v) + u) + u_low;
    double y = s * v, y_low = NR_FMA(s, v, -y) + (s * v_low + s_low * v), whole = k * 0.69314718055920821;
    double log_a = whole + y, log_low = ((whole - log_a) + y) + NR_FMA(k, 7.3710025651677989e-13, y_low);
    double x = b * log_a, x_low = NR_FMA(b, log_a, -x) + b * log_low;
    x = x > 720.0 ? 720.0 : x;
    x = x < -760.0 ? -760.0 : x;
    double n = nr_nearest_f64(x * 1.4426950408889634);
    double r = NR_FMA(n, -7.3710025651677989e-13, NR_FMA(n, -0.69314718055920821, x)) + x_low;
    return nr_scaled_f64(nr_exp_reduced_f64(r), n);
}
NR_INLINE double nr_power_f64(double a, double b) {
    return nr_easy_power_f64(a, b) ? nr_quick_power_f64(a, b) : pow(a, b);
}
