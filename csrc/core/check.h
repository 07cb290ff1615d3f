/* check: what callers may get wrong, a function a rule. Where it is broken, an error that names the operation is noted and
 * the result is not NORCH_OK. */
#ifndef NR_CHECK_H
#define NR_CHECK_H

#include "tensor.h"

/* A tensor that is there and has elements; a dtype that there is. */
int32_t nr_check_tensor(const char *op, const norch_tensor *x);
int32_t nr_check_dtype(const char *op, int64_t dtype);
/* All on one device (0-d CPU tensors go with any). */
int32_t nr_check_devices(const char *op, int n, const norch_tensor *const *xs);
/* Stricter: even what is 0-d must lie where it is read. */
int32_t nr_check_place(const char *op, const norch_tensor *x, const norch_tensor *other);
/* That what is written to has this shape, and the dtype and device of x. */
int32_t nr_check_written(const char *op, const char *what, const norch_tensor *written, const norch_tensor *x,
                         int32_t ndim, const int64_t *shape);
/* float32 or float64, for families without kernels for other dtypes. */
int32_t nr_check_full_float(const char *op, const norch_tensor *x);
/* That a list of integers of a caller has as many as are due. */
int32_t nr_check_numbers(const char *op, int64_t wanted, int64_t given);
/* An axis, which result gets counted from the front. */
int32_t nr_check_axis(const char *op, int64_t axis, int32_t ndim, int32_t *result);
/* Sizes given by a caller: not negative, at most NORCH_MAX_DIMS of them, product within 63 bits. */
int32_t nr_check_shape(const char *op, int64_t ndim, const int64_t *shape);
/* Fails for an expanded tensor, which must not be written to. */
int32_t nr_check_writable(const char *op, const norch_tensor *x);

#endif
