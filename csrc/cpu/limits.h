/* limits: the memory and the processors that the machine, and the containers around this process, grant it. */
#ifndef NR_LIMITS_H
#define NR_LIMITS_H

#include <stdint.h>

/* Where machines promise memory that they do not have, a block larger than memory and swap together is mapped, and
 * the process that fills it is killed. root stands before the names of the system's files: "". */
int64_t nr_memory_limit(const char *root);
/* INT64_MAX: no container limits them. */
int64_t nr_processor_limit(const char *root);

#endif
