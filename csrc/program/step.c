/* step: runs one call of a program, or a chain of calls. */
#define NR_SHARED static inline __attribute__((unused))
#include "../families/random.h"
#include "host_call.h"
#include "program.h"

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

static int32_t run_chain(const nr_chain *chain) {
    for (int64_t i = 0; i < chain->count; i++) {
        const nr_call *call = chain->links[i].call;
        if (call->load) call->load(call);
    }
    return chain->links[0].call->backend->chains->run(chain);
}

int32_t nr_program_run_step(const nr_step *step) {
    if (step->dead || step->follows) return NORCH_OK;
    if (step->chain) return run_chain(step->chain);
    const nr_call *call = &step->call;
    if (call->load) call->load(call);
    if (call->family == NR_HOST_CALL) {
        const nr_host_call_plan *plan = call->plan;
        return plan->run(plan);
    }
    return call->family == NR_RANDOM ? draw(call) : call->backend->run[call->family](call);
}
