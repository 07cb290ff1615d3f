/* pool_loops: one plane of each kind of pooling, for a float type T with integers WHOLE of its width; included by
 * pool_isa.c.
 *
 *   x  0 1 2 3 4 5 ...     tap (0, 0) of windows 0, 1, 2:  0 2 4     a tap is gathered for RUN windows at a time, of
 *      p q r s t u ...     tap (0, 1):                     1 3 5     one row or of several short ones; then one loop
 *      |w0 |w1 |w2 |       tap (1, 0):                     p r t     over them compares (max) or adds (avg) */

/* One tap of some windows, whole groups of them. Among equal elements the first is taken, among NaNs the last. */
static inline __attribute__((always_inline)) void NAME(larger)(int64_t n, const T *restrict v,
                                                               const WHOLE *restrict place, WHOLE shift,
                                                               T *restrict best, WHOLE *restrict index) {
    for (int64_t g = 0; g < n; g += GROUP) {
        for (int64_t i = g; i < g + GROUP; i++) {
            int take = (v[i] > best[i]) | (v[i] != v[i]);
            best[i] = take ? v[i] : best[i];
            index[i] = take ? place[i] + shift : index[i];
        }
    }
}

/* The sums of windows that move by `step`: strides of 1 and 2 are constants where this is inlined. */
static inline __attribute__((always_inline)) void NAME(gather)(int64_t step, int64_t n, const T *restrict x,
                                                               T *restrict sum) {
    for (int64_t i = 0; i < n; i++) sum[i] += x[i * step];
}

static inline __attribute__((always_inline)) void NAME(spread)(int64_t step, int64_t n, const T *restrict part,
                                                               T *restrict x) {
    for (int64_t i = 0; i < n; i++) x[i * step] += part[i];
}

/* Tap (r, c) of n windows of row i, from j on, into v; -infinity where it lies outside. */
static inline void NAME(take_tap)(const pool *s, const T *x, int64_t i, int64_t r, int64_t c, int64_t j, int64_t n,
                                  T *v) {
    const nr_pool_plan *p = s->plan;
    int64_t row = i * p->stride[0] - p->padding[0] + r * p->dilation[0], step = p->stride[1], u = 0;
    bool outside = row < 0 || row >= p->size[0];
    int64_t from = outside ? n : greatest(s->from[c] - j, 0), to = outside ? n : least(s->to[c] - j, n);
    for (; u < least(from, n); u++) v[u] = -(T)INFINITY;
    if (from < to) {
        const T *source = x + row * p->size[1] + j * step - p->padding[1] + c * p->dilation[1];
        if (step == 2)
            for (; u < to; u++) v[u] = source[u * 2];
        else
            for (; u < to; u++) v[u] = source[u * step];
    }
    for (; u < n; u++) v[u] = -(T)INFINITY;
}

/* Windows of `rows` rows from i on, n of each from j on, and rows * n <= RUN: the largest elements, and their places. */
static void NAME(max_run)(const pool *s, const T *x, int64_t i, int64_t rows, int64_t j, int64_t n, T *y,
                          int64_t *place) {
    const nr_pool_plan *p = s->plan;
    T v[RUN], best[RUN];
    WHOLE index[RUN], begin[RUN]; /* places count from where window (i, j) begins */
    int64_t step = p->stride[1], count = rows * n, groups = (count + GROUP - 1) / GROUP * GROUP;
    for (int64_t u = count; u < groups; u++) v[u] = 0, begin[u] = 0;
    for (int64_t u = 0; u < groups; u++) best[u] = -(T)INFINITY;
    for (int64_t q = 0; q < rows; q++) {
        int64_t top = p->padding[0] - (i + q) * p->stride[0];
        int64_t skip = top > 0 ? (top + p->dilation[0] - 1) / p->dilation[0] * p->dilation[0] * p->size[1] : 0;
        WHOLE *at = begin + q * n, *first = index + q * n, origin = (WHOLE)(q * p->stride[0] * p->size[1]);
        for (int64_t u = 0; u < n; u++) {
            at[u] = origin + (WHOLE)(u * step);
            first[u] = at[u] + (WHOLE)skip; /* the first element that the window sees, if none is larger */
        }
        for (int64_t u = 0; u < n && (j + u) * step < p->padding[1]; u++) {
            int64_t left = p->padding[1] - (j + u) * step;
            first[u] += (WHOLE)((left + p->dilation[1] - 1) / p->dilation[1] * p->dilation[1]);
        }
    }
    for (int64_t r = 0; r < p->kernel[0]; r++) {
        for (int64_t c = 0; c < p->kernel[1]; c++) {
            for (int64_t q = 0; q < rows; q++) NAME(take_tap)(s, x, i + q, r, c, j, n, v + q * n);
            WHOLE shift = (WHOLE)(r * p->dilation[0] * p->size[1] + c * p->dilation[1]);
            NAME(larger)(groups, v, begin, shift, best, index);
        }
    }
    int64_t origin = (i * p->stride[0] - p->padding[0]) * p->size[1] + j * step - p->padding[1];
    for (int64_t u = 0; u < count; u++) {
        y[u] = best[u];
        place[u] = origin + index[u];
    }
}

/* The factors of a row of windows, whose sums become means. */
static void NAME(factors)(const nr_pool_plan *p, int64_t i, int64_t j, int64_t n, T *factor) {
    int64_t rows = counted(p, 0, i);
    for (int64_t u = 0; u < n; u++) {
        factor[u] = (T)(1.0 / (p->divisor != 0 ? p->divisor : (double)(rows * counted(p, 1, j + u))));
    }
}

/* spread false: y = the sums of x times the factors; true: x += y times the factors, everywhere in the window. */
static void NAME(avg_run)(const pool *s, bool spread, T *x, int64_t i, int64_t j, int64_t n, T *y) {
    const nr_pool_plan *p = s->plan;
    T factor[RUN], sum[RUN];
    int64_t step = p->stride[1];
    NAME(factors)(p, i, j, n, factor);
    for (int64_t u = 0; u < n; u++) sum[u] = spread ? y[u] * factor[u] : (T)0;
    for (int64_t r = 0; r < p->kernel[0]; r++) {
        int64_t row = i * p->stride[0] - p->padding[0] + r;
        if (row < 0 || row >= p->size[0]) continue;
        for (int64_t c = 0; c < p->kernel[1]; c++) {
            int64_t from = greatest(s->from[c], j), to = least(s->to[c], j + n);
            if (from >= to) continue;
            T *at = x + row * p->size[1] + from * step - p->padding[1] + c, *part = sum + from - j;
            if (spread && step == 1)
                NAME(spread)(1, to - from, part, at);
            else if (spread)
                NAME(spread)(step, to - from, part, at);
            else if (step == 1)
                NAME(gather)(1, to - from, at, part);
            else if (step == 2)
                NAME(gather)(2, to - from, at, part);
            else
                NAME(gather)(step, to - from, at, part);
        }
    }
    for (int64_t u = 0; u < n && !spread; u++) y[u] = sum[u] * factor[u];
}

static void NAME(run)(const pool *s, nr_pool_kind kind, int64_t plane) {
    const nr_pool_plan *p = s->plan;
    int64_t area = p->size[0] * p->size[1], count = p->result[0] * p->result[1];
    T *x = (T *)p->x + plane * area, *y = (T *)p->y + plane * count;
    int64_t *index = p->index ? p->index + plane * count : NULL;
    if (kind == NR_POOL_MAX_SPREAD || kind == NR_POOL_AVG_SPREAD) memset(x, 0, (size_t)area * sizeof(T));
    if (kind == NR_POOL_MAX_SPREAD) {
        for (int64_t u = 0; u < count; u++) {
            if ((uint64_t)index[u] < (uint64_t)area) x[index[u]] += y[u];
        }
        return;
    }
    /* several short rows, or a part of a long one */
    int64_t wide = least(RUN, p->result[1]), high = kind == NR_POOL_MAX && wide < RUN ? RUN / wide : 1;
    for (int64_t i = 0; i < p->result[0]; i += high) {
        for (int64_t j = 0; j < p->result[1]; j += wide) {
            int64_t n = least(wide, p->result[1] - j), at = i * p->result[1] + j;
            if (kind == NR_POOL_MAX)
                NAME(max_run)(s, x, i, least(high, p->result[0] - i), j, n, y + at, index + at);
            else
                NAME(avg_run)(s, kind == NR_POOL_AVG_SPREAD, x, i, j, n, y + at);
        }
    }
}
