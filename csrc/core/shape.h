/* shape: arithmetic of sizes and strides, without memory and dtypes. */
#ifndef NR_SHAPE_H
#define NR_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

/* Number of elements; false if that times 16 bytes overflows an int64. Sizes must not be negative. */
bool nr_count(int32_t ndim, const int64_t *shape, int64_t *count);
/* Strides of a C-ordered array. */
void nr_fill_strides(int32_t ndim, const int64_t *shape, int64_t *strides);
/* Strides of a dense array whose axes have the order in memory that the strides `order` describe. */
void nr_fill_strides_in_order(int32_t ndim, const int64_t *shape, const int64_t *order, int64_t *strides);
bool nr_is_contiguous(int32_t ndim, const int64_t *shape, const int64_t *strides);
bool nr_same_shape(int32_t ndim_a, const int64_t *a, int32_t ndim_b, const int64_t *b);

/* Broadcasts `out`, in place, with `shape`; on a mismatch returns false, with the dimension of out in *at. */
bool nr_broadcast(int32_t *out_ndim, int64_t *out, int32_t ndim, const int64_t *shape, int32_t *at);
/* Makes a negative axis count from the front; false if it is out of range (a 0-d tensor has axes -1 and 0). */
bool nr_axis(int64_t axis, int32_t ndim, int32_t *result);

#endif
