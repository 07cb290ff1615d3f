/* math_float: the part of math.h whose algorithm is the same for float and double: a template, included by math_f64.h and
 * math_f32.h once each. They define before
 *   T, U           the type, and the unsigned integer of its size
 *   F(name)        the name of a function of ours for T: nr_exp_f32
 *   LIBM(name)     the name of libm's: fabsf
 *   DIGITS, BIAS   bits of the mantissa, and the exponent's bias
 *   constants      LOG2E, LN2, LN2_HIGH + LN2_LOW (ln 2 in two parts, of which the first has few bits), SMALLEST (normal
 *                  number), ROOT_BITS (those of sqrt(1/2)), and the bounds that are named by their functions
 *   functions      F(expm1_reduced)(r) = e^r - 1 for |r| <= ln(2) / 2
 *                  F(log_reduced)(k, f) = k ln(2) + log(1 + f) for sqrt(1/2) <= 1 + f < sqrt(2)
 *                  F(exponent)(bits, less): the exponent of a positive number, without its bias, less an integer, as T
 *
 * exp and log reduce the argument as in Tang, "Table-driven implementation of the exponential function" and "... of the
 * logarithm function" (ACM TOMS 1989, 1990), tables replaced by polynomials fitted by Remez exchange. Selects keep NaN: a
 * comparison with NaN is false and the false arm holds the argument. */

#define C(number) ((T)(number))
#define WHOLE C((U)1 << DIGITS)       /* numbers from here on are integers */
#define MAGIC C((U)3 << (DIGITS - 1)) /* 1.5 WHOLE */
#define MANTISSA (((U)1 << DIGITS) - 1)
#define ABOVE_ROOT (F(bits)(C(1)) - ROOT_BITS)

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

/* e^x = 2^n e^r: n is added to the exponent's bits, where that leaves a normal number; below, n + EXP_SHIFT is. Results below
 * the least number come from the select at the end: masks full of -infinity shall not pay for an underflow each. */
NR_INLINE T F(exp)(T x) {
    T y = x < EXP_LEAST ? C(0) : x;
    y = y > EXP_MOST ? EXP_MOST : y;
    const bool low = y < EXP_LOW;
    T t = NR_FMA(y, LOG2E, MAGIC), n = t - MAGIC;
    T r = NR_FMA(n, -LN2_LOW, NR_FMA(n, -LN2_HIGH, y));
    U shift = low ? (U)EXP_SHIFT << DIGITS : 0;
    U bits = F(bits)(C(1) + F(expm1_reduced)(r)) + (F(bits)(t) << DIGITS) + shift;
    T result = F(from_bits)(bits) * (low ? EXP_UNSHIFT : C(1));
    result = x <= EXP_MOST ? result : x + C(INFINITY); /* NaN stays one */
    return x < EXP_LEAST ? C(0) : result;
}

NR_INLINE T F(exp2)(T x) {
    x = x < EXP2_LEAST ? EXP2_LEAST : x;
    x = x > EXP2_MOST ? EXP2_MOST : x;
    T n = F(nearest)(x);
    return F(scaled)(C(1) + F(expm1_reduced)((x - n) * LN2), n);
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

/* x is 2^k (1 + f) with sqrt(1/2) <= 1 + f: ABOVE_ROOT, added to the bits, makes the exponent change there. */
NR_INLINE T F(log)(T x) {
    bool tiny = x < SMALLEST;
    U bits = F(bits)(tiny ? x * WHOLE : x) + ABOVE_ROOT;
    T f = F(from_bits)((bits & MANTISSA) + ROOT_BITS) - C(1);
    T y = F(log_reduced)(F(exponent)(bits, tiny ? DIGITS : 0), f);
    y = x < C(INFINITY) ? y : x;
    y = x == 0 ? -C(INFINITY) : y;
    return x < 0 ? C(NAN) : y;
}

/* As log(1 + x), and what the sum lost is added to f, 2^-k being exact. */
NR_INLINE T F(log1p)(T x) {
    T sum = C(1) + x, lost = x < C(1) ? x - (sum - C(1)) : C(1) - (sum - x);
    U bits = F(bits)(sum) + ABOVE_ROOT;
    T f = F(from_bits)((bits & MANTISSA) + ROOT_BITS) - C(1);
    T k = F(exponent)(bits, 0);
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

NR_INLINE bool F(signed_down)(T x) { return LIBM(copysign)(C(1), x) < 0; }
NR_INLINE T F(copysign)(T x, T sign) { return LIBM(copysign)(x, sign); }
NR_INLINE T F(trunc_quotient)(T a, T b) { return F(trunc)(a / b); }

/* The rest of a / b, moved to the sign of b. */
NR_INLINE T F(upward)(T rest, T b) { return F(choose)((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest); }

#undef C
#undef WHOLE
#undef MAGIC
#undef MANTISSA
#undef ABOVE_ROOT
#undef T
#undef U
#undef F
#undef LIBM
#undef DIGITS
#undef BIAS
#undef LOG2E
#undef LN2
#undef LN2_HIGH
#undef LN2_LOW
#undef SMALLEST
#undef ROOT_BITS
#undef EXP_LEAST
#undef EXP_MOST
#undef EXP_LOW
#undef EXP_SHIFT
#undef EXP_UNSHIFT
#undef EXP2_LEAST
#undef EXP2_MOST
#undef EXPM1_LEAST
#undef EXPM1_MOST
#undef EXPM1_TINY
#undef LOG1P_MOST
