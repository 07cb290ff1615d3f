/* gemm_triangle: systems of a triangle, small enough for the first cache, for a float type: a template of each_dtype.h
 * for matmul_isa.c. Columns of B are independent, and fill registers: row i of X is that of B, less the rows before it
 * times their numbers in A, over the diagonal. */
#define TRIANGLE_VECTORS 4 /* of columns side by side */

/* n columns from j on; n is a constant where this is inlined, but for systems of fewer. */
INLINE void OF_DTYPE(solve_columns)(const nr_matmul_plan *p, bool upper, bool unit, int64_t j, int n) {
    const T *a = p->a;
    T *x = (T *)p->c + j, sum[TRIANGLE_VECTORS * VECTOR / sizeof(T)];
    for (int64_t s = 0; s < p->m; s++) {
        const int64_t i = upper ? p->m - 1 - s : s;
        const T *b = (const T *)p->b + i * p->b_row + j;
        for (int u = 0; u < n; u++) sum[u] = b[u];
        for (int64_t r = 0; r < s; r++) {
            const int64_t before = upper ? p->m - 1 - r : r;
            const T factor = a[i * p->a_row + before * p->a_col], *row = x + before * p->c_row;
            for (int u = 0; u < n; u++) sum[u] -= factor * row[u];
        }
        const T diagonal = unit ? 1 : a[i * (p->a_row + p->a_col)];
        for (int u = 0; u < n; u++) x[i * p->c_row + u] = sum[u] / diagonal;
    }
}

static void OF_DTYPE(solve_triangle)(const nr_matmul_plan *p) {
    enum { WIDTH = TRIANGLE_VECTORS * VECTOR / sizeof(T) };
    const bool upper = p->triangle == NR_UPPER || p->triangle == NR_UNIT_UPPER, unit = p->triangle >= NR_UNIT_LOWER;
    if (p->n < WIDTH)
        OF_DTYPE(solve_columns)(p, upper, unit, 0, (int)p->n);
    else /* the last columns may be computed twice */
        for (int64_t j = 0; j < p->n; j += WIDTH)
            OF_DTYPE(solve_columns)(p, upper, unit, least(j, p->n - WIDTH), WIDTH);
}
