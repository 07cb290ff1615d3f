/* reduce: the plan of reductions. */
#ifndef NR_FAMILIES_REDUCE_H
#define NR_FAMILIES_REDUCE_H

#include "../core/plan.h"

/* Two nests: `kept` over the kept axes, of operand 0, the output, and 1, the input; the other over the reduced axes of
 * the input, in C order (size[0] innermost), with strides in bytes. */
typedef struct nr_reduce_plan {
    nr_plan kept;
    int32_t ndim;
    int64_t size[NORCH_MAX_DIMS];
    int64_t stride[NORCH_MAX_DIMS];
    int64_t count; /* elements reduced into each output */
    double param;
} nr_reduce_plan;

#endif
