/* scan: the plan of cumsum, cumprod, cummax, cummin and logcumsumexp. */
#ifndef NR_FAMILIES_SCAN_H
#define NR_FAMILIES_SCAN_H

#include "../core/fields.h"
#include "../core/plan.h"
#include "../norch_families.h"

/* n elements along one axis; the nest runs over the other axes, with operand 0 written and operand 1 read. step: bytes
 * from one element to the next, negative for a scan from the end. values, on the CPU only, or NULL: the running
 * extremes themselves, where operand 0, which is dense, gets their indices. The kinds are NORCH_SCAN_... of norch.h. */
NR_PLAN(nr_scan_plan, NEST(1, nest), NUM(int64_t, n), NUM(int64_t[2], step), OUT(void *, values));

#endif
