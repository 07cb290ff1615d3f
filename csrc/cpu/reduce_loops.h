/* reduce_loops: every REDUCE row of ops.def over one dtype: a template of each_dtype.h. reduce_kind.h has the loops,
 * reduce.c cuts a reduction into their calls. */
#ifndef NR_REDUCE_LOOPS_H
#define NR_REDUCE_LOOPS_H

#define NAME OF_DTYPE
/* An integer as wide as an element, and one of 32 bits or more for its position in a run. */
#define MASK NAME(mask)
#define POSITION NAME(position)

/* The least and the largest element. */
#define LEAST_INTEGER ((T)(-1) < (T)1 ? (T)((uint64_t)1 << (8 * sizeof(T) - 1)) : (T)0)
#define LEAST _Generic((T)0, float: -(float)INFINITY, double: -(double)INFINITY, default: LEAST_INTEGER)
#define MOST _Generic((T)0, float: (float)INFINITY, double: (double)INFINITY, default: (T) ~(int64_t)LEAST_INTEGER)

/* The type that finish writes, by the result column of ops.def. */
#define OUT_SAME S
#define OUT_FLOAT S
#define OUT_SUM ACC
#define OUT_TRUTH uint8_t
#define OUT_INDEX int64_t

/* Products run in pieces of this many factors, in which the product of a lane seldom leaves the range of normal
 * numbers: below it, Intel's processors take 150 cycles for each product. */
#define FACTORS 2048
#define MULTIPLIES(name) (NR_OP_##name == NR_OP_prod && IS_FLOAT)

/* One row: its formulas as functions, and the loops of reduce_kind.h with those functions in them. */
#define UPDATE(function, type, statement, ...)                          \
    static inline void NAME(function)(NAME(type) * into, __VA_ARGS__) { \
        NAME(type) s = *into;                                           \
        statement;                                                      \
        *into = s;                                                      \
    }
#define ROW(name, kind, identity, step, combine)                                                                    \
    typedef NAME(state_##kind) NAME(name##_state);                                                                  \
    enum { NAME(name##_width) = NAME(width_##kind) };                                                               \
    static inline void NAME(name##_begin)(NAME(part_##kind) * into, UNUSED T x) {                                   \
        NAME(part_##kind) s = {0};                                                                                  \
        identity;                                                                                                   \
        *into = s;                                                                                                  \
    }                                                                                                               \
    UPDATE(name##_step, part_##kind, step, T x, UNUSED POSITION i)                                                  \
    UPDATE(name##_join, part_##kind, NR_JOIN_##kind(combine), NAME(part_##kind) t)                                  \
    UPDATE(name##_merge, state_##kind, combine, NAME(state_##kind) t)                                               \
    static void NAME(name##_clear)(void *states, int64_t n) { NAME(clear_##kind)(states, n, NAME(name##_begin)); }  \
    ONE_COPY static void NAME(name##_across)(void *restrict lanes, const char *restrict x, int64_t width,           \
                                             int64_t stride, int64_t rows, int64_t row_stride, int64_t first,       \
                                             int64_t row_step, int64_t lane_step) {                                 \
        if (first == 0) NAME(clear_lanes_##kind)(lanes, x, width, stride, NAME(name##_begin));                      \
        NAME(across_##kind)(lanes, x, width, stride, rows, row_stride, (POSITION)first, (POSITION)row_step,         \
                            (POSITION)lane_step, NAME(name##_step));                                                \
    }                                                                                                               \
    static void NAME(name##_run)(void *states, const char *x, int64_t n, int64_t stride, int64_t position,          \
                                 int64_t outputs, int64_t x_step) {                                                 \
        int64_t count;                                                                                              \
        do {                                                                                                        \
            count = MULTIPLIES(name) && n > FACTORS ? FACTORS : n;                                                  \
            NAME(run_##kind)(states, x, count, stride, position, outputs, x_step, NAME(name##_begin),               \
                             NAME(name##_step), NAME(name##_join), NAME(name##_merge));                             \
            x += count * stride, position += count;                                                                 \
        } while (MULTIPLIES(name) && (n -= count) > 0);                                                             \
    }                                                                                                               \
    static void NAME(name##_fold)(void *states, const void *lanes, int64_t width, int64_t rows, int64_t position) { \
        NAME(fold_##kind)(states, lanes, width, rows, position, NAME(name##_merge));                                \
    }                                                                                                               \
    static void NAME(name##_merge_all)(void *states, const void *others, int64_t n) {                               \
        NAME(merge_all_##kind)(states, others, n, NAME(name##_merge));                                              \
    }
/* The kernel of a row, with the loops of a row `of`. */
#define ENTRY(name, result, of, value)                                                                             \
    static void NAME(name##_finish)(char *out, int64_t stride, const void *states, int64_t many, UNUSED int64_t n, \
                                    UNUSED double p) {                                                             \
        for (int64_t k = 0; k < many; k++) {                                                                       \
            const NAME(of##_state) s = ((const NAME(of##_state) *)states)[k];                                      \
            *(OUT_##result *)(out + k * stride) = (OUT_##result)(value);                                           \
        }                                                                                                          \
    }                                                                                                              \
    static const nr_reduce_ops *NAME(name##_kernel)(void) {                                                        \
        static const nr_reduce_ops ops = {sizeof(NAME(of##_state)), NAME(of##_width),   NAME(of##_clear),          \
                                          NAME(of##_run),           NAME(of##_across),  NAME(of##_fold),           \
                                          NAME(of##_merge_all),     NAME(name##_finish)};                          \
        return &ops;                                                                                               \
    }

#endif

#if DTYPE_BITS >= 32 && defined(NR_SMALL_BASELINE)
#pragma GCC push_options
#pragma GCC optimize("Os")
#endif

typedef __typeof__(__builtin_choose_expr(sizeof(S) == 8, (int64_t)0, (int32_t)0)) POSITION;
typedef __typeof__(__builtin_choose_expr(sizeof(S) == 1, (uint8_t)0, (POSITION)0)) MASK;

#define KIND ONE
#include "reduce_kind.h"
#define KIND SQUARES
#include "reduce_kind.h"
#define KIND EXTREME
#include "reduce_kind.h"
#define KIND TRUTH_STATE
#include "reduce_kind.h"
#define KIND VALUE_INDEX
#include "reduce_kind.h"
#define KIND MOMENTS
#include "reduce_kind.h"

#define REDUCE(name, domain, result, kind, identity, step, merge, finish) \
    IN_DOMAIN(domain)(ROW(name, kind, identity, step, merge) ENTRY(name, result, name, finish))
#define FINISH(name, domain, result, of, finish) IN_DOMAIN(domain)(ENTRY(name, result, of, finish))
#include "../ops.def"

static void NAME(fill)(nr_kernel_rows kernels) {
#define REDUCE(name, domain, ...) \
    IN_DOMAIN(domain)(if (ROW_BUILT(NR_OP_##name)) kernels[NR_OP_##name][NUMBER] = (nr_kernel)NAME(name##_kernel);)
#define FINISH REDUCE
#include "../ops.def"
}

#if DTYPE_BITS >= 32 && defined(NR_SMALL_BASELINE)
#pragma GCC pop_options
#endif
