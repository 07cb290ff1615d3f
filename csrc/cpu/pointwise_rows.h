/* pointwise_rows: makes a kernel of every row of ops.def in whose domain one dtype lies. Included once a
 * dtype, with
 *   T, S    the type that formulas see, and the type in memory
 *   LABEL   the dtype's name             DTYPE   its number
 *   KIND_OF_DTYPE                         what it is: F, I or B
 *   QUICK_IF, QUICK(name)                 functions for arguments that are no trouble, or NULL: see binary in the loops
 * Defines fill_LABEL(kernels). */

#define ROWS_JOIN2(a, b, c) a##_##b##_##c
#define ROWS_JOIN(a, b, c) ROWS_JOIN2(a, b, c)
#define FORMULA(name) ROWS_JOIN(formula, name, LABEL)
#define KERNEL(name) ROWS_JOIN(kernel, name, LABEL)

/* The loops, once with a result of T and once with a result of bool. */
#define LOOP_NAME(form) ROWS_JOIN(form, SAME, LABEL)
#define R T
#define RS S
#include "pointwise_loops.h"
#undef LOOP_NAME
#undef R
#undef RS
#define LOOP_NAME(form) ROWS_JOIN(form, TRUTH, LABEL)
#define R bool
#define RS uint8_t
#include "pointwise_loops.h"
#undef LOOP_NAME
#undef R
#undef RS

#define LOOP_FOR(form, result) ROWS_JOIN(form, KIND_OF_##result, LABEL)
#define KIND_OF_SAME SAME
#define KIND_OF_FLOAT SAME
#define KIND_OF_TRUTH TRUTH
#define RESULT_SAME T
#define RESULT_FLOAT T
#define RESULT_TRUTH bool

/* One formula and its kernel; or nothing, when the dtype is outside the domain. */
#define MAKE_UNARY(name, result, formula)                                                 \
    static inline __attribute__((always_inline)) RESULT_##result FORMULA(name)(T x) {     \
        return (RESULT_##result)(formula);                                                \
    }                                                                                     \
    static void KERNEL(name)(int64_t n, char *const *p, const int64_t *s, bool streams) { \
        LOOP_FOR(unary, result)(n, p, s, streams, FORMULA(name));                         \
    }
#define MAKE_BINARY(name, result, formula)                                                                          \
    static inline __attribute__((always_inline)) RESULT_##result FORMULA(name)(T a, T b) {                          \
        return (RESULT_##result)(formula);                                                                          \
    }                                                                                                               \
    static void KERNEL(name)(int64_t n, char *const *p, const int64_t *s, bool streams) {                           \
        LOOP_FOR(binary, result)(n, p, s, streams, FORMULA(name), NR_OP_##name == NR_OP_pow || QUICK(name) != NULL, \
                                 QUICK_IF, QUICK(name));                                                            \
    }
#define MAKE_TERNARY(name, result, formula)                                                     \
    static inline __attribute__((always_inline)) RESULT_##result FORMULA(name)(T a, T b, T c) { \
        return (RESULT_##result)(formula);                                                      \
    }                                                                                           \
    static void KERNEL(name)(int64_t n, char *const *p, const int64_t *s, bool streams) {       \
        LOOP_FOR(ternary, result)(n, p, s, streams, FORMULA(name));                             \
    }
#define MAKE_CHOICE(name, result, formula)                                                         \
    static inline __attribute__((always_inline)) RESULT_##result FORMULA(name)(bool a, T b, T c) { \
        return (RESULT_##result)(formula);                                                         \
    }                                                                                              \
    static void KERNEL(name)(int64_t n, char *const *p, const int64_t *s, bool streams) {          \
        LOOP_FOR(choice, result)(n, p, s, streams, FORMULA(name));                                 \
    }

#define UNARY(name, domain, result, formula) IN_DOMAIN(domain)(MAKE_UNARY(name, result, formula))
#define BINARY(name, domain, result, formula) IN_DOMAIN(domain)(MAKE_BINARY(name, result, formula))
#define CHOICE(name, domain, result, formula) IN_DOMAIN(domain)(MAKE_CHOICE(name, result, formula))
#define TERNARY(name, domain, result, formula) IN_DOMAIN(domain)(MAKE_TERNARY(name, result, formula))
#include "../ops.def"

#define ENTER(name) kernels[NR_OP_##name][DTYPE] = (nr_kernel)KERNEL(name);
#define UNARY(name, domain, result, formula) IN_DOMAIN(domain)(ENTER(name))
#define BINARY(name, domain, result, formula) IN_DOMAIN(domain)(ENTER(name))
#define CHOICE(name, domain, result, formula) IN_DOMAIN(domain)(ENTER(name))
#define TERNARY(name, domain, result, formula) IN_DOMAIN(domain)(ENTER(name))
static void ROWS_JOIN(fill, kernels, LABEL)(nr_kernel_rows kernels) {
#include "../ops.def"
}

#undef ROWS_JOIN2
#undef ROWS_JOIN
#undef FORMULA
#undef KERNEL
#undef LOOP_FOR
#undef KIND_OF_SAME
#undef KIND_OF_FLOAT
#undef KIND_OF_TRUTH
#undef RESULT_SAME
#undef RESULT_FLOAT
#undef RESULT_TRUTH
#undef MAKE_UNARY
#undef MAKE_BINARY
#undef MAKE_TERNARY
#undef MAKE_CHOICE
#undef ENTER
#undef QUICK_IF
#undef QUICK
#undef T
#undef S
#undef LABEL
#undef DTYPE
#undef KIND_OF_DTYPE
