/* math_integer: the functions of one integer type T, a template: of each_dtype.h for the CPU, and of C++ for a GPU
 * (cuda/math.cuh).
 *   F(name)   the name of a function for T: nr_floor_int32 */

NR_INLINE T F(larger)(T a, T b) { return a > b ? a : b; }
NR_INLINE T F(smaller)(T a, T b) { return a < b ? a : b; }
NR_INLINE T F(bounded)(T x, T low, T high) { return F(smaller)(F(larger)(x, low), high); }
NR_INLINE bool F(infinite)(T x) { return (void)x, false; }
NR_INLINE bool F(finite)(T x) { return (void)x, true; }
NR_INLINE T F(floor)(T x) { return x; }
NR_INLINE T F(ceil)(T x) { return x; }
NR_INLINE T F(trunc)(T x) { return x; }
NR_INLINE T F(round_even)(T x) { return x; }
NR_INLINE T F(complement)(T x) { return (T)~x; }
NR_INLINE T F(shifted_left)(T x, T n) {
    bool inside = (uint64_t)(int64_t)n < 8 * sizeof(T);
    return inside ? (T)((uint64_t)x << ((uint64_t)n & 63)) : 0;
}
NR_INLINE T F(shifted_right)(T x, T n) {
    bool inside = (uint64_t)(int64_t)n < 8 * sizeof(T); /* else the sign fills all */
    return (T)((x >> (inside ? n : (T)(8 * sizeof(T) - 1))) >> !inside);
}

/* Division by 0 and of the least integer by -1 would trap: divisors 0 and -1 are handled apart. */
#define IS_SIGNED ((T)(-1) < (T)1)
#define NEGATIVE(x) ((T)(0 - (uint64_t)(x)))
NR_INLINE T F(absolute)(T x) { return x < 0 ? NEGATIVE(x) : x; }
NR_INLINE bool F(signed_down)(T x) { return x < 0; }
NR_INLINE T F(divisor)(T b) { return (b == 0) | (IS_SIGNED & (b == (T)(-1))) ? 1 : b; }
NR_INLINE T F(trunc_quotient)(T a, T b) { return b == 0 ? 0 : IS_SIGNED && b == (T)(-1) ? NEGATIVE(a) : (T)(a / b); }
NR_INLINE T F(trunc_remainder)(T a, T b) { return (T)(a % F(divisor)(b)); }
NR_INLINE T F(floor_quotient)(T a, T b) {
    T safe = F(divisor)(b);
    T quotient = (T)(a / safe - ((a % safe != 0) & ((a < 0) != (safe < 0))));
    return b == 0 ? 0 : IS_SIGNED && b == (T)(-1) ? NEGATIVE(a) : quotient;
}
NR_INLINE T F(floor_remainder)(T a, T b) {
    T safe = F(divisor)(b);
    T rest = (T)(a % safe);
    return ((rest != 0) & ((rest < 0) != (safe < 0))) ? (T)(rest + safe) : rest;
}
/* By squaring mod 2^64, whose low bits are every narrower result. A negative power is 1 / a^|b|, truncated. */
NR_INLINE T F(power)(T a, T b) {
    if (b < 0) return a == 1 ? 1 : a == (T)(-1) ? ((b & 1) ? (T)(-1) : 1) : 0;
    uint64_t result = 1, base = (uint64_t)a;
    for (uint64_t exponent = (uint64_t)b; exponent; exponent >>= 1, base *= base)
        if (exponent & 1) result *= base;
    return (T)result;
}
/* Euclid's algorithm on magnitudes of 64 bits, which hold that of the least integer too. */
#define MAGNITUDE(x) ((x) < 0 ? 0 - (uint64_t)(x) : (uint64_t)(x))
NR_INLINE T F(gcd)(T a, T b) {
    uint64_t x = MAGNITUDE(a), y = MAGNITUDE(b);
    for (uint64_t rest; y; x = y, y = rest) rest = x % y;
    return (T)x;
}
NR_INLINE T F(lcm)(T a, T b) {
    const T common = F(gcd)(a, b);
    return common == 0 ? common : F(absolute)((T)(MAGNITUDE(a) / MAGNITUDE(common) * MAGNITUDE(b)));
}
#undef MAGNITUDE
#undef IS_SIGNED
#undef NEGATIVE
