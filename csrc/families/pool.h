/* pool: the plan of pooling and its gradients. */
#ifndef NR_FAMILIES_POOL_H
#define NR_FAMILIES_POOL_H

#include "../core/fields.h"
#include "../norch.h"

/* Windows over planes (size) into planes (result): window p has the positions p * stride + t * dilation - padding, t <
 * kernel, that are inside the plane; where both strides are 0, the windows divide the plane: window p reaches from p *
 * size / result, rounded down, to (p + 1) * size / result, rounded up. MAX: y and index (the position in the plane)
 * from x. AVG: y from x, the sum divided by divisor, or if that is 0 by the size of the window, with or without
 * padding. BACKWARD: their adjoints, x from y. All are contiguous. */
typedef enum nr_pool_kind { NR_POOL_MAX, NR_POOL_MAX_BACKWARD, NR_POOL_AVG, NR_POOL_AVG_BACKWARD } nr_pool_kind;
NR_PLAN(nr_pool_plan, NUM(int64_t, planes), NUM(int64_t[2], size, result, kernel, stride, padding, dilation),
        NUM(int64_t, count_padding), NUM(double, divisor),
        OUT_IF(op == NR_POOL_MAX_BACKWARD || op == NR_POOL_AVG_BACKWARD, void *, x),
        OUT_IF(op == NR_POOL_MAX || op == NR_POOL_AVG, void *, y), OUT_IF(op == NR_POOL_MAX, int32_t *, index),
        SIZES(p->planes, p->result[0], p->result[1]));

#endif
