/* stream: results larger than the cache, stored past it. An ordinary store first reads the line that it changes, and
 * evicts another: of the 12 bytes that c = a + b moves a float, and the 4 more of that reading, a quarter is saved
 * (non-temporal stores: Intel's optimization manual, "Cacheability Hints").
 *
 * A piece of the result is computed in a buffer in the first cache, and goes from there line by line. That costs a
 * second store, so it pays only where memory is what a loop waits for. */
#ifndef NR_CPU_STREAM_H
#define NR_CPU_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define NR_STREAM_BYTES (16 << 20) /* larger results are no longer in the cache when they are read */
#define NR_LINE 64

/* Whether a result of so many bytes, written in dense runs that begin multiples of `apart` bytes from one another,
 * goes past the cache. Runs must begin with a line: the rest of a shared one would be read after all. */
static inline bool nr_streams(const char *to, int64_t bytes, int64_t apart) {
#if defined(__SSE2__)
    return bytes >= NR_STREAM_BYTES && (uintptr_t)to % NR_LINE == 0 && apart % NR_LINE == 0;
#else
    (void)to, (void)bytes, (void)apart;
    return false;
#endif
}

/* memcpy past the cache, from within a line on or from its start. */
static inline void nr_stream(char *to, const void *from, size_t n) {
    const char *x = from;
#if defined(__AVX512F__)
    for (; n >= 64; n -= 64, to += 64, x += 64) _mm512_stream_si512((void *)to, _mm512_loadu_si512(x));
#elif defined(__AVX__)
    for (; n >= 32; n -= 32, to += 32, x += 32) _mm256_stream_si256((void *)to, _mm256_loadu_si256((const void *)x));
#elif defined(__SSE2__)
    for (; n >= 16; n -= 16, to += 16, x += 16) _mm_stream_si128((void *)to, _mm_loadu_si128((const void *)x));
#endif
    memcpy(to, x, n);
}

/* Makes streamed stores visible to every thread; called before a writer reports that it is done. */
static inline void nr_stream_end(void) {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

#endif
