/* optim: the plan of optimizer steps, and their rows. */
#ifndef NR_FAMILIES_OPTIM_H
#define NR_FAMILIES_OPTIM_H

#include "../core/fields.h"
#include "../norch.h"

/* For each row of optim.def its number and the struct of its hyperparameters. */
#define NR_UNPACK(...) __VA_ARGS__
typedef enum nr_optim_kind {
#define OPTIMIZER(name, ...) NR_OPTIM_##name,
#include "../optim.def"
    NR_OPTIM_COUNT
} nr_optim_kind;
#define OPTIMIZER(name, work, hypers, ...) \
    typedef struct nr_##name##_hyper {     \
        double NR_UNPACK hypers;           \
    } nr_##name##_hyper;
#include "../optim.def"

/* NR_EACH(M, a, b, c) = M(0, a) M(1, b) M(2, c): the state tensors of a row, up to three. */
#define NR_EACH(...) NR_EACH_PICK(__VA_ARGS__, NR_EACH3, NR_EACH2, NR_EACH1, )(__VA_ARGS__)
#define NR_EACH_PICK(m, a, b, c, name, ...) name
#define NR_EACH1(m, a) m(0, a)
#define NR_EACH2(m, a, b) m(0, a) m(1, b)
#define NR_EACH3(m, a, b, c) m(0, a) m(1, b) m(2, c)
#define NR_OPTIM_STATES 3

/* The tensors of a step: n elements each, contiguous; a missing state tensor is NULL. hyper points at the struct of the
 * call's kind in memory of the caller, and is read when the call runs, so that replays see changed options. */
NR_PLAN(nr_optim_item, OUT(void *, param), IN(const void *, grad), OUT(void *[NR_OPTIM_STATES], state),
        NUM(int64_t, n));
NR_PLAN(nr_optim_plan, ITEMS(nr_optim_item, items, count), OTHER(const double *, hyper),
        OTHER(const void *, slot), /* see core/device.h */
        SIZES(SUM(p->count, p->items[i].n)));

#endif
