/* amx: Intel's tile instructions for gemm_bf16_tiles.h and conv_tiles.h, and functions in plain C that do the same
 * (EMULATED), with which every machine tests the kernels. This file is included once for each; amx.c decides which of
 * them runs.
 *
 * There are 8 registers, each a tile of 16 rows of 64 bytes, of 16 float32 or 16 pairs of bfloat16. Intel's manual,
 * volume 1, chapter 18, and volume 2, TDPBF16PS. The configuration is loaded before the first instruction and released
 * after the last one, because registers in use make each switch between threads save 8 KB. Other libraries do the same,
 * so no configuration survives a call. */
#include <stdint.h>
#include <string.h>

#ifndef TILE_REGISTERS
#define TILE_REGISTERS 8

/* The operand of LDTILECFG: the palette, the row to start at, from byte 16 on the bytes of a row of each register, and
 * from byte 48 on its number of rows. */
static const uint8_t tile_config[64] __attribute__((aligned(64))) = {
    [0] = 1,   [16] = 64, [18] = 64, [20] = 64, [22] = 64, [24] = 64, [26] = 64, [28] = 64, [30] = 64,
    [48] = 16, [49] = 16, [50] = 16, [51] = 16, [52] = 16, [53] = 16, [54] = 16, [55] = 16,
};
#endif

#ifdef EMULATED

typedef struct emulated_tiles {
    uint8_t rows[8];
    uint16_t bytes[8]; /* of a row */
    uint32_t cell[8][TILE_ROW][TILE_ROW];
} emulated_tiles;

static void emulated_begin(emulated_tiles *t, const uint8_t *config) {
    memset(t, 0, sizeof *t);
    for (int i = 0; i < 8 && config[0] == 1; i++) {
        memcpy(&t->bytes[i], config + 16 + 2 * i, sizeof t->bytes[i]);
        t->rows[i] = config[48 + i];
    }
}

/* apart: bytes from row to row in memory */
static void emulated_load(emulated_tiles *t, int to, const void *from, int64_t apart) {
    memset(t->cell[to], 0, sizeof t->cell[to]);
    for (int r = 0; r < t->rows[to]; r++) memcpy(t->cell[to][r], (const char *)from + r * apart, t->bytes[to]);
}

static void emulated_store(const emulated_tiles *t, int from, void *to, int64_t apart) {
    for (int r = 0; r < t->rows[from]; r++) memcpy((char *)to + r * apart, t->cell[from][r], t->bytes[from]);
}

/* The instructions treat subnormal operands as 0, and round subnormal results to 0. */
INLINE float flushed(float x) { return __builtin_fabsf(x) < 0x1p-126f ? 0 : x; }
INLINE float low_half(uint32_t pair) { return flushed(nr_float_of_bits(pair << 16)); }
INLINE float high_half(uint32_t pair) { return flushed(nr_float_of_bits(pair & 0xffff0000u)); }

/* sum[m][n] += the sum over k of the products of the pairs a[m][k] and b[k][n]. The products of first elements and
 * those of second elements have separate sums, each in the order of k. */
static void emulated_dp_bf16(emulated_tiles *t, int sum, int a, int b) {
    for (int m = 0; m < t->rows[sum]; m++) {
        float first[TILE_ROW] = {0}, second[TILE_ROW] = {0};
        for (int k = 0; k < t->bytes[a] / 4; k++) {
            const float x = low_half(t->cell[a][m][k]), y = high_half(t->cell[a][m][k]);
            for (int n = 0; n < TILE_ROW; n++) {
                first[n] = flushed(first[n] + x * low_half(t->cell[b][k][n]));
                second[n] = flushed(second[n] + y * high_half(t->cell[b][k][n]));
            }
        }
        for (int n = 0; n < t->bytes[sum] / 4; n++) {
            const float before = nr_float_of_bits(t->cell[sum][m][n]);
            t->cell[sum][m][n] = nr_bits_of_float(flushed(before + flushed(first[n] + second[n])));
        }
    }
}

#define TILES emulated_tiles
#define TILE_FUNCTION __attribute__((cold)) /* only tests run it */
#define TILE_NAME(name) emulated_##name
#define tiles_begin(t) emulated_begin(t, tile_config)
#define tiles_end(t) ((void)(t))
#define tile_zero(t, to) memset((t)->cell[to], 0, sizeof(t)->cell[to])
#define tile_load(t, to, from, apart) emulated_load(t, to, from, apart)
#define tile_pass tile_load
#define tile_store(t, from, to, apart) emulated_store(t, from, to, apart)
#define tile_dp_bf16(t, sum, a, b) emulated_dp_bf16(t, sum, a, b)

#else

typedef struct amx_tiles {
    char none; /* they are registers */
} amx_tiles;

#define TILES amx_tiles
#define TILE_FUNCTION __attribute__((target("amx-tile,amx-bf16")))
#define TILE_NAME(name) amx_##name
/* gcc does not know that the intrinsic reads memory; this barrier makes it complete all writes first. */
#define WRITTEN __asm__ volatile("" ::: "memory")
#define tiles_begin(t) ((void)(t), _tile_loadconfig(tile_config))
#define tiles_end(t) ((void)(t), _tile_release())
#define tile_zero(t, to) \
    do {                 \
        (void)(t);       \
        _tile_zero(to);  \
    } while (0)
#define tile_load(t, to, from, apart) \
    do {                              \
        WRITTEN;                      \
        _tile_loadd(to, from, apart); \
    } while (0)
/* the same for what is used once before the first cache has other lines, which it leaves there */
#define tile_pass(t, to, from, apart)        \
    do {                                     \
        WRITTEN;                             \
        _tile_stream_loadd(to, from, apart); \
    } while (0)
#define tile_store(t, from, to, apart) \
    do {                               \
        (void)(t);                     \
        _tile_stored(from, to, apart); \
        WRITTEN;                       \
    } while (0)
#define tile_dp_bf16(t, sum, a, b) _tile_dpbf16ps(sum, a, b)

#endif

/* Tiles 0 to 3 as sums of 32 x 32: zeros, or those in memory, which are to be added to; and their way to memory. */
TILE_FUNCTION static inline void TILE_NAME(begin_sums)(TILES *t, bool add, const float *sums) {
    if (add) {
        tile_load(t, 0, sums, 128);
        tile_load(t, 1, sums + TILE_ROW, 128);
        tile_load(t, 2, sums + 2 * TILE_CELLS, 128);
        tile_load(t, 3, sums + 2 * TILE_CELLS + TILE_ROW, 128);
    } else {
        tile_zero(t, 0);
        tile_zero(t, 1);
        tile_zero(t, 2);
        tile_zero(t, 3);
    }
}

TILE_FUNCTION static inline void TILE_NAME(end_sums)(TILES *t, float *sums) {
    tile_store(t, 0, sums, 128);
    tile_store(t, 1, sums + TILE_ROW, 128);
    tile_store(t, 2, sums + 2 * TILE_CELLS, 128);
    tile_store(t, 3, sums + 2 * TILE_CELLS + TILE_ROW, 128);
}
