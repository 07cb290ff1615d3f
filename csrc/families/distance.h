/* distance: the plan of distances between rows. */
#ifndef NR_FAMILIES_DISTANCE_H
#define NR_FAMILIES_DISTANCE_H

#include "../core/fields.h"
#include "../norch.h"

/* Of each pair of matrices of a batch, a (rows, width) and b (columns, width), all contiguous.
 *
 * FORWARD: out (rows, columns), the norms of the differences of two rows: the sum of absolute values (norm 1), the root
 * of the sum of squares (2) or the largest absolute value (0).
 * PAIRS: b is a, and out has only the differences with later rows, in order.
 * BACKWARD: out (rows, width), the gradient of a: the sum over columns of weight (rows, columns) times the difference,
 * or for norm 1 its sign. */
typedef enum nr_distance_kind { NR_DISTANCE_FORWARD, NR_DISTANCE_PAIRS, NR_DISTANCE_BACKWARD } nr_distance_kind;
NR_PLAN(nr_distance_plan, NUM(int64_t, batch, rows, columns, width, norm), IN(const void *, a, b, weight),
        OUT(void *, out), SIZES(p->batch, p->rows, p->columns, p->width));

#endif
