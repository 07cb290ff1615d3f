/* reduce: the plan of reductions. */
#ifndef NR_FAMILIES_REDUCE_H
#define NR_FAMILIES_REDUCE_H

#include "../core/fields.h"
#include "../core/plan.h"

/* Two nests: `kept` over the kept axes, of operand 0, the output, and 1, the input; the other over the reduced axes of
 * the input, in C order (size[0] innermost), with strides in bytes. */
NR_PLAN(nr_reduce_plan, NEST(1, kept), NUM(int32_t, ndim), DIMS(p->ndim, int64_t[NORCH_MAX_DIMS], size, stride),
        NUM(int64_t, count), /* elements reduced into each output */
        NUM(double, param), SIZES(p->kept.numel, p->count));

#endif
