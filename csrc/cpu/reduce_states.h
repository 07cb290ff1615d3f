/* reduce_states: the fields of each kind of state that REDUCE rows of ops.def name, and steps that are too long for a
 * row, for all backends. T is the type of an element, ACC that of sums; larger() and the like come from math.h. These
 * macros expand inside arguments of other macros, so that a comma in them needs parentheses around it.
 *
 * Moments: Welford, Technometrics 4 (1962), merged as Chan, Golub and LeVeque do (1979). */
#ifndef NR_REDUCE_STATES_H
#define NR_REDUCE_STATES_H

/* VALUE(type, name) is a plain field; INDEX(name) counts elements, and is -1 before the first. */
#define NR_FIELDS_ONE(VALUE, INDEX) VALUE(ACC, v)
#define NR_FIELDS_EXTREME(VALUE, INDEX) VALUE(T, v)
#define NR_FIELDS_TRUTH_STATE(VALUE, INDEX) VALUE(MASK, v)
#define NR_FIELDS_VALUE_INDEX(VALUE, INDEX) VALUE(T, v) INDEX(i)
#define NR_FIELDS_MOMENTS(VALUE, INDEX) VALUE(ACC, n) VALUE(ACC, mean) VALUE(ACC, m2)

/* Keeps the first of equal best elements, and the first NaN before all. | and & avoid branches. */
#define arg_step(s, x, at, over)                                          \
    do {                                                                  \
        bool take = (s.i < 0) | (x over s.v) | ((x != x) & (s.v == s.v)); \
        s.v = take ? x : s.v;                                             \
        s.i = take ? at : s.i;                                            \
    } while (0)

#define arg_merge(s, t, over)                                                               \
    do {                                                                                    \
        bool tie = (t.v == s.v) | ((t.v != t.v) & (s.v != s.v));                            \
        bool better = (t.v over s.v) | ((t.v != t.v) & (s.v == s.v)) | (tie & (t.i < s.i)); \
        bool take = (t.i >= 0) & ((s.i < 0) | better);                                      \
        s.v = take ? t.v : s.v;                                                             \
        s.i = take ? t.i : s.i;                                                             \
    } while (0)

#define moments_step(s, x)            \
    do {                              \
        ACC delta = x - s.mean;       \
        s.n += 1;                     \
        s.mean += delta / s.n;        \
        s.m2 += delta * (x - s.mean); \
    } while (0)

/* Multiplies by the share of a side first, so that an empty side adds 0 even if delta * delta overflows. */
#define moments_merge(s, t)                           \
    do {                                              \
        ACC whole = s.n + t.n;                        \
        ACC delta = t.mean - s.mean;                  \
        ACC share = t.n / (whole > 0 ? whole : 1);    \
        s.m2 += t.m2 + delta * (s.n * share) * delta; \
        s.mean += delta * share;                      \
        s.n = whole;                                  \
    } while (0)

/* As PyTorch: a divisor below 0 is 0. */
#define variance(s, p) (s.m2 / (s.n > (ACC)(p) ? s.n - (ACC)(p) : 0))

#endif
