/* normalize_loops: the rows of normalize_isa.c for a float type, a template of each_dtype.h: Ba, Kiros and Hinton,
 * "Layer Normalization" (2016).
 *
 *   x  [ PIECE                              | PIECE | ... ]     one row, in the first cache from the first pass on
 *        v0 v1 v2 v3 ... rest                                   vectors of VECTOR bytes, in registers:
 *        even = v0 + v2 + ...   odd = v1 + v3 + ...             total, a double, += across(even + odd) + rest (fold.h)
 *
 *   1. the sums of d = x - x[0] and of d^2, or where x[0] is far from the mean, of d = x - mean: nothing cancels
 *   2. out = (x - mean) scale weight + bias
 *   back: 1 again, then the sums of f and f h (f = g weight, h = (x - mean) scale), then out
 *
 * Shifted sums: Chan, Golub and LeVeque, "Algorithms for Computing the Sample Variance" (1983). */

typedef T NAME(vec) __attribute__((vector_size(VECTOR), may_alias, aligned(__alignof__(T))));
#include "fold.h"
#define LANES ((int)(VECTOR / sizeof(T)))
#define MANY(p, i) (*(const NAME(vec) *)((p) + (i)))
#define ONE(p, i) ((p)[i])

/* The sum over a row of term(LOAD, i), where LOAD(p, i) is p[i] or the vector there: vectors side by side, and pieces
 * in double precision. */
#define ROW_SUM(total, n, term)                                \
    do {                                                       \
        total = 0;                                             \
        for (int64_t begin = 0; begin < (n); begin += PIECE) { \
            int64_t end = least(begin + PIECE, n), i = begin;  \
            NAME(vec) even = {0}, odd = {0};                   \
            T rest = 0;                                        \
            for (; i + 2 * LANES <= end; i += 2 * LANES) {     \
                even += term(MANY, i);                         \
                odd += term(MANY, i + LANES);                  \
            }                                                  \
            for (; i < end; i++) rest += term(ONE, i);         \
            even += odd;                                       \
            total += (double)(NAME(sum_across)(&even) + rest); \
        }                                                      \
    } while (0)

/* The sums of x - mean and of its square over a row, as ROW_SUM adds. */
INLINE void NAME(deviations)(const T *restrict x, const int64_t n, const T mean, double *of_d, double *of_squares) {
    *of_d = *of_squares = 0;
    for (int64_t begin = 0; begin < n; begin += PIECE) {
        const int64_t end = least(begin + PIECE, n);
        int64_t i = begin;
        NAME(vec) even = {0}, odd = {0}, even2 = {0}, odd2 = {0};
        T rest = 0, rest2 = 0;
        for (; i + 2 * LANES <= end; i += 2 * LANES) {
            const NAME(vec) d = MANY(x, i) - mean, e = MANY(x, i + LANES) - mean;
            even += d;
            odd += e;
            even2 += d * d;
            odd2 += e * e;
        }
        for (; i < end; i++) {
            rest += x[i] - mean;
            rest2 += (x[i] - mean) * (x[i] - mean);
        }
        even += odd;
        even2 += odd2;
        *of_d += (double)(NAME(sum_across)(&even) + rest);
        *of_squares += (double)(NAME(sum_across)(&even2) + rest2);
    }
}

/* h[i] = (x[i] - mean) * scale + shift. shift corrects the rounding of the mean, which matters far from 0. */
typedef struct NAME(moments) {
    T mean, scale, shift;
} NAME(moments);

/* The statistics of a row whose squares overflow T, or lose digits in it. */
static void NAME(find_wide_moments)(const nr_normalize_plan *p, const T *restrict x, NAME(moments) *restrict m) {
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < p->n && p->centered; i++) mean += (double)x[i];
    mean /= (double)p->n;
    for (int64_t i = 0; i < p->n; i++) squares += ((double)x[i] - mean) * ((double)x[i] - mean);
    m->mean = (T)mean;
    const double scale = 1 / sqrt(squares / (double)p->n + p->eps);
    m->scale = (T)scale;
    m->shift = (T)(((double)m->mean - mean) * scale);
}

/* The statistics of at most AT_ONCE rows. Each step runs for all rows before the next step, because the steps of one
 * row depend on each other. */
static inline void NAME(find_moments)(const nr_normalize_plan *p, const T *restrict rows, int64_t count,
                                      NAME(moments) *restrict m) {
    double apart[AT_ONCE], squares[AT_ONCE];
    for (int64_t r = 0; r < count; r++) {
        const T *x = rows + r * p->n;
        m[r].mean = p->centered ? x[0] : 0;
        if (p->centered) {
            NAME(deviations)(x, p->n, m[r].mean, &apart[r], &squares[r]);
        } else {
#define SQUARE(LOAD, i) (LOAD(x, i) * LOAD(x, i))
            ROW_SUM(squares[r], p->n, SQUARE);
#undef SQUARE
            apart[r] = 0;
        }
    }
    for (int64_t r = 0; r < count; r++) {
        const double n = (double)p->n;
        double away = apart[r] / n, variance = squares[r] / n - away * away;
        if (!(away * away <= NEAR * variance)) { /* too much of the squares cancels */
            m[r].mean = (T)((double)m[r].mean + away);
            NAME(deviations)(rows + r * p->n, p->n, m[r].mean, &apart[r], &squares[r]);
            away = apart[r] / n, variance = squares[r] / n - away * away;
        }
        if (NR_IS_OUT_OF_RANGE(T, variance, p->eps)) {
            NAME(find_wide_moments)(p, rows + r * p->n, &m[r]);
            continue;
        }
        const double mean = (double)m[r].mean + away;
        m[r].mean = (T)mean;
        m[r].scale = (T)1 / SQRT((T)(variance < 0 ? 0 : variance) + (T)p->eps);
        m[r].shift = (T)((double)m[r].mean - mean) * m[r].scale;
    }
}

/* weight and bias: those of the row, or NULL. */
static void NAME(forward_row)(const nr_normalize_plan *p, NAME(moments) m, const T *restrict x,
                              const T *restrict weight, const T *restrict bias, T *restrict out) {
    if (p->inner > 1)
        for (int64_t i = 0, end = 0, c = 0; i < p->n; c++) {
            const T w = weight ? weight[c] : 1, b = bias ? bias[c] : 0, scale = m.scale * w, shift = m.shift * w + b;
            end += p->inner;
            if (w != 0 && !isnormal(scale)) /* which has lost digits, or overflowed */
                for (; i < end; i++) out[i] = NR_FMA(NR_FMA(x[i] - m.mean, m.scale, m.shift), w, b);
            for (; i < end; i++) out[i] = NR_FMA(x[i] - m.mean, scale, shift);
        }
    else if (weight && bias)
        for (int64_t i = 0; i < p->n; i++) out[i] = NR_FMA(NR_FMA(x[i] - m.mean, m.scale, m.shift), weight[i], bias[i]);
    else if (weight)
        for (int64_t i = 0; i < p->n; i++) out[i] = NR_FMA(x[i] - m.mean, m.scale, m.shift) * weight[i];
    else if (bias)
        for (int64_t i = 0; i < p->n; i++) out[i] = NR_FMA(x[i] - m.mean, m.scale, m.shift) + bias[i];
    else
        for (int64_t i = 0; i < p->n; i++) out[i] = NR_FMA(x[i] - m.mean, m.scale, m.shift);
}

/* With f = g weight: out = scale (f - mean(f) - h mean(f h)), the first mean being left out where that of x was; and to
 * sums, if there are any, g h, and behind those of all weights g. */
INLINE void NAME(backward_rows)(const nr_normalize_plan *p, const NAME(moments) * m, int64_t first, int64_t count,
                                const T *restrict xs, const T *restrict gs, T *restrict out, T *restrict all,
                                const bool weighted) {
    const int64_t n = p->n;
    T mean[AT_ONCE], slope[AT_ONCE];
    double sum = 0, product;
#define H(LOAD, i) ((LOAD(x, i) - mr.mean) * mr.scale + mr.shift)
#define WEIGHTED(LOAD, i) (weighted ? LOAD(g, i) * LOAD(weight, i) : LOAD(g, i) * (T)1)
#define FH(LOAD, i) (WEIGHTED(LOAD, i) * H(LOAD, i))
    for (int64_t r = 0; r < count; r++) {
        const T *x = xs + r * n, *g = gs + r * n,
                *weight = weighted ? (const T *)p->weight + weights_of(p, first + r) : g;
        const NAME(moments) mr = m[r];
        if (p->centered) ROW_SUM(sum, n, WEIGHTED);
        ROW_SUM(product, n, FH);
        mean[r] = (T)(sum / (double)n);
        slope[r] = (T)(product / (double)n);
    }
    for (int64_t r = 0; r < count; r++, out += n) {
        const int64_t begin = weights_of(p, first + r);
        const T *restrict x = xs + r * n, *restrict g = gs + r * n;
        const T *restrict weight = weighted ? (const T *)p->weight + begin : g;
        T *restrict sums = all ? all + begin : NULL;
        const NAME(moments) mr = m[r];
        for (int64_t i = 0; i < n; i++) {
            const T h = H(ONE, i);
            out[i] = mr.scale * (WEIGHTED(ONE, i) - mean[r] - h * slope[r]);
            if (!sums) continue;
            sums[i] += g[i] * h;
            sums[p->weights + i] += g[i];
        }
    }
#undef H
#undef WEIGHTED
#undef FH
}

/* The same if a weight applies to several elements (group normalisation): their sums are parts of those of the row. */
static void NAME(backward_channels)(const nr_normalize_plan *p, NAME(moments) m, const T *restrict row,
                                    const T *restrict grad, const T *restrict weight, T *restrict out,
                                    T *restrict sums) {
    const int64_t each = p->inner, channels = p->n / each;
    double sum = 0, product = 0;
#define H(LOAD, i) ((LOAD(x, i) - m.mean) * m.scale + m.shift)
#define G(LOAD, i) LOAD(g, i)
#define GH(LOAD, i) (LOAD(g, i) * H(LOAD, i))
    for (int64_t c = 0; c < channels; c++) {
        const T *restrict x = row + c * each, *restrict g = grad + c * each, w = weight ? weight[c] : 1;
        double of_g, of_gh;
        ROW_SUM(of_g, each, G);
        ROW_SUM(of_gh, each, GH);
        sum += (double)w * of_g;
        product += (double)w * of_gh;
        if (!sums) continue;
        sums[c] += (T)of_gh;
        sums[p->weights + c] += (T)of_g;
    }
    const T mean = (T)(sum / (double)p->n), slope = (T)(product / (double)p->n);
    for (int64_t c = 0, i = 0, end = 0; c < channels; c++) {
        const T w = weight ? weight[c] : 1;
        for (end += each; i < end; i++)
            out[i] = m.scale * (grad[i] * w - mean - ((row[i] - m.mean) * m.scale + m.shift) * slope);
    }
#undef H
#undef G
#undef GH
}

static void NAME(run)(const job *s, int64_t chunk, int64_t first, int64_t last) {
    const nr_normalize_plan *p = s->plan;
    const T *x = (const T *)p->x + first * p->n, *g = (const T *)p->g + first * p->n;
    T *out = (T *)(s->is_backward ? p->grad_x : p->out) + first * p->n;
    T *all = s->sums ? (T *)s->sums + chunk * 2 * p->weights : NULL;
    if (all) memset(all, 0, (size_t)(2 * p->weights) * sizeof(T));
    NAME(moments) m[AT_ONCE];
    for (int64_t row = first, count; row < last;
         row += count, x += count * p->n, g += count * p->n, out += count * p->n) {
        count = least(last - row, p->n < PIECE ? least(AT_ONCE, PIECE / p->n) : 1); /* all of them in the first cache */
        NAME(find_moments)(p, x, count, m);
        if (s->is_backward && p->inner == 1) {
            p->weight ? NAME(backward_rows)(p, m, row, count, x, g, out, all, true)
                      : NAME(backward_rows)(p, m, row, count, x, g, out, all, false);
            continue;
        }
        for (int64_t r = 0; r < count; r++) {
            const int64_t begin = weights_of(p, row + r), at = r * p->n;
            const T *weight = p->weight ? (const T *)p->weight + begin : NULL;
            if (s->is_backward)
                NAME(backward_channels)(p, m[r], x + at, g + at, weight, out + at, all ? all + begin : NULL);
            else
                NAME(forward_row)(p, m[r], x + at, weight, p->bias ? (const T *)p->bias + begin : NULL, out + at);
        }
    }
}

static void NAME(add_chunks)(void *to, const void *from, int64_t chunks, int64_t n) {
    T *restrict out = to;
    const T *restrict sums = from;
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        for (int64_t i = 0; i < n; i++) out[i] += sums[chunk * n + i];
    }
}
