/* reduce: the plan of reductions. */
#ifndef NR_FAMILIES_REDUCE_H
#define NR_FAMILIES_REDUCE_H

#include "../core/plan.h"

/* kept: operand 0, the output, and 1, the input, over the kept axes; the other nest runs over the
 * reduced axes, in C order (size[0] innermost), strides of the input in bytes. */
typedef struct nr_reduce_plan {
    nr_plan kept;
    int32_t ndim;
    int64_t size[NORCH_MAX_DIMS];
    int64_t stride[NORCH_MAX_DIMS];
    int64_t count; /* elements reduced into each output */
    double param;
} nr_reduce_plan;

#endif
