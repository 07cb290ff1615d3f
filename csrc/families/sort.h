/* sort: the plan of argsort, searchsorted, and order statistics. */
#ifndef NR_FAMILIES_SORT_H
#define NR_FAMILIES_SORT_H

#include <stdbool.h>
#include "../core/fields.h"
#include "../core/plan.h"
#include "../norch_families.h"

/* NR_ARGSORT: writes the int64 indices of the first `count` of n elements in ascending order (or descending) to operand
 * 0, and these elements to operand 2; either may be missing (data NULL). NR_SEARCH: the insertion index of each element
 * of operand 1 among the n sorted elements of operand 2 (right: after equal ones). NR_SELECT: the index that NR_ARGSORT
 * would put at place `count`, or where that is NORCH_MEDIAN or NORCH_NANMEDIAN the one of these; CPU alone. */
typedef enum nr_sort_kind { NR_ARGSORT, NR_SEARCH, NR_SELECT } nr_sort_kind;
NR_PLAN(nr_sort_plan, NEST(op == NR_SEARCH ? 1 : 5, nest), NUM(int64_t, n, count), NUM(int64_t[3], step),
        NUM(bool, descending, right));

#endif
