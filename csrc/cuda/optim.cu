/* optim: the steps of cpu/optim_loops.h over many tensors in one launch: blocks are dealt to the tensors by their
 * number of elements. */
#include "cuda.cuh"

#define AT_ONCE 40 /* tensors in one launch: their addresses travel with it */
#define A_BLOCK (NR_BLOCK * 4)

struct optim_args {
    nr_optim_item items[AT_ONCE];
    uint32_t first_block[AT_ONCE + 1];
    int32_t count;
    int32_t fresh;
    double hyper[8];
    double rate, root; /* adam: with the corrections of its step */
};

/* The tensor that this block belongs to, and its first element there. */
DEVICE const nr_optim_item &item_of(const optim_args &a, int64_t *i) {
    int at = 0;
    while (blockIdx.x >= a.first_block[at + 1]) at++;
    *i = (int64_t)(blockIdx.x - a.first_block[at]) * A_BLOCK + threadIdx.x;
    return a.items[at];
}

/* hyper: lr, momentum, dampening, weight_decay, nesterov, maximize. */
template <class T> __global__ void __launch_bounds__(NR_BLOCK) sgd(const optim_args a) {
    int64_t i;
    const nr_optim_item &item = item_of(a, &i);
    T *param = static_cast<T *>(item.param), *momentum = static_cast<T *>(item.first);
    const T *grad = static_cast<const T *>(item.grad);
    const T rate = (T)-a.hyper[0], keep = (T)a.hyper[1], take = (T)(1.0 - a.hyper[2]), decay = (T)a.hyper[3];
    const T sign = a.hyper[5] != 0 ? (T)-1 : (T)1;
    for (int k = 0; k < A_BLOCK / NR_BLOCK; k++, i += NR_BLOCK) {
        if (i >= item.n) return;
        T p = param[i], g = sign * grad[i] + (decay != 0 ? decay * p : (T)0);
        if (!momentum) {
            param[i] = p + rate * g;
            continue;
        }
        T m = a.fresh ? g : keep * momentum[i] + take * g; /* the first buffer is the gradient itself, undamped */
        momentum[i] = m;
        param[i] = p + rate * (a.hyper[4] != 0 ? g + keep * m : m);
    }
}

/* hyper: lr, beta1, beta2, eps, weight_decay, decoupled, maximize, step (1 for the first). */
template <class T> __global__ void __launch_bounds__(NR_BLOCK) adam(const optim_args a) {
    int64_t i;
    const nr_optim_item &item = item_of(a, &i);
    T *param = static_cast<T *>(item.param), *mean = static_cast<T *>(item.first),
      *square = static_cast<T *>(item.second);
    const T *grad = static_cast<const T *>(item.grad);
    const bool decoupled = a.hyper[5] != 0;
    const T rate = (T)a.rate, root = (T)a.root;
    const T take1 = (T)(1.0 - a.hyper[1]), keep2 = (T)a.hyper[2], take2 = (T)(1.0 - a.hyper[2]), eps = (T)a.hyper[3];
    const T decay = decoupled ? (T)0 : (T)a.hyper[4];
    const T shrink = decoupled ? (T)(1.0 - a.hyper[0] * a.hyper[4]) : (T)1;
    const T sign = a.hyper[6] != 0 ? (T)-1 : (T)1;
    for (int k = 0; k < A_BLOCK / NR_BLOCK; k++, i += NR_BLOCK) {
        if (i >= item.n) return;
        T p = param[i] * shrink, g = sign * grad[i] + (decay != 0 ? decay * p : (T)0);
        T m = mean[i] + take1 * (g - mean[i]);
        T v = keep2 * square[i] + take2 * (g * g);
        mean[i] = m;
        square[i] = v;
        param[i] = p + rate * (m / (sqrt(v) / root + eps));
    }
}

int32_t nr_cuda_optim(const nr_call *call) {
    const nr_optim_plan &plan = *static_cast<const nr_optim_plan *>(call->plan);
    const bool narrow = call->dtype == NORCH_FLOAT32;
    optim_args a = {};
    a.fresh = plan.fresh;
    memcpy(a.hyper, plan.hyper, (call->op == NR_SGD ? 6 : 8) * sizeof(double));
    if (call->op == NR_ADAM) {
        a.rate = -a.hyper[0] / (1.0 - pow(a.hyper[1], a.hyper[7]));
        a.root = sqrt(1.0 - pow(a.hyper[2], a.hyper[7]));
    }
    auto kernel = call->op == NR_SGD ? (narrow ? sgd<float> : sgd<double>) : (narrow ? adam<float> : adam<double>);
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
