/* conv_pad: rows of a source between their padding, for one float type T; included by conv_isa.c after gemm_pack.h.
 *
 *   source, 3 wide:  a b c      padding 1:  0 a b c 0        stride 2:  0 b 0 | a c .     the columns of one residue
 *                    d e f                  0 d e f 0                   0 e 0 | d f .     after the other
 *
 * So the elements that one tap meets at neighbouring positions are neighbours in memory, and edges are no special case
 * any more. The rows of a band of a few channels at a time are laid down, never a whole input. */

typedef LANE_INDEX NAME(index) __attribute__((vector_size(VECTOR)));

/* A row of `wide` elements at `to`: zeros, n elements from `from` on, zeros. Whole vectors are moved: they are written up
 * to LANES beyond the row, where the next one will lie, and read where the source, [begin, end), has them. */
static ALWAYS_INLINE void NAME(pad_row)(int64_t before, int64_t n, int64_t wide, const T *from, const T *begin,
                                        const T *end, T *to) {
    NAME(index) lane;
    for (int i = 0; i < LANES; i++) lane[i] = i;
    for (int64_t u = 0; u < wide; u += LANES) {
        int64_t at = u - before;
        if (at + LANES <= 0 || at >= n) {
            STORE(to + u, (NAME(vec)){0});
        } else if (from - begin + at >= 0 && end - from >= at + LANES) {
            NAME(index) inside = (lane >= (LANE_INDEX)(at < 0 ? -at : 0)) & (lane < (LANE_INDEX)least(n - at, LANES));
            STORE(to + u, (NAME(vec))((NAME(index))VEC(from + at) & inside));
        } else {
            for (int64_t i = 0; i < LANES; i++) to[u + i] = at + i >= 0 && at + i < n ? from[at + i] : (T)0;
        }
    }
}

/* `channels` planes at `from`, the rows that `rows` grid rows from `first` on see, laid down at `to`; the source as a whole is
 * [begin, end). */
static __attribute__((noinline)) void NAME(pad_band)(const view *v, const T *from, const T *begin, const T *end,
                                                     int64_t channels, int64_t first, int64_t rows, T *to) {
    int64_t padded = (rows - 1) * v->step[0] + v->span[0], step = v->step[1], residue = v->residue;
    int64_t pitch = v->pitch, high = v->size[0], wide = v->size[1], plane = v->plane;
    int64_t top = first * v->step[0] + v->low[0];
    for (int64_t q = step - 1; q >= 0; q--) {
        /* element u of this residue is column u * step + low of the source */
        int64_t low = v->low[1] + q, before = low < 0 ? least(ceil_div(-low, step), residue) : 0;
        int64_t n = (low < wide ? least(ceil_div(wide - low, step), residue) : 0) - before;
        for (int64_t c = 0; c < channels; c++) {
            for (int64_t r = 0; r < padded; r++) {
                T *row = to + c * plane + r * pitch + q * residue;
                bool outside = n <= 0 || top + r < 0 || top + r >= high;
                const T *source = outside ? from : from + (c * high + top + r) * wide + low + before * step;
                if (step == 1) {
                    NAME(pad_row)(before, outside ? 0 : n, residue, source, begin, end, row);
                    continue;
                }
                int64_t stop = outside ? 0 : before + n, u = 0;
                for (; u < least(before, stop); u++) row[u] = 0;
                for (; u < stop; u++) row[u] = source[(u - before) * step];
                for (; u < residue; u++) row[u] = 0;
            }
        }
    }
}
