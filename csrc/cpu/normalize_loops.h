/* normalize_loops: the rows of normalize_isa.c for a float type T: Ba, Kiros and Hinton, "Layer Normalization" (2016).
 *
 *   x  [ PIECE                              | PIECE | ... ]     one row, in the first cache from the first pass on
 *        v0 v1 v2 v3 ... rest                                   vectors of VECTOR bytes, in registers:
 *        even = v0 + v2 + ...   odd = v1 + v3 + ...             total, a double, += across(even + odd) + rest (fold.h)
 *
 *   1. mean = total / n    2. the squares about it, so that nothing cancels    3. out = (x - mean) scale weight + bias
 *   back: 1 and 2 again, then the sums of f and f h (f = g weight, h = (x - mean) scale), then out
 *
 * Two passes for a variance: Chan, Golub and LeVeque, "Algorithms for Computing the Sample Variance" (1983). */

typedef T NAME(vec) __attribute__((vector_size(VECTOR), may_alias, aligned(__alignof__(T))));
#include "fold.h"
#define LANES ((int)(VECTOR / sizeof(T)))
#define MANY(p, i) (*(const NAME(vec) *)((p) + (i)))
#define ONE(p, i) ((p)[i])

/* The sum over a row of term(LOAD, i), where LOAD(p, i) is p[i] or the vector there: vectors side by side, and pieces in
 * double precision. */
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

/* h[i] = (x[i] - mean) * scale */
typedef struct NAME(moments) {
    T mean, scale;
} NAME(moments);

static inline NAME(moments) NAME(moments_of)(const nr_normalize_plan *p, const T *restrict x) {
    double total;
    T mean = 0;
#define ITSELF(LOAD, i) LOAD(x, i)
#define SQUARE(LOAD, i) ((LOAD(x, i) - mean) * (LOAD(x, i) - mean))
    if (p->centered) {
        ROW_SUM(total, p->n, ITSELF);
        mean = (T)(total / (double)p->n);
    }
    ROW_SUM(total, p->n, SQUARE);
#undef ITSELF
#undef SQUARE
    return (NAME(moments)){mean, (T)1 / SQRT((T)(total / (double)p->n) + (T)p->eps)};
}

static void NAME(forward_row)(const nr_normalize_plan *p, const T *restrict x, T *restrict out) {
    const NAME(moments) m = NAME(moments_of)(p, x);
    const T *restrict weight = p->weight, *restrict bias = p->bias;
    if (weight && bias)
        for (int64_t i = 0; i < p->n; i++) out[i] = (x[i] - m.mean) * m.scale * weight[i] + bias[i];
    else if (weight)
        for (int64_t i = 0; i < p->n; i++) out[i] = (x[i] - m.mean) * m.scale * weight[i];
    else if (bias)
        for (int64_t i = 0; i < p->n; i++) out[i] = (x[i] - m.mean) * m.scale + bias[i];
    else
        for (int64_t i = 0; i < p->n; i++) out[i] = (x[i] - m.mean) * m.scale;
}

/* With f = g weight: out = scale (f - mean(f) - h mean(f h)), the first mean being left out where that of x was; and to sums, if
 * there are any, n of g h and n of g. */
static inline __attribute__((always_inline)) void NAME(backward_row)(const nr_normalize_plan *p, const T *restrict x,
                                                                     const T *restrict g, T *restrict out,
                                                                     T *restrict sums, const bool weighted) {
    const NAME(moments) m = NAME(moments_of)(p, x);
    const T *restrict weight = p->weight;
    const int64_t n = p->n;
    double sum = 0, product = 0;
#define H(LOAD, i) ((LOAD(x, i) - m.mean) * m.scale)
#define F(LOAD, i) (weighted ? LOAD(g, i) * LOAD(weight, i) : LOAD(g, i) * (T)1)
#define FH(LOAD, i) (F(LOAD, i) * H(LOAD, i))
    if (p->centered) ROW_SUM(sum, n, F);
    ROW_SUM(product, n, FH);
    const T mean = (T)(sum / (double)n), slope = (T)(product / (double)n);
    for (int64_t i = 0; i < n; i++) {
        const T h = H(ONE, i);
        out[i] = m.scale * (F(ONE, i) - mean - h * slope);
        if (!sums) continue;
        sums[i] += g[i] * h;
        sums[n + i] += g[i];
    }
#undef H
#undef F
#undef FH
}

static void NAME(run)(const norm *s, int64_t chunk, int64_t first, int64_t last) {
    const nr_normalize_plan *p = s->plan;
    const T *x = (const T *)p->x + first * p->n, *g = (const T *)p->g + first * p->n;
    T *out = (T *)p->out + first * p->n, *sums = s->sums ? (T *)s->sums + chunk * 2 * p->n : NULL;
    if (sums) memset(sums, 0, (size_t)(2 * p->n) * sizeof(T));
    for (int64_t row = first; row < last; row++, x += p->n, g += p->n, out += p->n) {
        if (!s->back)
            NAME(forward_row)(p, x, out);
        else if (p->weight)
            NAME(backward_row)(p, x, g, out, sums, true);
        else
            NAME(backward_row)(p, x, g, out, sums, false);
    }
}

static void NAME(add_chunks)(void *to, const void *from, int64_t chunks, int64_t n) {
    T *restrict out = to;
    const T *restrict sums = from;
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        for (int64_t i = 0; i < n; i++) out[i] += sums[chunk * n + i];
    }
}
#undef ROW_SUM
#undef LANES
#undef MANY
#undef ONE
