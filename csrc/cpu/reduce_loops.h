/* reduce_loops: every REDUCE row of ops.def over one dtype; included once per dtype by reduce_isa.c. How elements become
 * states is drawn in reduce_kind.h, and how a reduction is cut in reduce.c, with the source.
 *
 * Takes DTYPE (its name), NUMBER (NORCH_...), KIND_OF_DTYPE (F, I or B), S, T and ACC as dtypes.def has them,
 * MASK (an integer as wide as S), POSITION (a signed one, at least 32 bits), LEAST and MOST. Forgets them all. */

#define NAME(name) NR_JOIN2(name, DTYPE)
#define WIDTH ((int64_t)(4096 / sizeof(ACC)))

#define KIND ONE
#include "reduce_kind.h"
#define KIND EXTREME
#include "reduce_kind.h"
#define KIND TRUTH_STATE
#include "reduce_kind.h"
#define KIND VALUE_INDEX
#include "reduce_kind.h"
#define KIND MOMENTS
#include "reduce_kind.h"

/* What finish writes, by result rule. */
#define OUT_SAME S
#define OUT_FLOAT S
#define OUT_SUM ACC
#define OUT_TRUTH uint8_t
#define OUT_INDEX int64_t

/* One row: its formulas as functions, then the loops with those functions in them. */
#define ROW(name, result, kind, identity, step, combine, value)                                                       \
    static inline void NAME(name##_begin)(NAME(part_##kind) * into) {                                                 \
        NAME(part_##kind) s = {0};                                                                                    \
        identity;                                                                                                     \
        *into = s;                                                                                                    \
    }                                                                                                                 \
    static inline void NAME(name##_step)(NAME(part_##kind) * into, T x, POSITION i) {                                 \
        NAME(part_##kind) s = *into;                                                                                  \
        (void)i;                                                                                                      \
        step;                                                                                                         \
        *into = s;                                                                                                    \
    }                                                                                                                 \
    static inline void NAME(name##_join)(NAME(part_##kind) * into, NAME(part_##kind) t) {                             \
        NAME(part_##kind) s = *into;                                                                                  \
        combine;                                                                                                      \
        *into = s;                                                                                                    \
    }                                                                                                                 \
    static inline void NAME(name##_merge)(NAME(state_##kind) * into, NAME(state_##kind) t) {                          \
        NAME(state_##kind) s = *into;                                                                                 \
        combine;                                                                                                      \
        *into = s;                                                                                                    \
    }                                                                                                                 \
    static inline OUT_##result NAME(name##_value)(NAME(state_##kind) s, int64_t n, double p) {                        \
        (void)n, (void)p;                                                                                             \
        return (OUT_##result)(value);                                                                                 \
    }                                                                                                                 \
    static void NAME(name##_clear)(void *states, int64_t n) {                                                         \
        NAME(part_##kind) s;                                                                                          \
        NAME(name##_begin)(&s);                                                                                       \
        for (int64_t k = 0; k < n; k++) ((NAME(state_##kind) *)states)[k] = NAME(widen_##kind)(s, 0);                 \
    }                                                                                                                 \
    ONE_COPY static void NAME(name##_across)(void *restrict lanes, const char *restrict x, int64_t width,             \
                                             int64_t stride, int64_t rows, int64_t row_stride, int64_t first,         \
                                             int64_t row_step, int64_t lane_step) {                                   \
        NAME(across_##kind)(lanes, x, width, stride, rows, row_stride, (POSITION)first, (POSITION)row_step,           \
                            (POSITION)lane_step, NAME(name##_step));                                                  \
    }                                                                                                                 \
    static void NAME(name##_run)(void *states, const char *x, int64_t n, int64_t stride, int64_t position,            \
                                 int64_t outputs, int64_t x_step) {                                                   \
        NAME(run_##kind)(states, x, n, stride, position, outputs, x_step, NAME(name##_begin), NAME(name##_step),      \
                         NAME(name##_join), NAME(name##_merge));                                                      \
    }                                                                                                                 \
    static void NAME(name##_clear_lanes)(void *lanes, int64_t width) {                                                \
        NAME(clear_lanes_##kind)(lanes, width, NAME(name##_begin));                                                   \
    }                                                                                                                 \
    static void NAME(name##_fold)(void *states, const void *lanes, int64_t width, int64_t position) {                 \
        NAME(fold_##kind)(states, lanes, width, position, NAME(name##_merge));                                        \
    }                                                                                                                 \
    static void NAME(name##_merge_all)(void *states, const void *others, int64_t n) {                                 \
        NAME(state_##kind) *restrict s = states;                                                                      \
        const NAME(state_##kind) *restrict t = others;                                                                \
        for (int64_t k = 0; k < n; k++) NAME(name##_merge)(&s[k], t[k]);                                              \
    }                                                                                                                 \
    static void NAME(name##_finish)(char *out, int64_t stride, const void *states, int64_t n, int64_t count,          \
                                    double param) {                                                                   \
        const NAME(state_##kind) *s = states;                                                                         \
        for (int64_t k = 0; k < n; k++) *(OUT_##result *)(out + k * stride) = NAME(name##_value)(s[k], count, param); \
    }                                                                                                                 \
    static const nr_reduce_ops *NAME(name##_kernel)(void) {                                                           \
        static const nr_reduce_ops ops = {                                                                            \
            .state_size = sizeof(NAME(state_##kind)),                                                                 \
            .width = WIDTH,                                                                                           \
            .clear = NAME(name##_clear),                                                                              \
            .run = NAME(name##_run),                                                                                  \
            .clear_lanes = NAME(name##_clear_lanes),                                                                  \
            .across = NAME(name##_across),                                                                            \
            .fold = NAME(name##_fold),                                                                                \
            .merge = NAME(name##_merge_all),                                                                          \
            .finish = NAME(name##_finish),                                                                            \
        };                                                                                                            \
        return &ops;                                                                                                  \
    }

/* A row is compiled where its domain has the kind of this dtype. */
#define IN_F_F(row) row
#define IN_F_I(row)
#define IN_F_B(row)
#define IN_IF_F(row) row
#define IN_IF_I(row) row
#define IN_IF_B(row)
#define IN_BI_F(row)
#define IN_BI_I(row) row
#define IN_BI_B(row) row
#define IN_BIF_F(row) row
#define IN_BIF_I(row) row
#define IN_BIF_B(row) row
#define IN_DOMAIN(domain) NR_JOIN2(NR_JOIN2(IN, domain), KIND_OF_DTYPE)

#define UNARY(name, domain, result, formula)
#define BINARY(name, domain, result, formula)
#define CHOICE(name, domain, result, formula)
#define TERNARY(name, domain, result, formula)
#define REDUCE(name, domain, result, kind, identity, step, merge, finish) \
    IN_DOMAIN(domain)(ROW(name, result, kind, identity, step, merge, finish))
#include "../ops.def"

static void NAME(fill)(nr_kernel_rows kernels) {
#define UNARY(name, domain, result, formula)
#define BINARY(name, domain, result, formula)
#define CHOICE(name, domain, result, formula)
#define TERNARY(name, domain, result, formula)
#define REDUCE(name, domain, result, kind, identity, step, merge, finish) \
    IN_DOMAIN(domain)(kernels[NR_OP_##name][NUMBER] = (nr_kernel)NAME(name##_kernel);)
#include "../ops.def"
}

#undef NAME
#undef WIDTH
#undef OUT_SAME
#undef OUT_FLOAT
#undef OUT_SUM
#undef OUT_TRUTH
#undef OUT_INDEX
#undef ROW
#undef IN_F_F
#undef IN_F_I
#undef IN_F_B
#undef IN_IF_F
#undef IN_IF_I
#undef IN_IF_B
#undef IN_BI_F
#undef IN_BI_I
#undef IN_BI_B
#undef IN_BIF_F
#undef IN_BIF_I
#undef IN_BIF_B
#undef IN_DOMAIN
#undef DTYPE
#undef NUMBER
#undef KIND_OF_DTYPE
#undef S
#undef T
#undef ACC
#undef MASK
#undef POSITION
#undef LEAST
#undef MOST
