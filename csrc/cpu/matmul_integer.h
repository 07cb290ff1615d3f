/* matmul_integer: rows `first` to `last` of a product of integers, whose sums wrap: plain loops, a template of
 * each_dtype.h for matmul_isa.c. */

static void OF_DTYPE(rows)(const product *p, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
        const T *a = (const T *)p->a + i * p->a_row, *bias = p->bias;
        T *restrict c = (T *)p->c + i * p->c_row;
        for (int64_t j = 0; j < p->n; j++) c[j] = bias ? bias[j * p->bias_step] : (T)0;
        for (int64_t q = 0; q < p->k && p->b_col == 1; q++) {
            const T x = a[q * p->a_col], *b = (const T *)p->b + q * p->b_row;
            for (int64_t j = 0; j < p->n; j++) c[j] = (T)(c[j] + x * b[j]);
        }
        for (int64_t j = 0; j < p->n && p->b_col != 1; j++) {
            const T *b = (const T *)p->b + j * p->b_col;
            T sum = c[j];
            for (int64_t q = 0; q < p->k; q++) sum = (T)(sum + a[q * p->a_col] * b[q * p->b_row]);
            c[j] = sum;
        }
        apply_epilogue(p, c, 1, p->n, sizeof(T));
    }
}
