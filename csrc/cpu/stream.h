/* stream: non-temporal stores, which bypass the cache, for results larger than it (Intel's optimization manual,
 * "Cacheability Hints"). An ordinary store first reads the cache line that it changes: c = a + b moves 12 bytes for
 * each float, and 4 more for that read, which non-temporal stores save.
 *
 * A piece of the result is computed in a buffer in the first cache, and stored from there line by line. The second
 * store pays only if the loop is limited by memory. */
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

/* Whether a result of this many bytes, written in dense runs that begin at multiples of `apart` bytes, should bypass
 * the cache. Runs must begin at a cache line: one that two runs share would be read. */
static inline bool nr_streams(const char *to, int64_t bytes, int64_t apart) {
#if defined(__SSE2__)
    return bytes >= NR_STREAM_BYTES && (uintptr_t)to % NR_LINE == 0 && apart % NR_LINE == 0;
#else
    (void)to, (void)bytes, (void)apart;
    return false;
#endif
}

/* memcpy that bypasses the cache; `to` need not be the start of a line. */
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
