/* sample_loops: a task of each kind of sampling, for a float type: a template of each_dtype.h. See
 * sample_isa.c. Loops over a run have a constant length, as vectors do: what is behind its end is computed
 * of coordinates of 0, not stored. */

typedef struct NAME(taps) {
    int count;
    INTEGER at[MOST_TAPS][RUN]; /* the element of a channel, or -1: outside */
    T weight[MOST_TAPS][RUN];
    T slope[3][MOST_TAPS][RUN]; /* of the weight, along the coordinate of each axis */
} NAME(taps);

/* Positions along an axis moved inside it, as the padding says, and their slopes: 0 where they do not move any more. */
static void NAME(move_inside)(const nr_sample_plan *p, int64_t size, T *place, T *slope) {
    const T end = (T)(size - 1), low = p->corners ? 0 : (T)-0.5, span = p->corners ? end : (T)size;
    if (p->padding == NORCH_SAMPLE_ZEROS) return;
    if (p->padding == NORCH_SAMPLE_REFLECTION && span > 0) EACH {
            const T from = place[i] - low, rest = from - FLOOR(from / (2 * span)) * (2 * span), over = rest - span;
            slope[i] = over < 0 ? slope[i] : over > 0 ? -slope[i] : 0;
            place[i] = low + span - (over < 0 ? -over : over);
        }
    else if (p->padding == NORCH_SAMPLE_REFLECTION)
        EACH place[i] = slope[i] = 0;
    EACH { /* NaN becomes 0 */
        const bool above = place[i] > 0, below = place[i] < end;
        slope[i] = above && below ? slope[i] : 0;
        place[i] = above ? (below ? place[i] : end) : 0;
    }
}

/* The taps along one axis, 1, 2 or 4, of n coordinates. */
static int NAME(along)(const nr_sample_plan *p, int64_t axis, const T *grid, int64_t n, INTEGER at[4][RUN],
                       T weight[4][RUN], T slope[4][RUN]) {
    const int64_t size = p->size[axis];
    const T whole = (T)size, a = (T)-0.75;
    const bool cubic = p->mode == NORCH_SAMPLE_BICUBIC;
    const int count = p->mode == NORCH_SAMPLE_NEAREST ? 1 : cubic ? 4 : 2;
    T place[RUN], moves[RUN], low[RUN], end[RUN], none[RUN] = {0}, coordinate[RUN] = {0};
    grid += p->axes - 1 - axis;
    for (int64_t i = 0; i < n; i++) coordinate[i] = grid[i * p->axes];
    EACH {
        const T c = coordinate[i] + 1;
        place[i] = p->corners ? c / 2 * (whole - 1) : (c * whole - 1) / 2;
        moves[i] = p->corners ? (whole - 1) / 2 : whole / 2;
    }
    if (!cubic) NAME(move_inside)(p, size, place, moves);
    EACH {
        const T t = place[i] - (low[i] = count == 1 ? RINT(place[i]) : FLOOR(place[i])), u = 1 - t;
        if (count == 1) {
            weight[0][i] = 1, slope[0][i] = 0;
        } else if (count == 2) {
            weight[0][i] = u, slope[0][i] = -moves[i];
            weight[1][i] = t, slope[1][i] = moves[i];
        } else {
            const T before = 1 + t, behind = 1 + u;
            weight[0][i] = ((a * before - 5 * a) * before + 8 * a) * before - 4 * a;
            weight[1][i] = ((a + 2) * t - (a + 3)) * t * t + 1;
            weight[2][i] = ((a + 2) * u - (a + 3)) * u * u + 1;
            weight[3][i] = ((a * behind - 5 * a) * behind + 8 * a) * behind - 4 * a;
            slope[0][i] = ((3 * a * before - 10 * a) * before + 8 * a) * moves[i];
            slope[1][i] = (3 * (a + 2) * t - 2 * (a + 3)) * t * moves[i];
            slope[2][i] = (3 * (a + 2) * u - 2 * (a + 3)) * u * -moves[i];
            slope[3][i] = ((3 * a * behind - 10 * a) * behind + 8 * a) * -moves[i];
        }
    }
    for (int k = 0; k < count; k++) {
        EACH end[i] = low[i] + (T)(k - cubic);
        if (cubic) NAME(move_inside)(p, size, end, none);
        EACH at[k][i] = (INTEGER)(end[i] >= 0 && end[i] < whole ? end[i] : -1);
    }
    return count;
}

/* The taps of n points: products of those along the axes. */
static void NAME(find_taps)(const nr_sample_plan *p, bool slopes, const T *grid, int64_t n, NAME(taps) * to) {
    INTEGER at[3][4][RUN];
    T weight[3][4][RUN], slope[3][4][RUN];
    int each = 1;
    to->count = 1;
    for (int axis = 0; axis < (int)p->axes; axis++)
        to->count *= each = NAME(along)(p, axis, grid, n, at[axis], weight[axis], slope[axis]);
    for (int tap = 0; tap < to->count; tap++) {
        int digit[3] = {tap / each, tap % each, 0};
        if (p->axes == 3) digit[0] = tap / (each * each), digit[1] = tap / each % each, digit[2] = tap % each;
        for (int axis = 0; axis < (int)p->axes; axis++) {
            const INTEGER *here = at[axis][digit[axis]], size = (INTEGER)p->size[axis];
            const T *factor = weight[axis][digit[axis]];
            EACH {
                const INTEGER before = axis ? to->at[tap][i] : 0;
                to->at[tap][i] = before < 0 || here[i] < 0 ? -1 : before * size + here[i];
                to->weight[tap][i] = axis ? to->weight[tap][i] * factor[i] : factor[i];
            }
            for (int of = 0; of < (int)p->axes && slopes; of++) {
                const T *part = of == axis ? slope[axis][digit[axis]] : factor;
                EACH to->slope[of][tap][i] = axis ? to->slope[of][tap][i] * part[i] : part[i];
            }
        }
    }
}

/* What a run of n points, from `first` on, is in each channel. */
static void NAME(forward)(const nr_sample_plan *p, const NAME(taps) * taps, const T *x, int64_t area, T *y, int64_t n) {
    for (int64_t c = 0; c < p->channels; c++, x += area, y += p->points) {
        T sum[RUN] = {0}, value[RUN];
        for (int tap = 0; tap < taps->count; tap++) {
            GATHER(x, taps->at[tap], value);
            EACH sum[i] += value[i] * taps->weight[tap][i];
        }
        memcpy(y, sum, (size_t)n * sizeof(T));
    }
}

/* The gradients of the coordinates of a run. */
static void NAME(of_grid)(const nr_sample_plan *p, const NAME(taps) * taps, const T *x, int64_t area, const T *y,
                          T *slope, int64_t n) {
    T total[3][RUN] = {{0}};
    for (int64_t c = 0; c < p->channels && p->mode != NORCH_SAMPLE_NEAREST; c++, x += area, y += p->points) {
        T sum[3][RUN] = {{0}}, value[RUN], g[RUN] = {0};
        memcpy(g, y, (size_t)n * sizeof(T));
        for (int tap = 0; tap < taps->count; tap++) {
            GATHER(x, taps->at[tap], value);
            for (int64_t axis = 0; axis < p->axes; axis++) EACH sum[axis][i] += value[i] * taps->slope[axis][tap][i];
        }
        for (int64_t axis = 0; axis < p->axes; axis++) EACH total[axis][i] += g[i] * sum[axis][i];
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t axis = 0; axis < p->axes; axis++) slope[i * p->axes + p->axes - 1 - axis] = total[axis][i];
}

/* Adds the gradient of a run to that of some channels of x. */
static void NAME(of_input)(const nr_sample_plan *p, const NAME(taps) * taps, T *x, int64_t area, const T *y, int64_t n,
                           int64_t channels) {
    for (int64_t c = 0; c < channels; c++, x += area, y += p->points)
        for (int tap = 0; tap < taps->count; tap++) {
            const INTEGER *at = taps->at[tap];
            for (int64_t i = 0; i < n; i++)
                if (at[i] >= 0) x[at[i]] += y[i] * taps->weight[tap][i];
        }
}

static void NAME(run)(const job *j, int64_t image, int64_t part) {
    const nr_sample_plan *p = j->plan;
    NAME(taps) taps;
    int64_t area = 1, first = part * TASK * RUN, last = least(first + TASK * RUN, p->points), channel = 0, channels = 0;
    for (int64_t axis = 0; axis < p->axes; axis++) area *= p->size[axis];
    if (j->kind == NR_SAMPLE_INPUT) {
        channel = part * CHANNELS, channels = least(CHANNELS, p->channels - channel);
        first = 0, last = p->points;
    }
    T *x = (T *)p->x + (image * p->channels + channel) * area, *y = (T *)p->y;
    y += (image * p->channels + channel) * p->points;
    if (j->kind == NR_SAMPLE_INPUT) memset(x, 0, (size_t)(channels * area) * sizeof(T));
    for (int64_t at = first; at < last; at += RUN) {
        const int64_t n = least(RUN, last - at), place = (image * p->points + at) * p->axes;
        NAME(find_taps)(p, j->kind == NR_SAMPLE_GRID, (const T *)p->grid + place, n, &taps);
        if (j->kind == NR_SAMPLE_FORWARD)
            NAME(forward)(p, &taps, x, area, y + at, n);
        else if (j->kind == NR_SAMPLE_GRID)
            NAME(of_grid)(p, &taps, x, area, y + at, (T *)p->slope + place, n);
        else
            NAME(of_input)(p, &taps, x, area, y + at, n, channels);
    }
}
