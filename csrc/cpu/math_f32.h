/* math_f32: the part of math.h for float. The functions that networks call most use float arithmetic only; the others
 * are computed in double, whose 29 more bits allow short formulas and nearly always correct rounding. Included by
 * math.h only, after math_f64.h. The template math_float.h has what float and double share.
 *
 * Ranges are reduced as in Cody and Waite, "Software Manual for the Elementary Functions" (1980); the polynomials were
 * fitted by Remez exchange. */

#define T float
#define F(name) nr_##name##_f32
#include "math_float.h"
#define NR_MAGIC_F32 0x1.8p23f

/* ---- in float ---------------------------------------------------------------------------------- */

NR_INLINE float nr_expm1_reduced_f32(float r) {
    float p = NR_POLY(r, 0.5f, 0.166666672f, 0.041666355f, 0.00833327323f, 0.00139410654f, 0.000199141534f);
    return NR_FMA(r * r, p, r);
}

NR_INLINE float nr_exp_reduced_f32(float r) {
    return NR_POLY(r, 1.0f, 1.0f, 0.49999994f, 0.166665211f, 0.0416682623f, 0.00836867467f, 0.00138210575f);
}

NR_INLINE float nr_log_reduced_f32(float k, float f) {
    float square = f * f;
    float p = NR_POLY(f, 0.333333164f, -0.250008076f, 0.200022846f, -0.166245997f, 0.141812488f, -0.131284103f,
                      0.128811792f, -0.0785992369f);
    return k * 0.693145752f + (f + (NR_FMA(f * square, p, k * 1.42860682e-06f) - 0.5f * square));
}

/* The same in fewer operations, to the base whose logarithm is 1 / scale: log(1 + f) = f + f^2 tail(f); ln(2) and
 * log10(2) in two parts, of which the first have 16 bits. */
NR_INLINE float nr_log_tail_f32(float f, double scale) {
    return NR_POLY(f, (float)(-0.499999881 * scale), (float)(0.333333254 * scale), (float)(-0.250016004 * scale),
                   (float)(0.200019702 * scale), (float)(-0.166087285 * scale), (float)(0.141820446 * scale),
                   (float)(-0.132459983 * scale), (float)(0.129028663 * scale), (float)(-0.0761193037 * scale));
}
NR_INLINE float nr_log_parts_f32(float k, float f) {
    return NR_FMA(k, 0.693145752f, NR_FMA(f * f, nr_log_tail_f32(f, 1.0), NR_FMA(k, 1.42860682e-06f, f)));
}
NR_INLINE float nr_log2_parts_f32(float k, float f) {
    float square = f * f, lost = NR_FMA(f, f, -square), tail = nr_log_tail_f32(f, 1.4426950408889634);
    return k + NR_FMA(f, 1.44269502f, NR_FMA(square, tail, NR_FMA(lost, tail, f * 1.92596303e-08f)));
}
NR_INLINE float nr_log10_parts_f32(float k, float f) {
    float more = NR_FMA(k, 4.60503907e-06f, f * -1.010305e-08f);
    float tail = NR_FMA(f * f, nr_log_tail_f32(f, 0.43429448190325182), more);
    return k * 0.301025391f + NR_FMA(f, 0.434294492f, tail);
}

NR_INLINE float nr_exponent_f32(uint32_t bits) { return (float)((int32_t)(bits >> 23) - 127); }

/* e^x as a summand of 1: results below 2^-125 may be inexact. */
NR_INLINE float nr_exp_beside_1_f32(float x) {
    float y = -87.0f > x ? -87.0f : x;
    float t = NR_FMA(y, 1.44269504f, NR_MAGIC_F32), n = t - NR_MAGIC_F32;
    float r = NR_FMA(n, -1.42860682e-06f, NR_FMA(n, -0.693145752f, y));
    float result = nr_from_bits_f32(nr_bits_f32(nr_exp_reduced_f32(r)) + (nr_bits_f32(t) << 23));
    return x <= 88.7228317f ? result : x + INFINITY; /* NaN stays one */
}

/* e^x for x <= 0, at half the price; results below the least normal number are 0. */
NR_INLINE float nr_exp_below_f32(float x) {
    float y = -87.0f > x ? -87.0f : x;
    float n = nr_nearest_f32(y * 1.44269504f), r = NR_FMA(n, -1.42860682e-06f, NR_FMA(n, -0.693145752f, y));
    float result = nr_exp_reduced_f32(r) * nr_two_to_f32(n);
    return x < -87.0f ? 0.0f : result;
}

/* x - x^3 / p(x^2) below 1, which p makes of the continued fraction x / (1 + x^2 / (3 + x^2 / (5 + ...))) as a quotient
 * of few terms; above 1 - 2 / (e^2x + 1). Both have one division. */
NR_INLINE float nr_tanh_f32(float x) {
    float z = x * x, size = fabsf(x), y = size + size;
    y = y > 18.5f ? 18.5f : y;
    float t = NR_FMA(y, 1.44269504f, NR_MAGIC_F32), n = t - NR_MAGIC_F32, r = NR_FMA(n, -0.693147182f, y);
    float part = NR_POLY(r, 1.0f, 0.9999999f, 0.49999142f, 0.16667236f, 0.041899037f, 0.008311419f);
    float power = nr_from_bits_f32(nr_bits_f32(part) + (nr_bits_f32(t) << 23)); /* e^y, to 2e-7 */
    bool large = size >= 1.0f;                                                  /* NaN is not */
    float top = large ? 2.0f : size * z;
    float bottom = large ? power + 1.0f : NR_POLY(z, 3.0000007f, 1.1999933f, -0.005692765f, 0.0002269692f);
    return copysignf((large ? 1.0f : size) - top / bottom, x);
}

/* A polynomial below 1, above 1 - 2^g with g = log2(erfc(x)) another one. */
NR_INLINE float nr_erf_f32(float x) {
    float z = x * x;
    float small = NR_FMA(x,
                         NR_POLY(z, 0.128379166f, -0.376126289f, 0.112836182f, -0.0268551279f, 0.00519074081f,
                                 -0.000803084753f, 7.92071805e-05f),
                         x);
    float y = fabsf(x);
    y = y > 4.0f ? 4.0f : y;
    float g = NR_POLY(y, -0.000510344049f, -1.62597477f, -0.920765758f, -0.148650661f, 0.0314579345f, -0.00424081413f,
                      0.000267710391f);
    float t = g + NR_MAGIC_F32, n = t - NR_MAGIC_F32;
    float p = nr_expm1_reduced_f32((g - n) * 0.693147182f);
    float scale = nr_from_bits_f32((nr_bits_f32(t) + 127) << 23); /* 2^n */
    float large = 1.0f - NR_FMA(scale, p, scale);
    return y < 1.0f ? small : copysignf(large, x);
}

/* ---- in double --------------------------------------------------------------------------------- */

/* e^x in double to 5e-11, with x clamped to [-200, 200], beyond the range of float. */
NR_INLINE double nr_exp_wide(double x) {
    x = -200.0 > x ? -200.0 : x;
    x = 200.0 < x ? 200.0 : x;
    double n = nr_nearest_f64(x * 1.4426950408889634), r = NR_FMA(n, -0.69314718055994531, x);
    double p = NR_POLY(r, 1.0, 1.0, 0.50000000681366086, 0.16666665863690175, 0.041666293276173418,
                       0.0083334977745168175, 0.0013944785192438708, 0.00019790248414561923);
    return p * nr_two_to_f64(n);
}

/* log(x) in double to 2e-11, for normal doubles, which floats are; without a division. */
NR_INLINE double nr_log_wide(double x) {
    double k, f = nr_split_f64(x, &k);
    double p = NR_POLY(f, -0.50000000021591307, 0.3333333404395088, -0.24999994811019433, 0.19999898101342442,
                       -0.16666928594932728, 0.14290573020885575, -0.12497384737584498, 0.11009566056619557,
                       -0.099275998364565285, 0.10015902139371644, -0.098707686194990985, 0.053564966112828571);
    double y = NR_FMA(k, 0.69314718055994531, NR_FMA(f * f, p, f));
    y = x < HUGE_VAL ? y : x;
    y = x == 0 ? -HUGE_VAL : y;
    return x < 0 ? (double)NAN : y;
}

NR_INLINE float nr_sinh_f32(float x) {
    double y = (double)x, e = nr_exp_wide(fabs(y));
    double result = copysign(0.5 * (e - 1.0 / e), y);
    return (float)(fabs(y) < 0x1p-6 ? y + y * y * y * (1.0 / 6.0) : result);
}

NR_INLINE float nr_cosh_f32(float x) {
    double e = nr_exp_wide(fabs((double)x));
    return (float)(0.5 * (e + 1.0 / e));
}

NR_INLINE float nr_asinh_f32(float x) {
    double y = (double)x, a = fabs(y);
    double result = nr_log_wide(a + sqrt(a * a + 1.0));
    return (float)copysign(a < 0x1p-11 ? a - a * a * a * (1.0 / 6.0) : result, y);
}

NR_INLINE float nr_acosh_f32(float x) {
    double y = (double)x;
    double result = nr_log_wide(y + sqrt((y - 1.0) * (y + 1.0)));
    return (float)(y < 1.0 ? (double)NAN : result);
}

NR_INLINE float nr_atanh_f32(float x) {
    double y = (double)x;
    double result = 0.5 * nr_log_wide((1.0 + y) / (1.0 - y));
    return (float)(fabs(y) < 0x1p-11 ? y + y * y * y * (1.0 / 3.0) : result);
}

/* erfc(y) = e^(-y^2) h((y - 3) / (y + 3)) / (y + 3) for y >= 0; below, by symmetry. */
NR_INLINE float nr_erfc_f32(float x) {
    double y = fabs((double)x);
    y = 10.5 < y ? 10.5 : y;
    double inverse = 1.0 / (y + 3.0), t = (y - 3.0) * inverse;
    double h = NR_POLY(t, 1.0740069070904097, -0.88339445387220261, 0.5902283571903939, -0.31046722453745018,
                       0.11952776448554822, -0.026827797448506042, -0.0012126648678889239, 0.003037582674921387,
                       -0.00054543318130966933, -0.0002863432917417204, 9.5774301547930447e-05, 3.8344403268040344e-05,
                       -5.9719939970926856e-07);
    double result = nr_exp_wide(-y * y) * h * inverse;
    return (float)(x < 0 ? 2.0 - result : result);
}

/* |a|^b = e^(b log|a|), then the sign and the cases of C99 F.9.4.4. */
NR_INLINE float nr_power_f32(float base, float exponent) {
    double a = (double)base, b = (double)exponent, size = fabs(a);
    double result = nr_exp_wide(b * nr_log_wide(size));
    result = size == 1.0 ? (b == b ? 1.0 : b) : result; /* 0 times infinity above */
    double c = fabs(b);
    c = c < 0x1p25 ? c : 0x1p25; /* floats from 2^24 on are even integers, and so count infinities */
    double of_integer = nr_nearest_f64(0.5 * c) == 0.5 * c ? result : copysign(result, a);
    double of_fraction = a < 0 ? (size < HUGE_VAL ? (double)NAN : result) : result;
    result = nr_nearest_f64(c) == c ? of_integer : of_fraction;
    result = b == 0 ? 1.0 : result;
    return (float)(a == 1.0 ? 1.0 : result);
}

/* The same for 0 < base < infinity and finite exponents. */
NR_INLINE bool nr_easy_power_f32(float base, float exponent) {
    return (base > 0) & (base < INFINITY) & (fabsf(exponent) < INFINITY);
}
NR_INLINE float nr_quick_power_f32(float base, float exponent) {
    return (float)nr_exp_wide((double)exponent * nr_log_wide((double)base));
}

/* ---- remainders -------------------------------------------------------------------------------- */

/* fmod(a, b); for moderate quotients it is exact in double, and has no branch. */
NR_INLINE bool nr_easy_f32(float a, float b) { return (fabsf(a) < fabsf(b) * 0x1p28f) & (fabsf(b) < INFINITY); }
NR_INLINE float nr_easy_rest_f32(float a, float b) {
    double x = (double)a, y = (double)b;
    return copysignf((float)(x - nr_trunc_f64(x / y) * y), a);
}
NR_INLINE float nr_rest_f32(float a, float b) { return nr_easy_f32(a, b) ? nr_easy_rest_f32(a, b) : fmodf(a, b); }

NR_INLINE float nr_easy_floor_remainder_f32(float a, float b) { return nr_upward_f32(nr_easy_rest_f32(a, b), b); }

/* floor(a / b): a quotient in double is no integer unless it is one exactly, up to 2^28. Beyond infinity, a number goes
 * into it less than once, and -1 times where the signs differ. An infinity has no whole part. */
NR_INLINE float nr_floor_quotient_f32(float a, float b) {
    double quotient = (double)a / (double)b, whole = nr_floor_f64(quotient);
    whole = nr_choose_f64((quotient == 0) & (a != 0) & ((a < 0) != (b < 0)), -1.0, whole);
    return nr_choose_f32((fabsf(a) == INFINITY) & (b != 0), NAN, (float)whole);
}

/* The distribution function of the normal distribution: left of 0 it is 2^g, g a polynomial good to 4e-8 at 0 and 1e-4
 * at -6, where it is 1e-9; below that 0. */
NR_INLINE float nr_normal_f32(float x) {
    float y = fabsf(x);
    float g = NR_POLY(y, -1.0f, -1.15110636f, -0.459195942f, -0.0525385067f, 0.00712553924f, -0.00017745707f,
                      -0.000178068862f, 4.22600751e-05f, -4.33349442e-06f, 1.75725177e-07f);
    float t = g + NR_MAGIC_F32, n = t - NR_MAGIC_F32;
    float p = nr_expm1_reduced_f32((g - n) * 0.693147182f);
    float scale = nr_from_bits_f32((nr_bits_f32(t) + 127) << 23); /* 2^n */
    float tail = y >= 6.0f ? 0.0f : NR_FMA(scale, p, scale);      /* NaN stays one */
    return x > 0 ? 1.0f - tail : tail;
}

/* The derivative of x normal(x): left of 0 the density of the normal distribution times a polynomial, to 1e-7. */
NR_INLINE float nr_gelu_slope_f32(float x) {
    float y = fabsf(x);
    float p =
        NR_POLY(y, 1.25331414f, -1.99999034f, 0.626490116f, -0.332341284f, 0.153735965f, -0.0616308227f, 0.0205772389f,
                -0.005378915f, 0.00102449208f, -0.000130633562f, 9.82063466e-06f, -3.25924361e-07f);
    float tail = (y >= 6.0f ? y * 0.0f : p) * (0.398942280f * nr_exp_below_f32(-0.5f * x * x));
    return x > 0 ? 1.0f - tail : tail;
}

NR_INLINE float nr_hypot_f32(float a, float b) {
    double x = (double)a, y = (double)b, result = sqrt(x * x + y * y);
    return (float)(((fabs(x) == HUGE_VAL) | (fabs(y) == HUGE_VAL)) ? HUGE_VAL : result);
}
