/* check: the plan of conditions on elements, which fail where one does not hold. */
#ifndef NR_FAMILIES_CHECK_H
#define NR_FAMILIES_CHECK_H

#include "../norch.h"

#define NR_CHECKS 16 /* conditions, at most: a call's op is the number of one */

/* n bytes, each of which has to be other than 0; else the call fails with the error and its text, which stay where they are. On a
 * device the next synchronization does. */
typedef struct nr_check_plan {
    int64_t n;
    const void *x;
    const char *text;
    int32_t error;
} nr_check_plan;

#endif
