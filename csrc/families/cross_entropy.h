/* cross_entropy: the plan of the cross-entropy of logits, and of logarithms of probabilities, with class indices. */
#ifndef NR_FAMILIES_CROSS_ENTROPY_H
#define NR_FAMILIES_CROSS_ENTROPY_H

#include "../core/fields.h"
#include "../norch.h"

/* For a row of n contiguous logits x, with top = max(x) and log_sum = log(sum(exp(x - top))), the loss is log_sum - (1
 * - smoothing) (x[target] - top) - smoothing mean(x - top), or 0 if the target is `ignored`. forward: out = the losses,
 * or if `reduced` their sum, divided, unless count is NULL, by the count of rows that are not ignored; log_sums = top
 * and log_sum of each row. backward: out = the gradient of x from g, that of the result; log_sums and count are read. A
 * target out of range is an error.
 *
 * nll: x are logarithms of probabilities, (rows / inner, n, inner), and the loss of a row is -x[target], times
 * weight[target] unless weight is NULL; count is the sum of these weights. inner is 1 otherwise. */
typedef enum nr_cross_entropy_kind {
    NR_CROSS_ENTROPY_FORWARD,
    NR_CROSS_ENTROPY_BACKWARD,
    NR_NLL_FORWARD,
    NR_NLL_BACKWARD
} nr_cross_entropy_kind;
NR_PLAN(nr_cross_entropy_plan, NUM(int64_t, rows, n, inner, ignored, reduced), NUM(double, smoothing),
        IN(const void *, x, g, weight), IN(const int64_t *, target), OUT(void *, out),
        OUT_IF(op == NR_CROSS_ENTROPY_FORWARD || op == NR_NLL_FORWARD, void *, log_sums,
               count), /* count: of the dtype of x */
        SIZES(p->rows, p->n));

#endif
