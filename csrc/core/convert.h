/* convert: conversion of one number between dtypes, with a defined result for every value.
 *
 * A float is truncated to an integer; NaN and values out of range give the smallest integer, as on x86 (uint8 is
 * converted through int64, int8 and int16 through int32; these wrap). Integers wrap. Every value but 0 is true,
 * including NaN. float16 and bfloat16 are rounded from float to nearest, ties to even; other numbers are converted to
 * float first. */
#ifndef NR_CONVERT_H
#define NR_CONVERT_H

#include <stdint.h>
#include <string.h>

#ifndef NR_SHARED /* how a backend declares an inline function */
#define NR_SHARED static inline
#endif

NR_SHARED int64_t nr_int64_of_double(double x) {
    return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (int64_t)x : INT64_MIN;
}

NR_SHARED int64_t nr_int64_of_float(float x) {
    return x >= -9223372036854775808.0f && x < 9223372036854775808.0f ? (int64_t)x : INT64_MIN;
}

NR_SHARED int32_t nr_int32_of_double(double x) {
    return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN;
}

NR_SHARED int32_t nr_int32_of_float(float x) {
    return x >= -2147483648.0f && x < 2147483648.0f ? (int32_t)x : INT32_MIN;
}

NR_SHARED int64_t nr_int64_of_integer(int64_t x) { return x; }
NR_SHARED int32_t nr_int32_of_integer(int64_t x) { return (int32_t)x; }

/* ---- 16-bit floats: IEEE 754 binary16, and bfloat16, the upper half of a float. Selects instead of branches let the
 * compiler vectorize loops over them. */

NR_SHARED float nr_float_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

NR_SHARED uint32_t nr_bits_of_float(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

NR_SHARED float nr_float_of_float16(uint16_t half) {
    uint32_t size = (uint32_t)(half & 0x7fff) << 13, sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t normal = size + (112u << 23), special = size | 0x7f800000;
    uint32_t subnormal = nr_bits_of_float(nr_float_of_bits(size + (113u << 23)) - 0x1p-14f);
    uint32_t bits = size >= 0x1fu << 23 ? special : normal;
    return nr_float_of_bits((size < 1u << 23 ? subnormal : bits) | sign);
}

NR_SHARED uint16_t nr_float16_of_float(float x) {
    uint32_t bits = nr_bits_of_float(x), size = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
    /* below 2^-14: 0.5 + x has an ulp of 2^-24, the spacing of subnormal halves, so that the addition rounds to it */
    uint32_t subnormal = nr_bits_of_float(nr_float_of_bits(size) + 0.5f) - (126u << 23);
    uint32_t normal = (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    uint32_t special = size > 0x7f800000 ? 0x7e00 : 0x7c00;
    uint32_t half = size < 113u << 23 ? subnormal : normal;
    return (uint16_t)((size >= 143u << 23 ? special : half) | sign);
}

NR_SHARED float nr_float_of_bfloat16(uint16_t half) { return nr_float_of_bits((uint32_t)half << 16); }

NR_SHARED uint16_t nr_bfloat16_of_float(float x) {
    uint32_t bits = nr_bits_of_float(x), quiet = bits >> 16 | 0x40;
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

/* From the stored to the computed type of a dtype. */
#define NR_OF_bool(x) ((x) != 0)
#define NR_OF__Bool NR_OF_bool /* <stdbool.h> expands the name to this */
#define NR_OF_uint8(x) (x)
#define NR_OF_int8(x) (x)
#define NR_OF_int16(x) (x)
#define NR_OF_int32(x) (x)
#define NR_OF_int64(x) (x)
#define NR_OF_float16 nr_float_of_float16
#define NR_OF_bfloat16 nr_float_of_bfloat16
#define NR_OF_float32(x) (x)
#define NR_OF_float64(x) (x)

/* From any computed type to the stored type of a dtype. */
#define NR_TO_bool(x) ((x) != 0)
#define NR_TO__Bool NR_TO_bool
#define NR_TO_uint8(x) /* float32 above 2^31 are multiples of 256 */ \
    ((uint8_t)_Generic((x), float: nr_int32_of_float, double: nr_int64_of_double, default: nr_int64_of_integer)(x))
#define NR_TO_int8(x) ((int8_t)NR_TO_int32(x))
#define NR_TO_int16(x) ((int16_t)NR_TO_int32(x))
#define NR_TO_int32(x) \
    _Generic((x), float: nr_int32_of_float, double: nr_int32_of_double, default: nr_int32_of_integer)(x)
#define NR_TO_int64(x) \
    _Generic((x), float: nr_int64_of_float, double: nr_int64_of_double, default: nr_int64_of_integer)(x)
#define NR_TO_float16(x) nr_float16_of_float((float)(x))
#define NR_TO_bfloat16(x) nr_bfloat16_of_float((float)(x))
#define NR_TO_float32(x) ((float)(x))
#define NR_TO_float64(x) ((double)(x))

#endif
