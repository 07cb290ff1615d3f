/* conv_loops: the products behind a convolution and its adjoints, for one float type T; included by conv_isa.c after
 * gemm_tile.h.
 *
 *   y and x (correlate)                          weight (outer)
 *   C[channel][position] =                       C[tap][channel] +=
 *     A[channel][tap] B[tap][position]             A[tap][position] B[position][channel]
 *   B: a panel of PANEL_COLS positions at a      A: read where it lies, in the padded rows
 *   time, packed from the padded rows            B: the gradient, transposed a band at a time */

/* `channels` planes at `from`, the rows that `rows` grid rows from `first` on see, laid down at `to`. */
static __attribute__((noinline)) void NAME(pad_band)(const view *v, const T *from, int64_t channels, int64_t first,
                                                     int64_t rows, T *to) {
    int64_t padded = (rows - 1) * v->step[0] + v->span[0], step = v->step[1];
    for (int64_t c = 0; c < channels; c++, from += v->size[0] * v->size[1]) {
        for (int64_t r = 0; r < padded; r++) {
            T *row = to + c * v->plane + r * v->pitch;
            int64_t at = first * v->step[0] + v->low[0] + r;
            bool outside = at < 0 || at >= v->size[0];
            for (int64_t q = 0; q < step; q++, row += v->residue) {
                /* element u of this residue is column u * step + low + q of the source */
                int64_t low = v->low[1] + q, begin = low < 0 ? least(ceil_div(-low, step), v->residue) : 0;
                int64_t end = low < v->size[1] ? least(ceil_div(v->size[1] - low, step), v->residue) : 0;
                if (outside || end < begin) end = begin = v->residue;
                for (int64_t u = 0; u < begin; u++) row[u] = 0;
                int64_t n = end - begin, u = 0;
                const T *source = n ? from + at * v->size[1] + low + begin * step : NULL;
                T *part = row + begin;
                if (step == 1 && n >= LANES) {
                    for (; u + LANES <= n; u += LANES) *(NAME(vec_at) *)(part + u) = VEC(source + u);
                    *(NAME(vec_at) *)(part + n - LANES) = VEC(source + n - LANES);
                    u = n;
                }
                for (; u < n; u++) part[u] = source[u * step];
                for (u = end; u < v->residue; u++) row[u] = 0;
            }
        }
    }
}

/* ---- correlation: the outputs of a grid from the taps of a source -------------------------------- */

typedef struct NAME(correlation) {
    view v;
    int64_t groups, m; /* rows of A, which are output channels, in a group */
    const T *source, *a, *start;
    T *out;
    int64_t out_plane, out_row, out_column;
    const int64_t *offset; /* of each tap, in the padded rows */
    T *scratch;
    int64_t scratch_size; /* for one slot */
    int64_t bands, tasks;
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

static ALWAYS_INLINE void NAME(pack_moves)(int count, const NAME(moves) * moves, const view *v, const int64_t *offset,
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

/* A tile's sums into outputs that do not lie side by side. */
static void NAME(strew)(const NAME(correlation) * s, const T *sums, int rows, int64_t position, int columns, T *out,
                        bool add) {
    for (int j = 0; j < columns; j++) {
        T *at = out + (position + j) / s->v.grid[1] * s->out_row + (position + j) % s->v.grid[1] * s->out_column;
        for (int i = 0; i < rows; i++, at += s->out_plane) *at = sums[i * PANEL_COLS + j] + (add ? *at : (T)0);
    }
}

/* All panels of a band for a block of channels, whose part of A begins at a. */
static void NAME(correlate_block)(const NAME(correlation) * s, const T *padded, T *panel, int64_t channels, int64_t k,
                                  int64_t rows, const T *a, const T *start, T *out, int64_t position, bool add) {
    const view *v = &s->v;
    int64_t depth = channels * v->taps, positions = rows * v->grid[1];
    int64_t height = BLOCK_BYTES / (depth * (int64_t)sizeof(T)) / TILE_ROWS * TILE_ROWS;
    if (height < 2 * TILE_ROWS) height = 2 * TILE_ROWS;
    bool dense = s->out_column == 1 && s->out_row == v->grid[1];
    for (int64_t m0 = 0; m0 < s->m; m0 += height) {
        int64_t high = least(height, s->m - m0), tiles = ceil_div(high, TILE_ROWS);
        for (int64_t p = 0; p < positions; p += PANEL_COLS) {
            NAME(moves) moves;
            T sums[TILE_ROWS * PANEL_COLS] __attribute__((aligned(VECTOR)));
            TARGET to = {.c_row = s->out_plane, .add = add, .cols = (int)least(PANEL_COLS, positions - p)};
            NAME(find_moves)(v, p, to.cols, &moves);
            NAME(pack_positions)(&moves, v, s->offset, padded, channels, panel);
            int64_t row = m0;
            for (int64_t t = 0; t < tiles; t++, row += to.rows) {
                to.rows = (int)(high / tiles + (t < high % tiles));
                to.start = start ? start + row : NULL;
                to.c = out + row * s->out_plane + position + p;
                if (!dense) to.c = sums, to.c_row = PANEL_COLS, to.add = 0;
                NAME(tiles)[to.rows - 1][to.cols > LANES](depth, a + row * k, k, 1, panel, PANEL_COLS, &to);
                if (!dense) NAME(strew)(s, sums, to.rows, position + p, to.cols, out + row * s->out_plane, add);
            }
        }
    }
}

static void NAME(correlate_slot)(void *context, int64_t slot) {
    NAME(correlation) *s = context;
    const view *v = &s->v;
    T *panel = s->scratch + slot * s->scratch_size, *padded = panel + (v->block * v->taps + 1) * PANEL_COLS;
    int64_t k = v->channels * v->taps, source_plane = v->size[0] * v->size[1];
    for (int64_t task; (task = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < s->tasks;) {
        int64_t first = task % s->bands * v->rows, rows = least(v->rows, v->grid[0] - first);
        int64_t item = task / s->bands, group = item % s->groups; /* item: of the batch, and of its groups */
        for (int64_t c = 0; c < v->channels; c += v->block) {
            int64_t channels = least(v->block, v->channels - c);
            NAME(pad_band)(v, s->source + (item * v->channels + c) * source_plane, channels, first, rows, padded);
            NAME(correlate_block)(s, padded, panel, channels, k, rows, s->a + group * s->m * k + c * v->taps,
                                  s->start && c == 0 ? s->start + group * s->m : NULL,
                                  s->out + item * s->m * s->out_plane, first * v->grid[1], c > 0);
        }
    }
}

/* Runs a correlation whose taps are at tap[]; `offset` has room for one number a tap. */
static int32_t NAME(correlate)(NAME(correlation) * s, int64_t batch, const int64_t (*tap)[2], int64_t *offset) {
    view *v = &s->v;
    bound_taps(v, tap);
    v->block = DEPTH / v->taps > 1 ? least(DEPTH / v->taps, v->channels) : 1;
    v->block = ceil_div(v->channels, ceil_div(v->channels, v->block));
    choose_band(v, v->grid[0], sizeof(T), batch * s->groups);
    for (int64_t t = 0; t < v->taps; t++) offset[t] = offset_of(v, tap[t][0], tap[t][1]);
    s->offset = offset;
    s->bands = ceil_div(v->grid[0], v->rows);
    s->tasks = batch * s->groups * s->bands;
    s->next = 0;
    double work = (double)s->tasks * (double)(v->rows * v->grid[1]) * (double)(v->channels * v->taps) * (double)s->m;
    int64_t slots = work < SERIAL_WORK ? 1 : least(nr_threads(), s->tasks);
    s->scratch_size = (v->block * v->taps + 1) * PANEL_COLS + v->block * v->plane + LANES;
    s->scratch_size = ceil_div(s->scratch_size, 16) * 16;
    size_t bytes = (size_t)(s->scratch_size * slots) * sizeof(T);
    s->scratch = nr_scratch(bytes);
    if (!s->scratch) return no_scratch(bytes);
    if (slots == 1)
        NAME(correlate_slot)(s, 0);
    else
        nr_parallel(slots, NAME(correlate_slot), s);
    nr_scratch_free(s->scratch, bytes);
    return NORCH_OK;
}

static int32_t NAME(forward)(const nr_conv_plan *p) {
    NAME(correlation) s = {.groups = p->groups, .m = p->out, .source = p->x, .a = p->weight, .start = p->bias};
    s.v.channels = p->in;
    s.v.taps = p->kernel[0] * p->kernel[1];
    for (int d = 0; d < 2; d++) {
        s.v.size[d] = p->size[d];
        s.v.step[d] = p->stride[d];
        s.v.grid[d] = p->result[d];
    }
    s.out = p->y;
    s.out_plane = p->result[0] * p->result[1];
    s.out_row = p->result[1];
    s.out_column = 1;
    size_t bytes = (size_t)s.v.taps * 3 * sizeof(int64_t);
    int64_t *room = nr_scratch(bytes);
    if (!room) return no_scratch(bytes);
    int64_t (*tap)[2] = (int64_t (*)[2])room;
    forward_taps(p, tap);
    int32_t status = NAME(correlate)(&s, p->batch, tap, room + 2 * s.v.taps);
    nr_scratch_free(room, bytes);
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

/* A stride of s makes s * s correlations of y with a part of the taps each: a phase gives the x whose place is
 * phase modulo s. */
static int32_t NAME(input)(const nr_conv_plan *p) {
    int64_t taps = p->kernel[0] * p->kernel[1], matrix = p->groups * p->in * p->out * taps;
    size_t bytes = (size_t)taps * 4 * sizeof(int64_t) + (size_t)matrix * sizeof(T);
    int64_t *room = nr_scratch(bytes);
    if (!room) return no_scratch(bytes);
    int64_t (*tap)[2] = (int64_t (*)[2])room, *which = room + 2 * taps, *offset = room + 3 * taps;
    T *a = (T *)(room + 4 * taps);
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
        T *to = a;
        for (int64_t g = 0; g < p->groups; g++) {
            for (int64_t c = 0; c < p->in; c++) {
                for (int64_t o = 0; o < p->out; o++) {
                    const T *kernel = weight + ((g * p->out + o) * p->in + c) * taps;
                    for (int64_t t = 0; t < count; t++) *to++ = kernel[which[t]];
                }
            }
        }
        status = NAME(correlate)(&s, p->batch, tap, offset);
    }
    nr_scratch_free(room, bytes);
    return status;
}

/* ---- the weight: sums over all positions ---------------------------------------------------------- */

typedef struct NAME(weights) {
    view v;
    const nr_conv_plan *p;
    const int64_t *offset; /* of each tap of each channel of a block */
    int64_t width;         /* output channels of a group, in whole vectors */
    int64_t blocks, chunks;
    T *sums; /* (chunks, groups, blocks, block * taps, width) */
    T *scratch;
    int64_t scratch_size, tasks;
    _Atomic int64_t next;
} NAME(weights);

/* rows taps x vectors of channels: each position of a band gives one rank-1 update. */
static ALWAYS_INLINE void NAME(outer)(int rows, int vectors, const view *v, int64_t grid_rows, const T *padded,
                                      const int64_t *offset, const T *b, T *c, int64_t c_row) {
    NAME(vec) sum[OUTER_ROWS][TILE_VECTORS];
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = VEC(c + i * c_row + j * LANES);
    }
    for (int64_t r = 0; r < grid_rows; r++) {
        const T *at[OUTER_ROWS];
        UNROLL for (int i = 0; i < rows; i++) at[i] = padded + offset[i] + r * v->step[0] * v->pitch;
        for (int64_t x = 0; x < v->grid[1]; x++, b += PANEL_COLS) {
            NAME(vec) row[TILE_VECTORS];
            UNROLL for (int j = 0; j < vectors; j++) row[j] = VEC(b + j * LANES);
            UNROLL for (int i = 0; i < rows; i++) {
                UNROLL for (int j = 0; j < vectors; j++) sum[i][j] += at[i][x] * row[j];
            }
        }
    }
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int j = 0; j < vectors; j++) * (NAME(vec_at) *)(c + i * c_row + j * LANES) = sum[i][j];
    }
}

typedef void (*NAME(outer_of))(const view *v, int64_t grid_rows, const T *padded, const int64_t *offset, const T *b,
                               T *c, int64_t c_row);
#define OUTERS(rows)                                                                                             \
    static void NAME(outer_##rows##x1)(const view *v, int64_t grid_rows, const T *padded, const int64_t *offset, \
                                       const T *b, T *c, int64_t c_row) {                                        \
        NAME(outer)(rows, 1, v, grid_rows, padded, offset, b, c, c_row);                                         \
    }                                                                                                            \
    static void NAME(outer_##rows##x2)(const view *v, int64_t grid_rows, const T *padded, const int64_t *offset, \
                                       const T *b, T *c, int64_t c_row) {                                        \
        NAME(outer)(rows, 2, v, grid_rows, padded, offset, b, c, c_row);                                         \
    }
EACH_OUTER_ROW(OUTERS)
#undef OUTERS
#define OUTERS(rows) {NAME(outer_##rows##x1), NAME(outer_##rows##x2)},
static const NAME(outer_of) NAME(outers)[OUTER_ROWS][TILE_VECTORS] = {EACH_OUTER_ROW(OUTERS)};
#undef OUTERS

/* One image's part of the sums of a block of channels. */
static void NAME(add_image)(const NAME(weights) * s, int64_t image, int64_t group, int64_t block, T *scratch, T *sums) {
    const view *v = &s->v;
    const nr_conv_plan *p = s->p;
    int64_t c = block * v->block, channels = least(v->block, v->channels - c), taps = channels * v->taps;
    int64_t area = v->grid[0] * v->grid[1], item = image * p->groups + group, tiles = ceil_div(taps, OUTER_ROWS);
    T *panel = scratch, *padded = scratch + v->rows * v->grid[1] * PANEL_COLS;
    for (int64_t first = 0; first < v->grid[0]; first += v->rows) {
        int64_t rows = least(v->rows, v->grid[0] - first);
        const T *x = (const T *)p->x + (item * v->channels + c) * v->size[0] * v->size[1];
        NAME(pad_band)(v, x, channels, first, rows, padded);
        for (int64_t o = 0; o < p->out; o += PANEL_COLS) {
            int64_t columns = least(PANEL_COLS, p->out - o), at = 0;
            const T *y = (const T *)p->y + (item * p->out + o) * area + first * v->grid[1];
            NAME(pack)(PANEL_COLS, panel, rows * v->grid[1], y, area, 1, (int)columns);
            for (int64_t t = 0; t < tiles; t++) {
                int64_t count = taps / tiles + (t < taps % tiles);
                NAME(outers)
                [count - 1][columns > LANES](v, rows, padded, s->offset + at, panel, sums + at *s->width + o, s->width);
                at += count;
            }
        }
    }
}

/* A task: a chunk of the images for a block of channels. */
static void NAME(weight_slot)(void *context, int64_t slot) {
    NAME(weights) *s = context;
    int64_t size = s->v.block * s->v.taps * s->width;
    for (int64_t task; (task = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < s->tasks;) {
        T *sums = s->sums + task * size;
        memset(sums, 0, (size_t)size * sizeof(T));
        int64_t each = ceil_div(s->p->batch, s->chunks), chunk = task / (s->p->groups * s->blocks);
        int64_t part = task % (s->p->groups * s->blocks), last = least(s->p->batch, (chunk + 1) * each);
        for (int64_t image = chunk * each; image < last; image++) {
            NAME(add_image)(s, image, part / s->blocks, part % s->blocks, s->scratch + slot * s->scratch_size, sums);
        }
    }
}

/* Adds the chunks in their order and turns the sums over, into (groups * out, in, taps). */
static void NAME(gather_sums)(const NAME(weights) * s) {
    const nr_conv_plan *p = s->p;
    int64_t taps = s->v.taps, size = s->v.block * taps * s->width, parts = p->groups * s->blocks;
    for (int64_t g = 0; g < p->groups; g++) {
        for (int64_t k = 0; k < p->in * taps; k++) {
            const T *from = s->sums + (g * s->blocks + k / (s->v.block * taps)) * size;
            from += k % (s->v.block * taps) * s->width;
            T *to = (T *)p->weight + g * p->out * p->in * taps + k;
            for (int64_t o = 0; o < p->out; o++) {
                T total = from[o];
                for (int64_t chunk = 1; chunk < s->chunks; chunk++) total += from[chunk * parts * size + o];
                to[o * p->in * taps] = total;
            }
        }
    }
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
    v->block = DEPTH / v->taps > 1 ? least(DEPTH / v->taps, v->channels) : 1;
    s.blocks = ceil_div(v->channels, v->block);
    v->block = ceil_div(v->channels, s.blocks);
    s.blocks = ceil_div(v->channels, v->block);
    s.chunks = least(p->batch, ceil_div(PARTS_WANTED, s.blocks * p->groups));
    if (s.chunks < 1) s.chunks = 1;
    s.tasks = s.chunks * p->groups * s.blocks;
    s.width = ceil_div(p->out, LANES) * LANES;
    int64_t *room = nr_scratch((size_t)(v->taps * (2 + v->block)) * sizeof(int64_t));
    if (!room) return no_scratch((size_t)(v->taps * (2 + v->block)) * sizeof(int64_t));
    int64_t (*tap)[2] = (int64_t (*)[2])room, *offset = room + 2 * v->taps;
    forward_taps(p, tap);
    bound_taps(v, tap);
    choose_band(v, POSITIONS / v->grid[1] > 1 ? POSITIONS / v->grid[1] : 1, sizeof(T), PARTS_WANTED);
    for (int64_t c = 0; c < v->block; c++) {
        for (int64_t t = 0; t < v->taps; t++) {
            offset[c * v->taps + t] = c * v->plane + offset_of(v, tap[t][0], tap[t][1]);
        }
    }
    s.offset = offset;
    double work =
        (double)p->batch * (double)(v->grid[0] * v->grid[1]) * (double)(p->groups * p->out) * (double)(p->in * v->taps);
    int64_t slots = work < SERIAL_WORK ? 1 : least(nr_threads(), s.tasks),
            sums = s.tasks * v->block * v->taps * s.width;
    s.scratch_size = ceil_div(v->rows * v->grid[1] * PANEL_COLS + v->block * v->plane, 16) * 16;
    size_t bytes = (size_t)(sums + s.scratch_size * slots) * sizeof(T);
    s.sums = nr_scratch(bytes);
    if (s.sums) {
        s.scratch = s.sums + sums;
        if (slots == 1)
            NAME(weight_slot)(&s, 0);
        else
            nr_parallel(slots, NAME(weight_slot), &s);
        NAME(gather_sums)(&s);
        nr_scratch_free(s.sums, bytes);
    }
    nr_scratch_free(room, (size_t)(v->taps * (2 + v->block)) * sizeof(int64_t));
    return s.sums ? NORCH_OK : no_scratch(bytes);
}
