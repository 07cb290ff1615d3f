/* recurrent: a step of an LSTM or a GRU behind its matrix products, forward and backward, in one kernel; the formulas
 * are those of cells.h, which the CPU shares.
 *
 *   from_x, from_h   a row   [ gate 0: size | gate 1 | gate 2 | gate 3 ]    a thread a unit; neighbours read neighbours
 *   kept             a row   [ i            | f      | n      | o      ]    a gate at a time */
#include "../families/recurrent.h"
#include "cuda.cuh"
#include "math.cuh"

#define C(number) ((T)(number))
#define exp_beside_1 exp
#define CELL(name) template <class T> DEVICE void name
#include "../cells.h"
#undef CELL
#undef C

/* The values of `count` gates of a unit, `size` apart. */
template <int count, class T> DEVICE void gather(T (&to)[count], const void *from, int64_t at, int64_t size) {
#pragma unroll
    for (int k = 0; k < count; k++) to[k] = static_cast<const T *>(from)[at + k * size];
}
template <int count, class T> DEVICE void scatter(void *to, const T (&from)[count], int64_t at, int64_t size) {
#pragma unroll
    for (int k = 0; k < count; k++) static_cast<T *>(to)[at + k * size] = from[k];
}

/* The gradient of h': the sum of those that are not NULL. */
template <class T> DEVICE T added(const nr_recurrent_plan &p, int64_t unit) {
    T sum = 0;
#pragma unroll
    for (int k = 0; k < 3; k++)
        if (p.g[k]) sum += static_cast<const T *>(p.g[k])[unit];
    return sum;
}

template <class T, int kind> __global__ void __launch_bounds__(NR_BLOCK) recurrent_step(const nr_recurrent_plan p) {
    const int64_t unit = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x, size = p.size;
    if (unit >= p.rows * size) return;
    const int64_t of_three = unit / size * 3 * size + unit % size, of_four = of_three + unit / size * size;
    const T state = static_cast<const T *>(p.state)[unit];
    T kept[4], to_state;
    if constexpr (kind == NR_LSTM_FORWARD) {
        T x[4], y[4], c, h;
        gather(x, p.from_x, of_four, size);
        gather(y, p.from_h, of_four, size);
        lstm_forward(x[0] + y[0], x[1] + y[1], x[2] + y[2], x[3] + y[3], state, kept, kept + 1, kept + 2, kept + 3, &c,
                     &h);
        static_cast<T *>(p.c)[unit] = c;
        static_cast<T *>(p.h)[unit] = h;
        scatter(p.kept, kept, of_four, size);
    } else if constexpr (kind == NR_GRU_FORWARD) {
        T x[3], y[3], h;
        gather(x, p.from_x, of_three, size);
        gather(y, p.from_h, of_three, size);
        gru_forward(x[0], x[1], x[2], y[0], y[1], y[2], state, kept, kept + 1, kept + 2, &h);
        kept[3] = y[2];
        static_cast<T *>(p.h)[unit] = h;
        scatter(p.kept, kept, of_four, size);
    } else if constexpr (kind == NR_LSTM_BACKWARD) {
        T to[4];
        gather(kept, p.kept, of_four, size);
        const T g_c = p.g_c ? static_cast<const T *>(p.g_c)[unit] : T(0), c = static_cast<const T *>(p.c)[unit];
        lstm_backward(kept[0], kept[1], kept[2], kept[3], state, c, added<T>(p, unit), g_c, to, to + 1, to + 2, to + 3,
                      &to_state);
        static_cast<T *>(p.grad_state)[unit] = to_state;
        scatter(p.grad_x, to, of_four, size);
    } else {
        T to_x[3], to_y[3];
        gather(kept, p.kept, of_four, size);
        gru_backward(kept[0], kept[1], kept[2], kept[3], state, added<T>(p, unit), to_x, to_x + 1, to_x + 2, to_y + 2,
                     &to_state);
        to_y[0] = to_x[0];
        to_y[1] = to_x[1];
        static_cast<T *>(p.grad_state)[unit] = to_state;
        scatter(p.grad_x, to_x, of_three, size);
        scatter(p.grad_h, to_y, of_three, size);
    }
}

template <class T> static int32_t run(const nr_call *call, const nr_recurrent_plan &p) {
    void (*const kernels[])(nr_recurrent_plan) = {recurrent_step<T, NR_LSTM_FORWARD>, recurrent_step<T, NR_GRU_FORWARD>,
                                                  recurrent_step<T, NR_LSTM_BACKWARD>,
                                                  recurrent_step<T, NR_GRU_BACKWARD>};
    return run_blocks(call, kernels[call->op], blocks_for(p.rows * p.size, NR_BLOCK), p);
}

int32_t nr_cuda_recurrent(const nr_call *call) {
    const nr_recurrent_plan &p = *static_cast<const nr_recurrent_plan *>(call->plan);
    if (p.rows * p.size == 0) return NORCH_OK;
    return call->dtype == NORCH_FLOAT32 ? run<float>(call, p) : run<double>(call, p);
}
