/* scan: the plan of running sums, products and extremes. */
#ifndef NR_FAMILIES_SCAN_H
#define NR_FAMILIES_SCAN_H

#include "../core/plan.h"

/* Its kinds are NORCH_SCAN_... of norch.h. n elements along one axis, for each place of the other axes: these are the nest, whose operand 0 is written and 1
 * read; step: bytes from one element to the next. A scan may come from behind through negative steps. */
typedef struct nr_scan_plan {
    nr_plan nest;
    int64_t n, step[2];
} nr_scan_plan;

#endif
