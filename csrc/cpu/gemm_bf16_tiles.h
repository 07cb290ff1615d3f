/* gemm_bf16_tiles: products of bfloat16 by tiles: TDPBF16PS adds a product of 16 x 32 and 32 x 16 numbers to 16 x 16
 * float32. Included by matmul_isa.c after amx.h, once for the instructions and once for their emulation.
 *
 *   left (lanes, k)    panels of 16 lanes, of tiles of 32 of k: a row of a tile has 16 pairs (k, k + 1) of one lane
 *   right (k, lanes)   panels of 16 lanes, of tiles of 32 of k: a row of a tile has one pair of each of 16 lanes
 *
 * The left operand is A and its lanes are rows, or, `transposed`, it is B and its lanes are columns: C^T = B^T A^T has
 * the same sums. Lanes of the left operand that are contiguous along k are loaded in place, except at the edges, which
 * are filled up with zeros; others are packed once for a task. Two panels of the right operand are packed right before
 * their use. Four tiles of sums, 32 x 32 of C, stay in registers over all of k, and are rounded to bfloat16 once: per
 * step of k 4 tiles are loaded and 4 products added, in 64 cycles, which is as fast as the first and the second cache
 * together can be read. Meanwhile the vector units pack the next panels, and lines of C come to the caches. */

/* to[r][c]: the pair at from + r * row + 2 c * step, whose numbers are a step apart, for r < rows and 2 c
 * < count; a pair beyond has zeros. */
INLINE void TILE_NAME(rows_of_pairs)(bf16_both *to, const bf16_bits *from, int64_t row, int64_t step, int rows,
                                     int count) {
    if (rows < TILE_ROW || count < 2 * TILE_ROW) memset(to, 0, TILE_CELLS * sizeof *to);
    for (int r = 0; r < rows; r++, from += row, to += TILE_ROW) {
        if (step == 1 && count == 2 * TILE_ROW)
            memcpy(to, from, TILE_ROW * sizeof *to);
        else if (step == 1)
            memcpy(to, from, (size_t)count * sizeof *from);
        else
            for (int c = 0; c < count; c += 2) to[c / 2] = bf16_pair(from + c * step, step, count - c);
    }
}

/* to[q][i]: the pair at from + i + 2 q * step, for i < lanes and 2 q < count. */
INLINE void TILE_NAME(lanes_of_pairs)(bf16_both *to, const bf16_bits *from, int64_t step, int lanes, int count) {
    if (lanes < TILE_ROW || count < 2 * TILE_ROW) memset(to, 0, TILE_CELLS * sizeof *to);
    for (int p = 0; p < count; p += 2, from += 2 * step, to += TILE_ROW) {
        if (lanes == TILE_ROW && p + 1 < count)
            bf16_interleave(to, from, from + step);
        else
            for (int i = 0; i < lanes; i++) to[i] = bf16_pair(from + i, step, count - p);
    }
}

/* A tile of the left operand or of the right one. */
INLINE void TILE_NAME(pack_tile)(bool left, bf16_both *to, const bf16_bits *from, int64_t lane, int64_t step, int lanes,
                                 int count) {
    bf16_both square[TILE_CELLS] __attribute__((aligned(64)));
    const bool as_it_lies = left == (lane != 1);
    bf16_both *const at = as_it_lies ? to : square;
    if (lane == 1)
        TILE_NAME(lanes_of_pairs)(at, from, step, lanes, count);
    else
        TILE_NAME(rows_of_pairs)(at, from, lane, step, lanes, count);
    if (!as_it_lies) /* a pair is moved as a float */
        pack_float32(TILE_ROW, (float *)(void *)to, TILE_ROW, (const float *)(const void *)square, TILE_ROW, 1,
                     TILE_ROW);
}

/* Rows `row` and row + step of a group of the right operand, to a row of a tile of each panel. */
INLINE void TILE_NAME(pack_pair)(bf16_both *to, int64_t panel, const bf16_bits *row, int64_t step) {
    for (int i = 0; i < GROUP_LANES; i += 2 * TILE_ROW) {
        __builtin_prefetch(row + ROWS_AHEAD * step + i, 0, 2);
        __builtin_prefetch(row + (ROWS_AHEAD + 1) * step + i, 0, 2);
    }
    for (int h = 0; h < GROUP_LANES / TILE_ROW; h++, row += TILE_ROW, to += panel) bf16_interleave(to, row, row + step);
}

/* Panels of 16 lanes each, `panel` pairs from one to the next in `to`, tile by tile of all, as they share lines. */
static void TILE_NAME(pack_panels)(bool left, bf16_both *to, int64_t panel, int64_t k, const bf16_bits *from,
                                   int64_t lane, int64_t step, int lanes) {
    int64_t whole = k / (2 * TILE_ROW) * (2 * TILE_ROW);
    if (!left && step == 1 && lane % 2 == 0 && (uintptr_t)from % 4 == 0) { /* whole pairs */
        for (int h = 0; h * TILE_ROW < lanes; h++)
            pack_float32(TILE_ROW, (float *)(void *)(to + h * panel), whole / 2,
                         (const float *)(const void *)(from + h * TILE_ROW * lane), lane / 2, 1,
                         (int)least(TILE_ROW, lanes - h * TILE_ROW));
    } else if (!left && lane == 1 && lanes == GROUP_LANES) {
        for (int64_t p = 0; p < whole; p += 2)
            TILE_NAME(pack_pair)(to + p * (TILE_ROW / 2), panel, from + p * step, step);
    } else {
        whole = 0;
    }
    to += whole * (TILE_ROW / 2);
    from += whole * step;
    for (int64_t p = whole; p < k; p += 2 * TILE_ROW, from += 2 * TILE_ROW * step, to += TILE_CELLS)
        for (int h = 0; h * TILE_ROW < lanes; h++)
            TILE_NAME(pack_tile)(left, to + h * panel, from + h * TILE_ROW * lane, lane, step,
                                 (int)least(TILE_ROW, lanes - h * TILE_ROW), (int)least(2 * TILE_ROW, k - p));
}

/* Adds `whole` steps of k, and the last one if it is packed separately, to 16 x 16 sums, or to two neighbours, or to
 * all four. Sums are 0 the first time. */
TILE_FUNCTION static void TILE_NAME(sum_tiles)(TILES *t, int64_t whole, bool last, const tile_panel *a,
                                               const bf16_both *b, int64_t panel, bool tall, bool wide, bool add,
                                               tile_ahead *ahead, float *sums) {
    const int64_t first_row = a[0].row, second_row = a[tall].row;
    const char *first = a[0].at, *second = a[tall].at;
    const char *next = ahead->left, *c = ahead->c;
    const int64_t rounded = greatest(8, ceil_div(ahead->before.rows, greatest(whole, 1)));
    TILE_NAME(begin_sums)(t, add, sums);
    for (int64_t s = 0; s < whole; s++, b += TILE_CELLS) {
        tile_pass(t, 4, first, first_row);
        tile_load(t, 6, b, 64);
        tile_dp_bf16(t, 0, 4, 6);
        if (wide) {
            tile_load(t, 7, b + panel, 64);
            tile_dp_bf16(t, 1, 4, 7);
        }
        if (tall) {
            tile_pass(t, 5, second, second_row);
            tile_dp_bf16(t, 2, 5, 6);
            if (wide) tile_dp_bf16(t, 3, 5, 7);
        }
        for (int x = 0; x < ahead->each && ahead->from < ahead->end; x++) {
            TILE_NAME(pack_pair)(ahead->to, panel, ahead->from, ahead->step);
            ahead->from += 2 * ahead->step;
            ahead->to += TILE_ROW;
        }
        for (int x = 0; x < ahead->rows; x++, c += ahead->c_row) __builtin_prefetch(c, 0, 2);
        for (int x = 0; x < ahead->lefts; x++) __builtin_prefetch(next + x * ahead->lane, 0, 2);
        if (ahead->before.rows) round_rows(&ahead->before, rounded);
        next += 4 * TILE_ROW;
        first += a[0].step;
        second += a[tall].step;
    }
    if (last) { /* filled up with zeros */
        tile_load(t, 4, a[0].last, 64);
        tile_load(t, 6, b, 64);
        tile_dp_bf16(t, 0, 4, 6);
        if (tall) {
            tile_load(t, 5, a[1].last, 64);
            tile_dp_bf16(t, 2, 5, 6);
        }
        if (wide) {
            tile_load(t, 7, b + panel, 64);
            tile_dp_bf16(t, 1, 4, 7);
            if (tall) tile_dp_bf16(t, 3, 5, 7);
        }
    }
    if (ahead->before.rows) round_rows(&ahead->before, rounded); /* without whole steps */
    TILE_NAME(end_sums)(t, sums);
}

/* A panel of the left operand: `lanes` lanes at `at`, k numbers each. The parts that are not loaded in place (`lies`),
 * edges or all, are at `packed`; with `pack` they are copied there first. */
static tile_panel TILE_NAME(left_panel)(const tile_operand *x, const bf16_bits *at, int64_t k, int lanes, bool lies,
                                        bf16_both *packed, bool pack) {
    const int64_t whole = k / (2 * TILE_ROW), inner = whole * 2 * TILE_ROW;
    const bool direct = lies && lanes == TILE_ROW;
    if (pack && !direct)
        TILE_NAME(pack_panels)(true, packed, 0, k, at, x->lane, x->step, lanes);
    else if (pack && inner < k)
        TILE_NAME(pack_panels)(true, packed, 0, k - inner, at + inner, x->lane, x->step, lanes);
    if (direct) return (tile_panel){(const char *)at, x->lane * (int64_t)sizeof *at, 2 * TILE_ROW * sizeof *at, packed};
    return (tile_panel){(const char *)packed, 4 * TILE_ROW, TILE_CELLS * sizeof *packed, packed + whole * TILE_CELLS};
}

/* Rows i0 .. i1 and columns j0 .. j1 of C. */
TILE_FUNCTION static bool TILE_NAME(block)(const product *p, bool transposed, int64_t i0, int64_t i1, int64_t j0,
                                           int64_t j1, void *scratch) {
    enum { WIDE = 2 * TILE_ROW };
    float transposed_sums[WIDE * WIDE] __attribute__((aligned(64))), bias[WIDE] = {0};
    const tile_operand a = {p->a, p->a_row, p->a_col}, b = {p->b, p->b_col, p->b_row};
    const tile_operand left = transposed ? b : a, right = transposed ? a : b;
    const int64_t l0 = transposed ? j0 : i0, l1 = transposed ? j1 : i1, r0 = transposed ? i0 : j0,
                  r1 = transposed ? i1 : j1;
    const int64_t steps = ceil_div(p->k, WIDE), panel = steps * TILE_CELLS, whole = p->k / WIDE;
    const int64_t parts = greatest(1, ceil_div(steps, STEPS_AT_ONCE));
    const int64_t most = tile_lefts(greatest(steps, 1) * WIDE);
    float *const all_sums = scratch;
    bf16_both *const packed = (bf16_both *)(all_sums + ceil_div(least(most, l1 - l0), WIDE) * WIDE * WIDE);
    bf16_both *const edges = packed + ceil_div(r1 - r0, GROUP_LANES) * GROUP_LANES / TILE_ROW * panel;
    tile_ahead ahead = {.step = right.step};
    ahead.c_row = p->c_row * (int64_t)sizeof(bf16_bits);
    ahead.lane = left.lane * (int64_t)sizeof(bf16_bits);
    /* a row of a tile that is in two cache lines takes the time of both: copied if some panels use it */
    const bool aligned = left.lane * (int64_t)sizeof(bf16_bits) % 64 == 0;
    const bool lies = left.step == 1 && (aligned || r1 - r0 <= LIES_LANES);
    TILES t;
    tiles_begin(&t);
    for (int64_t q = 0; q < ceil_div(l1 - l0, most) * ceil_div(r1 - r0, WIDE); q++) {
        const int64_t r = r0 + q % ceil_div(r1 - r0, WIDE) * WIDE, block = l0 + q / ceil_div(r1 - r0, WIDE) * most;
        const int64_t transposes = ceil_div(least(most, l1 - block), WIDE);
        const int rights = (int)least(WIDE, r1 - r);
        bf16_both *const used = packed + (r - r0) / TILE_ROW * panel;
        if (block == l0 && (r - r0) % GROUP_LANES == 0) { /* the part of this group that is not packed yet */
            const int64_t done = ahead.to ? (ahead.to - used) / TILE_ROW * 2 : 0;
            const bf16_bits *from = right.at + r * right.lane;
            TILE_NAME(pack_panels)(false, used + done / 2 * TILE_ROW, panel, p->k - done, from + done * right.step,
                                   right.lane, right.step, (int)least(GROUP_LANES, r1 - r));
            const bool next = right.lane == 1 && r + 2 * GROUP_LANES <= r1;
            ahead.to = next ? used + GROUP_LANES / TILE_ROW * panel : NULL;
            ahead.from = from + GROUP_LANES;
            ahead.end = ahead.from + (next ? whole * WIDE * right.step : 0);
            ahead.each = (int)ceil_div(TILE_ROW, 2 * transposes);
        }
        for (int64_t x = 0; x < parts * transposes; x++) {
            const int64_t part = x / transposes, turn = x % transposes, l = block + turn * WIDE;
            const int64_t s0 = part * steps / parts, s1 = (part + 1) * steps / parts;
            const int lefts = (int)least(WIDE, l1 - l);
            tile_panel panels[2];
            for (int h = 0; h * TILE_ROW < lefts; h++) {
                panels[h] = TILE_NAME(left_panel)(&left, left.at + (l + h * TILE_ROW) * left.lane, p->k,
                                                  (int)least(TILE_ROW, lefts - h * TILE_ROW), lies,
                                                  edges + (2 * turn + h) * panel, r == r0 && part == 0);
                panels[h].at += s0 * panels[h].step;
            }
            const int64_t i = transposed ? r : l, j = transposed ? l : r;
            const int rows = transposed ? rights : lefts, cols = transposed ? lefts : rights;
            bf16_bits *c = (bf16_bits *)p->c + i * p->c_row + j;
            float *const sums = all_sums + (parts > 1 ? turn : 0) * WIDE * WIDE;
            ahead.c = (const char *)(c + (transposed ? WIDE : WIDE * p->c_row)); /* of the next turn */
            ahead.rows = part + 1 < parts || turn + 1 == transposes ? 0 : (int)ceil_div(rows, greatest(s1 - s0, 1));
            ahead.lefts = r == r0 && left.step == 1 && turn + 1 < transposes ? WIDE : 0;
            ahead.left = (const char *)(left.at + (l + WIDE) * left.lane + s0 * WIDE);
            TILE_NAME(sum_tiles)(&t, least(s1, whole) - s0, s1 > whole, panels, used + s0 * TILE_CELLS, panel,
                                 lefts > TILE_ROW, rights > TILE_ROW, part > 0, &ahead, sums);
            if (part + 1 < parts) continue;
            if (transposed) pack_float32(WIDE, transposed_sums, WIDE, sums, WIDE, 1, WIDE);
            for (int y = 0; y < cols && p->bias; y++)
                bias[y] = nr_float_of_bfloat16(((const bf16_bits *)p->bias)[(j + y) * p->bias_step]);
            ahead.before = (tile_rounding){
                transposed ? transposed_sums : sums, bias, c, p->c_row, rows, cols, ahead.before.special};
        }
    }
    tiles_end(&t);
    round_rows(&ahead.before, WIDE);
    return ahead.before.special;
}

/* Whether to compute the product of the transposed operands. The cost of copies decides: a left operand that is
 * contiguous along k is not copied, a right one that is contiguous across lanes is the cheapest to copy, and transposes
 * cost most. */
static bool TILE_NAME(transposes)(const product *p) {
    const double a = (double)p->m * (double)p->k, b = (double)p->n * (double)p->k, c = (double)p->m * (double)p->n;
    const double as_is = (p->a_col == 1 ? 0 : 4 * a) + (p->b_col == 1 ? b : 4 * b);
    const double transposed = (p->b_row == 1 ? 0 : 4 * b) + (p->a_row == 1 ? a : 4 * a) + c / 2;
    return transposed < as_is;
}

static const bf16_kernel TILE_NAME(kernel) = {.block = TILE_NAME(block),
                                              .transposes = TILE_NAME(transposes),
                                              .rows = 2 * TILE_ROW,
                                              .row_fill = 2 * TILE_ROW,
                                              .depth = 2 * TILE_ROW,
                                              .sums = 4 * TILE_CELLS};

#undef TILES
#undef TILE_FUNCTION
#undef TILE_NAME
#undef WRITTEN
#undef tiles_begin
#undef tiles_end
#undef tile_zero
#undef tile_load
#undef tile_pass
#undef tile_store
#undef tile_dp_bf16
