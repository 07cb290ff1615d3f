/* sort_loops: the loops of sort.c that look at elements, a template of each_dtype.h: keys for its sorts, whose
 * picture is there, and bisection for searches (Knuth vol. 3, 6.2.1). */

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

/* How many elements precede each of n values; compared as PyTorch does, so that NaN comes last. */
static void OF_DTYPE(search)(const nr_sort_plan *p, char *out, const char *x, const char *row, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        T value = *(const T *)(const void *)(x + i * p->nest.stride[1][0]);
        const char *sorted = row + i * p->nest.stride[2][0];
        int64_t low = 0, high = p->n;
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            T at = *(const T *)(const void *)(sorted + middle * p->step[1]);
            bool before = p->right ? !(at > value) : !(at >= value);
            low = before ? middle + 1 : low;
            high = before ? high : middle;
        }
        *(int64_t *)(void *)(out + i * p->nest.stride[0][0]) = low;
    }
}
