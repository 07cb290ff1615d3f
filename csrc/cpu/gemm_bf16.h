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

typedef uint16_t bf16_bits __attribute__((may_alias));
typedef uint32_t bf16_both __attribute__((may_alias)); /* a pair */

/* A pair (from[0], from[step]), the first one low. */
INLINE uint32_t bf16_pair(const bf16_bits *from, int64_t step, int64_t left) {
    return from[0] | (left > 1 ? (uint32_t)from[step] << 16 : 0);
}

/* Computes rows i0 .. i1 and columns j0 .. j1 of C. */
typedef void bf16_block_of(const product *p, int64_t i0, int64_t i1, int64_t j0, int64_t j1, void *scratch);

/* What is packed for a block: its rows, filled up to a multiple of row_fill, and BF16_COLS columns, each of k numbers,
 * filled up to a multiple of depth. */
typedef struct bf16_kernel {
    bf16_block_of *block;
    int rows; /* blocks have a multiple of it, but for the last one */
    int row_fill, depth;
} bf16_kernel;

#if defined(__AVX512F__) && (defined(__clang__) || __GNUC__ >= 10)
#include "gemm_bf16_dot.h"
#else
static bool has_bf16_dots(void) { return false; }
static bool has_fast_bf16_dots(void) { return false; }
static const bf16_kernel bf16_dot_kernel; /* not used */
static void bf16_dots(const product *p, int64_t i0, int64_t i1, int64_t j0, int64_t j1, void *scratch) {
    (void)p, (void)i0, (void)i1, (void)j0, (void)j1, (void)scratch;
}
#endif

#define EMULATED
#include "amx.h"
#include "gemm_bf16_tiles.h"
#undef EMULATED
#if defined(__AVX512F__) && defined(__linux__) && (defined(__clang__) || __GNUC__ >= 11)
#define TILE_INSTRUCTIONS
#include "amx.h"
#include "gemm_bf16_tiles.h"
#endif

/* Set when the library is loaded. */
static const bf16_kernel *bf16_kernel_used; /* NULL: operands are widened */
static bool bf16_dots_used;

static bool choose_bf16(void) {
    if (nr_emulates_tiles()) { /* for all sizes */
        bf16_kernel_used = &emulated_kernel;
        return true;
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
    int64_t rows, cols;             /* of C in a task */
    int64_t row_blocks, col_blocks; /* tasks of a product */
    char *scratch;
    size_t bytes; /* of a worker */
    int64_t tasks;
    _Atomic int64_t next; /* the next task to begin */
} bf16_job;

static void bf16_task(const bf16_job *job, int64_t task, void *scratch) {
    const int64_t parts = job->row_blocks * job->col_blocks, part = task % parts;
    product p = job->first;
    move_to(job->plan, task / parts, sizeof(bf16_bits), &p);
    const int64_t i = part % job->row_blocks * job->rows, j = part / job->row_blocks * job->cols;
    const int64_t last_i = least(p.m, i + job->rows), last_j = least(p.n, j + job->cols);
    job->block(&p, i, last_i, j, last_j, scratch);
    bf16_recompute(&p, i, last_i, j, last_j);
}

/* A worker owns scratch memory and takes tasks while there are any. */
static void bf16_worker(void *context, int64_t worker) {
    bf16_job *job = context;
    for (int64_t task; (task = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < job->tasks;)
        bf16_task(job, task, job->scratch + (size_t)worker * job->bytes);
}

static int64_t filled_up(int64_t count, int64_t to) { return ceil_div(count, to) * to; }

static int32_t run_bfloat16(const nr_call *call) {
    bf16_job job = {.plan = call->plan};
    product *p = &job.first;
    first_product(call, p);
    const bf16_kernel *kernel = bf16_kernel_used;
    const int64_t depth = filled_up(greatest(p->k, 1), kernel->depth), count = batch_count(job.plan);
    const bool few = p->b_row == 1 && (p->a_col == 1 || p->m == 1) && p->k >= 32 && p->m <= 2 * BF16_DOT_ROWS;
    const bool dots = bf16_dots_used && few;
    job.block = dots ? bf16_dots : kernel->block;
    const int64_t most = greatest(BF16_BYTES / (2 * kernel->rows * depth), 4) * kernel->rows;
    job.row_blocks = dots ? 1 : ceil_div(p->m, most);
    job.rows = filled_up(ceil_div(p->m, job.row_blocks), kernel->rows);
    job.row_blocks = ceil_div(p->m, job.rows);
    /* each task packs its rows of A again, so there are no more tasks than threads can use, and none of one panel */
    const double work = work_of(p) / (double)job.row_blocks;
    const bool alone = nr_threads() == 1 || work * (double)count < SERIAL_WORK;
    const int64_t wanted = alone ? 1 : greatest(1, least((int64_t)(work / CHUNK_WORK), 3 * nr_threads()));
    job.cols = filled_up(ceil_div(p->n, wanted), 2 * BF16_COLS);
    job.col_blocks = ceil_div(p->n, job.cols);
    job.tasks = count * job.row_blocks * job.col_blocks;
    const int64_t lanes = BF16_COLS + filled_up(least(job.rows, p->m), kernel->row_fill);
    job.bytes = (size_t)filled_up(depth * lanes * (int64_t)sizeof(bf16_bits) + 64, 64);
    const int64_t workers = least(nr_threads(), job.tasks);
    const size_t bytes = job.bytes * (size_t)workers;
    job.scratch = nr_scratch(bytes);
    if (!job.scratch)
        return nr_fail(NORCH_ERROR_MEMORY, "matmul: no memory for %lld bytes of scratch", (long long)bytes);
    nr_parallel(workers, bf16_worker, &job);
    nr_scratch_free(job.scratch, bytes);
    return NORCH_OK;
}
