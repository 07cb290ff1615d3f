/* cross_entropy: the plan of the cross-entropy of logits with class indices. */
#ifndef NR_FAMILIES_CROSS_ENTROPY_H
#define NR_FAMILIES_CROSS_ENTROPY_H

#include "../norch.h"

/* For a row of n contiguous logits x, with top = max(x) and log_sum = log(sum(exp(x - top))), the loss is log_sum - (1
 * - smoothing) (x[target] - top) - smoothing mean(x - top), or 0 if the target is `ignored`. forward: out = the losses,
 * or if `reduced` their sum, divided, unless count is NULL, by the count of rows that are not ignored; log_sums = top
 * and log_sum of each row. backward: out = the gradient of x from g, that of the result; log_sums and count are read. A
 * target out of range is an error. */
typedef enum nr_cross_entropy_kind { NR_CROSS_ENTROPY_FORWARD, NR_CROSS_ENTROPY_BACKWARD } nr_cross_entropy_kind;
typedef struct nr_cross_entropy_plan {
    int64_t rows, n, ignored, reduced;
    double smoothing;
    const void *x, *g;
    const int64_t *target;
    void *out, *log_sums, *count; /* count: one element of the dtype of x */
} nr_cross_entropy_plan;

#endif
