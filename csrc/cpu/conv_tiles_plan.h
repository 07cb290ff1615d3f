/* conv_tiles_plan: plans convolutions of bfloat16, and runs the tasks of conv_tiles.h. Included by conv_isa.c in the
 * first build, which plans for all. */

#define PLANNING __attribute__((cold)) static /* short rather than fast */

/* ---- geometry -------------------------------------------------------------------------------------------- */

/* Rows of a sample, and columns of a row, that suffice for the taps at all positions of the part. The zeros after a row
 * may be those before the next. */
PLANNING void set_extent(tile_view *v) {
    int64_t full[2];
    for (int d = 0; d < 2; d++) {
        full[d] = v->extent[d] = v->count[d] + v->span[d] - 1;
        if (v->count[d] < v->grid[d]) continue;
        int64_t high = 0;
        for (int64_t f = 0; f < v->residues; f++) high = greatest(high, v->residue[f][d]);
        const int64_t zeros = greatest(0, ceil_div(-v->low[d] - high, v->step[d]));
        const int64_t end = ceil_div(v->size[d] - v->low[d], v->step[d]);
        v->extent[d] = greatest(v->count[d], greatest(full[d] - zeros, least(end, full[d])));
    }
    v->rows = v->samples * v->extent[0] + full[0] - v->extent[0];
    v->beyond = v->span[1] + TILE_DEPTH - 1;
    /* an odd number of lines, so that rows of a tile are not in the same place of the first cache */
    const int64_t line = v->pairs ? 16 : 32, lines = ceil_div(v->rows * v->extent[1] + v->beyond + TILE_ROW, line);
    v->plane = (lines | 1) * line;
}

static int64_t filled_up(int64_t count, int64_t to) { return ceil_div(count, to) * to; }
static int64_t evenly(int64_t all, int64_t most) { return ceil_div(all, ceil_div(all, greatest(1, most))); }

/* Chooses the part of the grid that is in memory at a time, for planes of at most `most` numbers. */
PLANNING void choose_part(tile_view *v, int64_t most) {
    const int64_t wide = greatest(64, most / v->span[0] - v->span[1]);
    v->samples = 1;
    v->count[1] = evenly(v->grid[1], least(wide, TILE_PITCH - 2 * v->span[1] - TILE_DEPTH));
    const int64_t rows = most / (v->count[1] + v->span[1] - 1) - v->span[0] + 1;
    v->count[0] = evenly(v->grid[0], least(rows, v->grid[0]));
    set_extent(v);
    if (v->count[0] == v->grid[0] && v->count[1] == v->grid[1])
        v->samples = evenly(v->p->batch, least(v->p->batch, most / v->plane));
    set_extent(v);
}

/* ---- in float32 ------------------------------------------------------------------------------------------ */

#define PIECE_NUMBERS (64 * 1024)

typedef struct conversion {
    nr_conversion convert;
    char *to;
    const char *from;
    int64_t to_step, from_step, n;
} conversion;

static void convert_piece(void *context, int64_t piece) {
    const conversion *s = context;
    const int64_t at = piece * PIECE_NUMBERS;
    s->convert(s->to + at * s->to_step, s->to_step, s->from + at * s->from_step, s->from_step,
               least(PIECE_NUMBERS, s->n - at));
}

PLANNING void convert_all(nr_conversion convert, void *to, int64_t to_step, const void *from, int64_t from_step,
                          int64_t n) {
    conversion s = {convert, to, from, to_step, from_step, n};
    nr_parallel(ceil_div(n, PIECE_NUMBERS), convert_piece, &s);
}

/* What tiles do not compute, or not without NaN: infinite sums, or more than a stride of 2. */
PLANNING int32_t run_widened(const nr_call *call, nr_runner *run) {
    const nr_conv_plan *p = call->plan;
    const int64_t x = p->batch * p->groups * p->in * p->size[0] * p->size[1], out = p->groups * p->out;
    const int64_t y = p->batch * out * p->result[0] * p->result[1], w = out * p->in * p->kernel[0] * p->kernel[1];
    const int64_t bias = p->bias ? call->op == NR_CONV_INPUT ? p->groups * p->in : out : 0;
    const size_t bytes = (size_t)(x + y + w + bias) * sizeof(float);
    float *scratch = nr_scratch(bytes);
    if (!scratch) return no_scratch(bytes);
    nr_conv_plan plan = *p;
    plan.x = scratch;
    plan.y = scratch + x;
    plan.weight = scratch + x + y;
    plan.bias = bias ? scratch + x + y + w : NULL;
    const struct {
        void *narrow;
        float *wide;
        int64_t n;
    } all[] = {{p->x, plan.x, x},
               {p->y, plan.y, y},
               {p->weight, plan.weight, w},
               {(void *)(uintptr_t)p->bias, scratch + x + y + w, bias}};
    const int32_t written = call->op == NR_CONV_FORWARD ? 1 : call->op == NR_CONV_INPUT ? 0 : 2;
    for (int32_t i = 0; i < 4; i++)
        if (i != written)
            convert_all(nr_widen[NORCH_BFLOAT16], all[i].wide, sizeof(float), all[i].narrow, sizeof(bf16_bits),
                        all[i].n);
    nr_call wide = *call;
    wide.dtype = NORCH_FLOAT32;
    wide.plan = &plan;
    const int32_t status = run(&wide);
    if (status == NORCH_OK)
        convert_all(nr_narrow[NORCH_BFLOAT16], all[written].narrow, sizeof(bf16_bits), all[written].wide, sizeof(float),
                    all[written].n);
    nr_scratch_free(scratch, bytes);
    return status;
}

/* ---- a convolution --------------------------------------------------------------------------------------- */

PLANNING void share(tile_conv *s, int64_t tasks, tile_task *body) {
    if (!s->alone) nr_parallel(tasks, body, s);
    for (int64_t i = 0; i < tasks && s->alone; i++) body(s, i);
}

/* The residues and the span of the taps. */
PLANNING void find_residues(tile_conv *s) {
    tile_view *v = &s->x;
    for (int d = 0; d < 2; d++) {
        v->span[d] = 1;
        v->low[d] = s->tap[0][d];
        for (int64_t u = 1; u < s->taps; u++) v->low[d] = least(v->low[d], s->tap[u][d]);
    }
    for (int64_t u = 0; u < s->taps; u++) {
        int64_t residue[2], f = 0;
        for (int d = 0; d < 2; d++) {
            residue[d] = (s->tap[u][d] - v->low[d]) % v->step[d];
            v->span[d] = greatest(v->span[d], (s->tap[u][d] - v->low[d]) / v->step[d] + 1);
        }
        while (f < v->residues && (v->residue[f][0] != residue[0] || v->residue[f][1] != residue[1])) f++;
        if (f == v->residues) memcpy(v->residue[v->residues++], residue, sizeof residue);
    }
}

/* The distance from a position to what a tap sees there. */
PLANNING void find_shifts(tile_conv *s) {
    const tile_view *v = &s->x;
    for (int64_t u = 0; u < s->taps; u++) {
        const int64_t r = s->tap[u][0] - v->low[0], c = s->tap[u][1] - v->low[1];
        int64_t f = 0;
        while (v->residue[f][0] != r % v->step[0] || v->residue[f][1] != c % v->step[1]) f++;
        s->shift[u] = f * v->filled / (v->pairs ? 2 : 1) * v->plane + r / v->step[0] * v->extent[1] + c / v->step[1];
    }
}

/* Plans a convolution; false: it has too many taps, or these reach too far. */
PLANNING bool plan_tiles(tile_conv *s) {
    const nr_conv_plan *p = s->p;
    tile_view *v = &s->x;
    const bool back = s->kind == NR_CONV_INPUT, weight = s->kind == NR_CONV_WEIGHT;
    const int64_t taps = p->kernel[0] * p->kernel[1], positions = p->batch * p->result[0] * p->result[1];
    const int64_t *size = back ? p->result : p->size;
    *v = (tile_view){.p = p, .pairs = !weight, .channels = back ? p->out : p->in, .wide = size[1], .span = {1, 1}};
    v->area = size[0] * size[1];
    v->sample = p->groups * v->channels * v->area;
    s->phases = s->across = 1;
    for (int d = 0; d < 2; d++) {
        v->size[d] = size[d];
        v->step[d] = back ? 1 : p->stride[d];
        v->grid[d] = back ? ceil_div(p->size[d], p->stride[d]) : p->result[d];
        if (back && p->stride[d] > TILE_STRIDE) return false;
    }
    const int64_t bytes = positions * p->in * taps * (int64_t)sizeof(bf16_bits);
    const bool few = positions <= (weight ? UNFOLDED_WEIGHT : UNFOLDED_FORWARD) * p->out;
    v->unfolded = few && bytes <= (weight ? MOST_UNFOLDED_WEIGHT : MOST_UNFOLDED_FORWARD);
    v->unfolded |= p->in < UNFOLDED_IN || taps <= p->stride[0] * p->stride[1] || taps > MOST_TAPS;
    v->unfolded &= !back && taps > 1;
    if (v->unfolded) {
        for (int d = 0; d < 2; d++) v->low[d] = s->tap[0][d] = -p->padding[d];
        v->residues = s->taps = 1;
    } else if (taps > MOST_TAPS) {
        return false;
    } else if (back) {
        s->across = least(p->stride[1], p->size[1]);
        s->phases = least(p->stride[0], p->size[0]) * s->across;
        for (int64_t f = 0; f < s->phases; f++) {
            const int64_t phase[2] = {f / s->across, f % s->across};
            s->taps += phase_taps(p, phase, s->tap + s->taps, s->which + s->taps);
            s->first_tap[f + 1] = s->taps;
        }
        if (s->taps) find_residues(s);
    } else {
        s->taps = taps;
        forward_taps(p, s->tap);
        for (int64_t u = 0; u < taps; u++) s->which[u] = u;
        find_residues(s);
    }
    if (!back) s->first_tap[1] = s->taps;
    const int64_t channels = v->unfolded ? v->channels * taps : v->channels;
    v->filled = filled_up(channels, TILE_DEPTH);
    s->steps = v->filled / TILE_DEPTH;
    s->lanes = back ? p->in : weight ? channels : p->out;
    for (int64_t f = 0; f < s->phases && back; f++)
        for (int64_t u = s->first_tap[f]; u < s->first_tap[f + 1]; u++) {
            s->apart[s->which[u]] = s->first_tap[f + 1] - s->first_tap[f];
            s->begin[s->which[u]] = s->first_tap[f] * s->steps + u - s->first_tap[f];
        }
    return s->taps > 0 && v->span[0] < TILE_PITCH / 8 && v->span[1] < TILE_PITCH / 8;
}

/* A part of the forward convolution or of its adjoint. */
PLANNING void run_positions(tile_conv *s) {
    const tile_view *v = &s->x;
    int64_t *offset = s->offset;
    for (int64_t f = 0; f < s->phases; f++)
        for (int64_t c = 0; c < s->steps; c++)
            for (int64_t u = s->first_tap[f]; u < s->first_tap[f + 1]; u++)
                *offset++ = s->shift[u] + c * TILE_ROW * v->plane;
    share(s, v->residues * v->filled / 2, s->run->pad_pair);
    const int64_t blocks = ceil_div(s->lanes, TILE_DEPTH), rows = (v->samples - 1) * v->extent[0] + v->count[0];
    s->groups = ceil_div((rows - 1) * v->extent[1] + v->count[1], TILE_DEPTH);
    s->chunks = s->alone ? 1 : least(s->groups, ceil_div(3 * nr_threads(), blocks));
    share(s, blocks * s->chunks, s->run->sum_positions);
}

/* The steps of a part for the weight, and its y. */
PLANNING void set_right(tile_conv *s) {
    const nr_conv_plan *p = s->p;
    tile_view *y = &s->y;
    const bf16_bits *from = y->from;
    *y = s->x;
    y->from = from;
    y->unfolded = false;
    y->residues = 1;
    y->channels = p->out;
    y->filled = filled_up(p->out, TILE_ROW);
    y->wide = p->result[1];
    y->area = p->result[0] * p->result[1];
    y->sample = p->groups * p->out * y->area;
    y->rows = (y->samples - 1) * y->extent[0] + y->count[0];
    for (int d = 0; d < 2; d++) {
        y->low[d] = y->residue[0][d] = 0;
        y->step[d] = 1;
        y->size[d] = y->first[d] + y->count[d];
    }
    s->steps = ceil_div(y->rows * y->extent[1], TILE_DEPTH);
    y->plane = (s->steps | 1) * TILE_DEPTH;
}

/* A part of the sums of the weight. */
PLANNING void run_weight(tile_conv *s) {
    set_right(s);
    for (int64_t u = 0; u < s->steps; u++) s->offset[u] = u * TILE_CELLS;
    share(s, s->x.residues * s->x.filled, s->run->pad_alone);
    share(s, s->y.filled / TILE_ROW, s->run->pad_right);
    share(s, ceil_div(s->lanes, TILE_DEPTH) * ceil_div(s->p->out, TILE_DEPTH), s->run->sum_weight);
}

/* A group, part by part. */
PLANNING void run_parts(tile_conv *s, const bf16_bits *x, const bf16_bits *y, bf16_bits *to, int64_t written) {
    tile_view *v = &s->x;
    const int64_t samples = v->samples, rows = v->count[0], columns = v->count[1];
    const bool weight = s->kind == NR_CONV_WEIGHT;
    s->add = false;
    for (int64_t n = 0; n < s->p->batch; n += samples)
        for (int64_t i = 0; i < v->grid[0]; i += rows)
            for (int64_t j = 0; j < v->grid[1]; j += columns) {
                v->from = x + n * v->sample;
                s->to = to + n * written;
                v->samples = least(samples, s->p->batch - n);
                v->first[0] = i, v->first[1] = j;
                v->count[0] = least(rows, v->grid[0] - i);
                v->count[1] = least(columns, v->grid[1] - j);
                set_extent(v);
                find_shifts(s);
                s->last = n + samples >= s->p->batch && i + rows >= v->grid[0] && j + columns >= v->grid[1];
                if (weight) s->y.from = y + n * s->p->groups * s->p->out * s->p->result[0] * s->p->result[1];
                (weight ? run_weight : run_positions)(s);
                s->add = true;
            }
    v->samples = samples, v->count[0] = rows, v->count[1] = columns;
}

__attribute__((cold)) int32_t NR_ISA(nr_run_tiles)(const nr_call *call, const tile_kernels *run) {
    const nr_conv_plan *p = call->plan;
    const int64_t taps = p->kernel[0] * p->kernel[1], area = p->result[0] * p->result[1];
    tile_conv s = {.p = p, .run = run, .kind = (nr_conv_kind)call->op};
    const bool back = s.kind == NR_CONV_INPUT, weight = s.kind == NR_CONV_WEIGHT;
    if (p->batch == 0 || !plan_tiles(&s)) return run_widened(call, run->widened);
    tile_view *v = &s.x;
    const int64_t planes = v->residues * v->filled, k = p->in * taps;
    s.alone = nr_threads() == 1 || (double)(p->batch * area * p->out) * (double)k < SERIAL_WORK;
    choose_part(v, weight ? least(TILE_POSITIONS, TILE_NUMBERS / planes) : nr_second_cache() / 4 / planes);
    const bool parts = v->samples < p->batch || v->count[0] < v->grid[0] || v->count[1] < v->grid[1];
    const bool in_place = !back && s.taps == 1 && k % TILE_DEPTH == 0 && p->out % TILE_ROW == 0;
    if (weight) set_right(&s);
    const size_t steps = (size_t)(weight ? s.steps : s.steps * s.taps), line = TILE_ROW * sizeof(bf16_both);
    const size_t image = (size_t)(planes * v->plane) * sizeof(bf16_bits);
    const size_t left = weight || in_place ? 0 : (size_t)filled_up(s.lanes, TILE_ROW) * steps * line;
    const size_t other = weight ? (size_t)(s.y.filled * s.y.plane) * sizeof(bf16_bits) : 0;
    const size_t right = weight ? (size_t)s.y.filled * steps * line : 0;
    const int64_t blocks = ceil_div(s.lanes, TILE_DEPTH) * ceil_div(p->out, TILE_DEPTH) * s.taps;
    const size_t sums = weight && parts ? (size_t)(blocks * 4 * TILE_CELLS) * sizeof(float) : 0;
    const size_t bytes = image + left + other + right + sums + steps * sizeof *s.offset;
    char *scratch = nr_scratch(bytes);
    if (!scratch) return no_scratch(bytes);
    s.image = (bf16_bits *)(void *)scratch;
    s.left = left ? (bf16_both *)(void *)(scratch + image) : NULL;
    s.planes = (bf16_bits *)(void *)(scratch + image + left);
    s.right = (bf16_both *)(void *)(scratch + image + left + other);
    s.sums = sums ? (float *)(void *)(scratch + image + left + other + right) : NULL;
    s.offset = (int64_t *)(void *)(scratch + image + left + other + right + sums);
    const int64_t lane = (int64_t)(left ? steps * line : (size_t)k * sizeof(bf16_bits));
    const int64_t x_plane = p->size[0] * p->size[1], of_x = p->in * x_plane, of_y = p->out * area;
    s.left_lane = lane, s.left_row = left ? (int64_t)line : lane;
    s.left_step = left ? TILE_ROW * (int64_t)line : (int64_t)line;
    for (int64_t g = 0; g < p->groups; g++) {
        bf16_bits *x = (bf16_bits *)p->x + g * of_x, *y = (bf16_bits *)p->y + g * of_y;
        bf16_bits *w = (bf16_bits *)p->weight + g * p->out * k;
        s.weight = w;
        s.bias = p->bias ? (const bf16_bits *)p->bias + g * s.lanes : NULL;
        if (left) share(&s, ceil_div(s.lanes, TILE_ROW), back ? run->pack_input : run->pack_forward);
        s.left_at = left ? (const char *)s.left : (const char *)w;
        run_parts(&s, back ? y : x, y, weight ? w : back ? x : y, weight ? 0 : p->groups * (back ? of_x : of_y));
    }
    nr_scratch_free(scratch, bytes);
    return s.special ? run_widened(call, run->widened) : NORCH_OK;
}
