/* ops: what one family offers to another, inside the library. */
#ifndef NR_OPS_H
#define NR_OPS_H

#include "../core/call.h"

/* pointwise */
/* True in *result when every element of x is non-zero. */
int32_t nr_all_nonzero(const norch_tensor *x, bool *result);

/* copy */
/* src, broadcast to the shape of dst and cast to its dtype; the shapes and devices are checked already and
 * the memory does not overlap. */
int32_t nr_copy_into(norch_tensor *dst, const norch_tensor *src);
/* One element, converted to dtype, into 8 bytes; host memory only. */
void nr_convert_scalar(const norch_tensor *x, int32_t dtype, void *eight_bytes);

#endif
