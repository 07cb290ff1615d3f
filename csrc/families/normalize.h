/* normalize: the plan of layer, group and RMS normalisation, and the range of variances. */
#ifndef NR_FAMILIES_NORMALIZE_H
#define NR_FAMILIES_NORMALIZE_H

#include <stdbool.h>
#include "../core/fields.h"
#include "../norch.h"

/* Whether sums of squares in T may have lost a variance that is added to eps: float
 * overflows, or the squares vanish. */
#define NR_IS_OUT_OF_RANGE(T, variance, eps) \
    (sizeof(T) == sizeof(float) && (!((variance) < 1e30) || ((variance) < 1e-30 && (eps) < 1e-24)))

/* x: rows of n contiguous elements; h = (x - mean) / sqrt(variance + eps), with the statistics of the row, or without
 * the mean. forward: out = h weight + bias. backward: grad_x from g, the gradient of out; grad_affine (2, weights),
 * unless NULL: the gradients of weight and of bias, sums of g h and of g over rows. A weight applies to `inner`
 * contiguous elements. The weights run through the rows cyclically: a row has all of them (layer normalisation), or
 * several rows share them (groups). affine_dtype is that of weight, bias and grad_affine: the rows', or of narrow rows
 * their wide one. */
typedef enum nr_normalize_kind { NR_NORMALIZE_FORWARD, NR_NORMALIZE_BACKWARD } nr_normalize_kind;
NR_PLAN(nr_normalize_plan, NUM(int64_t, rows, n, weights, inner),
        IN(const void *, x, g, weight, bias), /* weight, bias: of `weights` elements, or NULL */
        OUT(void *, out, grad_x, grad_affine), NUM(double, eps), NUM(int32_t, affine_dtype), NUM(bool, centered),
        SIZES(p->rows, p->n));

#endif
