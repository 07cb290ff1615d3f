/* cells: the formulas of one unit in a step of an LSTM or a GRU, and their gradients, for the CPU and for GPUs, which
 * both define exp_beside_1 and tanh. A file that includes it defines before
 *   T            the type; CELL(name) begins a function of that name without a result
 *   C(number)    the number in T
 *
 * Hochreiter and Schmidhuber, "Long short-term memory" (1997), with the forget gate of Gers, Schmidhuber and Cummins
 * (2000); Cho et al., "Learning phrase representations using RNN encoder-decoder" (2014), with the reset gate behind
 * the product. */

#define SIGMOID(x) (C(1) / (C(1) + exp_beside_1(-(x))))

/* i, f, o = sigmoid(x), n = tanh(x); c' = f c + i n, h' = o tanh(c'). */
CELL(lstm_forward)(T x_i, T x_f, T x_n, T x_o, T c, T *i, T *f, T *n, T *o, T *new_c, T *h) {
    const T in = SIGMOID(x_i), forget = SIGMOID(x_f), candidate = tanh(x_n), out = SIGMOID(x_o);
    const T state = forget * c + in * candidate;
    *i = in;
    *f = forget;
    *n = candidate;
    *o = out;
    *new_c = state;
    *h = out * tanh(state);
}

CELL(lstm_backward)(T i, T f, T n, T o, T c, T new_c, T g_h, T g_c, T *to_i, T *to_f, T *to_n, T *to_o, T *to_c) {
    const T t = tanh(new_c), g = g_c + g_h * o * (C(1) - t * t);
    *to_i = g * n * i * (C(1) - i);
    *to_f = g * c * f * (C(1) - f);
    *to_n = g * i * (C(1) - n * n);
    *to_o = g_h * t * o * (C(1) - o);
    *to_c = g * f;
}

/* r, z = sigmoid(x + y), n = tanh(x + r y), with y from the state for each gate; the next state is n + z (state -
 * n). */
CELL(gru_forward)(T x_r, T x_z, T x_n, T y_r, T y_z, T y_n, T state, T *r, T *z, T *n, T *h) {
    const T reset = SIGMOID(x_r + y_r), keep = SIGMOID(x_z + y_z), candidate = tanh(x_n + reset * y_n);
    *r = reset;
    *z = keep;
    *n = candidate;
    *h = candidate + keep * (state - candidate);
}

/* The gradients of the x, that of y for n (those for r and z equal those of x), and that of the state without the part
 * through y. */
CELL(gru_backward)(T r, T z, T n, T y_n, T state, T g, T *to_r, T *to_z, T *to_n, T *to_y_n, T *to_state) {
    const T slope = g * (C(1) - z) * (C(1) - n * n);
    *to_r = slope * y_n * r * (C(1) - r);
    *to_z = g * (state - n) * z * (C(1) - z);
    *to_n = slope;
    *to_y_n = slope * r;
    *to_state = g * z;
}
#undef SIGMOID
