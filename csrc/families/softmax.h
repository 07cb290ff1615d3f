/* softmax: the plan of softmax, log_softmax and their gradients. */
#ifndef NR_FAMILIES_SOFTMAX_H
#define NR_FAMILIES_SOFTMAX_H

#include "../core/fields.h"
#include "../norch.h"

/* All dense, (outer, n, inner), normalised along n. forward: out = the result for x. backward: out = the gradient of
 * the input, from x, which is the gradient of the result, and the result. */
typedef enum nr_softmax_kind {
    NR_SOFTMAX_FORWARD,
    NR_LOG_SOFTMAX_FORWARD,
    NR_SOFTMAX_BACKWARD,
    NR_LOG_SOFTMAX_BACKWARD
} nr_softmax_kind;
NR_PLAN(nr_softmax_plan, NUM(int64_t, outer, n, inner), OUT(void *, out), IN(const void *, x, result),
        SIZES(p->outer, p->n, p->inner));

#endif
