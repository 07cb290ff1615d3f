/* conv: the plan of convolutions and their gradients. */
#ifndef NR_FAMILIES_CONV_H
#define NR_FAMILIES_CONV_H

#include "../norch.h"

/* y[n][o] = bias[o] + sum over channels and taps of x[n][i] weight[o][i], for each group; the other two are its
 * adjoints, x from y and weight, and weight from x and y. Tensors are contiguous: x (batch, groups * in, size), y
 * (batch, groups * out, result), weight (groups * out, in, kernel). Output position p and tap t meet at p * stride + t
 * * dilation - padding; x is 0 outside its size. bias: of the channels that are written, or NULL. sums, of
 * NR_CONV_WEIGHT: the sums of y by channel are written too, unless NULL; only the CPU computes them. */
typedef enum nr_conv_kind { NR_CONV_FORWARD, NR_CONV_INPUT, NR_CONV_WEIGHT } nr_conv_kind;
typedef struct nr_conv_plan {
    int64_t batch, groups, in, out;
    int64_t size[2], result[2], kernel[2], stride[2], padding[2], dilation[2];
    void *x, *y, *weight; /* the kind says which one is written */
    const void *bias;
    void *sums;
} nr_conv_plan;

#endif
