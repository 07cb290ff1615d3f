/* int8_tile: the sums of products of rows of x with rows of the weight, both of integers, for one set of instructions.
 * Included by int8_isa.c, which defines for it
 *
 *   INT8_TARGET, INT8_NAME       attributes of the functions, and their names
 *   NUMBER, REGISTER, STEP       an integer of x; a vector; columns that are multiplied at a time: 64, or a part of 32
 *   LOAD_X, LOAD_W, DOT          STEP numbers of x and of the weight, and their products, added to 32-bit sums
 *   LOAD_HALF_X, LOAD_HALF_W     half as many, for a last block, where STEP is 64
 *   NONE, FOUR_SUMS              a vector of zeros; the sums of four vectors
 *
 * There is nothing to pack, as a dot product reads both along k. Integers may be summed in any order. */

/* rows x cols sums, both constant wherever this is inlined. */
INT8_TARGET INLINE void INT8_NAME(tile)(int rows, int cols, int64_t columns, const NUMBER *x, int64_t step,
                                        const int8_t *w, int64_t w_step, int32_t *to) {
    REGISTER sum[INT8_ROWS][INT8_COLS];
    UNROLL for (int i = 0; i < rows; i++) { UNROLL for (int j = 0; j < INT8_COLS; j++) sum[i][j] = NONE; }
    int64_t at = 0;
    for (; at + STEP <= columns; at += STEP) {
        REGISTER col[INT8_COLS];
        UNROLL for (int j = 0; j < cols; j++) col[j] = LOAD_W(w + j * w_step + at);
        UNROLL for (int i = 0; i < rows; i++) {
            const REGISTER row = LOAD_X(x + i * step + at);
            UNROLL for (int j = 0; j < cols; j++) sum[i][j] = DOT(sum[i][j], row, col[j]);
        }
    }
#ifdef LOAD_HALF_X
    if (at < columns) {
        UNROLL for (int i = 0; i < rows; i++) {
            const REGISTER row = LOAD_HALF_X(x + i * step + at);
            UNROLL for (int j = 0; j < cols; j++) sum[i][j] = DOT(sum[i][j], row, LOAD_HALF_W(w + j * w_step + at));
        }
    }
#endif
    UNROLL for (int i = 0; i < rows; i++) {
        const four_ints sums = (four_ints)FOUR_SUMS(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
        memcpy(to + i * INT8_COLS, &sums, sizeof sums);
    }
}

INT8_TARGET static void INT8_NAME(sums)(int rows, int cols, int64_t columns, const void *from, int64_t step,
                                        const int8_t *w, int64_t w_step, int32_t *to) {
    const NUMBER *x = from;
#ifndef __wasm__ /* a page waits for each byte */
    if (rows == INT8_ROWS && cols == INT8_COLS) {
        INT8_NAME(tile)(INT8_ROWS, INT8_COLS, columns, x, step, w, w_step, to);
        return;
    }
    for (; cols == INT8_COLS && rows > 0; rows--, x += step, to += INT8_COLS)
        INT8_NAME(tile)(1, INT8_COLS, columns, x, step, w, w_step, to);
#endif
    for (; rows > 0; rows--, x += step, to += INT8_COLS)
        for (int j = 0; j < cols; j++) {
            int32_t one[INT8_COLS]; /* a tile writes all of its row */
            INT8_NAME(tile)(1, 1, columns, x, step, w + j * w_step, w_step, one);
            to[j] = one[0];
        }
}

#undef INT8_TARGET
#undef INT8_NAME
#undef NUMBER
#undef STEP
#undef LOAD_X
#undef LOAD_W
#undef DOT
#undef LOAD_HALF_X
#undef LOAD_HALF_W
