/* attention_pairs: the parts that the fused kernels of attention share: their arguments, the addresses of operands, and
 * the effect of a mask and of dropout on a pair of a query and a key. */
#ifndef NR_CUDA_ATTENTION_PAIRS_H
#define NR_CUDA_ATTENTION_PAIRS_H

#include "attention_tile.cuh"

#include "../families/attention.h"
#include "../families/random.h"

#define LOG2_E 1.44269504088896341f
#define LN_2 0.693147180559945309f
#define WARPS 4
#define THREADS (WARPS * 32)
#define FEWEST_ROWS (WARPS * 8) /* of a block */

struct fused_args {
    const void *q, *k, *v, *g, *mask;
    void *out, *grad_q, *grad_k, *grad_v; /* out: read going backward */
    float *logsumexp, *logsumexp_rest;    /* a row each, (items x group, queries); rest: what rounding leaves */
    float *delta;                         /* a row each */
    const uint64_t *seed;                 /* of dropout */
    int32_t *found;                       /* a block each: whether it met a NaN */
    int32_t queries, keys, width, value_width, group, blocks;
    int32_t row[NR_ATTENTION_OPERANDS];
    int64_t group_stride[NR_ATTENTION_OPERANDS], mask_row, mask_column;
    float scale, kept_factor; /* 1 / (1 - dropout) */
    uint32_t dropped;         /* of 2^24 draws */
    bool causal, mask_is_bool;
    int64_t items;
    nest<NR_ATTENTION_OPERANDS> batch; /* of items */
};

int32_t nr_cuda_attend_float32(const nr_call *call, const fused_args &a);
int32_t nr_cuda_attend_float16(const nr_call *call, const fused_args &a);
int32_t nr_cuda_attend_bfloat16(const nr_call *call, const fused_args &a);

/* The address, in operand o, of an item and of a head of the group that shares its keys. */
struct place {
    int64_t at[NR_ATTENTION_OPERANDS], head;
    uint64_t seed;
};
DEVICE place place_of(const fused_args &a, uint32_t item, int in_group) {
    place p;
    a.batch.find(item, p.at);
#pragma unroll
    for (int o = 0; o < NR_ATTENTION_OPERANDS; o++) p.at[o] += in_group * a.group_stride[o];
    p.head = (int64_t)item * a.group + in_group;
    p.seed = a.seed ? *a.seed : 0;
    return p;
}
template <class S> DEVICE const S *start(const void *x, const place &p, int operand) {
    return static_cast<const S *>(x) + p.at[operand];
}
template <class S> DEVICE S *start(void *x, const place &p, int operand) { return static_cast<S *>(x) + p.at[operand]; }

DEVICE float power_of_2(float x) {
#ifdef CUDASIM
    return exp2f(x);
#else
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#endif
}

/* Largest, or sum, over the four lanes that share a row. */
DEVICE float quad_largest(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
DEVICE float quad_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/* ---- masks and dropout, which kernels with `general` have -------------------------------------------------------- */

/* Converts a number or a bool in memory to a word, and back. */
DEVICE uint32_t word_of(float x) { return (uint32_t)__float_as_int(x); }
DEVICE uint32_t word_of(uint16_t x) { return x; }
DEVICE uint32_t word_of(bool x) { return x; }
template <class D> DEVICE float number_in(uint32_t word) {
    if constexpr (is_same<typename D::S, float>)
        return __int_as_float((int)word);
    else
        return widen<D>((typename D::S)word);
}

DEVICE bool sees(const fused_args &a, int query, int key) {
    return key < a.keys && query < a.queries && !(a.causal && key > query);
}

/* Reads the mask of 16 x n pairs. The pair (j, e) is query + 8 (e / 2), key + 8 j + e % 2; with by_keys the other way
 * about. edge: some pairs may be outside, and count as hidden; without a mask all pairs are visible. Words are read
 * unconverted, so that nothing waits for them until add_mask(), after the products. */
template <class D, int n, bool by_keys>
DEVICE void read_mask(const fused_args &a, const place &p, bool edge, int query, int key, uint32_t (&words)[n / 8][4]) {
    using S = typename D::S;
    const auto each = [&](const auto &word) {
#pragma unroll
        for (int j = 0; j < n / 8; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int i = e / 2 * 8, k = j * 8 + e % 2;
                words[j][e] = word(by_keys ? k : i, by_keys ? i : k);
            }
    };
    const auto read = [&](auto *mask, uint32_t hidden) {
        mask += p.at[NR_ATTENTION_MASK] + query * a.mask_row + key * a.mask_column;
        if (!edge && a.mask_column == 1)
            each([&](int i, int k) { return word_of(mask[i * a.mask_row + k]); });
        else
            each([&](int i, int k) {
                return sees(a, query + i, key + k) ? word_of(mask[i * a.mask_row + k * a.mask_column]) : hidden;
            });
    };
    if (!a.mask)
        each([&](int i, int k) -> uint32_t { return !edge || sees(a, query + i, key + k); });
    else if (a.mask_is_bool)
        read(static_cast<const bool *>(a.mask), false);
    else
        read(static_cast<const S *>(a.mask), word_of(narrow<D>(-INFINITY)));
}

/* Scales sums and adds the mask: -infinity where a query does not see a key. Returns a bit a pair, 4 j + e: whether it
 * does. A NaN is seen, but behind a mask of bools. */
template <class D, int tiles>
DEVICE uint32_t add_mask(const fused_args &a, const uint32_t (&words)[tiles][4], float (&s)[tiles][4]) {
    static_assert(tiles <= 8, "");
    uint32_t seen = 0;
    const auto each = [&](const auto &added) {
#pragma unroll
        for (int j = 0; j < tiles; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const float x = added(words[j][e], &s[j][e]);
                s[j][e] = s[j][e] * a.scale + x;
                if (x != -INFINITY || s[j][e] != s[j][e]) seen |= 1u << (j * 4 + e);
            }
    };
    if (!a.mask || a.mask_is_bool)
        each([](uint32_t word, float *sum) {
            *sum = word ? *sum : 0;
            return word ? 0 : -INFINITY;
        });
    else
        each([](uint32_t word, float *) { return number_in<D>(word); });
    return seen;
}

/* Dropout draws uniform32 of the words of a stream (families/random.h) that has a row of whole blocks, of four keys
 * each, for a query. Lanes that share blocks draw them together. */
DEVICE void draw(const fused_args &a, const place &p, int query, int key, uint32_t *words) {
    const uint64_t row = (uint64_t)p.head * (uint64_t)a.queries + (uint64_t)query;
    const uint64_t block = row * ((uint64_t)(a.keys + 3) / 4) + (uint64_t)key / 4;
    philox_of(p.seed, (uint32_t)block, (uint32_t)(block >> 32), words);
}
/* The factor of a weight: 0, or 1 / (1 - dropout). */
DEVICE float factor_of(const fused_args &a, uint32_t word) { return word >> 8 < a.dropped ? 0.0f : a.kept_factor; }
DEVICE uint32_t exchanged(uint32_t x, int lanes) { return __shfl_xor_sync(0xffffffffu, x, lanes); }

/* Factors of four sums, keys across: e is query + 8 (e / 2), key + e % 2. Two lanes have four keys
 * of two rows: each draws one row. */
DEVICE void factors_of_queries(const fused_args &a, const place &p, int query, int key, float (&f)[4]) {
    const bool odd = threadIdx.x % 2;
    uint32_t w[4];
    draw(a, p, query + (odd ? 8 : 0), key, w);
    const uint32_t local[2] = {odd ? w[2] : w[0], odd ? w[3] : w[1]};
    const uint32_t other[2] = {exchanged(odd ? w[0] : w[2], 1), exchanged(odd ? w[1] : w[3], 1)};
#pragma unroll
    for (int e = 0; e < 4; e++) f[e] = factor_of(a, (e / 2 == 1) == odd ? local[e % 2] : other[e % 2]);
}

/* The same, queries across: e is query + e % 2, key + 8 (e / 2). Four lanes have four keys each of four pairs e: lane m
 * draws pair m and gets word m of all pairs, a transposed matrix. */
DEVICE void factors_of_keys(const fused_args &a, const place &p, int query, int key, float (&f)[4]) {
    const int m = (int)threadIdx.x / 4 % 4;
    const bool odd = m % 2, high = m / 2;
    uint32_t w[4];
    draw(a, p, query + m % 2, key + m / 2 * 8, w);
    /* of the pairs m - m % 2 and the next, the words m % 2 and m % 2 + 2 */
    const uint32_t near[2] = {exchanged(odd ? w[0] : w[1], 4), exchanged(odd ? w[2] : w[3], 4)};
    const uint32_t first[2] = {odd ? near[0] : w[0], odd ? near[1] : w[2]};
    const uint32_t second[2] = {odd ? w[1] : near[0], odd ? w[3] : near[1]};
    const uint32_t far[2] = {exchanged(high ? first[0] : first[1], 8), exchanged(high ? second[0] : second[1], 8)};
    f[0] = factor_of(a, high ? far[0] : first[0]);
    f[1] = factor_of(a, high ? far[1] : second[0]);
    f[2] = factor_of(a, high ? first[1] : far[0]);
    f[3] = factor_of(a, high ? second[1] : far[1]);
}

/* Records that the block met a NaN. Only 3xTF32 of float32 can produce one from finite numbers. */
template <class P, int n> DEVICE void note_nan(const fused_args &a, uint32_t block, const float (&c)[n][4]) {
    if constexpr (is_same<typename P::S, float> && !P::is_exact) {
        float sum = 0;
#pragma unroll
        for (int j = 0; j < n; j++)
#pragma unroll
            for (int q = 0; q < 4; q++) sum += c[j][q] * 0.0f; /* NaN for infinities, too */
        if (sum != sum) a.found[block] = 1;
    }
}

#endif
