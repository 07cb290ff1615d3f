/* conv_weight: the gradient of the weight, sums over all positions, for one float type: a template of each_dtype.h.
 *
 *   C[tap][channel] += A[tap][position] B[position][channel]
 *
 *   A: read where it lies, in the padded rows      OUTER_ROWS taps x TILE_VECTORS vectors of channels stay in registers
 *   B: y, transposed a band at a time              while the positions of a band go by
 *
 * Each task sums a chunk of the images for a block of channels; the chunks are added in their order at the end, so that
 * threads change nothing. A panel's positions are summed before they join the rest: one sum along a million of them
 * would lose a percent to rounding (Higham, "The Accuracy of Floating Point Summation", 1993). The gradient as a
 * product: Chetlur et al., "cuDNN" (2014); a product as rank-1 updates of what stays in registers: Goto and van de
 * Geijn (2008), see gemm.h. */

#include "conv_correlate.h"

typedef struct NAME(weights) {
    view v;
    const nr_conv_plan *p;
    const int64_t *offset; /* of each tap of each channel of a block */
    int64_t width;         /* output channels of a group, in whole vectors */
    int64_t wide;          /* positions of a row that a panel takes */
    bool few;              /* channels that fill a quarter of a vector at most */
    int64_t blocks, chunks;
    T *sums;      /* (chunks, groups, blocks, block * taps + 1, width): the last row for the sums of y */
    int64_t part; /* elements of one of them */
    T *scratch;
    int64_t scratch_size, tasks;
    _Atomic int64_t next;
} NAME(weights);

/* rows taps x vectors of channels: each position of a panel, grid_rows x wide, gives one rank-1 update. */
INLINE void NAME(outer)(int rows, int vectors, const view *v, int64_t grid_rows, int64_t wide, const T *padded,
                        const int64_t *offset, const T *b, T *c, int64_t c_row) {
    NAME(vec) sum[OUTER_ROWS][TILE_VECTORS] = {0};
    for (int64_t r = 0; r < grid_rows; r++) {
        const T *at[OUTER_ROWS];
        UNROLL for (int i = 0; i < rows; i++) at[i] = padded + offset[i] + r * v->step[0] * v->pitch;
        for (int64_t x = 0; x < wide; x++, b += vectors * LANES) {
            NAME(vec) row[TILE_VECTORS];
            UNROLL for (int j = 0; j < vectors; j++) row[j] = VEC(b + j * LANES);
            UNROLL for (int i = 0; i < rows; i++) {
                UNROLL for (int j = 0; j < vectors; j++) sum[i][j] += at[i][x] * row[j];
            }
        }
    }
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int j = 0; j < vectors; j++)
            STORE(c + i * c_row + j * LANES, VEC(c + i * c_row + j * LANES) + sum[i][j]);
    }
}

typedef void (*NAME(outer_of))(const view *v, int64_t grid_rows, int64_t wide, const T *padded, const int64_t *offset,
                               const T *b, T *c, int64_t c_row);
#define OUTERS(rows)                                                                                    \
    static void NAME(outer_##rows##x1)(const view *v, int64_t grid_rows, int64_t wide, const T *padded, \
                                       const int64_t *offset, const T *b, T *c, int64_t c_row) {        \
        NAME(outer)(rows, 1, v, grid_rows, wide, padded, offset, b, c, c_row);                          \
    }                                                                                                   \
    static void NAME(outer_##rows##x2)(const view *v, int64_t grid_rows, int64_t wide, const T *padded, \
                                       const int64_t *offset, const T *b, T *c, int64_t c_row) {        \
        NAME(outer)(rows, 2, v, grid_rows, wide, padded, offset, b, c, c_row);                          \
    }
EACH_OUTER_ROW(OUTERS)
#undef OUTERS
#define OUTERS(rows) {NAME(outer_##rows##x1), NAME(outer_##rows##x2)},
static const NAME(outer_of) NAME(outers)[OUTER_ROWS][TILE_VECTORS] = {EACH_OUTER_ROW(OUTERS)};
#undef OUTERS

/* The sum of n elements, by halves. */
static T NAME(sum_of)(int64_t n, const T *y) {
    if (n > POSITIONS) {
        const int64_t half = ceil_div(n, 2 * LANES) * LANES;
        return NAME(sum_of)(half, y) + NAME(sum_of)(n - half, y + half);
    }
    NAME(vec) sum = {0};
    T total = 0;
    for (int64_t i = 0; i < n; i += LANES) sum += NAME(load_part)(y + i, (int)least(LANES, n - i));
    for (int lane = 0; lane < LANES; lane++) total += sum[lane];
    return total;
}

/* Adds the dot product of a channel of y and the positions that a tap reads to to[tap * step], for some taps, with
 * vectors along the positions. For few channels, of which vectors would leave most lanes idle. */
static void NAME(dots)(const view *v, int64_t grid_rows, int64_t wide, const T *padded, const int64_t *offset,
                       int64_t taps, const T *y, T *to, int64_t step) {
    for (int64_t t = 0; t < taps; t += OUTER_ROWS) {
        NAME(vec) sum[OUTER_ROWS] = {{0}};
        const T *at[OUTER_ROWS];
        UNROLL for (int i = 0; i < OUTER_ROWS; i++) at[i] = padded + offset[least(t + i, taps - 1)];
        for (int64_t r = 0; r < grid_rows; r++)
            for (int64_t x = 0; x < wide; x += LANES) {
                const int count = (int)least(LANES, wide - x);
                const int64_t seen = r * v->step[0] * v->pitch + x;
                const NAME(vec) row = NAME(load_part)(y + r * wide + x, count);
                UNROLL for (int i = 0; i < OUTER_ROWS; i++) sum[i] += NAME(load_part)(at[i] + seen, count) * row;
            }
        for (int i = 0; i < least(OUTER_ROWS, taps - t); i++) {
            T total = 0;
            for (int lane = 0; lane < LANES; lane++) total += sum[i][lane];
            to[(t + i) * step] += total;
        }
    }
}

/* Adds the products of one panel, grid_rows x wide positions of y from `y` on, to the sums of a block of channels. */
static void NAME(add_positions)(const NAME(weights) * s, int64_t grid_rows, int64_t wide, int64_t channels, const T *y,
                                const T *padded, T *panel, T *sums) {
    const view *v = &s->v;
    const int64_t n = grid_rows * wide, area = v->grid[0] * v->grid[1], taps = channels * v->taps;
    const int64_t tiles = ceil_div(taps, OUTER_ROWS);
    for (int64_t o = 0; o < s->p->out && s->few; o++) {
        NAME(dots)(v, grid_rows, wide, padded, s->offset, taps, y + o * area, sums + o, s->width);
    }
    for (int64_t o = 0; o < s->p->out && !s->few; o += PANEL_COLS) {
        int64_t columns = least(PANEL_COLS, s->p->out - o), at = 0;
        NAME(turn_lanes)(columns > LANES ? PANEL_COLS : LANES, panel, n, y + o * area, area, (int)columns);
        for (int64_t t = 0; t < tiles; t++) {
            int64_t count = taps / tiles + (t < taps % tiles);
            T *to = sums + at * s->width + o;
            NAME(outers)
            [count - 1][columns > LANES](v, grid_rows, wide, padded, s->offset + at, panel, to, s->width);
            at += count;
        }
    }
}

/* One image's part of the sums of a block of channels. */
static void NAME(add_image)(const NAME(weights) * s, int64_t image, int64_t group, int64_t block, T *scratch, T *sums) {
    const view *v = &s->v;
    const nr_conv_plan *p = s->p;
    int64_t c = block * v->block, channels = least(v->block, v->channels - c), item = image * p->groups + group;
    int64_t area = v->grid[0] * v->grid[1];
    T *panel = scratch, *padded = scratch + v->rows * s->wide * PANEL_COLS;
    const T *end = (const T *)p->x + p->batch * p->groups * v->channels * v->size[0] * v->size[1];
    const T *x = (const T *)p->x + (item * v->channels + c) * v->size[0] * v->size[1];
    const T *y = (const T *)p->y + item * p->out * area;
    T *totals = sums + v->block * v->taps * s->width;
    for (int64_t o = 0; p->sums && block == 0 && o < p->out; o++) totals[o] += NAME(sum_of)(area, y + o * area);
    for (int64_t first = 0; first < v->grid[0]; first += v->rows) {
        int64_t rows = least(v->rows, v->grid[0] - first);
        NAME(pad_band)(v, x, p->x, end, channels, first, rows, padded);
        for (int64_t left = 0; left < v->grid[1]; left += s->wide) /* once, unless a band is one row */
            NAME(add_positions)(s, rows, least(s->wide, v->grid[1] - left), channels, y + first * v->grid[1] + left,
                                padded + left, panel, sums);
    }
}

/* A task: a chunk of the images for a block of channels. */
static void NAME(weight_worker)(void *context, int64_t worker) {
    NAME(weights) *s = context;
    for (int64_t task; (task = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < s->tasks;) {
        T *sums = s->sums + task * s->part;
        memset(sums, 0, (size_t)s->part * sizeof(T));
        int64_t each = ceil_div(s->p->batch, s->chunks), chunk = task / (s->p->groups * s->blocks);
        int64_t part = task % (s->p->groups * s->blocks), last = least(s->p->batch, (chunk + 1) * each);
        for (int64_t image = chunk * each; image < last; image++) {
            NAME(add_image)(s, image, part / s->blocks, part % s->blocks, s->scratch + worker * s->scratch_size, sums);
        }
    }
}

/* Adds the chunks in their order: `count` rows from `row` on of the sums of a block of a group, each to every step-th
 * element, by squares, so that neither what is read nor what is written leaves the first cache. */
static void NAME(gather_rows)(const NAME(weights) * s, int64_t group, int64_t block, int64_t row, int64_t count, T *to,
                              int64_t step) {
    const T *from = s->sums + (group * s->blocks + block) * s->part + row * s->width;
    const int64_t chunk_size = s->p->groups * s->blocks * s->part, out = s->p->out;
    for (int64_t k0 = 0; k0 < count; k0 += 4 * LANES)
        for (int64_t o0 = 0; o0 < out; o0 += LANES)
            for (int64_t o = o0; o < least(out, o0 + LANES); o++)
                for (int64_t k = k0; k < least(count, k0 + 4 * LANES); k++) {
                    const T *at = from + k * s->width + o;
                    T total = *at;
                    for (int64_t chunk = 1; chunk < s->chunks; chunk++) total += at[chunk * chunk_size];
                    to[o * step + k] = total;
                }
}

/* A block's part of the weight, (groups * out, in, taps), and of the sums of y. */
static void NAME(gather_block)(void *context, int64_t task) {
    const NAME(weights) *s = context;
    const nr_conv_plan *p = s->p;
    const int64_t deep = p->in * s->v.taps, rows = s->v.block * s->v.taps, g = task / s->blocks,
                  block = task % s->blocks;
    T *to = (T *)p->weight + g * p->out * deep + block * rows;
    NAME(gather_rows)(s, g, block, 0, least(rows, deep - block * rows), to, deep);
    if (p->sums && block == 0) NAME(gather_rows)(s, g, 0, rows, 1, (T *)p->sums + g * p->out, 1);
}

static int32_t NAME(weight)(const nr_conv_plan *p) {
    NAME(weights) s = {.p = p};
    view *v = &s.v;
    v->channels = p->in;
    v->taps = p->kernel[0] * p->kernel[1];
    for (int d = 0; d < 2; d++) {
        v->size[d] = p->size[d];
        v->step[d] = p->stride[d];
        v->grid[d] = p->result[d];
    }
    v->block = PACKED_DEPTH / v->taps > 1 ? least(PACKED_DEPTH / v->taps, v->channels) : 1;
    s.blocks = ceil_div(v->channels, v->block);
    v->block = ceil_div(v->channels, s.blocks);
    s.blocks = ceil_div(v->channels, v->block);
    s.chunks = least(p->batch, ceil_div(PARTS_WANTED, s.blocks * p->groups));
    if (s.chunks < 1) s.chunks = 1;
    s.tasks = s.chunks * p->groups * s.blocks;
    s.width = ceil_div(p->out, LANES) * LANES;
    s.few = 4 * p->out <= LANES;
    s.part = (v->block * v->taps + 1) * s.width;
    int64_t *tables = nr_scratch((size_t)(v->taps * (2 + v->block)) * sizeof(int64_t));
    if (!tables) return no_scratch((size_t)(v->taps * (2 + v->block)) * sizeof(int64_t));
    int64_t (*tap)[2] = (int64_t (*)[2])tables, *offset = tables + 2 * v->taps;
    forward_taps(p, tap);
    bound_taps(v, tap);
    choose_band(v, POSITIONS / v->grid[1] > 1 ? POSITIONS / v->grid[1] : 1, sizeof(T), PARTS_WANTED);
    s.wide = ceil_div(v->grid[1], ceil_div(v->grid[1], POSITIONS));
    for (int64_t c = 0; c < v->block; c++) {
        for (int64_t t = 0; t < v->taps; t++) {
            offset[c * v->taps + t] = c * v->plane + offset_of(v, tap[t][0], tap[t][1]);
        }
    }
    s.offset = offset;
    double work =
        (double)p->batch * (double)(v->grid[0] * v->grid[1]) * (double)(p->groups * p->out) * (double)(p->in * v->taps);
    int64_t workers = work < SERIAL_WORK ? 1 : least(nr_threads(), s.tasks), sums = s.tasks * s.part;
    s.scratch_size = ceil_div(v->rows * s.wide * PANEL_COLS + v->block * v->plane + LANES, 16) * 16;
    size_t bytes = (size_t)(sums + s.scratch_size * workers) * sizeof(T);
    s.sums = nr_scratch(bytes);
    if (s.sums) {
        s.scratch = s.sums + sums;
        nr_parallel(workers, NAME(weight_worker), &s);
        for (int64_t part = 0; part < p->groups * s.blocks && workers == 1; part++) NAME(gather_block)(&s, part);
        if (workers > 1) nr_parallel(p->groups * s.blocks, NAME(gather_block), &s);
        nr_scratch_free(s.sums, bytes);
    }
    nr_scratch_free(tables, (size_t)(v->taps * (2 + v->block)) * sizeof(int64_t));
    return s.sums ? NORCH_OK : no_scratch(bytes);
}
