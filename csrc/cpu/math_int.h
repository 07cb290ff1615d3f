/* math_int: the part of math.h for integers and bool. Nothing traps or is undefined: arithmetic wraps,
 * a quotient by 0 is 0 (callers refuse such divisors before). Included by math.h and cuda/math.cuh alone; the functions
 * that all integer types have are in the template math_integer.h. */

/* base^exponent mod 2^64 by squaring: every narrower wrapping result is its low bits. */
NR_INLINE uint64_t nr_power_wrapped(uint64_t base, uint64_t exponent) {
    uint64_t result = 1;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1) result *= base;
    return result;
}

#define T uint8_t
#define U uint8_t
#define F(name) nr_##name##_u8
#define UNSIGNED
#include "math_integer.h"

#define T int32_t
#define U uint32_t
#define F(name) nr_##name##_i32
#include "math_integer.h"

#define T int64_t
#define U uint64_t
#define F(name) nr_##name##_i64
#include "math_integer.h"

NR_INLINE bool nr_larger_b8(bool a, bool b) { return a > b ? a : b; }
NR_INLINE bool nr_smaller_b8(bool a, bool b) { return a < b ? a : b; }
NR_INLINE bool nr_infinite_b8(bool x) { return (void)x, false; }
NR_INLINE bool nr_finite_b8(bool x) { return (void)x, true; }
NR_INLINE bool nr_complement_b8(bool x) { return !x; }
NR_INLINE bool nr_signed_down_b8(bool x) { return (void)x, false; }
