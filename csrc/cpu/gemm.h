/* gemm: C = A B (+ bias), with an epilogue or without, for one float type: a template of each_dtype.h.
 *
 * The method is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008), with the
 * loops of BLIS (Van Zee and van de Geijn 2015):
 *
 *   for jc in N by BLOCK_N                               |<-PANEL_COLS->|
 *     for pc in K by blocks: pack B[pc, jc]              +--------------+--------------+
 *       for ic in M by mc: pack A[ic, pc]                |              |              | kc: B, panels in the
 *         for jr in panels of B                          | first cache  |  next panel  | third cache
 *           for ir in panels of A                        +--------------+--------------+
 *             tile: registers hold     TILE_ROWS  +----+ +--------------+
 *             TILE_ROWS x PANEL_COLS              | kc | |     C +=     |
 *             of C while kc columns               +----+ +--------------+
 *             of A meet kc rows of B      mc: A, panels in the second cache
 *
 * Small and slender products have simpler algorithms (enum algorithm). Each element of C is summed in the order of k,
 * in blocks that depend on the shape of the product and on the machine, so that chunks and threads do not change a
 * result. */

#include "gemm_pack.h"
#include "gemm_tile.h"

#define BLOCKS NAME(blocks)

/* The tile from packed panels; for whole panels every stride is a constant. */
static void NAME(tile_packed)(int64_t k, const T *a, const T *b, const char *next, int64_t next_step,
                              const TARGET *to) {
    if (to->rows == TILE_ROWS && to->cols > LANES)
        NAME(tile)(TILE_ROWS, 2, k, a, 1, TILE_ROWS, b, PANEL_COLS, next, next_step, to);
    else
        TILES_OF_ROWS[to->rows - 1][to->cols > LANES](k, a, 1, TILE_ROWS, b, PANEL_COLS, to);
}

/* rows x cols dot products of rows of A and columns of B, both contiguous along k. */
INLINE void NAME(dot)(int rows, int cols, int64_t k, const T *a, int64_t a_row, const T *b, int64_t b_col,
                      const TARGET *to) {
    NAME(vec) sum[DOT_ROWS][4];
    UNROLL for (int i = 0; i < rows; i++) { UNROLL for (int j = 0; j < cols; j++) sum[i][j] = (NAME(vec)){0}; }
    int64_t p = 0;
    if (rows == 1 && cols == 1) { /* four partial sums hide the latency that a single one has */
        for (int j = 1; j < 4; j++) sum[0][j] = (NAME(vec)){0};
        for (; p + 4 * LANES <= k; p += 4 * LANES) {
            UNROLL for (int j = 0; j < 4; j++) { sum[0][j] += VEC(a + p + j * LANES) * VEC(b + p + j * LANES); }
        }
        sum[0][0] = (sum[0][0] + sum[0][1]) + (sum[0][2] + sum[0][3]);
    }
    for (; p + LANES <= k; p += LANES) {
        NAME(vec) row[DOT_ROWS];
        UNROLL for (int i = 0; i < rows; i++) row[i] = VEC(a + i * a_row + p);
        UNROLL for (int j = 0; j < cols; j++) {
            NAME(vec) col = VEC(b + j * b_col + p);
            LOADED(col);
            UNROLL for (int i = 0; i < rows; i++) sum[i][j] += row[i] * col;
        }
    }
    if (p < k) {
        int count = (int)(k - p);
        NAME(vec) row[DOT_ROWS];
        UNROLL for (int i = 0; i < rows; i++) row[i] = NAME(load_part)(a + i * a_row + p, count);
        UNROLL for (int j = 0; j < cols; j++) {
            NAME(vec) col = NAME(load_part)(b + j * b_col + p, count);
            UNROLL for (int i = 0; i < rows; i++) sum[i][j] += row[i] * col;
        }
    }
    UNROLL for (int i = 0; i < rows; i++) {
        /* folds the lanes of each sum to four, and adds these across by a transpose */
        NAME(four) part[4] = {{0}, {0}, {0}, {0}};
        UNROLL for (int j = 0; j < cols; j++) {
            T lanes[LANES < 4 ? 4 : LANES] __attribute__((aligned(VECTOR))) = {0};
            *(NAME(vec) *)lanes = sum[i][j];
            part[j] = FOUR(lanes);
            for (int x = 4; x < LANES; x += 4) part[j] += FOUR(lanes + x);
        }
        TRANSPOSE_FOUR(part[0], part[1], part[2], part[3]);
        NAME(four) total = (part[0] + part[2]) + (part[1] + part[3]);
        T *c = to->c + i * to->c_row;
        const T *more = to->add ? c : to->bias;
        if (cols == 4) {
            if (more) total += FOUR(more);
            *(NAME(four_at) *)c = total;
        } else {
            for (int j = 0; j < cols; j++) c[j] = more ? total[j] + more[j] : total[j];
        }
    }
}

typedef void (*NAME(dot_of))(int64_t k, const T *a, int64_t a_row, const T *b, int64_t b_col, const TARGET *to);
#define DOT_OF(rows, cols)                                                                                 \
    static void NAME(dot_##rows##x##cols)(int64_t k, const T *a, int64_t a_row, const T *b, int64_t b_col, \
                                          const TARGET *to) {                                              \
        NAME(dot)(rows, cols, k, a, a_row, b, b_col, to);                                                  \
    }
#define DOTS(rows) DOT_OF(rows, 1) DOT_OF(rows, 4)
EACH_DOT_ROW(DOTS)
#undef DOT_OF
#undef DOTS
#define DOTS(rows) {NAME(dot_##rows##x1), NAME(dot_##rows##x4)},
static const NAME(dot_of) NAME(dots)[DOT_ROWS][2] = {EACH_DOT_ROW(DOTS)};
#undef DOTS

/* Packs k x cols of B into consecutive panels. Contiguous rows are read in long pieces, for the TLB and the
 * prefetchers. */
static __attribute__((noinline)) void NAME(pack_b)(T *restrict to, int64_t k, const T *restrict b, int64_t b_row,
                                                   int64_t b_col, int64_t cols) {
    int64_t j = 0, whole = b_col == 1 && cols >= 2 * PANEL_COLS ? cols / PANEL_COLS : 0;
    for (int64_t p = 0; p < k && whole; p++) {
        for (j = 0; j < whole; j++) {
            memcpy(to + (j * k + p) * PANEL_COLS, b + p * b_row + j * PANEL_COLS, PANEL_COLS * sizeof(T));
        }
    }
    for (j = whole * PANEL_COLS; j < cols; j += PANEL_COLS) {
        NAME(pack)(PANEL_COLS, to + j * k, k, b + j * b_col, b_col, b_row, (int)least(cols - j, PANEL_COLS));
    }
}

#include "gemm_pack_narrow.h"

/* ---- algorithms without blocking -------------------------------------------------------------- */

INLINE const T *NAME(bias_at)(const product *p, int64_t j) {
    return p->bias ? (const T *)p->bias + j * p->bias_step : NULL;
}

/* Adds rows of B, times the numbers of A, to a piece of C: eight at a time, so that B is read once, in order. */
static void NAME(add_rows)(const product *p, int64_t k, const T *a, const T *b, int64_t n, T *restrict c) {
    const int64_t step = p->b_row;
    int64_t q = 0;
    for (; q + 8 <= k; q += 8) {
        T x[8];
        for (int r = 0; r < 8; r++) x[r] = a[(q + r) * p->a_col];
        const T *restrict b0 = b + q * step, *restrict b1 = b0 + step, *restrict b2 = b1 + step;
        const T *restrict b3 = b2 + step, *restrict b4 = b3 + step, *restrict b5 = b4 + step;
        const T *restrict b6 = b5 + step, *restrict b7 = b6 + step;
        for (int64_t j = 0; j < n; j++) {
            T even = c[j] + x[0] * b0[j] + x[2] * b2[j] + x[4] * b4[j] + x[6] * b6[j];
            T odd = x[1] * b1[j] + x[3] * b3[j] + x[5] * b5[j] + x[7] * b7[j];
            c[j] = even + odd;
        }
    }
    for (; q < k; q++) {
        T x = a[q * p->a_col];
        for (int64_t j = 0; j < n; j++) c[j] += x * b[q * step + j];
    }
}

/* One row of C. Long sums are divided into blocks, because a sum that has grown large loses the digits of small
 * terms. */
static void NAME(run_row)(const product *p) {
    const T *a = p->a, *b = p->b;
    T *restrict c = p->c;
    int64_t n = p->n, step = p->b_row;
    for (int64_t j = 0; j < n && !ADDS(p); j++) c[j] = p->bias ? *NAME(bias_at)(p, j) : (T)0;
    if (p->b_col != 1) {
        for (int64_t j = 0; j < n; j++) {
            for (int64_t q = 0; q < p->k;) {
                const int64_t end = least(q + DOT_K, p->k);
                T sum = 0;
                for (; q < end; q++) sum += a[q * p->a_col] * b[q * step + j * p->b_col];
                c[j] += sum;
            }
        }
        return;
    }
    for (int64_t from = 0; from < n; from += BLOCK_N) {
        const int64_t cols = least(BLOCK_N, n - from), first = least(ROW_K, p->k);
        NAME(add_rows)(p, first, a, b + from, cols, c + from);
        for (int64_t q = first; q < p->k; q += ROW_K) {
            T sum[BLOCK_N];
            memset(sum, 0, (size_t)cols * sizeof(T));
            NAME(add_rows)(p, least(ROW_K, p->k - q), a + q * p->a_col, b + q * step + from, cols, sum);
            for (int64_t j = 0; j < cols; j++) c[from + j] += sum[j];
        }
    }
}

/* k = 1: a row of C is the row of B times a number, written in order, which tiles would not do. */
static void NAME(run_outer)(const product *p) {
    const T *restrict b = p->b, *restrict bias = p->bias;
    for (int64_t i = 0; i < p->m; i++) {
        const T x = ((const T *)p->a)[i * p->a_row];
        T *restrict c = (T *)p->c + i * p->c_row;
        if (bias)
            for (int64_t j = 0; j < p->n; j++) c[j] = bias[j] + x * b[j];
        else
            for (int64_t j = 0; j < p->n; j++) c[j] = (T)0 + x * b[j];
    }
}

/* k = 1 and one row or column, such as gradients at batch size 1: a vector times a number. False: it is another
 * product, or one for several threads. */
static bool NAME(run_scaled)(const nr_call *call) {
    const nr_matmul_plan *p = call->plan;
    const bool row = p->m == 1 && (p->b_col == 1 || p->n == 1), column = p->n == 1 && p->a_row == 1 && p->c_row == 1;
    if (p->k != 1 || !(row || column) || p->batch_ndim || call->kernel || p->residual || p->m * p->n > ALONE)
        return false;
    const T x = *(const T *)(row ? p->a : p->b), *restrict y = row ? p->b : p->a, *restrict bias = p->bias;
    const int64_t n = row ? p->n : p->m;
    T *restrict c = p->c;
    if (!bias)
        for (int64_t j = 0; j < n; j++) c[j] = (T)0 + x * y[j];
    else if (row)
        for (int64_t j = 0; j < n; j++) c[j] = bias[j] + x * y[j];
    else
        for (int64_t j = 0; j < n; j++) c[j] = *bias + x * y[j];
    return true;
}

/* Groups of four columns of B stay in the first cache while the rows of A pass by. */
static void NAME(run_dot)(const product *p) {
    T packed[DOT_K];
    for (int64_t pc = 0; pc < p->k; pc += DOT_K) {
        int64_t kc = least(DOT_K, p->k - pc);
        const T *a = (const T *)p->a + pc * p->a_col, *b = (const T *)p->b + pc;
        if (p->a_col != 1) { /* a single row */
            for (int64_t q = 0; q < kc; q++) packed[q] = a[q * p->a_col];
            a = packed;
        }
        for (int64_t j = 0; j < p->n;) {
            int cols = j + 4 <= p->n ? 4 : 1;
            T repeated[4];
            TARGET to = {.c = (T *)p->c + j, .c_row = p->c_row, .add = pc > 0 || ADDS(p), .bias = NAME(bias_at)(p, j)};
            if (to.bias && p->bias_step == 0) {
                for (int x = 0; x < 4; x++) repeated[x] = *to.bias;
                to.bias = repeated;
            }
            for (int64_t i = 0; i < p->m;) {
                int64_t rows = least(DOT_ROWS, p->m - i);
                NAME(dots)[rows - 1][cols == 4](kc, a + i * p->a_row, p->a_row, b + j * p->b_col, p->b_col, &to);
                to.c += rows * p->c_row;
                i += rows;
            }
            j += cols;
        }
    }
}

/* Whether rows of B come from beyond the second cache. */
static bool NAME(is_far)(const product *p) { return p->b_col == 1 && p->k * p->n * (int64_t)sizeof(T) >= FAR_BYTES; }

/* Whether to read B in place, without packing. That pays for few tiles of A, and fewer if vectors of B cross cache
 * lines. If B is far, that is in short blocks of k, whose rows of B stay in the second cache together with C: more
 * tiles pay if they fit, and few do if not. */
static bool NAME(in_place)(const product *p) {
    const int64_t size = sizeof(T), together = (p->m + BLOCK_K / PACK_PANELS) * p->n * size;
    const bool far = NAME(is_far)(p), fits = together <= nr_second_cache() / 4 * 3;
    const int64_t tiles = p->b_row * size % VECTOR || (far && !fits) ? 2 : far ? FEW_TILES(0) : 5;
    return p->b_col == 1 && p->m <= tiles * TILE_ROWS;
}

/* Takes some panels of B at a time, in place if few rows of A use them, otherwise packed. A tile of A meets all of them
 * while it is in the first cache; without memory for many there are as many as fit on the stack. For short sums they
 * are more, so that rows of C are written in long pieces. In place, panels of the same rows of B follow each other, as
 * they share pages. If B is far, tiles bring the next panel to the second cache: those of the first rows of A a line of
 * each row, those of the next rows the other line. */
static void NAME(run_panel)(const product *p) {
    T stack[BLOCK_K * PANEL_COLS] __attribute__((aligned(64)));
    const int64_t k_size = ceil_div(p->k, ceil_div(p->k, p->k_block)), blocks = ceil_div(p->k, k_size);
    const int64_t tiles = ceil_div(p->m, TILE_ROWS), rows = p->m / tiles, longer = p->m % tiles;
    const bool in_place = NAME(in_place)(p), far = NAME(is_far)(p);
    const int64_t depth = k_size * 4 <= BLOCK_K ? k_size : p->k_block, panels = ceil_div(p->n, PANEL_COLS);
    int64_t fit = in_place ? 1 : BLOCK_K / depth;
    const int64_t wide = ceil_div(panels, ceil_div(panels, GROUP_PANELS * fit));
    const size_t bytes = (size_t)(wide * PANEL_COLS * k_size) * sizeof(T);
    const bool more = !in_place && wide > fit && tiles > 1 && work_of(p) >= SERIAL_WORK;
    T *const scratch = more ? nr_scratch(bytes) : NULL, *const packed = scratch ? scratch : stack;
    if (scratch) fit = wide;
    const int64_t group = fit * PANEL_COLS, groups = ceil_div(p->n, group);
    for (int64_t x = 0; x < groups * blocks; x++) {
        const int64_t pc = (in_place ? x / groups : x % blocks) * k_size, kc = least(k_size, p->k - pc);
        const int64_t first = (in_place ? x % groups : x / blocks) * group, cols = least(group, p->n - first);
        const T *a = (const T *)p->a + pc * p->a_col, *b = (const T *)p->b + pc * p->b_row + first * p->b_col;
        const bool lies = in_place && (cols == PANEL_COLS || cols == LANES);
        const int64_t b_row = lies ? p->b_row : PANEL_COLS;
        if (!lies) NAME(pack_b)(packed, kc, b, p->b_row, p->b_col, cols), b = packed;
        TARGET to = {.c_row = p->c_row, .add = pc > 0 || ADDS(p)};
        T *c = (T *)p->c + first;
        for (int64_t t = 0; t < tiles; t++) {
            to.rows = (int)(rows + (t < longer));
            to.ahead = lies && far && t < 2 ? PANEL_COLS + t * LANES : 0;
            for (int64_t j = 0; j < cols; j += PANEL_COLS) {
                to.c = c + j;
                to.cols = (int)least(PANEL_COLS, cols - j);
                to.bias = NAME(bias_at)(p, first + j);
                TILES_OF_ROWS[to.rows - 1][to.cols > LANES](kc, a, p->a_row, p->a_col, b + j * kc, b_row, &to);
            }
            a += to.rows * p->a_row;
            c += to.rows * p->c_row;
        }
    }
    if (scratch) nr_scratch_free(scratch, bytes);
}

/* ---- the blocked algorithm -------------------------------------------------------------------- */

typedef struct BLOCKS {
    const product *p;
    T *packed_a, *packed_b; /* packed_a: one block a worker, a_size apart */
    int64_t a_size;
    int64_t pc, kc, jc, nc, mc; /* the present block of K and N; rows of a block of A */
    int64_t row_blocks, group;  /* blocks of A; panels of B that a task takes */
    bool pack; /* some panels of B are packed before the first block of A meets it, not all of them at once */
    int64_t tasks;
    _Atomic int64_t next; /* the next task to begin */
} BLOCKS;

static void NAME(pack_chunk)(void *context, int64_t chunk) {
    const BLOCKS *s = context;
    const product *p = s->p;
    int64_t j = chunk * PACK_PANELS * PANEL_COLS, cols = least(PACK_PANELS * PANEL_COLS, s->nc - j);
    const void *b = NAME(operand_at)(p, p->b, s->pc * p->b_row + (s->jc + j) * p->b_col);
    if (WIDENS(p))
        NAME(pack_narrow_panels)(p, false, s->packed_b + j * s->kc, s->kc, b, p->b_col, p->b_row, cols);
    else
        NAME(pack_b)(s->packed_b + j * s->kc, s->kc, b, p->b_row, p->b_col, cols);
}

/* A task: the product of one block of A and a group of panels of B. */
static void NAME(block_task)(const BLOCKS *s, T *packed_a, int64_t task) {
    const product *p = s->p;
    int64_t i0 = task % s->row_blocks * s->mc, mc = least(s->mc, p->m - i0), kc = s->kc;
    const T *a = NAME(operand_at)(p, p->a, i0 * p->a_row + s->pc * p->a_col);
    if (WIDENS(p)) NAME(pack_narrow_panels)(p, true, packed_a, kc, a, p->a_row, p->a_col, mc);
    const int64_t whole = p->a_row == 1 && !WIDENS(p) ? mc / TILE_ROWS * TILE_ROWS : 0;
    for (int64_t q = 0; q < kc && whole; q++) { /* A^T is read in long pieces, as B is */
        const T *row = a + q * p->a_col;
        for (int64_t i = 0; i < whole; i += TILE_ROWS)
            memcpy(packed_a + i * kc + q * TILE_ROWS, row + i, TILE_ROWS * sizeof(T));
    }
    for (int64_t i = whole; i < mc && !WIDENS(p); i += TILE_ROWS) {
        NAME(pack_a)(packed_a + i * kc, kc, a + i * p->a_row, p->a_row, p->a_col, mc - i);
    }
    int64_t first = task / s->row_blocks * s->group * PANEL_COLS, last = least(s->nc, first + s->group * PANEL_COLS);
    const bool packs = s->pack && i0 == 0;
    for (int64_t j = first; j < last; j += PANEL_COLS) {
        TARGET to = {.c_row = p->c_row, .add = s->pc > 0, .bias = NAME(bias_at)(p, s->jc + j)};
        to.cols = (int)least(PANEL_COLS, s->nc - j);
        if (packs && (j - first) % (PACK_PANELS * PANEL_COLS) == 0)
            NAME(pack_chunk)((void *)s, j / (PACK_PANELS * PANEL_COLS));
        /* the tiles of this panel bring the next one to the second cache, unless it is not packed yet */
        const bool more = !packs && j + PANEL_COLS < last;
        const char *next = (const char *)(s->packed_b + (more ? j + PANEL_COLS : j) * kc);
        const int64_t next_step = more ? ceil_div(PANEL_COLS * TILE_ROWS * (int64_t)sizeof(T), mc) : 0;
        for (int64_t i = 0; i < mc; i += TILE_ROWS, next += next_step * kc) {
            to.rows = (int)least(TILE_ROWS, mc - i);
            to.c = (T *)p->c + (i0 + i) * p->c_row + s->jc + j;
            NAME(tile_packed)(kc, packed_a + i * kc, s->packed_b + j * kc, next, next_step, &to);
        }
    }
    if (s->pc + kc == p->k) apply_epilogue(p, (T *)p->c + i0 * p->c_row + s->jc + first, mc, last - first, sizeof(T));
}

/* A worker owns a buffer for A and takes tasks while there are any. */
static void NAME(worker)(void *context, int64_t worker) {
    BLOCKS *s = context;
    T *packed_a = s->packed_a + worker * s->a_size;
    for (int64_t task; (task = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < s->tasks;) {
        NAME(block_task)(s, packed_a, task);
    }
}

static void NAME(run_blocked)(const product *p, int64_t workers, BLOCKS *s) {
    int64_t k_size = ceil_div(p->k, ceil_div(p->k, deepest_block(sizeof(T))));
    s->p = p;
    for (s->jc = 0; s->jc < p->n; s->jc += BLOCK_N) {
        s->nc = least(BLOCK_N, p->n - s->jc);
        int64_t panels = ceil_div(s->nc, PANEL_COLS);
        int64_t groups = workers == 1 ? 1 : least(ceil_div(workers * 3, s->row_blocks), ceil_div(panels, 4));
        s->group = ceil_div(panels, groups);
        s->tasks = s->row_blocks * ceil_div(panels, s->group);
        for (s->pc = 0; s->pc < p->k; s->pc += k_size) {
            s->kc = least(k_size, p->k - s->pc);
            s->pack = workers == 1;
            if (!s->pack) nr_parallel(ceil_div(panels, PACK_PANELS), NAME(pack_chunk), s);
            s->next = 0;
            nr_parallel(least(workers, s->tasks), NAME(worker), s);
        }
    }
}

static int32_t NAME(run_batch_blocked)(const nr_matmul_plan *plan, product *p) {
    BLOCKS s;
    int64_t workers = nr_threads(), count = batch_count(plan), k_size = least(p->k, deepest_block(sizeof(T)));
    int64_t rows = block_bytes() / (k_size * (int64_t)sizeof(T));
    s.row_blocks = ceil_div(p->m, rows);
    s.mc = ceil_div(ceil_div(p->m, s.row_blocks), TILE_ROWS) * TILE_ROWS;
    s.row_blocks = ceil_div(p->m, s.mc);
    s.a_size = s.mc * k_size;
    int64_t b_size = ceil_div(least(p->n, BLOCK_N), PANEL_COLS) * PANEL_COLS * k_size;
    const int64_t c_size = WIDENS(p) ? p->m * p->n : 0; /* of float32 */
    size_t bytes = (size_t)(s.a_size * workers + b_size + c_size) * sizeof(T);
    T *scratch = nr_scratch(bytes);
    if (!scratch) return nr_fail(NORCH_ERROR_MEMORY, "matmul: no memory for %lld bytes of scratch", (long long)bytes);
    s.packed_b = scratch;
    s.packed_a = scratch + b_size;
    for (int64_t item = 0; item < count; item++) {
        move_to(plan, item, WIDENS(p) ? sizeof(uint16_t) : sizeof(T), p);
        if (WIDENS(p)) p->out = p->c, p->out_row = p->c_row, p->c = s.packed_a + s.a_size * workers;
        NAME(run_blocked)(p, workers, &s);
    }
    nr_scratch_free(scratch, bytes);
    return NORCH_OK;
}

/* ---- the choice of algorithm and chunks --------------------------------------------------------- */

/* The thresholds are the crossover points measured on Zen 4, and for AVX2 on Zen 3. */
static algorithm NAME(choose)(const product *p) {
    int along_k = p->b_row == 1 && (p->a_col == 1 || p->m == 1) && p->k >= LANES;
    if (p->m == 1) return along_k ? DOT : ROW;
    if (p->k == 1 && p->b_col == 1 && p->n >= LANES) return OUTER;
    int64_t padded = ceil_div(p->n, LANES) * LANES;
    /* a dot product ends with a sum over lanes, a panel begins with a transpose: which costs less decides, if a block
     * of A stays in the second cache while the columns pass by */
    const bool narrow = p->n * 3 <= padded * 2, stays = p->m * DOT_K * (int64_t)sizeof(T) <= nr_second_cache() / 2;
    if (along_k && (narrow ? p->k >= 6 * LANES : p->k >= p->m * LANES && stays)) return DOT;
    const int64_t size = sizeof(T), tiles = FEW_TILES(p->a_col);
    const bool collide = p->a_row == 1 && p->a_col * size % PAGE == 0 && p->k * size > 512;
    if (p->m <= tiles * TILE_ROWS || p->k * size <= SHORT_BYTES(p->a_col, size) ||
        p->n <= (collide ? 1 : FEW_PANELS(p->a_col)) * PANEL_COLS ||
        work_of(p) <= (collide ? 1e7 : 320.0 * 320.0 * 320.0))
        return PANEL;
    return BLOCKED;
}

/* The block of k of a panel. For few rows of A, and a B larger than the caches, blocks are smaller, so that rows of B are
 * read in longer pieces: in place, or as more panels are packed at a time (`group` of run_panel). */
static int64_t NAME(panel_depth)(const product *p) {
    return NAME(is_far)(p) && (p->m <= 4 * TILE_ROWS || NAME(in_place)(p)) ? BLOCK_K / PACK_PANELS : BLOCK_K;
}

/* The number of products that are summed, in the order of k, before their sum is added to the sum of earlier ones; 0 if
 * sums have another order. */
static int64_t NAME(depth)(const product *p) {
    const algorithm chosen = p->k && p->m > 1 ? NAME(choose)(p) : ROW;
    if (chosen != PANEL && chosen != BLOCKED) return 0;
    const int64_t deepest = chosen == PANEL ? NAME(panel_depth)(p) : deepest_block(sizeof(T));
    return ceil_div(p->k, ceil_div(p->k, deepest));
}

static void NAME(run_algorithm)(const product *p, algorithm chosen) {
    if (chosen == ROW)
        NAME(run_row)(p);
    else if (chosen == OUTER)
        NAME(run_outer)(p);
    else if (chosen == DOT)
        NAME(run_dot)(p);
    else
        NAME(run_panel)(p);
    apply_epilogue(p, p->c, p->m, p->n, sizeof(T));
}

typedef struct NAME(job) {
    const nr_matmul_plan *plan;
    product first;
    algorithm chosen;
    int64_t count;      /* products */
    int64_t group;      /* products in a chunk, or ... */
    int64_t rows, cols; /* ... the part of C in a chunk, of which there are `parts` in a product */
    int64_t parts;
} NAME(job);

static void NAME(job_chunk)(void *context, int64_t chunk) {
    const NAME(job) *job = context;
    product p = job->first;
    if (job->parts == 1) {
        int64_t last = least(job->count, (chunk + 1) * job->group);
        for (int64_t item = chunk * job->group; item < last; item++) {
            move_to(job->plan, item, sizeof(T), &p);
            NAME(run_algorithm)(&p, job->chosen);
        }
        return;
    }
    move_to(job->plan, chunk / job->parts, sizeof(T), &p);
    int64_t part = chunk % job->parts, across = ceil_div(p.n, job->cols);
    int64_t i = part / across * job->rows, j = part % across * job->cols;
    p.m = least(job->rows, p.m - i);
    p.n = least(job->cols, p.n - j);
    p.a = (const T *)p.a + i * p.a_row;
    p.b = (const T *)p.b + j * p.b_col;
    p.c = (T *)p.c + i * p.c_row + j;
    if (p.bias) p.bias = (const T *)p.bias + j * p.bias_step;
    NAME(run_algorithm)(&p, job->chosen);
}

static int32_t NAME(run)(const nr_call *call) {
    const nr_matmul_plan *plan = call->plan;
    NAME(job) job;
    product *p = &job.first;
    if (NAME(run_scaled)(call)) return NORCH_OK;
    first_product(call, p);
    if (plan->batch_ndim == 0 && p->m == 1 && p->n * p->k <= ALONE) {
        NAME(run_algorithm)(p, p->k == 0 ? ROW : NAME(choose)(p));
        return NORCH_OK;
    }
    job.plan = plan;
    job.count = batch_count(plan);
    double work = work_of(p), total = work * (double)job.count;
    if (p->k == 0) { /* nothing to sum: each row is the bias, or zeros */
        for (int64_t item = 0; item < job.count; item++) {
            move_to(plan, item, sizeof(T), p);
            product row = *p;
            for (int64_t i = 0; i < p->m; i++, row.c = (T *)row.c + p->c_row) NAME(run_row)(&row);
            apply_epilogue(p, p->c, p->m, p->n, sizeof(T));
        }
        return NORCH_OK;
    }
    job.chosen = NAME(choose)(p);
    p->k_block = NAME(panel_depth)(p);
    if (job.chosen == BLOCKED) return NAME(run_batch_blocked)(plan, p);
    job.parts = 1;
    job.group = job.count;
    if (total >= SERIAL_WORK && nr_threads() > 1) {
        job.group = work < CHUNK_WORK ? (int64_t)(CHUNK_WORK / work) : 1;
        if (work >= 2 * CHUNK_WORK) {
            /* B is split rather than A, whose panels would be packed again in every chunk; panels of B that are packed
             * together stay so */
            int64_t parts = (int64_t)(work / CHUNK_WORK);
            if (job.chosen == PANEL) parts = least(parts, 3 * nr_threads());
            int64_t unit = job.chosen == PANEL ? PANEL_COLS
                           : job.chosen == DOT ? 16
                                               : 256,
                    row_unit = TILE_ROWS * DOT_ROWS;
            const int64_t many = job.chosen == PANEL && p->n < p->m ? parts : 1;
            int by_cols = p->m == 1 || p->n >= 4 * unit * many || p->n >= p->m;
            job.rows = by_cols ? p->m : ceil_div(ceil_div(p->m, parts), row_unit) * row_unit;
            job.cols = by_cols ? ceil_div(ceil_div(p->n, parts), unit) * unit : p->n;
            job.parts = ceil_div(p->m, job.rows) * ceil_div(p->n, job.cols);
        }
    }
    nr_parallel(job.parts > 1 ? job.count * job.parts : ceil_div(job.count, job.group), NAME(job_chunk), &job);
    return NORCH_OK;
}
