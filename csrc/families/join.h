/* join: the plan of cat and stack where they copy many tensors in one call. */
#ifndef NR_FAMILIES_JOIN_H
#define NR_FAMILIES_JOIN_H

#include "../norch.h"

#define NR_JOIN_PIECES 64 /* of a call, at most: they travel with a device's launch */

/* A tensor, and its part of the result: rows of `width` contiguous bytes, to_step and from_step bytes apart. */
typedef struct nr_join_piece {
    void *to;
    const void *from;
    int64_t to_step, from_step, rows, width;
} nr_join_piece;
typedef struct nr_join_plan {
    const nr_join_piece *pieces;
    int64_t count;
} nr_join_plan;

#endif
