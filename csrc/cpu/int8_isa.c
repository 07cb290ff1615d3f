/* int8_isa: products of activations with a weight, both as integers, compiled once per instruction set. Each row of x
 * is made 8-bit integers first (families/quantized.h); sums of products of integers are exact, so that every build has
 * the same bits. 4-bit weights become 8-bit ones, a part at a time.
 *
 *   VNNI           4 products are added to each 32-bit sum; the integers of x are unsigned, 128 more than they are, and
 *                  the sum of a row of zeros is subtracted
 *   dot product    the same on aarch64, where both are signed
 *   others         pairs of 16 bits: x is stored so, and the weight widened as it is read
 *
 * A part of a row has one scale of the weight, and at most PART blocks. Its sum becomes a float and is
 * scaled; these are added in order, and the total times the scale of the row of x, plus the bias, is
 * the element. None of it is fused. */
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__SSE2__)
#include <immintrin.h>
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif
#include "../families/quantized.h"
#include "cpu.h"
#include "gemm_isa.h"

#define BLOCK NR_QUANTIZED_BLOCK
#define PART (NR_QUANTIZED_PART / BLOCK)
#define CHUNK_WORK 2000000 /* multiply-adds of a chunk */
#define CHUNK_BYTES 200000 /* of rows of x, which stay in the second cache */
#define ROWS_WORK 100000   /* numbers of x that are made integers in a chunk */
#define INT8_COLS 4
#define WIDE 16    /* columns that are computed row by row */
#define AHEAD 2048 /* bytes between what is read of the weight and what is brought from memory meanwhile */
#if VECTOR > 32 || defined(__aarch64__)
#define INT8_ROWS 4
#else
#define INT8_ROWS 2
#endif

typedef float four_floats __attribute__((vector_size(16)));
typedef int32_t four_ints __attribute__((vector_size(16)));

/* to[i][j], for `rows` rows and INT8_COLS columns: the sum over `columns` of products of row i of x with row j of w, in
 * rows of `step` and `w_step` numbers. */
typedef void sums_of(int rows, int cols, int64_t columns, const void *x, int64_t step, const int8_t *w, int64_t w_step,
                     int32_t *to);
typedef struct int8_kernel {
    sums_of *sums;
    int size, zero; /* bytes of an integer of x, and what it is for 0 */
} int8_kernel;

/* ---- instructions --------------------------------------------------------------------------------------- */

#if defined(__AVX512F__)
#define REGISTER __m512i
#define NONE _mm512_setzero_si512()
INLINE __m128i FOUR_SUMS(__m512i a, __m512i b, __m512i c, __m512i d) {
    const __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    const __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    const __m512i all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    const __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
    return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}
#elif defined(__AVX2__)
#define REGISTER __m256i
#define NONE _mm256_setzero_si256()
INLINE __m128i FOUR_SUMS(__m256i a, __m256i b, __m256i c, __m256i d) {
    const __m256i all = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    return _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
}
#elif defined(__aarch64__)
#define REGISTER int32x4_t
#define NONE vdupq_n_s32(0)
#define FOUR_SUMS(a, b, c, d) vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d))
#else
#define REGISTER four_ints
#define NONE ((four_ints){0})
INLINE four_ints FOUR_SUMS(four_ints a, four_ints b, four_ints c, four_ints d) {
    return (four_ints){a[0] + a[1] + a[2] + a[3], b[0] + b[1] + b[2] + b[3], c[0] + c[1] + c[2] + c[3],
                       d[0] + d[1] + d[2] + d[3]};
}
#endif

/* Pairs of 16 bits. */
#define INT8_TARGET
#define INT8_NAME(name) pairs_##name
#define NUMBER int16_t
#define STEP (VECTOR / 2)
#if defined(__AVX512F__)
#define LOAD_X(at) _mm512_loadu_si512(at)
#define LOAD_W(at) _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)(at)))
#define DOT(sum, x, w) _mm512_add_epi32(sum, _mm512_madd_epi16(x, w))
#elif defined(__AVX2__)
#define LOAD_X(at) _mm256_loadu_si256((const __m256i *)(const void *)(at))
#define LOAD_W(at) _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(at)))
#define DOT(sum, x, w) _mm256_add_epi32(sum, _mm256_madd_epi16(x, w))
#elif defined(__aarch64__)
#define LOAD_X(at) vreinterpretq_s32_s16(vld1q_s16(at))
#define LOAD_W(at) vreinterpretq_s32_s16(vmovl_s8(vld1_s8(at)))
INLINE int32x4_t DOT(int32x4_t sum, int32x4_t x, int32x4_t w) {
    const int16x8_t left = vreinterpretq_s16_s32(x), right = vreinterpretq_s16_s32(w);
    return vmlal_high_s16(vmlal_s16(sum, vget_low_s16(left), vget_low_s16(right)), left, right);
}
#elif defined(__SSE2__)
#define LOAD_X(at) (four_ints) _mm_loadu_si128((const __m128i *)(const void *)(at))
#define LOAD_W(at)              \
    (four_ints) _mm_srai_epi16( \
        _mm_unpacklo_epi8(_mm_setzero_si128(), _mm_loadl_epi64((const __m128i *)(const void *)(at))), 8)
#define DOT(sum, x, w) ((sum) + (four_ints)_mm_madd_epi16((__m128i)(x), (__m128i)(w)))
#elif defined(__wasm_simd128__)
#define LOAD_X(at) (four_ints) wasm_v128_load(at)
#define LOAD_W(at) (four_ints) wasm_i16x8_load8x8(at)
#define DOT(sum, x, w) ((sum) + (four_ints)wasm_i32x4_dot_i16x8((v128_t)(x), (v128_t)(w)))
#else /* four columns at a time */
#undef STEP
#define STEP 4
#define LOAD_X(at) ((four_ints){(at)[0], (at)[1], (at)[2], (at)[3]})
#define LOAD_W LOAD_X
#define DOT(sum, x, w) ((sum) + (x) * (w))
#endif
#include "int8_tile.h"

static const int8_kernel pairs = {.sums = pairs_sums, .size = 2};

/* gcc copies all sums in each step if they are operands of its intrinsic, which has another type. */
#if defined(__AVX512F__)
#define INT8_TARGET
#define NUMBER uint8_t
#define STEP 64
#define LOAD_X(at) _mm512_loadu_si512(at)
#define LOAD_HALF_X(at) _mm512_zextsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)(at)))
#define LOAD_HALF_W LOAD_HALF_X
INLINE __m512i add_fours(__m512i sum, __m512i x, __m512i w) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
    return sum;
}
#define DOT add_fours
#define LEAF 0
#define HAS(a, c) ((c) >> 11 & 1)
#elif defined(__AVX2__) && (__GNUC__ >= 11 || __clang_major__ >= 12)
#define INT8_TARGET
#define NUMBER uint8_t
#define STEP 32
#define LOAD_X(at) _mm256_loadu_si256((const __m256i *)(const void *)(at))
INLINE __m256i add_fours(__m256i sum, __m256i x, __m256i w) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(x), "x"(w));
    return sum;
}
#define DOT add_fours
#define LEAF 1
#define HAS(a, c) ((a) >> 4 & 1)
#elif defined(__ARM_FEATURE_DOTPROD) || (defined(__aarch64__) && defined(__linux__))
#ifdef __ARM_FEATURE_DOTPROD
#define INT8_TARGET
#elif defined(__clang__)
#define INT8_TARGET __attribute__((target("dotprod")))
#else
#define INT8_TARGET __attribute__((target("arch=armv8.2-a+dotprod")))
#endif
#define NUMBER int8_t
#define STEP 16
#define LOAD_X(at) vreinterpretq_s32_s8(vld1q_s8(at))
#define DOT(sum, x, w) vdotq_s32(sum, vreinterpretq_s8_s32(x), vreinterpretq_s8_s32(w))
#endif

#ifdef INT8_TARGET
#define INT8_NAME(name) fours_##name
#define LOAD_W LOAD_X
#define INT8_FOURS
#include "int8_tile.h"

#ifdef __aarch64__
static const int8_kernel fours = {.sums = fours_sums, .size = 1};
static bool multiplies_fours(void) {
#ifdef __ARM_FEATURE_DOTPROD
    return true;
#else
    return getauxval(AT_HWCAP) >> 20 & 1; /* HWCAP_ASIMDDP, which old headers lack */
#endif
}
#else
static const int8_kernel fours = {.sums = fours_sums, .size = 1, .zero = 128};
static bool multiplies_fours(void) {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, LEAF, &a, &b, &c, &d) && HAS(a, c);
}
#endif
#endif

static const int8_kernel *kernel = &pairs; /* set when the library is loaded */

void NR_ISA(nr_choose_int8)(void) {
#ifdef INT8_FOURS
    const char *wanted = getenv("NORCH_VNNI");
    if (multiplies_fours() && !(wanted && strcmp(wanted, "0") == 0)) kernel = &fours;
#endif
}

/* ---- the product ----------------------------------------------------------------------------------------- */

typedef struct job {
    const nr_quantized_plan *plan;
    int64_t blocks, step;       /* of a row of the weight, and of x in numbers */
    int64_t part, parts;        /* blocks of a part of a row, and parts */
    int64_t tall, wide, across; /* rows and columns of a chunk, and chunks side by side */
    int64_t each;               /* rows that are made integers in a chunk */
    char *x;                    /* integers: the rows of x, and a row of zeros */
    float *scale;               /* of each row of x */
} job;

INLINE const void *row_of(const job *s, int64_t row, int64_t column) {
    return s->x + (row * s->step + column) * kernel->size;
}

/* Adding this number to a float rounds the float to an integer, which is then in the last bits. */
#define ROUNDER 0x1.8p23f

static void quantize_row(const job *s, int64_t row) {
    const int64_t k = s->plan->k;
    const float *from = (const float *)s->plan->x + row * k;
    int32_t most = 0;
    for (int64_t c = 0; c < k; c++) {
        const int32_t size = (int32_t)(nr_bits_of_float(from[c]) & INT32_MAX);
        most = size > most ? size : most;
    }
    const float scale = s->scale[row] = nr_scale_of_row((uint32_t)most), inverse = 1 / scale;
    const int32_t zero = kernel->zero - (int32_t)nr_bits_of_float(ROUNDER);
    char *to = s->x + row * s->step * kernel->size;
    if (kernel->size == 1) {
        uint8_t *restrict bytes = (uint8_t *)to;
        for (int64_t c = 0; c < k; c++)
            bytes[c] = (uint8_t)((int32_t)nr_bits_of_float(from[c] * inverse + ROUNDER) + zero);
    } else {
        int16_t *restrict numbers = (int16_t *)(void *)to;
        for (int64_t c = 0; c < k; c++)
            numbers[c] = (int16_t)((int32_t)nr_bits_of_float(from[c] * inverse + ROUNDER) + zero);
    }
    memset(to + k * kernel->size, kernel->zero, (size_t)((s->step - k) * kernel->size));
}

static void quantize_chunk(void *context, int64_t chunk) {
    const job *s = context;
    for (int64_t i = chunk * s->each; i < least((chunk + 1) * s->each, s->plan->m); i++) quantize_row(s, i);
}

/* Blocks of a row of 4 bits as 8 bits. */
static void unpack(int8_t *restrict to, const uint8_t *from, int64_t blocks) {
    for (int64_t b = 0; b < blocks; b++, from += BLOCK / 2, to += BLOCK)
        for (int i = 0; i < BLOCK / 2; i++) {
            to[i] = (int8_t)((from[i] & 15) - 8);
            to[i + BLOCK / 2] = (int8_t)((from[i] >> 4) - 8);
        }
}

INLINE four_floats load_floats(const float *from, int64_t step, int cols) {
    four_floats x = {0};
    for (int j = 0; j < cols; j++) x[j] = from[j * step];
    return x;
}

/* Adds a part of rows x cols sums to columns of y at a stride; `none` are the sums of a row of zeros. */
INLINE void store(int cols, int64_t stride, const job *s, int64_t part, int64_t i, int rows, int64_t j,
                  const four_ints *sums, four_ints none, four_floats scale) {
    const nr_quantized_plan *p = s->plan;
    const bool is_last = part == s->parts - 1;
    const four_floats bias = p->bias ? load_floats((const float *)p->bias + j, stride, cols) : (four_floats){0};
    for (int r = 0; r < rows; r++) {
        float *to = (float *)p->y + (i + r) * p->n + j;
        four_floats y = __builtin_convertvector(sums[r] - none, four_floats) * scale;
        if (part) y += load_floats(to, stride, cols);
        if (is_last) y = y * s->scale[i + r] + bias;
        for (int c = 0; c < cols; c++) to[c * stride] = y[c];
    }
}

/* Rows i0 .. i1 of `cols` columns of y, WIDE at most, from j on at a stride. Side by side they end lines of the cache
 * that their rows begin. */
static void columns(const job *s, int64_t i0, int64_t i1, int64_t j, int cols, int64_t stride) {
    const nr_quantized_plan *p = s->plan;
    int8_t bytes[WIDE * NR_QUANTIZED_PART];
    four_floats scale[WIDE / INT8_COLS];
    four_ints none[WIDE / INT8_COLS], sums[INT8_ROWS];
    for (int64_t part = 0; part < s->parts; part++) {
        const int64_t first = part * s->part, blocks = least(s->part, s->blocks - first), width = blocks * BLOCK;
        const int8_t *w = (const int8_t *)p->weight + j * s->blocks * BLOCK + first * BLOCK;
        int64_t w_step = stride * s->blocks * BLOCK;
        if (p->bits == 4) {
            const uint8_t *halves = (const uint8_t *)p->weight + (j * s->blocks + first) * BLOCK / 2;
            for (int c = 0; c < cols; c++) unpack(bytes + c * width, halves + c * w_step / 2, blocks);
            w = bytes;
            w_step = width;
        }
        for (int c = 0; c < cols && stride > 1 && p->bits == 8; c++)
            for (int64_t at = 0; at < width; at += 64) __builtin_prefetch(w + c * w_step + at + AHEAD);
        for (int c = 0; c < cols; c += INT8_COLS) {
            const int columns = (int)least(INT8_COLS, cols - c);
            const float *scales = (const float *)p->scale + (j + c * stride) * p->groups + (first >> p->shift);
            scale[c / INT8_COLS] = load_floats(scales, stride * p->groups, columns);
            if (kernel->zero)
                kernel->sums(1, columns, width, row_of(s, p->m, 0), s->step, w + c * w_step, w_step, (int32_t *)sums);
            none[c / INT8_COLS] = kernel->zero ? sums[0] : (four_ints){0};
        }
        for (int64_t i = i0; i < i1; i += INT8_ROWS) {
            const int rows = (int)least(INT8_ROWS, i1 - i);
            for (int c = 0; c < cols; c += INT8_COLS) {
                const int columns = (int)least(INT8_COLS, cols - c);
                kernel->sums(rows, columns, width, row_of(s, i, first * BLOCK), s->step, w + c * w_step, w_step,
                             (int32_t *)sums);
                const int64_t column = j + c * stride;
                if (columns == INT8_COLS && stride == 1)
                    store(INT8_COLS, 1, s, part, i, rows, column, sums, none[c / INT8_COLS], scale[c / INT8_COLS]);
                else
                    store(columns, stride, s, part, i, rows, column, sums, none[c / INT8_COLS], scale[c / INT8_COLS]);
            }
        }
    }
}

static void product_chunk(void *context, int64_t chunk) {
    const job *s = context;
    const nr_quantized_plan *p = s->plan;
    const int64_t i0 = chunk / s->across * s->tall, i1 = least(i0 + s->tall, p->m);
    const int64_t j0 = chunk % s->across * s->wide, j1 = least(j0 + s->wide, p->n);
#ifdef __wasm__ /* where the library must be small */
    const int64_t stride = 0;
#else
    const int64_t stride = nr_quantized_stride(p, j1 - j0);
#endif
    for (int64_t j = j0; j < j0 + stride; j++) columns(s, i0, i1, j, 4, stride);
    for (int64_t j = j0 + 4 * stride; j < j1; j += WIDE) columns(s, i0, i1, j, (int)least(WIDE, j1 - j), 1);
}

int32_t NR_ISA(nr_run_int8)(const nr_call *call) {
    const nr_quantized_plan *p = call->plan;
    job s = {.plan = p, .blocks = nr_quantized_blocks(p)};
    s.step = s.blocks * BLOCK;
    s.part = p->shift < 6 ? (int64_t)1 << p->shift : PART;
    s.parts = greatest(1, ceil_div(s.blocks, s.part));
    const size_t integers = (size_t)((p->m + 1) * s.step * kernel->size),
                 bytes = integers + (size_t)p->m * sizeof(float);
    if (!(s.x = nr_scratch(bytes)))
        return nr_fail(NORCH_ERROR_MEMORY, "quantized: no memory for %lld bytes of scratch", (long long)bytes);
    s.scale = (float *)(void *)(s.x + integers);
    memset(s.x + p->m * s.step * kernel->size, kernel->zero, (size_t)(s.step * kernel->size));
    s.each = 1 + ROWS_WORK / (p->k + 1);
    nr_parallel(ceil_div(p->m, s.each), quantize_chunk, &s);

    const int64_t in_cache = greatest(INT8_ROWS, CHUNK_BYTES / (s.step * kernel->size + 1) / INT8_ROWS * INT8_ROWS);
    s.tall = least(p->m, in_cache);
    s.wide = ceil_div(1 + CHUNK_WORK / (s.tall * s.step + 1), WIDE) * WIDE;
    s.across = ceil_div(p->n, s.wide);
    nr_parallel(ceil_div(p->m, s.tall) * s.across, product_chunk, &s);
    nr_scratch_free(s.x, bytes);
    return NORCH_OK;
}
