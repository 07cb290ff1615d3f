/* gemm_isa: the parameters of an instruction set for matrix products: the width of a register, the tile of C that fits
 * the registers, and masked loads and stores. Used by matmul_isa.c, conv_isa.c and attention_isa.c. */
#include <stdint.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* VECTOR: bytes of a register. A tile of C has TILE_ROWS x TILE_VECTORS accumulators, a tile of dot products DOT_ROWS x
 * 4. Both leave a few registers for the operands. */
#if defined(__AVX512F__)
#define VECTOR 64
#define TILE_ROWS 14
#define DOT_ROWS 6
#define EACH_TILE_ROW(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#define EACH_DOT_ROW(X) X(1) X(2) X(3) X(4) X(5) X(6)
#elif defined(__AVX2__)
#define VECTOR 32
#define TILE_ROWS 6
#define DOT_ROWS 3
#define EACH_TILE_ROW(X) X(1) X(2) X(3) X(4) X(5) X(6)
#define EACH_DOT_ROW(X) X(1) X(2) X(3)
#elif defined(__aarch64__)
#define VECTOR 16
#define TILE_ROWS 8
#define DOT_ROWS 4
#define EACH_TILE_ROW(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#define EACH_DOT_ROW(X) X(1) X(2) X(3) X(4)
#else
#define VECTOR 16
#define TILE_ROWS 5
#define DOT_ROWS 2
#define EACH_TILE_ROW(X) X(1) X(2) X(3) X(4) X(5)
#define EACH_DOT_ROW(X) X(1) X(2)
#endif
#define TILE_VECTORS 2

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#define UNROLL_MORE UNROLL
#else
#define UNROLL _Pragma("GCC unroll 16")
#define UNROLL_MORE _Pragma("GCC unroll 32")
#endif

/* Keeps a loaded vector in a register. For two or three uses gcc would load it again each time. */
#if defined(__AVX512F__)
#define LOADED(vector) __asm__("" : "+v"(vector))
#elif defined(__AVX2__)
#define LOADED(vector) __asm__("" : "+x"(vector))
#else
#define LOADED(vector) (void)(vector)
#endif

/* Keeps a pointer, where the compiler would compute it from another one at each use. */
#if defined(__AVX512F__)
#define ADDRESS(pointer) __asm__("" : "+r"(pointer))
#else
#define ADDRESS(pointer) (void)(pointer)
#endif

/* F(lanes of a vector, d, lane) for every lane. */
#define EIGHT_LANES(n, F, d, i)                                                                                 \
    F(n, d, i), F(n, d, i + 1), F(n, d, i + 2), F(n, d, i + 3), F(n, d, i + 4), F(n, d, i + 5), F(n, d, i + 6), \
        F(n, d, i + 7)
#if VECTOR == 64
#define EACH_LANE_float32(F, d) EIGHT_LANES(16, F, d, 0), EIGHT_LANES(16, F, d, 8)
#define EACH_LANE_float64(F, d) EIGHT_LANES(8, F, d, 0)
#elif VECTOR == 32
#define EACH_LANE_float32(F, d) EIGHT_LANES(8, F, d, 0)
#define EACH_LANE_float64(F, d) F(4, d, 0), F(4, d, 1), F(4, d, 2), F(4, d, 3)
#else
#define EACH_LANE_float32(F, d) F(4, d, 0), F(4, d, 1), F(4, d, 2), F(4, d, 3)
#define EACH_LANE_float64(F, d) F(2, d, 0), F(2, d, 1)
#endif

/* Names that carry the type, in templates of each_dtype.h. */
#define NAME OF_DTYPE

/* The first `count` lanes of a vector, at most all; the others are 0. PARTS_BY_MASKS: a part takes the time of a whole
 * vector. */
#if defined(__AVX512F__)
#define PARTS
#define PARTS_BY_MASKS
#define PART_LOAD_float32(at, count) _mm512_maskz_loadu_ps((__mmask16)((1u << (count)) - 1), at)
#define PART_STORE_float32(at, count, v) _mm512_mask_storeu_ps(at, (__mmask16)((1u << (count)) - 1), v)
#define PART_LOAD_float64(at, count) _mm512_maskz_loadu_pd((__mmask8)((1u << (count)) - 1), at)
#define PART_STORE_float64(at, count, v) _mm512_mask_storeu_pd(at, (__mmask8)((1u << (count)) - 1), v)
#elif defined(__AVX2__)
#define PARTS
static const int32_t mask_float32[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
static const int64_t mask_float64[8] = {-1, -1, -1, -1};
#define PART_MASK_float32(count) _mm256_loadu_si256((const __m256i *)(const void *)(mask_float32 + 8 - (count)))
#define PART_MASK_float64(count) _mm256_loadu_si256((const __m256i *)(const void *)(mask_float64 + 4 - (count)))
#define PART_LOAD_float32(at, count) _mm256_maskload_ps(at, PART_MASK_float32(count))
#define PART_STORE_float32(at, count, v) _mm256_maskstore_ps(at, PART_MASK_float32(count), v)
#define PART_LOAD_float64(at, count) _mm256_maskload_pd(at, PART_MASK_float64(count))
#define PART_STORE_float64(at, count, v) _mm256_maskstore_pd(at, PART_MASK_float64(count), v)
#endif
