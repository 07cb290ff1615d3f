/* index_loops: a gather or a scatter over one row of the nest, in its order; false where an index is out of range. Each
 * index is read once, so that no other thread changes it between check and use. index_moves.h includes it for each size
 * of elements that are only moved, index_kinds.h for each dtype and combination. NAME is the name to define, S the type
 * of an element, and VISIT(place, value) what is done with one of the indexed tensor and one of the dense operand:
 * unless it is defined, the first becomes COMBINE of both, computed in T. VISIT_ROW: of n neighbours each. AT_ONCE:
 * four indices are compared at once, which moves gain by. */
#ifndef VISIT
#define VISIT(place, value) (*(place) = (S)(T)COMBINE((T) * (place), (T) * (value)))
#define VISIT_ROW(places, value) \
    for (int64_t i = 0; i < n; i++) VISIT(&(places)[i], &(value)[i])
#endif
static bool NAME(const nr_index_plan *plan, char *dense, const char *index, int64_t index_step, char *target,
                 int64_t n) {
    const int64_t dense_step = plan->nest.stride[0][0];
    const int64_t target_step = plan->nest.stride[2][0], axis_step = plan->axis_stride;
    const uint64_t below = plan->is_offset ? UINT64_MAX : (uint64_t)plan->axis_size;
    const volatile int64_t *from = (const volatile int64_t *)index;
    if (index_step == 0) {
        const int64_t at = *from;
        if ((uint64_t)at >= below) return false;
        target += at * axis_step;
        S *restrict places = (S *)target, *restrict value = (S *)dense;
        if (dense_step == sizeof(S) && target_step == sizeof(S))
            VISIT_ROW(places, value);
        else
            for (int64_t i = 0; i < n; i++) VISIT((S *)(target + i * target_step), (S *)(dense + i * dense_step));
        return true;
    }
    if (index_step == sizeof(int64_t) && target_step == 0 && axis_step == sizeof(S)) { /* in one row */
        int64_t i = 0;
#ifdef AT_ONCE
        for (S *value = (S *)dense; dense_step == sizeof(S) && i + 4 <= n; i += 4) { /* one comparison for four */
            const int64_t a = from[i], b = from[i + 1], c = from[i + 2], d = from[i + 3];
            const bool lost =
                ((uint64_t)a >= below) | ((uint64_t)b >= below) | ((uint64_t)c >= below) | ((uint64_t)d >= below);
            if (__builtin_expect(lost, 0)) return false;
            VISIT((S *)target + a, value + i);
            VISIT((S *)target + b, value + i + 1);
            VISIT((S *)target + c, value + i + 2);
            VISIT((S *)target + d, value + i + 3);
        }
#endif
        for (; i < n; i++) {
            const int64_t at = from[i];
            if (__builtin_expect((uint64_t)at >= below, 0)) return false;
            VISIT((S *)target + at, (S *)(dense + i * dense_step));
        }
        return true;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = *(const volatile int64_t *)(index + i * index_step);
        if (__builtin_expect((uint64_t)at >= below, 0)) return false;
        VISIT((S *)(target + i * target_step + at * axis_step), (S *)(dense + i * dense_step));
    }
    return true;
}
#undef NAME
#undef COMBINE
#undef VISIT
#undef VISIT_ROW
