/* copy_loops: the loop that converts, included by copy_pairs.h once per pair of dtypes. FROM and TO are their names,
 * FROM_S, FROM_T and TO_S their storage and compute types. Picture: copy.c, rows. */
static void NR_JOIN2(FROM, TO)(char *to, const int64_t *to_step, const char *from, const int64_t *from_step, int64_t n0,
                               int64_t n1) {
    bool dense = to_step[0] == sizeof(TO_S) && from_step[0] == sizeof(FROM_S);
    for (int64_t j = 0; j < n1; j++, to += to_step[1], from += from_step[1]) {
        if (dense) {
            TO_S *restrict y = (TO_S *)to;
            const FROM_S *restrict x = (const FROM_S *)from;
            for (int64_t i = 0; i < n0; i++) y[i] = NR_JOIN2(NR_TO, TO)((FROM_T)x[i]);
        } else {
            for (int64_t i = 0; i < n0; i++)
                *(TO_S *)(to + i * to_step[0]) =
                    NR_JOIN2(NR_TO, TO)((FROM_T) * (const FROM_S *)(from + i * from_step[0]));
        }
    }
}
#undef TO
#undef TO_S
