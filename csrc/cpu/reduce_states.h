/* reduce_states: the fields of each kind of state that REDUCE rows of ops.def name, and steps that are too long for a
 * row, for all backends. T is the type of an element, ACC that of sums; larger() and the like come from math.h. These
 * macros expand inside arguments of other macros, so that a comma in them needs parentheses around it.
 *
 * Sums of squares are taken in double precision: those of float32 neither overflow nor underflow in it. Moments are
 * shifted sums: Chan, Golub and LeVeque, "Algorithms for Computing the Sample Variance" (1983), section 3. */
#ifndef NR_REDUCE_STATES_H
#define NR_REDUCE_STATES_H

/* The fields. VALUE(type, name) is a plain one; INDEX(name) the position of an element, -1 before the first;
 * COUNT(name) how many elements there are, which the loops know and lanes do not keep. */
#define NR_FIELDS_ONE(VALUE, INDEX, COUNT) VALUE(ACC, v)
#define NR_FIELDS_EXTREME(VALUE, INDEX, COUNT) VALUE(T, v)
#define NR_FIELDS_TRUTH_STATE(VALUE, INDEX, COUNT) VALUE(MASK, v)
#define NR_FIELDS_VALUE_INDEX(VALUE, INDEX, COUNT) VALUE(T, v) INDEX(i)
#define NR_FIELDS_SQUARES(VALUE, INDEX, COUNT) VALUE(double, v)
#define NR_FIELDS_MOMENTS(VALUE, INDEX, COUNT) VALUE(T, origin) COUNT(n) VALUE(double, sum) VALUE(double, squares)

/* How two parts of one run are joined: as states are merged, or more simply as they have one origin. */
#define NR_JOIN_ONE(merge) merge
#define NR_JOIN_EXTREME(merge) merge
#define NR_JOIN_TRUTH_STATE(merge) merge
#define NR_JOIN_VALUE_INDEX(merge) merge
#define NR_JOIN_SQUARES(merge) merge
#define NR_JOIN_MOMENTS(merge) s.sum += t.sum, s.squares += t.squares

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

#define square_step(s, x)                \
    do {                                 \
        const double wide = (double)(x); \
        s.v = NR_FMA(wide, wide, s.v);   \
    } while (0)

/* The first element of a run is the origin: what is added up are differences from it, which are exact or nearly so. As
 * it is one of the n elements, no more than a factor of n cancels, and seldom more than one of 10. Halves of them: the
 * difference of two finite elements may be infinite. Their sum is kept times 2^-64, so that that of finite elements
 * does not overflow where that of their squares does; where this loses digits the squares vanish. */
#define NR_SUM_SCALE 0x1p-64
#define NR_SUM_BACK 0x1p+64
#define moments_step(s, x)                                                   \
    do {                                                                     \
        const double half = (double)NR_FMA((T)0.5, x, (T)(-0.5) * s.origin); \
        s.sum = NR_FMA(half, NR_SUM_SCALE, s.sum);                           \
        s.squares = NR_FMA(half, half, s.squares);                           \
    } while (0)

/* The sums of t are moved to the origin of s. */
#define moments_merge(s, t)                                                               \
    do {                                                                                  \
        s.origin = s.n > 0 ? s.origin : t.origin;                                         \
        const double apart = 0.5 * (double)t.origin - 0.5 * (double)s.origin;             \
        const double moved = (double)t.n * NR_SUM_SCALE * apart;                          \
        s.n += t.n;                                                                       \
        s.squares += t.squares + apart * (2 * t.sum * NR_SUM_BACK + (double)t.n * apart); \
        s.sum += t.sum + moved;                                                           \
    } while (0)

/* The sum of the squares about the mean, which rounding does not make negative: infinite where those of finite elements
 * overflowed. */
#define about_mean(s) (s.squares - s.sum * NR_SUM_BACK * (s.sum * NR_SUM_BACK / (double)(s.n ? s.n : 1)))
#define squares_of(s)                                                             \
    ((((s.sum - s.sum) == 0) & ((s.squares - s.squares) != 0)) ? (double)INFINITY \
                                                               : (about_mean(s) < 0 ? 0 : about_mean(s)))

/* As PyTorch: a divisor below 0 is 0. */
#define variance(s, p) (4 * squares_of(s) / ((double)s.n > (p) ? (double)s.n - (p) : 0))

#endif
