/* math_angle: trigonometric functions and their inverses, included by math.h alone
 * while sin, cos ... are those of libm.
 *
 * Moderate arguments by math_trig.h in the type itself; others (and all without fused multiply-adds) of float in
 * double, those of double by libm. The inverses are polynomials about 0, or about 1 by asin(x) = pi/2 - 2
 * asin(sqrt((1 - x)/2)), atan(x) = pi/2 - atan(1/x), the constants in two parts. Coefficients: Remez exchange, or
 * interpolation at Chebyshev nodes in 50 digits. */

#define T double
#define F(name) nr_##name##_f64
#include "math_trig.h"

#define T float
#define F(name) nr_##name##_f32
#include "math_trig.h"

/* ---- double ------------------------------------------------------------------------------------ */

NR_INLINE double nr_sine_tail_f64(double z) {
    return NR_POLY(z, -0.16666666666666666, 0.0083333333333308265, -0.00019841269836575642, 2.7557316008147241e-06,
                   -2.5051112268671621e-08, 1.5916725966176021e-10);
}
NR_INLINE double nr_cosine_tail_f64(double z) {
    return NR_POLY(z, -0.5, 0.041666666666666637, -0.0013888888888880361, 2.4801587293373389e-05,
                   -2.7557315455724707e-07, 2.0875869293074658e-09, -1.1366975458665863e-11);
}

/* Sine over cosine, exchanged after odd quarter turns, and corrected by what both lost and the rest of the division. */
NR_INLINE double nr_quick_tan_f64(double x) {
    double t = NR_FMA(x, 0.63661977236758138, NR_MAGIC_F64), lost;
    double y = nr_less_quarters_f64(x, t - NR_MAGIC_F64, &lost), z = y * y;
    double more = NR_FMA(y * z, nr_sine_tail_f64(z), NR_FMA(-0.5 * z, lost, lost)), sine = y + more;
    double less = NR_FMA(z, nr_cosine_tail_f64(z), -y * lost), cosine = 1.0 + less;
    double sine_rest = (y - sine) + more, cosine_rest = (1.0 - cosine) + less;
    const bool odd = nr_bits_f64(t) & 1;
    double top = odd ? -cosine : sine, top_rest = odd ? -cosine_rest : sine_rest;
    double bottom = odd ? sine : cosine, bottom_rest = odd ? sine_rest : cosine_rest;
    double inverse = 1.0 / bottom, q = top * inverse;
    double rest = NR_FMA(-q, bottom, top) + NR_FMA(-q, bottom_rest, top_rest);
    return x == 0 ? x : NR_FMA(rest, inverse, q); /* -0 stays -0 */
}

NR_INLINE double nr_sin_f64(double x) { return nr_easy_angle_f64(x) ? nr_quick_sin_f64(x) : sin(x); }
NR_INLINE double nr_cos_f64(double x) { return nr_easy_angle_f64(x) ? nr_quick_cos_f64(x) : cos(x); }
NR_INLINE double nr_tan_f64(double x) { return nr_easy_angle_f64(x) ? nr_quick_tan_f64(x) : tan(x); }

/* asin(x) = x + x z p(z) for |x| <= 1/2, z = x^2. */
NR_INLINE double nr_asin_tail_f64(double z) {
    return NR_POLY(z, 0.16666666666666669, 0.074999999999984232, 0.044642857146374171, 0.030381944137039624,
                   0.022372173003472384, 0.0173523912367562, 0.013971235679448463, 0.011478949392010855,
                   0.010324337754722142, 0.0054508014616076253, 0.01741955139443617, -0.014881691427492284,
                   0.02877862351145739);
}
NR_INLINE double nr_asin_f64(double x) {
    double a = fabs(x);
    const bool big = a > 0.5;
    double z = big ? 0.5 - 0.5 * a : a * a, r = big ? sqrt(z) : a, w = r * z * nr_asin_tail_f64(z);
    double y = 1.5707963267948966 - 2.0 * r, lost = (1.5707963267948966 - y) - 2.0 * r;
    double from = big ? y : r, more = big ? (lost + 6.123233995736766e-17) - 2.0 * w : w;
    return copysign(from + more, x);
}
NR_INLINE double nr_acos_f64(double x) {
    double a = fabs(x);
    const bool big = a > 0.5;
    double z = big ? 0.5 - 0.5 * a : a * a, r = big ? sqrt(z) : x, w = r * z * nr_asin_tail_f64(z);
    double least = 2.0 * (r + w), turned = 3.1415926535897931 - (2.0 * r + (2.0 * w - 1.2246467991473532e-16));
    double middle = 1.5707963267948966 - (r + (w - 6.123233995736766e-17));
    return big ? (x < 0 ? turned : least) : middle;
}

/* atan(q) = q + q z NR_ATAN_TAIL(z) for |q| <= tan(pi / 8), z = q^2. */
#define NR_ATAN_TAIL(z)                                                                             \
    NR_POLY(z, -0.33333333333333331, 0.19999999999995516, -0.1428571428466596, 0.11111111015214549, \
            -0.09090904576542426, 0.0769218315582339, -0.066645109712806877, 0.058581448849050977,  \
            -0.050854290923892376, 0.039231071719816643, -0.019176178540101414)

/* About 0, pi / 4 and pi / 2. */
NR_INLINE double nr_atan_f64(double x) {
    double a = fabs(x);
    const bool middle = a > 0.41421356237309503, big = a > 2.4142135623730949;
    double top = big ? -1.0 : middle ? a - 1.0 : a, bottom = big ? a : middle ? a + 1.0 : 1.0;
    double from = big ? 1.5707963267948966 : middle ? 0.78539816339744828 : 0.0;
    double rest = big ? 6.123233995736766e-17 : middle ? 3.061616997868383e-17 : 0.0;
    double q = top / bottom, z = q * q;
    double w = q * z * NR_ATAN_TAIL(z);
    return copysign(from + (q + (w + rest)), x);
}

/* sin(pi x) / (pi x); x is taken modulo 2 before it is multiplied. */
NR_INLINE double nr_sinc_f64(double x) {
    double whole = nr_round_even_f64(x), half = 0.5 * whole;
    double sine = nr_sin_f64(3.1415926535897931 * (x - whole));
    double wave = nr_floor_f64(half) == half ? sine : -sine;
    return x == 0 ? 1.0 : wave / (3.1415926535897931 * x);
}

/* ---- float, in float ----------------------------------------------------------------------------- */

NR_INLINE float nr_sine_tail_f32(float z) { return NR_POLY(z, -0.166666538f, 0.00833210628f, -0.00019507877f); }
NR_INLINE float nr_cosine_tail_f32(float z) {
    return NR_POLY(z, -0.5f, 0.0416666456f, -0.0013887306f, 2.44316525e-05f);
}

/* tan(y), or -1 / tan(y) after odd quarter turns; both are corrected by what y and tan(y) lost. */
NR_INLINE float nr_quick_tan_f32(float x) {
    float t = NR_FMA(x, 0.636619772f, NR_MAGIC_F32), lost;
    float y = nr_less_quarters_f32(x, t - NR_MAGIC_F32, &lost), z = y * y;
    float p = NR_POLY(z, 0.333331496f, 0.13338995f, 0.0533946566f, 0.0244907998f, 0.00302069075f, 0.00944518112f);
    float more = NR_FMA(y * z, p, NR_FMA(z, lost, lost)), w = y + more, rest = (y - w) + more, q = -1.0f / w;
    float turned = NR_FMA(q, NR_FMA(q, w, 1.0f) + q * rest, q);
    return x == 0 ? x : nr_bits_f32(t) & 1 ? turned : w; /* -0 stays -0 */
}

NR_INLINE float nr_asin_tail_f32(float z) {
    return NR_POLY(z, 0.166667551f, 0.0749518797f, 0.0454847291f, 0.0241055582f, 0.0422973596f);
}
NR_INLINE float nr_asin_f32(float x) {
    float a = fabsf(x);
    const bool big = a > 0.5f;
    float z = big ? 0.5f - 0.5f * a : a * a, r = big ? sqrtf(z) : a, w = r * z * nr_asin_tail_f32(z);
    float y = 1.57079637f - 2.0f * r, lost = (1.57079637f - y) - 2.0f * r;
    float from = big ? y : r, more = big ? (lost - 4.37113883e-08f) - 2.0f * w : w;
    return copysignf(from + more, x);
}
NR_INLINE float nr_acos_f32(float x) {
    float a = fabsf(x);
    const bool big = a > 0.5f;
    float z = big ? 0.5f - 0.5f * a : a * a, r = big ? sqrtf(z) : x, w = r * z * nr_asin_tail_f32(z);
    float least = 2.0f * (r + w), turned = 3.14159274f - (2.0f * r + (8.74227766e-08f + 2.0f * w));
    float middle = 1.57079637f - (r + (w + 4.37113883e-08f));
    return big ? (x < 0 ? turned : least) : middle;
}
NR_INLINE float nr_atan_f32(float x) {
    float a = fabsf(x);
    const bool big = a > 1.0f;
    float q = (big ? -1.0f : a) / (big ? a : 1.0f), z = q * q;
    float w = q * z *
              NR_POLY(z, -0.333332986f, 0.19998531f, -0.142640516f, 0.109511726f, -0.084004581f, 0.0579060428f,
                      -0.0311262887f, 0.0108868685f, -0.00178741443f);
    return copysignf(big ? 1.57079637f + (q + (w - 4.37113883e-08f)) : q + w, x);
}

/* ---- float, in double ---------------------------------------------------------------------------- */

/* One of four numbers by the size of a = |x|: below 2^50, below 2^77, below 2^104, above. */
NR_INLINE double nr_by_size(double a, double w0, double w1, double w2, double w3) {
    double low = a < 0x1p50 ? w0 : w1, high = a < 0x1p104 ? w2 : w3;
    return a < 0x1p77 ? low : high;
}

/* x in quarter turns: gives the fraction in [-1/2, 1/2] and in the two low bits of *turns the whole ones. 2/pi is a + b
 * + c, of 28, 28 and 53 bits, which makes all exact but the last product. */
NR_INLINE double nr_turns_by(double x, double a, double b, double c, uint64_t *turns) {
    double first = x * a, second = x * b, third = x * c;
    double whole = nr_nearest_f64(first);
    first -= whole;
    double more = nr_nearest_f64(first + second);
    *turns = nr_bits_f64(whole + more + NR_MAGIC_F64);
    return ((first - more) + second) + third;
}

/* The same of |x| < 2^50, and of all x. Payne and Hanek, "Radian reduction for trigonometric functions"
 * (1983), the window of the bits of 2/pi chosen among four: y = 2^-s x is an integer where s > 0, and
 * so 2^s 2/pi may be taken modulo 4. */
NR_INLINE double nr_near_turns(double x, uint64_t *turns) {
    return nr_turns_by(x, 0x1.45f3068p-1, 0x1.727220ap-27, 0x1.29fc2757d1f53p-56, turns);
}
NR_INLINE double nr_far_turns(double x, uint64_t *turns) {
    double a = fabs(x);
    return nr_turns_by(
        x * nr_by_size(a, 1.0, 0x1p-27, 0x1p-54, 0x1p-81),
        nr_by_size(a, 0x1.45f3068p-1, -0x1.1b1bbfp-1, 0x1.4a7f09cp+0, -0x1.505c15cp+0),
        nr_by_size(a, 0x1.727220ap-27, 0x1.4a7f09cp-27, 0x1.5f47d4cp-28, 0x1.4ddc0dap-27),
        nr_by_size(a, 0x1.29fc2757d1f53p-56, 0x1.5f47d4d377037p-55, 0x1.377036d8a5665p-56, 0x1.6295993c43904p-55),
        turns);
}

/* sin and cos of t quarter turns, |t| <= 1/2. */
NR_INLINE double nr_sin_quarter(double t) {
    return t * NR_POLY(t * t, 1.5707963267948899, -0.64596409750430717, 0.079692626155664525, -0.0046817525903140207,
                       0.00016042925875985308, -3.5563745194209537e-06);
}
NR_INLINE double nr_cos_quarter(double t) {
    return NR_POLY(t * t, 0.99999999999994438, -1.2337005501201461, 0.25366950715311115, -0.020863467993689346,
                   0.00091916168913063151, -2.4850872918618971e-05);
}

/* b where the mask has ones, else a: integer compares of 64 bits are not in every instruction set. */
NR_INLINE double nr_masked(double a, double b, uint64_t mask) {
    return nr_from_bits_f64((nr_bits_f64(a) & ~mask) | (nr_bits_f64(b) & mask));
}

/* Quarter turns swap sine and cosine, half turns change the sign. */
NR_INLINE double nr_wave(double t, uint64_t turns) {
    double y = nr_masked(nr_sin_quarter(t), nr_cos_quarter(t), 0 - (turns & 1));
    return nr_from_bits_f64(nr_bits_f64(y) ^ (turns & 2) << 62);
}

/* By both, which agree in all bits where |x| < 2^50: the near ones are the quick
 * formulas without fused multiply-adds. */
#define NR_WAVE(name, size, more)                        \
    NR_INLINE float nr_##size##_##name##_f32(float x) {  \
        uint64_t turns;                                  \
        double t = nr_##size##_turns((double)x, &turns); \
        return (float)nr_wave(t, turns + more);          \
    }
NR_WAVE(sin, near, 0)
NR_WAVE(sin, far, 0)
NR_WAVE(cos, near, 1)
NR_WAVE(cos, far, 1)
#undef NR_WAVE
NR_INLINE float nr_far_tan_f32(float x) {
    uint64_t turns;
    double t = nr_far_turns((double)x, &turns);
    double sine = nr_sin_quarter(t), cosine = nr_cos_quarter(t);
    uint64_t odd = 0 - (turns & 1);
    return (float)(nr_masked(sine, -cosine, odd) / nr_masked(cosine, sine, odd));
}
NR_INLINE float nr_sin_f32(float x) { return nr_easy_angle_f32(x) ? nr_quick_sin_f32(x) : nr_far_sin_f32(x); }
NR_INLINE float nr_cos_f32(float x) { return nr_easy_angle_f32(x) ? nr_quick_cos_f32(x) : nr_far_cos_f32(x); }
NR_INLINE float nr_tan_f32(float x) { return nr_easy_angle_f32(x) ? nr_quick_tan_f32(x) : nr_far_tan_f32(x); }

/* atan(q) for 0 <= q <= 1. */
NR_INLINE double nr_atan_reduced(double q) {
    return q * NR_POLY(q * q, 0.99999999999163158, -0.33333333033661638, 0.19999982193878779, -0.14285296833946426,
                       0.11105987251661084, -0.090530201802393587, 0.075090199593990534, -0.060546593410793562,
                       0.044157922514884679, -0.026538266923721972, 0.01177916555116796, -0.0033288490877205969,
                       0.00044139119945350652);
}

/* Computes the angle in the first octant, then reflects it: across the diagonal, the y axis, the x axis. */
NR_INLINE float nr_atan2_f32(float y, float x) {
    double b = (double)y, a = (double)x, p = fabs(b), q = fabs(a);
    double least = p < q ? p : q, most = p < q ? q : p;
    double ratio = least == most ? 1.0 : least / most; /* also for two infinities */
    ratio = least == 0 ? 0.0 : ratio;
    double angle = nr_atan_reduced(ratio);
    angle = p > q ? 1.5707963267948966 - angle : angle;
    angle = copysign(1.0, a) < 0 ? 3.1415926535897931 - angle : angle;
    angle = copysign(angle, b);
    return (float)(((a != a) | (b != b)) ? a + b : angle);
}

NR_INLINE float nr_sinc_f32(float x) {
    double y = (double)x, quarters = fabs(y) < 0x1p40 ? 2.0 * y : 0.0 * y; /* those beyond are even */
    double whole = nr_nearest_f64(quarters);
    double wave = nr_wave(quarters - whole, nr_bits_f64(whole + NR_MAGIC_F64));
    return (float)(y == 0 ? 1.0 : wave / (3.1415926535897931 * y));
}
