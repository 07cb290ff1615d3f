/* sort_short: short rows of float32, ROWS side by side, and a few of a long one; a part of sort_isa.c. An item is a
 * key, and below it the index: so all items differ, and any way of sorting is stable. */

#define ROWS 8       /* 64-bit integers of a vector of AVX-512 */
#define SHORT 256    /* longest row for a network */
#define ONE_SHORT 64 /* and where one element is wanted, or of few rows */
#define TOP 16       /* count up to which columns are worth while in long rows; in others up to an eighth of the row */
#define LONG 128
#define COLUMNS 64

typedef uint64_t row_items[ROWS] __attribute__((aligned(64))); /* one of each row */

static void read_row(row_items *to, int64_t row, const char *x, int64_t n, int64_t step, uint32_t flip) {
    for (int64_t i = 0; i < n; i++)
        to[i][row] =
            (uint64_t)(key_of_float32(*(const float *)(const void *)(x + i * step)) ^ flip) << 32 | (uint64_t)i;
}

INLINE void exchange(row_items *a, row_items *b) {
    for (int l = 0; l < ROWS; l++) {
        const uint64_t x = (*a)[l], y = (*b)[l];
        (*a)[l] = x < y ? x : y;
        (*b)[l] = x < y ? y : x;
    }
}

/* The odd-even merge sort of Batcher, "Sorting networks and their applications" (1968): the exchanges do not depend on
 * the elements, so that one instruction serves all rows. */
static void sort_rows(row_items *v, int64_t n) {
    for (int64_t p = 1; p < n; p *= 2)
        for (int64_t k = p; k >= 1; k /= 2)
            for (int64_t j = k % p; j + k < n; j += 2 * k)
                for (int64_t i = j; i < j + k && i + k < n; i++)
                    if (((i ^ (i + k)) & -(2 * p)) == 0) exchange(v + i, v + i + k);
}

/* The count <= TOP first of n elements in order. In long rows the least key of each of 64 columns is found by vectors:
 * the count-th least of those bounds the keys that come in; blocks without any are skipped.
 *
 *   keys  5 3 9 | 4 8 7 | 6 2 9     least  4 2 7     two of them: none above 4 comes in */
static void top_few(item *best, uint32_t *keys, const char *x, int64_t n, int64_t step, uint32_t flip, int64_t count) {
    uint32_t lowest[COLUMNS], most = UINT32_MAX;
    if (step == sizeof(float))
        for (int64_t i = 0; i < n; i++) keys[i] = key_of_float32(((const float *)(const void *)x)[i]) ^ flip;
    else
        for (int64_t i = 0; i < n; i++) keys[i] = key_of_float32(*(const float *)(const void *)(x + i * step)) ^ flip;
    const bool is_bounded = n >= LONG;
    if (is_bounded) {
        memcpy(lowest, keys, sizeof lowest);
        for (int64_t i = COLUMNS; i + COLUMNS <= n; i += COLUMNS)
            for (int64_t c = 0; c < COLUMNS; c++) lowest[c] = keys[i + c] < lowest[c] ? keys[i + c] : lowest[c];
        for (int64_t k = 0; k < count; k++) {
            most = UINT32_MAX;
            for (int64_t c = 0; c < COLUMNS; c++) most = lowest[c] < most ? lowest[c] : most;
            for (int64_t c = 0; c < COLUMNS; c++) lowest[c] = lowest[c] == most ? UINT32_MAX : lowest[c];
        }
    }
    int64_t have = 0;
    for (int64_t i = 0; i < n; i += COLUMNS) {
        const int64_t end = least(n, i + COLUMNS);
        uint32_t low = UINT32_MAX;
        for (int64_t m = i; is_bounded && m < end; m++) low = keys[m] < low ? keys[m] : low;
        if (is_bounded && low > most) continue;
        for (int64_t m = i; m < end; m++) {
            if (keys[m] > most || (have == count && (count == 0 || keys[m] >= best[count - 1].key))) continue;
            int64_t to = have < count ? have++ : count - 1;
            for (; to > 0 && best[to - 1].key > keys[m]; to--) best[to] = best[to - 1];
            best[to] = (item){.key = keys[m], .index = m};
        }
    }
}
