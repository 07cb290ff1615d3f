/* gemm_bf16_dot: products of bfloat16 by AVX512-BF16, whose vdpbf16ps adds a0 b0 + a1 b1 to each float32 of a vector:
 * pairs along k. Included by gemm_bf16.h in the build for AVX-512.
 *
 * Panels of A and B are packed as for float32, with a pair (k, k + 1) in place of an element, and over all of k, so
 * that a tile is summed in registers and rounded to bfloat16 once. */

#define BF16 __attribute__((target("avx512bf16")))

#define LANES_OF_PAIRS 16

INLINE __mmask32 bf16_first(int64_t count) {
    return count >= 32 ? 0xffffffffu : (__mmask32)((1u << (count < 0 ? 0 : count)) - 1);
}

/* to[q * width + i] = the pair at from + i * lane + 2 q * step, for i < lanes; 0 for other lanes, and beyond k. */
BF16 static void bf16_pack(int width, bf16_both *to, int64_t k, const bf16_bits *from, int64_t lane, int64_t step,
                           int lanes) {
    const int64_t pairs = k / 2;
    if (lane == 1) {
        for (int64_t p = 0; p < k; p += 2, from += 2 * step, to += width)
            for (int i = 0; i < width; i += LANES_OF_PAIRS) {
                const __mmask16 mask = (__mmask16)bf16_first(least(lanes - i, LANES_OF_PAIRS));
                const __mmask16 written = (__mmask16)bf16_first(least(width - i, LANES_OF_PAIRS));
                const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from + i));
                const __mmask16 second = p + 1 < k ? mask : 0;
                const __m512i high =
                    _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(second, from + i + (p + 1 < k ? step : 0)));
                _mm512_mask_storeu_epi32(to + i, written, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
            }
        return;
    }
    if (step == 1 && lane % 2 == 0 && (uintptr_t)from % 4 == 0) { /* a pair is moved as a float */
        pack_float32(width, (float *)(void *)to, pairs, (const float *)(const void *)from, lane / 2, 1, lanes);
        for (int i = 0; i < width && k % 2; i++) to[pairs * width + i] = i < lanes ? from[i * lane + k - 1] : 0;
        return;
    }
    for (int64_t p = 0; p < k; p += 2, to += width)
        for (int i = 0; i < width; i++) to[i] = i < lanes ? bf16_pair(from + i * lane + p * step, step, k - p) : 0;
}

/* The bias of `count` columns. bias_step 0: one number for all columns. */
BF16 INLINE __m512 bf16_bias(const bf16_bits *bias, int64_t bias_step, int64_t count) {
    const __mmask16 mask = (__mmask16)bf16_first(least(count, LANES_OF_PAIRS));
    const __m256i values = bias_step ? _mm256_maskz_loadu_epi16(mask, bias) : _mm256_set1_epi16((short)*bias);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(values), 16));
}

/* Stores `count` sums as bfloat16. */
BF16 INLINE void bf16_store(bf16_bits *to, __m512 sum, int64_t count) {
    const __mmask16 mask = (__mmask16)bf16_first(least(count, LANES_OF_PAIRS));
    _mm256_mask_storeu_epi16(to, mask, (__m256i)_mm512_cvtneps_pbh(sum));
}

/* rows x cols of C; a and b: panels of pairs. rows and vectors are constants wherever this is inlined. */
BF16 INLINE void bf16_tile(int rows, int vectors, int64_t pairs, const bf16_both *a, const bf16_both *b, bf16_bits *c,
                           int64_t c_row, int64_t cols, const bf16_bits *bias, int64_t bias_step) {
    __m512 sum[TILE_ROWS][2];
    UNROLL for (int i = 0; i < rows; i++) { UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = _mm512_setzero_ps(); }
    for (int64_t q = 0; q < pairs; q++, a += rows, b += BF16_COLS) {
        __m512bh row[2];
        UNROLL for (int j = 0; j < vectors; j++) row[j] = (__m512bh)_mm512_loadu_si512(b + j * LANES_OF_PAIRS);
        UNROLL for (int i = 0; i < rows; i++) {
            const __m512bh x = (__m512bh)_mm512_set1_epi32((int)a[i]);
            UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = _mm512_dpbf16_ps(sum[i][j], x, row[j]);
        }
    }
    UNROLL for (int j = 0; j < vectors; j++) {
        const int64_t at = j * LANES_OF_PAIRS;
        if (bias) {
            const __m512 more = bf16_bias(bias + at * bias_step, bias_step, cols - at);
            UNROLL for (int i = 0; i < rows; i++) sum[i][j] = _mm512_add_ps(sum[i][j], more);
        }
        UNROLL for (int i = 0; i < rows; i++) bf16_store(c + i * c_row + at, sum[i][j], cols - at);
    }
}

typedef void (*bf16_tile_of)(int64_t pairs, const bf16_both *a, const bf16_both *b, bf16_bits *c, int64_t c_row,
                             int64_t cols, const bf16_bits *bias, int64_t bias_step);
#define TILES_OF(rows, vectors)                                                                                        \
    BF16 static void bf16_tile_##rows##x##vectors(int64_t pairs, const bf16_both *a, const bf16_both *b, bf16_bits *c, \
                                                  int64_t c_row, int64_t cols, const bf16_bits *bias,                  \
                                                  int64_t bias_step) {                                                 \
        bf16_tile(rows, vectors, pairs, a, b, c, c_row, cols, bias, bias_step);                                        \
    }
#define TILES(rows) TILES_OF(rows, 1) TILES_OF(rows, 2)
EACH_TILE_ROW(TILES)
#undef TILES
#undef TILES_OF
#define TILES(rows) {bf16_tile_##rows##x1, bf16_tile_##rows##x2},
static const bf16_tile_of bf16_tiles[TILE_ROWS][2] = {EACH_TILE_ROW(TILES)};
#undef TILES

/* rows x cols dot products of rows of A and columns of B, both contiguous along k. */
BF16 INLINE void bf16_dot(int rows, int cols, const product *p, const bf16_bits *a, const bf16_bits *b, int64_t i,
                          int64_t j) {
    __m512 sum[BF16_DOT_ROWS][4];
    UNROLL for (int r = 0; r < rows; r++) { UNROLL for (int s = 0; s < cols; s++) sum[r][s] = _mm512_setzero_ps(); }
    for (int64_t q = 0; q < p->k; q += 32) {
        const __mmask32 mask = bf16_first(p->k - q);
        __m512bh row[BF16_DOT_ROWS];
        UNROLL for (int r = 0; r < rows; r++) row[r] = (__m512bh)_mm512_maskz_loadu_epi16(mask, a + r * p->a_row + q);
        UNROLL for (int s = 0; s < cols; s++) {
            const __m512bh col = (__m512bh)_mm512_maskz_loadu_epi16(mask, b + s * p->b_col + q);
            UNROLL for (int r = 0; r < rows; r++) sum[r][s] = _mm512_dpbf16_ps(sum[r][s], row[r], col);
        }
    }
    const bf16_bits *bias = p->bias;
    UNROLL for (int r = 0; r < rows; r++) {
        UNROLL for (int s = 0; s < cols; s++) {
            __m512 total = _mm512_set1_ps(_mm512_reduce_add_ps(sum[r][s]));
            if (bias) total = _mm512_add_ps(total, bf16_bias(bias + (j + s) * p->bias_step, 0, 1));
            bf16_store((bf16_bits *)p->c + (i + r) * p->c_row + j + s, total, 1);
        }
    }
}

BF16 static bool bf16_dots(const product *p, bool transposed, int64_t i0, int64_t i1, int64_t j0, int64_t j1,
                           void *scratch) {
    (void)transposed;
    bf16_bits *const packed = scratch;
    const bf16_bits *a = p->a, *b = p->b;
    if (p->a_col != 1) { /* a single row */
        for (int64_t q = 0; q < p->k; q++) packed[q] = a[q * p->a_col];
        a = packed;
    }
    for (int64_t j = j0; j < j1;) {
        const int cols = j + 4 <= j1 ? 4 : 1;
        for (int64_t i = i0; i < i1;) {
            const int rows = i + BF16_DOT_ROWS <= i1 ? BF16_DOT_ROWS : 1;
            const bf16_bits *from = a + i * p->a_row, *to = b + j * p->b_col;
            if (rows == 1 && cols == 1)
                bf16_dot(1, 1, p, from, to, i, j);
            else if (rows == 1)
                bf16_dot(1, 4, p, from, to, i, j);
            else if (cols == 1)
                bf16_dot(BF16_DOT_ROWS, 1, p, from, to, i, j);
            else
                bf16_dot(BF16_DOT_ROWS, 4, p, from, to, i, j);
            i += rows;
        }
        j += cols;
    }
    return true;
}

/* The number of columns of a row of C whose sums stay in the first cache while rows of B are added to them. */
#define ROW_COLS 1024

/* One row of C, for contiguous rows of B, which are read eight at a time, in long pieces. */
BF16 static bool bf16_row(const product *p, bool transposed, int64_t i0, int64_t i1, int64_t j0, int64_t j1,
                          void *scratch) {
    (void)transposed, (void)i0, (void)i1, (void)scratch;
    const bf16_bits *a = p->a, *bias = p->bias;
    for (int64_t from = j0; from < j1; from += ROW_COLS) {
        const int64_t cols = least(ROW_COLS, j1 - from);
        float sum[ROW_COLS] __attribute__((aligned(64)));
        memset(sum, 0, (size_t)cols * sizeof *sum);
        for (int64_t q = 0; q < p->k; q += 8) {
            const bf16_bits *b = (const bf16_bits *)p->b + q * p->b_row + from;
            __m512bh x[4];
            for (int h = 0; h < 4; h++) {
                const int64_t at = q + 2 * h;
                const uint32_t pair = at < p->k ? bf16_pair(a + at * p->a_col, p->a_col, p->k - at) : 0;
                x[h] = (__m512bh)_mm512_set1_epi32((int)pair);
            }
            const int64_t rows = p->k - q;
            for (int64_t j = 0; j < cols; j += LANES_OF_PAIRS) {
                const __mmask16 mask = (__mmask16)bf16_first(least(cols - j, LANES_OF_PAIRS));
                __m512 total = _mm512_maskz_loadu_ps(mask, sum + j);
                UNROLL for (int h = 0; h < 4; h++) {
                    const bf16_bits *row = b + (2 * h < rows ? 2 * h : 0) * p->b_row + j;
                    const bf16_bits *next = b + (2 * h + 1 < rows ? 2 * h + 1 : 0) * p->b_row + j;
                    const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, row));
                    const __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, next));
                    const __m512i pairs = _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
                    total = _mm512_dpbf16_ps(total, x[h], (__m512bh)pairs);
                }
                _mm512_mask_storeu_ps(sum + j, mask, total);
            }
        }
        for (int64_t j = 0; j < cols; j += LANES_OF_PAIRS) {
            const int64_t at = from + j;
            const __mmask16 mask = (__mmask16)bf16_first(least(cols - j, LANES_OF_PAIRS));
            __m512 total = _mm512_maskz_loadu_ps(mask, sum + j);
            if (bias) total = _mm512_add_ps(total, bf16_bias(bias + at * p->bias_step, p->bias_step, cols - j));
            bf16_store((bf16_bits *)p->c + at, total, cols - j);
        }
    }
    return true;
}

/* Rows i0 .. i1 and columns j0 .. j1 of C. */
BF16 static bool bf16_block(const product *p, bool transposed, int64_t i0, int64_t i1, int64_t j0, int64_t j1,
                            void *scratch) {
    (void)transposed;
    const int64_t pairs = ceil_div(p->k, 2), tiles = ceil_div(i1 - i0, TILE_ROWS);
    const int64_t least_rows = (i1 - i0) / tiles, longer = (i1 - i0) % tiles;
    bf16_both *const panel = scratch, *const packed_a = panel + pairs * BF16_COLS;
    const bf16_bits *a = (const bf16_bits *)p->a + i0 * p->a_row, *b = p->b;
    bf16_both *to = packed_a;
    for (int64_t t = 0; t < tiles; t++) {
        const int rows = (int)(least_rows + (t < longer));
        bf16_pack(rows, to, p->k, a, p->a_row, p->a_col, rows);
        a += rows * p->a_row;
        to += rows * pairs;
    }
    for (int64_t j = j0; j < j1; j += BF16_COLS) {
        const int64_t cols = least(BF16_COLS, j1 - j);
        const bf16_bits *bias = p->bias ? (const bf16_bits *)p->bias + j * p->bias_step : NULL;
        bf16_bits *c = (bf16_bits *)p->c + i0 * p->c_row + j;
        bf16_pack(BF16_COLS, panel, p->k, b + j * p->b_col, p->b_col, p->b_row, (int)cols);
        const bf16_both *from = packed_a;
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t rows = least_rows + (t < longer);
            bf16_tiles[rows - 1][cols > LANES_OF_PAIRS](pairs, from, panel, c, p->c_row, cols, bias, p->bias_step);
            from += rows * pairs;
            c += rows * p->c_row;
        }
    }
    return true;
}

static const bf16_kernel bf16_dot_kernel = {.block = bf16_block, .rows = TILE_ROWS, .row_fill = 1, .depth = 2};

static bool has_bf16_dots(void) {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1);
}

/* Only AMD's processors use this. Intel's take two cycles for the instruction, so that widening the operands to float32
 * is twice as fast. */
static bool has_fast_bf16_dots(void) {
    unsigned a, vendor[4] = {0};
    return __get_cpuid(0, &a, &vendor[0], &vendor[2], &vendor[1]) && memcmp(vendor, "AuthenticAMD", 12) == 0 &&
           has_bf16_dots();
}
