/* matmul_integer: rows `first` to `last` of a product of integers, whose sums wrap: a template that matmul_isa.c
 * includes for each width, with N, an unsigned integer, SUM, in which it is summed, and BITS_OF(name). Signed and
 * unsigned integers wrap alike; those of 8 bits are summed in 16, which processors multiply. Some columns of B are
 * packed on the stack, in the order in which a tile of C in registers reads them, as in gemm_tile.h; few rows read B
 * where it lies. */

#define COLS (2 * (int)(VECTOR / sizeof(SUM))) /* of a tile */

typedef SUM BITS_OF(lanes) __attribute__((vector_size(VECTOR), may_alias));

/* `rows` rows of C at a time, which are in the registers at once, over k; each row of `a` begins elsewhere. */
static void BITS_OF(tile)(int64_t k, const N *const a[INTEGER_ROWS], int64_t a_col, const SUM *b, SUM *sums) {
    BITS_OF(lanes) sum[INTEGER_ROWS][2];
    UNROLL for (int i = 0; i < INTEGER_ROWS; i++) sum[i][0] = sum[i][1] = (BITS_OF(lanes)){0};
    for (int64_t q = 0; q < k; q++, b += COLS) {
        const BITS_OF(lanes) *row = (const BITS_OF(lanes) *)b;
        UNROLL for (int i = 0; i < INTEGER_ROWS; i++) {
            const BITS_OF(lanes) x = (BITS_OF(lanes)){0} + (SUM)a[i][q * a_col];
            sum[i][0] += x * row[0];
            sum[i][1] += x * row[1];
        }
    }
    UNROLL for (int i = 0; i < INTEGER_ROWS; i++) {
        *(BITS_OF(lanes) *)(sums + i * COLS) = sum[i][0];
        *(BITS_OF(lanes) *)(sums + i * COLS + COLS / 2) = sum[i][1];
    }
}

/* k rows and `cols` columns of B, filled up with zeros. */
AROUND_TILE static void BITS_OF(pack)(SUM *restrict to, int64_t k, const N *restrict b, int64_t b_row, int64_t b_col,
                                      int cols) {
    if (cols < COLS) memset(to, 0, (size_t)(k * COLS) * sizeof *to);
    if (b_col == 1)
        for (int64_t q = 0; q < k; q++)
            for (int j = 0; j < cols; j++) to[q * COLS + j] = b[q * b_row + j];
    else
        for (int j = 0; j < cols; j++)
            for (int64_t q = 0; q < k; q++) to[q * COLS + j] = b[q * b_row + j * b_col];
}

/* Where rows of B are contiguous, or its columns, and rows of A. */
AROUND_TILE static void BITS_OF(few_rows)(const product *p, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
        const N *a = (const N *)p->a + i * p->a_row, *b = p->b;
        N *restrict c = (N *)p->c + i * p->c_row;
        for (int64_t q = 0; q < p->k && p->b_col == 1; q++, b += p->b_row) {
            const SUM x = a[q * p->a_col];
            for (int64_t j = 0; j < p->n; j++) c[j] = (N)(c[j] + 1u * x * b[j]);
        }
        for (int64_t j = 0; j < p->n && p->b_col != 1; j++, b += p->b_col) {
            SUM sum = c[j];
            for (int64_t q = 0; q < p->k; q++) sum = (SUM)(sum + 1u * (SUM)a[q] * b[q]);
            c[j] = (N)sum;
        }
    }
}

AROUND_TILE static void BITS_OF(many_rows)(const product *p, int64_t first, int64_t last) {
    SUM packed[INTEGER_K * COLS] __attribute__((aligned(64))), sums[INTEGER_ROWS * COLS] __attribute__((aligned(64)));
    for (int64_t from = 0; from < p->n; from += COLS) {
        const int cols = (int)least(COLS, p->n - from);
        for (int64_t pc = 0; pc < p->k; pc += INTEGER_K) {
            const int64_t k = least(INTEGER_K, p->k - pc);
            BITS_OF(pack)(packed, k, (const N *)p->b + pc * p->b_row + from * p->b_col, p->b_row, p->b_col, cols);
            for (int64_t i = first; i < last; i += INTEGER_ROWS) {
                const N *a[INTEGER_ROWS];
                for (int r = 0; r < INTEGER_ROWS; r++)
                    a[r] = (const N *)p->a + least(i + r, last - 1) * p->a_row + pc * p->a_col;
                BITS_OF(tile)(k, a, p->a_col, packed, sums);
                for (int64_t r = 0; r < least(INTEGER_ROWS, last - i); r++) {
                    N *restrict c = (N *)p->c + (i + r) * p->c_row + from;
                    for (int j = 0; j < cols; j++) c[j] = (N)(c[j] + sums[r * COLS + j]);
                }
            }
        }
    }
}

AROUND_TILE static void BITS_OF(rows)(const product *p, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
        const N *bias = p->bias;
        N *restrict c = (N *)p->c + i * p->c_row;
        for (int64_t j = 0; j < p->n; j++) c[j] = bias ? bias[j * p->bias_step] : 0;
    }
    const bool few = last - first < 4 && (p->b_col == 1 ? p->n > COLS / 4 : p->b_row == 1 && p->a_col == 1);
    (few ? BITS_OF(few_rows) : BITS_OF(many_rows))(p, first, last);
    for (int64_t i = first; i < last; i++) apply_epilogue(p, (N *)p->c + i * p->c_row, 1, p->n, sizeof(N));
}

#undef COLS
#undef N
#undef SUM
#undef BITS_OF
