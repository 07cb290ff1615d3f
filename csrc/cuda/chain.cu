/* chain: calls that a program runs together (families/chain.h), as one launch: chain.cuh has the picture. */
#include "chain.cuh"

/* The wide dtype that a call computes on, whichever its narrow ones are; a cast to or from bool that of the other side. */
static int32_t computes_on(const nr_call *call) {
    const bool from_other = call->family == NR_COPY && call->dtype == NORCH_BOOL;
    return nr_library->dtypes[from_other ? call->from_dtype : call->dtype].wide;
}

static bool takes(const nr_call *call, const nr_call *first) {
    const nr_plan &plan = *static_cast<const nr_plan *>(call->plan);
    const int32_t wide = computes_on(call);
    if (plan.numel > NR_MOST_ELEMENTS || wide != computes_on(first)) return false;
    if (call->family == NR_POINTWISE) return true;
    const int32_t from = call->from_dtype;
    if (is_immediate(plan, 1)) return from == wide; /* a number in the plan is as wide as it is in memory */
    return call->family == NR_COPY && (from == NORCH_BOOL || nr_library->dtypes[from].wide == wide);
}

static chain_kernel kernel_of(int32_t dtype) {
    switch (dtype) {
#define WIDE(NAME, name, ...) \
    case NORCH_##NAME: return nr_chain_kernel_##name();
#define NARROW(...)
#include "../dtypes.def"
    }
    return nullptr;
}

/* The register of operand o, or a new entry of the operands. */
static uint8_t place(chain_args *a, const nr_chain *chain, const nr_link &link, int o, int *used) {
    if (link.buffer[o] != NR_IN_MEMORY) return (uint8_t)link.buffer[o];
    const nr_plan &plan = *static_cast<const nr_plan *>(link.call->plan);
    chain_operand &x = a->operands[*used];
    if (is_immediate(plan, o)) {
        const bool condition =
            o == 1 && link.call->family == NR_POINTWISE && nr_library->ops[link.call->op].form == NR_CHOICE;
        memcpy(x.stride, &plan.value[o], condition ? 1 : (size_t)nr_library->dtypes[computes_on(link.call)].size);
    } else {
        x.data = plan.data[o];
        for (int32_t d = 0; d < chain->ndim; d++) x.stride[d] = link.step[o][d];
    }
    return (uint8_t)(NR_CHAIN_REGISTERS + (*used)++);
}

static chain_step step_of(chain_args *a, const nr_chain *chain, const nr_link &link, int *used) {
    const nr_call *call = link.call;
    const bool copies = call->family == NR_COPY;
    const nr_op_row *row = copies ? nullptr : &nr_library->ops[call->op];
    chain_step step = {};
    step.op = copies ? NR_CHAIN_COPY : (uint8_t)call->op;
    step.inputs = (uint8_t)(static_cast<const nr_plan *>(call->plan)->operands - 1);
    step.from = (uint8_t)(copies ? call->from_dtype : call->dtype);
    step.first = row && row->form == NR_CHOICE ? (uint8_t)NORCH_BOOL : step.from;
    step.to = (uint8_t)(row && row->result == NR_TRUTH ? NORCH_BOOL : call->dtype);
    for (int o = 0; o < step.inputs; o++) step.in[o] = place(a, chain, link, o + 1, used);
    step.out = place(a, chain, link, 0, used);
    return step;
}

static int32_t run(const nr_chain *chain) {
    const nr_call *first = chain->links[0].call;
    NR_TRY(nr_cuda_enter(first->backend));
    chain_args a = {};
    int used = 0;
    a.n = (uint32_t)chain->tiles;
    a.count = (int32_t)chain->count;
    a.ndim = chain->ndim;
    for (int32_t d = 0; d < a.ndim; d++) a.size[d] = divisor_of(chain->size[d]);
    for (int64_t i = 0; i < chain->count; i++) a.steps[i] = step_of(&a, chain, chain->links[i], &used);
    LAUNCH(kernel_of(computes_on(first)), blocks_for(a.n, NR_BLOCK), NR_BLOCK, 0, gpu_of(first)->stream, a);
    return launched(first);
}

const nr_chain_runner nr_cuda_chains = {true, takes, nullptr, 0, run};
