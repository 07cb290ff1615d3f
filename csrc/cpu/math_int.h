/* math_int: the part of math.h for integers and bool. Nothing traps or is undefined: arithmetic wraps,
 * a quotient by 0 is 0 (callers refuse such divisors before). Included by math.h alone. */

/* Names of functions get the type's suffix: NR_NAME(floor, i32) is nr_floor_i32. */
#define NR_NAME(name, suffix) nr_##name##_##suffix

/* What every integer type and bool has alike. T is the type, F its suffix. */
#define NR_DEFINE_ORDER(T, F)                                           \
    NR_INLINE T NR_NAME(larger, F)(T a, T b) { return a > b ? a : b; }  \
    NR_INLINE T NR_NAME(smaller, F)(T a, T b) { return a < b ? a : b; } \
    NR_INLINE bool NR_NAME(infinite, F)(T x) { return (void)x, false; } \
    NR_INLINE bool NR_NAME(finite, F)(T x) { return (void)x, true; }

#define NR_DEFINE_INTEGER(T, F)                                                           \
    NR_DEFINE_ORDER(T, F)                                                                 \
    NR_INLINE T NR_NAME(floor, F)(T x) { return x; }                                      \
    NR_INLINE T NR_NAME(ceil, F)(T x) { return x; }                                       \
    NR_INLINE T NR_NAME(trunc, F)(T x) { return x; }                                      \
    NR_INLINE T NR_NAME(round_even, F)(T x) { return x; }                                 \
    NR_INLINE T NR_NAME(complement, F)(T x) { return (T)~x; }                             \
    NR_INLINE T NR_NAME(bounded, F)(T x, T low, T high) {                                 \
        return NR_NAME(smaller, F)(NR_NAME(larger, F)(x, low), high);                     \
    }                                                                                     \
    NR_INLINE T NR_NAME(shifted_left, F)(T x, T n) {                                      \
        bool inside = (uint64_t)(int64_t)n < 8 * sizeof(T);                               \
        return inside ? (T)((uint64_t)x << ((uint64_t)n & 63)) : 0;                       \
    }                                                                                     \
    NR_INLINE T NR_NAME(shifted_right, F)(T x, T n) {                                     \
        bool inside = (uint64_t)(int64_t)n < 8 * sizeof(T); /* else the sign fills all */ \
        return (T)((x >> (inside ? n : (T)(8 * sizeof(T) - 1))) >> !inside);              \
    }

NR_DEFINE_ORDER(bool, b8)
NR_DEFINE_INTEGER(uint8_t, u8)
NR_DEFINE_INTEGER(int32_t, i32)
NR_DEFINE_INTEGER(int64_t, i64)

NR_INLINE bool nr_complement_b8(bool x) { return !x; }
NR_INLINE bool nr_signed_down_b8(bool x) { return (void)x, false; }

/* base^exponent mod 2^64 by squaring: every narrower wrapping result is its low bits. */
NR_INLINE uint64_t nr_power_wrapped(uint64_t base, uint64_t exponent) {
    uint64_t result = 1;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1) result *= base;
    return result;
}

NR_INLINE uint8_t nr_absolute_u8(uint8_t x) { return x; }
NR_INLINE bool nr_signed_down_u8(uint8_t x) { return (void)x, false; }
NR_INLINE uint8_t nr_trunc_quotient_u8(uint8_t a, uint8_t b) { return b ? (uint8_t)(a / b) : 0; }
NR_INLINE uint8_t nr_trunc_remainder_u8(uint8_t a, uint8_t b) { return b ? (uint8_t)(a % b) : 0; }
NR_INLINE uint8_t nr_power_u8(uint8_t a, uint8_t b) { return (uint8_t)nr_power_wrapped(a, b); }
NR_INLINE uint8_t nr_floor_quotient_u8(uint8_t a, uint8_t b) { return b ? (uint8_t)(a / b) : 0; }
NR_INLINE uint8_t nr_floor_remainder_u8(uint8_t a, uint8_t b) { return b ? (uint8_t)(a % b) : 0; }

/* T signed, U its unsigned twin: in U wrapping is defined. Divisors 0 and -1 are kept from the division,
 * which would trap on the least integer / -1. A negative power is 1 / base^|b|, truncated. */
#define NR_DEFINE_SIGNED(T, U, F)                                                                                  \
    NR_INLINE T NR_NAME(absolute, F)(T x) { return x < 0 ? (T)(0 - (U)x) : x; }                                    \
    NR_INLINE bool NR_NAME(signed_down, F)(T x) { return x < 0; }                                                  \
    NR_INLINE T NR_NAME(trunc_quotient, F)(T a, T b) { return b == 0 ? 0 : b == -1 ? (T)(0 - (U)a) : (T)(a / b); } \
    NR_INLINE T NR_NAME(trunc_remainder, F)(T a, T b) { return (T)(a % (((b == 0) | (b == -1)) ? 1 : b)); }        \
    NR_INLINE T NR_NAME(floor_quotient, F)(T a, T b) {                                                             \
        T safe = ((b == 0) | (b == -1)) ? 1 : b;                                                                   \
        T quotient = a / safe - ((a % safe != 0) & ((a < 0) != (safe < 0)));                                       \
        return b == 0 ? 0 : b == -1 ? (T)(0 - (U)a) : quotient;                                                    \
    }                                                                                                              \
    NR_INLINE T NR_NAME(floor_remainder, F)(T a, T b) {                                                            \
        T safe = ((b == 0) | (b == -1)) ? 1 : b;                                                                   \
        T rest = a % safe;                                                                                         \
        return ((rest != 0) & ((rest < 0) != (safe < 0))) ? rest + safe : rest;                                    \
    }                                                                                                              \
    NR_INLINE T NR_NAME(power, F)(T a, T b) {                                                                      \
        T negative = a == 1 ? 1 : a == -1 ? ((b & 1) ? -1 : 1) : 0;                                                \
        return b < 0 ? negative : (T)nr_power_wrapped((uint64_t)a, (uint64_t)b);                                   \
    }

NR_DEFINE_SIGNED(int32_t, uint32_t, i32)
NR_DEFINE_SIGNED(int64_t, uint64_t, i64)

#undef NR_DEFINE_ORDER
#undef NR_DEFINE_INTEGER
#undef NR_DEFINE_SIGNED
