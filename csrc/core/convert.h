/* convert: one number from one dtype to another, defined for every value.
 *
 * Floats become integers by truncation; NaN and what does not fit give the least integer, as x86 has it
 * (uint8 goes through int64 and wraps). Integers wrap. Whatever is not 0 is true, NaN too. */
#ifndef NR_CONVERT_H
#define NR_CONVERT_H

#include <stdint.h>

static inline int64_t nr_int64_of_double(double x) {
    return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (int64_t)x : INT64_MIN;
}

static inline int64_t nr_int64_of_float(float x) {
    return x >= -9223372036854775808.0f && x < 9223372036854775808.0f ? (int64_t)x : INT64_MIN;
}

static inline int32_t nr_int32_of_double(double x) {
    return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN;
}

static inline int32_t nr_int32_of_float(float x) {
    return x >= -2147483648.0f && x < 2147483648.0f ? (int32_t)x : INT32_MIN;
}

static inline int64_t nr_int64_of_integer(int64_t x) { return x; }
static inline int32_t nr_int32_of_integer(int64_t x) { return (int32_t)x; }

/* The conversions by target dtype; x has a compute type of dtype.h. */
#define NR_TO_bool(x) ((x) != 0)
#define NR_TO__Bool NR_TO_bool /* what <stdbool.h> makes of the name */
#define NR_TO_uint8(x) ((uint8_t)NR_TO_int64(x))
#define NR_TO_int32(x) \
    _Generic((x), float: nr_int32_of_float, double: nr_int32_of_double, default: nr_int32_of_integer)(x)
#define NR_TO_int64(x) \
    _Generic((x), float: nr_int64_of_float, double: nr_int64_of_double, default: nr_int64_of_integer)(x)
#define NR_TO_float32(x) ((float)(x))
#define NR_TO_float64(x) ((double)(x))

#endif
