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
/* Rounds n up to its size class and returns the number of the class. Between powers of two there are four classes, from
 * `smallest` on, which is a power of two. */
static inline int nr_size_class(size_t *n, size_t smallest) {
    const size_t wanted = *n < smallest ? smallest : *n;
    const int power = 63 - __builtin_clzll((unsigned long long)wanted); /* 2^power <= wanted */
    const size_t quarter = (size_t)1 << (power - 2);
    const size_t steps = (wanted - ((size_t)1 << power) + quarter - 1) / quarter;
    *n = ((size_t)1 << power) + steps * quarter;
    return (power - __builtin_ctzll((unsigned long long)smallest)) * 4 + (int)steps;
}
/* Counts an allocation; true when a test wants it to fail. */
bool nr_allocation_fails(void);

#endif
