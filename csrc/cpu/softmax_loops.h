/* softmax_loops: the loops of softmax_isa.c, where their picture and source are: a template of each_dtype.h. */
#include "softmax_rows.h"

static void OF_DTYPE(row_softmax)(const nr_softmax_plan *p, int64_t tile) {
    const T *x = (const T *)p->x + tile * p->n;
    T *out = (T *)p->out + tile * p->n;
    T scale = (T)(1 / OF_DTYPE(row_exp)(out, x, p->n, OF_DTYPE(row_top)(x, p->n), false));
    for (int64_t i = 0; i < p->n; i++) out[i] *= scale;
}

/* Some rows, so that their logarithms are taken together. */
static void OF_DTYPE(row_log_softmax)(const nr_softmax_plan *p, int64_t tile) {
    const int64_t most = LOGS(p->n), first = tile * most, rows = p->outer - first < most ? p->outer - first : most;
    const T *restrict x = (const T *)p->x + first * p->n;
    T *restrict out = (T *)p->out + first * p->n;
    T powers[BLOCK], top[LOGS(0)], sum[LOGS(0)];
    for (int64_t r = 0; r < rows; r++) {
        top[r] = OF_DTYPE(row_top)(x + r * p->n, p->n);
        sum[r] = (T)OF_DTYPE(row_exp)(powers, x + r * p->n, p->n, top[r], true);
    }
    for (int64_t r = 0; r < rows; r++) sum[r] = log(sum[r]);
    for (int64_t r = 0; r < rows; r++, x += p->n, out += p->n)
        for (int64_t i = 0; i < p->n; i++) out[i] = (x[i] - top[r]) - sum[r];
}

/* (g - sum(g y)) y */
static void OF_DTYPE(row_softmax_backward)(const nr_softmax_plan *p, int64_t tile) {
    const T *restrict g = (const T *)p->x + tile * p->n, *restrict y = (const T *)p->result + tile * p->n;
    T *restrict out = (T *)p->out + tile * p->n;
    T sum = (T)OF_DTYPE(row_sum)(g, y, p->n);
    for (int64_t i = 0; i < p->n; i++) out[i] = (g[i] - sum) * y[i];
}

/* g - exp(y) sum(g) */
static void OF_DTYPE(row_log_softmax_backward)(const nr_softmax_plan *p, int64_t tile) {
    const T *restrict g = (const T *)p->x + tile * p->n, *restrict y = (const T *)p->result + tile * p->n;
    T *restrict out = (T *)p->out + tile * p->n;
    T sum = (T)OF_DTYPE(row_sum)(g, NULL, p->n);
    for (int64_t i = 0; i < p->n; i++) out[i] = g[i] - exp_below(y[i]) * sum;
}

/* ---- columns --------------------------------------------------------------------------------------- */

/* Where the columns of a tile begin; gives how many they are. */
INLINE int64_t OF_DTYPE(find_columns)(const nr_softmax_plan *p, int64_t tile, int64_t *at) {
    int64_t tiles = (p->inner + WIDTH - 1) / WIDTH, first = tile % tiles * WIDTH;
    *at = tile / tiles * p->n * p->inner + first;
    return p->inner - first < WIDTH ? p->inner - first : WIDTH;
}

INLINE void OF_DTYPE(add_up)(double *restrict sums, T *restrict part, int64_t width) {
    for (int64_t k = 0; k < width; k++) {
        sums[k] += (double)part[k];
        part[k] = 0;
    }
}

INLINE void OF_DTYPE(columns_of_tile)(const nr_softmax_plan *p, int64_t tile, bool logs) {
    int64_t at, width = OF_DTYPE(find_columns)(p, tile, &at);
    const T *restrict x = (const T *)p->x + at;
    T *restrict out = (T *)p->out + at;
    T top[WIDTH], part[WIDTH] = {0};
    double sums[WIDTH] = {0};
    for (int64_t k = 0; k < width; k++) top[k] = -(T)INFINITY;
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t k = 0; k < width; k++) {
            T value = x[i * p->inner + k];
            top[k] = value > top[k] ? value : top[k];
        }
    for (int64_t i = 0; i < p->n; i++) {
        for (int64_t k = 0; k < width; k++) {
            T distance = x[i * p->inner + k] - top[k], power = exp_below(distance);
            out[i * p->inner + k] = logs ? distance : power;
            part[k] += power;
        }
        if (i % STEPS == STEPS - 1 || i == p->n - 1) OF_DTYPE(add_up)(sums, part, width);
    }
    for (int64_t k = 0; k < width; k++) part[k] = logs ? log((T)sums[k]) : (T)(1 / sums[k]);
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t k = 0; k < width; k++) {
            T value = out[i * p->inner + k];
            out[i * p->inner + k] = logs ? value - part[k] : value * part[k];
        }
}

INLINE void OF_DTYPE(columns_of_tile_backward)(const nr_softmax_plan *p, int64_t tile, bool logs) {
    int64_t at, width = OF_DTYPE(find_columns)(p, tile, &at);
    const T *restrict g = (const T *)p->x + at, *restrict y = (const T *)p->result + at;
    T *restrict out = (T *)p->out + at;
    T part[WIDTH] = {0};
    double sums[WIDTH] = {0};
    for (int64_t i = 0; i < p->n; i++) {
        for (int64_t k = 0; k < width; k++)
            part[k] += logs ? g[i * p->inner + k] : g[i * p->inner + k] * y[i * p->inner + k];
        if (i % STEPS == STEPS - 1 || i == p->n - 1) OF_DTYPE(add_up)(sums, part, width);
    }
    for (int64_t k = 0; k < width; k++) part[k] = (T)sums[k];
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t k = 0; k < width; k++) {
            T from = g[i * p->inner + k], result = y[i * p->inner + k];
            out[i * p->inner + k] = logs ? from - exp_below(result) * part[k] : (from - part[k]) * result;
        }
}

static void OF_DTYPE(columns)(const nr_softmax_plan *p, int64_t tile) { OF_DTYPE(columns_of_tile)(p, tile, false); }
static void OF_DTYPE(log_columns)(const nr_softmax_plan *p, int64_t tile) { OF_DTYPE(columns_of_tile)(p, tile, true); }
static void OF_DTYPE(columns_backward)(const nr_softmax_plan *p, int64_t tile) {
    OF_DTYPE(columns_of_tile_backward)(p, tile, false);
}
static void OF_DTYPE(log_columns_backward)(const nr_softmax_plan *p, int64_t tile) {
    OF_DTYPE(columns_of_tile_backward)(p, tile, true);
}

/* ---- short rows: where exp is needed they are turned into columns and back ------------------------------- */

INLINE void OF_DTYPE(turn)(T *restrict to, const T *restrict from, int64_t rows, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < rows; k++) to[i * rows + k] = from[k * n + i];
}

INLINE void OF_DTYPE(short_rows)(const nr_softmax_plan *p, int64_t tile, bool logs, bool is_backward) {
    T x[SHORT * WIDTH], result[SHORT * WIDTH], out[SHORT * WIDTH];
    int64_t at = tile * WIDTH * p->n, rows = p->outer - tile * WIDTH < WIDTH ? p->outer - tile * WIDTH : WIDTH;
    const nr_softmax_plan turned = {.outer = 1, .n = p->n, .inner = rows, .out = out, .x = x, .result = result};
    OF_DTYPE(turn)(x, (const T *)p->x + at, rows, p->n);
    if (is_backward) {
        OF_DTYPE(turn)(result, (const T *)p->result + at, rows, p->n);
        OF_DTYPE(columns_of_tile_backward)(&turned, 0, logs);
    } else {
        OF_DTYPE(columns_of_tile)(&turned, 0, logs);
    }
    OF_DTYPE(turn)((T *)p->out + at, out, p->n, rows);
}

static void OF_DTYPE(short)(const nr_softmax_plan *p, int64_t tile) { OF_DTYPE(short_rows)(p, tile, false, false); }
static void OF_DTYPE(log_short)(const nr_softmax_plan *p, int64_t tile) { OF_DTYPE(short_rows)(p, tile, true, false); }
static void OF_DTYPE(log_short_backward)(const nr_softmax_plan *p, int64_t tile) {
    OF_DTYPE(short_rows)(p, tile, true, true);
}
