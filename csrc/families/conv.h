/* conv: the plan of convolutions and their gradients. */
#ifndef NR_FAMILIES_CONV_H
#define NR_FAMILIES_CONV_H

#include "../core/fields.h"
#include "../norch.h"

/* y[n][o] = bias[o] + sum over channels and taps of x[n][i] weight[o][i], for each group; the other two are its
 * adjoints, x from y and weight, and weight from x and y. Tensors are contiguous: x (batch, groups * in, size), y
 * (batch, groups * out, result), weight (groups * out, in, kernel). Output position p and tap t meet at p * stride + t
 * * dilation - padding; x is 0 outside its size. bias: of the channels that are written, or NULL. sums, of
 * NR_CONV_WEIGHT: the sums of y by channel are written too, unless NULL; only the CPU computes them. */
typedef enum nr_conv_kind { NR_CONV_FORWARD, NR_CONV_INPUT, NR_CONV_WEIGHT } nr_conv_kind;
NR_PLAN(nr_conv_plan, NUM(int64_t, batch, groups, in, out),
        NUM(int64_t[2], size, result, kernel, stride, padding, dilation), OUT_IF(op == NR_CONV_INPUT, void *, x),
        OUT_IF(op == NR_CONV_FORWARD, void *, y), OUT_IF(op == NR_CONV_WEIGHT, void *, weight), IN(const void *, bias),
        OUT(void *, sums), SIZES(p->batch, p->groups * p->out, p->result[0], p->result[1]));

#endif
