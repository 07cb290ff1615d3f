/* gemm_bf16: products of bfloat16 where the processor multiplies it, with sums in float32 that are rounded once.
 * Included by matmul_isa.c after gemm.h. A task has a block of C, whose rows of A it packs, at most BF16_BYTES; it then
 * takes panels of B one by one. There are kernels for
 *
 *   gemm_bf16_tiles.h   AMX, of Intel's processors, and its emulation
 *   gemm_bf16_dot.h     AVX512-BF16; and dot products of few rows with columns that are contiguous along k
 *
 * Sums have another order than those of other builds, which widen first, and differ from them in the last bits. The
 * instructions take subnormal numbers as 0. Elements that are not finite are computed again, by fused multiply-adds. */

#define BF16_BYTES (1 << 20)
#define BF16_COLS 32 /* columns of a panel */
#define BF16_DOT_ROWS 4

#include "tile_pack.h"

/* The pair (from[0], from[step]); the first number is in the low half. */
INLINE uint32_t bf16_pair(const bf16_bits *from, int64_t step, int64_t left) {
    return from[0] | (left > 1 ? (uint32_t)from[step] << 16 : 0);
}

/* Computes rows i0 .. i1 and columns j0 .. j1 of C, and says whether there may be infinities or NaN among them. */
typedef bool bf16_block_of(const product *p, bool transposed, int64_t i0, int64_t i1, int64_t j0, int64_t j1,
                           void *scratch);

typedef struct bf16_kernel {
    bf16_block_of *block;
    bool (*transposes)(const product *p); /* or NULL: never */
    int rows;                             /* all blocks but the last have a multiple of it */
    int row_fill, depth;                  /* packed rows are filled up to multiples of these, along k too */
    int sums; /* numbers of float32 for a multiple of rows, if all columns of a task are packed; 0: one panel is */
} bf16_kernel;

static int64_t filled_up(int64_t count, int64_t to) { return ceil_div(count, to) * to; }

/* The number of rows of A, a multiple of `rows`, that are used together for each panel of columns. depth is k after
 * filling up; scratch memory was allocated for the same number. */
static int64_t bf16_lefts(int64_t depth, int rows) { return greatest(BF16_BYTES / (2 * rows * depth), 4) * rows; }

/* The same for tiles. Short sums take less time than writing C, whose rows are then written in long pieces. */
#define SHORT_SUM 256
INLINE int64_t tile_lefts(int64_t depth) { return depth <= SHORT_SUM ? 8 * TILE_ROW : bf16_lefts(depth, 2 * TILE_ROW); }

/* An operand of gemm_bf16_tiles.h: neighbouring lanes are `lane` numbers apart, neighbours along k `step` numbers. */
typedef struct tile_operand {
    const bf16_bits *at;
    int64_t lane, step;
} tile_operand;

/* 16 lanes of the left operand. Rows of a tile are `row` bytes apart, tiles `step` bytes. The last tile is elsewhere if
 * k is not a multiple of a tile's. */
typedef struct tile_panel {
    const char *at;
    int64_t row, step;
    const bf16_both *last;
} tile_panel;

/* 32 x 32 sums that are finished, and where in C they go, rounded; and whether there were infinities or NaN so far. */
typedef struct tile_rounding {
    const float *sums, *bias;
    bf16_bits *c;
    int64_t c_row;
    int rows, cols; /* rows: left */
    bool special;
} tile_rounding;

static void round_rows(tile_rounding *left, int64_t most) {
    const int rows = (int)least(left->rows, most);
    left->special |= store_sums(left->sums, left->c, left->c_row, rows, left->cols, left->bias);
    left->sums += rows * 2 * TILE_ROW;
    left->c += rows * left->c_row;
    left->rows -= rows;
}

/* Work that runs beside the tiles at each step of k: `each` pairs of rows of the next group are packed, from `from` to
 * `end`, lines of C and of the next lanes of the left operand are fetched, and the sums before these are rounded. */
typedef struct tile_ahead {
    tile_rounding before;
    const bf16_bits *from, *end;
    bf16_both *to; /* or NULL: none are packed */
    int64_t step, lane, c_row;
    const char *left, *c;
    int each, lefts, rows;
} tile_ahead;

#define ROWS_AHEAD 16  /* steps of k that a line is fetched before it is packed */
#define GROUP_LANES 64 /* lanes of the right operand that are packed together: two lines of a row of B */
#define LIES_LANES 64  /* of the right operand, for which the left one is not copied */
/* The number of steps of 32 of k whose part of two panels stays in the first cache. Sums are in memory between parts of
 * k. */
#define STEPS_AT_ONCE 16

#if defined(__AVX512F__) && (defined(__clang__) || __GNUC__ >= 10)
#include "gemm_bf16_dot.h"
#else
static bool has_bf16_dots(void) { return false; }
static bool has_fast_bf16_dots(void) { return false; }
static const bf16_kernel bf16_dot_kernel; /* not used */
static bool bf16_dots(const product *p, bool transposed, int64_t i0, int64_t i1, int64_t j0, int64_t j1,
                      void *scratch) {
    (void)p, (void)transposed, (void)i0, (void)i1, (void)j0, (void)j1, (void)scratch;
    return false;
}
static bool bf16_row(const product *p, bool transposed, int64_t i0, int64_t i1, int64_t j0, int64_t j1, void *scratch) {
    return bf16_dots(p, transposed, i0, i1, j0, j1, scratch);
}
#endif

#ifdef NR_ISA_BASELINE /* the emulation of the first build serves all */
#define EMULATED
#include "amx.h"
#include "gemm_bf16_tiles.h"
#undef EMULATED
#endif
#if defined(__AVX512F__) && defined(__linux__) && (defined(__clang__) || __GNUC__ >= 11)
#define TILE_INSTRUCTIONS
#include "amx.h"
#include "gemm_bf16_tiles.h"
#endif

/* Set when the library is loaded. */
static const bf16_kernel *bf16_kernel_used; /* NULL: operands are widened, or the first build emulates tiles */
static bool bf16_dots_used;

static bool choose_bf16(void) {
    if (nr_emulates_tiles()) { /* for all sizes */
#ifdef NR_ISA_BASELINE
        bf16_kernel_used = &emulated_kernel;
        return true;
#else
        return NR_FIRST(nr_choose_bf16)();
#endif
    }
#ifdef TILE_INSTRUCTIONS
    if (nr_has_tiles()) bf16_kernel_used = &amx_kernel;
#endif
    if (!bf16_kernel_used && has_fast_bf16_dots()) bf16_kernel_used = &bf16_dot_kernel;
    bf16_dots_used = bf16_kernel_used && has_bf16_dots();
    return bf16_kernel_used != NULL;
}

/* Computes the elements of rows i0 .. i1 and columns j0 .. j1 of C again that are infinite or NaN: the instructions
 * give NaN where partial sums overflow with opposite signs. */
static void bf16_recompute(const product *p, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    const bf16_bits *bias = p->bias;
    for (int64_t i = i0; i < i1; i++) {
        bf16_bits *c = (bf16_bits *)p->c + i * p->c_row;
        uint16_t any = 0;
        for (int64_t j = j0; j < j1; j++) any |= (c[j] & 0x7f80) == 0x7f80;
        for (int64_t j = j0; j < j1 && any; j++) {
            if ((c[j] & 0x7f80) != 0x7f80) continue;
            const bf16_bits *a = (const bf16_bits *)p->a + i * p->a_row, *b = (const bf16_bits *)p->b + j * p->b_col;
            float sum = 0;
            for (int64_t q = 0; q < p->k && sum == sum; q++, a += p->a_col, b += p->b_row)
                sum = __builtin_fmaf(nr_float_of_bfloat16(*a), nr_float_of_bfloat16(*b), sum);
            if (bias) sum += nr_float_of_bfloat16(bias[j * p->bias_step]);
            c[j] = nr_bfloat16_of_float(sum);
        }
    }
}

typedef struct bf16_job {
    const nr_matmul_plan *plan;
    product first;
    bf16_block_of *block;
    bool transposed;                   /* "left" are columns of C, not rows, and "right" the others */
    int64_t lefts, rights;             /* of C in a task */
    int64_t left_blocks, right_blocks; /* tasks of a product */
    char *scratch;
    size_t bytes; /* of a worker */
    int64_t tasks;
    _Atomic int64_t next; /* the next task to begin */
} bf16_job;

static void bf16_task(const bf16_job *job, int64_t task, void *scratch) {
    const int64_t parts = job->left_blocks * job->right_blocks, part = task % parts;
    product p = job->first;
    move_to(job->plan, task / parts, sizeof(bf16_bits), &p);
    const int64_t l = part % job->left_blocks * job->lefts, r = part / job->left_blocks * job->rights;
    const int64_t i = job->transposed ? r : l, last_i = least(p.m, i + (job->transposed ? job->rights : job->lefts));
    const int64_t j = job->transposed ? l : r, last_j = least(p.n, j + (job->transposed ? job->lefts : job->rights));
    if (job->block(&p, job->transposed, i, last_i, j, last_j, scratch)) bf16_recompute(&p, i, last_i, j, last_j);
}

/* A worker owns scratch memory and takes tasks while there are any. */
static void bf16_worker(void *context, int64_t worker) {
    bf16_job *job = context;
    for (int64_t task; (task = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < job->tasks;)
        bf16_task(job, task, job->scratch + (size_t)worker * job->bytes);
}

static int32_t run_bfloat16(const nr_call *call) {
#ifndef NR_ISA_BASELINE
    if (!bf16_kernel_used) return NR_FIRST(nr_run_matmul)(call);
#endif
    bf16_job job = {.plan = call->plan};
    product *p = &job.first;
    first_product(call, p);
    const bf16_kernel *kernel = bf16_kernel_used;
    const int64_t depth = filled_up(greatest(p->k, 1), kernel->depth), count = batch_count(job.plan);
    /* tiles read a few columns of A^T as fast as B comes from the caches */
    const int64_t most_rows = kernel->sums ? 2 : 2 * BF16_DOT_ROWS;
    const bool few = p->b_row == 1 && (p->a_col == 1 || p->m == 1) && p->k >= 32 && p->m <= most_rows;
    const bool row = kernel->sums && p->m == 1 && p->b_row != 1 && p->b_col == 1;
    const bool dots = bf16_dots_used && (few || row);
    job.block = !dots ? kernel->block : few ? bf16_dots : bf16_row;
    job.transposed = !dots && kernel->transposes && kernel->transposes(p);
    const int64_t left = job.transposed ? p->n : p->m, right = job.transposed ? p->m : p->n;
    const int64_t most = bf16_lefts(depth, kernel->rows);
    job.left_blocks = dots || kernel->sums ? 1 : ceil_div(left, most);
    /* each task packs its operands again, so there are no more tasks than threads can use, and none of one panel */
    const double work = work_of(p) / (double)job.left_blocks;
    const bool alone = nr_threads() == 1 || work * (double)count < SERIAL_WORK;
    const int64_t wanted = alone ? 1 : greatest(1, least((int64_t)(work / CHUNK_WORK), 3 * nr_threads()));
    job.rights = filled_up(ceil_div(right, wanted), 2 * BF16_COLS);
    if (kernel->sums) job.rights = least(job.rights, BLOCK_N);
    job.right_blocks = ceil_div(right, job.rights);
    if (job.transposed)
        job.left_blocks *= ceil_div(wanted, job.right_blocks); /* the few that are packed are so again */
    job.lefts = filled_up(ceil_div(left, job.left_blocks), kernel->rows);
    job.left_blocks = ceil_div(left, job.lefts);
    job.tasks = count * job.left_blocks * job.right_blocks;
    const int64_t rows = filled_up(least(least(job.lefts, left), most), kernel->row_fill);
    const int64_t lanes = rows + (kernel->sums && !dots ? job.rights : BF16_COLS);
    job.bytes = (size_t)filled_up(depth * lanes * (int64_t)sizeof(bf16_bits) + 64, 64);
    job.bytes += (size_t)(rows / kernel->rows * kernel->sums) * sizeof(float);
    const int64_t workers = least(nr_threads(), job.tasks);
    const size_t bytes = job.bytes * (size_t)workers;
    job.scratch = nr_scratch(bytes);
    if (!job.scratch)
        return nr_fail(NORCH_ERROR_MEMORY, "matmul: no memory for %lld bytes of scratch", (long long)bytes);
    nr_parallel(workers, bf16_worker, &job);
    nr_scratch_free(job.scratch, bytes);
    return NORCH_OK;
}
