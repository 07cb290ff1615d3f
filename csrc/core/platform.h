/* platform: what the library asks of the operating system, where Windows has other functions than POSIX. Threads,
 * mutexes and conditions are POSIX's everywhere: for Windows they come with the compiler (winpthreads). */
#ifndef NR_PLATFORM_H
#define NR_PLATFORM_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* The clock of Python's time.perf_counter_ns(), which never goes back. */
int64_t nr_nanoseconds(void);
/* The number of this thread that Python's threading.get_ident() gives. */
int64_t nr_thread_number(void);
/* Lets other threads run for a moment, where the system can some 20 microseconds. */
void nr_rest(void);

/* The processors that the system lets this process run on. */
int64_t nr_usable_processors(void);
/* The bytes of a second cache; 0: unknown. */
int64_t nr_level2_cache(void);
/* The bytes of memory, and what the system can swap out beside it; INT64_MAX and 0: unknown. */
void nr_machine_memory(int64_t *memory, int64_t *swap);

/* n bytes at a multiple of alignment, a power of two; NULL: there is no memory. nr_aligned_free() takes them back. */
void *nr_aligned(size_t alignment, size_t n);
void nr_aligned_free(void *data);

/* Calls these around each fork(), as pthread_atfork() does; NULL: none. Windows has no fork(). */
void nr_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void));

#ifdef _WIN32
/* The library of this process that has a symbol itself, not from another; NULL: none. */
void *nr_library_with(const char *symbol);
/* The address of a symbol; NULL: the library lacks it. */
void *nr_symbol(void *library, const char *symbol);
#endif

/* log |gamma(x)|. lgamma() itself leaves the sign in a variable that threads share, but on Windows. */
static inline double nr_system_lgamma(double x) {
#ifdef _WIN32
    return lgamma(x);
#else
    int sign;
    return lgamma_r(x, &sign);
#endif
}

#endif
