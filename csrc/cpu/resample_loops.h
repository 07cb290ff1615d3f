/* resample_loops: an outer position, for a float type: a template of each_dtype.h. See resample_isa.c. */

/* The taps of a call. uses: scratch for counts of them, where the adjoint gathers. */
static void NAME(spread)(const job *j, int64_t *uses) {
    const nr_resample_plan *p = j->plan;
    INTEGER *at = j->at;
    T *weight = j->weight;
    const bool turns = j->gathers && j->kind == NR_RESAMPLE_ADJOINT;
    for (int64_t i = 0; i < j->taps * j->padded; i++) at[i] = -1, weight[i] = 0;
    if (turns) memset(uses, 0, (size_t)p->old * sizeof *uses);
    for (int64_t i = 0; i < p->size; i++)
        for (int64_t tap = 0; tap < p->taps; tap++) {
            const int64_t place = tap * p->size + i, from = ((const volatile int64_t *)p->index)[place]; /* once */
            if (from < 0 || from >= p->old || (turns && uses[from] == j->taps)) continue; /* another thread wrote it */
            const int64_t to = turns ? uses[from]++ * j->padded + from : tap * j->padded + i;
            at[to] = (INTEGER)(turns ? i : from);
            weight[to] = ((const T *)p->weight)[place];
        }
}

/* first: the sum begins with it, so that -0 stays -0. */
INLINE void NAME(add_row)(T *restrict to, const T *restrict from, T weight, int64_t n, bool first) {
    if (first)
        for (int64_t i = 0; i < n; i++) to[i] = from[i] * weight;
    else
        for (int64_t i = 0; i < n; i++) to[i] += from[i] * weight;
}

static void NAME(run)(const job *j, int64_t outer) {
    const nr_resample_plan *p = j->plan;
    const bool adjoint = j->kind == NR_RESAMPLE_ADJOINT;
    const INTEGER *at = j->at;
    const T *weight = j->weight;
    T *x = (T *)p->x + outer * p->old * p->inner, *y = (T *)p->y + outer * p->size * p->inner;
    if (j->gathers) {
        const T *from = adjoint ? y : x;
        for (int64_t first = 0; first < j->n; first += RUN) {
            T sum[RUN] = {0}, value[RUN];
            for (int64_t tap = 0; tap < j->taps; tap++) {
                GATHER(from, at + tap * j->padded + first, value);
                const T *factor = weight + tap * j->padded + first;
                if (tap == 0)
                    EACH sum[i] = value[i] * factor[i];
                else
                    EACH sum[i] += value[i] * factor[i];
            }
            memcpy((adjoint ? x : y) + first, sum, (size_t)least(RUN, j->n - first) * sizeof(T));
        }
        return;
    }
    if (adjoint) memset(x, 0, (size_t)(p->old * p->inner) * sizeof(T));
    for (int64_t i = 0; i < p->size; i++) {
        T *row = y + i * p->inner;
        bool first = true;
        for (int64_t tap = 0; tap < p->taps; tap++) {
            const int64_t from = at[tap * j->padded + i];
            const T factor = weight[tap * j->padded + i];
            if (from < 0) continue;
            if (adjoint && p->inner == 1)
                x[from] += *row * factor;
            else if (adjoint)
                NAME(add_row)(x + from * p->inner, row, factor, p->inner, false);
            else
                NAME(add_row)(row, x + from * p->inner, factor, p->inner, first);
            first = false;
        }
        if (first && !adjoint) memset(row, 0, (size_t)p->inner * sizeof(T));
    }
}
