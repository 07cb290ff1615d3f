/* philox: the words of many blocks of families/random.h, with vectors; for files that are built once per instruction
 * set (random_isa.c, attention_isa.c). */
#ifndef NR_CPU_PHILOX_H
#define NR_CPU_PHILOX_H

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "../families/random.h"

#if defined(__AVX512F__)
#define PHILOX_SIZE 64
#define PHILOX_PRODUCT(x, factor) ((philox_wide)_mm512_mul_epu32((__m512i)(x), _mm512_set1_epi64(factor)))
#define PHILOX_LOW_PAIRS 0, 8, 1, 9, 2, 10, 3, 11
#define PHILOX_HIGH_PAIRS 4, 12, 5, 13, 6, 14, 7, 15
#elif defined(__AVX2__)
#define PHILOX_SIZE 32
#define PHILOX_PRODUCT(x, factor) ((philox_wide)_mm256_mul_epu32((__m256i)(x), _mm256_set1_epi64x(factor)))
#define PHILOX_LOW_PAIRS 0, 4, 1, 5
#define PHILOX_HIGH_PAIRS 2, 6, 3, 7
#endif

#define PHILOX_SIDE 16 /* blocks made side by side */

#ifdef PHILOX_SIZE
typedef uint64_t philox_wide __attribute__((vector_size(PHILOX_SIZE)));
typedef uint64_t philox_to __attribute__((vector_size(PHILOX_SIZE), aligned(4), may_alias));

/* Every other 64 bits of two vectors; gcc has the common builtin only since version 12. */
#if defined(__clang__) || __GNUC__ >= 12
#define PHILOX_PAIRS(a, b, order) __builtin_shufflevector(a, b, order)
#else
#define PHILOX_PAIRS(a, b, order) __builtin_shuffle(a, b, (philox_wide){order})
#endif

/* The words of a block, as philox_of() gives them, of PHILOX_SIDE blocks side by side: each word is the lower half of
 * a lane, whose upper half is not read, as products of 32 bits fill a lane. */
static inline void philox_lanes(uint64_t seed, uint64_t counter, uint32_t *restrict words) {
    enum { LANES_OF = PHILOX_SIZE / 8, TOGETHER = 2 };
    const philox_wide zero = {0};
    philox_wide steps;
    for (int i = 0; i < LANES_OF; i++) steps[i] = (uint64_t)i;
    for (int from = 0; from < PHILOX_SIDE; from += TOGETHER * LANES_OF) {
        philox_wide a[TOGETHER], b[TOGETHER], c[TOGETHER], d[TOGETHER], key0 = zero + seed, key1 = zero + (seed >> 32);
        for (int v = 0; v < TOGETHER; v++) {
            a[v] = steps + (counter + (uint64_t)(from + v * LANES_OF));
            b[v] = a[v] >> 32;
            c[v] = d[v] = zero;
        }
        for (int round = 0; round < 10; round++, key0 += 0x9E3779B9u, key1 += 0xBB67AE85u)
            for (int v = 0; v < TOGETHER; v++) {
                const philox_wide p = PHILOX_PRODUCT(a[v], 0xD2511F53), q = PHILOX_PRODUCT(c[v], 0xCD9E8D57);
                a[v] = (q >> 32) ^ b[v] ^ key0;
                c[v] = (p >> 32) ^ d[v] ^ key1;
                b[v] = q;
                d[v] = p;
            }
        for (int v = 0; v < TOGETHER; v++) {
            const philox_wide ab = (a[v] & UINT32_MAX) | b[v] << 32, cd = (c[v] & UINT32_MAX) | d[v] << 32;
            philox_to *to = (philox_to *)(void *)(words + 4 * (from + v * LANES_OF));
            to[0] = PHILOX_PAIRS(ab, cd, PHILOX_LOW_PAIRS);
            to[1] = PHILOX_PAIRS(ab, cd, PHILOX_HIGH_PAIRS);
        }
    }
}
#else
/* The words of a block, as philox_of() gives them, of PHILOX_SIDE blocks side by side: each round is a loop over
 * lanes. */
static inline void philox_lanes(uint64_t seed, uint64_t counter, uint32_t *restrict words) {
    uint32_t a[PHILOX_SIDE], b[PHILOX_SIDE], c[PHILOX_SIDE] = {0}, d[PHILOX_SIDE] = {0}, key0 = (uint32_t)seed,
                                             key1 = (uint32_t)(seed >> 32);
    for (int i = 0; i < PHILOX_SIDE; i++) {
        a[i] = (uint32_t)(counter + (uint64_t)i);
        b[i] = (uint32_t)((counter + (uint64_t)i) >> 32);
    }
    for (int round = 0; round < 10; round++, key0 += 0x9E3779B9u, key1 += 0xBB67AE85u)
        for (int i = 0; i < PHILOX_SIDE; i++) {
            const uint64_t p = (uint64_t)a[i] * 0xD2511F53u, q = (uint64_t)c[i] * 0xCD9E8D57u;
            a[i] = (uint32_t)(q >> 32) ^ b[i] ^ key0;
            c[i] = (uint32_t)(p >> 32) ^ d[i] ^ key1;
            b[i] = (uint32_t)q;
            d[i] = (uint32_t)p;
        }
    for (int i = 0; i < PHILOX_SIDE; i++) {
        words[4 * i] = a[i];
        words[4 * i + 1] = b[i];
        words[4 * i + 2] = c[i];
        words[4 * i + 3] = d[i];
    }
}
#endif

/* The words of `blocks` blocks from position `counter` on. */
static void philox(uint64_t seed, uint64_t counter, int64_t blocks, uint32_t *restrict words) {
    int64_t at = 0;
    for (; at + PHILOX_SIDE <= blocks; at += PHILOX_SIDE) philox_lanes(seed, counter + (uint64_t)at, words + 4 * at);
    for (; at < blocks; at++)
        philox_of(seed, (uint32_t)(counter + (uint64_t)at), (uint32_t)((counter + (uint64_t)at) >> 32), words + 4 * at);
}

#endif
