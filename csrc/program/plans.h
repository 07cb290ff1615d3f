/* plans: the properties of plans that a program uses in all families: size, addresses, and numbers that identify a
 * call. */
#ifndef NR_PROGRAM_PLANS_H
#define NR_PROGRAM_PLANS_H

#include "../core/backend.h"

/* The bytes of the plan of a call, without the arrays that it points at; 0 if the call cannot be recorded. */
size_t nr_plan_bytes(const nr_call *call);

/* What to call, unless it is NULL: for each address of a tensor in a plan, if it is not NULL; for the numbers that
 * decide what the call does; for each array that the plan points at, and each nest, before what is in them; and for the
 * sizes to show to a user, of which the last are meant. */
typedef struct nr_plan_visitor {
    void (*address)(void *context, void **at, bool written);
    void (*numbers)(void *context, const void *at, size_t bytes);
    void (*items)(void *context, const void **at, size_t bytes);
    void (*nest)(void *context, nr_plan *nest);
    void (*sizes)(void *context, int32_t count, const int64_t *sizes);
    void *context;
} nr_plan_visitor;
void nr_plan_visit(const nr_call *call, void *plan, const nr_plan_visitor *visitor);

/* The sizes of a call to show to a user, outermost first; returns their number. */
int32_t nr_plan_sizes(const nr_call *call, int64_t sizes[NORCH_MAX_DIMS]);
/* Multiply-adds of matrix products, convolutions and attention; 0 for other families. */
int64_t nr_plan_multiply_adds(const nr_call *call);
/* Bytes of an element of operand o of a pointwise operation, a copy or a reduction. */
int64_t nr_plan_element_size(const nr_call *call, int o);
/* The size of the contiguous range of bytes that a pointwise operation or a copy overwrites; 0: not contiguous, or
 * another family. */
int64_t nr_plan_dense_bytes(const nr_call *call);
/* Whether the call has no elements; then its addresses may be outside of any storage. */
bool nr_is_empty(const nr_call *call);
/* Whether the call is a division of integers, which fails if one is by 0. */
bool nr_divides(const nr_call *call);
/* Whether the call can fail because of values, or does more than write its results. */
bool nr_has_effects(const nr_call *call);

/* Whether a device runs the call by kernel launches alone, which depend on its plan only, and the plan is the same in
 * each run. */
bool nr_is_launch_only(const nr_call *call);

#endif
