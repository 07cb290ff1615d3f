/* plan: operands become one loop nest with as few dimensions as their strides allow.
 *
 * A plan is a plain struct: both backends eat it, and a captured call can keep it. Dimension 0 is
 * the innermost; broadcasting is stride 0. */
#ifndef NR_PLAN_H
#define NR_PLAN_H

#include "../norch.h"

#define NR_MAX_OPERANDS 4

typedef struct nr_plan {
    int32_t ndim;
    int32_t operands; /* operand 0 is written, the others are read */
    int64_t size[NORCH_MAX_DIMS];
    int64_t stride[NR_MAX_OPERANDS][NORCH_MAX_DIMS]; /* in bytes */
    char *data[NR_MAX_OPERANDS];
    int64_t numel;
    int64_t value[NR_MAX_OPERANDS]; /* scalars that were converted on the way; for pointwise wide, not narrow */
} nr_plan;

/* Lays the loops over `shape`; every tensor must broadcast to it. The order of the loops follows the
 * strides of operand 0, then of the others. */
void nr_plan_make(nr_plan *plan, int32_t ndim, const int64_t *shape, int operands, const norch_tensor *const *xs);
/* The same with the loops in C order, for operations whose result depends on it. */
void nr_plan_in_order(nr_plan *plan, int32_t ndim, const int64_t *shape, int operands, const norch_tensor *const *xs);

/* A nest without its operands: collapses (size, stride[..]) of ndim loops, innermost first, where
 * neighbours are one run for every operand; gives the new ndim. keep_order: merge, do not reorder. */
int32_t nr_nest_collapse(int32_t ndim, int64_t *size, int operands, int64_t (*stride)[NORCH_MAX_DIMS], int keep_order);

#endif
