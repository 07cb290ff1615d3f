/* sort_loops: the loops of sort.c that look at elements, a template of each_dtype.h: keys for its sorts, whose
 * picture is there, selection, and bisection for searches (Knuth vol. 3, 6.2.1). */
#define KEY OF_DTYPE(key)

static void OF_DTYPE(read)(item *to, const char *x, int64_t n, int64_t step, uint64_t flip) {
    for (int64_t i = 0; i < n; i++, x += step)
        to[i] = (item){.key = OF_DTYPE(key_of)(*(const T *)(const void *)x) ^ flip, .index = i};
}

/* The elements of n items in their order. */
static void OF_DTYPE(take)(char *values, int64_t values_step, const char *x, int64_t step, const item *items,
                           int64_t n) {
    for (int64_t i = 0; i < n; i++)
        *(T *)(void *)(values + i * values_step) = *(const T *)(const void *)(x + items[i].index * step);
}

/* The k-th least of n keys, which it uses up; of those equal to it, *before precede it. Counts keys by their highest
 * digit that differs, and goes on with those of the bucket that holds the k-th. */
static KEY OF_DTYPE(select_key)(KEY *keys, int64_t n, int64_t k, int64_t *before) {
    const int digit = n < 4096 ? 8 : DIGIT;
    uint32_t counts[2][1 << DIGIT]; /* two, so that equal neighbours do not wait for each other */
    for (;;) {
        KEY low = (KEY)-1, high = 0;
        for (int64_t i = 0; i < n; i++) {
            low = keys[i] < low ? keys[i] : low;
            high = keys[i] > high ? keys[i] : high;
        }
        *before = k;
        if (low == high) return low;
        const int bits = 64 - __builtin_clzll(high - low), shift = bits > digit ? bits - digit : 0;
        for (int c = 0; c < 2; c++) memset(counts[c], 0, sizeof(uint32_t) << digit);
        for (int64_t i = 0; i < n; i++) counts[i & 1][(keys[i] - low) >> shift]++;
        int64_t bucket = 0, here, kept = 0;
        for (; (here = (int64_t)counts[0][bucket] + counts[1][bucket]) <= k; bucket++) k -= here;
        const KEY first = low + ((KEY)bucket << shift), width = ((KEY)1 << shift) - 1;
        for (int64_t i = 0; i < n; i++) { /* without a branch, which would be a guess */
            const KEY key = keys[i];
            keys[kept] = key;
            kept += (KEY)(key - first) <= width;
        }
        n = kept;
    }
}

/* The index of the element at place k in order (place_of); keys: memory for n. */
static int64_t OF_DTYPE(select)(void *memory, const char *x, int64_t n, int64_t step, int64_t k) {
    KEY *keys = memory;
    int64_t invalid = 0, before, i = 0;
    if (step == sizeof(T))
        for (int64_t m = 0; m < n; m++) keys[m] = OF_DTYPE(key_of)(((const T *)(const void *)x)[m]);
    else
        for (int64_t m = 0; m < n; m++) keys[m] = OF_DTYPE(key_of)(*(const T *)(const void *)(x + m * step));
    if (IS_FLOAT && k < 0)
        for (int64_t m = 0; m < n; m++) invalid += keys[m] == (KEY)-1;
    const KEY key = OF_DTYPE(select_key)(keys, n, place_of(k, n, n - invalid), &before);
    if (step == sizeof(T)) /* blocks without the one are skipped by vectors */
        for (int32_t equal; i < n; i += 64, before -= equal) {
            equal = 0;
            for (int64_t m = i; m < least(n, i + 64); m++)
                equal += OF_DTYPE(key_of)(((const T *)(const void *)x)[m]) == key;
            if (equal > before) break;
        }
    for (;; i++)
        if (OF_DTYPE(key_of)(*(const T *)(const void *)(x + i * step)) == key && before-- == 0) return i;
}
#undef KEY

/* One step of a bisection: whether the element at `middle` precedes the value; compared as PyTorch does, so that NaN
 * comes last. Masks, because branches would be guesses; a search that is done, low == high, keeps both. */
INLINE void OF_DTYPE(bisect)(T value, const char *sorted, int64_t step, int64_t n, bool right, int64_t *low,
                             int64_t *high) {
    const int64_t middle = *low + (*high - *low) / 2;
    const T at = *(const T *)(const void *)(sorted + (middle - (middle == n)) * step);
    const int64_t before = -(int64_t)((right ? !(at > value) : !(at >= value)) & (*low < *high));
    *low += (middle + 1 - *low) & before;
    *high += (middle - *high) & ~before;
}

/* The same for values that share a line without NaN at its end: there the halves are the same for all. */
static void OF_DTYPE(search_line)(const nr_sort_plan *p, char *out, const char *x, const char *row, int64_t n) {
    const int64_t *stride[3] = {p->nest.stride[0], p->nest.stride[1], p->nest.stride[2]}, step = p->step[1];
    const bool right = p->right;
    for (int64_t i = 0; i < n; i += SIDE) {
        int64_t low[SIDE] = {0}, left = p->n;
        T value[SIDE];
        for (int64_t l = 0; l < SIDE; l++)
            value[l] = *(const T *)(const void *)(x + least(i + l, n - 1) * stride[1][0]);
        for (int64_t half; left > 0; left -= half) {
            half = left - left / 2;
            for (int64_t l = 0; l < SIDE; l++) {
                const T at = *(const T *)(const void *)(row + (low[l] + half - 1) * step);
                low[l] += half & -(int64_t)(right ? !(at > value[l]) : !(at >= value[l]));
            }
        }
        for (int64_t l = 0; l < least(SIDE, n - i); l++) *(int64_t *)(void *)(out + (i + l) * stride[0][0]) = low[l];
    }
}

/* How many elements precede each of n values, SIDE of them side by side. */
static void OF_DTYPE(search)(const nr_sort_plan *p, char *out, const char *x, const char *row, int64_t n) {
    const int64_t *stride[3] = {p->nest.stride[0], p->nest.stride[1], p->nest.stride[2]};
    if (p->n > 0 && stride[2][0] == 0) {
        const T *last = (const T *)(const void *)(row + (p->n - 1) * p->step[1]), end = *last;
        if (end == *last) { /* no NaN */
            OF_DTYPE(search_line)(p, out, x, row, n);
            return;
        }
    }
    for (int64_t i = 0; i < n; i += SIDE) {
        const int64_t count = least(SIDE, n - i);
        int64_t low[SIDE] = {0}, high[SIDE];
        T value[SIDE];
        for (int64_t l = 0; l < SIDE; l++) {
            high[l] = p->n;
            value[l] = *(const T *)(const void *)(x + least(i + l, n - 1) * stride[1][0]);
        }
        for (int64_t left = p->n; left > 0; left /= 2)
            for (int64_t l = 0; l < SIDE; l++)
                OF_DTYPE(bisect)(value[l], row + least(i + l, n - 1) * stride[2][0], p->step[1], p->n, p->right,
                                 low + l, high + l);
        for (int64_t l = 0; l < count; l++) *(int64_t *)(void *)(out + (i + l) * stride[0][0]) = low[l];
    }
}
