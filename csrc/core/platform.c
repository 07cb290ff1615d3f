/* platform: see platform.h. First Windows, then POSIX systems. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "platform.h"

#include <stdlib.h>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
/* after windows.h, which it needs */
#include <malloc.h>
#include <psapi.h>

int64_t nr_nanoseconds(void) {
    LARGE_INTEGER ticks, second;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&second);
    const int64_t whole = ticks.QuadPart / second.QuadPart, rest = ticks.QuadPart % second.QuadPart;
    return whole * 1000000000 + rest * 1000000000 / second.QuadPart;
}

int64_t nr_thread_number(void) { return GetCurrentThreadId(); }

void nr_rest(void) { SwitchToThread(); } /* Sleep() would take a millisecond or more */

/* A mask covers the processors of one group, at most 64; a process in several groups has no mask. */
int64_t nr_usable_processors(void) {
    DWORD_PTR ours, all;
    if (GetProcessAffinityMask(GetCurrentProcess(), &ours, &all) && ours) return __builtin_popcountll(ours);
    return (int64_t)GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
}

int64_t nr_level2_cache(void) {
    DWORD bytes = 0;
    int64_t found = 0;
    GetLogicalProcessorInformation(NULL, &bytes);
    SYSTEM_LOGICAL_PROCESSOR_INFORMATION *all = malloc(bytes);
    if (all && GetLogicalProcessorInformation(all, &bytes))
        for (size_t i = 0; !found && i < bytes / sizeof *all; i++)
            if (all[i].Relationship == RelationCache && all[i].Cache.Level == 2) found = all[i].Cache.Size;
    free(all);
    return found;
}

void nr_machine_memory(int64_t *memory, int64_t *swap) {
    MEMORYSTATUSEX found = {.dwLength = sizeof found};
    const BOOL succeeded = GlobalMemoryStatusEx(&found);
    *memory = succeeded ? (int64_t)found.ullTotalPhys : INT64_MAX;
    *swap = succeeded && found.ullTotalPageFile > found.ullTotalPhys
                ? (int64_t)(found.ullTotalPageFile - found.ullTotalPhys) /* the first is the sum of both */
                : 0;
}

void *nr_aligned(size_t alignment, size_t n) { return _aligned_malloc(n, alignment); }

void nr_aligned_free(void *data) { _aligned_free(data); }

void nr_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
    (void)before, (void)in_parent, (void)in_child;
}

void *nr_library_with(const char *symbol) {
    HMODULE libraries[1024], owner = NULL;
    DWORD bytes = 0;
    if (!K32EnumProcessModules(GetCurrentProcess(), libraries, sizeof libraries, &bytes)) return NULL;
    for (size_t i = 0; i < bytes / sizeof *libraries && i < sizeof libraries / sizeof *libraries; i++) {
        const void *found = nr_symbol(libraries[i], symbol);
        if (found &&
            GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                               found, &owner))
            return owner;
    }
    return NULL;
}

void *nr_symbol(void *library, const char *symbol) { return (void *)(uintptr_t)GetProcAddress(library, symbol); }
#else
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/sysinfo.h>
#endif

#define LARGE_PAGE ((size_t)2 << 20)

int64_t nr_nanoseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t nr_thread_number(void) { return (int64_t)(uintptr_t)pthread_self(); }

void nr_rest(void) {
    const struct timespec moment = {.tv_nsec = 20000};
    nanosleep(&moment, NULL);
}

int64_t nr_usable_processors(void) {
#ifdef __linux__
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores);
#endif
    return sysconf(_SC_NPROCESSORS_ONLN);
}

int64_t nr_level2_cache(void) {
#ifdef _SC_LEVEL2_CACHE_SIZE
    const int64_t bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return bytes > 0 ? bytes : 0;
#else
    return 0;
#endif
}

void nr_machine_memory(int64_t *memory, int64_t *swap) {
    *memory = INT64_MAX;
    *swap = 0;
#ifdef __linux__
    struct sysinfo machine;
    if (sysinfo(&machine) != 0) return;
    *memory = (int64_t)machine.totalram * machine.mem_unit;
    *swap = (int64_t)machine.totalswap * machine.mem_unit;
#endif
}

/* Large blocks use large pages if the system has them, which cost fewer page faults and TLB misses. */
void *nr_aligned(size_t alignment, size_t n) {
    void *found = NULL;
    const int large = n >= LARGE_PAGE;
    if (posix_memalign(&found, large ? LARGE_PAGE : alignment, n) != 0) return NULL;
#ifdef MADV_HUGEPAGE
    if (large) madvise(found, n, MADV_HUGEPAGE); /* only advice: failure does not matter */
#endif
    return found;
}

void nr_aligned_free(void *data) { free(data); }

void nr_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
    pthread_atfork(before, in_parent, in_child);
}
#endif
