/* instr: how one call of a program runs, or a chain of calls. */
#define NR_SHARED static inline __attribute__((unused))
#include "../families/optim.h"
#include "../families/random.h"
#include "host_call.h"
#include "layers.h"
#include "program.h"

const double *nr_program_hyper(const nr_call *call) {
    return call->family == NR_OPTIM ? ((const nr_optim_plan *)call->plan)->hyper : NULL;
}

void nr_program_draw(const nr_call *call) {
    nr_random_plan *plan = (nr_random_plan *)(uintptr_t)call->plan;
    plan->seed = plan->state[0];
    plan->counter = plan->state[1];
    plan->state[1] += plan->blocks;
}

static int32_t draw(const nr_call *call) {
    nr_random_plan *plan = (nr_random_plan *)(uintptr_t)call->plan;
    const uint64_t before = plan->state[1];
    if (!plan->slot) nr_program_draw(call);
    const int32_t status = call->backend->run[NR_RANDOM](call);
    if (status != NORCH_OK && !plan->slot) plan->state[1] = before;
    return status;
}

static int32_t load_and_run(const nr_call *call) {
    call->load(call);
    return call->backend->run[call->family](call);
}

static int32_t run_host_call(const nr_call *call) {
    const nr_host_call_plan *plan = call->plan;
    return plan->run(plan);
}

static int32_t run_chain(const nr_call *first) {
    const nr_chain *chain = ((const nr_instr *)first)->chain;
    for (int64_t i = 0; i < chain->count; i++) {
        const nr_call *call = chain->links[i].call;
        if (call->load) call->load(call);
    }
    return chain->links[0].call->backend->chains->run(chain);
}

void nr_program_choose_run(nr_instr *instr) {
    const nr_call *call = &instr->call;
    if (instr->lowered || instr->stored)
        instr->run = nr_run_lowered;
    else if (instr->dead || instr->follows || instr->folded)
        instr->run = NULL;
    else if (instr->chain)
        instr->run = run_chain;
    else if (call->family == NR_HOST_CALL)
        instr->run = run_host_call;
    else if (call->family == NR_RANDOM)
        instr->run = draw;
    else
        instr->run = call->load ? load_and_run : call->backend->run[call->family];
}
