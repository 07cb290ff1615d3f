/* cross_entropy: the plan of the cross-entropy of logits with class indices. */
#ifndef NR_FAMILIES_CROSS_ENTROPY_H
#define NR_FAMILIES_CROSS_ENTROPY_H

#include "../norch.h"

/* Of each row of n logits x, contiguous, with top the largest of them and log_sum = log(sum(exp(x - top))), the loss is log_sum -
 * (1 - smoothing) (x[target] - top) - smoothing mean(x - top), and 0 where the target is `ignored`. forward: out = the losses, or
 * where `reduced` their sum, which is divided by the count of the rows that are not ignored unless count is NULL; log_sums = top
 * and log_sum of each row. backward: out = the gradient of x from that of the result, g; log_sums and count are read. A target out
 * of range is an error. */
typedef enum nr_cross_entropy_kind { NR_CROSS_ENTROPY_FORWARD, NR_CROSS_ENTROPY_BACKWARD } nr_cross_entropy_kind;
typedef struct nr_cross_entropy_plan {
    int64_t rows, n, ignored, reduced;
    double smoothing;
    const void *x, *g;
    const int64_t *target;
    void *out, *log_sums, *count; /* count: one element of the dtype of x */
} nr_cross_entropy_plan;

#endif
