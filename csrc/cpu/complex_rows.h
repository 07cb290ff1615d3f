/* complex_rows: makes a kernel of every row of complex.def for one dtype, whose parts are of type REAL: a template of
 * complex.c. Defines fill_DTYPE(kernels). */
#define T REAL _Complex
#define S T

INLINE T NAMED(complex_of)(REAL re, REAL im) {
    T x;
    __real__ x = re;
    __imag__ x = im;
    return x;
}
#define complex_of NAMED(complex_of)

INLINE T times(T a, T b) {
    return complex_of(real(a) * real(b) - imaginary(a) * imaginary(b), real(a) * imaginary(b) + imaginary(a) * real(b));
}

/* Smith, "Algorithm 116: Complex division" (1962): the larger part of b divides first, so that no square overflows. */
INLINE T over(T a, T b) {
    const bool turned = fabs(real(b)) < fabs(imaginary(b)), zero = b == 0;
    const REAL large = turned ? imaginary(b) : real(b), small = turned ? real(b) : imaginary(b);
    const REAL x = turned ? imaginary(a) : real(a), y = turned ? real(a) : imaginary(a);
    const REAL ratio = zero ? 0 : small / large, scale = P(1) / (zero ? fabs(large) : large + small * ratio);
    const REAL re = (x + y * ratio) * scale, im = (y - x * ratio) * scale;
    return complex_of(re, turned ? -im : im);
}

INLINE T power(T a, T b) { return b == 0 ? C(1) : pow(a, b); }

/* e^x - 1: the real part is (e^re - 1) cos(im) - 2 sin(im / 2)^2, exact near 0. */
INLINE T expm1_complex(T x) {
    const REAL half = sin(imaginary(x) * P(0.5));
    return complex_of(expm1(real(x)) * cos(imaginary(x)) - P(2) * half * half, exp(real(x)) * sin(imaginary(x)));
}

/* log(1 + x): log|1 + x| is log1p(re (2 + re) + im^2) / 2, exact near 0. */
INLINE T log1p_complex(T x) {
    const REAL re = real(x), im = imaginary(x), angle = atan2(im, P(1) + re);
    if (fabs(x) >= P(0.5)) return complex_of(log(hypot(P(1) + re, im)), angle);
    return complex_of(P(0.5) * log1p(re * (P(2) + re) + im * im), angle);
}

/* log(e^a + e^b), by the one with the larger real part; two equal infinities are their own. */
INLINE T logaddexp_complex(T a, T b) {
    const T high = real(a) >= real(b) ? a : b, low = real(a) >= real(b) ? b : a;
    return a == b && isinf(real(a)) ? a : high + log1p_complex(exp(low - high));
}

/* The derivative of x s, s = sigmoid(x). */
INLINE T silu_slope(T x) {
    const T s = over(C(1), C(1) + exp(-x));
    return times(s, C(1) + times(x, C(1) - s));
}

#define INTEGER int64_t /* no row has a quick formula */
#define LOOP_NAME(form) LOOP_FOR(form, SAME)
#define R T
#define RS T
#include "pointwise_loops.h"
#define LOOP_NAME(form) LOOP_FOR(form, PART)
#define R REAL
#define RS REAL
#include "pointwise_loops.h"
#define LOOP_NAME(form) LOOP_FOR(form, TRUTH)
#define R bool
#define RS uint8_t
#include "pointwise_loops.h"

#define UNARY(name, result, formula) MAKE(unary, name, result, formula, (T x), EXTRAS_UNARY)
#define BINARY(name, result, formula) MAKE(binary, name, result, formula, (T a, T b), EXTRAS_BINARY)
#define CHOICE(name, result, formula) MAKE(choice, name, result, formula, (bool a, T b, T c), )
#define TERNARY(name, result, formula) MAKE(ternary, name, result, formula, (T a, T b, T c), EXTRAS_TERNARY)
#include "../complex.def"

static void NAMED(fill)(nr_kernel_rows kernels) {
#define UNARY(name, ...) kernels[NR_OP_##name][NUMBER] = (nr_kernel)KERNEL(name);
#define BINARY UNARY
#define CHOICE UNARY
#define TERNARY UNARY
#include "../complex.def"
}
#undef T
#undef S
#undef INTEGER
#undef complex_of
