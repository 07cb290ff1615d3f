/* memory: the CPU's caching allocator. Freed blocks are kept in lists by size class, and reused.
 *
 *   classes     64  80  96  112 | 128  160  192  224 | 256 ...           bytes of a block: four classes a power of two
 *   take(150)   its class, 160:  waiting[5] -> block -> block -> ...     the first, or else one from the system
 *   give(150)   puts the block first in that list                        a full cache first frees its largest
 *
 * Reuse pays because the first write to each page of a new block is a page fault, which costs more than most operations
 * spend on a page. A class holds blocks of one size, so that at most a fifth of a block is unused. Blocks are aligned
 * to 64 bytes, and large ones use large pages. The cache has a limit: older blocks are freed to make room for a new
 * one, and a block larger than the limit is freed at once.
 *
 * Segregated free lists: Wilson, Johnstone, Neely and Boles, "Dynamic Storage Allocation" (1995), 3.6. */
#include "../core/platform.h"
#include "cpu.h"
#include "limits.h"

#include <pthread.h>
#include <string.h>

#define MOST_POWER (sizeof(size_t) > 4 ? 46 : 31) /* no tensor takes more than 2^46 bytes */
#define CLASS_COUNT ((MOST_POWER - 6) * 4 + 1)
#define CACHE_LIMIT ((int64_t)512 << 20) /* the default */
#define SMALLEST 64
#define ALIGNMENT 64
#define DOUBTED \
    ((size_t)64 << 20) /* from this number of bytes on the limit is queried, which takes less time than filling them */

typedef struct block {
    struct block *next;
} block;

/* Sizes in bytes of whole blocks. norch_memory() reports all fields but the lists. */
static struct {
    block *waiting[CLASS_COUNT];
    int64_t used, most_used;         /* in tensors and scratch memory */
    int64_t cached, most_reserved;   /* waiting; used and waiting together */
    int64_t fresh, reused, returned; /* blocks: from the system, out of the lists, back to the system */
    int64_t limit;                   /* of cached */
} memory = {.limit = CACHE_LIMIT};
static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;

/* Counts n more bytes in use, new from the system or from a list. The lock is held. */
static void note_use(size_t n, bool fresh) {
    memory.used += (int64_t)n;
    memory.fresh += fresh;
    memory.reused += !fresh;
    memory.most_used = greatest(memory.most_used, memory.used);
    memory.most_reserved = greatest(memory.most_reserved, memory.used + memory.cached);
}

/* Allocates n bytes from the system, of which `wanted` will be used. */
static void *from_system(size_t n, size_t wanted) {
    if (wanted >= DOUBTED && wanted > (uint64_t)nr_memory_limit("")) return NULL;
    const size_t bytes = NR_CACHING ? n : wanted; /* so that a sanitizer knows where they end */
    void *found = nr_aligned(ALIGNMENT, bytes);
    if (!found) {
        norch_empty_cache(); /* the blocks in the lists may be enough */
        found = nr_aligned(ALIGNMENT, bytes);
    }
    if (!found) return NULL;
    pthread_mutex_lock(&memory_lock);
    note_use(n, true);
    pthread_mutex_unlock(&memory_lock);
    return found;
}

static void *take(size_t n) {
    if ((uint64_t)n > (uint64_t)1 << MOST_POWER) return NULL;
    const size_t wanted = n;
    int index = nr_size_class(&n, SMALLEST);
    pthread_mutex_lock(&memory_lock);
    block *found = memory.waiting[index];
    if (found) {
        memory.waiting[index] = found->next;
        memory.cached -= (int64_t)n;
        note_use(n, false);
    }
    pthread_mutex_unlock(&memory_lock);
    return found ? found : from_system(n, wanted);
}

/* Frees blocks of the lists, the largest first, until they have at most `bytes`. */
static void shrink_cache(int64_t bytes) {
    for (int i = CLASS_COUNT - 1; i >= 0; i--) {
        const int64_t n = ((int64_t)1 << (6 + i / 4)) / 4 * (4 + i % 4);
        block *chain = NULL;
        pthread_mutex_lock(&memory_lock);
        while (memory.waiting[i] && memory.cached > bytes) {
            block *first = memory.waiting[i];
            memory.waiting[i] = first->next;
            memory.cached -= n;
            memory.returned++;
            first->next = chain;
            chain = first;
        }
        pthread_mutex_unlock(&memory_lock);
        while (chain) {
            block *next = chain->next;
            nr_aligned_free(chain);
            chain = next;
        }
    }
}

static void give(void *data, size_t n) {
    if (!data) return;
    int index = nr_size_class(&n, SMALLEST);
    pthread_mutex_lock(&memory_lock);
    memory.used -= (int64_t)n;
    const int64_t limit = memory.limit, bytes = (int64_t)n;
    if (NR_CACHING && bytes <= limit && memory.cached + bytes > limit) { /* frees older blocks instead of this one */
        pthread_mutex_unlock(&memory_lock);
        shrink_cache(limit - bytes);
        pthread_mutex_lock(&memory_lock);
    }
    const bool keep = NR_CACHING && memory.cached + bytes <= memory.limit;
    memory.returned += !keep;
    if (keep) {
        block *freed = data;
        freed->next = memory.waiting[index];
        memory.waiting[index] = freed;
        memory.cached += (int64_t)n;
    }
    pthread_mutex_unlock(&memory_lock);
    if (!keep) nr_aligned_free(data);
}

/* The forking thread holds the lock across a fork, so that no thread that the child lacks can hold it there. */
static void lock_memory(void) { pthread_mutex_lock(&memory_lock); }
static void unlock_memory(void) { pthread_mutex_unlock(&memory_lock); }
void nr_memory_watch_forks(void) { nr_at_fork(lock_memory, unlock_memory, unlock_memory); }

int64_t norch_cached_bytes(void) {
    pthread_mutex_lock(&memory_lock);
    int64_t bytes = memory.cached;
    pthread_mutex_unlock(&memory_lock);
    return bytes;
}

void norch_empty_cache(void) { shrink_cache(0); }

void norch_set_cache_limit(int64_t bytes) {
    pthread_mutex_lock(&memory_lock);
    memory.limit = bytes;
    pthread_mutex_unlock(&memory_lock);
    shrink_cache(bytes);
}

void norch_memory(int64_t *values) {
    pthread_mutex_lock(&memory_lock);
    const int64_t found[] = {memory.used,          memory.most_used, memory.used + memory.cached,
                             memory.most_reserved, memory.cached,    memory.limit,
                             memory.fresh,         memory.reused,    memory.returned};
    memcpy(values, found, sizeof found);
    pthread_mutex_unlock(&memory_lock);
}

void norch_memory_reset_peak(void) {
    pthread_mutex_lock(&memory_lock);
    memory.most_used = memory.used;
    memory.most_reserved = memory.used + memory.cached;
    pthread_mutex_unlock(&memory_lock);
}

void *nr_scratch(size_t n) { return nr_allocation_fails() ? NULL : take(n); }

void nr_scratch_free(void *data, size_t n) { give(data, n); }

void *nr_cpu_alloc(const nr_backend *self, size_t n) { return (void)self, take(n); }

void nr_cpu_free(const nr_backend *self, void *data, size_t n) { (void)self, give(data, n); }
