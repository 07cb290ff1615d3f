/* limits: the memory and the processors that the machine and its containers grant this process. */
#ifndef NR_LIMITS_H
#define NR_LIMITS_H

#include <stdint.h>

/* The bytes that this process can use. With overcommit the system grants a block larger than memory and swap, and kills
 * the process that fills it; so the allocator asks here first. root: a prefix of the names of the system's files; ""
 * but in tests. */
int64_t nr_memory_limit(const char *root);
/* INT64_MAX: no container limits them. */
int64_t nr_processor_limit(const char *root);

#endif
