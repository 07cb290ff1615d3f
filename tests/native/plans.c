/* Includes a copy of csrc/program/plans.c in whose declarations each plan, and each struct of an array in one, has three
 * more fields: read, written and number. Prints which of them a visit of each family finds, and how many bytes of a nest
 * no visit does. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "program/plans.c"

const nr_op_row nr_ops[NR_OP_COUNT];
const nr_dtype_row nr_dtypes[NR_DTYPE_COUNT];

static const void *read, *written, *number; /* the fields of the plan that is visited */
static bool found[3];

static void take_address(void *context, void **at, bool writes) {
    (void)context;
    found[0] |= at == read && !writes;
    found[1] |= at == written && writes;
}

static void take_numbers(void *context, const void *at, size_t bytes) {
    (void)context;
    found[2] |= (const char *)number >= (const char *)at && (const char *)number < (const char *)at + bytes;
}

#define VISIT(family_, type, owner, plan_) VISIT_OP(family_, 0, type, owner, plan_)
#define VISIT_OP(family_, op_, type, owner, plan_)                                                       \
    do {                                                                                                 \
        memset(found, 0, sizeof found);                                                                  \
        read = &(owner)->added_read, written = &(owner)->added_written, number = &(owner)->added_number; \
        (owner)->added_read = (owner)->added_written = (void *)&found;                                   \
        nr_plan_visit(&(nr_call){.family = family_, .op = op_}, plan_,                                   \
                      &(nr_plan_visitor){.address = take_address, .numbers = take_numbers});             \
        printf("%s %d %d %d\n", type, found[0], found[1], found[2]);                                     \
    } while (0)

#define VISIT_ITEM(family_, plan_type, item_type, list)   \
    do {                                                  \
        item_type item = {0};                             \
        plan_type plan = {0};                             \
        plan.count = 1, plan.list = &item;                \
        VISIT(family_, #item_type, &item, (void *)&plan); \
    } while (0)

/* ---- bytes of a nest, whose struct is not declared by NR_PLAN ---- */

static nr_pointwise_plan pointwise;
#define nest (pointwise.nest)
static bool seen[sizeof nest];

static void see(const void *at, size_t bytes) {
    const char *from = at;
    for (const char *byte = from; byte < from + bytes; byte++)
        if (byte >= (char *)&nest && byte < (char *)(&nest + 1)) seen[byte - (char *)&nest] = true;
}

static void see_address(void *context, void **at, bool writes) {
    (void)context, (void)writes;
    see(at, sizeof *at);
}

static void see_numbers(void *context, const void *at, size_t bytes) {
    (void)context;
    see(at, bytes);
}

static void convert(const nr_call *call) { (void)call; }

static size_t unseen_bytes(void) {
    for (int pass = 0; pass < 3; pass++) { /* tensors, scalars, scalars that are converted from memory */
        const nr_call call = {.family = NR_POINTWISE, .load = pass == 2 ? convert : NULL};
        nest.ndim = NORCH_MAX_DIMS;
        nest.operands = NR_MAX_OPERANDS;
        for (int o = 0; o < NR_MAX_OPERANDS; o++) {
            nest.data[o] = pass ? (char *)&nest.value[o] : (char *)&found;
            nest.number[o].at = &found;
        }
        nr_plan_visit(&call, &pointwise, &(nr_plan_visitor){.address = see_address, .numbers = see_numbers});
    }
    see(&nest.numel, sizeof nest.numel);      /* the product of the sizes */
    for (int o = 0; o < NR_MAX_OPERANDS; o++) /* and padding */
        see(&nest.number[o].dtype + 1, sizeof nest.number[o] - sizeof(void *) - sizeof nest.number[o].dtype);
    size_t unseen = 0;
    for (size_t i = 0; i < sizeof nest; i++) unseen += !seen[i];
    return unseen;
}

int main(void) {
#define FAMILY(NAME, name, label, traits)                    \
    {                                                        \
        nr_##name##_plan plan;                               \
        memset(&plan, 0, sizeof plan);                       \
        VISIT(NR_##NAME, "nr_" #name "_plan", &plan, &plan); \
    }
#include "families.def"
    nr_host_call_plan call = {0};
    VISIT(NR_HOST_CALL, "nr_host_call_plan", &call, &call);
    nr_nonzero_plan nonzero = {0};
    VISIT_OP(NR_INDEXING, NR_COUNT, "nr_nonzero_plan", &nonzero, &nonzero);
    VISIT_ITEM(NR_OPTIM, nr_optim_plan, nr_optim_item, items);
    VISIT_ITEM(NR_JOIN, nr_join_plan, nr_join_piece, pieces);
    VISIT_ITEM(NR_HOST_CALL, nr_host_call_plan, nr_host_memory, memory);
    printf("nest %zu\n", unseen_bytes());
    return 0;
}
