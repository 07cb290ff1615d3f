/* sort: the plan of argsort and searchsorted. */
#ifndef NR_FAMILIES_SORT_H
#define NR_FAMILIES_SORT_H

#include <stdbool.h>
#include "../core/plan.h"

/* NR_ARGSORT: the places (int64) of the `count` first of n elements in ascending or, flagged, descending order. NR_SEARCH: for
 * operand 1 its place among the n ordered elements from operand 2 on, behind its equals where flagged. */
typedef enum nr_sort_kind { NR_ARGSORT, NR_SEARCH } nr_sort_kind;
typedef struct nr_sort_plan {
    nr_plan nest;
    int64_t n, count, step[2];
    bool flag;
} nr_sort_plan;

#endif
