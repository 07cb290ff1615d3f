/* random: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011), the
 * conversion of its words to numbers, and the plan. All backends compile this file, so that a seed gives the same
 * numbers on each; a backend defines NR_SHARED (core/convert.h) and has loops of its own.
 *
 * Words become elements in order: float32 takes one (its upper 24 bits; normals: two for two), the others two, the
 * first of them low (float64: the upper 53 bits). Normals: Box and Muller (1958), cosine first. */
#ifndef NR_FAMILIES_RANDOM_H
#define NR_FAMILIES_RANDOM_H

#include <math.h>
#include <stdint.h>

#include "../core/convert.h"
#include "../core/fields.h"

/* The four words of a block, from its number in the stream (low and high half) and the key `seed`. */
NR_SHARED void philox_of(uint64_t seed, uint32_t low, uint32_t high, uint32_t words[4]) {
    uint32_t a = low, b = high, c = 0, d = 0;
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p = (uint64_t)a * 0xD2511F53u, q = (uint64_t)c * 0xCD9E8D57u;
        a = (uint32_t)(q >> 32) ^ b ^ key0;
        b = (uint32_t)q;
        c = (uint32_t)(p >> 32) ^ d ^ key1;
        d = (uint32_t)p;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    words[0] = a;
    words[1] = b;
    words[2] = c;
    words[3] = d;
}

NR_SHARED uint64_t pair(const uint32_t *words) { return words[0] | (uint64_t)words[1] << 32; }

/* The upper 64 bits of the product: x scaled from [0, 2^64) to [0, span). */
NR_SHARED uint64_t scaled(uint64_t x, uint64_t span) {
#ifdef __CUDA_ARCH__
    return __umul64hi(x, span);
#else
    return (uint64_t)((unsigned __int128)x * span >> 64);
#endif
}

NR_SHARED float uniform32(uint32_t word) { return (float)(int32_t)(word >> 8) * 0x1p-24f; }
NR_SHARED double uniform64(const uint32_t *words) { return (double)(int64_t)(pair(words) >> 11) * 0x1p-53; }

/* ---- normals ----------------------------------------------------------------------------------- */

/* log u for u in [2^-32, 1]: u = 2^e m with m in [sqrt(1/2), sqrt(2)), log m by the series of atanh. */
NR_SHARED float log_unit(float u) {
    uint32_t shifted = nr_bits_of_float(u) - 0x3f3504f3u;
    float e = (float)((int32_t)shifted >> 23), m = nr_float_of_bits((shifted & 0x007fffffu) + 0x3f3504f3u);
    float s = (m - 1.0f) / (m + 1.0f), t = s * s;
    float series = t * (0.33333333f + t * (0.2f + t * (0.14285714f + t * 0.11111111f)));
    return e * 0.69314718f + 2.0f * (s + s * series);
}

/* Two words to two normals: radius from the first, angle from the second (its quadrant, then the angle in
 * it, -pi/4 to pi/4). Without branches, so that loops become vectors. */
NR_SHARED void normals_of(const uint32_t words[2], float out[2]) {
    float u = (float)(int32_t)(words[0] >> 1) * 0x1p-31f + 0x1p-32f;
    uint32_t angle = words[1], quadrant = angle >> 30;
    float radius = sqrtf(-2.0f * log_unit(u > 1.0f ? 1.0f : u));
    float x = (float)(int32_t)(angle << 2) * (0.78539816f * 0x1p-31f), t = x * x;
    float s = x + x * t * (-1.6666667e-1f + t * (8.3333333e-3f + t * (-1.9841270e-4f + t * 2.7557319e-6f)));
    float c = 1.0f + t * (-0.5f + t * (4.1666667e-2f + t * (-1.3888889e-3f + t * (2.4801587e-5f - t * 2.7557319e-7f))));
    uint32_t swap = 0u - (quadrant & 1); /* odd quadrants exchange sine and cosine */
    uint32_t cosine = (nr_bits_of_float(c) & ~swap) | (nr_bits_of_float(s) & swap);
    uint32_t sine = (nr_bits_of_float(s) & ~swap) | (nr_bits_of_float(c) & swap);
    out[0] = radius * nr_float_of_bits(cosine ^ ((quadrant + 1) & 2) << 30);
    out[1] = radius * nr_float_of_bits(sine ^ (quadrant & 2) << 30);
}

/* Four words to two normals. */
NR_SHARED void wide_normals_of(const uint32_t words[4], double out[2]) {
    double u = ((double)(int64_t)(pair(words) >> 11) + 1.0) * 0x1p-53;
    double angle = uniform64(words + 2) * 6.283185307179586476925;
    double radius = sqrt(-2.0 * log(u));
    out[0] = radius * cos(angle);
    out[1] = radius * sin(angle);
}

/* ---- the plan ----------------------------------------------------------------------------------- */

/* n elements, C-ordered, from position `counter` of the stream of `seed`. */
typedef enum nr_random_kind {
    NR_UNIFORM,
    NR_NORMAL,
    NR_INTEGERS,
    NR_BERNOULLI,
    NR_PERMUTATION,
    NR_DROPOUT
} nr_random_kind;
NR_PLAN(nr_random_plan, OUT(void *, out),
        IN(const void *, probability), /* bernoulli: contiguous, of the output's dtype; one outside [0, 1] fails */
        IN(const void *, x), /* dropout: out = 0 x if the random number is below `least`, else scale x; mask: 0 or 1 */
        OUT(uint8_t *, mask), NUM(double, least, scale), NUM(int64_t, n), OTHER(uint64_t, seed, counter),
        NUM(int64_t, low, span), /* uniform: span equally spaced values in [0, 1) */
        KEY(uint64_t *, state),  /* the caller's {seed, counter}, which a replay reads again and advances by `blocks` */
        NUM(uint64_t, blocks), OTHER(const void *, slot), /* see core/device.h */
        SIZES(p->n));

#endif
