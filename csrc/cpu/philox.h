/* philox: the words of many blocks of families/random.h, with vectors; for files that are built once per instruction set
 * (random_isa.c, attention_isa.c). */
#ifndef NR_CPU_PHILOX_H
#define NR_CPU_PHILOX_H

#include "../families/random.h"

#define PHILOX_SIDE 16 /* blocks made side by side */

/* The words of a block, as philox_of() gives them, of PHILOX_SIDE blocks side by side: each
 * round is a loop over lanes. */
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

/* The words of `blocks` blocks from position `counter` on. */
static void philox(uint64_t seed, uint64_t counter, int64_t blocks, uint32_t *restrict words) {
    int64_t at = 0;
    for (; at + PHILOX_SIDE <= blocks; at += PHILOX_SIDE) philox_lanes(seed, counter + (uint64_t)at, words + 4 * at);
    for (; at < blocks; at++)
        philox_of(seed, (uint32_t)(counter + (uint64_t)at), (uint32_t)((counter + (uint64_t)at) >> 32), words + 4 * at);
}

#endif
