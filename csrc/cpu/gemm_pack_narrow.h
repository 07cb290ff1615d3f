/* gemm_pack_narrow: panels of 16-bit floats, packed as float32. Included by gemm.h for each float type; the blocked
 * algorithm of float32 uses it for the products of gemm_narrow.h.
 *
 * A piece of WIDE_K numbers along k by WIDE_PANELS panels is widened as it lies in memory, and packed from there while
 * it is in the first cache. */

/* Whether operands are 16-bit floats, widened while packed, and C has sums of earlier terms (gemm_narrow.h). */
#define WIDENS(p) (WIDENS_HALVES && sizeof(T) == sizeof(float) && (p)->widen)
#define ADDS(p) (WIDENS_HALVES && sizeof(T) == sizeof(float) && (p)->add)
#define WIDE_K 32     /* numbers along k that are widened at once */
#define WIDE_PANELS 4 /* and panels */

INLINE const void *NAME(operand_at)(const product *p, const void *from, int64_t at) {
    return (const char *)from + at * (int64_t)(WIDENS(p) ? sizeof(uint16_t) : sizeof(T));
}

/* Packs panels of the left operand (`left`) or the right, of 16-bit floats, by pieces that stay in the first cache. */
static void NAME(pack_narrow_panels)(const product *p, bool left, T *to, int64_t k, const void *operand, int64_t lane,
                                     int64_t step, int64_t lanes) {
    const int64_t width = left ? TILE_ROWS : PANEL_COLS;
    const uint16_t *from = operand;
    T wide[WIDE_PANELS * PANEL_COLS * WIDE_K] __attribute__((aligned(64)));
    for (int64_t at = 0; at < lanes; at += WIDE_PANELS * width) {
        const int64_t count = least(WIDE_PANELS * width, lanes - at);
        for (int64_t q = 0; q < k; q += WIDE_K) {
            const int64_t depth = least(WIDE_K, k - q), lines = lane == 1 ? depth : count;
            const int64_t length = lane == 1 ? count : depth;
            const uint16_t *line = from + at * lane + q * step;
            for (int64_t i = 0; i < lines; i++, line += lane == 1 ? step : lane) {
                for (int64_t x = 0; x < length && lane == 1; x += 32) __builtin_prefetch(line + WIDE_K * step + x);
                p->widen((char *)(wide + i * length), sizeof(T), (const char *)line,
                         (lane == 1 ? 1 : step) * (int64_t)sizeof *line, length);
            }
            const int64_t apart = lane == 1 ? 1 : length, along = lane == 1 ? length : 1;
            for (int64_t l = 0; l < count; l += width) {
                T *panel = to + (at + l) * k + q * width;
                if (left)
                    NAME(pack_a)(panel, depth, wide + l * apart, apart, along, count - l);
                else
                    NAME(pack_b)(panel, depth, wide + l * apart, along, apart, least(width, count - l));
            }
        }
    }
}
