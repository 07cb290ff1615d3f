/* math_float: the part of math.h whose algorithm is the same for float and double: a template that math_f64.h and
 * math_f32.h include once each, with T and F(name), the name of a function of ours for T: nr_exp_f32. They define what
 * it declares.
 *
 * exp and log reduce the argument as in Tang, "Table-driven implementation of the exponential function" and "... of the
 * logarithm function" (ACM TOMS 1989, 1990), tables replaced by polynomials fitted by Remez exchange. Selects keep NaN:
 * a comparison with NaN is false and the false arm holds the argument. */

#ifndef NR_MATH_FLOAT_H
#define NR_MATH_FLOAT_H

#define C(number) ((T)(number))
/* What is another for double and for float. */
#define PER_TYPE(f64, f32) _Generic((T)0, double: f64, float: f32)
#define U __typeof__(PER_TYPE((uint64_t)0, (uint32_t)0))
#define LIBM(name) PER_TYPE(name, name##f)

#define DIGITS PER_TYPE(52, 23) /* of the mantissa */
#define BIAS PER_TYPE(1023, 127)
#define SMALLEST PER_TYPE(0x1p-1022, 0x1p-126f) /* normal number */
#define WHOLE C((U)1 << DIGITS)                 /* numbers from here on are integers */
#define MAGIC C((U)3 << (DIGITS - 1))           /* 1.5 WHOLE */
#define MANTISSA (((U)1 << DIGITS) - 1)
#define ROOT_BITS PER_TYPE(0x3fe6a09e667f3bcdu, 0x3f3504f3u) /* of sqrt(1/2) */
#define ABOVE_ROOT (F(bits)(C(1)) - ROOT_BITS)

#define LOG2E PER_TYPE(1.4426950408889634, 1.44269504f)
#define LN2 PER_TYPE(0.69314718055994531, 0.693147182f)
#define LN2_HIGH PER_TYPE(0.69314718055920821, 0.693145752f) /* ln 2 in two parts, of which the first has few bits */
#define LN2_LOW PER_TYPE(7.3710025651677989e-13, 1.42860682e-06f)

#define EXP_LEAST PER_TYPE(-746.0, -104.0f)
#define EXP_MOST PER_TYPE(709.782712893384, 88.7228317f)
#define EXP_LOW PER_TYPE(-708.0, -87.0f)
#define EXP_SHIFT PER_TYPE(128, 64)
#define EXP_UNSHIFT PER_TYPE(0x1p-128, 0x1p-64f)
#define EXP2_LEAST PER_TYPE(-1076.0, -151.0f)
#define EXP2_MOST PER_TYPE(1025.0, 129.0f)
#define EXPM1_LEAST PER_TYPE(-40.0, -18.0f)
#define EXPM1_MOST PER_TYPE(710.0, 89.0f)
#define EXPM1_TINY PER_TYPE(0x1p-54, 0x1p-25f)
#define LOG1P_MOST PER_TYPE(0x1p60, 0x1p30f)

#endif

/* e^r - 1 for |r| <= ln(2) / 2. */
NR_INLINE T F(expm1_reduced)(T r);
/* e^r for the same r. */
NR_INLINE T F(exp_reduced)(T r);
/* log(2^k (1 + f)) for sqrt(1/2) <= 1 + f < sqrt(2), for log1p and log1p_unit; to the bases e, 2 and 10. */
NR_INLINE T F(log_reduced)(T k, T f);
NR_INLINE T F(log_parts)(T k, T f);
NR_INLINE T F(log2_parts)(T k, T f);
NR_INLINE T F(log10_parts)(T k, T f);
/* The exponent of a positive number, without its bias. */
NR_INLINE T F(exponent)(U bits);
/* fmod(a, b) */
NR_INLINE T F(rest)(T a, T b);

NR_INLINE U F(bits)(T x) {
    U bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

NR_INLINE T F(from_bits)(U bits) {
    T x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- exponentials ------------------------------------------------------------------------------ */

/* x to the nearest integer, half to even, for |x| < WHOLE / 2. The low bits of x + MAGIC are that integer in two's
 * complement. */
NR_INLINE T F(nearest)(T x) { return (x + MAGIC) - MAGIC; }

/* 2^n for integers 1 - BIAS <= n <= BIAS. */
NR_INLINE T F(two_to)(T n) { return F(from_bits)((F(bits)(n + MAGIC) + BIAS) << DIGITS); }

/* x - n ln(2), n LN2_HIGH being exact. */
NR_INLINE T F(minus_ln2)(T x, T n) { return (x - n * LN2_HIGH) - n * LN2_LOW; }

/* y 2^n, rounded once though 2^n itself be out of range. */
NR_INLINE T F(scaled)(T y, T n) {
    T half = F(nearest)(n * C(0.5));
    return y * F(two_to)(half) * F(two_to)(n - half);
}

/* e^x = 2^n e^r: n is added to the exponent's bits. For normal results alone: EXP_LOW <= x, |x| <= -EXP_LOW. */
NR_INLINE T F(quick_exp)(T x) {
    T t = NR_FMA(x, LOG2E, MAGIC), n = t - MAGIC;
    T r = NR_FMA(n, -LN2_LOW, NR_FMA(n, -LN2_HIGH, x));
    return F(from_bits)(F(bits)(F(exp_reduced)(r)) + (F(bits)(t) << DIGITS));
}

/* The same for every x: where the result is no normal number, n + EXP_SHIFT is added. Results below the least number
 * come from the select at the end: a mask full of -infinity must not cost an underflow an element. */
NR_INLINE T F(exp)(T x) {
    T y = x < EXP_LEAST ? C(0) : x;
    y = EXP_MOST < y ? EXP_MOST : y; /* NaN stays one: the operands of a minimum in this order */
    const bool low = y < EXP_LOW;
    T t = NR_FMA(y, LOG2E, MAGIC), n = t - MAGIC;
    T r = NR_FMA(n, -LN2_LOW, NR_FMA(n, -LN2_HIGH, y));
    U shift = low ? (U)EXP_SHIFT << DIGITS : 0;
    U bits = F(bits)(F(exp_reduced)(r)) + (F(bits)(t) << DIGITS) + shift;
    T result = F(from_bits)(bits) * (low ? EXP_UNSHIFT : C(1));
    result = x <= EXP_MOST ? result : x + C(INFINITY);
    return x < EXP_LEAST ? C(0) : result;
}

/* For normal results alone: |x| <= BIAS - 1. */
NR_INLINE T F(quick_exp2)(T x) {
    T t = x + MAGIC;
    return F(from_bits)(F(bits)(F(exp_reduced)((x - (t - MAGIC)) * LN2)) + (F(bits)(t) << DIGITS));
}

NR_INLINE T F(exp2)(T x) {
    x = x < EXP2_LEAST ? EXP2_LEAST : x;
    x = x > EXP2_MOST ? EXP2_MOST : x;
    T n = F(nearest)(x);
    return F(scaled)(F(exp_reduced)((x - n) * LN2), n);
}

NR_INLINE T F(expm1)(T x) {
    T y = x < EXPM1_LEAST ? EXPM1_LEAST : x;
    y = y > EXPM1_MOST ? EXPM1_MOST : y;
    T n = F(nearest)(y * LOG2E);
    T p = F(expm1_reduced)(F(minus_ln2)(y, n));
    T half = F(two_to)(n - C(1)); /* 2^n would overflow before the result does */
    T result = C(2) * NR_FMA(half, p, half - C(0.5));
    return LIBM(fabs)(x) < EXPM1_TINY ? x : result; /* keeps -0 */
}

/* ---- logarithms -------------------------------------------------------------------------------- */

/* x is 2^k (1 + f) with sqrt(1/2) <= 1 + f: ABOVE_ROOT, added to the bits, makes the exponent change there. Gives f and
 * k; x is a normal number above 0. */
NR_INLINE T F(split)(T x, T *k) {
    U bits = F(bits)(x) + ABOVE_ROOT;
    *k = F(exponent)(bits);
    return F(from_bits)((bits & MANTISSA) + ROOT_BITS) - C(1);
}

/* quick_log(x) for normal x above 0; log(x) for every x. */
#define LOGARITHM(name)                                          \
    NR_INLINE T F(quick_##name)(T x) {                           \
        T k, f = F(split)(x, &k);                                \
        return F(name##_parts)(k, f);                            \
    }                                                            \
    NR_INLINE T F(name)(T x) {                                   \
        const bool tiny = x < SMALLEST;                          \
        T k, f = F(split)(tiny ? x * WHOLE : x, &k);             \
        T y = F(name##_parts)(k - (tiny ? C(DIGITS) : C(0)), f); \
        y = x < C(INFINITY) ? y : x;                             \
        y = x == 0 ? -C(INFINITY) : y;                           \
        return x < 0 ? C(NAN) : y;                               \
    }
LOGARITHM(log)
LOGARITHM(log2)
LOGARITHM(log10)
#undef LOGARITHM

/* As log(1 + x), and what the sum lost is added to f, 2^-k being exact. */
NR_INLINE T F(log1p)(T x) {
    T sum = C(1) + x, lost = x < C(1) ? x - (sum - C(1)) : C(1) - (sum - x);
    U bits = F(bits)(sum) + ABOVE_ROOT;
    T f = F(from_bits)((bits & MANTISSA) + ROOT_BITS) - C(1), k = F(exponent)(bits);
    T scale = F(from_bits)(((U)(2 * BIAS) << DIGITS) - (bits & (U)(2 * BIAS + 1) << DIGITS));
    T y = F(log_reduced)(k, x < LOG1P_MOST ? NR_FMA(lost, scale, f) : f);
    y = x < C(INFINITY) ? y : x;
    y = x == C(-1) ? -C(INFINITY) : y;
    y = x == 0 ? x : y; /* -0 */
    return x < C(-1) ? C(NAN) : y;
}

/* log1p(x) for 0 <= x <= 1, at half the price: f is x or (x - 1) / 2, which are exact. */
NR_INLINE T F(log1p_unit)(T x) {
    const bool upper = x > C(0.41421356237309503);
    return F(log_reduced)(upper ? C(1) : C(0), upper ? C(0.5) * (x - C(1)) : x);
}

/* ---- rounding, choosing ------------------------------------------------------------------------ */

NR_INLINE T F(sqrt)(T x) { return LIBM(sqrt)(x); }
NR_INLINE T F(absolute)(T x) { return LIBM(fabs)(x); }

#if defined(__SSE4_1__) || defined(__aarch64__) /* one instruction each */
NR_INLINE T F(round_even)(T x) { return LIBM(rint)(x); }
NR_INLINE T F(floor)(T x) { return LIBM(floor)(x); }
NR_INLINE T F(ceil)(T x) { return LIBM(ceil)(x); }
NR_INLINE T F(trunc)(T x) { return LIBM(trunc)(x); }
#else
NR_INLINE T F(round_even)(T x) {
    T y = LIBM(fabs)(x);
    return LIBM(copysign)(y < WHOLE ? (y + WHOLE) - WHOLE : y, x);
}
NR_INLINE T F(floor)(T x) {
    T y = F(round_even)(x);
    return y - (y > x ? C(1) : C(0));
}
NR_INLINE T F(ceil)(T x) { return -F(floor)(-x); }
NR_INLINE T F(trunc)(T x) { return LIBM(copysign)(F(floor)(LIBM(fabs)(x)), x); }
#endif

NR_INLINE bool F(infinite)(T x) { return LIBM(fabs)(x) == C(INFINITY); }
NR_INLINE bool F(finite)(T x) { return LIBM(fabs)(x) < C(INFINITY); }
/* A NaN on either side wins; the select before is one instruction, which gives b where one is NaN. */
NR_INLINE T F(larger)(T a, T b) {
    T one = a > b ? a : b;
    return a != a ? a : one;
}
NR_INLINE T F(smaller)(T a, T b) {
    T one = a < b ? a : b;
    return a != a ? a : one;
}
/* smaller(larger(x, low), high), with conditions that compilers do not merge into branches. */
NR_INLINE T F(bounded)(T x, T low, T high) {
    T y = x > low ? x : low;
    y = y < high ? y : high;
    return isunordered(x, low) ? x + low : y;
}

/* take ? a : b without the branch that compilers make of it, which would be a guess for each element. */
NR_INLINE T F(choose)(bool take, T a, T b) {
    U mask = (U)0 - (U)take;
    return F(from_bits)((F(bits)(a) & mask) | (F(bits)(b) & ~mask));
}

/* The float next to a towards b: as integers, floats of one sign are in the order of their magnitudes. */
NR_INLINE T F(next_after)(T a, T b) {
    const U sign = (U)1 << (8 * sizeof(T) - 1), step = (b > a) == (a > 0) ? (U)1 : (U)-1;
    U bits = a == 0 ? (F(bits)(b) & sign) | 1 : F(bits)(a) + step;
    bits = a == b ? F(bits)(b) : bits;
    return ((a != a) | (b != b)) ? a + b : F(from_bits)(bits);
}

/* x = significand 2^exponent, the significand in [0.5, 1); of 0, infinities and NaN x and 0. Subnormal numbers are
 * scaled first. */
NR_INLINE bool F(has_exponent)(T x) { return (LIBM(fabs)(x) < C(INFINITY)) & (x != 0); }
NR_INLINE T F(significand)(T x) {
    const U half = (U)(BIAS - 1) << DIGITS, mask = (U)(2 * BIAS + 1) << DIGITS;
    T y = LIBM(fabs)(x) < SMALLEST ? x * WHOLE : x;
    T part = F(from_bits)((F(bits)(y) & ~mask) | half);
    return F(has_exponent)(x) ? part : x;
}
NR_INLINE T F(binary_exponent)(T x) {
    const bool tiny = LIBM(fabs)(x) < SMALLEST;
    T size = LIBM(fabs)(tiny ? x * WHOLE : x), k = F(exponent)(F(bits)(size)) + C(1) - (tiny ? C(DIGITS) : C(0));
    return F(has_exponent)(x) ? k : C(0);
}

NR_INLINE bool F(signed_down)(T x) { return LIBM(copysign)(C(1), x) < 0; }
NR_INLINE T F(copysign)(T x, T sign) { return LIBM(copysign)(x, sign); }
NR_INLINE T F(trunc_quotient)(T a, T b) { return F(trunc)(a / b); }

/* The rest of a / b, moved to the sign of b. */
NR_INLINE T F(upward)(T rest, T b) { return F(choose)((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest); }

NR_INLINE T F(trunc_remainder)(T a, T b) { return F(rest)(a, b); }
NR_INLINE T F(floor_remainder)(T a, T b) { return F(upward)(F(rest)(a, b), b); }

#undef T
#undef F
