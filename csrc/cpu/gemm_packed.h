/* gemm_packed: C = A B (+ bias), with an epilogue or without, where B was packed as a whole before: the products of
 * recordings (families/layer.h), for one float type. Included after gemm.h, whose tiles and blocks of k it uses, so
 * that sums are those of gemm.h to the bit.
 *
 *   for blocks of rows of A, packed: a share of the second cache
 *     for panels of B
 *       for blocks of k
 *         for tiles of the block
 *
 * B is not copied, and the part that is used is contiguous. Tiles have about the same number of rows: 128 rows are 2
 * tiles of 12 and 8 of 13, not 9 of 14 and one of 2. */

typedef struct NAME(packed_product) {
    const product *p;
    const T *b;
    T *packed_a;           /* one block a worker, a_size apart */
    int64_t a_size, depth; /* depth: of a block of k */
    int64_t tiles, blocks; /* of rows */
    int64_t panels, group; /* group: panels of a task */
    bool backwards;
    _Atomic int64_t next;
} NAME(packed_product);

/* The first row of a tile. */
INLINE int64_t NAME(first_row)(const NAME(packed_product) * s, int64_t tile) { return tile * s->p->m / s->tiles; }

/* A task: the product of a block of A and a group of panels of B. */
static void NAME(packed_task)(const NAME(packed_product) * s, T *packed_a, int64_t task) {
    const product *p = s->p;
    const int64_t block = task % s->blocks, from = block * s->tiles / s->blocks,
                  to = (block + 1) * s->tiles / s->blocks;
    const int64_t top = NAME(first_row)(s, from), first = task / s->blocks * s->group;
    const int64_t last = least(first + s->group, s->panels), rows = NAME(first_row)(s, to) - top;
    for (int64_t t = from; t < to; t++) {
        const int64_t row = NAME(first_row)(s, t), count = NAME(first_row)(s, t + 1) - row;
        NAME(pack_a)(packed_a + (t - from) * TILE_ROWS * p->k, p->k, (const T *)p->a + row * p->a_row, p->a_row,
                     p->a_col, count);
    }
    for (int64_t at = first; at < last; at++) {
        const int64_t j = s->backwards ? first + last - 1 - at : at;
        const int64_t ahead = at + 1 == last ? j : s->backwards ? j - 1 : j + 1;
        TARGET target = {.c_row = p->c_row, .cols = (int)least(PANEL_COLS, p->n - j * PANEL_COLS)};
        target.bias = NAME(bias_at)(p, j * PANEL_COLS);
        for (int64_t pc = 0; pc < p->k; pc += s->depth) {
            const T *b = s->b + (j * p->k + pc) * PANEL_COLS;
            const int64_t kc = least(s->depth, p->k - pc);
            target.add = pc > 0;
            const char *next = (const char *)(s->b + (ahead * p->k + pc) * PANEL_COLS);
            const int64_t piece = ceil_div(kc * PANEL_COLS * (int64_t)sizeof(T), to - from);
            for (int64_t t = from; t < to; t++) {
                const int64_t row = NAME(first_row)(s, t);
                for (const char *end = next + piece; next < end; next += 64) __builtin_prefetch(next, 0, 2);
                target.rows = (int)(NAME(first_row)(s, t + 1) - row);
                target.c = (T *)p->c + row * p->c_row + j * PANEL_COLS;
                TILES_OF_ROWS[target.rows - 1][target.cols > LANES](kc, packed_a + ((t - from) * p->k + pc) * TILE_ROWS,
                                                                    1, TILE_ROWS, b, PANEL_COLS, &target);
            }
        }
    }
    const int64_t left = first * PANEL_COLS, cols = least(last * PANEL_COLS, p->n) - left;
    apply_epilogue(p, (T *)p->c + top * p->c_row + left, rows, cols, sizeof(T));
}

static void NAME(packed_worker)(void *context, int64_t worker) {
    NAME(packed_product) *s = context;
    const int64_t tasks = s->blocks * ceil_div(s->panels, s->group);
    for (int64_t task; (task = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < tasks;)
        NAME(packed_task)(s, s->packed_a + worker * s->a_size, task);
}

/* ---- one row ----------------------------------------------------------------------------------------------
 *
 * The dot products of run_dot: lane l of the sum of a column there is here a lane of sum[l], for a column a lane, so
 * that the ends of the sums are additions of vectors. Registers hold the sums of ROW_TERMS lanes of run_dot for the two
 * vectors of a panel, which share the numbers of the row. Another pass sums the next lanes: B is packed in this order,
 * and read in one stream.
 *
 *   B (k, n), LANES 4:   a b c d | e f ..      panel 0: a b c d  e f ..  i j k l  m n ..      sum[0] += x[0] (a b c d),
 *                        i j k l | m n ..                                                     sum[1] += x[1] (i j k l) .. */
#define ROW_TERMS (VECTOR == 64 ? 8 : 4)

/* The number of columns in whole groups of four. Other columns have sums of another order, computed from the weight
 * itself. */
INLINE int64_t NAME(grouped)(const product *p) { return p->n / 4 * 4; }

INLINE int64_t NAME(whole_depth)(const product *p) { return ceil_div(p->k, LANES) * LANES; }

/* Panels of the first n columns, filled up with zeros: of each block of DOT_K rows the first `terms` of every LANES,
 * then the next ones of every LANES. */
static void NAME(pack_columns)(const product *p, int64_t n, int terms, T *to) {
    for (int64_t j = 0; j < n; j += PANEL_COLS)
        for (int64_t pc = 0; pc < p->k; pc += DOT_K)
            for (int l = 0; l < LANES; l += terms)
                for (int64_t at = pc + l; at < least(p->k, pc + DOT_K) + l; at += LANES)
                    for (int64_t q = at; q < at + terms; q++)
                        for (int64_t c = j; c < j + PANEL_COLS; c++)
                            *to++ = q < p->k && c < n ? ((const T *)p->b)[q * p->b_row + c * p->b_col] : 0;
}

/* Writes a vector of sums, added to the bias, to columns [j, n) of C at c, or adds it to them. */
INLINE void NAME(put)(const product *p, T *c, int64_t j, int64_t n, NAME(vec) total, bool add) {
    const int count = (int)least(LANES, n - j);
    const T *more = add ? c + j : NAME(bias_at)(p, j);
    if (more) total += count == LANES ? VEC(more) : NAME(load_part)(more, count);
    if (count == LANES)
        STORE(c + j, total);
    else
        NAME(store_part)(c + j, count, total);
}

typedef struct NAME(packed_row) {
    const product *p;
    const T *b;
    int64_t panels, group; /* group: panels of a chunk */
    bool backwards;
} NAME(packed_row);

/* A panel of C from column j on, from kc terms at x and at b. */
static void NAME(row_panel)(const product *p, int64_t kc, const T *x, const T *b, int64_t j, bool add) {
    const int64_t n = NAME(grouped)(p);
    NAME(vec) total[4][TILE_VECTORS];
    UNROLL for (int first = 0; first < LANES; first += ROW_TERMS) {
        NAME(vec) sum[ROW_TERMS][TILE_VECTORS];
        UNROLL for (int l = 0; l < ROW_TERMS; l++) {
            UNROLL for (int v = 0; v < TILE_VECTORS; v++) sum[l][v] = (NAME(vec)){0};
        }
        for (int64_t q = first; q < kc; q += LANES) {
            UNROLL for (int l = 0; l < ROW_TERMS; l++) {
                UNROLL for (int v = 0; v < TILE_VECTORS; v++, b += LANES) sum[l][v] += x[q + l] * VEC(b);
            }
        }
        UNROLL for (int l = 0; l < ROW_TERMS; l++) {
            UNROLL for (int v = 0; v < TILE_VECTORS; v++) {
                if (first + l < 4)
                    total[l][v] = sum[l][v];
                else
                    total[l % 4][v] += sum[l][v];
            }
        }
    }
    UNROLL for (int v = 0; v < TILE_VECTORS; v++) {
        const NAME(vec) whole = (total[0][v] + total[2][v]) + (total[1][v] + total[3][v]);
        if (j + v * LANES < n) NAME(put)(p, p->c, j + v * LANES, n, whole, add);
    }
}

static void NAME(row_chunk)(void *context, int64_t chunk) {
    const NAME(packed_row) *s = context;
    const product *p = s->p;
    const int64_t depth = NAME(whole_depth)(p), first = chunk * s->group, last = least(first + s->group, s->panels);
    T copy[DOT_K];
    for (int64_t pc = 0; pc < p->k; pc += DOT_K) {
        const int64_t kc = least(DOT_K, p->k - pc), whole = least(DOT_K, depth - pc);
        const T *x = (const T *)p->a + pc * p->a_col;
        if (p->a_col != 1 || kc < whole) {
            for (int64_t q = 0; q < whole; q++) copy[q] = q < kc ? x[q * p->a_col] : 0;
            x = copy;
        }
        for (int64_t at = first; at < last; at++) {
            const int64_t j = s->backwards ? first + last - 1 - at : at;
            NAME(row_panel)(p, whole, x, s->b + (j * depth + pc) * PANEL_COLS, j * PANEL_COLS, pc > 0);
        }
        for (int64_t j = NAME(grouped)(p); j < p->n && last == s->panels; j++) {
            const TARGET to = {.c = (T *)p->c + j, .add = pc > 0, .bias = NAME(bias_at)(p, j)};
            NAME(dots)[0][0](kc, x, 0, (const T *)p->b + pc * p->b_row + j * p->b_col, p->b_col, &to);
        }
    }
}

INLINE int64_t NAME(row_chunks)(const product *p) {
    return work_of(p) < SERIAL_WORK || nr_threads() == 1 ? 1 : (int64_t)(work_of(p) / CHUNK_WORK);
}

static int32_t NAME(run_packed_row)(const product *p, const T *packed, bool backwards) {
    NAME(packed_row) s = {p, packed, ceil_div(NAME(grouped)(p), PANEL_COLS), 0, backwards};
    s.group = ceil_div(s.panels, least(NAME(row_chunks)(p), s.panels));
    nr_parallel(ceil_div(s.panels, s.group), NAME(row_chunk), &s);
    apply_epilogue(p, p->c, 1, p->n, sizeof(T));
    return NORCH_OK;
}

/* Whether a call is one row of dot products, with enough columns for a panel. */
static bool NAME(is_row)(const product *p) {
    return p->m == 1 && p->bias_step == 1 && p->n >= LANES && p->k && NAME(choose)(p) == DOT;
}

/* ---- dot products of several rows -------------------------------------------------------------------------
 *
 * The dot products of run_dot by the tiles of gemm.h: the terms that one lane of it adds are here the terms of a tile,
 * contiguous in memory. The tiles of every fourth lane are added up as the end of a dot product adds lanes.
 *
 *   k, LANES 4:  a b c d | e f g h | i j k l    as  a e i  b f j  c g k  d h l */

#define TILES_TOGETHER 4 /* which use a piece of B while it is in the first cache */

typedef struct NAME(packed_dots) {
    const product *p;
    const T *a, *b;
    int64_t a_row, pc; /* pc: the present block of k */
    int64_t panels, group;
    bool backwards;
} NAME(packed_dots);

/* A block of `depth` vectors of the rows of A, fewer numbers where it ends. */
static void NAME(gather_rows)(const product *p, int64_t pc, int64_t depth, T *to, int64_t to_row) {
    const int64_t kc = least(depth * LANES, p->k - pc);
    T copy[DOT_K];
    for (int64_t i = 0; i < p->m; i++, to += to_row) {
        const T *row = (const T *)p->a + i * p->a_row + pc;
        if (kc < depth * LANES) {
            memset(copy, 0, sizeof copy);
            row = memcpy(copy, row, (size_t)kc * sizeof(T));
        }
        for (int64_t q = 0; q < depth && depth >= LANES; q += LANES) {
            const int64_t at = least(q, depth - LANES); /* the last square may overlap the one before */
            NAME(pack_square)(depth, to + at, LANES, row + at * LANES, LANES);
        }
        for (int64_t q = 0; q < depth && depth < LANES; q++)
            for (int l = 0; l < LANES; l++) to[l * depth + q] = row[q * LANES + l];
    }
}

static void NAME(dots_chunk)(void *context, int64_t chunk) {
    const NAME(packed_dots) *s = context;
    const product *p = s->p;
    const int64_t first = chunk * s->group, last = least(first + s->group, s->panels);
    const int64_t depth = ceil_div(least(DOT_K, p->k - s->pc), LANES), tiles = ceil_div(p->m, TILE_ROWS);
    T sums[TILES_TOGETHER][4][TILE_ROWS * PANEL_COLS] __attribute__((aligned(VECTOR)));
    for (int64_t at = first; at < last; at++) {
        const int64_t j = s->backwards ? first + last - 1 - at : at;
        const T *b = s->b + (j * NAME(whole_depth)(p) + s->pc) * PANEL_COLS;
        const bool wide = p->n - j * PANEL_COLS > LANES;
        for (int64_t t0 = 0; t0 < tiles; t0 += TILES_TOGETHER) {
            const int64_t t1 = least(tiles, t0 + TILES_TOGETHER);
            for (int64_t i = 0; i < LANES * (t1 - t0); i++) {
                const int64_t l = i / (t1 - t0), t = t0 + i % (t1 - t0);
                const int64_t row = t * p->m / tiles, rows = (t + 1) * p->m / tiles - row;
                const T *piece = b + (l + 1) * depth * PANEL_COLS; /* the tiles of this one bring the next one */
                for (int64_t line = t - t0; line < depth * TILE_VECTORS; line += t1 - t0)
                    __builtin_prefetch(piece + line * LANES);
                const TARGET to = {.c = sums[t - t0][l % 4],
                                   .c_row = PANEL_COLS,
                                   .rows = (int)rows,
                                   .add = l >= 4,
                                   .cols = wide ? PANEL_COLS : LANES};
                TILES_OF_ROWS[rows - 1][wide](depth, s->a + row * s->a_row + l * depth, s->a_row, 1,
                                              b + l * depth * PANEL_COLS, PANEL_COLS, &to);
            }
            for (int64_t t = t0; t < t1; t++) {
                const int64_t row = t * p->m / tiles, rows = (t + 1) * p->m / tiles - row;
                const T *sum = sums[t - t0][0];
                for (int64_t i = 0; i < rows * (1 + wide); i++) {
                    const int64_t v = i / rows * LANES, part = i % rows * PANEL_COLS + v;
                    const T *x = sum + part;
                    const int64_t next = TILE_ROWS * PANEL_COLS;
                    const NAME(vec) total = (VEC(x) + VEC(x + 2 * next)) + (VEC(x + next) + VEC(x + 3 * next));
                    NAME(put)(p, (T *)p->c + (row + i % rows) * p->c_row, j * PANEL_COLS + v, p->n, total, s->pc > 0);
                }
            }
        }
    }
    const int64_t left = first * PANEL_COLS;
    if (s->pc + DOT_K >= p->k)
        apply_epilogue(p, (T *)p->c + left, p->m, least(last * PANEL_COLS, p->n) - left, sizeof(T));
}

static int32_t NAME(run_packed_dots)(const product *p, const T *packed, bool backwards) {
    NAME(packed_dots) s = {.p = p, .b = packed, .panels = ceil_div(p->n, PANEL_COLS), .backwards = backwards};
    s.a_row = least(DOT_K, NAME(whole_depth)(p)) + LANES; /* no power of two: rows would share sets of the cache */
    s.group = ceil_div(s.panels, least(NAME(row_chunks)(p), s.panels));
    const size_t bytes = (size_t)(p->m * s.a_row) * sizeof(T);
    T *a = nr_scratch(bytes);
    if (!a) return nr_fail(NORCH_ERROR_MEMORY, "matmul: no memory for %lld bytes of scratch", (long long)bytes);
    s.a = a;
    for (s.pc = 0; s.pc < p->k; s.pc += DOT_K) {
        NAME(gather_rows)(p, s.pc, ceil_div(least(DOT_K, p->k - s.pc), LANES), a, s.a_row);
        nr_parallel(ceil_div(s.panels, s.group), NAME(dots_chunk), &s);
    }
    nr_scratch_free(a, bytes);
    return NORCH_OK;
}

/* Whether a call has several rows of dot products, and enough columns for a tile. A single row or column has sums of
 * another order. With fewer registers than AVX-512 has, packing is not faster. */
static bool NAME(is_dots)(const product *p) {
    if (VECTOR < 64 || p->m < 2 || p->n < LANES || (p->n % 4 && p->m % DOT_ROWS == 1)) return false;
    return p->k && NAME(choose)(p) == DOT;
}

/* ---- calls ------------------------------------------------------------------------------------------------ */

/* The size, in numbers, of the packed right operand of a call; 0 if the product runs without packing. Dot products of
 * several rows have a vector more than any other product, by which packed.c recognizes them. A few rows of A read the
 * weight in place. Rows of A that are longer than the cache would be read from memory for each panel. */
static int64_t NAME(packed_numbers)(const nr_call *call) {
    const nr_matmul_plan *plan = call->plan;
    product p;
    first_product(call, &p);
    if (plan->batch_ndim || plan->residual) return 0;
    if (NAME(is_row)(&p)) return ceil_div(NAME(grouped)(&p), PANEL_COLS) * PANEL_COLS * NAME(whole_depth)(&p);
    if (NAME(is_dots)(&p)) return ceil_div(p.n, PANEL_COLS) * PANEL_COLS * NAME(whole_depth)(&p) + LANES;
    if (p.m < 2 || p.n < 2 || !NAME(depth)(&p)) return 0;
    if ((p.b_col == 1 && p.m <= 2 * TILE_ROWS) || p.k * TILE_ROWS * (int64_t)sizeof(T) > block_bytes()) return 0;
    return ceil_div(p.n, PANEL_COLS) * PANEL_COLS * p.k;
}

static void NAME(pack_right)(const nr_call *call, T *to) {
    product p;
    first_product(call, &p);
    if (p.m == 1)
        NAME(pack_columns)(&p, NAME(grouped)(&p), ROW_TERMS, to);
    else if (NAME(is_dots)(&p))
        NAME(pack_columns)(&p, p.n, 1, to);
    else
        NAME(pack_b)(to, p.k, p.b, p.b_row, p.b_col, p.n);
}

static int32_t NAME(run_packed)(const nr_layer *layer) {
    product p;
    first_product(&layer->call, &p);
    if (p.m == 1) return NAME(run_packed_row)(&p, layer->packed, layer->backwards);
    if (NAME(is_dots)(&p)) return NAME(run_packed_dots)(&p, layer->packed, layer->backwards);
    const int64_t rows = greatest(TILE_ROWS, block_bytes() / (p.k * (int64_t)sizeof(T)) / TILE_ROWS * TILE_ROWS);
    NAME(packed_product) s = {.p = &p, .b = layer->packed, .depth = NAME(depth)(&p), .tiles = ceil_div(p.m, TILE_ROWS)};
    s.backwards = layer->backwards;
    s.blocks = ceil_div(p.m, rows);
    s.group = s.panels = ceil_div(p.n, PANEL_COLS);
    const int64_t workers = work_of(&p) < SERIAL_WORK ? 1 : nr_threads();
    if (workers > 1) s.group = ceil_div(s.panels, least(ceil_div(3 * workers, s.blocks), ceil_div(s.panels, 4)));
    s.a_size = (ceil_div(s.tiles, s.blocks) * TILE_ROWS) * p.k;
    const size_t bytes = (size_t)(s.a_size * workers) * sizeof(T);
    if (!(s.packed_a = nr_scratch(bytes)))
        return nr_fail(NORCH_ERROR_MEMORY, "matmul: no memory for %lld bytes of scratch", (long long)bytes);
    nr_parallel(least(workers, s.blocks * ceil_div(s.panels, s.group)), NAME(packed_worker), &s);
    nr_scratch_free(s.packed_a, bytes);
    return NORCH_OK;
}

#undef ROW_TERMS
#undef TILES_TOGETHER
