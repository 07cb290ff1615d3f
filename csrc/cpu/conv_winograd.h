/* conv_winograd: convolutions of 3 x 3 taps at stride 1 by 16 products where the sums over taps take 36, for float32: a
 * part of conv_image.h. In one dimension two positions of y come from four of x by four products, not six:
 *
 *   p0 = g0 (d0 - d2)                  y0 = p0 + p1 + p2        g: the taps, d: four neighbours in x
 *   p1 = (g0 + g1 + g2) / 2 (d1 + d2)  y1 = p1 - p2 - p3
 *   p2 = (g0 - g1 + g2) / 2 (d2 - d1)                           In two dimensions rows and then columns do so: tiles of
 *   p3 = g2 (d1 - d3)                                           4 x 4 of x and 2 x 2 of y, and 16 factors of each.
 *
 *   a task, some rows of tiles:  x -> factors (16, blocks, tiles, LANES) -> 16 products over channels, by the tiles of
 *   registers of conv_image.h -> (16, blocks, tiles, LANES) -> y, and what follows it
 *
 * docs/reliability.md bounds the errors. Infinite or NaN elements, and sums of factors that overflow, would spread over
 * a tile: a row of tiles whose result is not finite is summed over taps instead. The algorithm: Lavin, Gray, "Fast
 * Algorithms for Convolutional Neural Networks" (2016); its errors: Barabasz et al., "Error Analysis and Improving the
 * Accuracy of Winograd Convolution for Deep Neural Networks" (2020). */

#define FACTORS 16
/* Numbers between the ends of one factor and the next, so that they do not meet in the same lines of the cache. */
#define FACTORS_APART 16

typedef struct NAME(winograd) {
    const NAME(image_conv) * s; /* the same convolution over taps */
    const T *weight;            /* (16, groups, channels, PANEL_COLS) */
    int64_t rows, columns, all; /* of tiles; all: rows of all samples */
    int64_t across;             /* columns of tiles at a time */
    int64_t band, tasks;        /* band: rows of tiles, of one sample after the other */
    T *scratch;
    int64_t scratch_size;
    _Atomic int64_t next;
} NAME(winograd);

/* Numbers of the weight as it is summed over taps, which come first in a packed one. */
static int64_t NAME(taps_size)(const nr_conv_plan *p) {
    return ceil_div(p->out, LANES) * LANES * p->in * p->kernel[0] * p->kernel[1];
}
/* Numbers from one factor of the weight to the next. */
static int64_t NAME(factor_size)(const nr_conv_plan *p) {
    return ceil_div(p->out, LANES) * LANES * p->in + FACTORS_APART;
}

INLINE void NAME(factors_of_taps)(const NAME(vec) g[3], NAME(vec) to[4]) {
    const NAME(vec) half = (NAME(vec)){0} + (T)0.5, sum = (g[0] + g[2]) * half, middle = g[1] * half;
    to[0] = g[0];
    to[1] = sum + middle;
    to[2] = sum - middle;
    to[3] = g[2];
}

INLINE void NAME(factors_of_x)(const NAME(vec) d[4], NAME(vec) to[4]) {
    to[0] = d[0] - d[2];
    to[1] = d[1] + d[2];
    to[2] = d[2] - d[1];
    to[3] = d[1] - d[3];
}

/* ---- the weight ---------------------------------------------------------------------------------------- */

/* The factors of a group of output channels of a packed weight, behind its numbers as they are summed over taps. */
static void NAME(transform_weight)(const nr_conv_plan *p, int64_t group, T *packed) {
    const int64_t wide = least(PANEL_COLS, ceil_div(p->out, LANES) * LANES - group * PANEL_COLS);
    const int64_t factor = NAME(factor_size)(p);
    const T *from = packed + group * PANEL_COLS * p->in * 9;
    T *to = packed + NAME(taps_size)(p) + group * PANEL_COLS * p->in;
    for (int64_t c = 0; c < p->in; c++, from += 9 * wide, to += wide)
        for (int64_t i = 0; i < wide; i += LANES) {
            NAME(vec) row[4][3], all[4];
            UNROLL for (int t = 0; t < 3; t++) {
                const NAME(vec)
                    g[3] = {VEC(from + t * wide + i), VEC(from + (3 + t) * wide + i), VEC(from + (6 + t) * wide + i)};
                NAME(factors_of_taps)(g, all);
                UNROLL for (int r = 0; r < 4; r++) row[r][t] = all[r];
            }
            UNROLL for (int r = 0; r < 4; r++) {
                NAME(factors_of_taps)(row[r], all);
                UNROLL for (int t = 0; t < 4; t++) STORE(to + (r * 4 + t) * factor + i, all[t]);
            }
        }
}

/* ---- images -------------------------------------------------------------------------------------------- */

/* The 16 factors of a tile of a block, `apart` apart. x: its rows; last: its last column, 3 unless it lies outside the
 * image. Rows and columns that no position of y needs may be any: only positions outside y depend on them. */
INLINE void NAME(transform_tile)(const T *const x[4], int64_t last, T *to, int64_t apart) {
    NAME(vec) row[4][4], all[4];
    UNROLL for (int c = 0; c < 4; c++) {
        const int64_t at = (c < 3 ? c : last) * LANES;
        const NAME(vec) d[4] = {VEC(x[0] + at), VEC(x[1] + at), VEC(x[2] + at), VEC(x[3] + at)};
        NAME(factors_of_x)(d, all);
        UNROLL for (int r = 0; r < 4; r++) row[r][c] = all[r];
    }
    UNROLL for (int r = 0; r < 4; r++) {
        NAME(factors_of_x)(row[r], all);
        UNROLL for (int c = 0; c < 4; c++) STORE(to + (r * 4 + c) * apart, all[c]);
    }
}

/* Tiles of a piece of a band. Rows of tiles are counted through all samples. */
typedef struct NAME(piece) {
    int64_t row, rows, column, columns;
} NAME(piece);

static void NAME(transform_piece)(const NAME(winograd) * w, const NAME(piece) * at, T *to, int64_t apart) {
    const NAME(image_conv) *s = w->s;
    const nr_image *image = s->run->layer->x;
    for (int64_t b = 0; b < image->blocks; b++)
        for (int64_t i = at->row; i < at->row + at->rows; i++) {
            const int64_t row = i % w->rows * 2;
            const T *from = s->x + i / w->rows * s->sample + b * s->plane + at->column * 2 * LANES, *x[4];
            for (int64_t r = 0; r < 4; r++) x[r] = from + least(row + r, s->p->result[0] + 1) * image->pitch;
            for (int64_t j = at->column; j < at->column + at->columns; j++, to += LANES) {
                NAME(transform_tile)(x, least(3, s->p->result[1] + 1 - j * 2), to, apart);
                for (int r = 0; r < 4; r++) x[r] += 2 * LANES;
            }
        }
}

/* A tile of y of its 16 sums; whether all that lies in y is finite. */
INLINE bool NAME(tile_of_y)(const T *from, int64_t apart, NAME(vec) bias, int64_t rows, int64_t columns, T *y,
                            int64_t pitch) {
    NAME(vec) half[2][4], not_finite = {0};
    UNROLL for (int c = 0; c < 4; c++) {
        const NAME(vec) p0 = VEC(from + c * apart), p1 = VEC(from + (4 + c) * apart);
        const NAME(vec) p2 = VEC(from + (8 + c) * apart), p3 = VEC(from + (12 + c) * apart);
        half[0][c] = p0 + p1 + p2;
        half[1][c] = p1 - p2 - p3;
    }
    UNROLL for (int r = 0; r < 2; r++) {
        if (r >= rows) break;
        const NAME(vec) first = half[r][0] + half[r][1] + half[r][2] + bias;
        STORE(y + r * pitch, first);
        not_finite += first * 0;
        if (columns == 1) continue;
        const NAME(vec) second = half[r][1] - half[r][2] - half[r][3] + bias;
        STORE(y + r * pitch + LANES, second);
        not_finite += second * 0;
    }
    T sum = 0;
    UNROLL for (int i = 0; i < LANES; i++) sum += not_finite[i];
    return sum == 0;
}

/* A piece of y of its sums; the rows of tiles that are not finite, a bit each. */
static uint64_t NAME(piece_of_y)(const NAME(winograd) * w, const NAME(piece) * at, const T *from, int64_t apart) {
    const NAME(image_conv) *s = w->s;
    const nr_image *y = s->y;
    uint64_t not_finite = 0;
    for (int64_t b = 0; b < y->blocks; b++) {
        const NAME(vec) bias = s->run->bias ? VEC(s->run->bias + b * LANES) : (NAME(vec)){0};
        for (int64_t i = 0; i < at->rows; i++) {
            const int64_t row = (at->row + i) % w->rows * 2, rows = least(2, s->rows - row);
            T *to = nr_image_at(y, (at->row + i) / w->rows, b, row, at->column * 2);
            bool finite = true;
            for (int64_t j = at->column; j < at->column + at->columns; j++, from += LANES, to += 2 * LANES)
                finite &= NAME(tile_of_y)(from, apart, bias, rows, least(2, s->columns - j * 2), to, y->pitch);
            not_finite |= (uint64_t)!finite << i;
        }
    }
    return not_finite;
}

/* For each of the 16 factors and each group: the sums over channels, of all tiles. `to` is laid out like `from`. */
static void NAME(multiply)(const NAME(winograd) * w, int64_t tiles, const T *from, int64_t from_apart, T *to,
                           int64_t to_apart) {
    const NAME(image_conv) *s = w->s;
    const nr_conv_plan *p = s->p;
    const nr_image sums = {.plane = tiles * LANES};
    NAME(image_conv) product = {.y = &sums, .period = LANES, .plane = tiles * LANES};
    for (int c = 0; c < LANES; c++) product.offset[c] = c;
    NAME(image_tile) tile = {.to = p->in};
    const int64_t cuts = ceil_div(tiles, TILE_ROWS);
    for (int64_t f = 0; f < FACTORS; f++) {
        tile.weight = w->weight + f * NAME(factor_size)(p);
        for (int64_t g = 0; g < s->groups; g++) {
            const int64_t vectors = least(TILE_VECTORS, s->y->blocks - g * TILE_VECTORS);
            const T *next = tile.weight + p->in * vectors * LANES;
            tile.ahead = (const char *)next;
            tile.x = from + f * from_apart;
            tile.y = to + f * to_apart + g * TILE_VECTORS * tiles * LANES;
            tile.ahead_step = ceil_div(vectors * LANES * (int64_t)sizeof(T), cuts);
            for (int64_t t = 0; t < cuts; t++) {
                const int64_t count = tiles / cuts + (t < tiles % cuts);
                NAME(sees_image)[count - 1][1][vectors - 1](&product, &tile);
                tile.ahead += p->in * tile.ahead_step;
                tile.x += count * LANES;
                tile.y += count * LANES;
            }
            tile.weight = next;
        }
    }
}

static void NAME(winograd_worker)(void *context, int64_t worker) {
    NAME(winograd) *w = context;
    const NAME(image_conv) *s = w->s;
    T *factors = w->scratch + worker * w->scratch_size;
    for (int64_t task; (task = atomic_fetch_add_explicit(&w->next, 1, memory_order_relaxed)) < w->tasks;) {
        NAME(piece) at = {.row = task * w->band};
        at.rows = least(w->band, w->all - at.row);
        uint64_t not_finite = 0;
        for (; at.column < w->columns; at.column += at.columns) {
            at.columns = least(w->across, w->columns - at.column);
            const int64_t tiles = at.rows * at.columns;
            const int64_t x_apart = s->run->layer->x->blocks * tiles * LANES + FACTORS_APART;
            const int64_t y_apart = s->y->blocks * tiles * LANES + FACTORS_APART;
            T *sums = factors + FACTORS * x_apart;
            NAME(transform_piece)(w, &at, factors, x_apart);
            NAME(multiply)(w, tiles, factors, x_apart, sums, y_apart);
            not_finite |= NAME(piece_of_y)(w, &at, sums, y_apart);
        }
        for (int64_t g = 0; g < s->groups; g++)
            for (int64_t i = 0; i < at.rows; i++) {
                const int64_t sample = (at.row + i) / w->rows, row = (at.row + i) % w->rows * 2;
                const int64_t end = least(row + 2, s->rows);
                if (not_finite >> i & 1)
                    NAME(see_rows)(s, sample, g, row, end, s->x + sample * s->sample + row * s->row);
                for (int64_t r = row; r < end && !(not_finite >> i & 1); r++)
                    NAME(finish_row)(s, sample, g, r, 0, s->columns);
            }
    }
}

/* s: the same convolution over taps, of an image. The bits of a result do not depend on the bands. */
static int32_t NAME(run_winograd)(const NAME(image_conv) * s) {
    const nr_conv_plan *p = s->p;
    NAME(winograd) w = {.s = s, .weight = s->weight + NAME(taps_size)(p)};
    w.rows = ceil_div(s->rows, 2);
    w.columns = ceil_div(s->columns, 2);
    const int64_t blocks = s->run->layer->x->blocks + s->y->blocks;
    const int64_t fit = WINOGRAD_TASK_BYTES(nr_second_cache()) / (FACTORS * blocks * LANES * (int64_t)sizeof(T));
    w.across = least(w.columns, greatest(fit, WINOGRAD_TASK_TILES));
    w.band = least(64, w.across < w.columns ? 1 : greatest(fit / w.columns, ceil_div(WINOGRAD_TASK_TILES, w.columns)));
    w.all = s->y->batch * w.rows;
    w.tasks = greatest(ceil_div(w.all, w.band), least(w.all, nr_threads()));
    w.band = ceil_div(w.all, w.tasks); /* tasks of like size */
    w.tasks = ceil_div(w.all, w.band);
    w.scratch_size = FACTORS * (w.band * w.across * blocks * LANES + 2 * FACTORS_APART);
    const int64_t workers = least(nr_threads(), w.tasks);
    const size_t bytes = (size_t)(w.scratch_size * workers) * sizeof(T);
    if (!(w.scratch = nr_scratch(bytes))) return no_scratch(bytes);
    nr_parallel(workers, NAME(winograd_worker), &w);
    nr_scratch_free(w.scratch, bytes);
    return NORCH_OK;
}
