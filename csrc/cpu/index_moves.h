/* index_moves: gather (take) and scatter (put), included by index.c once per element size (WORD, SIZE). */
static void NR_JOIN2(take, SIZE)(const nr_index_plan *plan, char *dense, const char *index, char *target, int64_t n) {
    const int64_t dense_step = plan->nest.stride[0][0], index_step = plan->nest.stride[1][0];
    const int64_t target_step = plan->nest.stride[2][0], axis_step = plan->axis_stride;
    if (index_step == 0) {
        target += *(const int64_t *)index * axis_step;
        if (dense_step == sizeof(WORD) && target_step == sizeof(WORD)) {
            memcpy(dense, target, (size_t)n * sizeof(WORD));
            return;
        }
        for (int64_t i = 0; i < n; i++) *(WORD *)(dense + i * dense_step) = *(const WORD *)(target + i * target_step);
        return;
    }
    if (dense_step == sizeof(WORD) && index_step == sizeof(int64_t) && target_step == 0 && axis_step == sizeof(WORD)) {
        WORD *restrict to = (WORD *)dense; /* picked out of one row */
        for (int64_t i = 0; i < n; i++) to[i] = ((const WORD *)target)[((const int64_t *)index)[i]];
        return;
    }
    for (int64_t i = 0; i < n; i++)
        *(WORD *)(dense + i * dense_step) =
            *(const WORD *)(target + i * target_step + *(const int64_t *)(index + i * index_step) * axis_step);
}

static void NR_JOIN2(put, SIZE)(const nr_index_plan *plan, char *dense, const char *index, char *target, int64_t n) {
    const int64_t dense_step = plan->nest.stride[0][0], index_step = plan->nest.stride[1][0];
    const int64_t target_step = plan->nest.stride[2][0], axis_step = plan->axis_stride;
    if (index_step == 0) {
        target += *(const int64_t *)index * axis_step;
        if (dense_step == sizeof(WORD) && target_step == sizeof(WORD)) {
            memcpy(target, dense, (size_t)n * sizeof(WORD));
            return;
        }
        for (int64_t i = 0; i < n; i++) *(WORD *)(target + i * target_step) = *(const WORD *)(dense + i * dense_step);
        return;
    }
    if (index_step == sizeof(int64_t) && target_step == 0 && axis_step == sizeof(WORD)) { /* into one row */
        for (int64_t i = 0; i < n; i++, dense += dense_step)
            ((WORD *)target)[((const int64_t *)index)[i]] = *(const WORD *)dense;
        return;
    }
    for (int64_t i = 0; i < n; i++)
        *(WORD *)(target + i * target_step + *(const int64_t *)(index + i * index_step) * axis_step) =
            *(const WORD *)(dense + i * dense_step);
}
#undef WORD
#undef SIZE
