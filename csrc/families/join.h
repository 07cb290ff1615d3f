/* join: the plan of cat and stack where they copy many tensors in one call. */
#ifndef NR_FAMILIES_JOIN_H
#define NR_FAMILIES_JOIN_H

#include "../core/fields.h"
#include "../norch.h"

#define NR_JOIN_PIECES 64 /* of a call, at most: they travel with a device's launch */

/* A tensor, and its part of the result: rows of `width` contiguous bytes, to_step and from_step bytes apart. */
NR_PLAN(nr_join_piece, OUT(void *, to), IN(const void *, from), NUM(int64_t, to_step, from_step, rows, width));
NR_PLAN(nr_join_plan, ITEMS(nr_join_piece, pieces, count),
        SIZES(p->count, SUM(p->count, p->pieces[i].rows * p->pieces[i].width) / nr_size_of(call->dtype)));

#endif
