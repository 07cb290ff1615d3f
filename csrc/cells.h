/* cells: what a step of an LSTM and of a GRU makes of one unit, and the gradients of that, for the CPU and for GPUs, in terms of what
 * both have under one name: exp_beside_1, tanh. Whoever includes it defines before
 *   T            the type; CELL(name) begins a function of that name without a result
 *   C(number)    the number in T
 *
 * Hochreiter and Schmidhuber, "Long short-term memory" (1997), with the forget gate of Gers, Schmidhuber and Cummins (2000); Cho
 * et al., "Learning phrase representations using RNN encoder-decoder" (2014), with the reset gate behind the product. */

#define SIGMOID(x) (C(1) / (C(1) + exp_beside_1(-(x))))

/* c' = f c + i n, h' = o tanh(c'); gates: i, f, n, o before their functions, kept: behind them. */
CELL(lstm_forward)(const T gates[4], T c, T kept[4], T *new_c, T *h) {
    kept[0] = SIGMOID(gates[0]);
    kept[1] = SIGMOID(gates[1]);
    kept[2] = tanh(gates[2]);
    kept[3] = SIGMOID(gates[3]);
    *new_c = kept[1] * c + kept[0] * kept[2];
    *h = kept[3] * tanh(*new_c);
}

CELL(lstm_backward)(const T kept[4], T c, T new_c, T g_h, T g_c, T grad[4], T *grad_c) {
    const T i = kept[0], f = kept[1], n = kept[2], o = kept[3], t = tanh(new_c);
    const T g = g_c + g_h * o * (C(1) - t * t);
    grad[0] = g * n * i * (C(1) - i);
    grad[1] = g * c * f * (C(1) - f);
    grad[2] = g * i * (C(1) - n * n);
    grad[3] = g_h * t * o * (C(1) - o);
    *grad_c = g * f;
}

/* r, z = sigmoid(x + h'), n = tanh(x + r h'), where h' is what the state gives a gate; the next state is n + z (state - n). kept: r, z,
 * n, and what the state gives n. */
CELL(gru_forward)(const T from_x[3], const T from_h[3], T state, T kept[4], T *h) {
    kept[0] = SIGMOID(from_x[0] + from_h[0]);
    kept[1] = SIGMOID(from_x[1] + from_h[1]);
    kept[2] = tanh(from_x[2] + kept[0] * from_h[2]);
    kept[3] = from_h[2];
    *h = kept[2] + kept[1] * (state - kept[2]);
}

CELL(gru_backward)(const T kept[4], T state, T g, T grad_x[3], T grad_h[3], T *grad_state) {
    const T r = kept[0], z = kept[1], n = kept[2];
    grad_x[2] = g * (C(1) - z) * (C(1) - n * n);
    grad_x[1] = grad_h[1] = g * (state - n) * z * (C(1) - z);
    grad_x[0] = grad_h[0] = grad_x[2] * kept[3] * r * (C(1) - r);
    grad_h[2] = grad_x[2] * r;
    *grad_state = g * z;
}
#undef SIGMOID
