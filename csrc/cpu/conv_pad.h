/* conv_pad: rows of a source between their padding, for one float type: a template of each_dtype.h.
 *
 *   source, 3 wide:  a b c      padding 1:  0 a b c 0        stride 2:  0 b 0 | a c .     the columns of one residue
 *                    d e f                  0 d e f 0                   0 e 0 | d f .     after the other
 *
 * So the elements that one tap reads at neighbouring positions are neighbours in memory, and edges need no special
 * case. Only the rows of a band, of a few channels at a time, are copied, and never a whole input. By residues: a
 * polyphase decomposition (Vaidyanathan, "Multirate Systems and Filter Banks", 1993, chapter 4). */

#include "gemm_pack.h"

/* NAME(pack_square) and NAME(pack) are long, so these functions are not inlined. wide is LANES or PANEL_COLS. */
static __attribute__((noinline)) void NAME(turn)(int64_t width, T *to, int64_t k, const T *from, int64_t lane) {
    NAME(pack_square)(width, to, k, from, lane);
}
static __attribute__((noinline)) void NAME(turn_lanes)(int wide, T *to, int64_t k, const T *from, int64_t lane,
                                                       int lanes) {
    if (wide == PANEL_COLS)
        NAME(pack)(PANEL_COLS, to, k, from, lane, 1, lanes);
    else
        NAME(pack)(LANES, to, k, from, lane, 1, lanes);
}

typedef INTEGER NAME(index) __attribute__((vector_size(VECTOR)));

/* A mask of the lanes of a vector, numbered from `at` on, whose number is in [0, n). */
INLINE NAME(index) NAME(within)(int64_t at, int64_t n) {
    NAME(index) lane;
    for (int i = 0; i < LANES; i++) lane[i] = i;
    return (lane >= (INTEGER)least(at < 0 ? -at : 0, LANES)) & (lane < (INTEGER)(at < n ? least(n - at, LANES) : 0));
}

/* n elements of each of `rows` rows, `wide` apart from `from` on, into rows of `pitch` at `to`: `before` zeros lead
 * each. Whole vectors are moved: they write up to LANES beyond a row, where the next row is written later. inside:
 * whether they may also be read so. */
INLINE void NAME(pad_rows)(int64_t rows, int64_t before, int64_t n, int64_t pitch, const T *from, int64_t wide,
                           bool inside, T *to) {
    const int64_t last = (pitch - 1) / LANES * LANES;
    const NAME(index) head = NAME(within)(-before, n), tail = NAME(within)(last - before, n);
    if (inside && last == 0) { /* a vector a row */
        for (int64_t r = 0; r < rows; r++)
            STORE(to + r * pitch, (NAME(vec))((NAME(index))VEC(from + r * wide - before) & head));
        return;
    }
    for (int64_t r = 0; r < rows; r++, from += wide, to += pitch) {
        for (int64_t u = 0; u <= last; u += LANES) {
            int64_t at = u - before;
            if (!inside || at + LANES <= 0 || at >= n) {
                NAME(vec) v = {0};
                for (int64_t i = at < 0 ? -at : 0; i < least(n - at, LANES); i++) v[i] = from[at + i];
                STORE(to + u, v);
            } else if (u == 0 || u == last) {
                STORE(to + u, (NAME(vec))((NAME(index))VEC(from + at) & (u == 0 ? head : tail)));
            } else {
                STORE(to + u, (NAME(vec))((NAME(index))VEC(from + at) & NAME(within)(at, n)));
            }
        }
    }
}

/* Copies n elements, every other one from `from` on, for a stride of 2. */
INLINE void NAME(every_other)(int64_t n, const T *from, T *to) {
#define EVEN(lanes, d, i) 2 * (i)
    for (; n > 0; n -= LANES, from += 2 * LANES, to += LANES) {
        const int64_t count = least(n, LANES), reach = 2 * count - 1;
        NAME(vec) low = NAME(load_part)(from, (int)least(reach, LANES)), high = {0};
        if (reach > LANES) high = NAME(load_part)(from + LANES, (int)(reach - LANES));
        NAME(store_part)(to, (int)count, SHUFFLE_LANES(low, high, NAME(EACH_LANE)(EVEN, 0)));
    }
#undef EVEN
}

/* `channels` planes at `from`, the rows that `rows` grid rows from `first` on see, copied to `to`; the source as a
 * whole is [begin, end). */
static __attribute__((noinline)) void NAME(pad_band)(const view *v, const T *from, const T *begin, const T *end,
                                                     int64_t channels, int64_t first, int64_t rows, T *to) {
    int64_t step = v->step[1], residue = v->residue, pitch = v->pitch, high = v->size[0], wide = v->size[1];
    int64_t padded = (rows - 1) * v->step[0] + v->span[0], top = first * v->step[0] + v->low[0];
    /* rows before the source, and rows of it */
    int64_t above = top < 0 ? least(-top, padded) : 0, within = high - top - above;
    within = within < 0 ? 0 : least(within, padded - above);
    for (int64_t c = 0; c < channels; c++, from += high * wide, to += v->plane) {
        for (int64_t u = 0; u < above * pitch; u++) to[u] = 0;
        for (int64_t q = 0; q < step && within > 0; q++) {
            /* element u of this residue is column u * step + low of the source */
            int64_t low = v->low[1] + q, before = low < 0 ? least(ceil_div(-low, step), residue) : 0;
            int64_t n = (low < wide ? least(ceil_div(wide - low, step), residue) : 0) - before;
            if (n < 0) n = 0;
            const T *source = n ? from + (top + above) * wide + low + before * step : from;
            T *row = to + above * pitch + q * residue;
            if (step == 1) {
                int64_t last = (within - 1) * wide + ceil_div(pitch, LANES) * LANES - before;
                bool inside = source - begin >= before && end - source >= last;
                NAME(pad_rows)(within, before, n, pitch, source, wide, inside, row);
                continue;
            }
            for (int64_t r = 0; r < within; r++, row += pitch, source += wide) {
                for (int64_t u = 0; u < before; u++) row[u] = 0;
                if (step == 2)
                    NAME(every_other)(n, source, row + before);
                else
                    for (int64_t u = 0; u < n; u++) row[before + u] = source[u * step];
                for (int64_t u = before + n; u < residue; u++) row[u] = 0;
            }
        }
        for (int64_t u = (above + within) * pitch; u < padded * pitch; u++) to[u] = 0;
    }
}
