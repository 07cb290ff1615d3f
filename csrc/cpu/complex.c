/* complex: the kernels of complex.def, compiled for the baseline only, as arithmetic is limited by memory and functions
 * are the C library's. The loops are those of the real dtypes (pointwise_loops.h). */
#include <tgmath.h>
#undef I

#include "pointwise.h"
#include "stream.h"

#define C(number) ((T)(REAL)(number))
#define P(number) ((REAL)(number))
#define real(x) (__real__(x))
#define imaginary(x) (__imag__(x))
#define PACKED 128
#define EASY(stride) true
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed"
#endif
#pragma GCC diagnostic ignored "-Wtautological-compare"

#define NAMED(name) NR_JOIN2(name, DTYPE_NAME)
#define FORMULA(name) NR_JOIN2(formula_##name, DTYPE_NAME)
#define KERNEL(name) NR_JOIN2(kernel_##name, DTYPE_NAME)
#define times NAMED(times)
#define over NAMED(over)
#define power NAMED(power)
#define expm1_complex NAMED(expm1)
#define log1p_complex NAMED(log1p)
#define logaddexp_complex NAMED(logaddexp)
#define silu_slope NAMED(silu_slope)
#define LOOP_FOR(form, result) NR_JOIN2(form##_##result, DTYPE_NAME)
#define RESULT_SAME T
#define RESULT_PART REAL
#define RESULT_TRUTH bool
#define EXTRAS_UNARY , NULL, NULL, NULL, NULL
#define EXTRAS_BINARY , false, true, NULL, NULL
#define EXTRAS_TERNARY , true
#define MAKE(form, name, result, formula, parameters, extras)                              \
    INLINE RESULT_##result FORMULA(name) parameters { return (RESULT_##result)(formula); } \
    static void KERNEL(name)(int64_t n, char *const *p, const int64_t *s, bool streams) {  \
        LOOP_FOR(form, result)(n, p, s, streams, FORMULA(name) extras);                    \
    }

#define DTYPE_NAME complex64
#define NUMBER NORCH_COMPLEX64
#define REAL float
#include "complex_rows.h"
#undef DTYPE_NAME
#undef NUMBER
#undef REAL

#define DTYPE_NAME complex128
#define NUMBER NORCH_COMPLEX128
#define REAL double
#include "complex_rows.h"

void nr_fill_complex(nr_kernel_rows kernels) {
    fill_complex64(kernels);
    fill_complex128(kernels);
}
