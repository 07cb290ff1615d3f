/* gemm_packed: C = A B (+ bias), with an epilogue or without, where B was packed as a whole before: the products of
 * recordings (families/layer.h), for one float type. Included after gemm.h, whose tiles and blocks of k it uses, so
 * that sums are those of gemm.h to the bit.
 *
 *   for blocks of rows of A, packed: a share of the second cache
 *     for panels of B
 *       for blocks of k
 *         for tiles of the block
 *
 * Nothing of B is copied, and what is used of it lies in one piece. Tiles have about the same number of rows: 128 rows
 * are 2 tiles of 12 and 8 of 13, not 9 of 14 and one of 2. */

typedef struct NAME(packed_product) {
    const product *p;
    const T *b;
    T *packed_a;           /* one block a worker, a_size apart */
    int64_t a_size, depth; /* depth: of a block of k */
    int64_t tiles, blocks; /* of rows */
    int64_t panels, group; /* group: panels of a task */
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
    for (int64_t j = first; j < last; j++) {
        TARGET target = {.c_row = p->c_row, .cols = (int)least(PANEL_COLS, p->n - j * PANEL_COLS)};
        target.bias = NAME(bias_at)(p, j * PANEL_COLS);
        for (int64_t pc = 0; pc < p->k; pc += s->depth) {
            const T *b = s->b + (j * p->k + pc) * PANEL_COLS;
            const int64_t kc = least(s->depth, p->k - pc);
            target.add = pc > 0;
            for (int64_t t = from; t < to; t++) {
                const int64_t row = NAME(first_row)(s, t);
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
 * The dot products of run_dot, with LANES columns of B to a panel: lane l of the sum of a column there is here a lane
 * of sum[l], for a column a lane, so that B is read in one stream, and the ends of the sums are additions of vectors.
 *
 *   B (k, n), LANES 4:   a b c d | e f ..      panel 0: a b c d  i j k l ..      sum[0] += x[0] (a b c d),
 *                        i j k l | m n ..                                        sum[1] += x[1] (i j k l) .. */

/* The columns of whole groups of four. The others are sums in another order, computed from the weight itself. */
INLINE int64_t NAME(grouped)(const product *p) { return p->n / 4 * 4; }

INLINE int64_t NAME(whole_depth)(const product *p) { return ceil_div(p->k, LANES) * LANES; }

static void NAME(pack_columns)(const product *p, T *to) {
    const int64_t depth = NAME(whole_depth)(p), n = NAME(grouped)(p);
    for (int64_t j = 0; j < n; j += LANES)
        for (int64_t q = 0; q < depth; q++)
            for (int64_t l = j; l < j + LANES; l++)
                *to++ = q < p->k && l < n ? ((const T *)p->b)[q * p->b_row + l * p->b_col] : 0;
}

typedef struct NAME(packed_row) {
    const product *p;
    const T *b;
    int64_t panels, group; /* group: panels of a chunk */
} NAME(packed_row);

/* Columns [j, j + LANES) of C, from kc terms at x and at b. */
static void NAME(row_panel)(const product *p, int64_t kc, const T *x, const T *b, int64_t j, bool add) {
    NAME(vec) sum[LANES];
    UNROLL for (int l = 0; l < LANES; l++) sum[l] = (NAME(vec)){0};
    for (int64_t q = 0; q < kc; q += LANES, b += LANES * LANES) {
        UNROLL for (int l = 0; l < LANES; l++) sum[l] += x[q + l] * VEC(b + l * LANES);
    }
    UNROLL for (int l = 4; l < LANES; l++) sum[l % 4] += sum[l];
    NAME(vec) total = (sum[0] + sum[2]) + (sum[1] + sum[3]);
    const int count = (int)least(LANES, NAME(grouped)(p) - j);
    T *c = (T *)p->c + j;
    const T *more = add ? c : NAME(bias_at)(p, j);
    if (more) total += count == LANES ? VEC(more) : NAME(load_part)(more, count);
    if (count == LANES)
        STORE(c, total);
    else
        NAME(store_part)(c, count, total);
}

static void NAME(row_chunk)(void *context, int64_t chunk) {
    const NAME(packed_row) *s = context;
    const product *p = s->p;
    const int64_t depth = NAME(whole_depth)(p), last = least((chunk + 1) * s->group, s->panels);
    T copy[DOT_K];
    for (int64_t pc = 0; pc < p->k; pc += DOT_K) {
        const int64_t kc = least(DOT_K, p->k - pc), whole = least(DOT_K, depth - pc);
        const T *x = (const T *)p->a + pc * p->a_col;
        if (p->a_col != 1 || kc < whole) {
            for (int64_t q = 0; q < whole; q++) copy[q] = q < kc ? x[q * p->a_col] : 0;
            x = copy;
        }
        for (int64_t j = chunk * s->group; j < last; j++)
            NAME(row_panel)(p, whole, x, s->b + (j * depth + pc) * LANES, j * LANES, pc > 0);
        for (int64_t j = NAME(grouped)(p); j < p->n && last == s->panels; j++) {
            const TARGET to = {.c = (T *)p->c + j, .add = pc > 0, .bias = NAME(bias_at)(p, j)};
            NAME(dots)[0][0](kc, x, 0, (const T *)p->b + pc * p->b_row + j * p->b_col, p->b_col, &to);
        }
    }
}

static int32_t NAME(run_packed_row)(const product *p, const T *packed) {
    NAME(packed_row) s = {.p = p, .b = packed, .panels = ceil_div(NAME(grouped)(p), LANES)};
    const int64_t chunks = work_of(p) < SERIAL_WORK || nr_threads() == 1 ? 1 : (int64_t)(work_of(p) / CHUNK_WORK);
    s.group = ceil_div(s.panels, least(chunks, s.panels));
    nr_parallel(ceil_div(s.panels, s.group), NAME(row_chunk), &s);
    apply_epilogue(p, p->c, 1, p->n, sizeof(T));
    return NORCH_OK;
}

/* Whether a call is one row of dot products, with columns enough for a panel. */
static bool NAME(is_row)(const product *p) {
    return p->m == 1 && p->bias_step == 1 && p->n >= LANES && p->k && NAME(choose)(p) == DOT;
}

/* ---- calls ------------------------------------------------------------------------------------------------ */

/* Numbers of the packed right operand of a call; 0: the product runs as it is. Dot products of more than one row
 * read the weight where it lies, and so do a few rows of A. Rows of A that are longer than the cache would be
 * read from memory for each panel. */
static int64_t NAME(packed_numbers)(const nr_call *call) {
    const nr_matmul_plan *plan = call->plan;
    product p;
    first_product(call, &p);
    if (plan->batch_ndim || plan->residual) return 0;
    if (NAME(is_row)(&p)) return ceil_div(NAME(grouped)(&p), LANES) * LANES * NAME(whole_depth)(&p);
    if (p.m < 2 || p.n < 2 || !NAME(depth)(&p)) return 0;
    if ((p.b_col == 1 && p.m <= 2 * TILE_ROWS) || p.k * TILE_ROWS * (int64_t)sizeof(T) > block_bytes()) return 0;
    return ceil_div(p.n, PANEL_COLS) * PANEL_COLS * p.k;
}

static void NAME(pack_right)(const nr_call *call, T *to) {
    product p;
    first_product(call, &p);
    if (p.m == 1)
        NAME(pack_columns)(&p, to);
    else
        NAME(pack_b)(to, p.k, p.b, p.b_row, p.b_col, p.n);
}

static int32_t NAME(run_packed)(const nr_call *call, const T *packed) {
    product p;
    first_product(call, &p);
    if (p.m == 1) return NAME(run_packed_row)(&p, packed);
    const int64_t rows = greatest(TILE_ROWS, block_bytes() / (p.k * (int64_t)sizeof(T)) / TILE_ROWS * TILE_ROWS);
    NAME(packed_product) s = {.p = &p, .b = packed, .depth = NAME(depth)(&p), .tiles = ceil_div(p.m, TILE_ROWS)};
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
