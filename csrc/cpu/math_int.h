/* math_int: the part of math.h for integers and bool. Nothing traps or is undefined: arithmetic wraps,
 * a quotient by 0 is 0 (callers refuse such divisors before). The functions that all integer types have are in
 * the template math_integer.h. */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits" /* the template compares unsigned numbers with 0 too */
#define F(name) OF_DTYPE(nr_##name)
#define TEMPLATE "math_integer.h"
#define WANTED(kind, bits) (kind == 'i' || kind == 'u')
#include "each_dtype.h"
#pragma GCC diagnostic pop

NR_INLINE bool nr_larger_b8(bool a, bool b) { return a > b ? a : b; }
NR_INLINE bool nr_smaller_b8(bool a, bool b) { return a < b ? a : b; }
NR_INLINE bool nr_infinite_b8(bool x) { return (void)x, false; }
NR_INLINE bool nr_finite_b8(bool x) { return (void)x, true; }
NR_INLINE bool nr_complement_b8(bool x) { return !x; }
NR_INLINE bool nr_signed_down_b8(bool x) { return (void)x, false; }
