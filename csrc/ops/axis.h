/* axis: functions for scans and sorts, which run along one axis (scan.c). */
#ifndef NR_AXIS_H
#define NR_AXIS_H

#include "ops.h"

/* x in a dtype that scans and sorts have kernels for (int64, float32, float64): retained or cast. */
norch_tensor *nr_scannable(const norch_tensor *x);
/* A nest over all axes of xs except one; operand 0 determines the sizes. */
void nr_nest_without(nr_plan *nest, int32_t axis, int operands, const norch_tensor *const *xs);
/* Bytes from one element to the next along an axis. */
int64_t nr_step(const norch_tensor *x, int32_t axis);

#endif
