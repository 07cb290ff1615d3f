/* conv_winograd_weight: gradients of weights of 3 x 3 taps at stride 1 by Winograd's transform, for float32: a template
 * of each_dtype.h. It is the adjoint of conv_winograd.h: the factors of x are the same, those of y come by the
 * transpose of what made y of sums there, and the 9 taps by the transpose of what made factors of them. In one
 * dimension:
 *
 *   q0 = y0        g0 = m0 + (m1 + m2) / 2        m: for each factor, sums over the tiles of all images: factors of x
 *   q1 = y0 + y1   g1 = (m1 - m2) / 2             times those of y: 16 numbers where sums over taps take 36
 *   q2 = y0 - y1   g2 = (m1 + m2) / 2 + m3
 *   q3 = -y1
 *
 *   some rows of tiles:  x, y in blocks of channels -> factors (16, panels, tiles, PANEL_COLS) -> for each pair of
 *   panels sums (16, PANEL_COLS outputs, PANEL_COLS inputs), to which those of the next rows are added, and which
 *   become taps at the end
 *
 * Sums that are not finite may be so by the transform alone: then all are computed over taps. docs/reliability.md
 * bounds the errors. Lavin, Gray, "Fast Algorithms for Convolutional Neural Networks" (2016). */

/* Tiles that are summed at once: factors of as many as stay in the second cache, but not of fewer. */
#define FEWEST_TILES 96
#define SUMS (FACTORS * PANEL_COLS * PANEL_COLS)

typedef struct NAME(winograd_weight) {
    const nr_conv_plan *p;
    nr_image x, y;
    int64_t rows, columns, band;                  /* of tiles; band: rows at a time */
    int64_t first, count;                         /* rows of the present piece */
    int64_t x_panels, y_panels, x_apart, y_apart; /* apart: from one factor to the next */
    T *x_factors, *y_factors, *sums;
    bool add;
    _Atomic bool not_finite;
} NAME(winograd_weight);

INLINE void NAME(factors_of_y)(const NAME(vec) y[2], NAME(vec) to[4]) {
    to[0] = y[0];
    to[1] = y[0] + y[1];
    to[2] = y[0] - y[1];
    to[3] = -y[1];
}

/* The factors of a tile of a block of y, whose second row and column may lie in its halo of zeros. */
INLINE void NAME(transform_tile_of_y)(const T *y, int64_t pitch, T *to, int64_t apart) {
    NAME(vec) row[4][2], all[4];
    UNROLL for (int c = 0; c < 2; c++) {
        const NAME(vec) column[2] = {VEC(y + c * LANES), VEC(y + pitch + c * LANES)};
        NAME(factors_of_y)(column, all);
        UNROLL for (int r = 0; r < 4; r++) row[r][c] = all[r];
    }
    UNROLL for (int r = 0; r < 4; r++) {
        NAME(factors_of_y)(row[r], all);
        UNROLL for (int c = 0; c < 4; c++) STORE(to + (r * 4 + c) * apart, all[c]);
    }
}

/* Numbers from one tile of a panel to the next. */
INLINE int64_t NAME(panel_width)(const nr_image *image, int64_t panel) {
    return least(PANEL_COLS, (image->blocks - panel * TILE_VECTORS) * LANES);
}

/* A block of x, or (from x->blocks on) of y: its planes to an image, and the factors of the present piece. */
static void NAME(transform_block)(void *context, int64_t task) {
    const NAME(winograd_weight) *s = context;
    const nr_conv_plan *p = s->p;
    const bool of_x = task < s->x.blocks;
    const nr_image *image = of_x ? &s->x : &s->y;
    const int64_t b = of_x ? task : task - s->x.blocks, panel = b / TILE_VECTORS;
    const int64_t wide = NAME(panel_width)(image, panel), apart = of_x ? s->x_apart : s->y_apart;
    T *to = of_x ? s->x_factors : s->y_factors;
    to += panel * PANEL_COLS * s->count * s->columns + b % TILE_VECTORS * LANES;
    for (int64_t i = s->first; i < s->first + s->count; i++) {
        const T *row[4], *y = nr_image_at(image, 0, b, i * 2, 0);
        for (int64_t r = 0; r < 4 && of_x; r++)
            row[r] = nr_image_at(image, 0, b, least(i * 2 + r, p->result[0] + 1) - p->padding[0], -p->padding[1]);
        for (int64_t j = 0; j < s->columns; j++, to += wide, y += 2 * LANES) {
            if (!of_x) {
                NAME(transform_tile_of_y)(y, image->pitch, to, apart);
                continue;
            }
            NAME(transform_tile)(row, least(3, p->result[1] + 1 - j * 2), to, apart);
            for (int r = 0; r < 4; r++) row[r] += 2 * LANES;
        }
    }
}

/* A pair of panels: the sums of each factor over the tiles of the present piece. */
static void NAME(sum_pair)(void *context, int64_t task) {
    const NAME(winograd_weight) *s = context;
    const int64_t o = task / s->x_panels, i = task % s->x_panels, tiles = s->count * s->columns;
    const int64_t x_wide = NAME(panel_width)(&s->x, i), y_wide = NAME(panel_width)(&s->y, o);
    const int64_t parts = ceil_div(y_wide, TILE_ROWS);
    for (int64_t f = 0; f < FACTORS; f++) {
        const T *x = s->x_factors + f * s->x_apart + i * PANEL_COLS * tiles;
        const T *y = s->y_factors + f * s->y_apart + o * PANEL_COLS * tiles;
        TARGET to = {.c_row = PANEL_COLS, .cols = (int)x_wide, .add = s->add};
        for (int64_t t = 0; t < parts; t++) {
            const int64_t row = t * y_wide / parts;
            to.rows = (int)((t + 1) * y_wide / parts - row);
            to.c = s->sums + task * SUMS + (f * PANEL_COLS + row) * PANEL_COLS;
            TILES_OF_ROWS[to.rows - 1][to.cols > LANES](tiles, y + row, 1, y_wide, x, x_wide, &to);
        }
    }
}

INLINE void NAME(taps_of_sums)(const NAME(vec) m[4], NAME(vec) to[3]) {
    const NAME(vec) half = (NAME(vec)){0} + (T)0.5, sum = (m[1] + m[2]) * half;
    to[0] = m[0] + sum;
    to[1] = (m[1] - m[2]) * half;
    to[2] = sum + m[3];
}

/* The taps of a pair of panels. */
static void NAME(taps_of_pair)(void *context, int64_t task) {
    NAME(winograd_weight) *s = context;
    const nr_conv_plan *p = s->p;
    const int64_t o0 = task / s->x_panels * PANEL_COLS, i0 = task % s->x_panels * PANEL_COLS;
    const int64_t inputs = least(PANEL_COLS, p->in - i0), wide = NAME(panel_width)(&s->x, i0 / PANEL_COLS);
    const T *sums = s->sums + task * SUMS;
    T taps[(9 + LANES - 1) / LANES * LANES * PANEL_COLS], turned[PANEL_COLS * 9 + LANES];
    memset(taps, 0, sizeof(taps));
    NAME(vec) not_finite = {0};
    for (int64_t o = 0; o < least(PANEL_COLS, p->out - o0); o++, sums += PANEL_COLS) {
        for (int64_t i = 0; i < wide; i += LANES) {
            NAME(vec) row[3][4], all[3];
            UNROLL for (int c = 0; c < 4; c++) {
                const T *at = sums + i + c * PANEL_COLS * PANEL_COLS;
                const int64_t next = 4 * PANEL_COLS * PANEL_COLS;
                const NAME(vec) m[4] = {VEC(at), VEC(at + next), VEC(at + 2 * next), VEC(at + 3 * next)};
                NAME(taps_of_sums)(m, all);
                UNROLL for (int r = 0; r < 3; r++) row[r][c] = all[r];
            }
            UNROLL for (int r = 0; r < 3; r++) {
                NAME(taps_of_sums)(row[r], all);
                UNROLL for (int c = 0; c < 3; c++) {
                    STORE(taps + (r * 3 + c) * PANEL_COLS + i, all[c]);
                    not_finite += all[c] * 0;
                }
            }
        }
        /* (9, inputs) to (inputs, 9): lanes beyond the ninth are replaced by those of the next input */
        for (int first = 8 / LANES * LANES; first >= 0; first -= LANES)
            NAME(turn)(9, turned + first, wide, taps + first * PANEL_COLS, PANEL_COLS);
        memcpy((T *)p->weight + ((o0 + o) * p->in + i0) * 9, turned, (size_t)inputs * 9 * sizeof(T));
    }
    T sum = 0;
    for (int i = 0; i < LANES; i++) sum += not_finite[i];
    if (sum != 0) atomic_store_explicit(&s->not_finite, true, memory_order_relaxed);
}

/* One image: its blocks, and the sums of its pieces. */
static void NAME(add_pieces)(NAME(winograd_weight) * s, const T *x, const T *y) {
    void *planes_of_x = (void *)(uintptr_t)x, *planes_of_y = (void *)(uintptr_t)y;
    nr_load load_x = {&s->x, &planes_of_x}, load_y = {&s->y, &planes_of_y};
    nr_parallel(s->x.blocks, NAME(load_block), &load_x);
    nr_parallel(s->y.blocks, NAME(load_block), &load_y);
    for (s->first = 0; s->first < s->rows; s->first += s->band) {
        s->count = least(s->band, s->rows - s->first);
        nr_parallel(s->x.blocks + s->y.blocks, NAME(transform_block), s);
        nr_parallel(s->x_panels * s->y_panels, NAME(sum_pair), s);
        s->add = true;
    }
}

static int32_t NAME(winograd_of_weight)(const nr_conv_plan *p) {
    int64_t halo[2] = {0, 0};
    const int64_t one[2] = {1, 1}; /* of zeros, where tiles reach out of y */
    nr_grow_halo(p, halo);
    NAME(winograd_weight) s = {.p = p, .rows = ceil_div(p->result[0], 2), .columns = ceil_div(p->result[1], 2)};
    s.x = NAME(image_of)(1, p->in, p->size, halo);
    s.y = NAME(image_of)(1, p->out, p->result, one);
    s.x_panels = ceil_div(s.x.blocks, TILE_VECTORS);
    s.y_panels = ceil_div(s.y.blocks, TILE_VECTORS);
    const int64_t lanes = (s.x.blocks + s.y.blocks) * LANES;
    const int64_t fit = nr_second_cache() / 2 / (FACTORS * lanes * (int64_t)sizeof(T));
    s.band = least(s.rows, greatest(fit / s.columns, ceil_div(FEWEST_TILES, s.columns)));
    s.x_apart = s.band * s.columns * s.x.blocks * LANES + FACTORS_APART;
    s.y_apart = s.band * s.columns * s.y.blocks * LANES + FACTORS_APART;
    const int64_t images = (nr_image_bytes(&s.x) + nr_image_bytes(&s.y)) / (int64_t)sizeof(T);
    const int64_t factors = FACTORS * (s.x_apart + s.y_apart), sums = s.x_panels * s.y_panels * SUMS;
    const size_t bytes = (size_t)(images + factors + sums) * sizeof(T);
    T *scratch = nr_scratch(bytes);
    if (!scratch) return no_scratch(bytes);
    s.x.data = scratch;
    s.y.data = scratch + nr_image_bytes(&s.x) / (int64_t)sizeof(T);
    s.x_factors = scratch + images;
    s.y_factors = s.x_factors + FACTORS * s.x_apart;
    s.sums = scratch + images + factors;
    for (int64_t i = 0; i < p->batch; i++)
        NAME(add_pieces)(&s, (const T *)p->x + i * p->in * p->size[0] * p->size[1],
                         (const T *)p->y + i * p->out * p->result[0] * p->result[1]);
    nr_parallel(s.x_panels * s.y_panels, NAME(taps_of_pair), &s);
    nr_scratch_free(scratch, bytes);
    if (s.not_finite) return NAME(weight)(p);
    NAME(sum_channels)(p);
    return NORCH_OK;
}
