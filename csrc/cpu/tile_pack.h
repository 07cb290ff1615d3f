/* tile_pack: what products (gemm_bf16_tiles.h) and convolutions (conv_tiles.h) do beside the tile instructions of amx.h:
 * pairs of bfloat16 are packed, and sums rounded. */

#define TILE_ROW 16 /* rows, and numbers of 4 bytes in a row, of a tile of amx.h */
#define TILE_CELLS (TILE_ROW * TILE_ROW)

typedef uint16_t bf16_bits __attribute__((may_alias));
typedef uint32_t bf16_both __attribute__((may_alias)); /* a pair */

typedef bf16_bits bf16_lanes __attribute__((vector_size(2 * TILE_ROW), aligned(2), may_alias));
typedef bf16_bits bf16_row_lanes __attribute__((vector_size(4 * TILE_ROW), aligned(2), may_alias));
typedef bf16_both pair_lanes __attribute__((vector_size(4 * TILE_ROW), aligned(4), may_alias));

/* The pairs (low[i], high[i]) of 16 lanes. */
INLINE void bf16_interleave(bf16_both *to, const bf16_bits *low, const bf16_bits *high) {
    const bf16_lanes x = *(const bf16_lanes *)low, y = *(const bf16_lanes *)high;
    *(pair_lanes *)to = __builtin_convertvector(x, pair_lanes) | __builtin_convertvector(y, pair_lanes) << 16;
}

/* Rounds rows x cols of 32 x 32 sums, plus the bias of each column, to nearest, ties to even. Whether a result is
 * infinite or NaN, which is computed again. (The digits of a NaN that are cut off are 0, as those of the operands
 * are.) */
static __attribute__((unused)) bool store_sums(const float *sums, bf16_bits *c, int64_t c_row, int rows, int cols,
                                               const float *bias) {
    bf16_row_lanes special = {0}; /* in a register: through memory the rows would wait for each other */
    for (int i = 0; i < rows; i++, c += c_row, sums += 2 * TILE_ROW) {
        bf16_bits rounded[2 * TILE_ROW];
        for (int j = 0; j < 2 * TILE_ROW; j++) {
            const uint32_t bits = nr_bits_of_float(sums[j] + bias[j]);
            rounded[j] = (bf16_bits)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        }
        const bf16_row_lanes row = *(const bf16_row_lanes *)rounded;
        special |= (bf16_row_lanes)((row & 0x7f80) == 0x7f80);
        if (cols == 2 * TILE_ROW)
            *(bf16_row_lanes *)c = row;
        else
            memcpy(c, rounded, (size_t)cols * sizeof *rounded);
    }
    uint16_t any = 0;
    for (int j = 0; j < 2 * TILE_ROW; j++) any |= special[j];
    return any;
}
