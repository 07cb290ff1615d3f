/* batch_norm: the plan of batch normalisation. */
#ifndef NR_FAMILIES_BATCH_NORM_H
#define NR_FAMILIES_BATCH_NORM_H

#include "../core/fields.h"
#include "../norch.h"
#include "normalize.h"

/* x (batch, channels, inner) is contiguous; h = (x - mean) / sqrt(variance + eps), with the statistics of each channel.
 * forward: out = h weight + bias. backward: grad_x from g, the gradient of out; grad_affine (2, channels), unless NULL:
 * the gradients of weight and of bias, sums of g h and of g. TRAINING: the statistics are those of x, with the biased
 * variance. The forward kind writes them, and updates the running ones, unless NULL, with momentum (with the unbiased
 * variance); the backward kind reads them. */
typedef enum nr_batch_norm_kind {
    NR_BATCH_NORM_TRAINING,
    NR_BATCH_NORM_EVALUATION,
    NR_BATCH_NORM_TRAINING_BACKWARD,
    NR_BATCH_NORM_EVALUATION_BACKWARD
} nr_batch_norm_kind;
NR_PLAN(nr_batch_norm_plan, NUM(int64_t, batch, channels, inner),
        IN(const void *, x, g, weight, bias), /* weight, bias: a number for each channel, or NULL */
        OUT_IF(op == NR_BATCH_NORM_TRAINING, void *, mean, variance),
        OUT(void *, out, running_mean, running_variance, grad_x, grad_affine), NUM(double, momentum, eps),
        SIZES(p->batch, p->channels, p->inner));

#endif
