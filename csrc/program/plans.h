/* plans: what the plan of a call holds: how many bytes, which addresses, which numbers. */
#ifndef NR_PROGRAM_PLANS_H
#define NR_PROGRAM_PLANS_H

#include "../core/backend.h"

/* Bytes of the plan of a call, without the arrays that it points at; 0: a call that cannot be recorded. */
size_t nr_plan_bytes(const nr_call *call);

/* Called for each address in a plan that is not NULL, and for the numbers that decide what the call does. */
typedef struct nr_plan_visitor {
    void (*address)(void *context, void **at, bool written);
    void (*numbers)(void *context, const void *at, size_t bytes);
    void *context;
} nr_plan_visitor;
void nr_plan_visit(const nr_call *call, void *plan, const nr_plan_visitor *visitor);

/* What a reader of a program sees of a call: its sizes, outermost first; returns their number. */
int32_t nr_plan_sizes(const nr_call *call, int64_t sizes[NORCH_MAX_DIMS]);
/* Multiplications, each with an addition, of products, convolutions and attention; 0: of other families. */
int64_t nr_plan_multiply_adds(const nr_call *call);
/* Bytes of an element of operand o of a pointwise operation, a copy or a reduction. */
int64_t nr_plan_element_size(const nr_call *call, int o);
/* Bytes that a pointwise operation or a copy writes from its first one on, each of them; 0: not so, or another family. */
int64_t nr_plan_dense_bytes(const nr_call *call);
/* Whether the call has no elements, whose addresses may then lie behind those of a storage. */
bool nr_is_empty(const nr_call *call);
/* Whether the call can fail because of values, or does more than write its results. */
bool nr_has_effects(const nr_call *call);

/* Whether a device runs the call by launches alone, of kernels and arguments that only its plan decides, and its plan is
 * the same in each run. */
bool nr_is_launch_only(const nr_call *call);

#endif
