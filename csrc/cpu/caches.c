/* caches: the size of the second cache, by which products choose their blocks. */
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <stdatomic.h>

#include "../core/platform.h"
#include "cpu.h"

#define UNKNOWN (512 * 1024)

#if defined(__x86_64__)
/* Each subleaf describes a cache: its type and level in eax, ways, partitions and line size in ebx, sets in ecx.
 * Intel's leaf is 4, AMD's 0x8000001D, where 4 is empty. */
static int64_t by_cpuid(unsigned leaf) {
    unsigned a, b, c, d;
    for (unsigned i = 0; i < 16 && __get_cpuid_count(leaf, i, &a, &b, &c, &d) && (a & 31); i++) {
        const unsigned type = a & 31, level = a >> 5 & 7;
        if (level == 2 && type != 2) /* 2: a cache of instructions */
            return ((int64_t)(b >> 22) + 1) * ((b >> 12 & 1023) + 1) * ((b & 4095) + 1) * ((int64_t)c + 1);
    }
    return 0;
}
#endif

static int64_t find(void) {
    int64_t bytes = 0;
#if defined(__x86_64__)
    bytes = by_cpuid(4);
    if (bytes <= 0) bytes = by_cpuid(0x8000001D);
#endif
    if (bytes <= 0) bytes = nr_level2_cache();
    return bytes > 0 ? bytes : UNKNOWN;
}

int64_t nr_second_cache(void) {
    static _Atomic int64_t cached_bytes; /* every thread finds the same */
    int64_t bytes = atomic_load_explicit(&cached_bytes, memory_order_relaxed);
    if (bytes == 0) atomic_store_explicit(&cached_bytes, bytes = find(), memory_order_relaxed);
    return bytes;
}
