/* softmax: the plan of softmax, log_softmax and their gradients. */
#ifndef NR_FAMILIES_SOFTMAX_H
#define NR_FAMILIES_SOFTMAX_H

#include "../norch.h"

/* All dense, (outer, n, inner), normalised along n. forward: out = the result for x. backward: out = the gradient of the
 * input, from x, which is the gradient of the result, and the result. */
typedef enum nr_softmax_kind {
    NR_SOFTMAX_FORWARD,
    NR_LOG_SOFTMAX_FORWARD,
    NR_SOFTMAX_BACKWARD,
    NR_LOG_SOFTMAX_BACKWARD
} nr_softmax_kind;
typedef struct nr_softmax_plan {
    int64_t outer, n, inner;
    void *out;
    const void *x, *result;
} nr_softmax_plan;

#endif
