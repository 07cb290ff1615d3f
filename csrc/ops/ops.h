/* ops: what one family offers to another, inside the library. */
#ifndef NR_OPS_H
#define NR_OPS_H

#include "../core/check.h"
#include "../core/gate.h"
#include "../core/memory.h"

/* pointwise */
/* True in *result when every element of x is non-zero. */
int32_t nr_all_nonzero(const norch_tensor *x, bool *result);

/* copy */
/* src, broadcast to the shape of dst and cast to its dtype; the shapes and devices are checked already and
 * the memory does not overlap. */
int32_t nr_copy_into(norch_tensor *dst, const norch_tensor *src);
/* One element, converted to dtype, into 8 bytes; host memory only. */
void nr_convert_scalar(const norch_tensor *x, int32_t dtype, void *eight_bytes);
/* A number as the memory of a dtype holds it. */
void nr_put_double(int32_t dtype, double value, void *eight_bytes);
void nr_put_integer(int32_t dtype, int64_t value, void *eight_bytes);
/* What is there: in *value for a float, else in *integer. */
void nr_get(int32_t dtype, const void *at, double *value, int64_t *integer);
/* x C-ordered and in a dtype: retained, or a copy. */
norch_tensor *nr_dense(const norch_tensor *x, int32_t dtype);
/* Contiguous copies in the places of those of n operands that are not (NULL: one that is not there). copies, for
 * nr_release_all(): NULL where there was no need; on failure there are none. */
int32_t nr_make_dense(int n, const norch_tensor **xs, norch_tensor **copies);
void nr_release_all(int n, norch_tensor *const *xs);
/* For families without kernels for narrow dtypes (dtypes.def): x cast to the dtype that it is computed in, or retained;
 * and a result cast back, itself released. NULL stays NULL. */
norch_tensor *nr_widened(const norch_tensor *x);
norch_tensor *nr_narrowed(norch_tensor *x, int32_t dtype);

/* scan */
/* x for scans and sorts, which are compiled for int64, float32 and float64: retained, or cast to the one that holds it. */
norch_tensor *nr_scannable(const norch_tensor *x);
/* A nest over all axes of xs (operand 0 decides the sizes) but one; what stands along that one is the caller's. */
void nr_nest_without(nr_plan *nest, int32_t axis, int operands, const norch_tensor *const *xs);
/* Bytes from one element to the next along an axis. */
int64_t nr_step(const norch_tensor *x, int32_t axis);

#endif
