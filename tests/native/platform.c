/* Prints what csrc/core/platform.c says of the machine: nanoseconds, processors, the second cache, memory, swap, and whether
 * aligned memory is. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../../csrc/core/platform.h"

static bool alignment_holds(size_t n) {
    char *data = nr_aligned(64, n);
    if (!data || (uintptr_t)data % 64) return false;
    memset(data, 1, n);
    nr_aligned_free(data);
    return true;
}

int main(void) {
    int64_t memory, swap;
    nr_machine_memory(&memory, &swap);
    const int64_t before = nr_nanoseconds();
    nr_rest();
    printf("%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %d\n", before, nr_usable_processors(),
           nr_level2_cache(), memory, swap,
           alignment_holds(100) && alignment_holds((size_t)5 << 20) && nr_nanoseconds() > before);
    return 0;
}
