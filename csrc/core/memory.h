/* memory: the library's own allocations. Every allocation asks nr_allocation_fails() first, so that a test can make any
 * one of them fail. */
#ifndef NR_MEMORY_H
#define NR_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

void *nr_malloc(size_t n);
void nr_free(void *memory);
/* Counts an allocation; true when a test wants it to fail. */
bool nr_allocation_fails(void);

#endif
