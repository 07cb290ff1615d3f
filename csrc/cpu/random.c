/* random: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011),
 * and the distributions made of its words. The counter of a block is its number in the stream, the
 * key is the seed; so each chunk starts where it likes.
 *
 * Words become elements in order: float32 takes one (its upper 24 bits; normals: two for two), the others
 * two, the first of them low (float64: the upper 53 bits). Normals: Box and Muller (1958), cosine first. */
#include <math.h>
#include <string.h>

#include "cpu.h"

#define LANES 64    /* blocks made at a time */
#define CHUNK 16384 /* elements a thread takes at a time, whole blocks of any dtype */
#define WORDS (4 * LANES)

/* The words of `blocks` blocks, at most LANES, from position `counter` on. */
static void philox(uint64_t seed, uint64_t counter, int64_t blocks, uint32_t *restrict words) {
    uint32_t low[LANES], high[LANES];
    for (int64_t i = 0; i < blocks; i++) {
        low[i] = (uint32_t)(counter + (uint64_t)i);
        high[i] = (uint32_t)((counter + (uint64_t)i) >> 32);
    }
    for (int64_t i = 0; i < blocks; i++) {
        uint32_t a = low[i], b = high[i], c = 0, d = 0;
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
        words[4 * i] = a;
        words[4 * i + 1] = b;
        words[4 * i + 2] = c;
        words[4 * i + 3] = d;
    }
}

static uint64_t pair(const uint32_t *words) { return words[0] | (uint64_t)words[1] << 32; }

/* The upper 64 bits of the product: x scaled from [0, 2^64) to [0, span). */
static uint64_t scaled(uint64_t x, uint64_t span) { return (uint64_t)((unsigned __int128)x * span >> 64); }

static float uniform32(uint32_t word) { return (float)(int32_t)(word >> 8) * 0x1p-24f; }
static double uniform64(const uint32_t *words) { return (double)(int64_t)(pair(words) >> 11) * 0x1p-53; }

/* ---- normals ----------------------------------------------------------------------------------- */

static inline float float_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t bits_of_float(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* log u for u in [2^-32, 1]: u = 2^e m with m in [sqrt(1/2), sqrt(2)), log m by the series of atanh. */
static inline float log_unit(float u) {
    uint32_t shifted = bits_of_float(u) - 0x3f3504f3u;
    float e = (float)((int32_t)shifted >> 23), m = float_of_bits((shifted & 0x007fffffu) + 0x3f3504f3u);
    float s = (m - 1.0f) / (m + 1.0f), t = s * s;
    float series = t * (0.33333333f + t * (0.2f + t * (0.14285714f + t * 0.11111111f)));
    return e * 0.69314718f + 2.0f * (s + s * series);
}

/* Words to normals, two by two: radius from the first, angle from the second (its quadrant, then the
 * angle in it, -pi/4 to pi/4). Free of branches, so that it becomes vectors. */
static void normals32(float *restrict out, const uint32_t *restrict words, int64_t pairs) {
    for (int64_t i = 0; i < pairs; i++) {
        float u = (float)(int32_t)(words[2 * i] >> 1) * 0x1p-31f + 0x1p-32f;
        uint32_t angle = words[2 * i + 1], quadrant = angle >> 30;
        float radius = sqrtf(-2.0f * log_unit(u > 1.0f ? 1.0f : u));
        float x = (float)(int32_t)(angle << 2) * (0.78539816f * 0x1p-31f), t = x * x;
        float s = x + x * t * (-1.6666667e-1f + t * (8.3333333e-3f + t * (-1.9841270e-4f + t * 2.7557319e-6f)));
        float c =
            1.0f + t * (-0.5f + t * (4.1666667e-2f + t * (-1.3888889e-3f + t * (2.4801587e-5f - t * 2.7557319e-7f))));
        uint32_t swap = 0u - (quadrant & 1); /* every other quadrant exchanges sine and cosine */
        uint32_t cosine = (bits_of_float(c) & ~swap) | (bits_of_float(s) & swap);
        uint32_t sine = (bits_of_float(s) & ~swap) | (bits_of_float(c) & swap);
        out[2 * i] = radius * float_of_bits(cosine ^ ((quadrant + 1) & 2) << 30);
        out[2 * i + 1] = radius * float_of_bits(sine ^ (quadrant & 2) << 30);
    }
}

static void normals64(double *restrict out, const uint32_t *restrict words, int64_t pairs) {
    for (int64_t i = 0; i < pairs; i++) {
        double u = ((double)(int64_t)(pair(words + 4 * i) >> 11) + 1.0) * 0x1p-53;
        double angle = uniform64(words + 4 * i + 2) * 6.283185307179586476925;
        double radius = sqrt(-2.0 * log(u));
        out[2 * i] = radius * cos(angle);
        out[2 * i + 1] = radius * sin(angle);
    }
}

/* ---- words to elements --------------------------------------------------------------------------- */

static void convert_floats(const nr_call *call, int64_t first, int64_t n, const uint32_t *words) {
    const nr_random_plan *plan = call->plan;
    const bool narrow = call->dtype == NORCH_FLOAT32;
    float *out32 = (float *)plan->out + (narrow ? first : 0);
    double *out64 = (double *)plan->out + (narrow ? 0 : first);
    if (call->op == NR_NORMAL) { /* made in twos, and n kept */
        float made32[WORDS];
        double made64[2 * LANES];
        if (narrow) {
            normals32(made32, words, (n + 1) / 2);
            memcpy(out32, made32, (size_t)n * sizeof(float));
        } else {
            normals64(made64, words, (n + 1) / 2);
            memcpy(out64, made64, (size_t)n * sizeof(double));
        }
    } else if (call->op == NR_BERNOULLI && narrow) {
        const float *p = (const float *)plan->probability + first;
        for (int64_t i = 0; i < n; i++) out32[i] = uniform32(words[i]) < p[i] ? 1.0f : 0.0f;
    } else if (call->op == NR_BERNOULLI) {
        const double *p = (const double *)plan->probability + first;
        for (int64_t i = 0; i < n; i++) out64[i] = uniform64(words + 2 * i) < p[i] ? 1.0 : 0.0;
    } else if (narrow) {
        uint32_t kept = (uint32_t)-(((int64_t)1 << 32) / plan->span); /* fewer values: fewer of the upper bits */
        for (int64_t i = 0; i < n; i++) out32[i] = uniform32(words[i] & kept);
    } else {
        for (int64_t i = 0; i < n; i++) out64[i] = uniform64(words + 2 * i);
    }
}

static void convert_integers(const nr_call *call, int64_t first, int64_t n, const uint32_t *words) {
    const nr_random_plan *plan = call->plan;
    const uint64_t low = (uint64_t)plan->low, span = (uint64_t)plan->span;
    for (int64_t i = 0; i < n; i++) {
        int64_t value = (int64_t)(low + scaled(pair(words + 2 * i), span));
        switch (call->dtype) {
        case NORCH_UINT8: ((uint8_t *)plan->out)[first + i] = (uint8_t)value; break;
        case NORCH_INT32: ((int32_t *)plan->out)[first + i] = (int32_t)value; break;
        case NORCH_INT64: ((int64_t *)plan->out)[first + i] = value; break;
        case NORCH_FLOAT32: ((float *)plan->out)[first + i] = (float)value; break;
        default: ((double *)plan->out)[first + i] = (double)value;
        }
    }
}

/* Fisher and Yates, from the back: the element at place i changes with one of the i + 1 up to it. */
static void permute(const nr_random_plan *plan) {
    int64_t *out = plan->out;
    uint32_t words[WORDS];
    for (int64_t i = 0; i < plan->n; i++) out[i] = i;
    for (int64_t drawn = 0; drawn < plan->n; drawn++) {
        int64_t in_batch = drawn % (2 * LANES), i = plan->n - 1 - drawn;
        if (in_batch == 0) philox(plan->seed, plan->counter + (uint64_t)(drawn / 2), LANES, words);
        int64_t other = (int64_t)scaled(pair(words + 2 * in_batch), (uint64_t)i + 1), keep = out[i];
        out[i] = out[other];
        out[other] = keep;
    }
}

static void run_chunk(void *context, int64_t chunk) {
    const nr_call *call = context;
    const nr_random_plan *plan = call->plan;
    const bool integers = call->op == NR_INTEGERS;
    const int64_t in_block = call->dtype == NORCH_FLOAT32 && !integers ? 4 : 2;
    int64_t last = (chunk + 1) * CHUNK < plan->n ? (chunk + 1) * CHUNK : plan->n;
    uint32_t words[WORDS];
    for (int64_t first = chunk * CHUNK; first < last; first += in_block * LANES) {
        int64_t n = last - first < in_block * LANES ? last - first : in_block * LANES;
        philox(plan->seed, plan->counter + (uint64_t)(first / in_block), (n + in_block - 1) / in_block, words);
        if (integers)
            convert_integers(call, first, n, words);
        else
            convert_floats(call, first, n, words);
    }
}

int32_t nr_run_random(const nr_call *call) {
    const nr_random_plan *plan = call->plan;
    if (call->op == NR_PERMUTATION)
        permute(plan);
    else
        nr_parallel((plan->n + CHUNK - 1) / CHUNK, run_chunk, (void *)(uintptr_t)call);
    return NORCH_OK;
}
