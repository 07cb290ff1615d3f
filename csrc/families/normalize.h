/* normalize: the plan of layer, group and RMS normalisation. */
#ifndef NR_FAMILIES_NORMALIZE_H
#define NR_FAMILIES_NORMALIZE_H

#include "../norch.h"

/* Rows of n contiguous elements, seen as h = (x - mean) / sqrt(variance + eps), or without the mean. forward: out = h weight +
 * bias; back: out = the gradient of x from that of the output, g; and in sums, unless it is NULL, the sums over rows of g h, then
 * of g. Of the weights, each stands for `each` elements, and a row of n elements goes on where the row before it ended, from the
 * last weight to the first: all of them in each row, or in a few (groups). */
typedef enum nr_normalize_kind { NR_NORMALIZE_FORWARD, NR_NORMALIZE_BACKWARD } nr_normalize_kind;
typedef struct nr_normalize_plan {
    int64_t rows, n, weights, each;
    const void *x, *g, *weight, *bias; /* weight, bias: of `weights` elements, or NULL */
    void *out, *sums;
    double eps;
    int64_t centered;
} nr_normalize_plan;

#endif
