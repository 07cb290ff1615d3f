/* math_special: erfinv, digamma, Hurwitz's zeta, modified Bessel functions and incomplete gamma functions, in double
 * for both floats; the GPU's formulas call them, too. Included by math.h and cuda/math.cuh alone, while log, pow ...
 * are still those of libm. Nothing here is hot enough to do without branches, but erfinv of float; math_gamma.h has
 * what else of float is.
 *
 * erfinv: powers of log(1 - x^2), as in Giles, "Approximating the erfinv function" (GPU Computing Gems 2, 2011), the
 * coefficients fitted for this library. digamma and zeta: recurrence, reflection and the series of Abramowitz and
 * Stegun, 6.3 and 23.2. The others name their sources; coefficients were computed for this library in 40 digits. */

/* erfinv(x) / x up to 1e-10 where w = -log(1 - x^2) is below 18, which holds every float, up to 2e-8 above. The first
 * serves where w is below 6.25. */
NR_INLINE double nr_erfinv_near(double w) {
    return NR_POLY(w - 3.125, 1.6536545627513413, 0.24015818197369257, -0.0060336715495891355, -0.0007407009932066108,
                   0.0001867352900082992, -1.3884072598340838e-05, -1.366100411131465e-06, 4.241770231606591e-07,
                   -2.8903385368495855e-08, -4.276840227285499e-09, 1.0312908568118246e-09, -3.3074819991290685e-11,
                   -1.2395756346819056e-11, 1.2154996167567294e-12);
}
NR_INLINE double nr_erfinv_ratio(double w) {
    double s = sqrt(w), u = s - 3.375, v = s - 5.1875;
    double far = NR_POLY(u, 3.2096201355300185, 1.006443428953525, 0.004168085397575949, -0.002735077358539005,
                         0.0016359491276487234, -0.00108481774003725, 0.0006626427910964427, -0.00030516558102116774,
                         7.091744440088842e-05, 2.5695739787122587e-05, -2.9096194348670357e-05, 8.00275316727271e-06);
    double farther = NR_POLY(v, 5.039331610953882, 1.0102275151627251, -0.00024643623349996074, -0.00016350304867783204,
                             6.443390378619584e-05, -1.6754174453746736e-05);
    far = s < 4.25 ? far : farther;
    return w < 6.25 ? nr_erfinv_near(w) : far;
}

#if defined(NR_HAS_FMA) && NR_HAS_FMA
/* The same in float, for |x| <= 0.999: erfinv(x) / x - 1 as a polynomial in w. */
NR_INLINE float nr_quick_erfinv_f32(float x) {
    float w = -nr_quick_log_f32(NR_FMA(-x, x, 1.0f));
    float p = NR_POLY(w, -0.11377307f, 0.232013434f, 0.0115512768f, -0.00234124297f, -0.000118164957f, 3.74153642e-05f,
                      7.31051341e-06f, -2.93122128e-06f, 3.86034856e-07f, -2.45322163e-08f, 6.36592223e-10f);
    return copysignf(NR_FMA(x, p, x), x); /* -0 stays */
}
#endif
NR_INLINE float nr_erfinv_f32(float x) {
    double y = (double)x, w = -nr_log_wide((1.0 - y) * (1.0 + y));
    double result = y * nr_erfinv_ratio(w);
    float near = (float)result;
#if defined(NR_HAS_FMA) && NR_HAS_FMA /* the GPU's are those of double alone */
    near = fabsf(x) <= 0.999f ? nr_quick_erfinv_f32(x) : near;
#endif
    return fabsf(x) == 1.0f ? x * INFINITY : near;
}

/* One step of Halley's method on erf(y) = x, or, where that is flat, on erfc(y) = 1 - x. */
NR_INLINE double nr_erfinv_f64(double x) {
    double size = fabs(x);
    double y = size * nr_erfinv_ratio(-nr_log_f64((1.0 - size) * (1.0 + size)));
    double miss = size < 0.5 ? nr_erf_f64(y) - size : (1.0 - size) - nr_erfc_f64(y);
    double step = miss * 0.88622692545275801 * nr_exp_f64(y * y);
    double result = copysign(y - step / (1.0 + y * step), x);
    result = size < 0x1p-30 ? x * 0.88622692545275801 : result;
    return size == 1.0 ? x * HUGE_VAL : result;
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

/* q^-s, of few factors without pow(). */
NR_FUNCTION double nr_inverse_power(double q, double s) {
    double square = q * q;
    if (s == 1.0) return 1.0 / q;
    if (s == 2.0) return 1.0 / square;
    if (s == 3.0) return 1.0 / (square * q);
    if (s == 4.0) return 1.0 / (square * square);
    return pow(q, -s);
}

/* The sum of (q + k)^-s over k = 0, 1, ... for q > 0 and s > 1, by the formula of Euler and Maclaurin. */
NR_FUNCTION double nr_zeta_right(double s, double q) {
    const double bernoulli[] = {/* B_2j / (2j)! */
                                0.083333333333333333,    -0.0013888888888888889,  3.3068783068783069e-05,
                                -8.2671957671957672e-07, 2.0876756987868099e-08,  -5.2841901386874932e-10,
                                1.3382536530684679e-11,  -3.3896802963225828e-13, 8.5860620562778446e-15,
                                -2.1748686985580619e-16, 5.5090028283602295e-18,  -1.3954464685812523e-19};
    if (q == HUGE_VAL) return 0;
    double sum = 0, enough = s < 190.0 ? 10.0 + s : 200.0;
    for (; q < enough; q += 1.0) sum += nr_inverse_power(q, s);
    double whole = nr_inverse_power(q, s - 1.0);
    if (whole == 0) return sum; /* before powers of s, which may be inf */
    double tail = whole / (s - 1.0) + 0.5 * whole / q, term = whole / q * s / q;
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

/* ---- modified Bessel functions of the first kind, and incomplete gamma functions ------------------------- */

/* The sum of c[k] T_k(t), t in [-1, 1], by Clenshaw's recurrence. */
NR_INLINE double nr_chebyshev(const double *c, int n, double t) {
    double b = 0, before = 0;
    for (int k = n - 1; k > 0; k--) {
        double next = 2.0 * t * b - before + c[k];
        before = b;
        b = next;
    }
    return t * b - before + c[0];
}
#define NR_CHEBYSHEV(c, t) nr_chebyshev(c, (int)(sizeof c / sizeof *c), t)

/* e^-|x| I_0(x): Chebyshev series up to 8, and of sqrt(x) e^-x I_0(x) in 1 / x beyond. */
NR_FUNCTION double nr_i0e_f64(double x) {
    const double near[] = {
        0.33839763720473803,    -0.3046826723431984,     0.17162090152220877,    -0.09490109704804764,
        0.04930528423967071,    -0.02373741480589947,    0.010546460394594998,   -0.004324309995050576,
        0.0016394756169413357,  -0.0005763755745385824,  0.00018850288509584165, -5.754195010082104e-05,
        1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06, -2.670793853940612e-07,
        6.046995022541919e-08,  -1.300025009986248e-08,  2.6598237246823866e-09, -5.189795601635263e-10,
        9.675809035373237e-11,  -1.726826291441556e-11,  2.95505266312964e-12,   -4.856446783111929e-13,
        7.676185498604936e-14,  -1.1685332877993451e-14, 1.715391285555133e-15,  -2.431279846547955e-16,
        3.3307945188222384e-17, -4.4153416464793395e-18};
    const double far[] = {
        0.4022452055070544,      0.0033691164782556943,   6.889758346916825e-05,   2.8913705208347567e-06,
        2.0489185894690638e-07,  2.266668990498178e-08,   3.3962320257083865e-09,  4.94060238822497e-10,
        1.1889147107846439e-11,  -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12,
        7.180124451383666e-13,   3.8527783827421426e-13,  1.54008621752141e-14,    -4.150569347287222e-14,
        -9.554846698828307e-15,  3.8116806693526224e-15,  1.7725601330565263e-15,  -3.425485619677219e-16,
        -2.8276239805165836e-16, 3.461222867697461e-17,   4.46562142029676e-17};
    double size = fabs(x);
    if (size <= 8.0) return NR_CHEBYSHEV(near, 0.25 * size - 1.0);
    return NR_CHEBYSHEV(far, 16.0 / size - 1.0) / sqrt(size);
}
NR_FUNCTION double nr_i0_f64(double x) {
    if (fabs(x) == HUGE_VAL) return HUGE_VAL;
    double half = exp(0.5 * fabs(x)); /* e^x may be infinite where the product is not */
    return half * nr_i0e_f64(x) * half;
}

/* e^-|x| I_1(x): the same, of e^-x I_1(x) / x and sqrt(x) e^-x I_1(x). */
NR_FUNCTION double nr_i1e_f64(double x) {
    const double near[] = {
        0.12629359322181682,    -0.17641651835783406,    0.1026436586898471,     -0.05294598120809499,
        0.024726449030626516,   -0.010564084894626197,   0.004156422944312888,   -0.0015135724506312532,
        0.0005122859561685758,  -0.00016176081582589674, 4.781565107550054e-05,  -1.3273163656039436e-05,
        3.4702513081376785e-06, -8.568720264695455e-07,  2.0032947535521353e-07, -4.445059128796328e-08,
        9.381537386495773e-09,  -1.8872497517228294e-09, 3.625590281552117e-10,  -6.663489723502027e-11,
        1.1736186298890901e-11, -1.9839743977649436e-12, 3.223793365945575e-13,  -5.042185504727912e-14,
        7.600684294735408e-15,  -1.1055969477353862e-15, 1.5536319577362005e-16, -2.111421214358166e-17};
    const double far[] = {
        0.38928811750914005,     -0.009761097491361469,   -0.00011058893876262371, -3.882564808877691e-06,
        -2.512236237870209e-07,  -2.6314688468895196e-08, -3.835380385964237e-09,  -5.589743462196584e-10,
        -1.8974958123505413e-11, 3.2526035830154884e-11,  1.4125807436613782e-11,  2.0356285441470896e-12,
        -7.198551776245908e-13,  -4.0835511110921974e-13, -2.1015418427726643e-14, 4.272440016711951e-14,
        1.0420276984128802e-14,  -3.8144030724370075e-15, -1.8803547755107825e-15, 3.3082023109209285e-16,
        2.96262899764595e-16,    -3.209525921993424e-17,  -4.6503053684893586e-17};
    double size = fabs(x);
    if (size <= 8.0) return x * NR_CHEBYSHEV(near, 0.25 * size - 1.0);
    return copysign(NR_CHEBYSHEV(far, 16.0 / size - 1.0) / sqrt(size), x);
}
NR_FUNCTION double nr_i1_f64(double x) {
    if (fabs(x) == HUGE_VAL) return x;
    double half = exp(0.5 * fabs(x));
    return half * nr_i1e_f64(x) * half;
}

/* log(x / a) - (x - a) / a = log(1 + t) - t: with r = t / (2 + t), r (2 (r^2 / 3 + r^4 / 5 + ...) - t) where that
 * cancels. */
NR_FUNCTION double nr_log_less(double x, double a) {
    double t = (x - a) / a;
    if (fabs(t) > 0.5) return log(x / a) - t;
    double r = t / (2.0 + t), square = r * r, power = square, sum = 0;
    for (int k = 3; k < 40; k += 2, power *= square) sum += power / k;
    return r * (2.0 * sum - t);
}

/* lgamma(1 + a), exact near 0. */
NR_FUNCTION double nr_lgamma_of_next(double a) {
    const double series[] = {-0.40119623277820043,    0.16727067710339055,     -0.008151062156675055,
                             0.0005513921569413862,   -4.247273995933618e-05,  3.4989272362412623e-06,
                             -3.0002291903784227e-07, 2.6410795542216655e-08,  -2.368301265823742e-09,
                             2.1530778450424467e-10,  -1.9783893359025602e-11, 1.8334866742241024e-12,
                             -1.7112096117811634e-13, 1.606579097278347e-14,   -1.5160095697542263e-15,
                             1.4368436843071982e-16,  -1.3670644981021515e-17};
    return a <= 0.5 ? a * NR_CHEBYSHEV(series, 4.0 * a - 1.0) : lgamma(1.0 + a);
}

/* x^a e^-x / gamma(a + 1). From 10 by Stirling's series, as in Loader, "Fast and accurate computation of binomial
 * probabilities" (2000). */
NR_FUNCTION double nr_gamma_term(double a, double x) {
    if (a < 10.0) return x < 600.0 ? pow(x, a) * exp(-x) / tgamma(a + 1.0) : exp(a * log(x) - x - lgamma(a + 1.0));
    double z = 1.0 / (a * a);
    double rest = NR_POLY(z, 0.083333333333333333, -0.0027777777777777778, 0.00079365079365079365,
                          -0.00059523809523809524, 0.00084175084175084175, -0.0019175269175269175) /
                  a;
    return exp(a * nr_log_less(x, a) - rest) / sqrt(6.2831853071795865 * a);
}

/* P(a, x), or Q = 1 - P for upper, near a >= 24: Temme's uniform expansion, DLMF 8.12.3 to 8.12.11. */
NR_FUNCTION double nr_gamma_uniform(double a, double x, bool upper) {
    const double d[] = {-0.3333333333333333,     0.08333333333333333,     -0.014814814814814815,
                        0.0011574074074074073,   0.0003527336860670194,   -0.0001787551440329218,
                        3.919263178522438e-05,   -2.185448510679992e-06,  -1.85406221071516e-06,
                        8.296711340953087e-07,   -1.7665952736826078e-07, 6.707853543401498e-09,
                        1.0261809784240309e-08,  -4.382036018453353e-09,  9.14769958223679e-10,
                        -0.001851851851851852,   -0.003472222222222222,   0.0026455026455026454,
                        -0.0009902263374485596,  0.00020576131687242798,  -4.018775720164609e-07,
                        -1.8098550334489977e-05, 7.64916091608111e-06,    -1.6120900894563446e-06,
                        4.647127802807434e-09,   1.378633446915721e-07,   -5.752545603517705e-08,
                        1.1951628599778148e-08,  0.004133597883597883,    -0.0026813271604938273,
                        0.0007716049382716049,   2.0093878600823047e-06,  -0.0001073665322636516,
                        5.2923448829120125e-05,  -1.2760635188618728e-05, 3.423578734096138e-08,
                        1.3721957309062934e-06,  -6.298992138380055e-07,  1.4280614206064242e-07,
                        -2.0477098421990866e-10, -1.409252991086752e-08,  0.0006494341563786008,
                        0.00022947209362139917,  -0.0004691894943952557,  0.00026772063206283885,
                        -7.561801671883977e-05,  -2.396505113867297e-07,  1.1082654115347302e-05,
                        -5.6749528269915965e-06, 1.4230900732435883e-06,  -2.7861080291528143e-11,
                        -1.6958404091930278e-07, 8.099464905388083e-08,   -0.0008618882909167117,
                        0.0007840392217200666,   -0.0002990724803031902,  -1.4638452578843418e-06,
                        6.641498215465122e-05,   -3.968365047179435e-05,  1.1375726970678419e-05,
                        2.507497226237533e-10,   -1.6954149536558305e-06, 8.907507532205309e-07,
                        -0.00033679855336635813, -6.972813758365857e-05,  0.0002772753244959392,
                        -0.00019932570516188847, 6.797780477937208e-05,   1.419062920643967e-07,
                        -1.3594048189768693e-05, 8.018470256334202e-06,   -2.291481176508095e-06,
                        0.0005313079364639922,   -0.0005921664373536939,  0.0002708782096718045,
                        7.902353232660328e-07,   -8.153969367561969e-05,  5.61168275310625e-05,
                        -1.8329116582843375e-05, 0.00034436760689237765,  5.171790908260592e-05,
                        -0.00033493161081142234, 0.0002812695154763237,   -0.00010976582244684731,
                        -0.0006526239185953094,  0.0008394987206720873,   -0.000438297098541721,
                        -0.0005967612901927463}; /* d_kn, row by row */
    const int end[] = {15, 28, 41, 53, 63, 72, 79, 84, 87, 88};
    double half = -nr_log_less(x, a), eta = copysign(sqrt(2.0 * half), x - a);
    double sum = 0;
    for (int k = (int)(sizeof end / sizeof *end) - 1; k >= 0; k--) {
        double c = 0;
        for (int n = end[k] - 1; n >= (k ? end[k - 1] : 0); n--) c = c * eta + d[n];
        sum = sum / a + c;
    }
    double rest = exp(-a * half) / sqrt(6.2831853071795865 * a) * sum, root = eta * sqrt(0.5 * a);
    return upper ? 0.5 * erfc(root) + rest : 0.5 * erfc(-root) - rest;
}

NR_FUNCTION double nr_gamma_lower_series(double a, double x, double tiny) {
    double term = 1, sum = 1, factor = nr_gamma_term(a, x);
    if (factor == 0) return 0;
    for (int n = 1; n < 1000 && term > tiny * sum; n++) sum += term *= x / (a + n);
    return factor * sum;
}

/* Q for small a and x, where 1 - P cancels. */
NR_FUNCTION double nr_gamma_upper_series(double a, double x, double tiny) {
    double term = 1, sum = 0, power = a * log(x) - nr_lgamma_of_next(a);
    for (int n = 1; n < 100; n++) {
        term *= -x / n;
        sum += term / (a + n);
        if (fabs(term) < tiny * fabs(sum)) break;
    }
    return -expm1(power) - exp(power) * a * sum;
}

/* Q by its continued fraction, DLMF 8.9.2: the convergents p / q by their recurrence, whose divisions wait for nothing. */
NR_FUNCTION double nr_gamma_upper_fraction(double a, double x, double tiny) {
    double factor = nr_gamma_term(a, x);
    if (factor == 0) return 0;
    double b = x + 1.0 - a, p = 1, q = b, p_before = 0, q_before = 1, whole = 1.0 / b;
    for (int n = 1; n < 1000; n++) {
        double top = n * (a - n), p_last = p, q_last = q, last = whole;
        b += 2.0;
        p = b * p + top * p_before;
        q = b * q + top * q_before;
        whole = p / q;
        if (fabs(whole - last) < 20.0 * tiny * whole) break;
        const double scale = q > 1e150 ? 1e-150 : 1.0;
        p *= scale, q *= scale, p_before = p_last * scale, q_before = q_last * scale;
    }
    return factor * a * whole;
}

/* The regularised P(a, x) = 1 / gamma(a) times the integral of t^(a - 1) e^-t from 0 to x; Q = 1 - P for upper. Which
 * method where: Cephes, igam.c (Moshier), with DiDonato and Morris, ACM TOMS 12 (1986), for large a. Series end at terms
 * below tiny. */
NR_FUNCTION double nr_gamma_incomplete(double a, double x, bool upper, double tiny) {
    const double one = upper ? 0.0 : 1.0;
    if (!(a >= 0 && x >= 0) || (a == 0 && x == 0) || (a == HUGE_VAL && x == HUGE_VAL)) return (double)NAN;
    if (a == 0 || x == HUGE_VAL) return one;
    if (x == 0 || a == HUGE_VAL) return 1.0 - one;
    if (a >= 24.0 && x > 0.66 * a && x < 1.4 * a) return nr_gamma_uniform(a, x, upper);
    if (!upper) return x > 1.0 && x > a ? 1.0 - nr_gamma_upper_fraction(a, x, tiny) : nr_gamma_lower_series(a, x, tiny);
    if (x > 1.1) return x < a ? 1.0 - nr_gamma_lower_series(a, x, tiny) : nr_gamma_upper_fraction(a, x, tiny);
    double most = x > 0.5 ? 1.1 * x : -0.4 / log(x);
    return a > most ? 1.0 - nr_gamma_lower_series(a, x, tiny) : nr_gamma_upper_series(a, x, tiny);
}
NR_FUNCTION double nr_igamma_f64(double a, double x) { return nr_gamma_incomplete(a, x, false, 1e-17); }
NR_FUNCTION double nr_igammac_f64(double a, double x) { return nr_gamma_incomplete(a, x, true, 1e-17); }

/* The count of a Poisson distribution that a uniform number u chooses: probabilities are subtracted from u, from that of
 * the likeliest count outwards, or of low rates from 0, until it is negative. Where rounding leaves a rest, it is the
 * first count. */
NR_FUNCTION double nr_poisson_f64(double rate, double u) {
    if (!(rate > 0)) return 0;
    const double first = rate < 10.0 ? 0 : nr_floor_f64(rate);
    double up = first, down = first;
    double above = exp(first > 0 ? first * log(rate) - rate - nr_lgamma_of_next(first) : -rate), below = above;
    for (u -= above; u >= 0 && (above > 0 || below > 0);) {
        above *= rate / ++up;
        if ((u -= above) < 0) return up;
        below *= down / rate;
        down -= 1;
        if ((u -= below) < 0) return down;
    }
    return first;
}

NR_FUNCTION float nr_poisson_f32(float rate, float u) { return (float)nr_poisson_f64((double)rate, (double)u); }
NR_FUNCTION float nr_igamma_f32(float a, float x) {
    return (float)nr_gamma_incomplete((double)a, (double)x, false, 1e-10);
}
NR_FUNCTION float nr_igammac_f32(float a, float x) {
    return (float)nr_gamma_incomplete((double)a, (double)x, true, 1e-10);
}
