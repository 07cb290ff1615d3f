/* quantized_isa: products with a weight of 8-bit or 4-bit integers, compiled once per instruction set. A few rows of x,
 * as in the decoding of a language model, take as long as the weight takes to come from memory: its integers become
 * floats in registers. For more rows, parts of the weight become float32 in the cache, and matmul multiplies them.
 *
 *   4 bits, of a block, 8 lanes:   bytes   0 1 2 3 4 5 6 7   8 9 ..
 *   w[0], w[1]  low halves:                0 1 2 3 4 5 6 7 | 8 9 ..          integers 0 to 15
 *   w[2], w[3]  high halves:              16 17 ..                           integers 16 to 31
 *
 * A sum is that of its blocks in order, each scaled; number, threads and neighbours of a row do not change it. */
#include <string.h>
#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif
#include "../families/matmul.h"
#include "../families/quantized.h"
#include "cpu.h"
#include "gemm_isa.h"

#define BLOCK NR_QUANTIZED_BLOCK
#define LANES (VECTOR / 4)
#define VECTORS (BLOCK / LANES)
#define FEW_ROWS 8          /* of x, for which the weight is not stored as floats */
#define CHUNK_WORK 500000.0 /* multiply-adds of a chunk */
#define AHEAD 4096          /* bytes between what is read of the weight and what is brought from memory meanwhile */
#define PART (1 << 18)      /* numbers of the weight that are stored as floats at a time */

/* A copy of the loops for each number of bits and rows, unrolled; one for all where size counts more than speed. */
#if VECTOR > 16 || defined(__aarch64__)
#define KERNEL INLINE
#define EACH UNROLL
#else
#define KERNEL static __attribute__((noinline))
#define EACH
#endif

typedef float vec __attribute__((vector_size(VECTOR)));
typedef float loose __attribute__((vector_size(VECTOR), aligned(4), may_alias));
typedef int32_t ints __attribute__((vector_size(VECTOR)));

typedef struct job {
    const nr_quantized_plan *plan;
    int64_t blocks, bytes; /* of a row of the weight */
    int64_t first, last;   /* rows of the weight, */
    int64_t each;          /* and of these in a chunk */
    float *to;             /* x, or the weight, as floats, in rows of `step` numbers */
    int64_t step;
} job;

/* LANES bytes as integers of 32 bits. */
INLINE ints widened(bool is_signed, const uint8_t *from) {
#if defined(__AVX512F__)
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)from);
    return (ints)(is_signed ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes));
#elif defined(__AVX2__)
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)from);
    return (ints)(is_signed ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes));
#else
    int32_t four;
    memcpy(&four, from, sizeof four);
#if defined(__aarch64__)
    const int8x8_t bytes = vreinterpret_s8_s32(vdup_n_s32(four));
    if (is_signed) return (ints)vmovl_s16(vget_low_s16(vmovl_s8(bytes)));
    return (ints)vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_s8(bytes))));
#elif defined(__SSE2__)
    const __m128i bytes = _mm_cvtsi32_si128(four), none = _mm_setzero_si128();
    if (!is_signed) return (ints)_mm_unpacklo_epi16(_mm_unpacklo_epi8(bytes, none), none);
    return (ints)_mm_srai_epi32(_mm_unpacklo_epi16(none, _mm_unpacklo_epi8(none, bytes)), 24);
#else
    const ints all = {four << 24, four << 16, four << 8, four};
    return is_signed ? all >> 24 : (all >> 24) & 255;
#endif
#endif
}

/* Halves of bytes, of which the lowest four bits count, as floats. */
INLINE vec floats_of_halves(ints halves) {
#if defined(__AVX512F__)
    const __m512 table = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
    return (vec)_mm512_permutexvar_ps((__m512i)halves, table);
#else
    return __builtin_convertvector((halves & 15) - 8, vec);
#endif
}

/* A block of the weight as floats that are not scaled. */
INLINE void unpack(int bits, const uint8_t *from, vec w[VECTORS]) {
    EACH for (int v = 0; v < VECTORS; v++) {
        if (bits == 8) w[v] = __builtin_convertvector(widened(true, from + v * LANES), vec);
    }
    EACH for (int v = 0; v < VECTORS / 2; v++) {
        if (bits == 8) continue;
        const ints both = widened(false, from + v * LANES);
        w[v] = floats_of_halves(both);
        w[v + VECTORS / 2] = floats_of_halves(both >> 4);
    }
}

/* ---- few rows of x --------------------------------------------------------------------------------------- */

/* `rows` x `cols` elements of y from (row, col) on, 4 at most; the columns are `stride` from each other. */
KERNEL void dots(int bits, int rows, int cols, const job *s, int64_t row, int64_t col, int64_t stride) {
    const nr_quantized_plan *p = s->plan;
    const uint8_t *from = (const uint8_t *)p->weight + col * s->bytes;
    const float *scale = (const float *)p->scale + col * p->groups, *x = s->to + row * s->step;
    const int64_t bytes = stride * s->bytes, groups = stride * p->groups;
    vec sum[4];
    EACH for (int e = 0; e < rows * cols; e++) sum[e] = (vec){0};
    for (int64_t b = 0; b < s->blocks; b++, from += BLOCK * bits / 8, x += BLOCK) {
        EACH for (int j = 0; j < cols; j++) {
            vec w[VECTORS];
            __builtin_prefetch(from + j * bytes + AHEAD);
            unpack(bits, from + j * bytes, w);
            EACH for (int i = 0; i < rows; i++) {
                const vec *at = (const vec *)(const void *)(x + i * s->step);
                vec part = w[0] * at[0];
                EACH for (int v = 1; v < VECTORS; v++) part += w[v] * at[v];
                sum[i * cols + j] += part * scale[j * groups + (b >> p->shift)];
            }
        }
    }
    EACH for (int e = 0; e < rows * cols; e++) {
        const int64_t i = row + e / cols, j = col + e % cols * stride;
        float total = 0;
        EACH for (int l = 0; l < LANES; l++) total += sum[e][l];
        ((float *)p->y)[i * p->n + j] = total + (p->bias ? ((const float *)p->bias)[j] : 0);
    }
}

#define DOTS(bits, rows, cols) \
    case bits * 100 + rows * 10 + cols: dots(bits, rows, cols, s, row, col, stride); break

static void few_chunk(void *context, int64_t chunk) {
    const job *s = context;
    const int64_t first = chunk * s->each, last = least(first + s->each, s->last), m = s->plan->m;
    const int64_t stride = nr_quantized_stride(s->plan, last - first);
    for (int64_t col = first, cols; col < last; col++) {
        if (col == first + stride) col += 3 * stride; /* past those that were taken in fours */
        if (col == last) break;
        cols = col < first + stride ? 4 : 1;
        for (int64_t row = 0, rows; row < m; row += rows) {
            rows = m - row >= 4 ? 4 : m - row >= 2 ? 2 : 1;
            switch (s->plan->bits * 100 + rows * 10 + cols) {
                DOTS(4, 1, 1);
                DOTS(4, 2, 1);
                DOTS(4, 4, 1);
                DOTS(4, 1, 4);
                DOTS(8, 1, 1);
                DOTS(8, 1, 4);
                DOTS(8, 2, 1);
                DOTS(8, 4, 1);
            }
        }
    }
}

static int32_t no_scratch(size_t bytes) {
    return nr_fail(NORCH_ERROR_MEMORY, "quantized: no memory for %lld bytes of scratch", (long long)bytes);
}

static int64_t rows_of_chunk(double row_work) { return 1 + (int64_t)(CHUNK_WORK / (row_work + 1)); }

static int32_t run_few(job *s) {
    const nr_quantized_plan *p = s->plan;
    s->step = s->blocks * BLOCK;
    const size_t bytes = (size_t)(p->m * s->step + LANES) * sizeof(float);
    if (!(s->to = nr_scratch(bytes))) return no_scratch(bytes);
    memset(s->to, 0, bytes);
    for (int64_t i = 0; i < p->m; i++)
        memcpy(s->to + i * s->step, (const float *)p->x + i * p->k, (size_t)p->k * sizeof(float));
    s->each = rows_of_chunk((double)p->m * (double)s->step);
    nr_parallel(ceil_div(p->n, s->each), few_chunk, s);
    nr_scratch_free(s->to, bytes);
    return NORCH_OK;
}

/* ---- the weight as floats -------------------------------------------------------------------------------- */

static void weight_chunk(void *context, int64_t chunk) {
    const job *s = context;
    const nr_quantized_plan *p = s->plan;
    const int64_t first = s->first + chunk * s->each, last = least(first + s->each, s->last);
    for (int64_t j = first; j < last; j++) {
        const float *scale = (const float *)p->scale + j * p->groups;
        float *to = s->to + (j - s->first) * p->k;
        for (int64_t b = 0; b < s->blocks; b++) {
            const uint8_t *from = (const uint8_t *)p->weight + j * s->bytes + b * BLOCK * p->bits / 8;
            const int64_t count = least(BLOCK, p->k - b * BLOCK);
            vec w[VECTORS];
            unpack(p->bits, from, w);
            EACH for (int v = 0; v < VECTORS; v++) w[v] *= scale[b >> p->shift];
            if (count == BLOCK)
                EACH for (int v = 0; v < VECTORS; v++) * (loose *)(to + b * BLOCK + v * LANES) = w[v];
            else
                memcpy(to + b * BLOCK, w, (size_t)count * sizeof(float));
        }
    }
}

static void store_weight(job *s) {
    s->each = rows_of_chunk((double)s->plan->k);
    nr_parallel(ceil_div(s->last - s->first, s->each), weight_chunk, s);
}

static int32_t run_many(job *s) {
    const nr_quantized_plan *p = s->plan;
    const int64_t rows = least(p->n, greatest(64, PART / p->k));
    const size_t bytes = (size_t)(rows * p->k) * sizeof(float);
    if (!(s->to = nr_scratch(bytes))) return no_scratch(bytes);
    int32_t status = NORCH_OK;
    for (s->first = 0; s->first < p->n && !status; s->first += rows) {
        s->last = least(s->first + rows, p->n);
        store_weight(s);
        nr_matmul_plan product = {.m = p->m, .n = s->last - s->first, .k = p->k, .a = p->x, .b = s->to};
        product.a_row = product.b_col = p->k;
        product.a_col = product.b_row = 1;
        product.c = (float *)p->y + s->first;
        product.c_row = p->n;
        product.bias = p->bias ? (const float *)p->bias + s->first : NULL;
        const nr_call call = {.family = NR_MATMUL, .op = NR_NO_OP, .dtype = NORCH_FLOAT32, .plan = &product};
        status = NR_ISA(nr_run_matmul)(&call);
    }
    nr_scratch_free(s->to, bytes);
    return status;
}

int32_t NR_ISA(nr_run_quantized)(const nr_call *call) {
    const nr_quantized_plan *p = call->plan;
    job s = {.plan = p, .blocks = nr_quantized_blocks(p), .last = p->n};
    s.bytes = s.blocks * BLOCK * p->bits / 8;
    if (call->op == NR_QUANTIZED_DYNAMIC) return NR_ISA(nr_run_int8)(call);
    if (call->op == NR_QUANTIZED_WEIGHT) {
        s.to = p->y;
        store_weight(&s);
        return NORCH_OK;
    }
    return p->m <= FEW_ROWS || p->k == 0 ? run_few(&s) : run_many(&s);
}
