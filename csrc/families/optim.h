/* optim: the plan of optimizer steps. */
#ifndef NR_FAMILIES_OPTIM_H
#define NR_FAMILIES_OPTIM_H

#include "../norch.h"

/* The tensors of an optimizer step: n elements each, contiguous; buffers as the kind needs them. */
typedef enum nr_optim_kind { NR_SGD, NR_ADAM, NR_RMSPROP, NR_ADAGRAD } nr_optim_kind;
typedef struct nr_optim_item {
    void *param, *first, *second, *third;
    const void *grad;
    int64_t n;
} nr_optim_item;
typedef struct nr_optim_plan {
    const nr_optim_item *items;
    int64_t count;
    const double *hyper;
    int32_t fresh; /* sgd: the momentum is not yet set */
} nr_optim_plan;

#endif
