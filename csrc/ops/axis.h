/* axis: what scans and sorts, which go along one axis, share (scan.c). */
#ifndef NR_AXIS_H
#define NR_AXIS_H

#include "ops.h"

/* x for scans and sorts, which have kernels for int64, float32 and float64 only: retained, or cast to one of these. */
norch_tensor *nr_scannable(const norch_tensor *x);
/* A nest over all axes of xs but one; operand 0 decides the sizes. */
void nr_nest_without(nr_plan *nest, int32_t axis, int operands, const norch_tensor *const *xs);
/* Bytes from one element to the next along an axis. */
int64_t nr_step(const norch_tensor *x, int32_t axis);

#endif
