/* platform: functions of the operating system that differ between Windows and POSIX. Threads, mutexes and conditions
 * are POSIX's everywhere: for Windows they come with the compiler (winpthreads). */
#ifndef NR_PLATFORM_H
#define NR_PLATFORM_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* The clock of Python's time.perf_counter_ns(), which never goes back. */
int64_t nr_nanoseconds(void);
/* The thread's number as Python's threading.get_ident() gives it. */
int64_t nr_thread_number(void);
/* Lets other threads run for a moment, about 20 microseconds if the system can. */
void nr_rest(void);

/* The number of processors that this process may use. */
int64_t nr_usable_processors(void);
/* The bytes of a level-2 cache; 0: unknown. */
int64_t nr_level2_cache(void);
/* The bytes of memory, and of swap space; INT64_MAX and 0 if unknown. */
void nr_machine_memory(int64_t *memory, int64_t *swap);

/* n bytes at a multiple of alignment, a power of two; NULL if there is no memory. Free with nr_aligned_free(). */
void *nr_aligned(size_t alignment, size_t n);
void nr_aligned_free(void *data);

/* Registers functions to call around each fork(), like pthread_atfork(); each may be NULL. Windows has no fork(). */
void nr_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void));

#ifdef _WIN32
/* The library of this process that itself defines a symbol, or NULL. */
void *nr_library_with(const char *symbol);
/* The address of a symbol, or NULL. */
void *nr_symbol(void *library, const char *symbol);
#endif

/* log |gamma(x)|. lgamma() stores the sign in a variable that threads share, except on Windows. */
static inline double nr_system_lgamma(double x) {
#ifdef _WIN32
    return lgamma(x);
#else
    int sign;
    return lgamma_r(x, &sign);
#endif
}

#endif
