/* normalize_loops: the rows of normalize_isa.c for a float type, a template of each_dtype.h: Ba, Kiros and Hinton, "Layer Normalization" (2016).
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

/* weight and bias: those of the row, or NULL. */
static void NAME(forward_row)(const nr_normalize_plan *p, const T *restrict x, const T *restrict weight,
                              const T *restrict bias, T *restrict out) {
    const NAME(moments) m = NAME(moments_of)(p, x);
    if (p->each > 1)
        for (int64_t i = 0, end = 0, c = 0; i < p->n; c++) {
            const T scale = weight ? m.scale * weight[c] : m.scale, shift = bias ? bias[c] : 0;
            for (end += p->each; i < end; i++) out[i] = (x[i] - m.mean) * scale + shift;
        }
    else if (weight && bias)
        for (int64_t i = 0; i < p->n; i++) out[i] = (x[i] - m.mean) * m.scale * weight[i] + bias[i];
    else if (weight)
        for (int64_t i = 0; i < p->n; i++) out[i] = (x[i] - m.mean) * m.scale * weight[i];
    else if (bias)
        for (int64_t i = 0; i < p->n; i++) out[i] = (x[i] - m.mean) * m.scale + bias[i];
    else
        for (int64_t i = 0; i < p->n; i++) out[i] = (x[i] - m.mean) * m.scale;
}

/* With f = g weight: out = scale (f - mean(f) - h mean(f h)), the first mean being left out where that of x was; and to sums, if
 * there are any, g h, and behind those of all weights g. */
INLINE void NAME(backward_row)(const nr_normalize_plan *p, const T *restrict x, const T *restrict g,
                               const T *restrict weight, T *restrict out, T *restrict sums, const bool weighted) {
    const NAME(moments) m = NAME(moments_of)(p, x);
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
        sums[p->weights + i] += g[i];
    }
#undef F
#undef FH
}

/* The same where a weight stands for more than one element: the sums for it are parts of those of the row. */
static void NAME(backward_channels)(const nr_normalize_plan *p, const T *restrict row, const T *restrict grad,
                                    const T *restrict weight, T *restrict out, T *restrict sums) {
    const NAME(moments) m = NAME(moments_of)(p, row);
    const int64_t each = p->each, channels = p->n / each;
    double sum = 0, product = 0;
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
        for (end += each; i < end; i++) out[i] = m.scale * (grad[i] * w - mean - (row[i] - m.mean) * m.scale * slope);
    }
#undef H
#undef G
#undef GH
}

static void NAME(run)(const norm *s, int64_t chunk, int64_t first, int64_t last) {
    const nr_normalize_plan *p = s->plan;
    const T *x = (const T *)p->x + first * p->n, *g = (const T *)p->g + first * p->n;
    T *out = (T *)p->out + first * p->n, *all = s->sums ? (T *)s->sums + chunk * 2 * p->weights : NULL;
    if (all) memset(all, 0, (size_t)(2 * p->weights) * sizeof(T));
    for (int64_t row = first; row < last; row++, x += p->n, g += p->n, out += p->n) {
        const int64_t begin = row * (p->n / p->each) % p->weights;
        const T *weight = p->weight ? (const T *)p->weight + begin : NULL;
        T *sums = all ? all + begin : NULL;
        if (!s->is_backward)
            NAME(forward_row)(p, x, weight, p->bias ? (const T *)p->bias + begin : NULL, out);
        else if (p->each > 1)
            NAME(backward_channels)(p, x, g, weight, out, sums);
        else if (weight)
            NAME(backward_row)(p, x, g, weight, out, sums, true);
        else
            NAME(backward_row)(p, x, g, weight, out, sums, false);
    }
}

static void NAME(add_chunks)(void *to, const void *from, int64_t chunks, int64_t n) {
    T *restrict out = to;
    const T *restrict sums = from;
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        for (int64_t i = 0; i < n; i++) out[i] += sums[chunk * n + i];
    }
}
