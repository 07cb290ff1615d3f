/* plan: a loop nest over all operands, with as few dimensions as their strides allow. Dimension 0 is the innermost; a
 * broadcast dimension has stride 0.
 *
 * A plan is a plain struct, so that every backend can read it and a recording can copy it. */
#ifndef NR_PLAN_H
#define NR_PLAN_H

#include <stdbool.h>
#include "../norch.h"

#define NR_MAX_OPERANDS 4

/* A scalar in host memory. */
typedef struct nr_number {
    const void *at;
    int32_t dtype;
} nr_number;

typedef struct nr_plan {
    int32_t ndim;
    int32_t operands; /* operand 0 is written, the others are read */
    int64_t size[NORCH_MAX_DIMS];
    int64_t stride[NR_MAX_OPERANDS][NORCH_MAX_DIMS]; /* in bytes */
    char *data[NR_MAX_OPERANDS];
    int64_t numel;
    int64_t value[NR_MAX_OPERANDS];    /* the bits of scalar operands (data points here); pointwise: in a wide dtype */
    nr_number number[NR_MAX_OPERANDS]; /* the scalars that nr_call.load converts to value before each run */
} nr_plan;

/* Whether an operand is a scalar in the plan itself. */
static inline bool nr_in_plan(const nr_plan *plan, int o) { return plan->data[o] == (const char *)&plan->value[o]; }

/* Makes the nest over `shape`, to which every tensor broadcasts. Loops are sorted by the strides of operand 0, then of
 * the others. */
void nr_plan_make(nr_plan *plan, int32_t ndim, const int64_t *shape, int operands, const norch_tensor *const *xs);
/* The same with the loops in C order, for operations whose result depends on the order. */
void nr_plan_in_order(nr_plan *plan, int32_t ndim, const int64_t *shape, int operands, const norch_tensor *const *xs);

/* Merges neighbouring loops of a nest, innermost first, if every operand steps through both with a single stride;
 * returns the new ndim. The loops are sorted by stride first, unless keep_order. */
int32_t nr_nest_collapse(int32_t ndim, int64_t *size, int operands, int64_t (*stride)[NORCH_MAX_DIMS], int keep_order);

#endif
