/* recurrent_loops: the rows of recurrent_isa.c, where their picture is, a template of each_dtype.h; cells.h has the formulas and
 * their sources. */
#define C(number) ((T)(number))
#define CELL(name) INLINE void OF_DTYPE(name)
#include "../cells.h"
#undef CELL

static void OF_DTYPE(lstm_forward_row)(const nr_recurrent_plan *p, int64_t row) {
    const int64_t size = p->size;
    const T *restrict x = (const T *)p->from_x + row * 4 * size, *restrict y = (const T *)p->from_h + row * 4 * size;
    const T *restrict c = (const T *)p->state + row * size;
    T *restrict h = (T *)p->h + row * size, *restrict new_c = (T *)p->c + row * size;
    T *restrict kept = (T *)p->kept + row * 4 * size;
    for (int64_t i = 0; i < size; i++) {
        T gates[4], values[4];
        for (int k = 0; k < 4; k++) gates[k] = x[k * size + i] + y[k * size + i];
        OF_DTYPE(lstm_forward)(gates, c[i], values, new_c + i, h + i);
        for (int k = 0; k < 4; k++) kept[k * size + i] = values[k];
    }
}

static void OF_DTYPE(gru_forward_row)(const nr_recurrent_plan *p, int64_t row) {
    const int64_t size = p->size;
    const T *restrict x = (const T *)p->from_x + row * 3 * size, *restrict y = (const T *)p->from_h + row * 3 * size;
    const T *restrict state = (const T *)p->state + row * size;
    T *restrict h = (T *)p->h + row * size, *restrict kept = (T *)p->kept + row * 4 * size;
    for (int64_t i = 0; i < size; i++) {
        const T from_x[3] = {x[i], x[size + i], x[2 * size + i]}, from_h[3] = {y[i], y[size + i], y[2 * size + i]};
        T values[4];
        OF_DTYPE(gru_forward)(from_x, from_h, state[i], values, h + i);
        for (int k = 0; k < 4; k++) kept[k * size + i] = values[k];
    }
}

/* The gradient of h' of the units of a row: the sum of those that there are. */
INLINE void OF_DTYPE(add_gradients)(const nr_recurrent_plan *p, int64_t row, int64_t first, int64_t n, T *restrict to) {
    for (int64_t i = 0; i < n; i++) to[i] = 0;
    for (int k = 0; k < 3; k++) {
        const T *restrict g = p->g[k];
        if (!g) continue;
        g += row * p->size + first;
        for (int64_t i = 0; i < n; i++) to[i] += g[i];
    }
}

#define UNITS 256 /* whose gradients are added up together */

/* grad_state may be g_c itself, or g[2]: an element is read before it is written. */
static void OF_DTYPE(lstm_backward_row)(const nr_recurrent_plan *p, int64_t row) {
    const int64_t size = p->size;
    const T *restrict kept = (const T *)p->kept + row * 4 * size, *restrict c = (const T *)p->state + row * size;
    const T *restrict new_c = (const T *)p->c + row * size, *from = p->g_c;
    T *restrict grad = (T *)p->grad_x + row * 4 * size, *to = (T *)p->grad_state + row * size;
    for (int64_t first = 0; first < size; first += UNITS) {
        const int64_t n = least(UNITS, size - first);
        T g[UNITS], g_c[UNITS], grad_c[UNITS];
        OF_DTYPE(add_gradients)(p, row, first, n, g);
        for (int64_t i = 0; i < n; i++) g_c[i] = from ? from[row * size + first + i] : 0;
        for (int64_t i = 0, u = first; i < n; i++, u++) {
            const T values[4] = {kept[u], kept[size + u], kept[2 * size + u], kept[3 * size + u]};
            T grads[4];
            OF_DTYPE(lstm_backward)(values, c[u], new_c[u], g[i], g_c[i], grads, grad_c + i);
            for (int k = 0; k < 4; k++) grad[k * size + u] = grads[k];
        }
        for (int64_t i = 0; i < n; i++) to[first + i] = grad_c[i];
    }
}

static void OF_DTYPE(gru_backward_row)(const nr_recurrent_plan *p, int64_t row) {
    const int64_t size = p->size;
    const T *restrict kept = (const T *)p->kept + row * 4 * size, *restrict state = (const T *)p->state + row * size;
    T *restrict grad_x = (T *)p->grad_x + row * 3 * size, *restrict grad_h = (T *)p->grad_h + row * 3 * size;
    T *to = (T *)p->grad_state + row * size;
    for (int64_t first = 0; first < size; first += UNITS) {
        const int64_t n = least(UNITS, size - first);
        T g[UNITS], grad_state[UNITS];
        OF_DTYPE(add_gradients)(p, row, first, n, g);
        for (int64_t i = 0, u = first; i < n; i++, u++) {
            const T values[4] = {kept[u], kept[size + u], kept[2 * size + u], kept[3 * size + u]};
            T of_x[3], of_h[3];
            OF_DTYPE(gru_backward)(values, state[u], g[i], of_x, of_h, grad_state + i);
            for (int k = 0; k < 3; k++) {
                grad_x[k * size + u] = of_x[k];
                grad_h[k * size + u] = of_h[k];
            }
        }
        for (int64_t i = 0; i < n; i++) to[first + i] = grad_state[i];
    }
}
#undef C
#undef UNITS
