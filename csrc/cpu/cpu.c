/* cpu: the CPU backend: its memory, its choice of instruction set, its tables. Threads: threads.c.
 *
 *   classes     64  80  96  112 | 128  160  192  224 | 256 ...           bytes of a block: four classes a power of two
 *   take(150)   its class, 160:  waiting[5] -> block -> block -> ...     the first; where none waits, a new one from the
 *   give(150)   a block becomes the first that waits there               system. A full cache first lets its largest go
 *
 *   kernels     baseline | avx2 | avx512      each fills the table up to the widest that the machine runs, a later row
 *                                             replacing an earlier one; of the other families the widest alone is taken
 *
 * Segregated free lists: Wilson, Johnstone, Neely and Boles, "Dynamic Storage Allocation" (1995), 3.6. */
#include "cpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- memory: freed blocks wait in size classes for the next tensor of their size ---------------
 *
 * Large blocks from the system come as untouched pages, and the first write to each page costs more
 * than most operations spend on it. A class holds blocks of one size, four classes a power of two, so that at most a
 * fifth of a block is idle. Blocks begin at multiples of 64 bytes, large ones lie in large pages. What waits is capped:
 * others make room for a block, and one that is larger than the cap goes straight back to the system. */

#define MOST_POWER 46 /* no tensor takes more than 2^46 bytes */
#define CLASS_COUNT ((MOST_POWER - 6) * 4 + 1)
#define CACHE_LIMIT ((int64_t)512 << 20) /* until somebody sets another */
#define SMALLEST 64
#define LARGE_PAGE ((size_t)2 << 20)

typedef struct block {
    struct block *next;
} block;

/* Bytes are those of whole blocks. All but the lists is what norch_memory() tells. */
static struct {
    block *waiting[CLASS_COUNT];
    int64_t used, most_used;         /* in tensors and scratch memory */
    int64_t cached, most_reserved;   /* waiting; used and waiting together */
    int64_t fresh, reused, returned; /* blocks: from the system, out of the lists, back to the system */
    int64_t limit;                   /* of cached */
} memory = {.limit = CACHE_LIMIT};
static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;

/* Rounds n up to its class; gives the class. */
static int size_class(size_t *n) {
    size_t wanted = *n < SMALLEST ? SMALLEST : *n;
    int power = 63 - __builtin_clzll((unsigned long long)wanted); /* 2^power <= wanted */
    size_t quarter = (size_t)1 << (power - 2);
    size_t steps = (wanted - ((size_t)1 << power) + quarter - 1) / quarter;
    *n = ((size_t)1 << power) + steps * quarter;
    return (power - 6) * 4 + (int)steps;
}

static int64_t larger_of(int64_t a, int64_t b) { return a > b ? a : b; }

/* Under the lock: n bytes more are in use, from the system or out of a list. */
static void note_use(size_t n, bool fresh) {
    memory.used += (int64_t)n;
    memory.fresh += fresh;
    memory.reused += !fresh;
    memory.most_used = larger_of(memory.most_used, memory.used);
    memory.most_reserved = larger_of(memory.most_reserved, memory.used + memory.cached);
}

/* Aligned memory; large blocks lie in large pages, where the system has some, which are walked and first touched faster. */
static void *aligned(size_t n) {
    void *found = NULL;
    const bool large = n >= LARGE_PAGE;
    if (posix_memalign(&found, large ? LARGE_PAGE : 64, n) != 0) return NULL;
#ifdef MADV_HUGEPAGE
    if (large) madvise(found, n, MADV_HUGEPAGE); /* advice: nothing is lost where it is not taken */
#endif
    return found;
}

static void *from_system(size_t n) {
    void *found = aligned(n);
    if (!found) {
        norch_empty_cache(); /* the memory missing may be cached here */
        found = aligned(n);
    }
    if (!found) return NULL;
    pthread_mutex_lock(&memory_lock);
    note_use(n, true);
    pthread_mutex_unlock(&memory_lock);
    return found;
}

static void *take(size_t n) {
    if (n > (size_t)1 << MOST_POWER) return NULL;
    int index = size_class(&n);
    pthread_mutex_lock(&memory_lock);
    block *found = memory.waiting[index];
    if (found) {
        memory.waiting[index] = found->next;
        memory.cached -= (int64_t)n;
        note_use(n, false);
    }
    pthread_mutex_unlock(&memory_lock);
    return found ? found : from_system(n);
}

/* Gives blocks back, the largest first, until at most `bytes` wait. */
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
            free(chain);
            chain = next;
        }
    }
}

static void give(void *data, size_t n) {
    if (!data) return;
    int index = size_class(&n);
    pthread_mutex_lock(&memory_lock);
    memory.used -= (int64_t)n;
    const int64_t limit = memory.limit, bytes = (int64_t)n;
    if (NR_CACHING && bytes <= limit && memory.cached + bytes > limit) { /* others have waited for longer */
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
    if (!keep) free(data);
}

/* No fork finds the lock taken by a thread that the child has not. */
static void hold_memory(void) { pthread_mutex_lock(&memory_lock); }
static void let_go_of_memory(void) { pthread_mutex_unlock(&memory_lock); }
/* First, for the reason that threads.c gives. */
__attribute__((constructor(101))) static void watch_forks(void) {
    pthread_atfork(hold_memory, let_go_of_memory, let_go_of_memory);
}

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

static void *cpu_alloc(const nr_backend *self, size_t n) { return (void)self, take(n); }

static void cpu_free(const nr_backend *self, void *data, size_t n) { (void)self, give(data, n); }

static int32_t copy_bytes(const nr_backend *self, void *to, const void *from, size_t n) {
    (void)self;
    if (n) memcpy(to, from, n);
    return NORCH_OK;
}

static int32_t copy_back(const nr_backend *self, void *to, const void *from, size_t n, bool later) {
    (void)later;
    return copy_bytes(self, to, from, n);
}

static int32_t nothing_to_wait_for(const nr_backend *self) { return (void)self, NORCH_OK; }

/* ---- instruction sets -------------------------------------------------------------------------- */

typedef struct isa {
    const char *name;
    bool (*supported)(void);
    void (*fill_pointwise)(nr_kernel_rows kernels);
    nr_row_filler *fill_rows;
    void (*fill_reduce)(nr_kernel_rows kernels);
    void (*fill_narrow)(nr_conversion *widen, nr_conversion *narrow);
    int32_t (*run_matmul)(const nr_call *call);
    int32_t (*run_optim)(const nr_call *call);
    int32_t (*run_softmax)(const nr_call *call);
    int32_t (*run_conv)(const nr_call *call);
    int32_t (*run_pool)(const nr_call *call);
    int32_t (*run_normalize)(const nr_call *call);
    int32_t (*run_attention)(const nr_call *call);
} isa;

static bool always(void) { return true; }

#ifdef __x86_64__
static bool has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

static bool has_avx512(void) {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
#endif

#define BUILD(name, supported) \
    {#name,                    \
     supported,                \
     nr_fill_pointwise_##name, \
     nr_fill_rows_##name,      \
     nr_fill_reduce_##name,    \
     nr_fill_narrow_##name,    \
     nr_run_matmul_##name,     \
     nr_run_optim_##name,      \
     nr_run_softmax_##name,    \
     nr_run_conv_##name,       \
     nr_run_pool_##name,       \
     nr_run_normalize_##name,  \
     nr_run_attention_##name}

static const isa builds[] = {
    BUILD(baseline, always),
#ifdef __x86_64__
    BUILD(avx2, has_avx2),
    BUILD(avx512, has_avx512),
#endif
};
#define BUILD_COUNT (int)(sizeof builds / sizeof builds[0])

static const isa *chosen = &builds[0];

const char *norch_isa(void) { return chosen->name; }

const char *norch_isa_builds(void) {
    static char names[64];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!names[0])
        for (int i = 0; i < BUILD_COUNT; i++)
            if (builds[i].supported()) {
                if (i) strcat(names, " ");
                strcat(names, builds[i].name);
            }
    pthread_mutex_unlock(&lock);
    return names;
}

/* ---- the table --------------------------------------------------------------------------------- */

static nr_kernel kernels[NR_OP_COUNT][NR_DTYPE_COUNT];
nr_conversion nr_widen[NR_DTYPE_COUNT], nr_narrow[NR_DTYPE_COUNT];
nr_row_filler *nr_fill_rows;

static nr_backend backend = {
    .name = "cpu",
    .device_type = NORCH_CPU,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .to_host = copy_bytes,
    .from_host = copy_back,
    .synchronize = nothing_to_wait_for,
    .kernels = kernels,
    .run = {[NR_POINTWISE] = nr_run_pointwise,
            [NR_REDUCTION] = nr_run_reduce,
            [NR_COPY] = nr_run_copy,
            [NR_INDEXING] = nr_run_index,
            [NR_RANDOM] = nr_run_random,
            [NR_SCAN] = nr_run_scan,
            [NR_SORT] = nr_run_sort},
};

const nr_backend *nr_cpu_backend(void) { return &backend; }

/* Runs when the library is loaded: the widest build that the machine has, or the one that NORCH_ISA names;
 * a name that cannot be honoured leaves the choice to us (Python looks at norch_isa() and complains). */
__attribute__((constructor)) static void choose_isa(void) {
    const char *wanted = getenv("NORCH_ISA");
#ifdef __x86_64__
    __builtin_cpu_init();
#endif
    for (int i = 0; i < BUILD_COUNT; i++)
        if (builds[i].supported() && (!wanted || !strcmp(wanted, builds[i].name))) chosen = &builds[i];
    for (const isa *build = builds; build <= chosen; build++) { /* what a build lacks stays with a narrower one */
        build->fill_pointwise(kernels);
        build->fill_reduce(kernels);
    }
    chosen->fill_narrow(nr_widen, nr_narrow);
    nr_fill_rows = chosen->fill_rows;
    for (int op = 0; op < NR_OP_COUNT; op++) /* a narrow dtype runs on the kernels of the one it is computed in */
        for (int32_t dtype = 0; dtype < NR_DTYPE_COUNT; dtype++) kernels[op][dtype] = kernels[op][nr_wide(dtype)];
    backend.run[NR_MATMUL] = chosen->run_matmul;
    backend.run[NR_OPTIM] = chosen->run_optim;
    backend.run[NR_SOFTMAX] = chosen->run_softmax;
    backend.run[NR_CONV] = chosen->run_conv;
    backend.run[NR_POOL] = chosen->run_pool;
    backend.run[NR_NORMALIZE] = chosen->run_normalize;
    backend.run[NR_ATTENTION] = chosen->run_attention;
}
