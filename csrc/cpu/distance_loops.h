/* distance_loops: the loops of distance_isa.c, a template of each_dtype.h. Elements are added in the lanes of a block,
 * and spans of them in double precision. */

#define LANES ((int)(VECTOR / sizeof(T)))
#define VECTORS (BLOCK / VECTOR)

typedef T NAME(distance_vec) __attribute__((vector_size(VECTOR), may_alias, aligned(__alignof__(T))));
typedef INTEGER NAME(distance_mask) __attribute__((vector_size(VECTOR)));

/* |v|, without the bit of the sign. */
INLINE NAME(distance_vec) NAME(magnitude)(NAME(distance_vec) v) {
    const INTEGER all = (INTEGER)((~(uint64_t)0 >> (64 - 8 * sizeof(T))) >> 1);
    return (NAME(distance_vec))((NAME(distance_mask))v & all);
}

/* The larger of each two; NaN wins. */
INLINE NAME(distance_vec) NAME(larger_lanes)(NAME(distance_vec) v, NAME(distance_vec) most) {
    const NAME(distance_mask) take = (v > most) | (v != v);
    return (NAME(distance_vec))((take & (NAME(distance_mask))v) | (~take & (NAME(distance_mask))most));
}

INLINE NAME(distance_vec) NAME(added)(int64_t norm, NAME(distance_vec) sum, NAME(distance_vec) difference) {
    if (norm == 2) return sum + difference * difference;
    if (norm == 1) return sum + NAME(magnitude)(difference);
    return NAME(larger_lanes)(NAME(magnitude)(difference), sum);
}

INLINE NAME(distance_vec) NAME(joined)(int64_t norm, NAME(distance_vec) sum, NAME(distance_vec) other) {
    if (norm) return sum + other;
    return NAME(larger_lanes)(sum, other);
}

/* The root of the sum of squares, of differences divided by the largest one: for squares that overflow or underflow. */
static double NAME(scaled_root)(const T *a, const T *b, int64_t n) {
    double most = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) most = larger((double)absolute(a[i] - b[i]), most);
    if (!(most > 0 && most < (double)INFINITY)) return most;
    for (int64_t i = 0; i < n; i++) {
        const double share = (double)(a[i] - b[i]) / most;
        sum += share * share;
    }
    return sqrt(sum) * most;
}

/* The norm of a - b; where this is inlined its order is a constant. */
INLINE T NAME(norm)(int64_t norm, const T *a, const T *b, int64_t n) {
    double total = 0;
    int64_t i = 0;
    while (i + VECTORS * LANES <= n) {
        NAME(distance_vec) sums[VECTORS] = {{0}};
        const int64_t end = least(n, i + SPAN * VECTORS * LANES);
        for (; i + VECTORS * LANES <= end; i += VECTORS * LANES)
            for (int u = 0; u < VECTORS; u++) {
                const T *one = a + i + u * LANES, *other = b + i + u * LANES;
                sums[u] =
                    NAME(added)(norm, sums[u], *(const NAME(distance_vec) *)one - *(const NAME(distance_vec) *)other);
            }
        for (int half = VECTORS / 2; half; half /= 2)
            for (int u = 0; u < half; u++) sums[u] = NAME(joined)(norm, sums[u], sums[u + half]);
        T lanes[LANES];
        memcpy(lanes, sums, sizeof lanes);
        for (int half = LANES / 2; half; half /= 2)
            for (int u = 0; u < half; u++)
                lanes[u] = norm ? lanes[u] + lanes[u + half] : larger(lanes[u], lanes[u + half]);
        total = norm ? total + (double)lanes[0] : larger((double)lanes[0], total);
    }
    for (; i < n; i++) {
        const T difference = absolute(a[i] - b[i]);
        const double size = (double)(norm == 2 ? difference * difference : difference);
        total = norm ? total + size : larger(size, total);
    }
    if (norm != 2) return (T)total;
    const bool in_range = sizeof(T) == 4 ? total > 1e-30 && total < 1e38 : total > 1e-280 && total < 1e300;
    return (T)(in_range ? sqrt(total) : NAME(scaled_root)(a, b, n));
}

#define ROW_OF_NORM(name, order)                                                                                    \
    static void NAME(name)(const T *restrict a, const T *restrict b, int64_t columns, int64_t n, T *restrict out) { \
        for (int64_t j = 0; j < columns; j++) out[j] = NAME(norm)(order, a, b + j * n, n);                          \
    }
ROW_OF_NORM(largest_row, 0)
ROW_OF_NORM(absolute_row, 1)
ROW_OF_NORM(squares_row, 2)
#undef ROW_OF_NORM

/* The gradient of a row. */
static void NAME(gradient_row)(const nr_distance_plan *p, const T *restrict a, const T *restrict b,
                               const T *restrict weight, T *restrict out) {
    for (int64_t at = 0; at < p->width; at += SUMMED_WIDTH) {
        const int64_t n = least(SUMMED_WIDTH, p->width - at);
        for (int64_t k = 0; k < n; k++) out[at + k] = 0;
        for (int64_t first = 0; first < p->columns; first += SUMMED_ROWS) {
            T part[SUMMED_WIDTH];
            for (int64_t k = 0; k < n; k++) part[k] = 0;
            for (int64_t j = first; j < least(first + SUMMED_ROWS, p->columns); j++) {
                const T w = weight[j], *restrict row = b + j * p->width + at, *restrict of = a + at;
                if (p->norm == 2)
                    for (int64_t k = 0; k < n; k++) part[k] += w * (of[k] - row[k]);
                else
                    for (int64_t k = 0; k < n; k++) {
                        const T apart = of[k] - row[k];
                        part[k] += w * (apart == apart ? (T)((apart > 0) - (apart < 0)) : apart);
                    }
            }
            for (int64_t k = 0; k < n; k++) out[at + k] += part[k];
        }
    }
}

/* A row of one pair of matrices. */
static void NAME(row)(const nr_distance_plan *p, int32_t kind, int64_t matrix, int64_t i) {
    const T *a = (const T *)p->a + (matrix * p->rows + i) * p->width;
    const T *b = (const T *)p->b + matrix * p->columns * p->width;
    if (kind == NR_DISTANCE_BACKWARD) {
        NAME(gradient_row)(p, a, b, (const T *)p->weight + (matrix * p->rows + i) * p->columns,
                           (T *)p->out + (matrix * p->rows + i) * p->width);
        return;
    }
    int64_t columns = p->columns, begin = (matrix * p->rows + i) * columns;
    if (kind == NR_DISTANCE_PAIRS) { /* of rows 0, 1 ... n - 1, n - 2 ... pairs */
        begin = matrix * (columns * (columns - 1) / 2) + i * (columns - 1) - i * (i - 1) / 2;
        b += (i + 1) * p->width;
        columns -= i + 1;
    }
    (p->norm == 2   ? NAME(squares_row)
     : p->norm == 1 ? NAME(absolute_row)
                    : NAME(largest_row))(a, b, columns, p->width, (T *)p->out + begin);
}

#undef VECTORS
#undef LANES
