/* check: the plan of conditions on elements. */
#ifndef NR_FAMILIES_CHECK_H
#define NR_FAMILIES_CHECK_H

#include "../core/fields.h"
#include "../norch.h"

#define NR_CHECKS 16 /* conditions, at most: a call's op is the number of one */

/* The call fails with this error and text if any of n bytes is 0; on a device the next synchronization fails. The text
 * must stay valid. */
NR_PLAN(nr_check_plan, NUM(int64_t, n), IN(const void *, x), OTHER(const char *, text), OTHER(int32_t, error),
        SIZES(p->n));

#endif
