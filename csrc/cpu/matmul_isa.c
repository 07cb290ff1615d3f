/* matmul_isa: the CPU's matrix products, built once per instruction set (and with -ffp-contract=fast, so that a * b + c
 * becomes one fma where there is one). ops/matmul.c has checked shapes and dtypes.
 *
 * This file has the block sizes and the loop over the batch. gemm.h has the algorithms for floats, gemm_packed.h those
 * of recordings, matmul_integer.h those for integers; bfloat16 uses gemm_bf16.h if the processor has instructions for
 * it, and is widened otherwise. */
#if defined(__AVX512F__)
#include <cpuid.h>
#endif
#include <stdatomic.h>
#include <string.h>
#include "../core/convert.h"
#include "../families/layer.h"
#include "../families/matmul.h"
#include "cpu.h"
#include "gemm_isa.h"
#include "pointwise.h"

/* Below SERIAL_WORK multiply-adds a product runs in one thread; a chunk has at least the other number. */
#define SERIAL_WORK 1e6
#define CHUNK_WORK 5e5
/* A row of fewer multiply-adds takes less time than the choice of an algorithm. */
#define ALONE 4096

/* BLOCK_K x one panel of B fits the first cache, BLOCK_K x BLOCK_N of B a share of the third. */
#define BLOCK_K (VECTOR == 64 ? 256 : 384)
#define BLOCK_N 2048
/* The number of panels that are packed together: their rows are consecutive cache lines, which prefetchers detect. */
#define PACK_PANELS (VECTOR == 32 ? 8 : 4)
/* This many times as many panels of B as fit on the stack take part in a product together. */
#define GROUP_PANELS (VECTOR == 64 ? 8 : 1)
/* Whether a large second cache holds the panels of B that a tile of A meets, so that more of A is read where it lies. */
#define LARGE_CACHE (VECTOR == 64 && nr_second_cache() >= 2 << 20)
/* Up to this number of bytes along k, writing C takes most of the time; A is read in place, and C is written in long
 * pieces. Numbers of A that are not contiguous are read again for some panels at a time. */
#define SHORT_BYTES(a_col, size) ((a_col) != 1 ? (LARGE_CACHE ? 256 : 64) : LARGE_CACHE ? BLOCK_K * (size) : 256)
/* Up to which A is read where it lies: tiles of rows, and panels of columns. Numbers of A that are far apart in memory
 * are read again for each panel, so there are fewer. */
#define FEW_TILES(a_col) (!LARGE_CACHE ? 7 : (a_col) == 1 ? 24 : 12)
#define FEW_PANELS(a_col) ((a_col) != 1 ? 3 : LARGE_CACHE ? 8 : VECTOR == 32 ? 5 : 3)
/* Numbers this far apart share a set of the first cache: columns of A^T that lie so are not kept there for the next
 * panel of B. */
#define PAGE 4096
#define FAR_BYTES (1 << 20)
/* The block of k of dot products, and of a row of C that is a sum of rows of B. */
#define DOT_K 1024
#define ROW_K 65536

/* Blocks of the packed algorithm, from the second cache: a block of A takes half of it, but no more than 512 KB, as
 * panels of B and C pass through it too, and is deep, as C is read and written once for each block of k. The cache is
 * the machine's, so that threads change no sum. */
static int64_t deepest_block(int64_t element) {
    const int64_t cache = nr_second_cache(), bytes = cache >= 2 << 20 ? 4096 : cache >= 1 << 20 ? 2048 : 1024;
    return greatest(BLOCK_K, bytes / element);
}
static int64_t block_bytes(void) { return greatest(192 * 1024, least(512 * 1024, nr_second_cache() / 2)); }

/* Whether 16-bit floats are widened here (gemm_narrow.h). In WebAssembly, where the library must be small, ops/matmul.c
 * does it. */
#if defined(__wasm__)
#define WIDENS_HALVES 0
#else
#define WIDENS_HALVES 1
#endif

/* One product of the batch: a plan without its nest. */
typedef struct product {
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col, c_row;
    const void *a, *b, *bias;
    void *c;
    int64_t bias_step; /* 1, or 0 when one number serves every column */
    int64_t k_block;
    bool add;                     /* to C, as these are not the first terms of its sums */
    nr_pointwise_kernel epilogue; /* the activation that is applied to C, or NULL */
    const nr_matmul_plan *sum;    /* of the residual that C is added to, or NULL */
    /* of 16-bit floats (gemm_narrow.h), otherwise NULL: conversions to and from float32, in which C is computed; and
     * where C goes, rounded, rows out_row apart */
    nr_conversion widen, narrow;
    uint16_t *out;
    int64_t out_row;
} product;

/* ROW: m is 1. OUTER: k is 1. DOT: both operands contiguous along k. PANEL: A is read where it lies, B too if few rows
 * use it, or by packed panels on the stack. BLOCKED: both are packed into scratch memory. */
typedef enum algorithm { ROW, OUTER, DOT, PANEL, BLOCKED } algorithm;

INLINE double work_of(const product *p) { return (double)p->m * (double)p->n * (double)p->k; }

/* The first product of the batch; n = 1 is transposed, C^T = B^T A^T, so that ROW computes it as well. */
static void first_product(const nr_call *call, product *p) {
    const nr_matmul_plan *plan = call->plan;
    *p = (product){.m = plan->m, .n = plan->n, .k = plan->k, .c = plan->c, .c_row = plan->c_row};
    p->a = plan->a, p->a_row = plan->a_row, p->a_col = plan->a_col;
    p->b = plan->b, p->b_row = plan->b_row, p->b_col = plan->b_col;
    p->bias = plan->bias, p->bias_step = 1;
    if (p->n == 1 && p->m > 1 && p->c_row == 1) {
        *p = (product){.m = 1, .n = plan->m, .k = plan->k, .c = plan->c, .c_row = plan->m, .bias = plan->bias};
        p->a = plan->b, p->a_col = plan->b_row;
        p->b = plan->a, p->b_row = plan->a_col, p->b_col = plan->a_row;
    }
    p->epilogue = (nr_pointwise_kernel)call->kernel;
    p->sum = plan->residual ? plan : NULL;
}

/* Offsets in elements of step `index` of the batch, for C, A and B. */
static void batch_offsets(const nr_matmul_plan *plan, int64_t index, int64_t offset[3]) {
    offset[0] = offset[1] = offset[2] = 0;
    for (int32_t d = 0; d < plan->batch_ndim; d++) {
        int64_t at = index;
        if (d + 1 < plan->batch_ndim) {
            at = index % plan->batch[d];
            index /= plan->batch[d];
        }
        for (int x = 0; x < 3; x++) offset[x] += at * plan->batch_stride[x][d];
    }
}

INLINE int64_t batch_count(const nr_matmul_plan *plan) {
    int64_t count = 1;
    for (int32_t d = 0; d < plan->batch_ndim; d++) count *= plan->batch[d];
    return count;
}

/* `p` moved to step `index` of the batch; size: of an element. */
static void move_to(const nr_matmul_plan *plan, int64_t index, int64_t size, product *p) {
    int64_t offset[3];
    batch_offsets(plan, index, offset);
    int transposed = p->bias_step == 0;
    p->c = (char *)plan->c + offset[0] * size;
    p->a = (const char *)(transposed ? plan->b : plan->a) + offset[transposed ? 2 : 1] * size;
    p->b = (const char *)(transposed ? plan->a : plan->b) + offset[transposed ? 1 : 2] * size;
}

/* c = beta residual + alpha c, for a row of a sum of each dtype. */
#define ADD_RESIDUAL(name, T)                                                                                \
    static void name(int64_t count, void *to, const void *residual, double of_product, double of_residual) { \
        T *restrict c = to, alpha = (T)of_product, beta = (T)of_residual;                                    \
        const T *restrict r = residual;                                                                      \
        if (beta == 0) /* the residual is not read */                                                        \
            for (int64_t j = 0; j < count; j++) c[j] *= alpha;                                               \
        else                                                                                                 \
            for (int64_t j = 0; j < count; j++) c[j] = beta * r[j] + alpha * c[j];                           \
    }
ADD_RESIDUAL(add_float32, float)
ADD_RESIDUAL(add_float64, double)
#undef ADD_RESIDUAL

/* Applies the epilogue to finished rows of C, or rounds them, while they are in the cache. size: of an element. */
static void apply_epilogue(const product *p, void *c, int64_t rows, int64_t cols, int64_t size) {
    if (!p->epilogue && !p->sum && !(WIDENS_HALVES && p->narrow)) return;
    const int64_t stride[2] = {size, size}, apart = p->c_row * size;
    if (WIDENS_HALVES && p->narrow) {
        uint16_t *out = p->out + ((char *)c - (char *)p->c) / size;
        for (char *row = c; rows > 0; rows--, row += apart, out += p->out_row)
            p->narrow((char *)out, sizeof *out, row, size, cols);
        return;
    }
    if (p->c_row == cols) cols *= rows, rows = 1;
    if (p->sum) {
        const char *residual = (const char *)p->sum->residual + ((char *)c - (char *)p->sum->c);
        for (char *row = c; rows > 0; rows--, row += apart, residual += apart)
            (size == sizeof(float) ? add_float32 : add_float64)(cols, row, residual, p->sum->alpha, p->sum->beta);
        return;
    }
    for (char *row = c; rows > 0; rows--, row += apart) p->epilogue(cols, (char *const[2]){row, row}, stride, false);
}

/* ---- floats ---------------------------------------------------------------------------------- */

#define TEMPLATE "gemm.h"
#define WANTED(kind, bits) (kind == 'f')
#include "each_dtype.h"

#define TEMPLATE "gemm_packed.h"
#define WANTED(kind, bits) (kind == 'f' && bits == 32)
#include "each_dtype.h"

#define TEMPLATE "gemm_triangle.h"
#define WANTED(kind, bits) (kind == 'f')
#include "each_dtype.h"

#if WIDENS_HALVES
#include "gemm_narrow.h"
#endif

int64_t NR_ISA(nr_product_packed_size)(const nr_call *call) { return packed_numbers_float32(call); }
void NR_ISA(nr_product_pack)(const nr_call *call, float *to) { pack_right_float32(call, to); }
int32_t NR_ISA(nr_packed_product)(const nr_layer *layer) { return run_packed_float32(layer); }

/* ---- integers, whose sums wrap ----------------------------------------------------------------- */

/* Rows of a tile of C, and rows of B that are packed at once: they fit the first cache. */
#define INTEGER_ROWS (VECTOR == 64 ? 8 : 4)
#define INTEGER_K 256
/* The code around the tile is short rather than fast in WebAssembly, where the library must be small. */
#if defined(__wasm__)
#define AROUND_TILE __attribute__((minsize, noinline))
#else
#define AROUND_TILE
#endif

#define N uint8_t
#define SUM uint16_t
#define BITS_OF(name) name##_of_8
#include "matmul_integer.h"
#define N uint32_t
#define SUM uint32_t
#define BITS_OF(name) name##_of_32
#include "matmul_integer.h"
#define N uint64_t
#define SUM uint64_t
#define BITS_OF(name) name##_of_64
#include "matmul_integer.h"

typedef void (*integer_rows)(const product *p, int64_t first, int64_t last);

typedef struct integer_job {
    const nr_matmul_plan *plan;
    product first;
    int64_t size, rows; /* of an element; of C in a chunk, counted through the batch */
    int64_t total;
    integer_rows run;
} integer_job;

static void integer_chunk(void *context, int64_t chunk) {
    const integer_job *job = context;
    int64_t row = chunk * job->rows, end = least(row + job->rows, job->total);
    product p = job->first;
    while (row < end) {
        int64_t item = row / p.m, i = row % p.m, last = least(p.m, i + end - row);
        move_to(job->plan, item, job->size, &p);
        job->run(&p, i, last);
        row += last - i;
    }
}

static int32_t run_integers(const nr_call *call) {
    static const integer_rows kernels[NR_DTYPE_COUNT] = {
        [NORCH_UINT8] = rows_of_8,
        [NORCH_INT8] = rows_of_8,
        [NORCH_INT32] = rows_of_32,
        [NORCH_INT64] = rows_of_64,
    };
    integer_job job = {.plan = call->plan};
    first_product(call, &job.first);
    job.total = job.first.m * batch_count(job.plan);
    job.size = nr_size_of(call->dtype);
    job.run = kernels[call->dtype];
    if (!job.run) return nr_fail(NORCH_ERROR_DTYPE, "matmul: no kernel for this dtype");
    const double row_work = (double)job.first.n * (double)(job.first.k + 1);
    const int64_t chunks = row_work * (double)job.total < SERIAL_WORK || nr_threads() == 1 ? 1 : 3 * nr_threads();
    job.rows = ceil_div(ceil_div(job.total, chunks), INTEGER_ROWS) * INTEGER_ROWS; /* each packs B again */
    nr_parallel(ceil_div(job.total, job.rows), integer_chunk, &job);
    return NORCH_OK;
}

/* ---- bfloat16, where the processor multiplies it ----------------------------------------------------- */

#ifndef NR_ISA_BASELINE
bool NR_FIRST(nr_choose_bf16)(void);
nr_runner NR_FIRST(nr_run_matmul);
#endif

#if defined(__wasm__)
static bool choose_bf16(void) { return false; }
static int32_t run_bfloat16(const nr_call *call) {
    (void)call;
    return nr_fail(NORCH_ERROR_DTYPE, "matmul: no kernel for this dtype");
}
#elif defined(NR_ISA_BASELINE) || defined(__AVX512F__)
#include "gemm_bf16.h"
#else /* emulated tiles alone, which are those of the first build */
static bool choose_bf16(void) { return NR_FIRST(nr_choose_bf16)(); }
static int32_t run_bfloat16(const nr_call *call) { return NR_FIRST(nr_run_matmul)(call); }
#endif

static bool multiplies_bf16;

bool NR_ISA(nr_choose_bf16)(void) { return multiplies_bf16 = choose_bf16(); }

int64_t NR_ISA(nr_matmul_depth)(const nr_call *call) {
    product p;
    first_product(call, &p);
    return call->dtype == NORCH_FLOAT32 ? depth_float32(&p) : depth_float64(&p);
}

int32_t NR_ISA(nr_run_matmul)(const nr_call *call) {
    const nr_matmul_plan *plan = call->plan;
    if (plan->triangle) {
        (call->dtype == NORCH_FLOAT32 ? solve_triangle_float32 : solve_triangle_float64)(plan);
        return NORCH_OK;
    }
    if (call->dtype == NORCH_BFLOAT16 && multiplies_bf16) return run_bfloat16(call);
#if WIDENS_HALVES
    if (nr_is_narrow(call->dtype) && nr_is_float(call->dtype)) return run_narrow(call);
#endif
    if (call->dtype == NORCH_FLOAT32) return run_float32(call);
    if (call->dtype == NORCH_FLOAT64) return run_float64(call);
    return run_integers(call);
}
