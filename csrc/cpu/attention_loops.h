/* attention_loops: one head of attention for a float type: a template of each_dtype.h.
 *
 *   for some queries (R rows):           K^T packed: (E, S)      V (S, V)
 *     scores (R, S) = Q K^T              +----------------+      causal: tile by tile, the keys that no
 *     P = softmax(scale scores)      Q   |  scores -> P   |      query of the tile sees are left out
 *     out (R, V) = P V              (R)  +----------------+
 *   backward, from g:
 *     D = P * (g V^T);  dS = scale (D - P sum(D))  rows;  dQ = dS K;  dK += dS^T Q;  dV += P^T g
 *   dropout multiplies P by factors F of 0 or 1 / (1 - dropout) before it multiplies V, and g V^T by the same ones
 *
 * The tiles of gemm_tile.h compute the products. */

#include "gemm_pack.h"
#include "gemm_target.h"
#include "fold.h"

#define REACH (2 * PANEL_COLS) /* zeros after the keys that are seen, as a tile of keys may read this far */

static int64_t NAME(packed_size)(int64_t k, int64_t cols) { return ceil_div(cols, PANEL_COLS) * PANEL_COLS * k; }

/* B (k, cols) as panels: element (p, j) lies at b[p * row + j * col]. */
static void NAME(pack_panels)(T *to, int64_t k, int64_t cols, const T *b, int64_t row, int64_t col) {
    for (int64_t j = 0; j < cols; j += PANEL_COLS, to += k * PANEL_COLS)
        NAME(pack)(PANEL_COLS, to, k, b + j * col, col, row, (int)least(PANEL_COLS, cols - j));
}

/* B (k, cols), divided into panels of columns: rows are `row` elements apart, panels `panel`. */
typedef struct NAME(right) {
    const T *at;
    int64_t row, panel;
} NAME(right);

/* k rows, `row` apart, of `cols` contiguous elements, by which `rows` rows are multiplied. They are read in place if
 * vectors cross no cache lines and the rows are on few pages, and packed to `to` otherwise. */
static NAME(right) NAME(rows_of)(T *to, int64_t k, int64_t cols, const T *b, int64_t row, int64_t rows) {
    const int64_t apart = row * (int64_t)sizeof(T);
    const bool whole = cols % LANES == 0 && ((uintptr_t)b | (uintptr_t)apart) % VECTOR == 0;
    const int64_t far = rows > MANY_TILES * TILE_ROWS ? IN_PLACE_AGAIN : IN_PLACE;
    if (whole && apart % 1024 && k * apart <= far) return (NAME(right)){b, row, PANEL_COLS};
    NAME(pack_panels)(to, k, cols, b, row, 1);
    return (NAME(right)){to, PANEL_COLS, k * PANEL_COLS};
}

/* The transpose of k contiguous elements of each of `cols` rows, packed to `to`. */
static NAME(right) NAME(columns_of)(T *to, int64_t k, int64_t cols, const T *b, int64_t row) {
    NAME(pack_panels)(to, k, cols, b, 1, row);
    return (NAME(right)){to, PANEL_COLS, k * PANEL_COLS};
}

/* C (rows, cols) = A B, or += : B has k rows from `skip` on. rows is at most the height of a tile. */
static void NAME(times)(T *c, int64_t c_row, bool add, int64_t rows, int64_t cols, int64_t k, const T *a, int64_t a_row,
                        int64_t a_col, const NAME(right) * right, int64_t skip) {
    TARGET to = {.c = c, .c_row = c_row, .rows = (int)rows, .add = add};
    const T *b = right->at + skip * right->row;
    for (int64_t j = 0; j < cols; j += PANEL_COLS, b += right->panel, to.c += PANEL_COLS) {
        to.cols = (int)least(PANEL_COLS, cols - j);
        TILES_OF_ROWS[rows - 1][to.cols > LANES](k, a, a_row, a_col, b, right->row, &to);
    }
}

/* ---- rows of scores; n, a multiple of LANES, is their length; scores of keys that are not seen become 0 ---- */

typedef INTEGER NAME(index) __attribute__((vector_size(VECTOR)));

INLINE NAME(vec) NAME(either)(NAME(index) choose, NAME(vec) a, NAME(vec) b) {
    return (NAME(vec))((choose & (NAME(index))a) | (~choose & (NAME(index))b));
}

INLINE NAME(vec) NAME(larger)(NAME(vec) a, NAME(vec) b) { return NAME(either)(a > b, a, b); }

INLINE NAME(vec) NAME(exp_of)(NAME(vec) v) {
    T lane[LANES] __attribute__((aligned(VECTOR)));
    *(NAME(vec) *)lane = v;
    for (int l = 0; l < LANES; l++) lane[l] = exp_below(lane[l]);
    return *(NAME(vec) *)lane;
}

/* volatile keeps compilers from making this loop a call of memset, which is slower for a few vectors. */
INLINE void NAME(clear)(T *x, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES) *(volatile NAME(vec_at) *)(x + i) = (NAME(vec)){0};
}

static void NAME(clear_rows)(T *c, int64_t c_row, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; i++, c += c_row) {
        int64_t whole = cols / LANES * LANES;
        NAME(clear)(c, whole);
        if (cols > whole) NAME(store_part)(c + whole, (int)(cols - whole), (NAME(vec)){0});
    }
}

/* x = scale x for the first `seen` numbers, then -inf to the end of their last vector, and 0 from there to n. Returns
 * the largest. */
INLINE T NAME(scale_row)(T *x, int64_t seen, int64_t n, T scale) {
    NAME(vec) hidden = {0};
    NAME(index) lane;
    hidden -= (T)INFINITY;
    for (int l = 0; l < LANES; l++) lane[l] = l;
    NAME(vec) top = hidden;
    int64_t i = 0;
    for (; i < seen; i += LANES) {
        NAME(vec) here = NAME(either)(lane < (INTEGER)(seen - i), VEC(x + i) * scale, hidden);
        top = NAME(larger)(here, top);
        *(NAME(vec_at) *)(x + i) = here;
    }
    NAME(clear)(x + i, n - i);
    const NAME(vec) found = top; /* a copy, so that `top` can stay in a register */
    return NAME(largest_across)(&found);
}

/* x = exp(x - peak) in the vectors that contain the first `seen` numbers. Returns their sum. */
INLINE double NAME(exp_row)(T *x, int64_t seen, T peak) {
    double total = 0;
    for (int64_t i = 0; i < seen;) {
        NAME(vec) sum = {0};
        for (int64_t end = least(i + PIECE, seen); i < end; i += LANES) {
            NAME(vec) power = NAME(exp_of)(VEC(x + i) - peak);
            sum += power;
            *(NAME(vec_at) *)(x + i) = power;
        }
        const NAME(vec) found = sum;
        total += (double)NAME(sum_across)(&found);
    }
    return total;
}

/* In rows of a tile, n wide, x = softmax(scale x) over the first `seen` numbers, and 0 after them. Each next row has
 * `more` more numbers, but at most `most`. Each step runs for all rows before the next step, because the steps of one
 * row depend on each other. */
static void NAME(softmax_rows)(T *x, int64_t pitch, int64_t rows, int64_t seen, int64_t more, int64_t most, int64_t n,
                               T scale) {
    T peak[TILE_ROWS];
    double total[TILE_ROWS];
#define SEEN least(seen + more * r, most)
    for (int64_t r = 0; r < rows; r++) peak[r] = NAME(scale_row)(x + r * pitch, SEEN, n, scale);
    for (int64_t r = 0; r < rows; r++) total[r] = NAME(exp_row)(x + r * pitch, SEEN, peak[r]);
    for (int64_t r = 0; r < rows; r++) {
        const T part = (T)(1 / total[r]);
        T *row = x + r * pitch;
        for (int64_t i = 0; i < SEEN; i += LANES) *(NAME(vec_at) *)(row + i) = VEC(row + i) * part;
    }
#undef SEEN
}

/* d = scale p (d - sum(p d)) in rows of a tile: from the gradient of the probabilities p to that of the scores. */
static void NAME(softmax_rows_backward)(T *restrict d, const T *restrict p, int64_t pitch, int64_t rows, int64_t n,
                                        T scale) {
    T mean[TILE_ROWS];
    for (int64_t r = 0; r < rows; r++) {
        const T *dr = d + r * pitch, *pr = p + r * pitch;
        double total = 0;
        for (int64_t i = 0; i < n;) {
            NAME(vec) sum = {0};
            for (int64_t end = least(i + PIECE, n); i < end; i += LANES) sum += VEC(dr + i) * VEC(pr + i);
            const NAME(vec) found = sum;
            total += (double)NAME(sum_across)(&found);
        }
        mean[r] = (T)total;
    }
    for (int64_t r = 0; r < rows; r++, d += pitch, p += pitch)
        for (int64_t i = 0; i < n; i += LANES) *(NAME(vec_at) *)(d + i) = VEC(p + i) * (VEC(d + i) - mean[r]) * scale;
}

/* ---- one head -------------------------------------------------------------------------------------------------- */

typedef struct NAME(head) {
    const nr_attention_plan *p;
    const T *q, *k, *v, *g;
    T *out, *grad_q, *grad_k, *grad_v;
    NAME(right) keys, values;              /* K^T and V */
    NAME(right) values_across, keys_along; /* V^T and K */
    T *packed_keys, *packed_values, *packed_across, *packed_along, *packed_q, *packed_g;
    T *scores, *slopes; /* P and dS, `pitch` a row */
    T *factors;         /* of dropout, for the rows of a tile; NULL: none */
    int64_t pitch, item;
    const char *mask;
    bool *blind; /* for each of the present queries, whether the mask hides all keys from it */
} NAME(head);

/* The number of keys that the rows before `end` see, and the end of the tiles of these scores. */
static int64_t NAME(seen_by)(const nr_attention_plan *p, int64_t end) {
    return p->causal ? least(end, p->keys) : p->keys;
}

/* In a row of scores, x = scale x + mask, or -inf where a mask of bools is false. If the mask hides all keys from the
 * query, x = 0, so that later results are finite. Returns whether it does. */
static bool NAME(mask_row)(const NAME(head) * h, T *restrict x, int64_t query) {
    const nr_attention_plan *p = h->p;
    const int64_t first = query * p->row[NR_ATTENTION_MASK], keys = NAME(seen_by)(p, query + 1);
    const T scale = (T)p->scale;
    INTEGER seen = 0;
    if (p->mask_is_bool) {
        const unsigned char *restrict mask = (const unsigned char *)h->mask + first;
        for (int64_t i = 0; i < keys; i++) {
            const INTEGER one = mask[i];
            x[i] = one ? x[i] * scale : -(T)INFINITY;
            seen |= one;
        }
    } else {
        const T *restrict mask = (const T *)h->mask + first;
        for (int64_t i = 0; i < keys; i++) {
            x[i] = x[i] * scale + mask[i];
            seen |= mask[i] != -(T)INFINITY;
        }
    }
    for (int64_t i = 0; i < keys && !seen; i++) x[i] = 0;
    return !seen;
}

/* The factors of dropout for n keys of a query: 0, or 1 / (1 - dropout). Factors after the last key multiply zeros.
 * Whole vectors of blocks are drawn, which takes less time than single blocks. */
static void NAME(draw_factors)(const NAME(head) * h, int64_t query, int64_t n, T *restrict to) {
    const nr_attention_plan *p = h->p;
    const uint64_t seed = *(const uint64_t *)p->seed, row = (uint64_t)(h->item * p->queries + query);
    const uint64_t first = row * (uint64_t)ceil_div(p->keys, 4);
    const uint32_t dropped = dropped_of(p);
    const T kept = p->dropout < 1 ? (T)(1 / (1 - p->dropout)) : (T)0;
    for (int64_t at = 0; at < n; at += 4 * DRAWN) {
        uint32_t words[4 * DRAWN];
        const int64_t count = least(4 * DRAWN, n - at);
        philox(seed, first + (uint64_t)at / 4, ceil_div(count, 4 * PHILOX_SIDE) * PHILOX_SIDE, words);
        for (int64_t i = 0; i < count; i++) to[at + i] = words[i] >> 8 < dropped ? (T)0 : kept;
    }
}

/* x = x * factors in `rows` rows of a tile, n wide. */
static void NAME(drop_rows)(const NAME(head) * h, T *restrict x, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; r++) {
        const T *restrict factor = h->factors + r * h->pitch;
        for (int64_t i = 0; i < n; i++) x[r * h->pitch + i] *= factor[i];
    }
}

/* P of `rows` queries from `first` on, followed by REACH zeros. */
static void NAME(probabilities)(const NAME(head) * h, int64_t first, int64_t rows) {
    const nr_attention_plan *p = h->p;
    int64_t tiles = ceil_div(rows, TILE_ROWS), row = 0;
    for (int64_t t = 0; t < tiles; t++) {
        int64_t count = rows / tiles + (t < rows % tiles), seen = NAME(seen_by)(p, first + row + count);
        int64_t width = ceil_div(seen, LANES) * LANES, zeros = least(h->pitch, width + REACH) - width;
        T *scores = h->scores + row * h->pitch;
        NAME(times)(scores, h->pitch, false, count, width, p->width, h->q + (first + row) * p->row[NR_ATTENTION_Q],
                    p->row[NR_ATTENTION_Q], 1, &h->keys, 0);
        for (int64_t r = 0; r < count && h->mask; r++)
            h->blind[row + r] = NAME(mask_row)(h, scores + r * h->pitch, first + row + r);
        NAME(softmax_rows)(scores, h->pitch, count, NAME(seen_by)(p, first + row + 1), p->causal, p->keys,
                           width + zeros, h->mask ? 1 : (T)p->scale);
        row += count;
    }
}

static void NAME(forward)(const NAME(head) * h, int64_t first, int64_t rows) {
    const nr_attention_plan *p = h->p;
    NAME(probabilities)(h, first, rows);
    for (int64_t i = 0; i < rows; i += TILE_ROWS) {
        int64_t count = least(TILE_ROWS, rows - i), seen = NAME(seen_by)(p, first + i + count);
        if (h->factors) {
            const int64_t width = ceil_div(seen, LANES) * LANES;
            for (int64_t r = 0; r < count; r++) NAME(draw_factors)(h, first + i + r, width, h->factors + r * h->pitch);
            NAME(drop_rows)(h, h->scores + i * h->pitch, count, width);
        }
        NAME(times)(h->out + (first + i) * p->row[NR_ATTENTION_OUT], p->row[NR_ATTENTION_OUT], false, count,
                    p->value_width, seen, h->scores + i * h->pitch, h->pitch, 1, &h->values, 0);
        for (int64_t r = i; r < i + count && h->mask; r++)
            if (h->blind[r]) NAME(clear_rows)(h->out + (first + r) * p->row[NR_ATTENTION_OUT], 0, 1, p->value_width);
    }
}

static void NAME(backward)(const NAME(head) * h, int64_t first, int64_t rows) {
    const nr_attention_plan *p = h->p;
    int64_t seen = NAME(seen_by)(p, first + rows);
    NAME(probabilities)(h, first, rows);
    const int64_t q_row = p->row[NR_ATTENTION_Q], g_row = p->row[NR_ATTENTION_G];
    const NAME(right) right_q = NAME(rows_of)(h->packed_q, rows, p->width, h->q + first * q_row, q_row, seen);
    const NAME(right) right_g = NAME(rows_of)(h->packed_g, rows, p->value_width, h->g + first * g_row, g_row, seen);
    for (int64_t i = 0; i < rows; i += TILE_ROWS) {
        int64_t count = least(TILE_ROWS, rows - i), end = NAME(seen_by)(p, first + i + count);
        int64_t width = ceil_div(end, LANES) * LANES, zeros = least(h->pitch, width + REACH) - width;
        T *slopes = h->slopes + i * h->pitch;
        T *scores = h->scores + i * h->pitch;
        NAME(times)(slopes, h->pitch, false, count, width, p->value_width, h->g + (first + i) * p->row[NR_ATTENTION_G],
                    p->row[NR_ATTENTION_G], 1, &h->values_across, 0);
        if (h->factors) {
            for (int64_t r = 0; r < count; r++) NAME(draw_factors)(h, first + i + r, width, h->factors + r * h->pitch);
            NAME(drop_rows)(h, slopes, count, width);
        }
        NAME(softmax_rows_backward)(slopes, scores, h->pitch, count, width, (T)p->scale);
        if (h->factors) NAME(drop_rows)(h, scores, count, width);
        for (int64_t r = 0; r < count && h->mask; r++) {
            if (!h->blind[i + r]) continue;
            NAME(clear)(slopes + r * h->pitch, width);
            NAME(clear)(scores + r * h->pitch, width);
        }
        for (int64_t r = 0; r < count; r++) NAME(clear)(slopes + r * h->pitch + width, zeros);
        NAME(times)(h->grad_q + (first + i) * p->row[NR_ATTENTION_GRAD_Q], p->row[NR_ATTENTION_GRAD_Q], false, count,
                    p->width, end, slopes, h->pitch, 1, &h->keys_along, 0);
    }
    for (int64_t j = 0; j < seen; j += TILE_ROWS) {
        int64_t count = least(TILE_ROWS, seen - j),
                blind = p->causal && j > first ? j - first : 0; /* see nothing of it */
        const T *slopes = h->slopes + blind * h->pitch + j, *scores = h->scores + blind * h->pitch + j;
        NAME(times)(h->grad_k + j * p->row[NR_ATTENTION_GRAD_K], p->row[NR_ATTENTION_GRAD_K], true, count, p->width,
                    rows - blind, slopes, 1, h->pitch, &right_q, blind);
        NAME(times)(h->grad_v + j * p->row[NR_ATTENTION_GRAD_V], p->row[NR_ATTENTION_GRAD_V], true, count,
                    p->value_width, rows - blind, scores, 1, h->pitch, &right_g, blind);
    }
}

/* ---- tasks ------------------------------------------------------------------------------------------------------ */

/* Places the buffers of a head in scratch memory, or counts their elements if `from` is NULL. */
static int64_t NAME(lay_out)(NAME(head) * h, const job *s, bool is_backward, T *from) {
    const nr_attention_plan *p = s->plan;
    int64_t used = 0;
#define BUFFER(name, size)                                                           \
    do {                                                                             \
        if (from) h->name = from + used;                                             \
        used += ceil_div(size, 64 / (int64_t)sizeof(T)) * (64 / (int64_t)sizeof(T)); \
    } while (0)
    BUFFER(scores, s->queries * s->pitch);
    BUFFER(packed_keys, NAME(packed_size)(p->width, p->keys));
    if (p->seed) BUFFER(factors, TILE_ROWS * s->pitch);
    if (is_backward) {
        BUFFER(slopes, s->queries * s->pitch);
        BUFFER(packed_across, NAME(packed_size)(p->value_width, p->keys));
        BUFFER(packed_along, NAME(packed_size)(p->keys, p->width));
        BUFFER(packed_q, NAME(packed_size)(s->queries, p->width));
        BUFFER(packed_g, NAME(packed_size)(s->queries, p->value_width));
    } else {
        BUFFER(packed_values, NAME(packed_size)(p->keys, p->value_width));
    }
#undef BUFFER
    return used;
}

/* A task: an item of the batch, or (forward) a part of its queries. */
static void NAME(run_task)(const job *s, int64_t task, NAME(head) * h, bool is_backward) {
    const nr_attention_plan *p = s->plan;
    int64_t item = task / s->parts, blocks = ceil_div(p->queries, s->queries), part = task % s->parts;
    int64_t begin = part * blocks / s->parts * s->queries, end = (part + 1) * blocks / s->parts * s->queries;
    if (p->mask)
        h->mask = (const char *)p->mask +
                  item_offset(p, NR_ATTENTION_MASK, item) * (p->mask_is_bool ? 1 : (int64_t)sizeof(T));
    h->item = item;
    h->q = (const T *)p->q + item_offset(p, NR_ATTENTION_Q, item);
    h->k = (const T *)p->k + item_offset(p, NR_ATTENTION_K, item);
    h->v = (const T *)p->v + item_offset(p, NR_ATTENTION_V, item);
    const int64_t k_row = p->row[NR_ATTENTION_K], v_row = p->row[NR_ATTENTION_V];
    h->keys = NAME(columns_of)(h->packed_keys, p->width, p->keys, h->k, k_row);
    if (is_backward) {
        h->g = (const T *)p->g + item_offset(p, NR_ATTENTION_G, item);
        h->grad_q = (T *)p->grad_q + item_offset(p, NR_ATTENTION_GRAD_Q, item);
        h->grad_k = (T *)p->grad_k + item_offset(p, NR_ATTENTION_GRAD_K, item);
        h->grad_v = (T *)p->grad_v + item_offset(p, NR_ATTENTION_GRAD_V, item);
        NAME(clear_rows)(h->grad_k, p->row[NR_ATTENTION_GRAD_K], p->keys, p->width);
        NAME(clear_rows)(h->grad_v, p->row[NR_ATTENTION_GRAD_V], p->keys, p->value_width);
        h->values_across = NAME(columns_of)(h->packed_across, p->value_width, p->keys, h->v, v_row);
        h->keys_along = NAME(rows_of)(h->packed_along, p->keys, p->width, h->k, k_row, p->queries);
    } else {
        h->out = (T *)p->out + item_offset(p, NR_ATTENTION_OUT, item);
        h->values = NAME(rows_of)(h->packed_values, p->keys, p->value_width, h->v, v_row, end - begin);
    }
    for (int64_t first = begin; first < least(end, p->queries); first += s->queries)
        (is_backward ? NAME(backward) : NAME(forward))(h, first, least(s->queries, p->queries - first));
}

static void NAME(run_worker)(job *s, int64_t worker, bool is_backward) {
    bool blind[MOST_QUERIES > TILE_ROWS ? MOST_QUERIES : TILE_ROWS];
    NAME(head) h = {.p = s->plan, .pitch = s->pitch, .blind = blind};
    NAME(lay_out)(&h, s, is_backward, (T *)s->scratch + worker * s->scratch_size);
    for (int64_t task; (task = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < s->items * s->parts;)
        NAME(run_task)(s, task, &h, is_backward);
}

static void NAME(forward_worker)(void *context, int64_t worker) { NAME(run_worker)(context, worker, false); }
static void NAME(backward_worker)(void *context, int64_t worker) { NAME(run_worker)(context, worker, true); }

static int32_t NAME(attend)(const nr_attention_plan *p, bool is_backward) {
    job s = {.plan = p, .items = item_count(p), .parts = 1};
    NAME(head) none;
    if (s.items == 0) return NORCH_OK;
    s.pitch = ceil_div(p->keys, PANEL_COLS) * PANEL_COLS;
    if (s.pitch * (int64_t)sizeof(T) % 1024 == 0) s.pitch += LANES; /* avoids cache conflicts of columns of scores */
    int64_t most = least(SCORES / s.pitch, MOST_QUERIES), queries = p->queries > 0 ? p->queries : 1;
    if (most < TILE_ROWS) most = TILE_ROWS;
    if (!is_backward) most -= most % TILE_ROWS;
    s.queries = ceil_div(queries, ceil_div(queries, most));
    /* in the forward pass no sum depends on how queries are divided, so tasks are whole tiles */
    if (!is_backward) s.queries = ceil_div(s.queries, TILE_ROWS) * TILE_ROWS;
    /* in the backward pass all queries add to the gradient of a key, in order, so a head is one task */
    if (!is_backward) s.parts = least(ceil_div(queries, s.queries), ceil_div(TASKS_WANTED, s.items));
    s.scratch_size = NAME(lay_out)(&none, &s, is_backward, NULL);
    double work = (double)s.items * (double)queries * (double)p->keys * (double)(p->width + p->value_width);
    int64_t workers = work < SERIAL_WORK ? 1 : least(nr_threads(), s.items * s.parts);
    size_t bytes = (size_t)(s.scratch_size * workers) * sizeof(T);
    s.scratch = nr_scratch(bytes);
    if (!s.scratch)
        return nr_fail(NORCH_ERROR_MEMORY, "attention: no memory for %lld bytes of scratch", (long long)bytes);
    nr_parallel(workers, is_backward ? NAME(backward_worker) : NAME(forward_worker), &s);
    nr_scratch_free(s.scratch, bytes);
    return NORCH_OK;
}
#undef REACH
