/* conv_depth: depthwise convolutions, one channel to a group, for one float type: a template of each_dtype.h.
 *
 *   planes of LANES channels        a b c d ..      channel 0    a vector holds one position of LANES channels, so that
 *                                   A B C D ..      channel 1    neither the size of an image nor a stride leaves lanes
 *        -> [position][LANES]       aA.. bB.. cC..               idle, and a tap is one fused multiply-add a position
 *        -> results, likewise
 *        -> planes
 *
 * A task has a band of rows of LANES channels of one image (y and x) or of some images (weight); its transposed and
 * padded rows stay in the second cache. The gradient of the input is computed by phases, the positions of x modulo the
 * stride, each with only the taps that meet it, as in conv_correlate.h; y is transposed once for all phases. Blocks of
 * channels in the innermost position: Zhang, Franchetti and Low, "High Performance Zero-Memory Overhead Direct
 * Convolutions" (2018). */

typedef struct NAME(depth) {
    const nr_conv_plan *p;
    view v; /* of the source, x or (input) y; v.rows: grid rows of a band */
    const T *source;
    T *out;
    int64_t goal[2];                /* size of the result */
    int64_t phase[2];               /* phases by axis, 1 forward */
    int64_t first[MOST_PHASES + 1]; /* taps of each phase: first[f] .. first[f + 1] */
    int64_t which[MOST_TAPS], offset[MOST_TAPS];
    int64_t pitch, blocks, bands, chunks, tasks;
    T *scratch, *sums; /* sums: of a task of the weight's gradient, (taps + 1, LANES) */
    int64_t scratch_size;
    _Atomic int64_t next;
} NAME(depth);

/* `count` neighbours, a constant wherever this is inlined: `step` apart in the source, `apart` in the result. */
INLINE void NAME(see_depth)(int count, int64_t taps, const int64_t *offset, const T *weight, NAME(vec) start,
                            const T *in, int64_t step, T *out, int64_t apart) {
    NAME(vec) sum[NEIGHBOURS];
    UNROLL for (int i = 0; i < count; i++) sum[i] = start;
    for (int64_t t = 0; t < taps; t++) {
        const NAME(vec) w = VEC(weight + t * LANES);
        const T *at = in + offset[t];
        UNROLL for (int i = 0; i < count; i++) sum[i] += VEC(at + i * step) * w;
    }
    UNROLL for (int i = 0; i < count; i++) STORE(out + i * apart, sum[i]);
}

typedef void (*NAME(see_depth_of))(int64_t taps, const int64_t *offset, const T *weight, NAME(vec) start, const T *in,
                                   int64_t step, T *out, int64_t apart);
#define SEES(count)                                                                                            \
    static void NAME(see_depth_##count)(int64_t taps, const int64_t *offset, const T *weight, NAME(vec) start, \
                                        const T *in, int64_t step, T *out, int64_t apart) {                    \
        NAME(see_depth)(count, taps, offset, weight, start, in, step, out, apart);                             \
    }
EACH_NEIGHBOUR(SEES)
#undef SEES
#define SEES(count) NAME(see_depth_##count),
static const NAME(see_depth_of) NAME(sees_depth)[NEIGHBOURS] = {EACH_NEIGHBOUR(SEES)};
#undef SEES

/* The rows of a source that `rows` grid rows from `first` on read, of `lanes` channels, as [row][column][LANES]
 * surrounded by zeros. */
static void NAME(pad_turned)(const view *v, const T *from, int lanes, int64_t first, int64_t rows, T *to) {
    const int64_t high = (rows - 1) * v->step[0] + v->span[0], pitch = v->pitch * LANES,
                  plane = v->size[0] * v->size[1];
    const int64_t before = least(v->low[1] < 0 ? -v->low[1] : 0, v->pitch);
    const int64_t left = v->low[1] + before, n = greatest(0, least(v->pitch - before, v->size[1] - left));
    for (int64_t r = 0; r < high; r++, to += pitch) {
        const int64_t row = first * v->step[0] + v->low[0] + r;
        if (row < 0 || row >= v->size[0] || n == 0) {
            memset(to, 0, (size_t)pitch * sizeof(T));
            continue;
        }
        memset(to, 0, (size_t)(before * LANES) * sizeof(T));
        NAME(turn_lanes)(LANES, to + before * LANES, n, from + row * v->size[1] + left, plane, lanes);
        memset(to + (before + n) * LANES, 0, (size_t)((v->pitch - before - n) * LANES) * sizeof(T));
    }
}

/* Copies n positions of `lanes` channels, [position][LANES], to planes that are `apart` elements apart. */
static void NAME(to_planes)(int64_t n, int lanes, const T *from, T *to, int64_t apart) {
    if (n < LANES) {
        for (int64_t at = 0; at < n; at++)
            for (int i = 0; i < lanes; i++) to[i * apart + at] = from[at * LANES + i];
        return;
    }
    for (int64_t at = 0; at < n; at += LANES) {
        if (at + LANES > n) at = n - LANES; /* the last ones may overlap those before */
        NAME(turn)(apart, to + at, lanes, from + at * LANES, LANES);
    }
}

/* A band of the results of LANES channels. */
static void NAME(depth_band)(const NAME(depth) * s, int64_t task, T *scratch) {
    const nr_conv_plan *p = s->p;
    const view *v = &s->v;
    const int64_t taps = p->kernel[0] * p->kernel[1], first = task % s->bands * v->rows;
    const int64_t c = task / s->bands % s->blocks * LANES, image = task / s->bands / s->blocks;
    const int64_t rows = least(v->rows, v->grid[0] - first), plane = image * p->groups + c;
    const int lanes = (int)least(LANES, p->groups - c);
    const int64_t from = first * s->phase[0], to = least(s->goal[0], (first + rows) * s->phase[0]); /* rows of out */
    T kernel[MOST_TAPS * LANES] __attribute__((aligned(64))), weight[MOST_TAPS * LANES] __attribute__((aligned(64)));
    T *padded = scratch, *out = padded + ((v->rows - 1) * v->step[0] + v->span[0]) * s->pitch;
    NAME(turn_lanes)(LANES, kernel, taps, (const T *)p->weight + c * taps, taps, lanes);
    for (int64_t t = 0; t < v->taps; t++) STORE(weight + t * LANES, VEC(kernel + s->which[t] * LANES));
    const NAME(vec) start = p->bias ? NAME(load_part)((const T *)p->bias + c, lanes) : (NAME(vec)){0};
    NAME(pad_turned)(v, s->source + plane * v->size[0] * v->size[1], lanes, first, rows, padded);
    for (int64_t row = from; row < to; row++) {
        const T *in = padded + (row / s->phase[0] - first) * v->step[0] * s->pitch;
        for (int64_t f = 0; f < s->phase[1]; f++) {
            const int64_t phase = row % s->phase[0] * s->phase[1] + f, tap = s->first[phase];
            const int64_t count = s->first[phase + 1] - tap, n = ceil_div(s->goal[1] - f, s->phase[1]);
            const int64_t step = v->step[1] * LANES, apart = s->phase[1] * LANES, outputs = least(n, NEIGHBOURS);
            T *line = out + ((row - from) * s->goal[1] + f) * LANES;
            for (int64_t j = 0; j < n; j += outputs) {
                j = least(j, n - outputs); /* the last ones may overlap those before */
                NAME(sees_depth)
                [outputs - 1](count, s->offset + tap, weight + tap *LANES, start, in + j *step, step, line + j *apart,
                              apart);
            }
        }
    }
    const int64_t area = s->goal[0] * s->goal[1];
    NAME(to_planes)((to - from) * s->goal[1], lanes, out, s->out + plane * area + from * s->goal[1], area);
}

/* Adds to sums[tap] the products of rows x wide positions of y with the elements that each of `taps` taps meets there.
 * taps is a constant wherever this is inlined. */
INLINE void NAME(sum_taps)(int taps, const view *v, int64_t rows, int64_t wide, const T *const *padded, int64_t pitch,
                           const T *y, T *sums) {
    NAME(vec) sum[NEIGHBOURS] = {{0}};
    const int64_t step = v->step[1] * LANES;
    for (int64_t r = 0; r < rows; r++) {
        const T *at[NEIGHBOURS];
        UNROLL for (int t = 0; t < taps; t++) at[t] = padded[t] + r * v->step[0] * pitch;
        for (int64_t j = 0; j < wide * step; j += step, y += LANES) {
            const NAME(vec) row = VEC(y);
            UNROLL for (int t = 0; t < taps; t++) sum[t] += VEC(at[t] + j) * row;
        }
    }
    UNROLL for (int t = 0; t < taps; t++) STORE(sums + t * LANES, VEC(sums + t * LANES) + sum[t]);
}

typedef void (*NAME(sum_taps_of))(const view *v, int64_t rows, int64_t wide, const T *const *padded, int64_t pitch,
                                  const T *y, T *sums);
#define SUMS(taps)                                                                                       \
    static void NAME(sum_taps_##taps)(const view *v, int64_t rows, int64_t wide, const T *const *padded, \
                                      int64_t pitch, const T *y, T *sums) {                              \
        NAME(sum_taps)(taps, v, rows, wide, padded, pitch, y, sums);                                     \
    }
EACH_NEIGHBOUR(SUMS)
#undef SUMS
#define SUMS(taps) NAME(sum_taps_##taps),
static const NAME(sum_taps_of) NAME(sums_of_taps)[NEIGHBOURS] = {EACH_NEIGHBOUR(SUMS)};
#undef SUMS

/* Adds the products of one piece of y, rows x wide positions, to the sums of all taps, and y to the last sum. A piece
 * that does not consist of whole rows has one row. */
static void NAME(add_piece)(const NAME(depth) * s, int64_t rows, int64_t wide, const T *padded, const T *y, T *sums) {
    const int64_t taps = s->v.taps, groups = ceil_div(taps, NEIGHBOURS);
    for (int64_t g = 0, t = 0; g < groups; g++) {
        const int64_t count = taps / groups + (g < taps % groups);
        const T *at[NEIGHBOURS];
        for (int64_t i = 0; i < count; i++) at[i] = padded + s->offset[t + i];
        NAME(sums_of_taps)[count - 1](&s->v, rows, wide, at, s->pitch, y, sums + t * LANES);
        t += count;
    }
    if (!s->p->sums) return;
    NAME(vec) total = {0};
    for (int64_t i = 0; i < rows * wide; i++) total += VEC(y + i * LANES);
    STORE(sums + taps * LANES, VEC(sums + taps * LANES) + total);
}

/* The sums of the weight's gradient, and of y, over a chunk of the images, for LANES channels. At most POSITIONS
 * positions are summed before their sum is added to the total. */
static void NAME(depth_chunk)(const NAME(depth) * s, int64_t task, T *scratch) {
    const nr_conv_plan *p = s->p;
    const view *v = &s->v;
    const int64_t c = task % s->blocks * LANES, chunk = task / s->blocks, each = ceil_div(p->batch, s->chunks);
    const int64_t x_area = v->size[0] * v->size[1], area = v->grid[0] * v->grid[1];
    const int64_t together = greatest(1, POSITIONS / v->grid[1]);
    const int64_t wide = ceil_div(v->grid[1], ceil_div(v->grid[1], POSITIONS));
    const int lanes = (int)least(LANES, p->groups - c);
    T *sums = s->sums + task * (v->taps + 1) * LANES;
    T *padded = scratch, *y = padded + ((v->rows - 1) * v->step[0] + v->span[0]) * s->pitch;
    memset(sums, 0, (size_t)((v->taps + 1) * LANES) * sizeof(T));
    for (int64_t image = chunk * each; image < least(p->batch, (chunk + 1) * each); image++) {
        const int64_t plane = image * p->groups + c;
        for (int64_t first = 0; first < v->grid[0]; first += v->rows) {
            const int64_t rows = least(v->rows, v->grid[0] - first), n = rows * v->grid[1];
            NAME(pad_turned)(v, s->source + plane * x_area, lanes, first, rows, padded);
            NAME(turn_lanes)(LANES, y, n, (const T *)p->y + plane * area + first * v->grid[1], area, lanes);
            for (int64_t r = 0; r < rows; r += together)
                for (int64_t left = 0; left < v->grid[1]; left += wide)
                    NAME(add_piece)(s, least(together, rows - r), least(wide, v->grid[1] - left),
                                    padded + (r * s->pitch * v->step[0] + left * v->step[1] * LANES),
                                    y + (r * v->grid[1] + left) * LANES, sums);
        }
    }
}

static void NAME(depth_worker)(void *context, int64_t worker) {
    NAME(depth) *s = context;
    T *scratch = s->scratch + worker * s->scratch_size;
    for (int64_t task; (task = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < s->tasks;) {
        if (s->sums)
            NAME(depth_chunk)(s, task, scratch);
        else
            NAME(depth_band)(s, task, scratch);
    }
}

/* Adds the chunks in their order. */
static void NAME(gather_depth)(const NAME(depth) * s) {
    const nr_conv_plan *p = s->p;
    const int64_t taps = s->v.taps, part = (taps + 1) * LANES;
    for (int64_t c = 0; c < p->groups; c++)
        for (int64_t t = 0; t <= taps; t++) {
            const T *from = s->sums + c / LANES * part + t * LANES + c % LANES;
            T total = *from;
            for (int64_t chunk = 1; chunk < s->chunks; chunk++) total += from[chunk * s->blocks * part];
            if (t < taps)
                ((T *)p->weight)[c * taps + t] = total;
            else if (p->sums)
                ((T *)p->sums)[c] = total;
        }
}

/* Computes the taps of all phases, one phase after the other, in s->which and tap, their bounds, and the bands. */
static void NAME(depth_geometry)(NAME(depth) * s, bool back) {
    const nr_conv_plan *p = s->p;
    view *v = &s->v;
    int64_t tap[MOST_TAPS][2];
    for (int d = 0; d < 2; d++) {
        v->size[d] = back ? p->result[d] : p->size[d];
        v->step[d] = back ? 1 : p->stride[d];
        s->goal[d] = back ? p->size[d] : p->result[d];
        s->phase[d] = back ? p->stride[d] : 1;
        v->grid[d] = ceil_div(s->goal[d], s->phase[d]);
    }
    const int64_t phases = s->phase[0] * s->phase[1];
    for (int64_t f = 0; f < phases && back; f++) {
        const int64_t at[2] = {f / s->phase[1], f % s->phase[1]};
        v->taps = s->first[f + 1] = s->first[f] + phase_taps(p, at, tap + s->first[f], s->which + s->first[f]);
    }
    if (!back) {
        forward_taps(p, tap);
        v->taps = s->first[1] = p->kernel[0] * p->kernel[1];
        for (int64_t t = 0; t < v->taps; t++) s->which[t] = t;
    }
    bound_taps(v, tap);
    v->pitch = (v->grid[1] - 1) * v->step[1] + v->span[1];
    s->pitch = v->pitch * LANES;
    for (int64_t t = 0; t < v->taps; t++)
        s->offset[t] = (tap[t][0] - v->low[0]) * s->pitch + (tap[t][1] - v->low[1]) * LANES;
    const int64_t grid_row = (v->pitch * v->step[0] + s->goal[1] * s->phase[0]) * LANES * (int64_t)sizeof(T);
    const int64_t halo = (v->span[0] - v->step[0]) * s->pitch * (int64_t)sizeof(T);
    v->rows = least(v->grid[0], greatest(greatest(1, v->span[0]), (DEPTH_BYTES - halo) / grid_row));
    s->bands = ceil_div(v->grid[0], v->rows);
    v->rows = ceil_div(v->grid[0], s->bands);
    s->bands = ceil_div(v->grid[0], v->rows);
}

static int32_t NAME(run_depth)(const nr_conv_plan *p, nr_conv_kind kind) {
    NAME(depth) s = {.p = p, .blocks = ceil_div(p->groups, LANES)};
    view *v = &s.v;
    NAME(depth_geometry)(&s, kind == NR_CONV_INPUT);
    s.source = kind == NR_CONV_INPUT ? p->y : p->x;
    s.out = kind == NR_CONV_INPUT ? p->x : p->y;
    s.chunks = least(p->batch, ceil_div(PARTS_WANTED, s.blocks));
    s.tasks = s.blocks * (kind == NR_CONV_WEIGHT ? s.chunks : s.bands * p->batch);
    s.scratch_size = ceil_div(((v->rows - 1) * v->step[0] + v->span[0]) * s.pitch +
                                  v->rows * s.phase[0] * greatest(s.goal[1], v->grid[1]) * LANES + LANES,
                              16) *
                     16;
    const double work = (double)p->batch * (double)p->groups * (double)(p->result[0] * p->result[1]) * (double)v->taps;
    const int64_t workers = work < SERIAL_WORK ? 1 : least(nr_threads(), s.tasks);
    const int64_t sums = kind == NR_CONV_WEIGHT ? s.tasks * (v->taps + 1) * LANES : 0;
    const size_t bytes = (size_t)(sums + s.scratch_size * workers) * sizeof(T);
    T *scratch = nr_scratch(bytes);
    if (!scratch) return no_scratch(bytes);
    s.sums = sums ? scratch : NULL;
    s.scratch = scratch + sums;
    nr_parallel(workers, NAME(depth_worker), &s);
    if (sums) NAME(gather_depth)(&s);
    nr_scratch_free(scratch, bytes);
    return NORCH_OK;
}
