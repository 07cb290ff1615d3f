/* each_dtype: includes the file TEMPLATE once for each wide dtype (dtypes.def) for which WANTED(kind, bits) holds: kind
 * is 'f', 'i', 'u' or 'b', bits the size of an element. Undefines both macros. TEMPLATE sees
 *
 *   DTYPE_NAME       float32; of bool it expands to _Bool
 *   NUMBER           NORCH_FLOAT32
 *   S, T, ACC        the types that dtypes.def calls stored, computed and sum
 *   INTEGER          a signed integer as wide as an element
 *   KIND_OF_DTYPE    F, I or B; IS_FLOAT is 1 or 0, DTYPE_BITS the size of an element, for #if
 *   OF_DTYPE(name)   name_float32 */
#ifndef NR_EACH_DTYPE_H
#define NR_EACH_DTYPE_H

#include "cpu.h"

/* The integers, for _Generic: a function for each. */
/* clang-format off */
#define NR_OF_INTEGERS(name) \
    uint8_t: nr_##name##_uint8, \
    int32_t: nr_##name##_int32, \
    int64_t: nr_##name##_int64
/* clang-format on */

#define NR_BY_SIZE(S) \
    __builtin_choose_expr(sizeof(S) == 8, (int64_t)0, __builtin_choose_expr(sizeof(S) == 4, (int32_t)0, (int8_t)0))
#define NR_FLOAT_F 1
#define NR_FLOAT_I 0
#define NR_FLOAT_B 0
#define NR_BITS_float32 32
#define NR_BITS_float64 64
#define NR_BITS__Bool 8
#define NR_BITS_uint8 8
#define NR_BITS_int32 32
#define NR_BITS_int64 64

#define WIDE(NAME, name, stored, computed, sum, ...)                   \
    typedef stored NR_JOIN2(nr_stored, name);                          \
    typedef computed NR_JOIN2(nr_computed, name);                      \
    typedef sum NR_JOIN2(nr_sum, name);                                \
    typedef __typeof__(NR_BY_SIZE(stored)) NR_JOIN2(nr_integer, name); \
    enum { NR_JOIN2(nr_number_of, name) = NORCH_##NAME };
#define NARROW(...)
#include "../dtypes.def"

#endif

#define OF_DTYPE(name) NR_JOIN2(name, DTYPE_NAME)
#define NUMBER OF_DTYPE(nr_number_of)
#define S OF_DTYPE(nr_stored)
#define T OF_DTYPE(nr_computed)
#define ACC OF_DTYPE(nr_sum)
#define INTEGER OF_DTYPE(nr_integer)
#define IS_FLOAT NR_JOIN2(NR_FLOAT, KIND_OF_DTYPE)
#define DTYPE_BITS NR_JOIN2(NR_BITS, DTYPE_NAME)

#if WANTED('f', 32)
#define DTYPE_NAME float32
#define KIND_OF_DTYPE F
#include TEMPLATE
#undef DTYPE_NAME
#undef KIND_OF_DTYPE
#endif

#if WANTED('f', 64)
#define DTYPE_NAME float64
#define KIND_OF_DTYPE F
#include TEMPLATE
#undef DTYPE_NAME
#undef KIND_OF_DTYPE
#endif

#if WANTED('b', 8)
#define DTYPE_NAME bool
#define KIND_OF_DTYPE B
#include TEMPLATE
#undef DTYPE_NAME
#undef KIND_OF_DTYPE
#endif

#if WANTED('u', 8)
#define DTYPE_NAME uint8
#define KIND_OF_DTYPE I
#include TEMPLATE
#undef DTYPE_NAME
#undef KIND_OF_DTYPE
#endif

#if WANTED('i', 32)
#define DTYPE_NAME int32
#define KIND_OF_DTYPE I
#include TEMPLATE
#undef DTYPE_NAME
#undef KIND_OF_DTYPE
#endif

#if WANTED('i', 64)
#define DTYPE_NAME int64
#define KIND_OF_DTYPE I
#include TEMPLATE
#undef DTYPE_NAME
#undef KIND_OF_DTYPE
#endif

#undef OF_DTYPE
#undef NUMBER
#undef S
#undef T
#undef ACC
#undef INTEGER
#undef IS_FLOAT
#undef DTYPE_BITS
#undef WANTED
#undef TEMPLATE
