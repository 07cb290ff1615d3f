/* check: a condition on all elements, which is reported and raised at the next synchronization. */
#include "../families/check.h"
#include "cuda.cuh"

/* The texts of conditions, by number: kernels cannot return texts. */
static const char *texts[NR_CHECKS];
static int32_t errors[NR_CHECKS];

__global__ void __launch_bounds__(NR_BLOCK)
    find_unmet(const uint8_t *x, int64_t n, int64_t condition, volatile nr_report *report) {
    const int64_t i = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= n || x[i]) return;
    report->index = condition;
    report->found = NR_UNMET;
}

int32_t nr_cuda_check(const nr_call *call) {
    const nr_check_plan &plan = *static_cast<const nr_check_plan *>(call->plan);
    if (plan.n == 0) return NORCH_OK;
    if (!texts[call->op]) { /* by the first call, under Python's lock: later ones only read */
        errors[call->op] = plan.error;
        texts[call->op] = plan.text;
    }
    LAUNCH(find_unmet, blocks_for(plan.n, NR_BLOCK), NR_BLOCK, 0, gpu_of(call)->stream,
           static_cast<const uint8_t *>(plan.x), plan.n, (int64_t)call->op, gpu_of(call)->report_on_device);
    return launched(call);
}

int32_t nr_cuda_fail_check(const nr_backend *self, int64_t condition) {
    return nr_library->fail(errors[condition], "%s (an earlier operation on %s)", texts[condition], self->name);
}
