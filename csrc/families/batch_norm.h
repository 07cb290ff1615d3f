/* batch_norm: the plan of batch normalisation. */
#ifndef NR_FAMILIES_BATCH_NORM_H
#define NR_FAMILIES_BATCH_NORM_H

#include "../norch.h"

/* x (batch, channels, inner), contiguous, is seen as h = (x - mean) / sqrt(variance + eps), of its channel. forward: out = h weight
 * + bias; backward: out = the gradient of x from that of the output, g; and in sums, unless it is NULL, for each channel the sum
 * of g h, then of g. TRAINING: the statistics are those of x, with the biased variance: forward writes them, and moves the
 * running ones, unless NULL, towards them (the variance: towards the unbiased one) by momentum; backward reads them. */
typedef enum nr_batch_norm_kind {
    NR_BATCH_NORM_TRAINING,
    NR_BATCH_NORM_EVALUATION,
    NR_BATCH_NORM_TRAINING_BACKWARD,
    NR_BATCH_NORM_EVALUATION_BACKWARD
} nr_batch_norm_kind;
typedef struct nr_batch_norm_plan {
    int64_t batch, channels, inner;
    const void *x, *g, *weight, *bias; /* weight, bias: a number for each channel, or NULL */
    void *out, *mean, *variance, *running_mean, *running_variance, *sums;
    double momentum, eps;
} nr_batch_norm_plan;

#endif
