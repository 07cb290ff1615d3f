/* gemm_narrow: products of 16-bit floats that the processor does not multiply: float16, and bfloat16 without the
 * instructions of gemm_bf16.h. They are those of float32 of the widened operands, rounded once. Included by
 * matmul_isa.c after gemm.h.
 *
 *     B by blocks of columns:    j ..          A block of either operand is widened to scratch memory right before
 *                              +----+           its use, as it lies there: contiguous along the same axis. It stays in
 *   A by blocks      +----+    |    |           the second cache, or in the first one, so that memory is read at two
 *   of rows:      i  |    |    +----+           bytes a number, and written so.
 *                    +----+    C
 *
 * The blocked algorithm widens while it packs (gemm_pack_narrow.h). Each sum has the order of the whole product in
 * float32; blocks and threads do not change it. */

#define NARROW_ROWS (greatest(FEW_TILES(0), 9) * TILE_ROWS) /* of a block */
#define NARROW_COLS 64
#define NARROW_K 16 /* rows of B that are added to a few rows of C at once: a multiple of those of add_rows */
#define NARROW_FIRST (32 * 1024) /* bytes of a block of B that a few rows use */

typedef struct narrow_job {
    const nr_matmul_plan *plan;
    product first; /* strides of A, B and C are those of the operands, the bias is widened */
    algorithm chosen;
    bool a_by_rows, b_by_rows;
    int64_t rows, cols, row_blocks, col_blocks; /* of C in a task, and how many */
    int64_t depth;                              /* of a block of B along k */
    float *scratch;
    int64_t a_size, b_size, size; /* numbers of A, of B, and of a worker in scratch */
    int64_t tasks;
    _Atomic int64_t next; /* the next task to begin */
} narrow_job;

INLINE int64_t whole_lines(int64_t numbers) { return ceil_div(numbers, 16) * 16; }

/* The distance between lines of a widened block. It is no power of two, because lines would share sets of the cache. */
INLINE int64_t narrow_pitch(int64_t length) { return length + 64 / (int64_t)sizeof(float); }

/* Widens `lines` lines of `length` numbers each. */
static void widen_lines(const product *p, float *to, const uint16_t *from, int64_t lines, int64_t length, int64_t line,
                        int64_t step) {
    for (int64_t i = 0; i < lines; i++)
        p->widen((char *)(to + i * narrow_pitch(length)), sizeof *to, (const char *)(from + i * line), 2 * step,
                 length);
}

/* A worker has scratch memory and takes tasks while there are any. It keeps blocks that the next task uses too. */
static void narrow_worker(void *context, int64_t worker) {
    narrow_job *job = context;
    float *const a = job->scratch + worker * job->size, *const b = a + job->a_size, *const c = b + job->b_size;
    int64_t a_held = -1, b_held = -1;
    for (int64_t task; (task = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < job->tasks;) {
        const int64_t left = task / job->col_blocks, item = left / job->row_blocks;
        const int64_t right = item * job->col_blocks + task % job->col_blocks;
        const int64_t i = left % job->row_blocks * job->rows, j = task % job->col_blocks * job->cols;
        product p = job->first;
        move_to(job->plan, item, sizeof(uint16_t), &p);
        const uint16_t *from_a = (const uint16_t *)p.a + i * p.a_row, *from_b = (const uint16_t *)p.b + j * p.b_col;
        p.out = (uint16_t *)p.c + i * p.c_row + j, p.out_row = p.c_row;
        const nr_conversion narrow = p.narrow;
        const int64_t k = p.k, b_row = p.b_row, b_col = p.b_col;
        p.m = least(job->rows, p.m - i), p.n = least(job->cols, p.n - j);
        if (a_held != left) {
            a_held = left;
            if (job->a_by_rows)
                widen_lines(&p, a, from_a, p.m, p.k, p.a_row, p.a_col);
            else
                widen_lines(&p, a, from_a, p.k, p.m, p.a_col, p.a_row);
        }
        p.a_row = job->a_by_rows ? narrow_pitch(k) : 1, p.a_col = job->a_by_rows ? 1 : narrow_pitch(p.m);
        p.c = c, p.c_row = p.n;
        p.bias = p.bias ? (const float *)p.bias + j * p.bias_step : NULL;
        for (int64_t q = 0; q < k; q += job->depth) { /* C is rounded after the last block of k */
            p.k = least(job->depth, k - q);
            p.add = q > 0;
            p.narrow = q + p.k == k ? narrow : NULL;
            p.a = a + q * p.a_col;
            if (b_held != right || job->depth < k) {
                const uint16_t *from = from_b + q * b_row;
                if (job->b_by_rows)
                    widen_lines(&p, b, from, p.k, p.n, b_row, b_col);
                else
                    widen_lines(&p, b, from, p.n, p.k, b_col, b_row);
            }
            p.b = b;
            p.b_row = job->b_by_rows ? narrow_pitch(p.n) : 1, p.b_col = job->b_by_rows ? 1 : narrow_pitch(p.k);
            run_algorithm_float32(&p, job->chosen);
        }
        b_held = right;
    }
}

/* Sets the blocks. A block of B has the k of the blocks in which the algorithm sums, and as many columns as fit into a
 * cache. */
static void choose_narrow_blocks(narrow_job *job, const product *p) {
    const bool first = p->m <= 8;
    const int64_t bytes = first ? NARROW_FIRST : block_bytes();
    const int64_t unit = job->chosen == DOT ? 4 : NARROW_COLS;
    job->rows = ceil_div(p->m, ceil_div(p->m, NARROW_ROWS)); /* 128 are not 126 and 2 */
    job->depth = job->chosen == DOT ? DOT_K : job->chosen == PANEL ? depth_float32(p) : p->k > ROW_K ? p->k : NARROW_K;
    const int64_t fit = bytes / (int64_t)sizeof(float) / (least(p->k, job->depth) + job->rows) / unit * unit;
    job->cols = least(p->n, greatest(fit, unit));
    job->row_blocks = ceil_div(p->m, job->rows), job->col_blocks = ceil_div(p->n, job->cols);
}

/* k = 0: each row is the bias, or zeros. */
static void fill_narrow(const nr_matmul_plan *plan) {
    const int64_t rows = batch_count(plan) * plan->m;
    uint16_t *c = plan->c; /* dense */
    for (int64_t i = 0; i < rows; i++, c += plan->n) {
        if (plan->bias)
            memcpy(c, plan->bias, (size_t)plan->n * sizeof *c);
        else
            memset(c, 0, (size_t)plan->n * sizeof *c);
    }
}

static int32_t run_narrow(const nr_call *call) {
    narrow_job job = {.plan = call->plan};
    product *const p = &job.first;
    first_product(call, p);
    if (p->k == 0) {
        fill_narrow(job.plan);
        return NORCH_OK;
    }
    p->widen = nr_widen[call->dtype], p->narrow = nr_narrow[call->dtype];
    job.a_by_rows = p->a_col == 1 || p->a_row != 1 || p->m == 1;
    job.b_by_rows = p->n > 1 && (p->b_col == 1 || p->b_row != 1 || p->k == 1); /* OUTER reads the one row */
    product as_laid = *p; /* when it is widened, by which the algorithm is chosen */
    as_laid.a_row = job.a_by_rows ? p->k : 1, as_laid.a_col = job.a_by_rows ? 1 : p->m;
    as_laid.b_row = job.b_by_rows ? p->n : 1, as_laid.b_col = job.b_by_rows ? 1 : p->k;
    job.chosen = choose_float32(&as_laid);
    p->k_block = panel_depth_float32(&as_laid);
    choose_narrow_blocks(&job, &as_laid);
    const int64_t depth = least(p->k, job.depth);
    job.tasks = batch_count(job.plan) * job.row_blocks * job.col_blocks;
    job.a_size = job.a_by_rows ? job.rows * narrow_pitch(p->k) : p->k * narrow_pitch(job.rows);
    job.b_size = job.b_by_rows ? depth * narrow_pitch(job.cols) : job.cols * narrow_pitch(depth);
    job.a_size = whole_lines(job.a_size), job.b_size = whole_lines(job.b_size);
    job.size = job.a_size + job.b_size + whole_lines(job.rows * job.cols);
    const double work = work_of(p) * (double)batch_count(job.plan);
    const int64_t workers = work < SERIAL_WORK ? 1 : least(nr_threads(), job.tasks);
    const int64_t biases = p->bias ? whole_lines(job.plan->n) : 0;
    const bool blocked = job.chosen == BLOCKED;
    const size_t bytes = (size_t)(biases + (blocked ? 0 : workers * job.size)) * sizeof(float);
    float *const scratch = bytes ? nr_scratch(bytes) : NULL;
    if (bytes && !scratch)
        return nr_fail(NORCH_ERROR_MEMORY, "matmul: no memory for %lld bytes of scratch", (long long)bytes);
    if (p->bias) {
        p->widen((char *)scratch, sizeof *scratch, p->bias, sizeof(uint16_t), job.plan->n);
        p->bias = scratch;
    }
    int32_t status = NORCH_OK;
    job.scratch = scratch + biases;
    if (blocked)
        status = run_batch_blocked_float32(job.plan, p);
    else
        nr_parallel(workers, narrow_worker, &job);
    if (scratch) nr_scratch_free(scratch, bytes);
    return status;
}

#undef NARROW_ROWS
#undef NARROW_COLS
#undef NARROW_K
#undef NARROW_FIRST
