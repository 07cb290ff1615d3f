/* gemm_tile: the micro-kernel of BLIS (Van Zee and van de Geijn, ACM TOMS 41, 2015): a tile of C in registers, to which
 * products of columns of A and rows of B are added, for one float type T. Included after gemm_pack.h, by
 * matmul_isa.c.
 *
 *                     b: row p of B    +--------+--------+         for each p < k:
 *                                      | row[0] | row[1] |           TILE_VECTORS loads of B,
 *          a: column p of A            +--------+--------+           TILE_ROWS numbers of A, each broadcast to a vector
 *                 +-+                  |        |        |           by the multiplication that uses it,
 *     TILE_ROWS   | |                  |      sum        |           TILE_ROWS x TILE_VECTORS fused multiply-adds,
 *                 +-+                  +--------+--------+           which depend on none of their neighbours
 *
 * The sums, 28 registers of 32 with AVX-512 and 12 of 16 with AVX2, hide the latency of the additions: two units with a
 * latency of 4 cycles need 8 sums at least. At the edges there are tiles for fewer rows, and a part of the columns is
 * stored: directly from the registers if stores take masks, through memory otherwise. */

#include "gemm_target.h"

#define HALF_ROWS 7 /* of a tile, that share a pointer to A */

/* From this number of steps of k on, prefetching every line of C pays. */
#define PREFETCH_DEPTH 128

#ifndef PARTS_BY_MASKS
/* Stores the sums of a tile, `width` to a row, into a target that has fewer columns. */
static __attribute__((noinline)) void NAME(store_edge)(const T *sums, int width, const TARGET *to) {
    for (int i = 0; i < to->rows; i++) {
        T *c = to->c + i * to->c_row;
        for (int j = 0; j < to->cols; j += LANES) {
            int count = (int)least(to->cols - j, LANES);
            NAME(vec) v = VEC(sums + i * width + j);
            const T *more = to->add ? c + j : to->bias ? to->bias + j : NULL;
            if (more) v += NAME(load_part)(more, count);
            NAME(store_part)(c + j, count, v);
        }
    }
}
#endif

/* rows x (vectors * LANES) of C: k rank-1 updates kept in registers. `rows` and `vectors` are constants wherever this
 * is inlined. B's rows are contiguous and readable to the tile's full width. For each k, next_step bytes from `next` on
 * (or NULL), which are used after this tile, are fetched to the second cache. */
INLINE void NAME(tile)(int rows, int vectors, int64_t k, const T *a, int64_t a_row, int64_t a_col, const T *b,
                       int64_t b_row, const char *next, int64_t next_step, const TARGET *to) {
    NAME(vec) sum[TILE_ROWS][TILE_VECTORS];
    T *c = to->c;
    const T *more = to->add ? c : to->bias;
    int64_t c_row = to->c_row, more_row = to->add ? c_row : 0;
    for (int i = 0; i < to->rows; i++) __builtin_prefetch(c + i * c_row, 1);
    for (int i = 0; i < to->rows && k >= PREFETCH_DEPTH;
         i++) { /* all lines; a row that begins within one ends in one more */
        if (vectors > 1 && VECTOR == 64) __builtin_prefetch(c + i * c_row + LANES, 1);
        __builtin_prefetch(c + i * c_row + to->cols - 1, 1);
    }
    UNROLL for (int i = 0; i < rows; i++) { UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = (NAME(vec)){0}; }
    /* two pointers, as general registers are too few for the distance of each row from one */
    const T *upper = a, *lower = a + (rows > HALF_ROWS ? HALF_ROWS : 0) * a_row;
    ADDRESS(lower);
    const int64_t ahead = to->ahead;
    for (int64_t p = 0; p < k; p++) {
        NAME(vec) row[TILE_VECTORS];
        UNROLL for (int j = 0; j < vectors; j++) {
            row[j] = VEC(b + j * LANES);
            LOADED(row[j]);
        }
        UNROLL for (int i = 0; i < rows; i++) {
            const T x = i < HALF_ROWS ? upper[i * a_row] : lower[(i - HALF_ROWS) * a_row];
            UNROLL for (int j = 0; j < vectors; j++) sum[i][j] += x * row[j];
        }
        if (VECTOR == 64 && ahead) {
            __builtin_prefetch(b + ahead, 0, 2);
            if (rows <= HALF_ROWS) __builtin_prefetch(b + ahead + LANES, 0, 2); /* no other tile does */
        }
        upper += a_col, lower += a_col;
        b += b_row;
        if (next) __builtin_prefetch(next, 0, 2), next += next_step;
    }
#ifdef PARTS_BY_MASKS
    const int last = (vectors - 1) * LANES, count = to->cols - last; /* of the last vector */
    UNROLL for (int i = 0; i < rows && more; i++) {
        UNROLL for (int j = 0; j + 1 < vectors; j++) sum[i][j] += VEC(more + i * more_row + j * LANES);
        sum[i][vectors - 1] += NAME(load_part)(more + i * more_row + last, count);
    }
    UNROLL for (int j = 0; j + 1 < vectors; j++) {
        UNROLL for (int i = 0; i < rows; i++) STORE(c + i * c_row + j * LANES, sum[i][j]);
    }
    if (count == LANES) {
        UNROLL for (int i = 0; i < rows; i++) STORE(c + i * c_row + last, sum[i][vectors - 1]);
    } else {
        UNROLL for (int i = 0; i < rows; i++) NAME(store_part)(c + i * c_row + last, count, sum[i][vectors - 1]);
    }
#else
    if (to->cols < vectors * LANES) {
        T sums[TILE_ROWS * PANEL_COLS] __attribute__((aligned(VECTOR)));
        UNROLL for (int i = 0; i < rows; i++) {
            UNROLL for (int j = 0; j < vectors; j++) * (NAME(vec) *)(sums + i * PANEL_COLS + j * LANES) = sum[i][j];
        }
        NAME(store_edge)(sums, PANEL_COLS, to);
        return;
    }
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int j = 0; j < vectors; j++) {
            if (more) sum[i][j] += VEC(more + i * more_row + j * LANES);
            *(NAME(vec_at) *)(c + i * c_row + j * LANES) = sum[i][j];
        }
    }
#endif
}

#define TILE_OF(rows, vectors)                                                                                 \
    static void NAME(tile_##rows##x##vectors)(int64_t k, const T *a, int64_t a_row, int64_t a_col, const T *b, \
                                              int64_t b_row, const TARGET *to) {                               \
        NAME(tile)(rows, vectors, k, a, a_row, a_col, b, b_row, NULL, 0, to);                                  \
    }
#define TILES(rows) TILE_OF(rows, 1) TILE_OF(rows, 2)
EACH_TILE_ROW(TILES)
#undef TILE_OF
#undef TILES
#define TILES(rows) {NAME(tile_##rows##x1), NAME(tile_##rows##x2)},
const NAME(tile_of) TILES_OF_ROWS[TILE_ROWS][TILE_VECTORS] = {EACH_TILE_ROW(TILES)};
#undef TILES
