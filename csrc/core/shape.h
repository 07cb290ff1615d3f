/* shape: arithmetic on sizes and strides. */
#ifndef NR_SHAPE_H
#define NR_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

/* The number of elements; false if 16 bytes for each overflow an int64. Sizes must not be negative. */
bool nr_count(int32_t ndim, const int64_t *shape, int64_t *count);
/* Strides of a C-ordered array. */
void nr_fill_strides(int32_t ndim, const int64_t *shape, int64_t *strides);
/* Strides of a dense array whose axes have the memory order of the strides `order`. */
void nr_fill_strides_in_order(int32_t ndim, const int64_t *shape, const int64_t *order, int64_t *strides);
bool nr_is_contiguous(int32_t ndim, const int64_t *shape, const int64_t *strides);
bool nr_same_shape(int32_t ndim_a, const int64_t *a, int32_t ndim_b, const int64_t *b);

/* Broadcasts `out`, in place, with `shape`; on a mismatch returns false, with the dimension of out in *at. */
bool nr_broadcast(int32_t *out_ndim, int64_t *out, int32_t ndim, const int64_t *shape, int32_t *at);
/* Converts a negative axis to count from the front; false if it is out of range (a 0-d tensor has axes -1 and 0). */
bool nr_axis(int64_t axis, int32_t ndim, int32_t *result);

#endif
