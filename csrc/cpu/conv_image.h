/* conv_image: convolutions as layers (families/layer.h), of images whose channels lie in blocks of LANES, for
 * float32: a template of each_dtype.h.
 *
 *   x (block, row, column, LANES)         a tile, in registers: up to TILE_ROWS neighbouring columns of y x one or two
 *     a0 a1 a2 ..  b0 b1 b2 ..  c0        vectors of output channels. For each channel and tap of x a number of each
 *   packed weight: for each group of      column is broadcast, and multiplied by a vector of the weight, which was
 *     output channels (k, PANEL_COLS)     packed in the order in which it is read
 *
 * Sums, but those of conv_winograd.h, are those of conv_correlate.h, conv_product.h and conv_unfold.h, to the bit: over
 * channels, and for each over its taps, in parts of `depth` products, each of which is summed by itself. Blocks of
 * channels: Georganas et al., "Anatomy of High-Performance Deep Learning Convolutions on SIMD Architectures" (2018). */

/* Up to this number of channels, such as those of pictures, x is read as planes, without an image. */
#define PLANES 4
/* Shares of the second cache for a packed weight that stays there, and for a band of x. Only caches of up to MOST_CACHE
 * were measured. */
#define MOST_CACHE (1 << 20)
#define NEAR_WEIGHT(cache) ((cache) / 8 * 3)
#define NEAR_BAND(cache) ((cache) / 16 * 3)
/* The share of a band if only a part of a larger weight fits. The weight is then read again for each band, so a band
 * has some rows at least. */
#define FAR_BAND(cache) ((cache) / 2)
#define FEWEST_ROWS 8
/* From this number of products in a sum on, converting planes to an image and back pays. */
#define ALONE_PRODUCTS 256
/* The least number of vectors of sums that are computed at a time. */
#define SUMS_WANTED 6
/* The largest distance, in numbers, from the first tap to the last. */
#define LONGEST_REACH (1 << 28)
/* The number of tiles in a row, for an image whose rows follow each other without a halo. */
#define ROW_TILES 4

typedef struct NAME(image_conv) {
    const nr_layer_run *run;
    const nr_conv_plan *p;
    const nr_image *y;
    const T *weight, *x; /* x: of the first tap of the first position of a sample; or NULL, and: */
    view v;              /* of planes, padded in scratch */
    int64_t k, depth;
    bool after;                  /* the bias is added to the sum, which else begins with it */
    bool flat;                   /* rows of all images follow each other, and are cut into others: */
    int64_t rows, columns, last; /* columns of the last row */
    int64_t sample, row, step;   /* from one to the next in x */
    int64_t period, plane;       /* numbers of k after which offsets are the same in the next plane */
    int64_t groups, group_tasks, bands, band, tasks;
    bool by_band; /* all groups of a band follow each other, not all bands of a group */
    int32_t offset[LANES * MOST_TAPS];
    T *scratch;
    int64_t scratch_size;
    _Atomic int64_t next;
} NAME(image_conv);

/* A tile for k in [from, to). Sums begin with `start`, or with 0 if it is NULL. For each k, ahead_step bytes from
 * `ahead` on, which are read next, are fetched to the second cache. */
typedef struct NAME(image_tile) {
    int64_t from, to;
    const T *x, *weight, *start;
    T *y;
    const char *ahead;
    int64_t ahead_step;
} NAME(image_tile);

/* count columns x vectors of channels: column i lies at x + i * step. All three are
 * constants wherever this is inlined. */
INLINE void NAME(see_image)(int count, int vectors, int64_t step, const NAME(image_conv) * s,
                            const NAME(image_tile) * tile) {
    const int64_t from = tile->from, to = tile->to, ahead_step = tile->ahead_step;
    const T *x = tile->x, *weight = tile->weight, *start = tile->start;
    const char *ahead = tile->ahead;
    T *y = tile->y;
    NAME(vec) sum[TILE_ROWS][TILE_VECTORS];
    UNROLL for (int j = 0; j < vectors; j++) {
        const NAME(vec) first = (NAME(vec)){0} + (start ? VEC(start + j * LANES) : (NAME(vec)){0});
        UNROLL for (int i = 0; i < count; i++) sum[i][j] = first;
    }
    weight += from * vectors * LANES;
    int64_t at = from % s->period;
    x += from / s->period * s->plane;
    for (int64_t k = from; k < to; at = 0, x += s->plane) {
        const int64_t end = least(s->period, at + to - k);
        k += end - at;
        for (; at < end; at++, weight += vectors * LANES) {
            const T *seen = x + s->offset[at];
            __builtin_prefetch(ahead, 0, 2), ahead += ahead_step;
            NAME(vec) w[TILE_VECTORS];
            UNROLL for (int j = 0; j < vectors; j++) w[j] = VEC(weight + j * LANES);
            UNROLL for (int i = 0; i < count; i++) {
                UNROLL for (int j = 0; j < vectors; j++) sum[i][j] += seen[i * step] * w[j];
            }
        }
    }
    const bool add = from > 0;
    UNROLL for (int j = 0; j < vectors; j++) {
        T *out = y + j * s->y->plane;
        UNROLL for (int i = 0; i < count; i++) {
            if (add) sum[i][j] += VEC(out + i * LANES);
            STORE(out + i * LANES, sum[i][j]);
        }
    }
}

typedef void (*NAME(see_image_of))(const NAME(image_conv) * s, const NAME(image_tile) * tile);
#define SEE(count, vectors, step)                                                             \
    static void NAME(see_image_##count##x##vectors##_##step)(const NAME(image_conv) * s,      \
                                                             const NAME(image_tile) * tile) { \
        NAME(see_image)(count, vectors, step ? step * LANES : 1, s, tile);                    \
    }
#define SEES(count) \
    SEE(count, 1, 0) SEE(count, 2, 0) SEE(count, 1, 1) SEE(count, 2, 1) SEE(count, 1, 2) SEE(count, 2, 2)
EACH_TILE_ROW(SEES)
#undef SEES
#undef SEE
#define SEE(count, step) {NAME(see_image_##count##x1_##step), NAME(see_image_##count##x2_##step)}
#define SEES(count) {SEE(count, 0), SEE(count, 1), SEE(count, 2)},
static const NAME(see_image_of) NAME(sees_image)[TILE_ROWS][3][TILE_VECTORS] = {EACH_TILE_ROW(SEES)};
#undef SEES
#undef SEE

/* The stages after the sums of a row of a group of blocks. */
static void NAME(finish_row)(const NAME(image_conv) * s, int64_t sample, int64_t group, int64_t row, int64_t column,
                             int64_t columns) {
    for (int64_t b = group * TILE_VECTORS; b < least(s->y->blocks, (group + 1) * TILE_VECTORS); b++) {
        T *y = nr_image_at(s->y, sample, b, row, column);
        if (s->after) {
            const NAME(vec) more = s->run->bias ? VEC(s->run->bias + b * LANES) : (NAME(vec)){0};
            for (int64_t u = 0; u < columns; u++) STORE(y + u * LANES, VEC(y + u * LANES) + more);
        }
        NR_ISA(nr_layer_finish)(s->run, sample, b, row, column, columns);
        if (!s->flat)
            clear_halo(s->y, sample, b, row, row + 1);
        else if (column + columns == s->y->size[0] * s->y->size[1])
            clear_halo(s->y, sample, b, 0, s->y->size[0]);
    }
}

/* The rows [first, end) of a group of blocks. The part of the weight for `depth` products is used for all of them. Each
 * tile fetches a piece of the next part to the cache, so that no tile waits for memory. A row is divided into tiles of
 * similar width. */
static void NAME(see_rows)(const NAME(image_conv) * s, int64_t sample, int64_t group, int64_t first, int64_t end,
                           const T *x) {
    const int64_t vectors = least(TILE_VECTORS, s->y->blocks - group * TILE_VECTORS),
                  kind = s->step == 1 ? 0 : s->step / LANES;
    const int64_t all = (end - first) * ceil_div(s->columns, TILE_ROWS); /* tiles */
    NAME(image_tile) tile = {.weight = s->weight + group * s->k * PANEL_COLS};
    tile.ahead_step = ceil_div(vectors * LANES * (int64_t)sizeof(T), all);
    for (int64_t k = 0; k < s->k; k += s->depth) {
        tile.from = k;
        tile.to = least(s->k, k + s->depth);
        tile.start = k == 0 && s->run->bias && !s->after ? s->run->bias + group * PANEL_COLS : NULL;
        tile.ahead = (const char *)(tile.weight + tile.to * vectors * LANES);
        for (int64_t i = first; i < end; i++) {
            const int64_t columns = i + 1 == s->rows ? s->last : s->columns, tiles = ceil_div(columns, TILE_ROWS);
            const int64_t row = s->flat ? 0 : i, column = s->flat ? i * s->columns : 0;
            tile.x = x + (i - first) * s->row;
            tile.y = nr_image_at(s->y, sample, group * TILE_VECTORS, row, column);
            for (int64_t t = 0; t < tiles; t++) {
                const int64_t count = columns / tiles + (t < columns % tiles);
                NAME(sees_image)[count - 1][kind][vectors - 1](s, &tile);
                tile.ahead += (tile.to - k) * tile.ahead_step;
                tile.x += count * s->step;
                tile.y += count * LANES;
            }
            if (tile.to == s->k) NAME(finish_row)(s, sample, group, row, column, columns);
        }
    }
}

static void NAME(image_worker)(void *context, int64_t worker) {
    NAME(image_conv) *s = context;
    const nr_conv_plan *p = s->p;
    for (int64_t task; (task = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < s->tasks;) {
        const int64_t sample = task / s->bands / s->group_tasks, at = task % (s->bands * s->group_tasks);
        const int64_t part = s->by_band ? at % s->group_tasks : at / s->bands;
        const int64_t first = (s->by_band ? at / s->group_tasks : at % s->bands) * s->band;
        const int64_t end = least(s->rows, first + s->band);
        const T *x;
        if (s->x) {
            x = s->x + sample * s->sample + first * s->row;
        } else {
            T *padded = s->scratch + worker * s->scratch_size;
            const int64_t area = p->size[0] * p->size[1];
            const T *planes = p->x, *behind = planes + p->batch * p->in * area;
            NAME(pad_band)(&s->v, planes + sample * p->in * area, planes, behind, p->in, first, end - first, padded);
            x = padded;
        }
        for (int64_t g = s->group_tasks > 1 ? part : 0; g < (s->group_tasks > 1 ? part + 1 : s->groups); g++)
            NAME(see_rows)(s, sample, g, first, end, x);
    }
}

/* Geometry of a source in planes, padded band by band. */
static void NAME(of_planes)(NAME(image_conv) * s) {
    const nr_conv_plan *p = s->p;
    int64_t tap[MOST_TAPS][2];
    view *v = &s->v;
    *v = NAME(forward_view)(p);
    forward_taps(p, tap);
    bound_taps(v, tap);
    v->block = p->in;
    choose_band(v, v->grid[0], sizeof(T), p->batch);
    for (int64_t c = 0; c < p->in; c++)
        for (int64_t t = 0; t < v->taps; t++)
            s->offset[c * v->taps + t] = (int32_t)(c * v->plane + offset_of(v, tap[t][0], tap[t][1]));
    s->period = s->k;
    s->row = v->step[0] * v->pitch;
    s->step = 1;
    s->band = v->rows;
    s->group_tasks = 1;
}

static void NAME(of_image)(NAME(image_conv) * s, const nr_image *x) {
    const nr_conv_plan *p = s->p;
    const int64_t taps = p->kernel[0] * p->kernel[1];
    for (int64_t c = 0; c < LANES; c++)
        for (int64_t t = 0; t < taps; t++)
            s->offset[c * taps + t] =
                (int32_t)(t / p->kernel[1] * p->dilation[0] * x->pitch + t % p->kernel[1] * p->dilation[1] * LANES + c);
    s->x = nr_image_at(x, 0, 0, -p->padding[0], -p->padding[1]);
    s->period = LANES * taps;
    s->plane = x->plane;
    s->sample = x->blocks * x->plane;
    s->row = p->stride[0] * x->pitch;
    s->step = p->stride[1] * LANES;
    const bool plain = is_product(p) && p->result[0] == p->size[0] && p->result[1] == p->size[1];
    s->flat = (plain && !any_halo(s->run->layer)) || p->result[0] == 1;
    if (s->flat) {
        const int64_t all = p->result[0] * p->result[1];
        s->columns = ceil_div(all, ceil_div(all, ROW_TILES * TILE_ROWS)); /* rows of like length */
        s->rows = ceil_div(all, s->columns);
        s->last = all - (s->rows - 1) * s->columns;
        s->row = s->columns * s->step;
    }
    const int64_t weight = s->k * s->groups * PANEL_COLS * (int64_t)sizeof(T),
                  cache = least(nr_second_cache(), MOST_CACHE);
    const int64_t row = s->row * x->blocks * (int64_t)sizeof(T);
    s->group_tasks = weight <= NEAR_WEIGHT(cache) && s->rows * 2 >= PARTS_WANTED ? 1 : s->groups;
    s->band = s->group_tasks == 1 ? least(greatest(1, NEAR_BAND(cache) / row), ceil_div(s->rows, PARTS_WANTED))
                                  : ceil_div(s->rows, ceil_div(PARTS_WANTED, s->groups));
    if (s->group_tasks > 1) { /* memory that a part of the sums uses should stay in the second cache, too */
        const int64_t near = row * least(s->depth, s->k) / s->k + s->columns * PANEL_COLS * (int64_t)sizeof(T);
        s->band = least(s->band, greatest(FEWEST_ROWS, FAR_BAND(cache) / near));
        s->by_band = s->flat && row * s->rows > FAR_BAND(cache);
        if (s->by_band) s->band = least(s->band, greatest(2, FAR_BAND(cache) / row));
    }
}

/* ---- one channel to a group --------------------------------------------------------------------------- */

/* SIDE x SIDE taps without dilation. A column of x is loaded once for all of them. */
#define ABREAST 7
INLINE void NAME(see_square)(int side, int step, const T *x, int64_t pitch, const T *weight, NAME(vec) start, T *y) {
    NAME(vec) sum[ABREAST];
    UNROLL for (int i = 0; i < ABREAST; i++) sum[i] = start;
    for (int r = 0; r < side; r++, x += pitch, weight += side * LANES) {
        NAME(vec) w[5];
        UNROLL for (int t = 0; t < side; t++) w[t] = VEC(weight + t * LANES);
        UNROLL_MORE for (int c = 0; c < (ABREAST - 1) * step + side; c++) {
            const NAME(vec) seen = VEC(x + c * LANES);
            UNROLL for (int i = 0; i < ABREAST; i++) {
                const int t = c - i * step;
                if (t >= 0 && t < side) sum[i] += seen * w[t];
            }
        }
    }
    UNROLL for (int i = 0; i < ABREAST; i++) STORE(y + i * LANES, sum[i]);
}

typedef void (*NAME(see_square_of))(const T *x, int64_t pitch, const T *weight, NAME(vec) start, T *y);
#define SEE(side, step)                                                                                               \
    static void NAME(see_square_##side##_##step)(const T *x, int64_t pitch, const T *weight, NAME(vec) start, T *y) { \
        NAME(see_square)(side, step, x, pitch, weight, start, y);                                                     \
    }
SEE(3, 1)
SEE(3, 2)
SEE(5, 1)
SEE(5, 2)
#undef SEE

static NAME(see_square_of) NAME(square_of)(const nr_conv_plan *p) {
    const bool square = p->kernel[0] == p->kernel[1] && p->dilation[0] == 1 && p->dilation[1] == 1;
    if (!square || p->result[1] < ABREAST || p->stride[1] > 2) return NULL;
    if (p->kernel[1] == 3) return p->stride[1] == 1 ? NAME(see_square_3_1) : NAME(see_square_3_2);
    if (p->kernel[1] == 5) return p->stride[1] == 1 ? NAME(see_square_5_1) : NAME(see_square_5_2);
    return NULL;
}

/* A band of a block of channels. */
static void NAME(depth_image_task)(void *context, int64_t task) {
    const NAME(image_conv) *s = context;
    const nr_conv_plan *p = s->p;
    const nr_image *x = s->run->layer->x, *y = s->y;
    const int64_t first = task % s->bands * s->band, end = least(s->rows, first + s->band), n = s->columns;
    const int64_t b = task / s->bands % y->blocks, sample = task / s->bands / y->blocks;
    int64_t offset[MOST_TAPS];
    for (int64_t t = 0; t < s->k; t++) offset[t] = s->offset[t];
    const T *weight = s->weight + b * s->k * LANES;
    const NAME(vec) start = s->run->bias ? VEC(s->run->bias + b * LANES) : (NAME(vec)){0};
    const NAME(see_square_of) square = NAME(square_of)(p);
    const int64_t outputs = square ? ABREAST : least(n, NEIGHBOURS);
    for (int64_t i = first; i < end; i++) {
        const T *in = nr_image_at(x, sample, b, i * p->stride[0] - p->padding[0], -p->padding[1]);
        T *line = nr_image_at(y, sample, b, i, 0);
        for (int64_t j = 0; j < n; j += outputs) {
            j = least(j, n - outputs); /* the last ones may overlap those before */
            if (square)
                square(in + j * s->step, x->pitch, weight, start, line + j * LANES);
            else
                NAME(sees_depth)
            [outputs - 1](s->k, offset, weight, start, in + j *s->step, s->step, line + j *LANES, LANES);
        }
        NR_ISA(nr_layer_finish)(s->run, sample, b, i, 0, n);
    }
    clear_halo(y, sample, b, first, end);
}

#include "conv_winograd.h"

/* ---- the parts of a layer ------------------------------------------------------------------------------ */

/* The order of the convolution's sums: `depth` products at a time, and whether the bias, or a zero, is added at the
 * end. */
static bool NAME(find_order)(const nr_call *call, int64_t *depth, bool *after) {
    const nr_conv_plan *p = call->plan;
    nr_matmul_plan plan;
    nr_call product = *call;
    product.plan = &plan;
    product.kernel = NULL;
    if (is_product(p)) {
        *after = p->bias != NULL;
        *depth = NAME(panel_depth)(p->in);
        return true;
    }
    if (is_small(p, NR_CONV_FORWARD)) {
        plan = NAME(plan_unfolded)(p, NULL, NULL);
        *after = true;
        return (*depth = NR_ISA(nr_matmul_depth)(&product)) > 0;
    }
    NAME(correlation) s = {.groups = 1, .m = p->out, .v = NAME(forward_view)(p)};
    NAME(choose_block)(&s);
    *depth = s.v.block * s.v.taps;
    *after = false;
    return true;
}

/* Whether lanes are channels, and a tile has enough sums to hide the latency of additions. */
static bool NAME(fills)(const nr_conv_plan *p) {
    const bool flat = p->kernel[0] * p->kernel[1] == 1 && p->stride[0] == 1 && p->stride[1] == 1;
    const int64_t blocks = ceil_div(p->out, LANES), columns = (flat ? p->result[0] : 1) * p->result[1];
    return p->out * 5 >= blocks * LANES * 3 && columns * least(blocks, TILE_VECTORS) >= SUMS_WANTED;
}

static bool NAME(pays_alone)(const nr_conv_plan *p) {
    return p->groups == 1 && p->in * p->kernel[0] * p->kernel[1] >= ALONE_PRODUCTS && p->out > LANES;
}

static bool NAME(takes)(const nr_call *call, bool *from_planes) {
    const nr_conv_plan *p = call->plan;
    const int64_t taps = p->kernel[0] * p->kernel[1];
    int64_t depth, halo[2] = {0, 0};
    bool after;
    *from_planes = false;
    if (p->batch == 0 || p->result[0] * p->result[1] == 0 || taps > MOST_TAPS) return false;
    nr_grow_halo(p, halo);
    const int64_t wide = p->size[1] + 2 * halo[1] + p->kernel[1] * p->dilation[1] + p->stride[1];
    if (wide > LONGEST_REACH / LANES / (p->kernel[0] * p->dilation[0] + p->stride[0])) return false; /* int32 offsets */
    if (is_depthwise(p, NR_CONV_FORWARD, true)) return true;
    if (p->groups != 1 || p->in == 0 || p->out == 0 || !NAME(fills)(p)) return false;
    if (!NAME(find_order)(call, &depth, &after)) return false;
    *from_planes = p->in <= PLANES && p->in < LANES && depth >= p->in * taps;
    return *from_planes || p->stride[1] <= 2;
}

static int64_t NAME(packed_size)(const nr_conv_plan *p) {
    const int64_t taps = p->kernel[0] * p->kernel[1];
    if (is_depthwise(p, NR_CONV_FORWARD, true)) return ceil_div(p->groups, LANES) * LANES * taps;
    return NAME(taps_size)(p) + (is_winograd(p) ? FACTORS * NAME(factor_size)(p) : 0);
}

typedef struct NAME(packing) {
    const nr_conv_plan *p;
    T *to;
    int64_t k, out, step; /* step: output channels of a task */
} NAME(packing);

static void NAME(pack_task)(void *context, int64_t task) {
    const NAME(packing) *s = context;
    const int64_t o = task * s->step, left = s->out - o;
    const int wide = s->step > LANES && left > LANES ? PANEL_COLS : LANES;
    NAME(turn_lanes)(wide, s->to + o * s->k, s->k, (const T *)s->p->weight + o * s->k, s->k, (int)least(wide, left));
    if (is_winograd(s->p)) NAME(transform_weight)(s->p, task, s->to);
}

static void NAME(pack_weight)(const nr_call *call, T *to) {
    const nr_conv_plan *p = call->plan;
    const bool apart = is_depthwise(p, NR_CONV_FORWARD, true);
    NAME(packing) s = {.p = p, .to = to, .out = p->groups * p->out, .step = apart ? LANES : PANEL_COLS};
    s.k = (apart ? 1 : p->in) * p->kernel[0] * p->kernel[1];
    const int64_t tasks = ceil_div(s.out, s.step);
    if (s.k * s.out > PASS_ELEMENTS)
        nr_parallel(tasks, NAME(pack_task), &s);
    else
        for (int64_t t = 0; t < tasks; t++) NAME(pack_task)(&s, t);
}

static int32_t NAME(conv_layer)(const nr_layer_run *run) {
    const nr_layer *layer = run->layer;
    const nr_conv_plan *p = layer->call.plan;
    const int64_t batch = layer->y->batch; /* of a part of the plan's, whose batch decides the order of sums */
    const bool apart = is_depthwise(p, NR_CONV_FORWARD, true);
    NAME(image_conv) s = {.run = run, .p = p, .y = layer->y, .weight = layer->packed};
    s.k = (apart ? 1 : p->in) * p->kernel[0] * p->kernel[1];
    s.rows = p->result[0];
    s.columns = s.last = p->result[1];
    if (apart) {
        for (int64_t t = 0; t < s.k; t++)
            s.offset[t] = (int32_t)(t / p->kernel[1] * p->dilation[0] * layer->x->pitch +
                                    t % p->kernel[1] * p->dilation[1] * LANES);
        s.step = p->stride[1] * LANES;
        s.band = ceil_div(s.rows, ceil_div(PARTS_WANTED, batch * s.y->blocks));
        s.bands = ceil_div(s.rows, s.band);
        nr_parallel(batch * s.y->blocks * s.bands, NAME(depth_image_task), &s);
        return NORCH_OK;
    }
    s.groups = ceil_div(s.y->blocks, TILE_VECTORS);
    NAME(find_order)(&layer->call, &s.depth, &s.after);
    if (layer->x)
        NAME(of_image)(&s, layer->x);
    else
        NAME(of_planes)(&s);
    if (is_winograd(p)) return NAME(run_winograd)(&s);
    s.bands = ceil_div(s.rows, s.band);
    s.tasks = batch * s.group_tasks * s.bands;
    const double work = (double)batch * (double)(p->result[0] * p->result[1]) * (double)s.k * (double)p->out;
    const int64_t workers = work < SERIAL_WORK ? 1 : least(nr_threads(), s.tasks);
    s.scratch_size = layer->x ? 0 : ceil_div(p->in * s.v.plane + LANES, 16) * 16;
    const size_t bytes = (size_t)(s.scratch_size * workers) * sizeof(T);
    if (bytes && !(s.scratch = nr_scratch(bytes))) return no_scratch(bytes);
    nr_parallel(workers, NAME(image_worker), &s);
    if (bytes) nr_scratch_free(s.scratch, bytes);
    return NORCH_OK;
}
