/* index_loops: a gather or a scatter over one row of the nest, in its order. index_moves.h includes it for each size of
 * elements that are only moved, index_kinds.h for each dtype and combination. NAME is the name to define, S the type of
 * an element, and VISIT(place, given) what is done with one of the indexed tensor and one of the dense operand: unless
 * it is defined, the first becomes COMBINE of both, computed in T. VISIT_ROW: of n neighbours each. IS_MOVE: an element
 * takes so little that a loop for contiguous ones pays. */
#ifndef VISIT
#define IS_MOVE false
#define VISIT(place, given) (*(place) = (S)(T)COMBINE((T) * (place), (T) * (given)))
#define VISIT_ROW(places, given) \
    for (int64_t i = 0; i < n; i++) VISIT(&(places)[i], &(given)[i])
#endif
static void NAME(const nr_index_plan *plan, char *dense, const char *index, int64_t index_step, char *target,
                 int64_t n) {
    const int64_t dense_step = plan->nest.stride[0][0];
    const int64_t target_step = plan->nest.stride[2][0], axis_step = plan->axis_stride;
    const int64_t *at = (const int64_t *)index;
    if (index_step == 0) {
        target += *at * axis_step;
        S *restrict places = (S *)target, *restrict given = (S *)dense;
        if (dense_step == sizeof(S) && target_step == sizeof(S))
            VISIT_ROW(places, given);
        else
            for (int64_t i = 0; i < n; i++) VISIT((S *)(target + i * target_step), (S *)(dense + i * dense_step));
        return;
    }
    if (index_step == sizeof(int64_t) && target_step == 0 && axis_step == sizeof(S)) { /* in one row */
        if (IS_MOVE && dense_step == sizeof(S))
            for (int64_t i = 0; i < n; i++) VISIT((S *)target + at[i], (S *)dense + i);
        else
            for (int64_t i = 0; i < n; i++) VISIT((S *)target + at[i], (S *)(dense + i * dense_step));
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t offset = *(const int64_t *)(index + i * index_step) * axis_step;
        VISIT((S *)(target + i * target_step + offset), (S *)(dense + i * dense_step));
    }
}
#undef NAME
#undef COMBINE
#undef VISIT
#undef VISIT_ROW
