/* optim_loops: the rows of optim.def as loops over neighbouring elements, a template of each_dtype.h; optim_isa.c cuts
 * tensors into parts. Here: elements `from` to `to` of one tensor, as Adam does:
 *
 *   grad    g --+--> exp_avg     m += take1 (g - m) -----------+   a plain loop that compilers vectorise: each tensor
 *               |                                              |   has one load and one store, and everything else
 *               +--> exp_avg_sq  v = keep2 v + take2 g g --+   |   stays in registers
 *                                                          |   |
 *   param   p ----------------> p + rate (m / (sqrt(v) / root + eps)) */

#define OPTIMIZER(name, work, hypers, needed, states, scalars, ...)                                                   \
    INLINE void OF_DTYPE(name##_step)(const nr_optim_plan *plan, const nr_optim_item *item, int64_t from, int64_t to, \
                                      const int has) {                                                                \
        const nr_##name##_hyper h = *(const nr_##name##_hyper *)plan->hyper;                                          \
        const T NR_UNPACK scalars;                                                                                    \
        const T *restrict grads = item->grad;                                                                         \
        T *restrict params = item->param;                                                                             \
        NR_EACH(FIND, NR_UNPACK states)                                                                               \
        IVDEP for (int64_t i = from; i < to; i++) {                                                                   \
            const T grad = grads[i];                                                                                  \
            T param = params[i];                                                                                      \
            NR_EACH(LOAD, NR_UNPACK states)                                                                           \
            __VA_ARGS__                                                                                               \
            params[i] = param;                                                                                        \
            NR_EACH(STORE, NR_UNPACK states)                                                                          \
        }                                                                                                             \
    }                                                                                                                 \
    static void OF_DTYPE(name)(const nr_optim_plan *plan, const nr_optim_item *item, int64_t from, int64_t to) {      \
        specialized(OF_DTYPE(name##_step), needed, 0 NR_EACH(COUNT, NR_UNPACK states), plan, item, from, to);         \
    }
#include "../optim.def"
