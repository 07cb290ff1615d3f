/* index_loops: a scatter that combines two elements by COMBINE, in the order of the nest. index_kinds.h includes it for
 * each dtype (S) and operation; NAME is the name to define. */
static void NAME(const nr_index_plan *plan, char *dense, const char *index, char *target, int64_t n) {
    const int64_t dense_step = plan->nest.stride[0][0], index_step = plan->nest.stride[1][0];
    const int64_t target_step = plan->nest.stride[2][0], axis_step = plan->axis_stride;
    if (index_step == 0) {
        target += *(const int64_t *)index * axis_step;
        if (dense_step == sizeof(S) && target_step == sizeof(S)) {
            S *restrict y = (S *)target;
            const S *restrict x = (const S *)dense;
            for (int64_t i = 0; i < n; i++) y[i] = (S)(T)COMBINE((T)y[i], (T)x[i]);
            return;
        }
        for (int64_t i = 0; i < n; i++) {
            S *y = (S *)(target + i * target_step);
            *y = (S)(T)COMBINE((T)*y, (T) * (const S *)(dense + i * dense_step));
        }
        return;
    }
    if (index_step == sizeof(int64_t) && target_step == 0 && axis_step == sizeof(S)) { /* into one row */
        const int64_t *at = (const int64_t *)index;
        for (int64_t i = 0; i < n; i++, dense += dense_step) {
            S *y = (S *)target + at[i];
            *y = (S)(T)COMBINE((T)*y, (T) * (const S *)dense);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        S *y = (S *)(target + i * target_step + *(const int64_t *)(index + i * index_step) * axis_step);
        *y = (S)(T)COMBINE((T)*y, (T) * (const S *)(dense + i * dense_step));
    }
}
#undef NAME
#undef COMBINE
