/* conv_correlate: the outputs of a grid from the taps of a source, for one float type: a template of each_dtype.h.
 * Forward it gives y of x, backward x of y.
 *
 *   C[channel][position] = sum over taps of A[channel][tap] B[tap][position]
 *
 *          padded rows of an input channel          a tile of C, held in registers: TILE_ROWS channels x TILE_VECTORS
 *          0 0 0 0 0 0 0 0 ..                       vectors of neighbouring positions. For each tap (channel, r, c) the
 *          0 a b c d e f g ..                       vectors are loaded from where they lie, r rows and c columns on,
 *            |tap (1, 1)--->                        and multiplied by that tap's weight of each channel
 *
 * Nothing is unfolded: Zhang, Franchetti and Low, "High Performance Zero-Memory Overhead Direct Convolutions" (2018). A
 * vector ends with its row of the grid. If that would leave too many lanes idle (a grid 7 wide), the taps of PANEL_COLS
 * positions across rows are first packed into a panel, as in a matrix product. */

#include "conv_pad.h"

typedef struct NAME(correlation) {
    view v;
    int64_t groups, m; /* rows of A, which are output channels, in a group */
    const T *source, *a, *start;
    T *out;
    int64_t out_plane, out_row, out_column;
    bool packed;
    const int64_t *offset;     /* of each tap, in the padded rows */
    const int64_t *tap_offset; /* offset of each tap of each channel of a block there, or in the panel */
    T *scratch;
    int64_t scratch_size, panel; /* for one worker, and for its panel */
    int64_t bands, items, tasks;
    _Atomic int64_t next;
} NAME(correlation);

/* A panel's copy: vector `i` of a row goes to `lane[i]` from `at[i]`; each may run over what the next one writes. */
typedef struct NAME(moves) {
    int count;
    int lane[PANEL_COLS];
    int64_t at[PANEL_COLS];
} NAME(moves);

static void NAME(find_moves)(const view *v, int64_t position, int64_t columns, NAME(moves) * moves) {
    int64_t i = position / v->grid[1], j = position % v->grid[1];
    moves->count = 0;
    for (int64_t lane = 0; lane < columns; i++, j = 0) {
        int64_t n = least(v->grid[1] - j, columns - lane);
        for (int64_t u = 0; u < n; u += LANES) {
            moves->lane[moves->count] = (int)(lane + u);
            moves->at[moves->count++] = i * v->step[0] * v->pitch + j + u;
        }
        lane += n;
    }
}

INLINE void NAME(pack_moves)(int count, const NAME(moves) * moves, const view *v, const int64_t *offset,
                             const T *padded, int64_t channels, T *to) {
    for (int64_t c = 0; c < channels; c++, padded += v->plane) {
        for (int64_t t = 0; t < v->taps; t++, to += PANEL_COLS) {
            const T *from = padded + offset[t];
            for (int i = 0; i < count; i++) *(NAME(vec_at) *)(to + moves->lane[i]) = VEC(from + moves->at[i]);
        }
    }
}

static __attribute__((noinline)) void NAME(pack_positions)(const NAME(moves) * moves, const view *v,
                                                           const int64_t *offset, const T *padded, int64_t channels,
                                                           T *to) {
    switch (moves->count) {
    case 1: NAME(pack_moves)(1, moves, v, offset, padded, channels, to); return;
    case 2: NAME(pack_moves)(2, moves, v, offset, padded, channels, to); return;
    case 3: NAME(pack_moves)(3, moves, v, offset, padded, channels, to); return;
    default: NAME(pack_moves)(moves->count, moves, v, offset, padded, channels, to);
    }
}

/* The vectors of a tile. `lanes_left` is the number of lanes that may be written: the next row overwrites elements
 * after a row's end. */
typedef struct NAME(spot) {
    const T *from[TILE_VECTORS];                                                   /* in the padded rows or the panel */
    int64_t position[TILE_VECTORS], count[TILE_VECTORS], lanes_left[TILE_VECTORS]; /* in the outputs */
    int64_t plane;                                                                 /* from channel to channel there */
    bool add;
} NAME(spot);

/* Stores the sums of a tile, PANEL_COLS to a row, where not all lanes may be written, or outputs are added to. */
static __attribute__((noinline)) void NAME(store_sums)(const T *sums, int rows, int vectors, T *out,
                                                       const NAME(spot) * spot) {
    for (int j = 0; j < vectors; j++, sums += LANES) {
        T *to = out + spot->position[j];
        int count = (int)spot->count[j];
        for (int i = 0; i < rows; i++, to += spot->plane) {
            NAME(vec) total = VEC(sums + i * PANEL_COLS);
            if (spot->add) total += NAME(load_part)(to, count);
            NAME(store_part)(to, count, total);
        }
    }
}

/* `rows` channels x `vectors` vectors of positions. Tap k of vector j is at from[j] + offset[k]. `rows` and `vectors`
 * are constants wherever this is inlined. */
INLINE void NAME(see)(int rows, int vectors, int64_t depth, const T *a, int64_t a_row, const int64_t *offset,
                      const T *start, T *out, const NAME(spot) * spot) {
    NAME(vec) sum[TILE_ROWS][TILE_VECTORS];
    const T *at[TILE_VECTORS];
    UNROLL for (int j = 0; j < vectors; j++) at[j] = spot->from[j];
    UNROLL for (int i = 0; i < rows; i++) {
        T first = start ? start[i] : (T)0;
        UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = (NAME(vec)){0} + first;
    }
    for (int64_t k = 0; k < depth; k++, a++) {
        NAME(vec) seen[TILE_VECTORS];
        UNROLL for (int j = 0; j < vectors; j++) seen[j] = VEC(at[j] + offset[k]);
        UNROLL for (int i = 0; i < rows; i++) {
            UNROLL for (int j = 0; j < vectors; j++) sum[i][j] += a[i * a_row] * seen[j];
        }
    }
    bool whole = !spot->add;
    UNROLL for (int j = 0; j < vectors; j++) whole &= spot->lanes_left[j] >= LANES;
    if (!whole) {
        T sums[TILE_ROWS * PANEL_COLS] __attribute__((aligned(VECTOR)));
        UNROLL for (int i = 0; i < rows; i++) {
            UNROLL for (int j = 0; j < vectors; j++) STORE(sums + i * PANEL_COLS + j * LANES, sum[i][j]);
        }
        NAME(store_sums)(sums, rows, vectors, out, spot);
        return;
    }
    UNROLL for (int j = 0; j < vectors; j++) {
        T *to = out + spot->position[j];
        UNROLL for (int i = 0; i < rows; i++, to += spot->plane) STORE(to, sum[i][j]);
    }
}

typedef void (*NAME(see_of))(int64_t depth, const T *a, int64_t a_row, const int64_t *offset, const T *start, T *out,
                             const NAME(spot) * spot);
#define SEES(rows)                                                                                                    \
    static void NAME(see_##rows##x1)(int64_t depth, const T *a, int64_t a_row, const int64_t *offset, const T *start, \
                                     T *out, const NAME(spot) * spot) {                                               \
        NAME(see)(rows, 1, depth, a, a_row, offset, start, out, spot);                                                \
    }                                                                                                                 \
    static void NAME(see_##rows##x2)(int64_t depth, const T *a, int64_t a_row, const int64_t *offset, const T *start, \
                                     T *out, const NAME(spot) * spot) {                                               \
        NAME(see)(rows, 2, depth, a, a_row, offset, start, out, spot);                                                \
    }
EACH_TILE_ROW(SEES)
#undef SEES
#define SEES(rows) {NAME(see_##rows##x1), NAME(see_##rows##x2)},
static const NAME(see_of) NAME(sees)[TILE_ROWS][TILE_VECTORS] = {EACH_TILE_ROW(SEES)};
#undef SEES

/* A tile whose outputs are not contiguous. */
static __attribute__((noinline)) void NAME(see_apart)(const NAME(correlation) * s, int64_t rows, int64_t vectors,
                                                      int64_t depth, const T *a, int64_t a_row, const T *start, T *out,
                                                      const NAME(spot) * spot) {
    T sums[TILE_ROWS * PANEL_COLS] __attribute__((aligned(VECTOR)));
    NAME(spot) dense = *spot;
    dense.plane = PANEL_COLS;
    dense.add = false;
    for (int64_t j = 0; j < vectors; j++) dense.position[j] = j * LANES, dense.lanes_left[j] = LANES;
    NAME(sees)[rows - 1][vectors - 1](depth, a, a_row, s->tap_offset, start, sums, &dense);
    for (int64_t j = 0; j < vectors; j++) {
        int64_t row = spot->position[j] / s->v.grid[1], column = spot->position[j] % s->v.grid[1];
        for (int64_t lane = 0; lane < spot->count[j]; lane++) {
            T *at = out + row * s->out_row + column * s->out_column;
            for (int64_t i = 0; i < rows; i++, at += s->out_plane)
                *at = sums[i * PANEL_COLS + j * LANES + lane] + (spot->add ? *at : (T)0);
            if (++column == s->v.grid[1]) row++, column = 0;
        }
    }
}

/* All positions of a band for a block of channels. a is the part of A of this block. */
static void NAME(correlate_block)(const NAME(correlation) * s, const T *padded, T *panel, int64_t channels, int64_t k,
                                  int64_t rows, const T *a, const T *start, T *out, int64_t position, bool add) {
    const view *v = &s->v;
    int64_t depth = channels * v->taps, wide = s->packed ? rows * v->grid[1] : v->grid[1],
            positions = rows * v->grid[1];
    int64_t height = BLOCK_BYTES / (depth * (int64_t)sizeof(T)) / TILE_ROWS * TILE_ROWS;
    if (height < 2 * TILE_ROWS) height = 2 * TILE_ROWS;
    bool dense = s->out_column == 1 && s->out_row == v->grid[1];
    for (int64_t m0 = 0; m0 < s->m; m0 += height) {
        int64_t high = least(height, s->m - m0), tiles = ceil_div(high, TILE_ROWS), i = 0, j = 0, at = 0;
        while (at < positions) {
            NAME(spot) spot = {.plane = s->out_plane, .add = add};
            int64_t vectors = 0, row = m0, begin = at;
            for (; vectors < TILE_VECTORS && at < positions; vectors++) {
                spot.from[vectors] = s->packed ? panel + vectors * LANES : padded + i * v->step[0] * v->pitch + j;
                spot.position[vectors] = position + at;
                spot.lanes_left[vectors] = positions - at;
                int64_t count = spot.count[vectors] = least(LANES, wide - j);
                at += count, j += count;
                if (j == wide) i++, j = 0;
            }
            if (s->packed) {
                NAME(moves) moves;
                NAME(find_moves)(v, begin, at - begin, &moves);
                NAME(pack_positions)(&moves, v, s->offset, padded, channels, panel);
            }
            for (int64_t t = 0; t < tiles; t++) {
                int64_t count = high / tiles + (t < high % tiles);
                const T *first = start ? start + row : NULL, *part = a + row * k;
                if (dense) NAME(sees)
                [count - 1][vectors - 1](depth, part, k, s->tap_offset, first, out + row *s->out_plane, &spot);
                else NAME(see_apart)(s, count, vectors, depth, part, k, first, out + row * s->out_plane, &spot);
                row += count;
            }
        }
    }
}

static void NAME(correlate_worker)(void *context, int64_t worker) {
    NAME(correlation) *s = context;
    const view *v = &s->v;
    T *panel = s->scratch + worker * s->scratch_size, *padded = panel + s->panel;
    int64_t k = v->channels * v->taps, source_plane = v->size[0] * v->size[1];
    const T *end = s->source + s->items * v->channels * source_plane;
    for (int64_t task; (task = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < s->tasks;) {
        int64_t first = task % s->bands * v->rows, rows = least(v->rows, v->grid[0] - first);
        int64_t item = task / s->bands, group = item % s->groups; /* item: of the batch, and of its groups */
        for (int64_t c = 0; c < v->channels; c += v->block) {
            int64_t channels = least(v->block, v->channels - c);
            NAME(pad_band)(v, s->source + (item * v->channels + c) * source_plane, s->source, end, channels, first,
                           rows, padded);
            NAME(correlate_block)(s, padded, panel, channels, k, rows, s->a + group * s->m * k + c * v->taps,
                                  s->start && c == 0 ? s->start + group * s->m : NULL,
                                  s->out + item * s->m * s->out_plane, first * v->grid[1], c > 0);
        }
    }
}

/* Decides whether panels are packed, and the number of channels that are summed before their sum is added to the sum of
 * earlier channels. */
static void NAME(choose_block)(NAME(correlation) * s) {
    view *v = &s->v;
    int64_t idle = ceil_div(v->grid[1], LANES) * LANES - v->grid[1]; /* lanes of each row, if nothing is packed */
    s->packed = s->m * idle > PACKING_ROWS * v->grid[1];
    int64_t depth = s->packed ? PACKED_DEPTH : DEPTH;
    v->block = depth / v->taps > 1 ? least(depth / v->taps, v->channels) : 1;
    v->block = ceil_div(v->channels, ceil_div(v->channels, v->block));
}

/* Runs a correlation whose taps are at tap[]; `offset` takes one number a tap. */
static int32_t NAME(correlate)(NAME(correlation) * s, int64_t batch, const int64_t (*tap)[2], int64_t *offset) {
    view *v = &s->v;
    bound_taps(v, tap);
    NAME(choose_block)(s);
    int64_t depth = v->block * v->taps;
    choose_band(v, v->grid[0], sizeof(T), batch * s->groups);
    for (int64_t t = 0; t < v->taps; t++) offset[t] = offset_of(v, tap[t][0], tap[t][1]);
    s->offset = offset;
    s->bands = ceil_div(v->grid[0], v->rows);
    s->items = batch * s->groups;
    s->tasks = s->items * s->bands;
    s->next = 0;
    double work = (double)s->tasks * (double)(v->rows * v->grid[1]) * (double)(v->channels * v->taps) * (double)s->m;
    int64_t workers = work < SERIAL_WORK ? 1 : least(nr_threads(), s->tasks);
    s->panel = s->packed ? (depth + 1) * PANEL_COLS : 0;
    s->scratch_size = ceil_div(s->panel + v->block * v->plane + LANES, 16) * 16;
    size_t tap_bytes = (size_t)ceil_div(depth, 8) * 64,
           bytes = tap_bytes + (size_t)(s->scratch_size * workers) * sizeof(T);
    int64_t *tap_offset = nr_scratch(bytes);
    if (!tap_offset) return no_scratch(bytes);
    for (int64_t k = 0; k < depth; k++)
        tap_offset[k] = s->packed ? k * PANEL_COLS : k / v->taps * v->plane + offset[k % v->taps];
    s->tap_offset = tap_offset;
    s->scratch = (T *)((char *)tap_offset + tap_bytes);
    nr_parallel(workers, NAME(correlate_worker), s);
    nr_scratch_free(tap_offset, bytes);
    return NORCH_OK;
}

static view NAME(forward_view)(const nr_conv_plan *p) {
    view v = {.channels = p->in, .taps = p->kernel[0] * p->kernel[1]};
    for (int d = 0; d < 2; d++) {
        v.size[d] = p->size[d];
        v.step[d] = p->stride[d];
        v.grid[d] = p->result[d];
    }
    return v;
}

static int32_t NAME(forward)(const nr_conv_plan *p) {
    NAME(correlation) s = {.groups = p->groups, .m = p->out, .source = p->x, .a = p->weight, .start = p->bias};
    s.v = NAME(forward_view)(p);
    s.out = p->y;
    s.out_plane = p->result[0] * p->result[1];
    s.out_row = p->result[1];
    s.out_column = 1;
    size_t bytes = (size_t)s.v.taps * 3 * sizeof(int64_t);
    int64_t *tables = nr_scratch(bytes);
    if (!tables) return no_scratch(bytes);
    int64_t (*tap)[2] = (int64_t (*)[2])tables;
    forward_taps(p, tap);
    int32_t status = NAME(correlate)(&s, p->batch, tap, tables + 2 * s.v.taps);
    nr_scratch_free(tables, bytes);
    return status;
}

/* Positions of x that no tap reaches: the bias, or zeros. */
static void NAME(fill_phase)(const NAME(correlation) * s, int64_t planes) {
    for (int64_t c = 0; c < planes; c++) {
        T value = s->start ? s->start[c % (s->groups * s->m)] : (T)0, *plane = s->out + c * s->out_plane;
        for (int64_t i = 0; i < s->v.grid[0]; i++) {
            for (int64_t j = 0; j < s->v.grid[1]; j++) plane[i * s->out_row + j * s->out_column] = value;
        }
    }
}

/* Positions outside y have no part in x, but an infinite weight times the zeros of padded rows is NaN. Such sums are
 * computed again, without padding. */
static void NAME(sum_inside)(const NAME(correlation) * s, const int64_t (*tap)[2]) {
    const view *v = &s->v;
    int64_t k = v->channels * v->taps, source_plane = v->size[0] * v->size[1];
    int not_finite = 0; /* whether a weight is not finite */
    for (int64_t i = 0; i < s->groups * s->m * k; i++) not_finite |= s->a[i] * 0 != 0;
    if (!not_finite) return;
    int64_t positions = v->grid[0] * v->grid[1];
    for (int64_t at = 0; at < s->items * s->m * positions; at++) {
        int64_t m = at / positions % s->m, item = at / positions / s->m, row = item % s->groups * s->m + m;
        int64_t i = at % positions / v->grid[1], j = at % v->grid[1];
        T *x = s->out + at / positions * s->out_plane + i * s->out_row + j * s->out_column;
        if (*x == *x) continue;
        T sum = s->start ? s->start[row] : (T)0;
        for (int64_t n = 0; n < k && sum == sum; n++) {
            int64_t r = i + tap[n % v->taps][0], c = j + tap[n % v->taps][1];
            if (r >= 0 && r < v->size[0] && c >= 0 && c < v->size[1])
                sum += s->a[row * k + n] *
                       s->source[(item * v->channels + n / v->taps) * source_plane + r * v->size[1] + c];
        }
        *x = sum;
    }
}

/* A stride of s gives s * s correlations of y, each with a part of the taps. A phase computes the x whose position
 * modulo s is the phase. */
static int32_t NAME(input)(const nr_conv_plan *p) {
    int64_t taps = p->kernel[0] * p->kernel[1], matrix = p->groups * p->in * p->out * taps;
    size_t bytes = (size_t)taps * 4 * sizeof(int64_t) + (size_t)matrix * sizeof(T);
    int64_t *tables = nr_scratch(bytes);
    if (!tables) return no_scratch(bytes);
    int64_t (*tap)[2] = (int64_t (*)[2])tables, *which = tables + 2 * taps, *offset = tables + 3 * taps;
    T *a = (T *)(tables + 4 * taps);
    const T *weight = p->weight;
    int32_t status = NORCH_OK;
    int64_t phase[2], across = least(p->stride[1], p->size[1]), phases = least(p->stride[0], p->size[0]) * across;
    for (int64_t i = 0; i < phases && status == NORCH_OK; i++) {
        phase[0] = i / across;
        phase[1] = i % across;
        NAME(correlation) s = {.groups = p->groups, .m = p->in, .source = p->y, .a = a, .start = p->bias};
        s.v.channels = p->out;
        for (int d = 0; d < 2; d++) {
            s.v.size[d] = p->result[d];
            s.v.step[d] = 1;
            s.v.grid[d] = ceil_div(p->size[d] - phase[d], p->stride[d]);
        }
        s.out = (T *)p->x + phase[0] * p->size[1] + phase[1];
        s.out_plane = p->size[0] * p->size[1];
        s.out_row = p->size[1] * p->stride[0];
        s.out_column = p->stride[1];
        int64_t count = s.v.taps = phase_taps(p, phase, tap, which);
        if (count == 0) {
            NAME(fill_phase)(&s, p->batch * p->groups * p->in);
            continue;
        }
        /* by squares of channels, so that all elements read and written stay in the first cache */
        for (int64_t g = 0; g < p->groups; g++)
            for (int64_t c0 = 0; c0 < p->in; c0 += SQUARE)
                for (int64_t o0 = 0; o0 < p->out; o0 += SQUARE)
                    for (int64_t c = c0; c < least(p->in, c0 + SQUARE); c++) {
                        T *to = a + ((g * p->in + c) * p->out + o0) * count;
                        for (int64_t o = o0; o < least(p->out, o0 + SQUARE); o++) {
                            const T *kernel = weight + ((g * p->out + o) * p->in + c) * taps;
                            for (int64_t t = 0; t < count; t++) *to++ = kernel[which[t]];
                        }
                    }
        status = NAME(correlate)(&s, p->batch, tap, offset);
        if (status == NORCH_OK) NAME(sum_inside)(&s, tap);
    }
    nr_scratch_free(tables, bytes);
    return status;
}
