/* pool: the plan of pooling and its gradients. */
#ifndef NR_FAMILIES_POOL_H
#define NR_FAMILIES_POOL_H

#include "../norch.h"

/* Windows over planes (size) into planes (result): window p sees p * stride + t * dilation - padding, t below kernel,
 * where that lies inside. max: y and index (the position in the plane) from x; avg: y from x, the sum over divisor, or (0) over the
 * size of the window, with or without its padding. BACK: their adjoints, x from y. All contiguous. */
typedef enum nr_pool_kind { NR_POOL_MAX, NR_POOL_MAX_BACKWARD, NR_POOL_AVG, NR_POOL_AVG_BACKWARD } nr_pool_kind;
typedef struct nr_pool_plan {
    int64_t planes;
    int64_t size[2], result[2], kernel[2], stride[2], padding[2], dilation[2];
    int64_t count_padding;
    double divisor;
    void *x, *y;
    int64_t *index;
} nr_pool_plan;

#endif
