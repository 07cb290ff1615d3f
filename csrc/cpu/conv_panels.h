/* conv_panels: convolutions of one tap, and their input gradients, for one float type: a template of each_dtype.h.
 *
 *   weight, or its transpose      x, or y: planes of positions       some panels at a time are copied to the cache,
 *   +-----------+ a tile of       +----------+----------+----        PANEL_COLS positions of `depth` channels each, and
 *   |           | at most         |  panel   |  panel   |            meet every tile of the weight there. Positions of
 *   +-----------+ TILE_ROWS  x    |          |          |            all images follow each other; sums of a panel that
 *   |           | channels        |          |          |            two images share are spread from scratch memory.
 *   +-----------+                 +----------+----------+----
 *
 * Of few positions the product is transposed: the weight is cut into panels, the image into tiles, and the sums
 * (positions, channels) become planes at the end; so vectors are full, and the weight is read once. The loops are
 * those of gemm.h, with the tiles of gemm_tile.h; but what the tiles are cut of is packed once for all images,
 * tiles have about the same number of rows, and no image is copied as a whole. Either way, an element is summed in
 * the order of channels, `depth` at a time. */

#include "gemm_target.h"

/* C = A B, (m, n) of (m, k) and (k, n), where columns of B and C are of pieces: `area` each, then the next one. */
typedef struct NAME(panels) {
    int64_t m, k, depth;   /* depth: of k, summed at a time */
    const T *a, *b, *bias; /* bias: of each row, or NULL */
    T *c;
    int64_t a_row, a_col;        /* numbers from one row, and column, to the next */
    int64_t b_row, b_col, c_row; /* columns of C are neighbours */
    int64_t area, columns;       /* columns of a piece, and of all */
    int64_t b_piece, c_piece;    /* numbers from one piece to the next */
    int64_t tiles, group, tasks; /* group: panels of a task */
    T *packed;                   /* A in tiles of (k, TILE_ROWS), `apart` apart, or NULL: it is read where it lies */
    int64_t apart;
    bool in_place; /* B is read where it lies */
    T *scratch;
    int64_t scratch_size;
    _Atomic int64_t next;
} NAME(panels);

/* The products of a sum before it is added to that of the ones before. */
static int64_t NAME(panel_depth)(int64_t k) { return ceil_div(k, ceil_div(k, PACKED_DEPTH)); }

INLINE int64_t NAME(first_of_tile)(const NAME(panels) * s, int64_t tile) {
    return tile * (s->m / s->tiles) + least(tile, s->m % s->tiles);
}

/* ---- A ------------------------------------------------------------------------------------------------- */

/* A tile of rows that are contiguous: by squares, whose rows beyond the tile are replaced by the next column, or lie
 * between two tiles. */
static void NAME(pack_rows)(void *context, int64_t tile) {
    const NAME(panels) *s = context;
    const int64_t first = NAME(first_of_tile)(s, tile), rows = NAME(first_of_tile)(s, tile + 1) - first;
    const T *from = s->a + first * s->a_row;
    T *to = s->packed + tile * s->apart;
    if (LANES >= TILE_ROWS && first + LANES <= s->m && s->k >= LANES)
        NAME(turn)(TILE_ROWS, to, s->k, from, s->a_row);
    else
        NAME(pack_a)(to, s->k, from, s->a_row, 1, rows);
}

/* SQUARE contiguous columns of A, read in order, to all tiles. */
static void NAME(deal_columns)(void *context, int64_t task) {
    const NAME(panels) *s = context;
    for (int64_t q = task * SQUARE; q < least(s->k, (task + 1) * SQUARE); q++)
        for (int64_t t = 0; t < s->tiles; t++) {
            const int64_t first = NAME(first_of_tile)(s, t), rows = NAME(first_of_tile)(s, t + 1) - first;
            const T *from = s->a + q * s->a_col + first;
            T *to = s->packed + t * s->apart + q * TILE_ROWS;
            for (int64_t i = 0; i < rows; i += LANES) {
                const int lanes = (int)least(LANES, rows - i);
                NAME(store_part)(to + i, lanes, NAME(load_part)(from + i, lanes));
            }
        }
}

static void NAME(pack_tiles)(NAME(panels) * s) {
    void (*task)(void *context, int64_t task) = s->a_col == 1 ? NAME(pack_rows) : NAME(deal_columns);
    const int64_t tasks = s->a_col == 1 ? s->tiles : ceil_div(s->k, SQUARE);
    if (s->m * s->k > PASS_ELEMENTS)
        nr_parallel(tasks, task, s);
    else
        for (int64_t t = 0; t < tasks; t++) task(s, t);
}

/* ---- B ------------------------------------------------------------------------------------------------- */

/* Rows [q, q + count) of whole panels of a piece, in long pieces of rows. */
static void NAME(copy_panels)(int64_t panels, int64_t count, const T *from, int64_t b_row, T *to) {
    for (int64_t r = 0; r < count; r++, from += b_row, to += PANEL_COLS)
        for (int64_t j = 0; j < panels; j++) {
            UNROLL for (int i = 0; i < PANEL_COLS; i += LANES)
                STORE(to + j * count * PANEL_COLS + i, VEC(from + j * PANEL_COLS + i));
        }
}

/* Rows [q, q + count) of some columns to panels, (count, PANEL_COLS) each. */
static void NAME(pack_panels)(const NAME(panels) * s, int64_t column, int64_t columns, int64_t q, int64_t count,
                              T *to) {
    for (int64_t j = 0; j < columns && s->b_col != 1; j += PANEL_COLS)
        NAME(turn_lanes)(PANEL_COLS, to + j * count, count, s->b + (column + j) * s->b_col + q, s->b_col,
                         (int)least(PANEL_COLS, columns - j));
    for (int64_t done = 0, cols; done < columns && s->b_col == 1; done += cols) {
        const int64_t piece = (column + done) / s->area, at = (column + done) % s->area, lane = done % PANEL_COLS;
        const T *from = s->b + piece * s->b_piece + q * s->b_row + at;
        T *panel = to + done / PANEL_COLS * count * PANEL_COLS + lane;
        cols = least(columns - done, s->area - at);
        if (lane == 0 && cols >= PANEL_COLS) {
            NAME(copy_panels)(cols / PANEL_COLS, count, from, s->b_row, panel);
            cols = cols / PANEL_COLS * PANEL_COLS;
            continue;
        }
        cols = least(cols, PANEL_COLS - lane);
        for (int64_t r = 0; r < count; r++, from += s->b_row, panel += PANEL_COLS)
            for (int64_t i = 0; i < cols; i += LANES) { /* what is written beyond them, the next ones replace */
                const NAME(vec) v = NAME(load_part)(from + i, (int)least(LANES, cols - i));
                if (lane + i + LANES <= PANEL_COLS)
                    STORE(panel + i, v);
                else
                    NAME(store_part)(panel + i, (int)least(LANES, cols - i), v);
            }
    }
}

/* ---- C ------------------------------------------------------------------------------------------------- */

/* The finished sums of a panel, whose rows are `apart` apart, to their pieces, with the bias. */
static void NAME(spread_columns)(const NAME(panels) * s, int64_t column, int64_t columns, const T *sums,
                                 int64_t apart) {
    for (int64_t done = 0, cols; done < columns; done += cols) {
        const int64_t piece = (column + done) / s->area, at = (column + done) % s->area;
        cols = least(columns - done, s->area - at);
        T *to = s->c + piece * s->c_piece + at;
        for (int64_t i = 0; i < s->m; i++) {
            const T more = s->bias ? s->bias[i] : (T)0;
            for (int64_t u = 0; u < cols; u++) to[i * s->c_row + u] = sums[i * apart + done + u] + more;
        }
    }
}

static void NAME(panel_task)(const NAME(panels) * s, int64_t task, T *panels) {
    const int64_t begin = task * s->group * PANEL_COLS, all = least(s->columns - begin, s->group * PANEL_COLS);
    const int64_t a_row = s->packed ? 1 : s->a_row, a_col = s->packed ? TILE_ROWS : s->a_col;
    T *shared = panels + s->group * PANEL_COLS * s->depth;
    const int64_t across = ceil_div(all, PANEL_COLS);
    const bool by_tiles = VECTOR == 64 && !s->in_place; /* large tiles of A, and packed panels follow each other */
    for (int64_t q = 0; q < s->k; q += s->depth) {
        const int64_t count = least(s->depth, s->k - q);
        const bool last = q + count == s->k;
        if (!s->in_place) NAME(pack_panels)(s, begin, all, q, count, panels);
        for (int64_t x = 0; x < s->tiles * across; x++) {
            const int64_t t = by_tiles ? x / across : x % s->tiles;
            const int64_t j = (by_tiles ? x % across : x / s->tiles) * PANEL_COLS;
            const int64_t column = begin + j, piece = column / s->area, at = column % s->area;
            TARGET to = {.cols = (int)least(PANEL_COLS, all - j), .add = q > 0};
            const bool whole = at + to.cols <= s->area;
            T *sums = whole ? s->c + piece * s->c_piece + at : shared + j * s->m;
            to.c_row = whole ? s->c_row : PANEL_COLS;
            const T *b = s->in_place ? s->b + piece * s->b_piece + q * s->b_row + at : panels + j * count;
            const int64_t b_row = s->in_place ? s->b_row : PANEL_COLS;
            const int64_t first = NAME(first_of_tile)(s, t);
            const T *a = s->packed ? s->packed + t * s->apart : s->a + first * a_row;
            to.rows = (int)(NAME(first_of_tile)(s, t + 1) - first);
            to.c = sums + first * to.c_row;
            TILES_OF_ROWS[to.rows - 1][to.cols > LANES](count, a + q * a_col, a_row, a_col, b, b_row, &to);
            if (t + 1 == s->tiles && last && (!whole || s->bias))
                NAME(spread_columns)(s, column, to.cols, sums, to.c_row);
        }
    }
}

static void NAME(panel_worker)(void *context, int64_t worker) {
    NAME(panels) *s = context;
    for (int64_t task; (task = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < s->tasks;)
        NAME(panel_task)(s, task, s->scratch + worker * s->scratch_size);
}

/* pack: whether A is. */
static int32_t NAME(run_panels)(NAME(panels) * s, bool pack) {
    const int64_t panels = ceil_div(s->columns, PANEL_COLS);
    const double work = (double)s->m * (double)s->k * (double)s->columns;
    const int64_t threads = work < SERIAL_WORK ? 1 : nr_threads();
    s->depth = NAME(panel_depth)(s->k);
    s->tiles = ceil_div(s->m, TILE_ROWS);
    s->group = least(PANELS_TOGETHER, threads == 1 ? panels : ceil_div(panels, 3 * threads));
    s->tasks = ceil_div(panels, s->group);
    s->in_place = s->b_col == 1 && s->area % LANES == 0 && (uintptr_t)s->b % VECTOR == 0 &&
                  (s->columns == s->area || s->area % PANEL_COLS == 0) &&
                  (s->tiles <= FEW_TILES || (s->b_row * (int64_t)sizeof(T) % BAD_STRIDE != 0 && s->k <= IN_PLACE));
    s->apart = ceil_div(s->k * TILE_ROWS, LANES) * LANES + LANES;
    const int64_t workers = least(threads, s->tasks), packed = pack ? s->tiles * s->apart : 0;
    s->scratch_size = s->group * PANEL_COLS * (s->depth + (s->columns > s->area ? s->m : 0));
    const size_t bytes = (size_t)(packed + s->scratch_size * workers) * sizeof(T);
    T *scratch = nr_scratch(bytes);
    if (!scratch) return no_scratch(bytes);
    s->packed = pack ? scratch : NULL;
    s->scratch = scratch + packed;
    if (pack) NAME(pack_tiles)(s);
    s->next = 0;
    nr_parallel(workers, NAME(panel_worker), s);
    nr_scratch_free(scratch, bytes);
    return NORCH_OK;
}

/* ---- one tap ------------------------------------------------------------------------------------------- */

/* A group of channels of one image of few positions: its planes are the rows of A. */
static int32_t NAME(run_transposed)(const NAME(panels) * s) {
    const size_t bytes = (size_t)(s->area * s->m) * sizeof(T);
    T *sums = nr_scratch(bytes);
    if (!sums) return no_scratch(bytes);
    NAME(panels) transposed = {.m = s->area, .k = s->k, .a = s->b, .a_row = 1, .a_col = s->b_row, .c = sums};
    transposed.b = s->a, transposed.b_row = s->a_col, transposed.b_col = s->a_row;
    transposed.c_row = transposed.area = transposed.columns = s->m;
    const int32_t status = NAME(run_panels)(&transposed, false);
    for (int64_t i = 0; i < s->area && status == NORCH_OK; i += LANES) {
        i = least(i, s->area - LANES); /* the last ones may overlap those before */
        NAME(turn)(s->c_row, s->c + i, s->m, sums + i * s->m, s->m);
    }
    for (int64_t i = 0; i < s->m && s->bias && status == NORCH_OK; i++)
        for (int64_t u = 0; u < s->area; u++) s->c[i * s->c_row + u] += s->bias[i];
    nr_scratch_free(sums, bytes);
    return status;
}

/* The forward convolution, or its adjoint, of some images, of which a stride has left `from`, or spreads `to`. */
static int32_t NAME(run_planes)(const nr_conv_plan *p, nr_conv_kind kind, int64_t images, const T *from, T *to,
                                const T *bias) {
    const bool forward = kind == NR_CONV_FORWARD;
    NAME(panels) s = {.m = forward ? p->out : p->in, .k = forward ? p->in : p->out};
    s.a_row = forward ? p->in : 1;
    s.a_col = forward ? 1 : p->in;
    s.b_row = s.c_row = s.area = p->result[0] * p->result[1];
    s.b_col = 1;
    s.columns = images * s.area;
    s.b_piece = p->groups * s.k * s.area;
    s.c_piece = p->groups * s.m * s.area;
    const bool turn = images == 1 && s.area >= LANES && s.area <= MOST_TRANSPOSED && s.m >= PANEL_COLS;
    const bool pack = !forward || p->in * (int64_t)sizeof(T) % BAD_STRIDE == 0;
    int32_t status = NORCH_OK;
    for (int64_t g = 0; g < p->groups && status == NORCH_OK; g++) {
        s.a = (const T *)p->weight + g * p->in * p->out;
        s.b = from + g * s.k * s.area;
        s.c = to + g * s.m * s.area;
        s.bias = bias ? bias + g * s.m : NULL;
        status = turn ? NAME(run_transposed)(&s) : NAME(run_panels)(&s, pack);
    }
    return status;
}
