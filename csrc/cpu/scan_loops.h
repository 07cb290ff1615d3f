/* scan_loops: the loops of scan.c, where their picture is, included once per dtype (NAME, T; ACC holds what runs; IS_FLOAT
 * where it is one). */
#define OF(name) NR_JOIN2(name, NAME)

/* `width` lanes at `at`, known at compile time but where lanes are neighbours. */
INLINE void OF(fold_some)(const lanes *l, int64_t at, int64_t width, const int64_t next[2], ACC identity,
                          ACC (*combine)(ACC, ACC)) {
    ACC state[WIDTH];
    const char *x = l->x + at * next[1];
    char *out = l->out + at * next[0];
    for (int64_t k = 0; k < width; k++) state[k] = identity;
    for (int64_t i = 0; i < l->n; i++, x += l->step[1], out += l->step[0])
        for (int64_t k = 0; k < width; k++) {
            state[k] = combine(state[k], (ACC) * (const T *)(x + k * next[1]));
            *(T *)(out + k * next[0]) = (T)state[k];
        }
}

INLINE void OF(fold)(const lanes *l, ACC identity, ACC (*combine)(ACC, ACC)) {
    static const int64_t dense[2] = {sizeof(T), sizeof(T)};
    int64_t at = 0;
    if (l->next[0] == sizeof(T) && l->next[1] == sizeof(T)) {
        OF(fold_some)(l, 0, l->width, dense, identity, combine);
        return;
    }
    for (; at + 4 <= l->width; at += 4) OF(fold_some)(l, at, 4, l->next, identity, combine);
    for (; at < l->width; at++) OF(fold_some)(l, at, 1, l->next, identity, combine);
}

INLINE ACC OF(add)(ACC a, ACC b) { return a + b; }
INLINE ACC OF(times)(ACC a, ACC b) { return a * b; }
static void OF(sum)(const lanes *l) { OF(fold)(l, 0, OF(add)); }
static void OF(prod)(const lanes *l) { OF(fold)(l, 1, OF(times)); }

#ifdef IS_FLOAT
/* log(exp(a) + exp(b)); equal infinities have no distance. */
INLINE ACC OF(log_add)(ACC a, ACC b) {
    ACC high = a > b ? a : b, low = a > b ? b : a;
    if (a != a || b != b) return a + b;
    return high == low && !isfinite(high) ? high : high + log1p(exp(low - high));
}
static void OF(logsumexp)(const lanes *l) { OF(fold)(l, -(ACC)INFINITY, OF(log_add)); }
INLINE bool OF(is_nan)(T value) { return value != value; }
#else
INLINE bool OF(is_nan)(T value) { return (void)value, false; }
#endif

/* The index of the last of the best so far; a NaN is better than all numbers, and only a later NaN replaces it. */
INLINE void OF(extreme)(const lanes *l, bool (*reaches)(T, T)) {
    for (int64_t k = 0; k < l->width; k++) {
        const char *x = l->x + k * l->next[1];
        char *out = l->out + k * l->next[0];
        T best = *(const T *)x;
        int64_t index = 0;
        for (int64_t i = 0; i < l->n; i++, x += l->step[1], out += l->step[0]) {
            T value = *(const T *)x;
            bool take = OF(is_nan)(value) || reaches(value, best);
            best = take ? value : best;
            index = take ? i : index;
            *(int64_t *)(void *)out = index;
        }
    }
}

INLINE bool OF(above)(T value, T best) { return value >= best; }
INLINE bool OF(below)(T value, T best) { return value <= best; }
static void OF(largest)(const lanes *l) { OF(extreme)(l, OF(above)); }
static void OF(smallest)(const lanes *l) { OF(extreme)(l, OF(below)); }

#undef OF
#undef T
#undef ACC
#undef NAME
#undef IS_FLOAT
