/* check: a condition on all elements. */
#include "../families/check.h"

#include <string.h>

#include "../core/error.h"
#include "cpu.h"

int32_t nr_run_check(const nr_call *call) {
    const nr_check_plan *plan = call->plan;
    if (plan->n == 0 || !memchr(plan->x, 0, (size_t)plan->n)) return NORCH_OK;
    return nr_fail(plan->error, "%s", plan->text);
}
