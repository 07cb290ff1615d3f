/* cross_entropy: the plan of the cross-entropy of logits with class indices. */
#ifndef NR_FAMILIES_CROSS_ENTROPY_H
#define NR_FAMILIES_CROSS_ENTROPY_H

#include "../core/fields.h"
#include "../norch.h"

/* For a row of n contiguous logits x, with top = max(x) and log_sum = log(sum(exp(x - top))), the loss is log_sum - (1
 * - smoothing) (x[target] - top) - smoothing mean(x - top), or 0 if the target is `ignored`. forward: out = the losses,
 * or if `reduced` their sum, divided, unless count is NULL, by the count of rows that are not ignored; log_sums = top
 * and log_sum of each row. backward: out = the gradient of x from g, that of the result; log_sums and count are read. A
 * target out of range is an error. */
typedef enum nr_cross_entropy_kind { NR_CROSS_ENTROPY_FORWARD, NR_CROSS_ENTROPY_BACKWARD } nr_cross_entropy_kind;
NR_PLAN(nr_cross_entropy_plan, NUM(int64_t, rows, n, ignored, reduced), NUM(double, smoothing), IN(const void *, x, g),
        IN(const int64_t *, target), OUT(void *, out),
        OUT_IF(op == NR_CROSS_ENTROPY_FORWARD, void *, log_sums, count), /* count: one element of the dtype of x */
        SIZES(p->rows, p->n));

#endif
