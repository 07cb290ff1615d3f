/* scan: the plan of cumsum, cumprod, cummax, cummin and logcumsumexp. */
#ifndef NR_FAMILIES_SCAN_H
#define NR_FAMILIES_SCAN_H

#include "../core/plan.h"

/* n elements along one axis; the nest runs over the other axes, with operand 0 written and operand 1 read. step: bytes
 * from one element to the next, negative for a scan from the end. The kinds are NORCH_SCAN_... of norch.h. */
typedef struct nr_scan_plan {
    nr_plan nest;
    int64_t n, step[2];
} nr_scan_plan;

#endif
