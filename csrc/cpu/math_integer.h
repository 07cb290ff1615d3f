/* math_integer: the functions of one integer type, a template that math_int.h includes with
 *   T, U      the type and its unsigned twin, in which wrapping is defined
 *   F(name)   the name of a function for T: nr_floor_i32
 *   UNSIGNED  where T has no negative numbers */

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

#ifdef UNSIGNED
NR_INLINE T F(absolute)(T x) { return x; }
NR_INLINE bool F(signed_down)(T x) { return (void)x, false; }
NR_INLINE T F(trunc_quotient)(T a, T b) { return b ? (T)(a / b) : 0; }
NR_INLINE T F(trunc_remainder)(T a, T b) { return b ? (T)(a % b) : 0; }
NR_INLINE T F(floor_quotient)(T a, T b) { return b ? (T)(a / b) : 0; }
NR_INLINE T F(floor_remainder)(T a, T b) { return b ? (T)(a % b) : 0; }
NR_INLINE T F(power)(T a, T b) { return (T)nr_power_wrapped(a, b); }
#else
/* Divisors 0 and -1 are kept from the division, which would trap on the least integer / -1. */
NR_INLINE T F(absolute)(T x) { return x < 0 ? (T)(0 - (U)x) : x; }
NR_INLINE bool F(signed_down)(T x) { return x < 0; }
NR_INLINE T F(trunc_quotient)(T a, T b) { return b == 0 ? 0 : b == -1 ? (T)(0 - (U)a) : (T)(a / b); }
NR_INLINE T F(trunc_remainder)(T a, T b) { return (T)(a % (((b == 0) | (b == -1)) ? 1 : b)); }
NR_INLINE T F(floor_quotient)(T a, T b) {
    T safe = ((b == 0) | (b == -1)) ? 1 : b;
    T quotient = a / safe - ((a % safe != 0) & ((a < 0) != (safe < 0)));
    return b == 0 ? 0 : b == -1 ? (T)(0 - (U)a) : quotient;
}
NR_INLINE T F(floor_remainder)(T a, T b) {
    T safe = ((b == 0) | (b == -1)) ? 1 : b;
    T rest = a % safe;
    return ((rest != 0) & ((rest < 0) != (safe < 0))) ? rest + safe : rest;
}
/* A negative power is 1 / a^|b|, truncated. */
NR_INLINE T F(power)(T a, T b) {
    T negative = a == 1 ? 1 : a == -1 ? ((b & 1) ? -1 : 1) : 0;
    return b < 0 ? negative : (T)nr_power_wrapped((uint64_t)a, (uint64_t)b);
}
#endif

#undef T
#undef U
#undef F
#undef UNSIGNED
