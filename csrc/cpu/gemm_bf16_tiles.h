/* gemm_bf16_tiles: products of bfloat16 by tiles: TDPBF16PS adds a product of 16 x 32 and 32 x 16 numbers to 16 x 16
 * float32. Included by matmul_isa.c after amx.h, once for the instructions and once for their emulation.
 *
 *   A (rows, k)   panels of 16 rows,    of tiles of 32 of k: a row of a tile has 16 pairs (k, k + 1) of one row of A
 *   B (k, cols)   panels of 16 columns, of tiles of 32 of k: a row of a tile has one pair of each of 16 columns of B
 *
 * So both are squares of 16 x 16 pairs, and one is the other transposed; the edges are filled up with zeros. Four tiles
 * of sums, 32 x 32 of C, stay in registers over all of k, and are rounded to bfloat16 once: per step of k 4 tiles are
 * loaded and 4 products added. The rows of A that a task has are packed once, a panel of B right before its use. */

/* to[r][c]: the pair at from + r * row + 2 c * step, whose numbers are a step apart, for r < rows and 2 c
 * < count; a pair beyond has zeros. */
INLINE void TILE_NAME(rows_of_pairs)(bf16_both *to, const bf16_bits *from, int64_t row, int64_t step, int rows,
                                     int count) {
    if (rows < TILE_ROW || count < 2 * TILE_ROW) memset(to, 0, TILE_CELLS * sizeof *to);
    for (int r = 0; r < rows; r++, from += row, to += TILE_ROW) {
        if (step == 1 && count == 2 * TILE_ROW)
            memcpy(to, from, TILE_ROW * sizeof *to);
        else if (step == 1)
            memcpy(to, from, (size_t)count * sizeof *from);
        else
            for (int c = 0; c < count; c += 2) to[c / 2] = bf16_pair(from + c * step, step, count - c);
    }
}

/* to[q][i]: the pair at from + i + 2 q * step, for i < lanes and 2 q < count. */
INLINE void TILE_NAME(lanes_of_pairs)(bf16_both *to, const bf16_bits *from, int64_t step, int lanes, int count) {
    if (lanes < TILE_ROW || count < 2 * TILE_ROW) memset(to, 0, TILE_CELLS * sizeof *to);
    for (int p = 0; p < count; p += 2, from += 2 * step, to += TILE_ROW) {
        if (lanes == TILE_ROW && p + 1 < count)
            for (int i = 0; i < TILE_ROW; i++) to[i] = from[i] | (uint32_t)from[step + i] << 16;
        else
            for (int i = 0; i < lanes; i++) to[i] = bf16_pair(from + i, step, count - p);
    }
}

/* A tile of A (by_lane: a row of it is a row of A) or of B, of which a lane is a column. */
INLINE void TILE_NAME(pack_tile)(bool by_lane, bf16_both *to, const bf16_bits *from, int64_t lane, int64_t step,
                                 int lanes, int count) {
    bf16_both square[TILE_CELLS] __attribute__((aligned(64)));
    const bool as_it_lies = by_lane == (lane != 1);
    bf16_both *const at = as_it_lies ? to : square;
    if (lane == 1)
        TILE_NAME(lanes_of_pairs)(at, from, step, lanes, count);
    else
        TILE_NAME(rows_of_pairs)(at, from, lane, step, lanes, count);
    if (!as_it_lies) /* a pair is moved as a float */
        pack_float32(TILE_ROW, (float *)(void *)to, TILE_ROW, (const float *)(const void *)square, TILE_ROW, 1,
                     TILE_ROW);
}

static void TILE_NAME(pack_panel)(bool by_lane, bf16_both *to, int64_t k, const bf16_bits *from, int64_t lane,
                                  int64_t step, int lanes) {
    for (int64_t p = 0; p < k; p += 2 * TILE_ROW, from += 2 * TILE_ROW * step, to += TILE_CELLS)
        TILE_NAME(pack_tile)(by_lane, to, from, lane, step, lanes, (int)least(2 * TILE_ROW, k - p));
}

/* 16 x 16 sums, or one of them and one beside or below it, or all four. */
TILE_FUNCTION static void TILE_NAME(sum_tiles)(TILES *t, int64_t steps, const bf16_both *a, const bf16_both *b,
                                               bool tall, bool wide, float *sums) {
    const int64_t panel = steps * TILE_CELLS;
    tile_zero(t, 0);
    tile_zero(t, 1);
    tile_zero(t, 2);
    tile_zero(t, 3);
    for (int64_t s = 0; s < steps; s++, a += TILE_CELLS, b += TILE_CELLS) {
        tile_load(t, 4, a);
        tile_load(t, 6, b);
        tile_dp_bf16(t, 0, 4, 6);
        if (wide) {
            tile_load(t, 7, b + panel);
            tile_dp_bf16(t, 1, 4, 7);
        }
        if (tall) {
            tile_load(t, 5, a + panel);
            tile_dp_bf16(t, 2, 5, 6);
            if (wide) tile_dp_bf16(t, 3, 5, 7);
        }
    }
    tile_store(t, 0, sums);
    tile_store(t, 1, sums + TILE_CELLS);
    tile_store(t, 2, sums + 2 * TILE_CELLS);
    tile_store(t, 3, sums + 3 * TILE_CELLS);
}

/* Rounds rows x cols of 32 x 32 sums, plus the bias of each column. */
static void TILE_NAME(store_sums)(const float *sums, bf16_bits *c, int64_t c_row, int rows, int cols,
                                  const bf16_bits *bias, int64_t bias_step) {
    float added[2 * TILE_ROW] = {0};
    for (int j = 0; j < cols && bias; j++) added[j] = nr_float_of_bfloat16(bias[j * bias_step]);
    for (int i = 0; i < rows; i++, c += c_row) {
        for (int half = 0; half * TILE_ROW < cols; half++) {
            const float *from = sums + (i / TILE_ROW * 2 + half) * TILE_CELLS + i % TILE_ROW * TILE_ROW;
            bf16_bits rounded[TILE_ROW];
            for (int j = 0; j < TILE_ROW; j++) rounded[j] = nr_bfloat16_of_float(from[j] + added[half * TILE_ROW + j]);
            const int64_t count = least(TILE_ROW, cols - half * TILE_ROW);
            memcpy(c + half * TILE_ROW, rounded, (size_t)count * sizeof *rounded);
        }
    }
}

/* Rows i0 .. i1 and columns j0 .. j1 of C. */
TILE_FUNCTION static void TILE_NAME(block)(const product *p, int64_t i0, int64_t i1, int64_t j0, int64_t j1,
                                           void *scratch) {
    float sums[4 * TILE_CELLS] __attribute__((aligned(64)));
    const int64_t steps = ceil_div(p->k, 2 * TILE_ROW), panel = steps * TILE_CELLS;
    bf16_both *const packed_b = scratch, *const packed_a = packed_b + 2 * panel;
    const bf16_bits *a = p->a, *b = p->b;
    for (int64_t i = i0; i < i1; i += TILE_ROW)
        TILE_NAME(pack_panel)(true, packed_a + (i - i0) / TILE_ROW * panel, p->k, a + i * p->a_row, p->a_row, p->a_col,
                              (int)least(TILE_ROW, i1 - i));
    TILES t;
    tiles_begin(&t);
    for (int64_t j = j0; j < j1; j += 2 * TILE_ROW) {
        const int cols = (int)least(2 * TILE_ROW, j1 - j);
        for (int h = 0; h * TILE_ROW < cols; h++)
            TILE_NAME(pack_panel)(false, packed_b + h * panel, p->k, b + (j + h * TILE_ROW) * p->b_col, p->b_col,
                                  p->b_row, (int)least(TILE_ROW, cols - h * TILE_ROW));
        const bf16_bits *bias = p->bias ? (const bf16_bits *)p->bias + j * p->bias_step : NULL;
        for (int64_t i = i0; i < i1; i += 2 * TILE_ROW) {
            const int rows = (int)least(2 * TILE_ROW, i1 - i);
            TILE_NAME(sum_tiles)(&t, steps, packed_a + (i - i0) / TILE_ROW * panel, packed_b, rows > TILE_ROW,
                                 cols > TILE_ROW, sums);
            TILE_NAME(store_sums)(sums, (bf16_bits *)p->c + i * p->c_row + j, p->c_row, rows, cols, bias, p->bias_step);
        }
    }
    tiles_end(&t);
}

static const bf16_kernel TILE_NAME(kernel) = {
    .block = TILE_NAME(block), .rows = 2 * TILE_ROW, .row_fill = TILE_ROW, .depth = 2 * TILE_ROW};

#undef TILES
#undef TILE_FUNCTION
#undef TILE_NAME
#undef WRITTEN
#undef tiles_begin
#undef tiles_end
#undef tile_zero
#undef tile_load
#undef tile_store
#undef tile_dp_bf16
