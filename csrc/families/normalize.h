/* normalize: the plan of layer, group and RMS normalisation. */
#ifndef NR_FAMILIES_NORMALIZE_H
#define NR_FAMILIES_NORMALIZE_H

#include "../norch.h"

/* x: rows of n contiguous elements; h = (x - mean) / sqrt(variance + eps), with the statistics of the row, or without
 * the mean. forward: out = h weight + bias. backward: out = the gradient of x from g, that of the output; sums, unless
 * NULL, are those of g h over rows for each weight, then those of g. A weight applies to `each` contiguous elements.
 * The weights run through the rows cyclically: a row has all of them (layer normalisation), or several rows share them
 * (groups). */
typedef enum nr_normalize_kind { NR_NORMALIZE_FORWARD, NR_NORMALIZE_BACKWARD } nr_normalize_kind;
typedef struct nr_normalize_plan {
    int64_t rows, n, weights, each;
    const void *x, *g, *weight, *bias; /* weight, bias: of `weights` elements, or NULL */
    void *out, *sums;
    double eps;
    int64_t centered;
} nr_normalize_plan;

#endif
