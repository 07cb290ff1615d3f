/* plan: one loop nest over all operands, with as few dimensions as their strides allow.
 *
 * A plan is a plain struct that both backends read and a captured call can keep. Dimension 0 is the innermost;
 * broadcasting is stride 0. */
#ifndef NR_PLAN_H
#define NR_PLAN_H

#include "../norch.h"

#define NR_MAX_OPERANDS 4

/* An element in memory of the host. */
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
    int64_t value[NR_MAX_OPERANDS];    /* converted scalars, to which data points; pointwise: of the wide dtype, */
    nr_number number[NR_MAX_OPERANDS]; /* and what they are converted from: nr_call.load reads it */
} nr_plan;

/* Makes the nest over `shape`, to which every tensor broadcasts. The strides of operand 0 decide the order of the loops,
 * then those of the others. */
void nr_plan_make(nr_plan *plan, int32_t ndim, const int64_t *shape, int operands, const norch_tensor *const *xs);
/* The same with the loops in C order, for operations whose result depends on it. */
void nr_plan_in_order(nr_plan *plan, int32_t ndim, const int64_t *shape, int operands, const norch_tensor *const *xs);

/* Merges loops of a nest, innermost first, that are one run in every operand; returns the new ndim. keep_order: does not
 * sort the loops by their strides before. */
int32_t nr_nest_collapse(int32_t ndim, int64_t *size, int operands, int64_t (*stride)[NORCH_MAX_DIMS], int keep_order);

#endif
