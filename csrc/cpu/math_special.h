/* math_special: erfinv, digamma and Hurwitz's zeta, in double for both floats; the GPU's formulas call them, too.
 * Included by math.h and cuda/math.cuh alone, while log, pow ... are still those of libm. Nothing here is hot enough
 * to do without branches, but erfinv of float.
 *
 * erfinv: powers of log(1 - x^2), as in Giles, "Approximating the erfinv function" (GPU Computing Gems 2, 2011), the
 * coefficients fitted for this library. digamma and zeta: recurrence, reflection and the series of Abramowitz and
 * Stegun, 6.3 and 23.2. */

/* erfinv(x) / x up to 1e-10 where w = -log(1 - x^2) is below 18, which holds every float, up to 2e-8 above. */
NR_INLINE double nr_erfinv_ratio(double w) {
    double s = sqrt(w), t = w - 3.125, u = s - 3.375, v = s - 5.1875;
    double near = NR_POLY(t, 1.6536545627513413, 0.24015818197369257, -0.0060336715495891355, -0.0007407009932066108,
                          0.0001867352900082992, -1.3884072598340838e-05, -1.366100411131465e-06, 4.241770231606591e-07,
                          -2.8903385368495855e-08, -4.276840227285499e-09, 1.0312908568118246e-09,
                          -3.3074819991290685e-11, -1.2395756346819056e-11, 1.2154996167567294e-12);
    double far = NR_POLY(u, 3.2096201355300185, 1.006443428953525, 0.004168085397575949, -0.002735077358539005,
                         0.0016359491276487234, -0.00108481774003725, 0.0006626427910964427, -0.00030516558102116774,
                         7.091744440088842e-05, 2.5695739787122587e-05, -2.9096194348670357e-05, 8.00275316727271e-06);
    double farther = NR_POLY(v, 5.039331610953882, 1.0102275151627251, -0.00024643623349996074, -0.00016350304867783204,
                             6.443390378619584e-05, -1.6754174453746736e-05);
    far = s < 4.25 ? far : farther;
    return w < 6.25 ? near : far;
}

NR_INLINE float nr_erfinv_f32(float x) {
    double y = (double)x, w = -nr_log_f64((1.0 - y) * (1.0 + y));
    double result = y * nr_erfinv_ratio(w);
    return fabsf(x) == 1.0f ? x * INFINITY : (float)result;
}

/* One step of Halley's method on erf(y) = x, or, where that is flat, on erfc(y) = 1 - x. */
NR_FUNCTION double nr_erfinv_f64(double x) {
    double size = fabs(x);
    if (size == 1.0) return x * HUGE_VAL;
    if (size < 0x1p-30) return x * 0.88622692545275801;
    double y = size * nr_erfinv_ratio(-nr_log_f64((1.0 - size) * (1.0 + size)));
    double miss = size < 0.5 ? erf(y) - size : (1.0 - size) - erfc(y);
    double step = miss * 0.88622692545275801 * exp(y * y);
    return copysign(y - step / (1.0 + y * step), x);
}

/* In [1, 2] a polynomial keeps the zero exact, other numbers below 10 are shifted there. */
NR_FUNCTION double nr_digamma_f64(double x) {
    if (x == 0) return copysign(HUGE_VAL, -x);
    double sum = 0;
    if (x < 0) {
        double fraction = x - nr_round_even_f64(x);
        if (fraction == 0) return (double)NAN;
        sum = -3.1415926535897931 / tan(3.1415926535897931 * fraction);
        x = 1.0 - x;
    }
    if (x >= 10.0) {
        double z = 1.0 / (x * x);
        double series =
            z * NR_POLY(z, 0.083333333333333333, -0.0083333333333333333, 0.003968253968253968, -0.0041666666666666667,
                        0.0075757575757575758, -0.021092796092796093, 0.083333333333333333);
        return sum + (nr_log_f64(x) - 0.5 / x - series);
    }
    for (; x > 2.0; sum += 1.0 / x) x -= 1.0;
    if (x < 1.0) {
        sum -= 1.0 / x;
        x += 1.0;
    }
    double t = x - 1.5;
    double p = NR_POLY(t, 3.5664595351193733, 2.2156206743218543, 0.15858050680892885, -0.017975945770460317,
                       0.003130508724381103, -0.0006580250126632884, 0.00015331861475079874, -3.803564595401686e-05,
                       9.828447678661704e-06, -2.610769625967733e-06, 7.055722175919432e-07, -1.9332677088625828e-07,
                       5.766008646536508e-08, -1.6565597686561726e-08);
    return sum + ((x - 1.4616321449683622) - 9.549995429965697e-17) * p / (x * (x + 1.0));
}
NR_FUNCTION float nr_digamma_f32(float x) { return (float)nr_digamma_f64((double)x); }

/* The sum of (q + k)^-s over k = 0, 1, ... for q > 0 and s > 1, by the formula of Euler and Maclaurin. */
NR_FUNCTION double nr_zeta_right(double s, double q) {
    const double bernoulli[] = {/* B_2j / (2j)! */
                                0.083333333333333333,    -0.0013888888888888889,  3.3068783068783069e-05,
                                -8.2671957671957672e-07, 2.0876756987868099e-08,  -5.2841901386874932e-10,
                                1.3382536530684679e-11,  -3.3896802963225828e-13, 8.5860620562778446e-15,
                                -2.1748686985580619e-16, 5.5090028283602295e-18,  -1.3954464685812523e-19};
    if (q == HUGE_VAL) return 0;
    double sum = 0, enough = s < 190.0 ? 10.0 + s : 200.0;
    for (; q < enough; q += 1.0) sum += pow(q, -s);
    double whole = pow(q, 1.0 - s), tail = whole / (s - 1.0) + 0.5 * whole / q, term = whole / q * s / q;
    for (int j = 0; j < (int)(sizeof bernoulli / sizeof *bernoulli); j++) {
        tail += bernoulli[j] * term;
        term *= (s + 2 * j + 1) * (s + 2 * j + 2) / (q * q);
    }
    return sum + tail;
}

/* Left of 0, s must be whole: terms there are, but for their sign, those of a sum from `part` to -q. */
NR_FUNCTION double nr_zeta_f64(double s, double q) {
    if (s != s || q != q) return s + q;
    if (s <= 1.0) return s == 1.0 ? HUGE_VAL : (double)NAN;
    if (q > 0) return nr_zeta_right(s, q);
    double part = -q - nr_floor_f64(-q);
    if (part == 0) return HUGE_VAL;
    if (part != part || s != nr_floor_f64(s)) return (double)NAN;
    double left = nr_zeta_right(s, part) - nr_zeta_right(s, 1.0 - q);
    return nr_zeta_right(s, 1.0 - part) + (nr_floor_f64(0.5 * s) == 0.5 * s ? left : -left);
}
NR_FUNCTION float nr_zeta_f32(float s, float q) { return (float)nr_zeta_f64((double)s, (double)q); }
