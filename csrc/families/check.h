/* check: the plan of conditions on elements, which fail where one does not hold. */
#ifndef NR_FAMILIES_CHECK_H
#define NR_FAMILIES_CHECK_H

#include "../norch.h"

/* n bytes, each of which has to be other than 0; else the call fails with the error and its text. */
typedef struct nr_check_plan {
    int64_t n;
    const void *x;
    const char *text;
} nr_check_plan;

#endif
