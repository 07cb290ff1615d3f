/* check: conditions on elements, made as calls so that a replay checks them too. On a device the elements are read
 * back, so that the error comes at once. A recording's replays must not wait, so their error comes at the next
 * synchronization. */
#include "../families/check.h"

#include "../core/memory.h"
#include "../core/observer.h"
#include "ops.h"

static const char *const texts[] = {
    [NORCH_CHECK_PROBABILITIES] = "binary_cross_entropy: all elements of input and target must lie between 0 and 1",
    [NORCH_CHECK_QUANTILE] = "quantile: q lies in [0, 1]",
    [NORCH_CHECK_NANQUANTILE] = "nanquantile: q lies in [0, 1]",
    [NORCH_CHECK_VARIANCES] = "gaussian_nll_loss: var has negative numbers",
    [NORCH_CHECK_CLASSES] = "one_hot: class values must lie in 0 ... num_classes - 1",
    [NORCH_CHECK_COUNTS] = "cov: fweights has negative numbers",
    [NORCH_CHECK_WEIGHTS] = "cov: aweights has negative numbers",
};

#define DIVISORS ((int32_t)(sizeof texts / sizeof *texts))
_Static_assert(sizeof texts / sizeof *texts < NR_CHECKS, "the divisors' condition is one more");

static int32_t run(const norch_tensor *x, int32_t condition, int32_t error, const char *text) {
    const nr_check_plan plan = {x->numel, x->data, text, error};
    return nr_run(NR_CHECK, condition, &plan, 0.02 * (double)x->numel, x);
}

int32_t nr_check_divisors(const norch_tensor *divisors) {
    NR_OWNED norch_tensor *good = norch_cast(divisors, NORCH_BOOL), *dense = good ? nr_dense(good, NORCH_BOOL) : NULL;
    return dense ? run(dense, DIVISORS, NORCH_ERROR_ZERO_DIVISION, "integer division by zero") : NORCH_ERROR_MEMORY;
}

int32_t norch_check(const norch_tensor *x, int64_t condition) {
    NR_TRY(nr_check_tensor("check", x));
    if (x->dtype != NORCH_BOOL || condition < 0 || condition >= (int64_t)(sizeof texts / sizeof *texts))
        return nr_fail(NORCH_ERROR_DTYPE, "check: expected a bool tensor and a condition");
    NR_OWNED norch_tensor *dense = nr_dense(x, NORCH_BOOL);
    if (!dense) return NORCH_ERROR_MEMORY;
    if (dense->storage->backend->device && !nr_records()) {
        norch_tensor *here = norch_to_device(dense, NORCH_CPU, 0, false);
        nr_release(dense);
        if (!(dense = here)) return NORCH_ERROR_MEMORY;
    }
    return run(dense, (int32_t)condition, NORCH_ERROR_VALUE, texts[condition]);
}
