/* pool: the plan of pooling and its gradients. */
#ifndef NR_FAMILIES_POOL_H
#define NR_FAMILIES_POOL_H

#include "../norch.h"

/* Windows over planes (size) into planes (result): window p has the positions p * stride + t * dilation - padding, t <
 * kernel, that are inside the plane. MAX: y and index (the position in the plane) from x. AVG: y from x, the sum
 * divided by divisor, or if that is 0 by the size of the window, with or without padding. BACKWARD: their adjoints, x
 * from y. All are contiguous. */
typedef enum nr_pool_kind { NR_POOL_MAX, NR_POOL_MAX_BACKWARD, NR_POOL_AVG, NR_POOL_AVG_BACKWARD } nr_pool_kind;
typedef struct nr_pool_plan {
    int64_t planes;
    int64_t size[2], result[2], kernel[2], stride[2], padding[2], dilation[2];
    int64_t count_padding;
    double divisor;
    void *x, *y;
    int32_t *index;
} nr_pool_plan;

#endif
