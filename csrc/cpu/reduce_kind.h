/* reduce_kind: the loops of one kind of state over one dtype; included once per kind by reduce_loops.h.
 * The row's formulas come as functions known at compile time, so that they melt into the loops. */

#define OF_KIND(name) NR_JOIN2(NR_JOIN2(name, KIND), DTYPE)
#define PART OF_KIND(part)
#define STATE OF_KIND(state)
#define LANES OF_KIND(lanes)
#define FIELDS NR_JOIN2(NR_FIELDS, KIND)

/* part: a state while it is in lanes, where places are narrow and count from the last fold. */
#define VALUE(type, name) type name;
#define PLACE(name) POSITION name;
typedef struct PART {
    FIELDS(VALUE, PLACE)
} PART;
#undef PLACE
#define PLACE(name) int64_t name;
typedef struct STATE {
    FIELDS(VALUE, PLACE)
} STATE;
#undef VALUE
#undef PLACE
#define VALUE(type, name) type name[WIDTH];
#define PLACE(name) POSITION name[WIDTH];
typedef struct LANES {
    FIELDS(VALUE, PLACE)
} LANES;
#undef VALUE
#undef PLACE
_Static_assert(sizeof(LANES) <= NR_REDUCE_BYTES && sizeof(STATE) * WIDTH <= NR_REDUCE_BYTES, "a tile is too large");

typedef void (*OF_KIND(begin))(PART *s);
typedef void (*OF_KIND(step))(PART *s, T x, POSITION i);
typedef void (*OF_KIND(join))(PART *s, PART t);
typedef void (*OF_KIND(merge))(STATE *s, STATE t);

static inline PART OF_KIND(get)(const LANES *lanes, int64_t k) {
    PART s;
#define VALUE(type, name) s.name = lanes->name[k];
#define PLACE(name) s.name = lanes->name[k];
    FIELDS(VALUE, PLACE)
#undef VALUE
#undef PLACE
    return s;
}

static inline void OF_KIND(put)(LANES *lanes, int64_t k, PART s) {
#define VALUE(type, name) lanes->name[k] = s.name;
#define PLACE(name) lanes->name[k] = s.name;
    FIELDS(VALUE, PLACE)
#undef VALUE
#undef PLACE
}

static inline STATE OF_KIND(widen)(PART part, int64_t position) {
    STATE s;
    (void)position;
#define VALUE(type, name) s.name = part.name;
#define PLACE(name) s.name = part.name < 0 ? -1 : part.name + position;
    FIELDS(VALUE, PLACE)
#undef VALUE
#undef PLACE
    return s;
}

/* Dense rows, four at a time, so that lanes travel to memory once in four steps; gives the rows done. */
INLINE int64_t OF_KIND(four_rows)(LANES *restrict lanes, const char *x, int64_t width, int64_t rows, int64_t row_stride,
                                  POSITION first, POSITION row_step, POSITION lane_step, OF_KIND(step) step) {
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4, x += 4 * row_stride, first += 4 * row_step) {
        const S *x0 = (const S *)x, *x1 = (const S *)(x + row_stride);
        const S *x2 = (const S *)(x + 2 * row_stride), *x3 = (const S *)(x + 3 * row_stride);
        for (int64_t k = 0; k < width; k++) {
            PART s = OF_KIND(get)(lanes, k);
            POSITION i = first + (POSITION)k * lane_step;
            step(&s, (T)x0[k], i);
            step(&s, (T)x1[k], i + row_step);
            step(&s, (T)x2[k], i + 2 * row_step);
            step(&s, (T)x3[k], i + 3 * row_step);
            OF_KIND(put)(lanes, k, s);
        }
    }
    return r;
}

/* Element (r, k) has the position first + r * row_step + k * lane_step. */
INLINE void OF_KIND(across)(LANES *restrict lanes, const char *x, int64_t width, int64_t stride, int64_t rows,
                            int64_t row_stride, POSITION first, POSITION row_step, POSITION lane_step,
                            OF_KIND(step) step) {
    int64_t r = 0;
    if (stride == sizeof(S)) {
        if (width == 32) /* a long run: known in advance, the loop unrolls */
            r = OF_KIND(four_rows)(lanes, x, 32, rows, row_stride, first, row_step, lane_step, step);
        else
            r = OF_KIND(four_rows)(lanes, x, width, rows, row_stride, first, row_step, lane_step, step);
        for (; r < rows; r++)
            for (int64_t k = 0; k < width; k++) {
                PART s = OF_KIND(get)(lanes, k);
                step(&s, (T)((const S *)(x + r * row_stride))[k],
                     first + (POSITION)r * row_step + (POSITION)k * lane_step);
                OF_KIND(put)(lanes, k, s);
            }
    }
    for (; r < rows; r++)
        for (int64_t k = 0; k < width; k++) {
            PART s = OF_KIND(get)(lanes, k);
            step(&s, (T) * (const S *)(x + r * row_stride + k * stride),
                 first + (POSITION)r * row_step + (POSITION)k * lane_step);
            OF_KIND(put)(lanes, k, s);
        }
}

INLINE void OF_KIND(clear_lanes)(LANES *lanes, int64_t width, OF_KIND(begin) begin) {
    PART s;
    begin(&s);
    for (int64_t k = 0; k < width; k++) OF_KIND(put)(lanes, k, s);
}

/* A run is cut into rows of 16 or 32 lanes, which are then joined pair by pair. */
INLINE void OF_KIND(run)(STATE *state, const char *x, int64_t n, int64_t stride, int64_t position,
                         nr_reduce_across across, OF_KIND(begin) begin, OF_KIND(step) step, OF_KIND(join) join,
                         OF_KIND(merge) merge) {
    PART s;
    if (n < 48) {
        begin(&s);
        for (int64_t k = 0; k < n; k++) step(&s, (T) * (const S *)(x + k * stride), (POSITION)k);
    } else {
        LANES lanes;
        int64_t width = n < 256 ? 16 : 32, rows = n / width;
        OF_KIND(clear_lanes)(&lanes, width, begin);
        across(&lanes, x, width, stride, rows, stride * width, 0, width, 1);
        if (n % width) across(&lanes, x + rows * width * stride, n % width, stride, 1, 0, rows * width, 0, 1);
        for (int64_t half = width / 2; half >= 8; half /= 2)
            for (int64_t k = 0; k < half; k++) {
                s = OF_KIND(get)(&lanes, k);
                join(&s, OF_KIND(get)(&lanes, k + half));
                OF_KIND(put)(&lanes, k, s);
            }
        PART last[8]; /* these fit into registers */
        for (int k = 0; k < 8; k++) last[k] = OF_KIND(get)(&lanes, k);
        for (int k = 0; k < 4; k++) join(&last[k], last[k + 4]);
        for (int k = 0; k < 2; k++) join(&last[k], last[k + 2]);
        join(&last[0], last[1]);
        s = last[0];
    }
    merge(state, OF_KIND(widen)(s, position));
}

INLINE void OF_KIND(fold)(STATE *restrict states, const LANES *restrict lanes, int64_t width, int64_t position,
                          OF_KIND(merge) merge) {
    for (int64_t k = 0; k < width; k++) merge(&states[k], OF_KIND(widen)(OF_KIND(get)(lanes, k), position));
}

#undef OF_KIND
#undef PART
#undef STATE
#undef LANES
#undef FIELDS
#undef KIND
