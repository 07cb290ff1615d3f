/* math_trig: sin, cos and tan of moderate arguments: a template that math_angle.h includes for double and for float,
 * with T and F(name) as for math_float.h.
 *
 * x is n quarter turns, pi / 2 in three parts, and y, |y| <= pi / 4; what y loses in rounding is added to its sine or
 * cosine, of which it is a small change. n comes out of the low bits of x 2 / pi + MAGIC. Needs fused multiply-adds. */

#ifndef NR_MATH_TRIG_H
#define NR_MATH_TRIG_H
#define QUARTER_A PER_TYPE(0x1.921fb54442d18p+0, 0x1.921fb4p0f) /* that of float rounded down */
#define QUARTER_B PER_TYPE(0x1.1a62633145c07p-54, 0x1.4442d2p-24f)
#define QUARTER_C PER_TYPE(-0x1.f1976b7ed8fbcp-110, -0x1.ee59dap-50f)
#define TWO_OVER_PI PER_TYPE(0.63661977236758138, 0.636619772f)
#define NEAR_0 PER_TYPE(0x1p-20, 0.02f) /* such differences are exact */
#define EASY_ANGLE PER_TYPE(0x1p24, 0x1p17f)
#endif

/* sin(y) = y + y z F(sine_tail)(z), cos(y) = 1 + z F(cosine_tail)(z), z = y^2. */
NR_INLINE T F(sine_tail)(T z);
NR_INLINE T F(cosine_tail)(T z);

NR_INLINE T F(less_quarters)(T x, T n, T *lost) {
    T first = NR_FMA(n, -QUARTER_A, x), y = NR_FMA(n, -QUARTER_B, first);
    T rounded = LIBM(fabs)(first) > NEAR_0 ? NR_FMA(n, -QUARTER_B, first - y) : C(0);
    *lost = NR_FMA(n, -QUARTER_C, rounded);
    return y;
}

/* The sine of size, `more` quarter turns on, its sign changed where that bit of `sign` is set. */
NR_INLINE T F(quick_wave)(T size, U more, U sign) {
    T t = NR_FMA(size, TWO_OVER_PI, MAGIC), lost, y = F(less_quarters)(size, t - MAGIC, &lost), z = y * y;
    const U turns = F(bits)(t) + more;
    const bool odd = turns & 1;
    T q = odd ? C(1) : y, tail = odd ? F(cosine_tail)(z) : F(sine_tail)(z), change = odd ? -y * lost : lost;
    T wave = q + NR_FMA(q * z, tail, change);
    const U top = (U)1 << (8 * sizeof(T) - 1);
    return F(from_bits)(F(bits)(wave) ^ ((turns << (8 * sizeof(T) - 2) ^ sign) & top));
}
NR_INLINE T F(quick_sin)(T x) { return F(quick_wave)(LIBM(fabs)(x), 0, F(bits)(x)); }
NR_INLINE T F(quick_cos)(T x) { return F(quick_wave)(LIBM(fabs)(x), 1, 0); }

NR_INLINE bool F(easy_angle)(T x) { return NR_HAS_FMA && LIBM(fabs)(x) <= EASY_ANGLE; }

#undef T
#undef F
