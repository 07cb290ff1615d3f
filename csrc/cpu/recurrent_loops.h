/* recurrent_loops: the rows of recurrent_isa.c, where their picture is, a template of each_dtype.h; cells.h has the
 * formulas and their sources. */
#define C(number) ((T)(number))
#define CELL(name) INLINE void OF_DTYPE(name)
#include "../cells.h"
#undef CELL

/* Gate k of a row of `gates` gates. */
#define GATE(field, gates, k) ((T *)(field) + (row * (gates) + (k)) * size)

/* new_c may be c itself: an element is read before it is written. */
static void OF_DTYPE(lstm_forward_row)(const nr_recurrent_plan *p, int64_t row) {
    const int64_t size = p->size;
    const T *restrict x_i = GATE(p->from_x, 4, 0), *restrict x_f = x_i + size, *restrict x_n = x_f + size;
    const T *restrict y_i = GATE(p->from_h, 4, 0), *restrict y_f = y_i + size, *restrict y_n = y_f + size;
    const T *restrict x_o = x_n + size, *restrict y_o = y_n + size, *c = GATE(p->state, 1, 0);
    T *restrict i = GATE(p->kept, 4, 0), *restrict f = GATE(p->kept, 4, 1), *restrict n = GATE(p->kept, 4, 2);
    T *restrict o = GATE(p->kept, 4, 3), *new_c = GATE(p->c, 1, 0), *restrict h = GATE(p->h, 1, 0);
    IVDEP for (int64_t u = 0; u < size; u++)
        OF_DTYPE(lstm_forward)(x_i[u] + y_i[u], x_f[u] + y_f[u], x_n[u] + y_n[u], x_o[u] + y_o[u], c[u], i + u, f + u,
                               n + u, o + u, new_c + u, h + u);
}

static void OF_DTYPE(gru_forward_row)(const nr_recurrent_plan *p, int64_t row) {
    const int64_t size = p->size;
    const T *restrict x = GATE(p->from_x, 3, 0), *restrict y = GATE(p->from_h, 3, 0),
                      *restrict state = GATE(p->state, 1, 0);
    T *restrict r = GATE(p->kept, 4, 0), *restrict z = GATE(p->kept, 4, 1), *restrict n = GATE(p->kept, 4, 2);
    T *restrict y_n = GATE(p->kept, 4, 3), *restrict h = GATE(p->h, 1, 0);
    IVDEP for (int64_t u = 0; u < size; u++) {
        y_n[u] = y[2 * size + u];
        OF_DTYPE(gru_forward)(x[u], x[size + u], x[2 * size + u], y[u], y[size + u], y[2 * size + u], state[u], r + u,
                              z + u, n + u, h + u);
    }
}

#define UNITS 256 /* whose gradients are added up together */

/* The gradient of h' of some units of a row: the sum of those given. */
INLINE void OF_DTYPE(add_gradients)(const nr_recurrent_plan *p, int64_t first, int64_t n, T *restrict to) {
    for (int64_t u = 0; u < n; u++) to[u] = 0;
    for (int k = 0; k < 3; k++) {
        const T *restrict g = (const T *)p->g[k];
        for (int64_t u = 0; g && u < n; u++) to[u] += g[first + u];
    }
}

/* grad_state may be g_c itself, or g[2]: an element is read before it is written. */
static void OF_DTYPE(lstm_backward_row)(const nr_recurrent_plan *p, int64_t row) {
    const int64_t size = p->size;
    const T *restrict i = GATE(p->kept, 4, 0), *restrict f = GATE(p->kept, 4, 1), *restrict n = GATE(p->kept, 4, 2);
    const T *restrict o = GATE(p->kept, 4, 3), *restrict c = GATE(p->state, 1, 0), *restrict new_c = GATE(p->c, 1, 0);
    T *restrict to_i = GATE(p->grad_x, 4, 0), *restrict to_f = GATE(p->grad_x, 4, 1), *to_c = GATE(p->grad_state, 1, 0);
    T *restrict to_n = GATE(p->grad_x, 4, 2), *restrict to_o = GATE(p->grad_x, 4, 3);
    for (int64_t first = 0; first < size; first += UNITS) {
        const int64_t count = least(UNITS, size - first);
        T g[UNITS], g_c[UNITS];
        OF_DTYPE(add_gradients)(p, row * size + first, count, g);
        for (int64_t u = 0; u < count; u++) g_c[u] = p->g_c ? ((const T *)p->g_c)[row * size + first + u] : 0;
        IVDEP for (int64_t k = 0; k < count; k++) {
            const int64_t u = first + k;
            OF_DTYPE(lstm_backward)(i[u], f[u], n[u], o[u], c[u], new_c[u], g[k], g_c[k], to_i + u, to_f + u, to_n + u,
                                    to_o + u, to_c + u);
        }
    }
}

static void OF_DTYPE(gru_backward_row)(const nr_recurrent_plan *p, int64_t row) {
    const int64_t size = p->size;
    const T *restrict r = GATE(p->kept, 4, 0), *restrict z = GATE(p->kept, 4, 1), *restrict n = GATE(p->kept, 4, 2);
    const T *restrict y_n = GATE(p->kept, 4, 3), *restrict state = GATE(p->state, 1, 0);
    T *restrict to_r = GATE(p->grad_x, 3, 0), *restrict to_z = GATE(p->grad_x, 3, 1),
                *restrict to_n = GATE(p->grad_x, 3, 2);
    T *restrict to_y = GATE(p->grad_h, 3, 0), *to_state = GATE(p->grad_state, 1, 0);
    for (int64_t first = 0; first < size; first += UNITS) {
        const int64_t count = least(UNITS, size - first);
        T g[UNITS];
        OF_DTYPE(add_gradients)(p, row * size + first, count, g);
        IVDEP for (int64_t k = 0; k < count; k++) {
            const int64_t u = first + k;
            OF_DTYPE(gru_backward)(r[u], z[u], n[u], y_n[u], state[u], g[k], to_r + u, to_z + u, to_n + u,
                                   to_y + 2 * size + u, to_state + u);
            to_y[u] = to_r[u];
            to_y[size + u] = to_z[u];
        }
    }
}
#undef C
#undef UNITS
#undef GATE
