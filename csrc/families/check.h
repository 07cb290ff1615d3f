/* check: the plan of conditions on elements. */
#ifndef NR_FAMILIES_CHECK_H
#define NR_FAMILIES_CHECK_H

#include "../norch.h"

#define NR_CHECKS 16 /* conditions, at most: a call's op is the number of one */

/* The call fails with this error and text if any of n bytes is 0; on a device the next synchronization fails. The text
 * must stay valid. */
typedef struct nr_check_plan {
    int64_t n;
    const void *x;
    const char *text;
    int32_t error;
} nr_check_plan;

#endif
