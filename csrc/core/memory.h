/* memory: the library's own allocations. Every allocation asks nr_allocation_fails() first, so that a test can make any
 * one of them fail. */
#ifndef NR_MEMORY_H
#define NR_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *nr_malloc(size_t n);
void nr_free(void *memory);
/* Makes room for one more element of `size` bytes in an array: array is a pointer to the pointer to its first element.
 * False: out of memory, and nothing is changed. */
bool nr_grow(void *array, int64_t count, int64_t *capacity, size_t size);
/* Counts an allocation; true when a test wants it to fail. */
bool nr_allocation_fails(void);

#endif
