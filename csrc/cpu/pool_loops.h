/* pool_loops: one plane of each kind of pooling, for a float type: a template of each_dtype.h.
 *
 *   x  0 1 2 3 4 5 ...     tap (0, 0) of windows 0, 1, 2:  0 2 4     a tap is taken for a vector of windows (or, for
 *      p q r s t u ...     tap (0, 1):                     1 3 5     means, for RUN of them), and compared (max) or
 *      |w0 |w1 |w2 |       tap (1, 0):                     p r t     added (avg) lane by lane
 *
 * The loop over taps is outside, that over windows inside, but for wide windows that move far: lanes are columns of one
 * window there. No running sums or maxima are kept, as windows of networks are small. Shapes and strides: Dumoulin and
 * Visin (2016), see pool_isa.c. */

#define LANES ((int)(VECTOR / sizeof(T)))

typedef T NAME(vec) __attribute__((vector_size(VECTOR), may_alias));
typedef T NAME(vec_at) __attribute__((vector_size(VECTOR), may_alias, aligned(__alignof__(T))));
typedef INTEGER NAME(lanes) __attribute__((vector_size(VECTOR)));
typedef int32_t NAME(indices) __attribute__((vector_size(VECTOR / sizeof(T) * 4)));
typedef int32_t NAME(indices_at) __attribute__((vector_size(VECTOR / sizeof(T) * 4), may_alias, aligned(4)));

/* The sums of windows that move by `step`: strides of 1 and 2 are constants where this is inlined. */
INLINE void NAME(gather)(int64_t step, int64_t n, const T *restrict x, T *restrict sum) {
    for (int64_t i = 0; i < n; i++) sum[i] += x[i * step];
}

INLINE void NAME(scatter)(int64_t step, int64_t n, const T *restrict part, T *restrict x) {
    for (int64_t i = 0; i < n; i++) x[i * step] += part[i];
}

/* LANES elements `step` apart. */
INLINE NAME(vec) NAME(apart)(const T *from, int64_t step) {
    if (step == 1) return *(const NAME(vec_at) *)from;
    if (step == 2) return SHUFFLE(*(const NAME(vec_at) *)from, *(const NAME(vec_at) *)(from + LANES), NAME(EVEN));
    NAME(vec) v = {0}; /* gcc 12 warns at -O1 of lanes set one by one */
    for (int u = 0; u < LANES; u++) v[u] = from[u * step];
    return v;
}

INLINE NAME(vec) NAME(pick)(NAME(lanes) take, NAME(vec) a, NAME(vec) b) {
    return (NAME(vec))((take & (NAME(lanes))a) | (~take & (NAME(lanes))b));
}

/* Among equal elements the first is taken, among NaNs the last. */
INLINE void NAME(larger)(NAME(vec) v, NAME(lanes) position, NAME(vec) * best, NAME(lanes) * index) {
    NAME(lanes) take = (v > *best) | (v != v);
    *best = NAME(pick)(take, v, *best);
    *index = (take & position) | (~take & *index);
}

/* The windows of a vector, all of whose taps are in x and may be read; `first` is that of window 0. */
INLINE void NAME(max_inside)(const nr_pool_plan *p, int64_t step, const T *first, NAME(lanes) positions,
                             NAME(vec) * best, NAME(lanes) * index) {
    for (int64_t r = 0; r < p->kernel[0]; r++) {
        for (int64_t c = 0; c < p->kernel[1]; c++) {
            int64_t at = r * p->dilation[0] * p->size[1] + c * p->dilation[1];
            NAME(larger)(NAME(apart)(first + at, step), positions + (INTEGER)at, best, index);
        }
    }
}

/* The same for two by two taps: each row separately, so that neither waits for the other. */
INLINE void NAME(max_four)(const nr_pool_plan *p, const T *first, NAME(lanes) positions, NAME(vec) * best,
                           NAME(lanes) * index) {
    int64_t right = p->dilation[1], down = p->dilation[0] * p->size[1];
    NAME(vec) below = NAME(apart)(first + down, 2);
    NAME(lanes) there = positions + (INTEGER)down;
    *best = NAME(apart)(first, 2);
    *index = positions;
    NAME(larger)(NAME(apart)(first + right, 2), positions + (INTEGER)right, best, index);
    NAME(larger)(NAME(apart)(first + down + right, 2), positions + (INTEGER)(down + right), &below, &there);
    NAME(larger)(below, there, best, index);
}

/* n windows of row i from j on, of which some have taps outside x, or which are at an end of memory. */
static __attribute__((noinline)) void NAME(max_edge)(const job *s, int64_t plane, int64_t i, int64_t j, int64_t n, T *y,
                                                     int32_t *y_index) {
    const nr_pool_plan *p = s->plan;
    int64_t top = i * p->stride[0] - p->padding[0], step = p->stride[1], side = j * step - p->padding[1];
    int64_t begin = top * p->size[1] + side;
    int64_t above = top < 0 ? (p->dilation[0] - 1 - top) / p->dilation[0] * p->dilation[0] * p->size[1] : 0;
    const T *x = (const T *)p->x + plane * p->size[0] * p->size[1];
    NAME(vec) best = (NAME(vec)){0} - (T)INFINITY;
    NAME(lanes) positions, index;
    for (int64_t u = 0; u < LANES; u++) positions[u] = (INTEGER)(u * step);
    index = positions + (INTEGER)above; /* the first element that a window sees, if none is larger */
    for (int64_t u = 0; u < LANES && side + u * step < 0; u++)
        index[u] += (INTEGER)((p->dilation[1] - 1 - side - u * step) / p->dilation[1] * p->dilation[1]);
    for (int64_t r = 0; r < p->kernel[0]; r++) {
        int64_t row = top + r * p->dilation[0];
        if (row < 0 || row >= p->size[0]) continue;
        for (int64_t c = 0; c < p->kernel[1]; c++) {
            int64_t at = r * p->dilation[0] * p->size[1] + c * p->dilation[1];
            int64_t from = greatest(s->from[c] - j, 0), to = least(s->to[c] - j, LANES);
            NAME(vec) v = (NAME(vec)){0} - (T)INFINITY;
            for (int64_t u = from; u < to; u++) v[u] = x[begin + at + u * step];
            NAME(larger)(v, positions + (INTEGER)at, &best, &index);
        }
    }
    for (int64_t u = 0; u < n; u++) y[u] = best[u], y_index[u] = (int32_t)(begin + index[u]);
}

/* One window of LANES columns or more, all of whose taps are in x. */
static __attribute__((noinline)) void NAME(max_wide)(const nr_pool_plan *p, const T *x, int64_t begin, T *y,
                                                     int32_t *y_index) {
    NAME(vec) best = (NAME(vec)){0} - (T)INFINITY;
    NAME(lanes) columns, index;
    for (int u = 0; u < LANES; u++) columns[u] = u;
    index = columns;
    for (int64_t r = 0; r < p->kernel[0]; r++)
        for (int64_t c = 0; c < p->kernel[1]; c += LANES) { /* the last vector may overlap the one before it */
            int64_t at = r * p->dilation[0] * p->size[1] + least(c, p->kernel[1] - LANES);
            NAME(larger)(*(const NAME(vec_at) *)(x + begin + at), columns + (INTEGER)at, &best, &index);
        }
    T most = best[0];
    INTEGER place = index[0];
    for (int u = 1; u < LANES; u++) {
        bool nan = best[u] != best[u], later = index[u] > place;
        if (nan ? later || most == most : best[u] > most || (best[u] == most && !later))
            most = best[u], place = index[u];
    }
    *y = most;
    *y_index = (int32_t)(begin + place);
}

/* Whether max_wide() is for the windows of a plan. */
static bool NAME(are_wide)(const nr_pool_plan *p) {
    bool inside = p->stride[1] > 2 && p->kernel[1] >= LANES && p->dilation[1] == 1;
    for (int d = 0; d < 2; d++)
        inside &=
            p->padding[d] == 0 && (p->result[d] - 1) * p->stride[d] + (p->kernel[d] - 1) * p->dilation[d] < p->size[d];
    return inside;
}

/* One plane: LANES windows of a row at a time, or as many as there are. `after`: how many outputs of its chunk follow
 * the plane, for what runs over a row's end is overwritten by the next one. */
INLINE void NAME(max_plane)(const job *s, int64_t plane, bool twos, int64_t after) {
    const nr_pool_plan copied = *s->plan, *p = &copied; /* a local one, which no store can alter */
    int64_t n = p->result[1], count = p->result[0] * n, wide = p->size[1], area = p->size[0] * wide;
    int64_t step = twos ? 2 : p->stride[1], below = (p->kernel[0] - 1) * p->dilation[0];
    int64_t from = s->from[0], to = s->to[p->kernel[1] - 1]; /* windows of a row between which all taps are in x */
    int64_t readable = p->planes * area - below * wide - (p->kernel[1] - 1) * p->dilation[1] - LANES * step;
    T *y = (T *)p->y + plane * count;
    int32_t *y_index = p->index + plane * count;
    NAME(lanes) positions;
    for (int u = 0; u < LANES; u++) positions[u] = (INTEGER)(u * (int)step);
    for (int64_t i = 0; i < p->result[0]; i++) {
        int64_t top = i * p->stride[0] - p->padding[0];
        bool high = top >= 0 && top + below < p->size[0];
        for (int64_t j = 0; j < n; j += LANES) {
            int64_t begin = top * wide + j * step - p->padding[1], origin = plane * area + begin, at = i * n + j;
            if (!high || j < from || least(j + LANES, n) > to || origin > readable || count - at + after < LANES) {
                NAME(max_edge)(s, plane, i, j, least(LANES, n - j), y + at, y_index + at);
                continue;
            }
            const T *first = (const T *)p->x + origin;
            NAME(lanes) index = positions;
            NAME(vec) best = (NAME(vec)){0} - (T)INFINITY;
            if (twos)
                NAME(max_four)(p, first, positions, &best, &index);
            else if (step == 1)
                NAME(max_inside)(p, 1, first, positions, &best, &index);
            else if (step == 2)
                NAME(max_inside)(p, 2, first, positions, &best, &index);
            else
                NAME(max_inside)(p, step, first, positions, &best, &index);
            *(NAME(vec_at) *)(y + at) = best;
            *(NAME(indices_at) *)(y_index + at) = __builtin_convertvector(index, NAME(indices)) + (int32_t)begin;
        }
    }
}

INLINE T NAME(total)(const T *x, int64_t n) {
    NAME(vec) sums = {0};
    T sum = 0;
    for (; n >= LANES; n -= LANES, x += LANES) sums += *(const NAME(vec_at) *)x;
    for (int u = 0; u < LANES; u++) sum += sums[u];
    for (int64_t i = 0; i < n; i++) sum += x[i];
    return sum;
}

/* The factors of a row of windows, whose sums become means. */
static void NAME(factors)(const nr_pool_plan *p, int64_t i, int64_t j, int64_t n, T *factor) {
    const int64_t rows = counted(p, 0, i);
    int64_t columns = 0;
    T of_window = 0;
    for (int64_t u = 0; u < n; u++) {
        const int64_t seen = counted(p, 1, j + u);
        if (seen != columns) { /* neighbours mostly see as many */
            columns = seen;
            of_window = (T)(1.0 / (p->divisor != 0 ? p->divisor : (double)(rows * columns)));
        }
        factor[u] = of_window;
    }
}

/* backward false: y = the sums of x times the factors; true: x += y times the factors, everywhere in the window. */
static void NAME(avg_run)(const job *s, bool backward, T *x, int64_t i, int64_t j, int64_t n, T *y) {
    const nr_pool_plan *p = s->plan;
    T factor[RUN], sum[RUN];
    int64_t step = p->stride[1];
    NAME(factors)(p, i, j, n, factor);
    for (int64_t u = 0; u < n; u++) sum[u] = backward ? y[u] * factor[u] : (T)0;
    for (int64_t r = 0; r < p->kernel[0]; r++) {
        int64_t row = i * p->stride[0] - p->padding[0] + r;
        if (row < 0 || row >= p->size[0]) continue;
        for (int64_t c = 0; c < p->kernel[1]; c++) {
            int64_t from = greatest(s->from[c], j), to = least(s->to[c], j + n);
            if (from >= to) continue;
            T *at = x + row * p->size[1] + from * step - p->padding[1] + c, *part = sum + (from - j);
            if (backward && step == 1)
                NAME(scatter)(1, to - from, part, at);
            else if (backward)
                NAME(scatter)(step, to - from, part, at);
            else if (step == 1)
                NAME(gather)(1, to - from, at, part);
            else if (step == 2)
                NAME(gather)(2, to - from, at, part);
            else
                NAME(gather)(step, to - from, at, part);
        }
    }
    for (int64_t u = 0; u < n && !backward; u++) y[u] = sum[u] * factor[u];
}

/* The same for windows that move by more than two elements and span at most LINE columns: rows are added up first, in
 * their order in memory, or written last. */
static __attribute__((noinline)) void NAME(avg_rows)(const job *s, bool backward, T *x, int64_t i, int64_t j, int64_t n,
                                                     T *y) {
    const nr_pool_plan *p = s->plan;
    T factor[RUN], line[LINE];
    int64_t step = p->stride[1], wide = p->size[1], side = j * step - p->padding[1];
    int64_t left = greatest(side, 0), columns = least(side + (n - 1) * step + p->kernel[1], wide) - left;
    int64_t top = i * p->stride[0] - p->padding[0], first = greatest(top, 0);
    int64_t last = least(top + p->kernel[0], p->size[0]);
    NAME(factors)(p, i, j, n, factor);
    for (int64_t c = 0; c < columns; c++) line[c] = (T)0;
    for (int64_t row = first; row < last && !backward; row++) NAME(scatter)(1, columns, x + row * wide + left, line);
    for (int64_t u = 0; u < n; u++) {
        int64_t begin = side + u * step, from = greatest(begin, 0), to = least(begin + p->kernel[1], wide);
        if (backward)
            for (int64_t c = from - left; c < to - left; c++) line[c] += y[u] * factor[u];
        else
            y[u] = NAME(total)(line + (from - left), to - from) * factor[u];
    }
    for (int64_t row = first; row < last && backward; row++) NAME(scatter)(1, columns, line, x + row * wide + left);
}

/* The windows that divide a plane, one by one. */
static void NAME(divided)(const nr_pool_plan *p, nr_pool_kind kind, T *x, T *y, int32_t *index) {
    nr_pool_plan window = {.size = {p->size[0], p->size[1]}, .dilation = {1, 1}}; /* of one window, for max_wide() */
    int64_t wide = p->size[1];
    for (int64_t i = 0; i < p->result[0]; i++) {
        int64_t top = begin_of(p, 0, i), high = window.kernel[0] = end_of(p, 0, i) - top;
        for (int64_t j = 0; j < p->result[1]; j++, y++) {
            int64_t left = begin_of(p, 1, j), across = window.kernel[1] = end_of(p, 1, j) - left;
            int64_t first = top * wide + left, last = first + (high - 1) * wide;
            if (kind == NR_POOL_MAX && sizeof(T) == 4 && across >= LANES && high * across >= 4 * LANES) {
                NAME(max_wide)(&window, x, first, y, index++);
            } else if (kind == NR_POOL_MAX) {
                T best = -(T)INFINITY;
                int64_t place = first;
                for (int64_t row = first; row <= last; row += wide)
                    for (int64_t at = row; at < row + across; at++)
                        if (x[at] > best || x[at] != x[at]) best = x[at], place = at;
                *y = best, *index++ = (int32_t)place;
            } else if (kind == NR_POOL_AVG) {
                T sum = 0;
                for (int64_t row = first; row <= last; row += wide) sum += NAME(total)(x + row, across);
                *y = sum / (T)(high * across);
            } else {
                T share = *y / (T)(high * across);
                for (int64_t row = first; row <= last; row += wide)
                    for (int64_t at = row; at < row + across; at++) x[at] += share;
            }
        }
    }
}

static void NAME(run)(const job *s, nr_pool_kind kind, int64_t plane, int64_t last) {
    const nr_pool_plan *p = s->plan;
    int64_t area = p->size[0] * p->size[1], count = p->result[0] * p->result[1];
    T *x = (T *)p->x + plane * area, *y = (T *)p->y + plane * count;
    if (kind == NR_POOL_MAX_BACKWARD || kind == NR_POOL_AVG_BACKWARD) memset(x, 0, (size_t)area * sizeof(T));
    if (p->stride[1] == 0 && kind != NR_POOL_MAX_BACKWARD) {
        NAME(divided)(p, kind, x, y, kind == NR_POOL_MAX ? p->index + plane * count : NULL);
        return;
    }
    if (kind == NR_POOL_MAX && sizeof(T) == 4 && NAME(are_wide)(p)) { /* a second copy of it is seldom run */
        for (int64_t u = 0; u < count; u++) {
            int64_t begin = u / p->result[1] * p->stride[0] * p->size[1] + u % p->result[1] * p->stride[1];
            NAME(max_wide)(p, x, begin, y + u, p->index + plane * count + u);
        }
        return;
    }
    if (kind == NR_POOL_MAX) {
        if (p->kernel[0] == 2 && p->kernel[1] == 2 && p->stride[1] == 2)
            NAME(max_plane)(s, plane, true, (last - plane - 1) * count);
        else
            NAME(max_plane)(s, plane, false, (last - plane - 1) * count);
        return;
    }
    if (kind == NR_POOL_MAX_BACKWARD) {
        const int32_t *index = p->index + plane * count;
        for (int64_t u = 0; u < count; u++) {
            if ((uint64_t)index[u] < (uint64_t)area) x[index[u]] += y[u];
        }
        return;
    }
    const bool by_rows = p->stride[1] > 2 && p->kernel[1] <= LINE;
    const int64_t most = by_rows ? least(RUN, (LINE - p->kernel[1]) / p->stride[1] + 1) : RUN;
    for (int64_t i = 0; i < p->result[0]; i++) {
        for (int64_t j = 0; j < p->result[1]; j += most) {
            int64_t n = least(most, p->result[1] - j);
            T *to = y + i * p->result[1] + j;
            if (by_rows)
                NAME(avg_rows)(s, kind == NR_POOL_AVG_BACKWARD, x, i, j, n, to);
            else
                NAME(avg_run)(s, kind == NR_POOL_AVG_BACKWARD, x, i, j, n, to);
        }
    }
}
