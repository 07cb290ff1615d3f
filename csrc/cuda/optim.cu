/* optim: the rows of optim.def over many tensors in one launch: blocks are dealt to the tensors by their number of
 * elements. Narrow dtypes are widened as they are read, and rounded once when they are written.
 *
 *   tensors       [ 2500 elements           ][ 100    ][ 1024   ] ...   up to AT_ONCE, their addresses being arguments
 *   blocks        [ 0      | 1      | 2     ][ 3      ][ 4      ] ...   A_BLOCK elements each, or what is left
 *   first_block   0                          3         4         5      a block looks here for its tensor
 *   a thread      param, grad and state: IN_ROW neighbours of each read once, kept in registers, written once
 *
 * Many tensors a launch, as most are too small to fill a device: multi_tensor_apply of NVIDIA's Apex (2018). */
#include "../families/optim.h"
#include "cuda.cuh"
#include "math.cuh"

#define AT_ONCE 40 /* tensors in one launch: their addresses travel with it */
#define IN_ROW 4   /* elements that a thread takes */
#define A_BLOCK (NR_BLOCK * IN_ROW)

struct optim_args {
    nr_optim_item items[AT_ONCE];
    uint32_t first_block[AT_ONCE + 1];
    int32_t number, row_bytes; /* of the dtype that is stored; IN_ROW of its elements */
};

/* The tensor that this block belongs to, and this thread's first element there. */
DEVICE const nr_optim_item &item_of(const optim_args &a, int64_t *i) {
    int at = 0;
    while (blockIdx.x >= a.first_block[at + 1]) at++;
    *i = (int64_t)(blockIdx.x - a.first_block[at]) * A_BLOCK + (int)threadIdx.x * IN_ROW;
    return a.items[at];
}

/* Whether a thread may move its elements of all tensors at once. */
DEVICE bool is_wide(const optim_args &a, const nr_optim_item &item, int64_t i) {
    uintptr_t all = reinterpret_cast<uintptr_t>(item.param) | reinterpret_cast<uintptr_t>(item.grad);
    for (const void *state : item.state) all |= reinterpret_cast<uintptr_t>(state);
    return all % (uintptr_t)a.row_bytes == 0 && i + IN_ROW <= item.n;
}

/* ---- formulas: a class a row, whose members are the scalars, and whose f computes one element ----------------- */

#define C(number) ((T)(number))
#define COUNT(k, one) +1
#define REFER(s, one)     \
    T &one = state[s][k]; \
    [[maybe_unused]] const bool has_##one = has[s];
#define OPTIMIZER(name, work, hypers, needed, states, scalars, ...)                 \
    template <class Element> struct name##_step {                                   \
        using T = Element;                                                          \
        static constexpr int count = 0 NR_EACH(COUNT, NR_UNPACK states);            \
        nr_##name##_hyper h;                                                        \
        T NR_UNPACK scalars;                                                        \
        DEVICE void f(int k, T &param, T grad, T (&state)[NR_OPTIM_STATES][IN_ROW], \
                      const bool (&has)[NR_OPTIM_STATES]) const {                   \
            NR_EACH(REFER, NR_UNPACK states)                                        \
            __VA_ARGS__                                                             \
        }                                                                           \
    };
#include "../optim.def"

/* ---- the kernel ------------------------------------------------------------------------------------------------ */

/* slot: NULL, or the address of the step on the device. */
template <class Step>
__global__ void __launch_bounds__(NR_BLOCK) step_all(const optim_args a, const Step passed, const Step *slot) {
    using T = typename Step::T;
    using D = typename choose<is_same<T, float>, dtype_float32, dtype_float64>::type;
    const Step step = slot ? *slot : passed;
    int64_t i;
    const nr_optim_item &item = item_of(a, &i);
    if (i >= item.n) return;
    const bool wide = is_wide(a, item, i);
    T param[IN_ROW], grad[IN_ROW], state[NR_OPTIM_STATES][IN_ROW] = {};
    bool has[NR_OPTIM_STATES];
    const auto read = [&](T(&to)[IN_ROW], const void *from) {
        load<D, IN_ROW>(to, a.number, {static_cast<const char *>(from), 0, 1}, i, item.n, wide);
    };
    const auto write = [&](void *to, const T(&from)[IN_ROW]) { store<D, IN_ROW>(to, a.number, from, i, item.n, wide); };
    read(param, item.param);
    read(grad, item.grad);
    for (int s = 0; s < NR_OPTIM_STATES; s++) {
        has[s] = s < Step::count && item.state[s];
        if (has[s]) read(state[s], item.state[s]);
    }
    for (int k = 0; k < IN_ROW; k++) step.f(k, param[k], grad[k], state, has);
    for (int s = 0; s < Step::count; s++)
        if (has[s]) write(item.state[s], state[s]);
    write(item.param, param);
}

template <class Step> static int32_t launch(const nr_call *call, const Step &step) {
    const nr_optim_plan &plan = *static_cast<const nr_optim_plan *>(call->plan);
    const Step *slot = static_cast<const Step *>(plan.slot);
    for (int64_t from = 0; from < plan.count; from += AT_ONCE) {
        optim_args a = {};
        int count = 0;
        a.number = call->dtype;
        a.row_bytes = (int32_t)(IN_ROW * nr_library->dtypes[call->dtype].size);
        for (int64_t i = from; i < plan.count && count < AT_ONCE; i++, count++) {
            a.items[count] = plan.items[i];
            a.first_block[count + 1] = a.first_block[count] + blocks_for(plan.items[i].n, A_BLOCK);
        }
        LAUNCH(step_all<Step>, a.first_block[count], NR_BLOCK, 0, gpu_of(call)->stream, a, step, slot);
        NR_TRY(launched(call));
    }
    return NORCH_OK;
}

/* The scalars are computed here, from the hyper-parameters as they are now. */
template <template <class> class Step, class Hyper, class Does>
static int64_t with_dtype(const nr_call *call, const Hyper &hyper, const Does &does) {
    return call->dtype == NORCH_FLOAT64 ? does(Step<double>{hyper}) : does(Step<float>{hyper});
}

/* does(the step of a call) applies the formulas of its row. */
template <class Does> static int64_t with_step(const nr_call *call, const Does &does) {
    const double *hyper = static_cast<const nr_optim_plan *>(call->plan)->hyper;
    switch (call->op) {
#define OPTIMIZER(name, ...) \
    case NR_OPTIM_##name:    \
        return with_dtype<name##_step>(call, *reinterpret_cast<const nr_##name##_hyper *>(hyper), does);
#include "../optim.def"
    }
    return nr_library->fail(NORCH_ERROR_VALUE, "there is no optimizer %d", (int)call->op);
}

int32_t nr_cuda_optim(const nr_call *call) {
    return (int32_t)with_step(call, [&](const auto &step) -> int64_t { return launch(call, step); });
}

int64_t nr_cuda_optim_slot(const nr_call *call, void *to) {
    return with_step(call, [&](const auto &step) -> int64_t {
        if (to) memcpy(to, &step, sizeof step);
        return sizeof step;
    });
}
