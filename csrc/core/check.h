/* check: argument checks, one function for each rule. If a rule is broken, the function sets an error that names the
 * operation, and returns the kind of error. */
#ifndef NR_CHECK_H
#define NR_CHECK_H

#include "tensor.h"

/* x is not NULL, and has a storage. */
int32_t nr_check_tensor(const char *op, const norch_tensor *x);
/* The same, and not complex; nr_refuse_complex() sets the error. */
int32_t nr_check_real(const char *op, const norch_tensor *x);
int32_t nr_refuse_complex(const char *op, int32_t dtype);
/* A number of a dtype of dtypes.def. */
int32_t nr_check_dtype(const char *op, int64_t dtype);
/* All on one device; 0-d CPU tensors may be combined with any. */
int32_t nr_check_devices(const char *op, int n, const norch_tensor *const *xs);
/* Stricter: no exception for 0-d tensors. */
int32_t nr_check_same_device(const char *op, const norch_tensor *x, const norch_tensor *other);
/* An axis in range; *result is the same axis, not negative. */
int32_t nr_check_axis(const char *op, int64_t axis, int32_t ndim, int32_t *result);
/* Sizes: not negative, at most NORCH_MAX_DIMS of them, product within 63 bits. */
int32_t nr_check_shape(const char *op, int64_t ndim, const int64_t *shape);
/* Not expanded: no two elements share memory. */
int32_t nr_check_writable(const char *op, const norch_tensor *x);

#endif
