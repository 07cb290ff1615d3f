/* scan_loops: the loops of scan.c: a template of each_dtype.h. RUNNING is the type of the running value. */
#define RUNNING OF_DTYPE(running)
typedef __typeof__(_Generic((T)0, float: 0.0, default: (T)0)) RUNNING;

/* Scans `width` lanes from `at` on; width is a constant at compile time unless lanes are contiguous. */
INLINE void OF_DTYPE(fold_lanes)(const lanes *l, int64_t at, int64_t width, const int64_t next[2], RUNNING identity,
                                 RUNNING (*combine)(RUNNING, RUNNING)) {
    RUNNING state[WIDTH];
    const char *x = l->x + at * next[1];
    char *out = l->out + at * next[0];
    for (int64_t k = 0; k < width; k++) state[k] = identity;
    for (int64_t i = 0; i < l->n; i++, x += l->step[1], out += l->step[0])
        for (int64_t k = 0; k < width; k++) {
            state[k] = combine(state[k], (RUNNING) * (const T *)(x + k * next[1]));
            *(T *)(out + k * next[0]) = (T)state[k];
        }
}

/* One lane, whose value stays in a register. */
INLINE void OF_DTYPE(fold_one)(const lanes *l, int64_t at, RUNNING identity, RUNNING (*combine)(RUNNING, RUNNING)) {
    const int64_t n = l->n, x_step = l->step[1], out_step = l->step[0];
    const char *x = l->x + at * l->next[1];
    char *out = l->out + at * l->next[0];
    RUNNING state = identity;
    for (int64_t i = 0; i < n; i++, x += x_step, out += out_step) {
        state = combine(state, (RUNNING) * (const T *)(const void *)x);
        *(T *)(void *)out = (T)state;
    }
}

INLINE void OF_DTYPE(fold)(const lanes *l, RUNNING identity, RUNNING (*combine)(RUNNING, RUNNING)) {
    static const int64_t dense[2] = {sizeof(T), sizeof(T)};
    int64_t at = 0;
    if (l->next[0] == sizeof(T) && l->next[1] == sizeof(T)) {
        OF_DTYPE(fold_lanes)(l, 0, l->width, dense, identity, combine);
        return;
    }
    for (; at + 4 <= l->width; at += 4) OF_DTYPE(fold_lanes)(l, at, 4, l->next, identity, combine);
    for (; at < l->width; at++) OF_DTYPE(fold_one)(l, at, identity, combine);
}

INLINE RUNNING OF_DTYPE(add)(RUNNING a, RUNNING b) { return a + b; }
INLINE RUNNING OF_DTYPE(times)(RUNNING a, RUNNING b) { return a * b; }
static void OF_DTYPE(sum)(const lanes *l) { OF_DTYPE(fold)(l, 0, OF_DTYPE(add)); }
static void OF_DTYPE(prod)(const lanes *l) { OF_DTYPE(fold)(l, 1, OF_DTYPE(times)); }

#if IS_FLOAT
/* log(exp(a) + exp(b)); equal infinities have no distance. */
INLINE RUNNING OF_DTYPE(log_add)(RUNNING a, RUNNING b) {
    RUNNING high = a > b ? a : b, low = a > b ? b : a;
    if (a != a || b != b) return a + b;
    return high == low && !isfinite(high) ? high : high + log1p(exp(low - high));
}
static void OF_DTYPE(logsumexp)(const lanes *l) { OF_DTYPE(fold)(l, -(RUNNING)INFINITY, OF_DTYPE(log_add)); }
#endif

#ifndef GROUP
#define GROUP 16 /* elements that are compared at once */
#endif
/* The index of the last of the best so far, of all lanes; a NaN is better than all numbers, and only a
 * later NaN replaces it. The choice is made by masks: a branch would be guessed for each element. */
INLINE void OF_DTYPE(extreme_lanes)(const lanes *l, bool (*reaches)(T, T)) {
    T best[WIDTH];
    int64_t index[WIDTH];
    const char *x = l->x;
    char *out = l->out, *values = l->values;
    for (int64_t k = 0; k < l->width; k++) {
        best[k] = ((const T *)x)[k];
        index[k] = 0;
    }
    for (int64_t i = 0; i < l->n; i++, x += l->step[1], out += l->step[0]) {
        for (int64_t first = 0; first < l->width; first += GROUP) {
            const int64_t n = l->width - first < GROUP ? l->width - first : GROUP;
            const T *row = (const T *)x + first, *than = best + first;
            bool replaces = n < GROUP; /* some of a group, which is seldom */
            if (n == GROUP)
                for (int k = 0; k < GROUP; k++) replaces |= (row[k] != row[k]) | reaches(row[k], than[k]);
            for (int64_t k = first; replaces && k < first + n; k++) {
                const T value = ((const T *)x)[k];
                const bool take = (value != value) | reaches(value, best[k]);
                best[k] = take ? value : best[k];
                index[k] ^= (index[k] ^ i) & -(int64_t)take;
            }
        }
        memcpy(out, index, (size_t)l->width * sizeof *index);
        if (!values) continue;
        memcpy(values, best, (size_t)l->width * sizeof(T));
        values += l->step[0] / (int64_t)(sizeof(int64_t) / sizeof(T));
    }
}
/* One lane. A branch: extremes are replaced seldom, and choices by masks would wait for each other. */
INLINE void OF_DTYPE(extreme_one)(const lanes *l, int64_t at, bool (*reaches)(T, T)) {
    const char *x = l->x + at * l->next[1];
    int64_t *out = (int64_t *)(void *)(l->out + at * l->next[0]);
    const int64_t step = l->step[0] / (int64_t)sizeof *out, each = l->values ? step : 0;
    T best = *(const T *)x, none;
    T *values = l->values ? (T *)(void *)l->values + at * (l->next[0] / (int64_t)sizeof *out) : &none;
    int64_t index = 0, i = 0;
    for (; l->step[1] == sizeof(T) && step == 1 && i + GROUP <= l->n; i += GROUP) { /* in order */
        const T *row = (const T *)(const void *)x;
        bool replaces = false;
        for (int k = 0; k < GROUP; k++) replaces |= (row[k] != row[k]) | reaches(row[k], best);
        if (replaces) {
            for (int k = 0; k < GROUP; k++) {
                if ((row[k] != row[k]) | reaches(row[k], best)) {
                    best = row[k];
                    index = i + k;
                }
                out[k] = index;
                values[each * k] = best;
            }
        } else {
            for (int k = 0; k < GROUP; k++) out[k] = index;
            if (each)
                for (int k = 0; k < GROUP; k++) values[k] = best;
        }
        x += GROUP * sizeof(T);
        out += GROUP;
        values += GROUP * each;
    }
    for (; i < l->n; i++, x += l->step[1], out += step, values += each) {
        const T value = *(const T *)x;
        if (__builtin_expect((value != value) | reaches(value, best), 0)) {
            best = value;
            index = i;
        }
        *out = index;
        *values = best;
    }
}
INLINE void OF_DTYPE(extreme)(const lanes *l, bool (*reaches)(T, T)) {
    if (l->next[0] == sizeof(int64_t) && l->next[1] == sizeof(T))
        OF_DTYPE(extreme_lanes)(l, reaches);
    else
        for (int64_t at = 0; at < l->width; at++) OF_DTYPE(extreme_one)(l, at, reaches);
}

INLINE bool OF_DTYPE(above)(T value, T best) { return value >= best; }
INLINE bool OF_DTYPE(below)(T value, T best) { return value <= best; }
static void OF_DTYPE(largest)(const lanes *l) { OF_DTYPE(extreme)(l, OF_DTYPE(above)); }
static void OF_DTYPE(smallest)(const lanes *l) { OF_DTYPE(extreme)(l, OF_DTYPE(below)); }
