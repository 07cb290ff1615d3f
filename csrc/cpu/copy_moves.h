/* copy_moves: copies without conversion, included by copy.c once per element size. WORD is an unsigned integer of that
 * size, SIZE its name. move and fill copy what copy.c calls rows, turn what it calls turned. */

/* n1 rows of n0 elements, any strides; backwards (flip) by vectors, as the step is known. */
static void NR_JOIN2(move, SIZE)(char *to, const int64_t *to_step, const char *from, const int64_t *from_step,
                                 int64_t n0, int64_t n1) {
    const int64_t size = sizeof(WORD);
    const bool backward = to_step[0] == size && from_step[0] == -size;
    for (int64_t j = 0; j < n1; j++, to += to_step[1], from += from_step[1]) {
        WORD *restrict y = (WORD *)to;
        const WORD *restrict x = (const WORD *)from;
        if (backward)
            for (int64_t i = 0; i < n0; i++) y[i] = x[-i];
        else
            for (int64_t i = 0; i < n0; i++) *(WORD *)(to + i * to_step[0]) = *(const WORD *)(from + i * from_step[0]);
    }
}

/* Dense rows, each of one value: long ones by memcpy of their beginning, which uses the widest stores. */
static void NR_JOIN2(fill, SIZE)(char *to, const int64_t *to_step, const char *from, const int64_t *from_step,
                                 int64_t n0, int64_t n1) {
    const size_t bytes = (size_t)n0 * sizeof(WORD), head = bytes < PATTERN ? bytes : PATTERN;
    for (int64_t j = 0; j < n1; j++, to += to_step[1], from += from_step[1]) {
        WORD *restrict y = (WORD *)to;
        const WORD value = *(const WORD *)from;
        if (value == 0 && bytes >= 64) {
            memset(to, 0, bytes);
            continue;
        }
        for (size_t i = 0; i < head / sizeof(WORD); i++) y[i] = value;
        for (size_t done = head; done < bytes; done += head)
            memcpy(to + done, to, bytes - done < head ? bytes - done : head);
    }
}

/* Dense rows out of dense columns: a square of one cache line a side is read whole and written whole, as
 * rows a power of two apart would else evict each other's lines between two visits. */
static void NR_JOIN2(turn, SIZE)(char *to, const int64_t *to_step, const char *from, const int64_t *from_step,
                                 int64_t n0, int64_t n1) {
    enum { SIDE = 64 / sizeof(WORD) };
    WORD square[SIDE][SIDE], turned[SIDE][SIDE];
    for (int64_t i0 = 0; i0 < n0; i0 += SIDE)
        for (int64_t j0 = 0; j0 < n1; j0 += SIDE) {
            const char *x = from + i0 * from_step[0] + j0 * from_step[1];
            char *y = to + i0 * to_step[0] + j0 * to_step[1];
            int64_t wide = n0 - i0 < SIDE ? n0 - i0 : SIDE, high = n1 - j0 < SIDE ? n1 - j0 : SIDE;
            if (wide < SIDE || high < SIDE) {
                NR_JOIN2(move, SIZE)(y, to_step, x, from_step, wide, high);
                continue;
            }
            for (int i = 0; i < SIDE; i++) memcpy(square[i], x + i * from_step[0], 64);
            NR_JOIN2(flip, SIZE)(&turned[0][0], &square[0][0]);
            for (int j = 0; j < SIDE; j++) memcpy(y + j * to_step[1], turned[j], 64);
        }
}
#undef WORD
#undef SIZE
