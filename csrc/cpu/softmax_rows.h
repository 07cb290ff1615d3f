/* softmax_rows: what the loops of softmax and of cross-entropy ask of a row: its largest element, sums, and the sum of
 * exponentials. Part of a template of each_dtype.h, for a float type; its includer says how many elements wait in the
 * first cache for their sum (BLOCK). */
#define VEC OF_DTYPE(vector)
#define BITS OF_DTYPE(bits)
#define LANES (32 / (int64_t)sizeof(T))
typedef T VEC __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));
typedef INTEGER BITS __attribute__((vector_size(32), aligned(sizeof(T))));

INLINE void OF_DTYPE(raise)(VEC *top, const VEC *x) {
    BITS above = *x > *top;
    *top = (VEC)((above & (BITS)*x) | (~above & (BITS)*top));
}

INLINE T OF_DTYPE(row_top)(const T *x, int64_t n) {
    T top = -(T)INFINITY;
    int64_t i = 0;
    if (n >= LANES) {
        const VEC *v = (const VEC *)x;
        VEC tops[4] = {v[0], v[0], v[0], v[0]};
        for (; i + 4 * LANES <= n; i += 4 * LANES, v += 4)
            for (int64_t k = 0; k < 4; k++) OF_DTYPE(raise)(&tops[k], v + k);
        for (; i + LANES <= n; i += LANES, v++) OF_DTYPE(raise)(&tops[0], v);
        OF_DTYPE(raise)(&tops[0], &tops[1]);
        OF_DTYPE(raise)(&tops[2], &tops[3]);
        OF_DTYPE(raise)(&tops[0], &tops[2]);
        for (int64_t k = 0; k < LANES / 2; k++)
            tops[0][k] = tops[0][k + LANES / 2] > tops[0][k] ? tops[0][k + LANES / 2] : tops[0][k];
        for (int64_t k = 0; k < LANES / 2; k++) top = tops[0][k] > top ? tops[0][k] : top;
    }
    for (; i < n; i++) top = x[i] > top ? x[i] : top;
    return top;
}

/* The sum of at most a block of x, or of x times y. */
INLINE double OF_DTYPE(block_sum)(const T *x, const T *y, int64_t n) {
    VEC sums[4] = {{0}};
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        for (int64_t k = 0; k < 4; k++) {
            const VEC *a = (const VEC *)(x + i) + k, *b = (const VEC *)((y ? y : x) + i) + k;
            sums[k] += y ? (VEC)(*a * *b) : *a;
        }
    for (; i + LANES <= n; i += LANES) {
        const VEC *a = (const VEC *)(x + i), *b = (const VEC *)((y ? y : x) + i);
        sums[0] += y ? (VEC)(*a * *b) : *a;
    }
    VEC lanes = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    T rest = 0;
    for (; i < n; i++) rest += y ? x[i] * y[i] : x[i];
    for (int64_t k = 0; k < LANES / 2; k++) lanes[k] += lanes[k + LANES / 2];
    return (double)(rest + (lanes[0] + lanes[LANES / 4]) + (LANES > 4 ? lanes[1] + lanes[3] : 0));
}

INLINE double OF_DTYPE(row_sum)(const T *x, const T *y, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i += BLOCK)
        sum += OF_DTYPE(block_sum)(x + i, y ? y + i : NULL, n - i < BLOCK ? n - i : BLOCK);
    return sum;
}

/* Writes exp(x - top) to out and returns the sum. block: out has room for one block only, which each block
 * overwrites. */
INLINE double OF_DTYPE(row_exp)(T *restrict out, const T *restrict x, int64_t n, T top, bool block) {
    double sum = 0;
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t count = n - i < BLOCK ? n - i : BLOCK;
        T *to = block ? out : out + i;
        for (int64_t k = 0; k < count; k++) to[k] = exp_below(x[i + k] - top);
        sum += OF_DTYPE(block_sum)(to, NULL, count);
    }
    return sum;
}
