/* chain: calls that a program runs together (families/chain.h), as one launch: chain.cuh has the picture. */
#include "../families/reduce.h"
#include "chain_compile.cuh"
#include "reduce.cuh"

#define SHORT_ROW 1024   /* elements of rows that a block takes in a few turns */
#define LONG_ROW 8192    /* of other rows, at most, */
#define ROWS_OF_THEM 128 /* if there are enough to keep the device busy */
#define BLOCK_WORTH 1024 /* elements of a block, about */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* The wide dtype that a call computes in, for any narrow dtypes. For a cast to or from bool it is that of the other
 * side. */
static int32_t computes_on(const nr_call *call) {
    const bool from_other = call->family == NR_COPY && call->dtype == NORCH_BOOL;
    return nr_library->dtypes[from_other ? call->from_dtype : call->dtype].wide;
}

static bool takes(const nr_call *call, const nr_call *first) {
    const nr_plan &plan = *static_cast<const nr_plan *>(call->plan); /* of a reduction: its first field */
    const int32_t wide = computes_on(call);
    if (plan.numel > NR_MOST_ELEMENTS || wide != computes_on(first)) return false;
    if (call->family == NR_POINTWISE || call->family == NR_REDUCTION) return true;
    const int32_t from = call->from_dtype;
    if (is_immediate(plan, 1)) return from == wide; /* a number in the plan is as wide as it is in memory */
    return call->family == NR_COPY && (from == NORCH_BOOL || nr_library->dtypes[from].wide == wide);
}

static bool takes_rows(int64_t rows, int64_t row) {
    return row <= (rows < ROWS_OF_THEM ? SHORT_ROW : LONG_ROW) && rows <= NR_MOST_ELEMENTS / row;
}

static int32_t reduces(const nr_call *call) {
    const nr_reduce_plan &plan = *static_cast<const nr_reduce_plan *>(call->plan);
    bool narrow;
    return plan.count > 1 && nr_cuda_row_team(call, plan.kept.data[1], &narrow) > 0 ? NR_INTO_ROW : -1;
}

static chain_kernels kernels_of(int32_t dtype) {
    switch (dtype) {
#define WIDE(NAME, name, ...) \
    case NORCH_##NAME: return nr_chain_kernels_##name();
#define NARROW(...)
#include "../dtypes.def"
    }
    return {};
}

/* The arguments of a launch, under construction. */
struct maker {
    const nr_chain *chain;
    chain_args a;
    int used, reductions;

    chain_operand in_memory(const nr_link &link, int o) const {
        chain_operand x = {};
        x.data = static_cast<const nr_plan *>(link.call->plan)->data[o];
        for (int32_t d = 0; d < chain->ndim; d++) x.stride[d] = link.step[o][d];
        return x;
    }

    /* The register of operand o, or a new entry of the operands. */
    uint8_t place(const nr_link &link, int o) {
        if (link.buffer[o] != NR_IN_MEMORY) return (uint8_t)link.buffer[o];
        const nr_plan &plan = *static_cast<const nr_plan *>(link.call->plan);
        chain_operand &x = a.operands[used];
        if (is_immediate(plan, o)) {
            const bool condition =
                o == 1 && link.call->family == NR_POINTWISE && nr_library->ops[link.call->op].form == NR_CHOICE;
            memcpy(x.stride, &plan.value[o], condition ? 1 : (size_t)nr_library->dtypes[computes_on(link.call)].size);
        } else {
            x = in_memory(link, o);
        }
        return (uint8_t)(NR_CHAIN_REGISTERS + used++);
    }

    /* A register has the address of the recording. Addresses of later runs have the same alignment. */
    void add_reduction(const nr_link &link) {
        const nr_reduce_plan &plan = *static_cast<const nr_reduce_plan *>(link.call->plan);
        chain_reduction &r = a.reductions[reductions++];
        r.from = in_memory(link, 1);
        r.team = nr_cuda_row_team(link.call, r.from.data, &r.narrow);
        r.dense = plan.stride[0] == nr_library->dtypes[link.call->dtype].size;
        r.param = plan.param;
    }

    chain_step step_of(const nr_link &link) {
        const nr_call *call = link.call;
        const bool copies = call->family == NR_COPY, reduces = link.role == NR_INTO_ROW;
        const nr_op_row *row = copies ? nullptr : &nr_library->ops[call->op];
        chain_step step = {};
        step.op = copies ? NR_CHAIN_COPY : (uint8_t)call->op;
        step.role = (uint8_t)link.role;
        step.from = (uint8_t)(copies ? call->from_dtype : call->dtype);
        step.first = row && row->form == NR_CHOICE ? (uint8_t)NORCH_BOOL : step.from;
        step.to = (uint8_t)(row && row->result == NR_TRUTH ? NORCH_BOOL : call->dtype);
        if (reduces) {
            step.in[0] = link.buffer[1] == NR_IN_MEMORY ? NR_CHAIN_REGISTERS : (uint8_t)link.buffer[1];
            step.in[1] = (uint8_t)reductions;
            add_reduction(link);
        } else {
            step.inputs = (uint8_t)(static_cast<const nr_plan *>(call->plan)->operands - 1);
            for (int o = 0; o < step.inputs; o++) step.in[o] = place(link, o + 1);
        }
        step.out = place(link, 0);
        return step;
    }

    /* Chooses the number of rows of a block, which does not affect the order of sums, places the registers, and returns
     * their bytes. */
    size_t lay_out_rows(const nr_gpu *gpu, int64_t size) {
        uint32_t has = 0, next = 0;
        for (int64_t i = 0; i < chain->count; i++) {
            const nr_link &link = chain->links[i];
            if (link.buffer[0] == NR_IN_MEMORY) continue;
            has |= 1u << link.buffer[0];
            a.by_row |= (uint32_t)(link.role != NR_EACH) << link.buffer[0];
        }
        int64_t words = 0, most = ceil_div(BLOCK_WORTH, chain->row);
        for (int r = 0; r < NR_CHAIN_REGISTERS; r++)
            if (has >> r & 1) words += a.by_row >> r & 1 ? 1 : chain->row;
        most = least(most, ceil_div(chain->tiles, gpu->multiprocessors));
        if (words) most = least(most, NR_CHAIN_SHARED / (words * size));
        for (int k = 0; k < reductions; k++) most = least(most, NR_BLOCK / a.reductions[k].team);
        a.rows = (int32_t)most;
        for (int r = 0; r < NR_CHAIN_REGISTERS; r++) {
            a.at[r] = next;
            if (has >> r & 1) next += (uint32_t)(most * (a.by_row >> r & 1 ? 1 : chain->row));
        }
        return (size_t)(next * size);
    }
};

static int32_t run(const nr_chain *chain) {
    const nr_call *first = chain->links[0].call;
    const nr_gpu *gpu = gpu_of(first);
    NR_TRY(nr_cuda_enter(first->backend));
    maker m = {chain, {}, 0, 0};
    chain_args &a = m.a;
    a.n = (uint32_t)chain->tiles;
    a.count = (int32_t)chain->count;
    a.ndim = chain->ndim;
    a.row = divisor_of(chain->row);
    for (int32_t d = 0; d < a.ndim; d++) a.size[d] = divisor_of(chain->size[d]);
    for (int64_t i = 0; i < chain->count; i++) a.steps[i] = m.step_of(chain->links[i]);
    const int32_t dtype = computes_on(first);
    const bool rows = chain->row > 1;
    for (uint32_t r = 0; r < NR_CHAIN_REGISTERS; r++) a.at[r] = r * NR_BLOCK;
    const size_t shared = rows ? m.lay_out_rows(gpu, nr_library->dtypes[dtype].size) : 0;
    const unsigned blocks = blocks_for(a.n, rows ? a.rows : NR_BLOCK);
    if (!nr_cuda_run_compiled(gpu, a, dtype, rows, blocks, shared)) {
        void (*const walk)(chain_args) = rows ? kernels_of(dtype).rows : kernels_of(dtype).elements;
        LAUNCH(walk, blocks, NR_BLOCK, shared, gpu->stream, a);
    }
    return launched(first);
}

const nr_chain_runner nr_cuda_chains = {true, takes, reduces, takes_rows, 0, run};
