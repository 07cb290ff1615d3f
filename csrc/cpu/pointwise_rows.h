/* pointwise_rows: makes a kernel of every elementwise row of ops.def whose domain has the dtype: a template of
 * each_dtype.h. Defines fill_DTYPE(kernels). */
#ifndef NR_POINTWISE_ROWS_H
#define NR_POINTWISE_ROWS_H

#define FORMULA(name) NR_JOIN2(formula_##name, DTYPE_NAME)
#define KERNEL(name) NR_JOIN2(kernel_##name, DTYPE_NAME)

/* The loop for a row: there are two, by the type of the result. */
#define LOOP_FOR(form, result) NR_JOIN2(form##_##result, DTYPE_NAME)
#define LOOP_OF_SAME(form) LOOP_FOR(form, SAME)
#define LOOP_OF_FLOAT(form) LOOP_FOR(form, SAME)
#define LOOP_OF_TRUTH(form) LOOP_FOR(form, TRUTH)
#define RESULT_SAME T
#define RESULT_FLOAT T
#define RESULT_TRUTH bool

/* Arguments of the loops (pointwise_loops.h). For a BINARY row: whether scalars are packed; whether it has one loop, as
 * its formula is long or rarely has scalars; the functions for easy arguments, or NULL. For a TERNARY row: whether it
 * has one loop. */
#define ONE_LOOP(name)                                                                                                 \
    (NR_OP_##name == NR_OP_logaddexp || NR_OP_##name == NR_OP_logaddexp2 || NR_OP_##name == NR_OP_zeta ||              \
     NR_OP_##name == NR_OP_xlogy || NR_OP_##name == NR_OP_atan2 || NR_OP_##name == NR_OP_hypot ||                      \
     NR_OP_##name == NR_OP_nextafter || NR_OP_##name == NR_OP_round_decimals || NR_OP_##name == NR_OP_round_tens ||    \
     NR_OP_##name == NR_OP_logical_and || NR_OP_##name == NR_OP_logical_or || NR_OP_##name == NR_OP_logical_xor ||     \
     NR_OP_##name == NR_OP_silu_backward || NR_OP_##name == NR_OP_gelu_backward ||                                     \
     NR_OP_##name == NR_OP_gelu_tanh_backward || NR_OP_##name == NR_OP_mish_backward ||                                \
     NR_OP_##name == NR_OP_selu_backward || NR_OP_##name == NR_OP_logsigmoid_backward ||                               \
     NR_OP_##name == NR_OP_tanhshrink_backward || NR_OP_##name == NR_OP_softsign_backward ||                           \
     NR_OP_##name == NR_OP_elu || NR_OP_##name == NR_OP_celu || NR_OP_##name == NR_OP_elu_backward ||                  \
     NR_OP_##name == NR_OP_celu_backward || NR_OP_##name == NR_OP_softplus ||                                          \
     NR_OP_##name == NR_OP_softplus_backward || NR_OP_##name == NR_OP_clamp_min_backward ||                            \
     NR_OP_##name == NR_OP_clamp_max_backward || NR_OP_##name == NR_OP_hardtanh_backward ||                            \
     NR_OP_##name == NR_OP_shrink_backward || NR_OP_##name == NR_OP_threshold_backward ||                              \
     NR_OP_##name == NR_OP_leaky_relu_backward || NR_OP_##name == NR_OP_huber_backward || NR_OP_##name == NR_OP_gcd || \
     NR_OP_##name == NR_OP_lcm || NR_OP_##name == NR_OP_igamma || NR_OP_##name == NR_OP_igammac ||                     \
     NR_OP_##name == NR_OP_poisson)
#define EASY_OF(name) \
    (NR_OP_##name == NR_OP_pow ? nr_easy_power_f32 : NR_OP_##name == NR_OP_zeta ? nr_easy_trigamma_f32 : nr_easy_f32)
#define QUICK(name)                                                \
    (NR_OP_##name == NR_OP_remainder ? nr_easy_floor_remainder_f32 \
     : NR_OP_##name == NR_OP_fmod    ? nr_easy_rest_f32            \
     : NR_OP_##name == NR_OP_pow     ? nr_quick_power_f32          \
     : NR_OP_##name == NR_OP_zeta    ? nr_quick_trigamma_f32       \
                                     : NULL)
#define EASY_WIDE(name) (NR_OP_##name == NR_OP_pow && NR_HAS_FMA ? nr_easy_power_f64 : NULL)
#define QUICK_WIDE(name) (NR_OP_##name == NR_OP_pow && NR_HAS_FMA ? nr_quick_power_f64 : NULL)
#define BINARY_EXTRAS(name)                                                                                    \
    , NR_OP_##name == NR_OP_pow || _Generic((T)0, float: QUICK(name) != NULL, default: false), ONE_LOOP(name), \
        _Generic((T)0, float: EASY_OF(name), double: EASY_WIDE(name), default: NULL),                          \
        _Generic((T)0, float: QUICK(name), double: QUICK_WIDE(name), default: NULL)

/* For a UNARY row: the test of arguments and the quick formula, or NULL; the formula of most arguments and that of the
 * rest, or NULL. */
#define QUICK_IN(name, type)                               \
    (NR_OP_##name == NR_OP_exp     ? nr_quick_exp_##type   \
     : NR_OP_##name == NR_OP_log   ? nr_quick_log_##type   \
     : NR_OP_##name == NR_OP_log2  ? nr_quick_log2_##type  \
     : NR_OP_##name == NR_OP_log10 ? nr_quick_log10_##type \
     : !NR_HAS_FMA                 ? NULL                  \
     : NR_OP_##name == NR_OP_sin   ? nr_quick_sin_##type   \
     : NR_OP_##name == NR_OP_cos   ? nr_quick_cos_##type   \
     : NR_OP_##name == NR_OP_tan   ? nr_quick_tan_##type   \
                                   : NULL)
#define HARD_IN(name, type)                                                                                        \
    (NR_OP_##name == NR_OP_exp                                                                ? nr_hard_exp_##type \
     : NR_OP_##name == NR_OP_log || NR_OP_##name == NR_OP_log2 || NR_OP_##name == NR_OP_log10 ? nr_hard_log_##type \
                                                                                              : nr_hard_angle_##type)
#define UNARY_EXTRAS(name)                                                            \
    ,                                                                                 \
        _Generic((T)0,                                                                \
        float: NR_OP_##name == NR_OP_erfinv ? nr_hard_erfinv_f32                      \
        : NR_OP_##name == NR_OP_exp2        ? nr_hard_exp2_f32                        \
        : NR_OP_##name == NR_OP_lgamma      ? nr_hard_log_f32                         \
                                            : HARD_IN(name, f32),                     \
        double: HARD_IN(name, f64),                                                   \
        default: NULL),                                                               \
        _Generic((T)0,                                                                \
        float: NR_OP_##name == NR_OP_erfinv           ? nr_quick_erfinv_f32           \
        : NR_OP_##name == NR_OP_exp2                  ? nr_quick_exp2_f32             \
        : NR_OP_##name == NR_OP_lgamma && !NR_HAS_FMA ? nr_quick_lgamma_f32           \
        : NR_OP_##name == NR_OP_sin && !NR_HAS_FMA    ? nr_near_sin_f32               \
        : NR_OP_##name == NR_OP_cos && !NR_HAS_FMA    ? nr_near_cos_f32               \
                                                      : QUICK_IN(name, f32),          \
        double: QUICK_IN(name, f64),                                                  \
        default: NULL),                                                               \
        _Generic((T)0, float: MOST(name) ? nr_most_lgamma_f32 : NULL, default: NULL), \
        _Generic((T)0, float: MOST(name) ? nr_rest_lgamma_f32 : NULL, default: NULL)
#define MOST(name) (NR_OP_##name == NR_OP_lgamma && NR_HAS_FMA)

#define TERNARY_EXTRAS(name) , ONE_LOOP(name)

/* a > b is b < a: the kernel that a row calls with its operands swapped, or NULL. */
#define SWAPPED(name) (NR_OP_##name == NR_OP_gt ? KERNEL(lt) : NR_OP_##name == NR_OP_ge ? KERNEL(le) : NULL)

/* One formula and its kernel. */
#define MAKE(form, name, result, formula, parameters, extras)                                            \
    INLINE RESULT_##result FORMULA(name) parameters { return (RESULT_##result)(formula); }               \
    static void KERNEL(name)(int64_t n, char *const *p, const int64_t *s, bool streams) {                \
        const nr_pointwise_kernel swapped = SWAPPED(name);                                               \
        if (swapped)                                                                                     \
            swapped(n, (char *const[]){p[0], p[2], p[1]}, (const int64_t[]){s[0], s[2], s[1]}, streams); \
        else                                                                                             \
            LOOP_OF_##result(form)(n, p, s, streams, FORMULA(name) extras);                              \
    }

#endif

#if DTYPE_BITS >= 32 && defined(NR_SMALL_BASELINE)
#pragma GCC push_options
#pragma GCC optimize("Os")
#endif

/* The loops, once with a result of T and once with a result of bool. */
#define LOOP_NAME(form) LOOP_FOR(form, SAME)
#define R T
#define RS S
#include "pointwise_loops.h"
#define LOOP_NAME(form) LOOP_FOR(form, TRUTH)
#define R bool
#define RS uint8_t
#include "pointwise_loops.h"

static void KERNEL(lt)(int64_t n, char *const *p, const int64_t *s, bool streams);
static void KERNEL(le)(int64_t n, char *const *p, const int64_t *s, bool streams);

#define UNARY(name, domain, result, formula) \
    IN_DOMAIN(domain)(MAKE(unary, name, result, formula, (T x), UNARY_EXTRAS(name)))
#define BINARY(name, domain, result, formula) \
    IN_DOMAIN(domain)(MAKE(binary, name, result, formula, (T a, T b), BINARY_EXTRAS(name)))
#define CHOICE(name, domain, result, formula) \
    IN_DOMAIN(domain)(MAKE(choice, name, result, formula, (bool a, T b, T c), ))
#define TERNARY(name, domain, result, formula) \
    IN_DOMAIN(domain)(MAKE(ternary, name, result, formula, (T a, T b, T c), TERNARY_EXTRAS(name)))
#include "../ops.def"

static void OF_DTYPE(fill)(nr_kernel_rows kernels) {
#define UNARY(name, domain, ...) \
    IN_DOMAIN(domain)(if (ROW_BUILT(NR_OP_##name)) kernels[NR_OP_##name][NUMBER] = (nr_kernel)KERNEL(name);)
#define BINARY UNARY
#define CHOICE UNARY
#define TERNARY UNARY
#include "../ops.def"
}

#if DTYPE_BITS >= 32 && defined(NR_SMALL_BASELINE)
#pragma GCC pop_options
#endif
