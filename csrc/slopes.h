/* slopes: derivatives of activations that the rows *_backward of ops.def call, for the CPU and for GPUs, which both
 * define exp, exp_beside_1 and normal. A file that includes it defines before
 *   T               the type; SLOPE(name) begins a function of one T, named x
 *   C(number)       the number in T
 *   NR_FMA(a, b, c) a * b + c, rounded once where the processor can
 *   SLOPE_GELU      unless T has its own normal() and gelu_slope() */

SLOPE(silu_slope) {
    const T s = C(1) / (C(1) + exp_beside_1(-x));
    return s * (C(1) + x * (C(1) - s));
}

/* tanh(log(1 + e^x)), which is 1 to the last bit from 20 on. */
SLOPE(mish_gate) {
    const T e = exp(x > C(20) ? C(20) : x), w = e * (e + C(2));
    return w / (w + C(2));
}

SLOPE(mish_slope) {
    const T y = x > C(20) ? C(20) : x, e = exp(y), w = e * (e + C(2));
    const T gate = w / (w + C(2)), rest = C(2) / (w + C(2)); /* 1 - gate */
    return gate + y * (e / (e + C(1))) * rest * (C(1) + gate);
}

#ifdef SLOPE_GELU
/* The distribution function of the normal distribution. */
SLOPE(normal) { return C(0.5) * erfc(x * C(-0.70710678118654752440)); }

/* The derivative of x normal(x), which is that function plus x times the density. */
SLOPE(gelu_slope) { return normal(x) + x * (C(0.39894228040143267794) * exp(C(-0.5) * x * x)); }
#endif

/* The derivative of x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3); beyond 20 that is 0 or 1. */
SLOPE(gelu_tanh_slope) {
    const T upper = x > C(20) ? C(20) : x, y = upper < C(-20) ? C(-20) : upper, square = y * y;
    const T twice = y * NR_FMA(square, C(0.071354816272600248), C(1.5957691216057308));
    const T s = C(1) / (C(1) + exp_beside_1(-twice));
    return s + y * s * (C(1) - s) * NR_FMA(square, C(0.21406444881780074), C(1.5957691216057308));
}

#undef SLOPE
#undef SLOPE_GELU
