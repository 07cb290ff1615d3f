/* memory: see memory.h. */
#include "memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../norch_runtime.h"

static _Atomic int64_t failing_allocation = -1; /* the allocations left before the one that fails */
static _Atomic int64_t counted_allocations;
static _Atomic bool watching;

int64_t norch_fail_allocation(int64_t n) {
    failing_allocation = n;
    watching = true;
    return atomic_exchange(&counted_allocations, 0);
}

bool nr_allocation_fails(void) {
    if (!atomic_load_explicit(&watching, memory_order_relaxed)) return false;
    counted_allocations++;
    if (failing_allocation < 0) return false;
    return failing_allocation-- == 0;
}

void *nr_malloc(size_t n) { return nr_allocation_fails() ? NULL : malloc(n ? n : 1); }

void nr_free(void *memory) { free(memory); }

bool nr_grow(void *array, int64_t count, int64_t *capacity, size_t size) {
    if (count < *capacity) return true;
    const int64_t more = *capacity ? 2 * *capacity : 64;
    void **old = array, *larger = nr_malloc((size_t)more * size);
    if (!larger) return false;
    if (count) memcpy(larger, *old, (size_t)count * size);
    nr_free(*old);
    *old = larger;
    *capacity = more;
    return true;
}
