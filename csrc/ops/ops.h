/* ops: functions that several families use, ordered by file. */
#ifndef NR_OPS_H
#define NR_OPS_H

#include "../core/element.h"
#include "../core/check.h"
#include "../core/dispatch.h"
#include "../core/memory.h"
#include "../norch_families.h"

/* arguments */
/* An output has this shape, and the dtype and device of x. */
int32_t nr_check_written(const char *op, const char *role, const norch_tensor *written, const norch_tensor *x,
                         int32_t ndim, const int64_t *shape);
/* float32 or float64: for families without kernels for other dtypes. */
int32_t nr_check_full_float(const char *op, const norch_tensor *x);
/* A list of integers has the expected length. */
int32_t nr_check_numbers(const char *op, int64_t wanted, int64_t count);

/* pointwise */
/* Sets *result to whether every element of x is non-zero. */
int32_t nr_all_nonzero(const norch_tensor *x, bool *result);
/* Makes a call that fails if an element is 0; on a device at the next synchronization. */
int32_t nr_check_divisors(const norch_tensor *divisors);

/* numbers */
static inline bool nr_is_integer(int32_t dtype) { return nr_dtypes[dtype].kind == 'i' || nr_dtypes[dtype].kind == 'u'; }
/* Checks the Python integers among the operands of a call on an integer dtype other than int64 (mark: follows the name
 * in messages). by_value: one is out of the dtype's range, so the call must be computed in int64. */
int32_t nr_admit_numbers(const char *mark, int32_t op, int n, const norch_tensor *const *operands, int32_t dtype,
                         bool *by_value);
/* Checks that a dtype can hold x, if x is a Python number. */
int32_t nr_check_stored(const char *op, const norch_tensor *x, int32_t dtype);

/* copy */
/* Copies src, broadcast to the shape of dst and cast to its dtype. The caller has checked shapes and devices; the
 * memory must not overlap. */
int32_t nr_copy_into(norch_tensor *dst, const norch_tensor *src);
/* Makes operand o a scalar inside the plan, which the call's load converts from the one element of x. */
void nr_plan_number(nr_plan *plan, int o, const norch_tensor *x);
/* Converts scalar operand o of a plan to dtype, inside the plan. */
void nr_load_number(const nr_plan *plan, int o, int32_t dtype);
/* The one element of x, cast to a complex dtype, as a tensor on the device of `where`. */
norch_tensor *nr_complex_number(const norch_tensor *x, int32_t dtype, const norch_tensor *where);
/* x, retained, if it is contiguous and of this dtype; else a copy that is. */
norch_tensor *nr_dense(const norch_tensor *x, int32_t dtype);
/* Replaces those of n operands (or NULL) that are not contiguous by copies, which the caller releases by
 * nr_release_all(copies). A copy is NULL if none was needed, or after a failure. */
int32_t nr_make_dense(int n, const norch_tensor **xs, norch_tensor **copies);
void nr_release_all(int n, norch_tensor *const *xs);
/* For families without kernels for narrow dtypes (dtypes.def): x cast to its wide dtype, or retained; and a result cast
 * back to dtype, which releases the wide one. NULL stays NULL. */
norch_tensor *nr_widened(const norch_tensor *x);
/* The same with the memory layout of x, for products, which take any layout: a transposing copy takes ten times as
 * long. */
norch_tensor *nr_widened_as_laid(const norch_tensor *x);
norch_tensor *nr_narrowed(norch_tensor *x, int32_t dtype);
/* Whether x must be widened before the family's kernels on its device: its dtype is narrow, and they do not take it. */
bool nr_needs_widening(const norch_tensor *x, nr_family family);

/* join */
/* A header on the stack over the part of y from position `at` along axis: `size` elements, `step` apart. */
norch_tensor nr_sliced(const norch_tensor *y, int32_t axis, int64_t at, int64_t size, int64_t step);

/* complex */
/* The real (0) or the imaginary (1) parts of x, a view. */
norch_tensor *nr_part(const norch_tensor *x, int32_t which);
/* norch_view_as_complex() that releases its argument; NULL stays NULL. */
norch_tensor *nr_whole(norch_tensor *parts);

#endif
