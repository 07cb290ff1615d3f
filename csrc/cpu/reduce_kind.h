/* reduce_kind: the loops of one kind of state over one dtype; included once per kind by reduce_loops.h. The formulas
 * are parameters that are functions known at compile time, so that they are inlined into the loops.
 *
 * A state is a struct of FIELDS, values and indices (of the largest element, for example), and comes in three forms:
 *
 *   PART    one of them, while a loop runs: indices count from the last fold, in an integer as narrow as the elements
 *   LANES   many, field by field:   value[ 0 1 2 ... ]  index[ 0 1 2 ... ]   so that a field of all lanes is a vector
 *   STATE   one of them between runs, its indices 64 bits wide
 *
 *   x  [ run ] --step--> LANES --join, halves on halves--> PART --widen--> STATE --merge--> the STATE of all runs
 *
 * VALUE, INDEX and COUNT define what each field becomes in a form. */

#define OF_KIND(name) OF_DTYPE(NR_JOIN2(name, KIND))
#define PART OF_KIND(part)
#define STATE OF_KIND(state)
#define LANES OF_KIND(lanes)
#define FIELDS NR_JOIN2(NR_FIELDS, KIND)
/* Lanes of a run of NR_REDUCE_ENOUGH elements: enough independent additions to hide their latency, and few enough for
 * the registers. The lanes of ROWS runs are folded together. */
#define RUN_LANES (sizeof(PART) <= 4 ? 64 : 32)
#define ROWS 16
/* Columns that fit into lanes, whose states are no larger than a tile. */
#define WIDTH ((int64_t)(NR_REDUCE_BYTES / (sizeof(STATE) > 4 * sizeof(ACC) ? sizeof(STATE) : 4 * sizeof(ACC))))

/* PART: a state in lanes, where indices are narrow and count from the last fold. */
#define VALUE(type, name) type name;
#define INDEX(name) POSITION name;
#define COUNT(name)
typedef struct PART {
    FIELDS(VALUE, INDEX, COUNT)
} PART;
#undef INDEX
#define INDEX(name) int64_t name;
#undef COUNT
#define COUNT INDEX
typedef struct STATE {
    FIELDS(VALUE, INDEX, COUNT)
} STATE;
#undef VALUE
#undef INDEX
enum { OF_KIND(width) = (int)WIDTH };
#define VALUE(type, name) type name[WIDTH];
#define INDEX(name) POSITION name[WIDTH];
#undef COUNT
#define COUNT(name)
typedef struct LANES {
    FIELDS(VALUE, INDEX, COUNT)
} LANES;
#undef VALUE
#undef INDEX
_Static_assert(sizeof(LANES) <= NR_REDUCE_BYTES && sizeof(STATE) * WIDTH <= NR_REDUCE_BYTES, "a tile is too large");

typedef void (*OF_KIND(begin))(PART *s, T x);
typedef void (*OF_KIND(step))(PART *s, T x, POSITION i);
typedef void (*OF_KIND(join))(PART *s, PART t);
typedef void (*OF_KIND(merge))(STATE *s, STATE t);

static inline PART OF_KIND(get)(const LANES *lanes, int64_t k) {
    PART s;
#define VALUE(type, name) s.name = lanes->name[k];
#define INDEX(name) s.name = lanes->name[k];
    FIELDS(VALUE, INDEX, COUNT)
#undef VALUE
#undef INDEX
    return s;
}

static inline void OF_KIND(put)(LANES *lanes, int64_t k, PART s) {
#define VALUE(type, name) lanes->name[k] = s.name;
#define INDEX(name) lanes->name[k] = s.name;
    FIELDS(VALUE, INDEX, COUNT)
#undef VALUE
#undef INDEX
}

/* The state of n elements, the first of them at `position`. */
static inline STATE OF_KIND(widen)(PART part, int64_t position, int64_t n) {
    STATE s;
    (void)position, (void)n;
#define VALUE(type, name) s.name = part.name;
#define INDEX(name) s.name = part.name < 0 ? -1 : part.name + position;
#undef COUNT
#define COUNT(name) s.name = n;
    FIELDS(VALUE, INDEX, COUNT)
#undef VALUE
#undef INDEX
    return s;
}

/* Dense rows, four at a time, so that lanes are loaded and stored once for four steps; returns the number of rows
 * done. */
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

/* x: the first row. */
INLINE void OF_KIND(clear_lanes)(LANES *restrict lanes, const char *x, int64_t width, int64_t stride,
                                 OF_KIND(begin) begin) {
    for (int64_t k = 0; k < width; k++) {
        PART s;
        begin(&s, (T) * (const S *)(x + k * stride));
        OF_KIND(put)(lanes, k, s);
    }
}

/* A run of n >= count neighbours into eight lanes from `base` on; count is a constant.
 *
 *   x      0 1 2 ... 63 | 64 65 ... 127 | ... |  32  |  16  |  8   | up to 7 left
 *   lanes  0 1 2 ... 63 |  0  1 ...  63 | ... | 0-31 | 0-15 | 0-7  | 0-7
 *
 * To halve the number of lanes, the upper half is joined to the lower one, in registers. The last eight elements are
 * read as one vector, in which those already taken are masked, so that no loop for the remainder is needed. */
#define STEP(to, at, k, from, keep)                                          \
    {                                                                        \
        PART s = OF_KIND(get)(&work, k), old = s;                            \
        step(&s, (T)((const S *)x)[(from) + (k)], (POSITION)((from) + (k))); \
        OF_KIND(put)(to, at, (keep) ? s : old);                              \
    }
#define HALF(half)                                                                            \
    if ((half) < count) {                                                                     \
        IN_MEMORY(work);                                                                      \
        ONCE for (int64_t k = 0; k < (half); k++) {                                           \
            PART s = OF_KIND(get)(&work, k);                                                  \
            join(&s, OF_KIND(get)(&work, k + (half)));                                        \
            OF_KIND(put)(&work, k, s);                                                        \
        }                                                                                     \
        if (n - i >= (half)) {                                                                \
            ONCE for (int64_t k = 0; k < (half); k++) STEP(&work, k, k, i, true) i += (half); \
        }                                                                                     \
    }
INLINE void OF_KIND(run_lanes)(LANES *restrict lanes, int64_t base, int64_t count, const char *x, int64_t n,
                               OF_KIND(begin) begin, OF_KIND(step) step, OF_KIND(join) join) {
    LANES work;
    PART none;
    begin(&none, (T)((const S *)x)[0]);
    for (int64_t k = 0; k < count; k++) OF_KIND(put)(&work, k, none);
    int64_t i = 0;
    if (count == 8) {
        for (; i + 8 <= n; i += 8) {
            VECTORS_FIRST for (int64_t k = 0; k < 8; k++) STEP(&work, k, k, i, true)
        }
    } else {
        for (; i + count <= n; i += count)
            for (int64_t k = 0; k < count; k++) STEP(&work, k, k, i, true)
    }
    if (i == n && count > 8) {
        IN_MEMORY(work);
        ONCE for (int64_t k = 0; k < 8; k++) {
            PART a = OF_KIND(get)(&work, k), b = OF_KIND(get)(&work, k + 8);
            PART c = OF_KIND(get)(&work, k + 16), d = OF_KIND(get)(&work, k + 24);
            if (count == 64) {
                join(&a, OF_KIND(get)(&work, k + 32));
                join(&b, OF_KIND(get)(&work, k + 40));
                join(&c, OF_KIND(get)(&work, k + 48));
                join(&d, OF_KIND(get)(&work, k + 56));
            }
            join(&a, c);
            join(&b, d);
            join(&a, b);
            OF_KIND(put)(lanes, base + k, a);
        }
        return;
    }
    HALF(32)
    HALF(16)
    HALF(8)
    const MASK seen = (MASK)(i - (n - 8));
    VECTORS_FIRST for (int64_t k = 0; k < 8; k++) STEP(lanes, base + k, k, n - 8, (MASK)k >= seen)
}
#undef STEP
#undef HALF

/* Joins the eight lanes of each row. */
INLINE void OF_KIND(join_rows)(LANES *restrict out, const LANES *restrict lanes, int64_t rows, OF_KIND(join) join) {
    for (int64_t r = 0; r < rows; r++) {
        PART s[8];
        for (int k = 0; k < 8; k++) s[k] = OF_KIND(get)(lanes, 8 * r + k);
        for (int k = 0; k < 4; k++) join(&s[k], s[k + 4]);
        for (int k = 0; k < 2; k++) join(&s[k], s[k + 2]);
        join(&s[0], s[1]);
        OF_KIND(put)(out, r, s[0]);
    }
}

/* nr_reduce_ops.run. */
INLINE void OF_KIND(run)(STATE *states, const char *x, int64_t n, int64_t stride, int64_t position, int64_t outputs,
                         int64_t x_step, OF_KIND(begin) begin, OF_KIND(step) step, OF_KIND(join) join,
                         OF_KIND(merge) merge) {
    const bool dense = stride == sizeof(S);
    if (n < (dense ? 8 : NR_REDUCE_ENOUGH)) {
        for (int64_t o = 0; o < outputs; o++, x += x_step) {
            PART s;
            begin(&s, n > 0 ? (T) * (const S *)x : (T)0);
            for (int64_t k = 0; k < n; k++) step(&s, (T) * (const S *)(x + k * stride), (POSITION)k);
            merge(&states[o], OF_KIND(widen)(s, position, n));
        }
        return;
    }
    LANES lanes, joined;
    for (int64_t first = 0; first < outputs; first += ROWS) {
        const int64_t rows = outputs - first < ROWS ? outputs - first : ROWS;
        for (int64_t r = 0; r < rows; r++, x += x_step) {
            if (n < NR_REDUCE_ENOUGH)
                OF_KIND(run_lanes)(&lanes, 8 * r, 8, x, n, begin, step, join);
            else
                OF_KIND(run_lanes)(&lanes, 8 * r, RUN_LANES, x, n, begin, step, join);
        }
        IN_MEMORY(lanes);
        OF_KIND(join_rows)(&joined, &lanes, rows, join);
        for (int64_t r = 0; r < rows; r++)
            merge(&states[first + r], OF_KIND(widen)(OF_KIND(get)(&joined, r), position, n));
    }
}

INLINE void OF_KIND(fold)(STATE *restrict states, const LANES *restrict lanes, int64_t width, int64_t rows,
                          int64_t position, OF_KIND(merge) merge) {
    for (int64_t k = 0; k < width; k++) merge(&states[k], OF_KIND(widen)(OF_KIND(get)(lanes, k), position, rows));
}

INLINE void OF_KIND(clear)(STATE *states, int64_t n, OF_KIND(begin) begin) {
    PART s;
    begin(&s, 0);
    for (int64_t k = 0; k < n; k++) states[k] = OF_KIND(widen)(s, 0, 0);
}

INLINE void OF_KIND(merge_all)(STATE *restrict states, const STATE *restrict others, int64_t n, OF_KIND(merge) merge) {
    for (int64_t k = 0; k < n; k++) {
        NO_VECTORS;
        merge(&states[k], others[k]);
    }
}

#undef COUNT
#undef OF_KIND
#undef PART
#undef STATE
#undef LANES
#undef FIELDS
#undef RUN_LANES
#undef ROWS
#undef WIDTH
#undef KIND
