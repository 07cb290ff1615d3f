/* conv_product: convolutions of one tap without padding, for one float type: a template of each_dtype.h.
 *
 *   y (out, positions) = weight (out, in) x (in, positions)          x = weight^T y          weight = sum of y x^T
 *
 * The first two are products of conv_panels.h, and for the third its panels are transposed: of tensors where they
 * lie. A stride leaves some positions of x, which are gathered first. Images of few positions are gathered for the
 * third, some beside each other, so that sums are long. */

/* A pass over planes: those of a tensor (images, channels, size), of which `seen` positions at a stride are gathered
 * to, or spread from, `packed`: (pieces, channels, each * area), where a piece has `each` images. */
typedef struct NAME(pass) {
    int64_t channels, size[2], stride[2], seen[2];
    int64_t images, each;
    T *tensor, *packed;
    const T *bias;  /* of each channel, or NULL */
    int64_t planes; /* of a task */
} NAME(pass);

static T *NAME(packed_plane)(const NAME(pass) * s, int64_t image, int64_t channel) {
    const int64_t area = s->seen[0] * s->seen[1];
    return s->packed + ((image / s->each * s->channels + channel) * s->each + image % s->each) * area;
}

/* Images beyond the last one are zeros, which add nothing to a sum. */
static void NAME(gather_task)(void *context, int64_t task) {
    const NAME(pass) *s = context;
    const int64_t all = ceil_div(s->images, s->each) * s->each * s->channels, wide = s->size[1];
    for (int64_t i = task * s->planes; i < least(all, (task + 1) * s->planes); i++) {
        const int64_t image = i / s->channels, area = s->seen[0] * s->seen[1];
        T *to = NAME(packed_plane)(s, image, i % s->channels);
        const T *from = s->tensor + i * s->size[0] * wide;
        if (image >= s->images) {
            memset(to, 0, (size_t)area * sizeof(T));
            continue;
        }
        for (int64_t r = 0; r < s->seen[0]; r++, from += s->stride[0] * wide, to += s->seen[1]) {
            if (s->stride[1] == 1)
                memcpy(to, from, (size_t)s->seen[1] * sizeof(T));
            else if (s->stride[1] == 2)
                NAME(every_other)(s->seen[1], from, to);
            else
                for (int64_t c = 0; c < s->seen[1]; c++) to[c] = from[c * s->stride[1]];
        }
    }
}

/* Adds the bias; positions that are not seen are the bias alone. */
static void NAME(spread_task)(void *context, int64_t task) {
    const NAME(pass) *s = context;
    const bool whole = s->seen[0] * s->seen[1] == s->size[0] * s->size[1];
    for (int64_t i = task * s->planes; i < least(s->images * s->channels, (task + 1) * s->planes); i++) {
        const T *from = NAME(packed_plane)(s, i / s->channels, i % s->channels);
        const T more = s->bias ? s->bias[i % s->channels] : (T)0;
        T *to = s->tensor + i * s->size[0] * s->size[1];
        for (int64_t u = 0; u < s->size[0] * s->size[1]; u++) to[u] = whole ? from[u] + more : more;
        for (int64_t r = 0; r < s->seen[0] && !whole; r++)
            for (int64_t c = 0; c < s->seen[1]; c++)
                to[r * s->stride[0] * s->size[1] + c * s->stride[1]] = *from++ + more;
    }
}

static void NAME(run_pass)(NAME(pass) * s, void (*task)(void *context, int64_t task)) {
    const int64_t planes = ceil_div(s->images, s->each) * s->each * s->channels;
    s->planes = ceil_div(PASS_ELEMENTS, s->size[0] * s->size[1]);
    nr_parallel(ceil_div(planes, s->planes), task, s);
}

/* The sums of y by channel, pairwise over the images. */
static T NAME(sum_images)(int64_t images, const T *y, int64_t area, int64_t apart) {
    if (images == 1) return NAME(sum_of)(area, y);
    const int64_t half = images / 2;
    return NAME(sum_images)(half, y, area, apart) + NAME(sum_images)(images - half, y + half * apart, area, apart);
}

static void NAME(sum_channel)(void *context, int64_t channel) {
    const nr_conv_plan *p = context;
    const int64_t area = p->result[0] * p->result[1];
    ((T *)p->sums)[channel] =
        NAME(sum_images)(p->batch, (const T *)p->y + channel * area, area, p->groups * p->out * area);
}

static void NAME(sum_channels)(const nr_conv_plan *p) {
    if (p->sums) nr_parallel(p->groups * p->out, NAME(sum_channel), (void *)p);
}

/* ---- the gradient of the weight ------------------------------------------------------------------------ */

/* Pieces, of `positions` each, whose products are summed one after the other into weights of all groups. */
typedef struct NAME(tap_sums) {
    const nr_conv_plan *p;
    const T *x, *y;
    int64_t pieces, positions, depth;
    bool add;                     /* to what is there */
    int64_t across, down, blocks; /* panels, and tiles, of a task; tasks in a row of these */
    int64_t of_group, tasks;      /* tasks of a group of channels, and of all */
    T *scratch;
    int64_t scratch_size;
    _Atomic int64_t next;
} NAME(tap_sums);

/* Some input channels become panels of positions, by squares, which meet rows of y where these lie. Rows of y that meet
 * in the same lines of the cache are copied, for some panels at a time. */
static void NAME(tap_task)(const NAME(tap_sums) * s, int64_t task, T *panels) {
    const nr_conv_plan *p = s->p;
    const int64_t group = task / s->of_group, at = task % s->of_group, tiles = ceil_div(p->out, TILE_ROWS);
    const int64_t begin = at % s->blocks * s->across * PANEL_COLS, end = least(p->in, begin + s->across * PANEL_COLS);
    const int64_t first = at / s->blocks * s->down, last = least(tiles, first + s->down), n = s->positions;
    const bool copy = n * (int64_t)sizeof(T) % BAD_STRIDE == 0;
    const int64_t together = copy ? s->across * PANEL_COLS : PANEL_COLS, steps = ceil_div(n, s->depth);
    T *rows = panels + s->across * PANEL_COLS * s->depth;
    for (int64_t step = 0; step < s->pieces * steps; step++) {
        const int64_t q = step % steps * s->depth, count = least(s->depth, n - q);
        const int64_t plane = step / steps * p->groups + group;
        const T *x = s->x + plane * p->in * n + q, *y = s->y + plane * p->out * n + q;
        for (int64_t j0 = begin; j0 < end; j0 += together) {
            const int64_t j1 = least(end, j0 + together);
            for (int64_t j = j0; j < j1; j += PANEL_COLS)
                NAME(turn_lanes)(PANEL_COLS, panels + (j - j0) * count, count, x + j * n, n,
                                 (int)least(PANEL_COLS, j1 - j));
            for (int64_t t = first; t < last; t++) {
                const int64_t row = t * p->out / tiles;
                TARGET to = {.c_row = p->in, .rows = (int)((t + 1) * p->out / tiles - row), .add = s->add || step};
                const T *a = copy ? rows : y + row * n;
                if (copy) NAME(pack_a)(rows, count, y + row * n, n, 1, to.rows);
                for (int64_t j = j0; j < j1; j += PANEL_COLS) {
                    to.cols = (int)least(PANEL_COLS, j1 - j);
                    to.c = (T *)p->weight + (group * p->out + row) * p->in + j;
                    TILES_OF_ROWS[to.rows - 1][to.cols > LANES](count, a, copy ? 1 : n, copy ? TILE_ROWS : 1,
                                                                panels + (j - j0) * count, PANEL_COLS, &to);
                }
            }
        }
    }
}

static void NAME(tap_worker)(void *context, int64_t worker) {
    NAME(tap_sums) *s = context;
    for (int64_t task; (task = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < s->tasks;)
        NAME(tap_task)(s, task, s->scratch + worker * s->scratch_size);
}

static int32_t NAME(run_sums)(NAME(tap_sums) * s) {
    const nr_conv_plan *p = s->p;
    const int64_t panels = ceil_div(p->in, PANEL_COLS), tiles = ceil_div(p->out, TILE_ROWS);
    const double work = (double)(s->pieces * s->positions) * (double)(p->groups * p->out) * (double)p->in;
    const int64_t threads = work < SERIAL_WORK ? 1 : nr_threads();
    s->depth = NAME(panel_depth)(s->positions);
    s->across = least(panels, PANELS_TOGETHER);
    s->blocks = ceil_div(panels, s->across);
    s->down = threads == 1 ? tiles : ceil_div(tiles, ceil_div(3 * threads, s->blocks * p->groups));
    s->of_group = s->blocks * ceil_div(tiles, s->down);
    s->tasks = p->groups * s->of_group;
    const int64_t workers = least(threads, s->tasks);
    s->scratch_size = (s->across * PANEL_COLS + ceil_div(TILE_ROWS, LANES) * LANES) * s->depth;
    const size_t bytes = (size_t)(s->scratch_size * workers) * sizeof(T);
    if (!(s->scratch = nr_scratch(bytes))) return no_scratch(bytes);
    s->next = 0;
    nr_parallel(workers, NAME(tap_worker), s);
    nr_scratch_free(s->scratch, bytes);
    return NORCH_OK;
}

/* Images of few positions are gathered beside each other, and so is what a stride leaves of x, in rounds. */
static int32_t NAME(tap_weight)(const nr_conv_plan *p) {
    const int64_t area = p->result[0] * p->result[1], plane = p->size[0] * p->size[1];
    const int64_t in = p->groups * p->in, out = p->groups * p->out;
    const int64_t each = area >= SUMMED_ALONE ? 1 : least(p->batch, ceil_div(SUMMED_TOGETHER, area));
    const bool pack_x = each > 1 || plane != area, pack_y = each > 1;
    const int64_t positions = each * area, elements = positions * (pack_x * in + pack_y * out);
    const int64_t round = elements ? greatest(1, ROUND_ELEMENTS / elements) : p->batch, step = round * each;
    const int64_t pieces = least(round, ceil_div(p->batch, each));
    const size_t bytes = (size_t)(pieces * elements) * sizeof(T);
    T *scratch = bytes ? nr_scratch(bytes) : NULL;
    if (bytes && !scratch) return no_scratch(bytes);
    int32_t status = NORCH_OK;
    for (int64_t image = 0; image < p->batch && status == NORCH_OK; image += step) {
        NAME(pass) x = {.channels = in, .images = least(step, p->batch - image), .each = each}, y = x;
        y.channels = out;
        for (int d = 0; d < 2; d++) {
            x.size[d] = p->size[d], x.stride[d] = p->stride[d];
            y.size[d] = p->result[d], y.stride[d] = 1;
            x.seen[d] = y.seen[d] = p->result[d];
        }
        x.tensor = (T *)p->x + image * in * plane, x.packed = pack_x ? scratch : x.tensor;
        y.tensor = (T *)p->y + image * out * area, y.packed = pack_y ? scratch + pieces * positions * in : y.tensor;
        if (pack_x) NAME(run_pass)(&x, NAME(gather_task));
        if (pack_y) NAME(run_pass)(&y, NAME(gather_task));
        NAME(tap_sums) sums = {.p = p, .x = x.packed, .y = y.packed, .positions = positions, .add = image > 0};
        sums.pieces = ceil_div(x.images, each);
        status = NAME(run_sums)(&sums);
    }
    NAME(sum_channels)(p);
    if (scratch) nr_scratch_free(scratch, bytes);
    return status;
}

/* ---- forward, and the gradient of the input ------------------------------------------------------------ */

/* Images in rounds, if a stride makes copies of them. */
static int32_t NAME(run_tap)(const nr_conv_plan *p, nr_conv_kind kind) {
    if (kind == NR_CONV_WEIGHT) return NAME(tap_weight)(p);
    const int64_t area = p->result[0] * p->result[1], plane = p->size[0] * p->size[1], in = p->groups * p->in;
    if (area == plane) {
        const bool forward = kind == NR_CONV_FORWARD;
        return NAME(run_planes)(p, kind, p->batch, forward ? p->x : p->y, forward ? p->y : p->x, p->bias);
    }
    const int64_t round = least(p->batch, greatest(1, ROUND_ELEMENTS / (in * area)));
    const size_t bytes = (size_t)(round * in * area) * sizeof(T);
    T *dense = nr_scratch(bytes);
    if (!dense) return no_scratch(bytes);
    int32_t status = NORCH_OK;
    for (int64_t image = 0; image < p->batch && status == NORCH_OK; image += round) {
        NAME(pass) x = {.channels = in, .images = least(round, p->batch - image), .each = 1, .packed = dense};
        for (int d = 0; d < 2; d++) x.size[d] = p->size[d], x.stride[d] = p->stride[d], x.seen[d] = p->result[d];
        x.tensor = (T *)p->x + image * in * plane;
        T *y = (T *)p->y + image * p->groups * p->out * area;
        if (kind == NR_CONV_FORWARD) {
            NAME(run_pass)(&x, NAME(gather_task));
            status = NAME(run_planes)(p, kind, x.images, dense, y, p->bias);
        } else {
            status = NAME(run_planes)(p, kind, x.images, y, dense, NULL);
            x.bias = p->bias;
            if (status == NORCH_OK) NAME(run_pass)(&x, NAME(spread_task));
        }
    }
    nr_scratch_free(dense, bytes);
    return status;
}
