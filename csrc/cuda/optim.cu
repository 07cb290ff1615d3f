/* optim: the steps of cpu/optim_loops.h, which names their sources, over many tensors in one launch: blocks are dealt to
 * the tensors by their number of elements.
 *
 *   tensors       [ 2500 elements           ][ 100    ][ 1024   ] ...   up to AT_ONCE, their addresses being arguments
 *   blocks        [ 0      | 1      | 2     ][ 3      ][ 4      ] ...   A_BLOCK elements each, or what is left
 *   first_block   0                          3         4         5      a block looks here for its tensor
 *   a thread      param, grad and buffers: IN_ROW neighbours of each read once, kept in registers, written once
 *
 * Many tensors a launch, as most are too small to fill a device: multi_tensor_apply of NVIDIA's Apex (2018). */
#include "../families/optim.h"
#include "cuda.cuh"

#define AT_ONCE 40 /* tensors in one launch: their addresses travel with it */
#define IN_ROW 4   /* elements that a thread takes */
#define A_BLOCK (NR_BLOCK * IN_ROW)

struct optim_args {
    nr_optim_item items[AT_ONCE];
    uint32_t first_block[AT_ONCE + 1];
    int32_t count;
    int32_t fresh;
    double hyper[8];
    double rate, root; /* adam, adagrad: with the corrections of their step */
};

/* The tensor that this block belongs to, and this thread's first element there. */
DEVICE const nr_optim_item &item_of(const optim_args &a, int64_t *i) {
    int at = 0;
    while (blockIdx.x >= a.first_block[at + 1]) at++;
    *i = (int64_t)(blockIdx.x - a.first_block[at]) * A_BLOCK + (int)threadIdx.x * IN_ROW;
    return a.items[at];
}

/* IN_ROW elements from place i of n; zeros where there is no tensor. */
template <class T> DEVICE void read(T (&to)[IN_ROW], const void *from, int64_t i, int64_t n, bool wide) {
    const T *x = static_cast<const T *>(from);
    if (x && wide) {
        const auto all = *reinterpret_cast<const pack<T, IN_ROW> *>(x + i);
        for (int k = 0; k < IN_ROW; k++) to[k] = all.v[k];
    } else {
        for (int k = 0; k < IN_ROW; k++) to[k] = x && i + k < n ? x[i + k] : T(0);
    }
}
template <class T> DEVICE void write(void *to, const T (&from)[IN_ROW], int64_t i, int64_t n, bool wide) {
    T *x = static_cast<T *>(to);
    if (wide) {
        pack<T, IN_ROW> all;
        for (int k = 0; k < IN_ROW; k++) all.v[k] = from[k];
        *reinterpret_cast<pack<T, IN_ROW> *>(x + i) = all;
    } else {
        for (int k = 0; k < IN_ROW; k++)
            if (i + k < n) x[i + k] = from[k];
    }
}

/* Whether a thread may move its elements of all tensors at once. */
template <class T> DEVICE bool is_wide(const nr_optim_item &item, int64_t i) {
    const uintptr_t all = reinterpret_cast<uintptr_t>(item.param) | reinterpret_cast<uintptr_t>(item.grad) |
                          reinterpret_cast<uintptr_t>(item.first) | reinterpret_cast<uintptr_t>(item.second) |
                          reinterpret_cast<uintptr_t>(item.third);
    return all % (IN_ROW * sizeof(T)) == 0 && i + IN_ROW <= item.n;
}

/* hyper: lr, momentum, dampening, weight_decay, nesterov, maximize. */
template <class T> __global__ void __launch_bounds__(NR_BLOCK) sgd(const optim_args a) {
    int64_t i;
    const nr_optim_item &item = item_of(a, &i);
    if (i >= item.n) return;
    const T rate = (T)-a.hyper[0], keep = (T)a.hyper[1], take = (T)(1.0 - a.hyper[2]), decay = (T)a.hyper[3];
    const T sign = a.hyper[5] != 0 ? (T)-1 : (T)1;
    const bool wide = is_wide<T>(item, i), nesterov = a.hyper[4] != 0;
    T p[IN_ROW], g[IN_ROW], m[IN_ROW];
    read(p, item.param, i, item.n, wide);
    read(g, item.grad, i, item.n, wide);
    read(m, a.fresh ? nullptr : item.first, i, item.n, wide);
    for (int k = 0; k < IN_ROW; k++) {
        g[k] = sign * g[k] + (decay != 0 ? decay * p[k] : (T)0);
        m[k] = a.fresh ? g[k] : keep * m[k] + take * g[k]; /* the first buffer is the gradient itself, undamped */
        p[k] = p[k] + rate * (!item.first ? g[k] : nesterov ? g[k] + keep * m[k] : m[k]);
    }
    if (item.first) write(item.first, m, i, item.n, wide);
    write(item.param, p, i, item.n, wide);
}

/* hyper: lr, beta1, beta2, eps, weight_decay, decoupled, maximize, step (1 for the first). */
template <class T> __global__ void __launch_bounds__(NR_BLOCK) adam(const optim_args a) {
    int64_t i;
    const nr_optim_item &item = item_of(a, &i);
    if (i >= item.n) return;
    const bool decoupled = a.hyper[5] != 0, wide = is_wide<T>(item, i);
    const T rate = (T)a.rate, root = (T)a.root;
    const T take1 = (T)(1.0 - a.hyper[1]), keep2 = (T)a.hyper[2], take2 = (T)(1.0 - a.hyper[2]), eps = (T)a.hyper[3];
    const T decay = decoupled ? (T)0 : (T)a.hyper[4];
    const T shrink = decoupled ? (T)(1.0 - a.hyper[0] * a.hyper[4]) : (T)1;
    const T sign = a.hyper[6] != 0 ? (T)-1 : (T)1;
    T p[IN_ROW], g[IN_ROW], m[IN_ROW], v[IN_ROW], most[IN_ROW];
    read(p, item.param, i, item.n, wide);
    read(g, item.grad, i, item.n, wide);
    read(m, item.first, i, item.n, wide);
    read(v, item.second, i, item.n, wide);
    read(most, item.third, i, item.n, wide);
    for (int k = 0; k < IN_ROW; k++) {
        p[k] *= shrink;
        g[k] = sign * g[k] + (decay != 0 ? decay * p[k] : (T)0);
        m[k] = m[k] + take1 * (g[k] - m[k]);
        v[k] = keep2 * v[k] + take2 * (g[k] * g[k]);
        if (!item.third || !(most[k] >= v[k] || most[k] != most[k])) most[k] = v[k];
        p[k] = p[k] + rate * (m[k] / (sqrt(most[k]) / root + eps));
    }
    write(item.first, m, i, item.n, wide);
    write(item.second, v, i, item.n, wide);
    if (item.third) write(item.third, most, i, item.n, wide);
    write(item.param, p, i, item.n, wide);
}

/* hyper: lr, alpha, eps, weight_decay, momentum, maximize. */
template <class T> __global__ void __launch_bounds__(NR_BLOCK) rmsprop(const optim_args a) {
    int64_t i;
    const nr_optim_item &item = item_of(a, &i);
    if (i >= item.n) return;
    const T rate = (T)-a.hyper[0], keep = (T)a.hyper[1], take = (T)(1.0 - a.hyper[1]), eps = (T)a.hyper[2];
    const T decay = (T)a.hyper[3], carry = (T)a.hyper[4], sign = a.hyper[5] != 0 ? (T)-1 : (T)1;
    const bool wide = is_wide<T>(item, i);
    T p[IN_ROW], g[IN_ROW], v[IN_ROW], m[IN_ROW], b[IN_ROW];
    read(p, item.param, i, item.n, wide);
    read(g, item.grad, i, item.n, wide);
    read(v, item.first, i, item.n, wide);
    read(m, item.second, i, item.n, wide);
    read(b, item.third, i, item.n, wide);
    for (int k = 0; k < IN_ROW; k++) {
        g[k] = sign * g[k] + (decay != 0 ? decay * p[k] : (T)0);
        v[k] = keep * v[k] + take * (g[k] * g[k]);
        if (item.second) m[k] = m[k] + take * (g[k] - m[k]); /* else it is 0 */
        const T move = g[k] / (sqrt(v[k] - m[k] * m[k]) + eps);
        b[k] = item.third ? carry * b[k] + move : move;
        p[k] = p[k] + rate * b[k];
    }
    write(item.first, v, i, item.n, wide);
    if (item.second) write(item.second, m, i, item.n, wide);
    if (item.third) write(item.third, b, i, item.n, wide);
    write(item.param, p, i, item.n, wide);
}

/* hyper: lr, lr_decay, eps, weight_decay, maximize, step. */
template <class T> __global__ void __launch_bounds__(NR_BLOCK) adagrad(const optim_args a) {
    int64_t i;
    const nr_optim_item &item = item_of(a, &i);
    if (i >= item.n) return;
    const T rate = (T)a.rate, eps = (T)a.hyper[2], decay = (T)a.hyper[3], sign = a.hyper[4] != 0 ? (T)-1 : (T)1;
    const bool wide = is_wide<T>(item, i);
    T p[IN_ROW], g[IN_ROW], s[IN_ROW];
    read(p, item.param, i, item.n, wide);
    read(g, item.grad, i, item.n, wide);
    read(s, item.first, i, item.n, wide);
    for (int k = 0; k < IN_ROW; k++) {
        g[k] = sign * g[k] + (decay != 0 ? decay * p[k] : (T)0);
        s[k] = s[k] + g[k] * g[k];
        p[k] = p[k] + rate * (g[k] / (sqrt(s[k]) + eps));
    }
    write(item.first, s, i, item.n, wide);
    write(item.param, p, i, item.n, wide);
}

template <class T> static void (*kernel_of(int32_t kind))(const optim_args) {
    return kind == NR_SGD ? sgd<T> : kind == NR_ADAM ? adam<T> : kind == NR_RMSPROP ? rmsprop<T> : adagrad<T>;
}

int32_t nr_cuda_optim(const nr_call *call) {
    const nr_optim_plan &plan = *static_cast<const nr_optim_plan *>(call->plan);
    optim_args a = {};
    a.fresh = plan.fresh;
    memcpy(a.hyper, plan.hyper, (call->op == NR_ADAM ? 8 : 6) * sizeof(double));
    if (call->op == NR_ADAM) {
        a.rate = -a.hyper[0] / (1.0 - pow(a.hyper[1], a.hyper[7]));
        a.root = sqrt(1.0 - pow(a.hyper[2], a.hyper[7]));
    }
    if (call->op == NR_ADAGRAD) a.rate = -a.hyper[0] / (1.0 + (a.hyper[5] - 1.0) * a.hyper[1]);
    auto kernel = call->dtype == NORCH_FLOAT32 ? kernel_of<float>(call->op) : kernel_of<double>(call->op);
    for (int64_t from = 0; from < plan.count; from += AT_ONCE) {
        a.count = 0;
        for (int64_t i = from; i < plan.count && a.count < AT_ONCE; i++) {
            a.items[a.count] = plan.items[i];
            a.first_block[a.count + 1] = a.first_block[a.count] + blocks_for(plan.items[i].n, A_BLOCK);
            a.count++;
        }
        LAUNCH(kernel, a.first_block[a.count], NR_BLOCK, 0, gpu_of(call)->stream, a);
        LAUNCHED(call);
    }
    return NORCH_OK;
}
