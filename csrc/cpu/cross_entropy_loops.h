/* cross_entropy_loops: the loops of cross_entropy_isa.c, where their picture and source are: a template of
 * each_dtype.h. */
#include "softmax_rows.h"

/* The sums of exp(x - top) of some rows of a few classes: all their exponentials are taken in one loop. */
INLINE void OF_DTYPE(few_sums)(const T *restrict x, int64_t rows, int64_t n, const T *restrict top, T *restrict sum) {
    T powers[BLOCK];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < n; i++) powers[r * n + i] = x[r * n + i] - top[r];
    for (int64_t i = 0; i < rows * n; i++) powers[i] = exp_below(powers[i]);
    for (int64_t r = 0; r < rows; r++) sum[r] = (T)OF_DTYPE(block_sum)(powers + r * n, NULL, n);
}

/* The mean of x - top. */
INLINE double OF_DTYPE(mean_below)(const T *restrict x, int64_t n, T top) {
    T below[BLOCK];
    double sum = 0;
    for (int64_t count, first = 0; first < n; first += count) {
        count = least(BLOCK, n - first);
        for (int64_t i = 0; i < count; i++) below[i] = x[first + i] - top;
        sum += (double)OF_DTYPE(block_sum)(below, NULL, count);
    }
    return sum / (double)n;
}

/* Loss and kept numbers of rows, at most BLOCK of them; whether all targets are in range. */
INLINE bool OF_DTYPE(losses_of_rows)(const nr_cross_entropy_plan *p, T *restrict losses, int64_t first, int64_t rows) {
    bool found = true;
    const int64_t n = p->n;
    const T *x = (const T *)p->x + first * n;
    T *restrict kept = (T *)p->log_sums + 2 * first;
    T top[BLOCK], sum[BLOCK], powers[BLOCK];
    for (int64_t r = 0; r < rows; r++) top[r] = OF_DTYPE(row_top)(x + r * n, n);
    if (n <= FEW)
        OF_DTYPE(few_sums)(x, rows, n, top, sum);
    else
        for (int64_t r = 0; r < rows; r++) sum[r] = (T)OF_DTYPE(row_exp)(powers, x + r * n, n, top[r], true);
    for (int64_t r = 0; r < rows; r++) sum[r] = log(sum[r]);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t target = target_of(p, first + r, &found);
        kept[2 * r] = top[r];
        kept[2 * r + 1] = sum[r];
        losses[first + r] = 0;
        if (target < 0) continue;
        const T *row = x + r * n;
        losses[first + r] = sum[r] - (T)(1 - p->smoothing) * (row[target] - top[r]);
        if (p->smoothing > 0) losses[first + r] -= (T)(p->smoothing * OF_DTYPE(mean_below)(row, n, top[r]));
    }
    return found;
}

static bool OF_DTYPE(forward)(const nr_cross_entropy_plan *p, void *losses, int64_t first, int64_t last) {
    const int64_t rows = p->n == 0 ? BLOCK : p->n <= FEW ? BLOCK / p->n : 1;
    bool found = true;
    for (int64_t row = first; row < last; row += rows)
        found &= OF_DTYPE(losses_of_rows)(p, losses, row, least(rows, last - row));
    return found;
}

static void OF_DTYPE(reduce)(const nr_cross_entropy_plan *p, const void *of_rows) {
    const T *losses = of_rows, *weight = p->weight;
    double sum = 0, count = 0;
    bool found;
    for (int64_t i = 0; i < p->rows; i++) {
        const int64_t target = target_of(p, i, &found);
        sum += (double)losses[i];
        if (target >= 0) count += weight ? (double)weight[target] : 1;
    }
    *(T *)p->out = (T)(p->count ? sum / count : sum);
    if (p->count) *(T *)p->count = (T)count;
}

/* The gradient that the losses of all rows have, if they are reduced. */
INLINE T OF_DTYPE(slope)(const nr_cross_entropy_plan *p) {
    const T *g = p->g;
    return !p->reduced ? 0 : p->count ? *g / *(const T *)p->count : *g;
}

/* exp(x - top - log_sum) - smoothing / n, and at the target 1 - smoothing less, times the gradient of the row's
 * loss. */
static bool OF_DTYPE(backward)(const nr_cross_entropy_plan *p, void *grad, int64_t first, int64_t last) {
    const int64_t n = p->n;
    bool found = true;
    const T *g = p->g, all = OF_DTYPE(slope)(p);
    const T share = (T)(p->smoothing / (double)n);
    for (int64_t row = first; row < last; row++) {
        const T *restrict x = (const T *)p->x + row * n, *kept = (const T *)p->log_sums + 2 * row;
        const T top = kept[0], log_sum = kept[1], factor = p->reduced ? all : g[row];
        const int64_t target = target_of(p, row, &found);
        T *restrict out = (T *)grad + row * n;
        if (target < 0) {
            for (int64_t i = 0; i < n; i++) out[i] = 0;
            continue;
        }
        for (int64_t i = 0; i < n; i++) out[i] = (exp_below((x[i] - top) - log_sum) - share) * factor;
        out[target] -= (T)(1 - p->smoothing) * factor;
    }
    return found;
}

/* The losses of nll. inner: that of the plan, passed so that 1 is a constant where this is inlined. */
INLINE bool OF_DTYPE(picked)(const nr_cross_entropy_plan *p, T *restrict losses, int64_t inner, int64_t first,
                             int64_t last) {
    const T *x = p->x, *weight = p->weight;
    bool found = true;
    for (int64_t o = first; o < last; o++)
        for (int64_t i = 0; i < inner; i++) {
            const int64_t row = o * inner + i, target = target_of(p, row, &found);
            const T loss = target < 0 ? 0 : -x[(o * p->n + target) * inner + i];
            losses[row] = target >= 0 && weight ? loss * weight[target] : loss;
        }
    return found;
}

static bool OF_DTYPE(nll)(const nr_cross_entropy_plan *p, void *losses, int64_t first, int64_t last) {
    return p->inner == 1 ? OF_DTYPE(picked)(p, losses, 1, first, last)
                         : OF_DTYPE(picked)(p, losses, p->inner, first, last);
}

static bool OF_DTYPE(nll_backward)(const nr_cross_entropy_plan *p, void *grad, int64_t first, int64_t last) {
    const T *g = p->g, *weight = p->weight, all = OF_DTYPE(slope)(p);
    const int64_t inner = p->inner, image = p->n * inner;
    T *out = grad;
    bool found = true;
    memset(out + first * image, 0, (size_t)((last - first) * image) * sizeof(T));
    for (int64_t o = first; o < last; o++)
        for (int64_t i = 0; i < inner; i++) {
            const int64_t row = o * inner + i, target = target_of(p, row, &found);
            if (target < 0) continue;
            const T factor = p->reduced ? all : g[row];
            out[o * image + target * inner + i] = weight ? -factor * weight[target] : -factor;
        }
    return found;
}
