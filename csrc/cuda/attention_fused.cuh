/* attention_fused: attention whose scores never leave the registers, forward and backward, on tensor cores. Everything
 * is computed in one order, without atomic sums: equal inputs give equal bits.
 *
 *   forward, a block of 64 queries:     for each tile of keys:   S = Q K^T -> P = exp(S - top), sum += P, O += P V
 *   backward, a block of 64 queries:    for each tile of keys:   S = Q K^T, D = G V^T -> dS = P (D - delta), dQ += dS K
 *   backward, a block of 64 keys:       for each tile of queries: the same, transposed;    dV += P^T G; dK += dS^T Q
 *
 *   one warp:  16 rows of the block, all of a tile's columns; lane (g, t) has rows g and g + 8 (mma.cuh)
 *   shared     +- rows of the block -+-- tile r --+- tile r + 1 -+     the next tile is copied while this one is used;
 *   memory:    | Q (and G, or K, V)  |  K and V   |   K and V    |     one barrier a tile
 *
 * Forward keeps the largest score of a row (top) and the sum of its powers, and rescales O when top rises
 * (online softmax: Milakov, Gimelshein, 2018; tiles: Dao et al., "FlashAttention", 2022). It leaves logsumexp,
 * from which backward recomputes P; delta, the sum of O G over a row, is the sum of P D (Dao,
 * "FlashAttention-2", 2023, section 3.1). A mask of large numbers, as -1e4 or the least float32, may hide all keys of a
 * row. Its logsumexp, rounded, has lost the logarithm of the sum, so with a mask it is kept in two floats. */
#ifndef NR_CUDA_ATTENTION_FUSED_H
#define NR_CUDA_ATTENTION_FUSED_H

#include "attention_pairs.cuh"

/* How a block goes through tiles of N rows. In rows of 1024 bytes, shared memory holds one stage of them and, backward,
 * 32 rows of the block: there two warps have the same rows, each a half of every tile. */
template <class P, int W, int N, bool backward> struct block_of {
    using L = tile<typename P::S, W>;
    static constexpr bool is_wide = W * sizeof(typename P::S) > 512;
    static constexpr int stages = is_wide ? 1 : 2, halves = is_wide && backward ? 2 : 1;
    static constexpr int rows = WARPS / halves * 16, n = N / halves; /* n: rows of a tile that a warp takes */
    static constexpr int bytes = ((backward ? 2 : 1) * rows + stages * 2 * N) * L::ROW;
    static_assert(bytes <= 99 << 10, "a block of compute capability 8.6 has no more");
    static DEVICE int warp() { return (int)threadIdx.x / 32; }
    static DEVICE int half() { return halves == 1 ? 0 : warp() * 16 / rows; }
    static DEVICE int row() { return halves == 1 ? warp() * 16 : warp() * 16 % rows; } /* first of the warp */
};

/* ---- forward ----------------------------------------------------------------------------------------------------- */

template <class P, int W, int N, bool held, bool general>
DEVICE void forward_block(const fused_args &a, uint32_t number, unsigned char *shared) {
    using S = typename P::S;
    using L = tile<S, W>;
    using B = block_of<P, W, N, false>;
    constexpr int ROWS = B::rows, TILE = N * L::ROW;
    const uint32_t head = number / (uint32_t)a.blocks, group = (uint32_t)a.group;
    const int block = (int)(number % (uint32_t)a.blocks);
    const int first = (a.causal ? a.blocks - 1 - block : block) * ROWS; /* the longest first */
    const place at = place_of(a, head / group, (int)(head % group));
    const int lane = (int)threadIdx.x % 32, row = B::row();
    const int reach = a.causal && first + ROWS < a.keys ? first + ROWS : a.keys, rounds = (reach + N - 1) / N;
    const uint32_t q_tile = shared_address(shared), tiles = q_tile + ROWS * L::ROW; /* K, V, K, V */
    const unsigned char *in_memory = shared + ROWS * L::ROW;
    tile_loader<S, W, ROWS, THREADS> q(start<S>(a.q, at, NR_ATTENTION_Q), a.row[NR_ATTENTION_Q], first, a.queries,
                                       a.width);
    tile_loader<S, W, N, THREADS> k(start<S>(a.k, at, NR_ATTENTION_K), a.row[NR_ATTENTION_K], 0, a.keys, a.width),
        v(start<S>(a.v, at, NR_ATTENTION_V), a.row[NR_ATTENTION_V], 0, a.keys, a.value_width);
    if (threadIdx.x == 0 && !P::is_exact) a.found[number] = 0;
    const auto load = [&](uint32_t to) {
        k.load(to);
        v.load(to + TILE);
        commit_copies();
    };
    q.load(q_tile);
    load(tiles);
    float o[W / 8][4], top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
    uint32_t seen = 0; /* bits of pairs, of any tile */
#pragma unroll
    for (int j = 0; j < W / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) o[j][e] = 0;
    const float c = general ? LOG2_E : a.scale * LOG2_E;
    warp_rows<P, W, held> left(q_tile, row);
    for (int r = 0; r < rounds; r++) {
        wait_copies<0>();
        __syncthreads();
        if (r == 0) left.read();
        const uint32_t now = B::stages == 1 ? 0 : r % 2 * 2 * TILE;
        if (B::stages == 2 && r + 1 < rounds) load(tiles + (2 * TILE - now));
        float s[N / 8][4];
        uint32_t mask[N / 8][4];                                              /* no registers, unless general */
        const int query = first + row + lane / 4, key = r * N + lane % 4 * 2; /* of s[0][0] */
        const bool edge = (r + 1) * N > a.keys || (a.causal && (r + 1) * N > first + row + 1);
        if constexpr (general)
            read_mask<typename P::dtype, N, false>(a, at, edge || first + row + 16 > a.queries, query, key, mask);
        row_products<P, W, N, held>(s, left, tiles + now);
        if (edge)
#pragma unroll
            for (int j = 0; j < N / 8; j++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const int one = key + j * 8 + e % 2;
                    if (one >= a.keys || (a.causal && one > query + e / 2 * 8)) s[j][e] = general ? 0 : -INFINITY;
                }
        if constexpr (general) seen |= add_mask<typename P::dtype>(a, mask, s);
        float shrink[2];
        bool rises = false;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float high = top[h];
#pragma unroll
            for (int j = 0; j < N / 8; j++) high = fmaxf(high, fmaxf(s[j][h * 2], s[j][h * 2 + 1]));
            high = quad_largest(high);
            const float base = high == -INFINITY ? 0 : general ? high : high * c;
            rises |= high != top[h];
            shrink[h] = power_of_2(general ? (top[h] - base) * c : top[h] * c - base);
            top[h] = high;
            float add = 0;
#pragma unroll
            for (int j = 0; j < N / 8; j++)
#pragma unroll
                for (int e = h * 2; e < h * 2 + 2; e++) {
                    s[j][e] = power_of_2(general ? (s[j][e] - base) * c : s[j][e] * c - base);
                    add += s[j][e];
                }
            sum[h] = sum[h] * shrink[h] + add;
        }
        if (general && a.seed)
#pragma unroll
            for (int j = 0; j < N / 8; j++) {
                float factor[4];
                factors_of_queries(a, at, query, key + j * 8, factor);
#pragma unroll
                for (int e = 0; e < 4; e++) s[j][e] *= factor[e];
            }
        if (__any_sync(0xffffffffu, rises)) /* seldom, once the largest were met */
#pragma unroll
            for (int j = 0; j < W / 8; j++)
#pragma unroll
                for (int e = 0; e < 4; e++) o[j][e] *= shrink[e / 2];
        add_products<P, W, N>(o, s, tiles + now + TILE, in_memory + now + TILE);
        if (B::stages == 1 && r + 1 < rounds) {
            __syncthreads();
            load(tiles);
        }
    }
    note_nan<P>(a, number, o);
    S *out = start<S>(a.out, at, NR_ATTENTION_OUT);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const float all = quad_sum(sum[h]);
        const int query = first + row + h * 8 + lane / 4;
        const bool any = !general || quad_largest((seen & 0x33333333u << 2 * h) != 0) > 0;
        if (query >= a.queries) continue;
        const float part = any ? 1 / all : 0; /* a row of -infinity is NaN, but one that sees no key 0 */
#pragma unroll
        for (int j = 0; j < W / 8; j++) {
            const int column = j * 8 + lane % 4 * 2;
            if (column < a.value_width)
                P::store_two(out + (int64_t)query * a.row[NR_ATTENTION_OUT] + column, any ? o[j][h * 2] * part : 0,
                             any ? o[j][h * 2 + 1] * part : 0);
        }
        if (!a.logsumexp || lane % 4 != 0) continue;
        const float sum_in_bits = log2f(all), log_sum = sum_in_bits * LN_2;
        const float logsumexp = !any ? INFINITY : general ? top[h] + log_sum : (top[h] * c + sum_in_bits) * LN_2;
        a.logsumexp[at.head * a.queries + query] = logsumexp;
        if (general) a.logsumexp_rest[at.head * a.queries + query] = any ? top[h] - logsumexp + log_sum : 0;
    }
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* Computes, from scores s and d = g v^T of 16 x N pairs, the probabilities after dropout (s) and the gradient of the
 * scores (d). If general, s has been scaled and masked, and seen is the result of add_mask; query, key and by_keys are
 * those of read_mask. of(j, e) returns logsumexp, its rest and delta. */
template <class P, int N, bool general, bool by_keys, class Row>
DEVICE void score_gradients(const fused_args &a, const place &at, bool edge, int query, int key, uint32_t seen,
                            float (&s)[N / 8][4], float (&d)[N / 8][4], const Row &of) {
    const float c = general ? LOG2_E : a.scale * LOG2_E;
    uint32_t dropped = 0; /* a bit a pair */
    if (general && a.seed)
#pragma unroll
        for (int j = 0; j < N / 8; j++) {
            float factor[4];
            if constexpr (by_keys)
                factors_of_keys(a, at, query + j * 8, key, factor);
            else
                factors_of_queries(a, at, query, key + j * 8, factor);
#pragma unroll
            for (int e = 0; e < 4; e++) {
                d[j][e] *= factor[e];
                dropped |= (uint32_t)(factor[e] == 0) << (j * 4 + e);
            }
        }
#pragma unroll
    for (int j = 0; j < N / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            float logsumexp, rest, delta;
            of(j, e, &logsumexp, &rest, &delta);
            if constexpr (general) {
                const bool here = seen >> (j * 4 + e) & 1;
                s[j][e] = here ? power_of_2((s[j][e] - logsumexp - rest) * c) : 0;
                d[j][e] = here ? s[j][e] * (d[j][e] - delta) : 0;
            } else {
                s[j][e] = power_of_2(s[j][e] * c - logsumexp * LOG2_E);
                d[j][e] = s[j][e] * (d[j][e] - delta);
            }
        }
    if (general && a.seed)
#pragma unroll
        for (int j = 0; j < N / 8; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) s[j][e] *= dropped >> (j * 4 + e) & 1 ? 0 : a.kept_factor;
    if (edge)
#pragma unroll
        for (int j = 0; j < N / 8; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int i = e / 2 * 8, k = j * 8 + e % 2;
                const int query_of_thread = query + (by_keys ? k : i), key_of_thread = key + (by_keys ? i : k);
                if (query_of_thread >= a.queries || key_of_thread >= a.keys ||
                    (a.causal && key_of_thread > query_of_thread))
                    s[j][e] = d[j][e] = 0;
            }
}

/* The rows of a block, c times a factor, to memory. */
template <class P, int W>
DEVICE void store_rows(typename P::S *to, int pitch, int first, int end, int columns, const float (&c)[W / 8][4],
                       float factor) {
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = first + h * 8 + lane / 4;
        if (row < end)
#pragma unroll
            for (int j = 0; j < W / 8; j++) {
                const int column = j * 8 + lane % 4 * 2;
                if (column < columns)
                    P::store_two(to + (int64_t)row * pitch + column, c[j][h * 2] * factor, c[j][h * 2 + 1] * factor);
            }
    }
}

/* Adds the sums of the second of two warps that have the same rows to those of the first. */
template <int W> DEVICE void add_halves(float (&c)[W / 8][4], unsigned char *shared, int half, int row) {
    float *all = reinterpret_cast<float *>(shared) + row * W + threadIdx.x % 32;
    commit_copies();
    wait_copies<0>();
    __syncthreads(); /* the tiles are used */
    if (half)
#pragma unroll
        for (int j = 0; j < W / 8; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) all[(j * 4 + e) * 32] = c[j][e];
    __syncthreads();
    if (!half)
#pragma unroll
        for (int j = 0; j < W / 8; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) c[j][e] += all[(j * 4 + e) * 32];
}

/* dQ, and delta for the kernel that owns keys. */
template <class P, int W, int N, bool held, bool general>
DEVICE void query_block(const fused_args &a, uint32_t number, unsigned char *shared) {
    using S = typename P::S;
    using L = tile<S, W>;
    using B = block_of<P, W, N, true>;
    constexpr int ROWS = B::rows, n = B::n, TILE = N * L::ROW;
    const uint32_t head = number / (uint32_t)a.blocks, group = (uint32_t)a.group;
    const int block = (int)(number % (uint32_t)a.blocks);
    const int first = (a.causal ? a.blocks - 1 - block : block) * ROWS;
    const place at = place_of(a, head / group, (int)(head % group));
    const int lane = (int)threadIdx.x % 32, row = B::row(), half = B::half();
    const int reach = a.causal && first + ROWS < a.keys ? first + ROWS : a.keys, rounds = (reach + N - 1) / N;
    const uint32_t q_tile = shared_address(shared), g_tile = q_tile + ROWS * L::ROW, tiles = g_tile + ROWS * L::ROW;
    const unsigned char *in_memory = shared + 2 * ROWS * L::ROW;
    tile_loader<S, W, ROWS, THREADS> q(start<S>(a.q, at, NR_ATTENTION_Q), a.row[NR_ATTENTION_Q], first, a.queries,
                                       a.width),
        g(start<S>(a.g, at, NR_ATTENTION_G), a.row[NR_ATTENTION_G], first, a.queries, a.value_width);
    tile_loader<S, W, N, THREADS> k(start<S>(a.k, at, NR_ATTENTION_K), a.row[NR_ATTENTION_K], 0, a.keys, a.width),
        v(start<S>(a.v, at, NR_ATTENTION_V), a.row[NR_ATTENTION_V], 0, a.keys, a.value_width);
    if (threadIdx.x == 0 && !P::is_exact) a.found[number] = 0;
    const auto load = [&](uint32_t to) {
        k.load(to);
        v.load(to + TILE);
        commit_copies();
    };
    q.load(q_tile);
    g.load(g_tile);
    load(tiles);
    float dq[W / 8][4], logsumexp[2], rest[2], delta[2];
#pragma unroll
    for (int j = 0; j < W / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) dq[j][e] = 0;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int query = first + row + h * 8 + lane / 4;
        const bool here = query < a.queries;
        const S *x = start<S>(a.out, at, NR_ATTENTION_OUT) + (int64_t)query * a.row[NR_ATTENTION_OUT],
                *y = start<S>(a.g, at, NR_ATTENTION_G) + (int64_t)query * a.row[NR_ATTENTION_G];
        float sum = 0;
        for (int i = lane % 4 * L::IN_CHUNK; here && i < a.value_width; i += 4 * L::IN_CHUNK) {
            const auto m = *reinterpret_cast<const pack<S, L::IN_CHUNK> *>(x + i),
                       n = *reinterpret_cast<const pack<S, L::IN_CHUNK> *>(y + i);
            for (int e = 0; e < L::IN_CHUNK; e++) {
                const float slope = widen<typename P::dtype>(n.v[e]);
                sum +=
                    widen<typename P::dtype>(m.v[e]) * slope + (slope - slope); /* an infinity gives NaN, as in P D */
            }
        }
        delta[h] = quad_sum(sum);
        logsumexp[h] = here ? a.logsumexp[at.head * a.queries + query] : 0;
        rest[h] = general && here ? a.logsumexp_rest[at.head * a.queries + query] : 0;
        if (here && lane % 4 == 0 && half == 0) a.delta[at.head * a.queries + query] = delta[h];
    }
    warp_rows<P, W, held> left_q(q_tile, row), left_g(g_tile, row);
    for (int r = 0; r < rounds; r++) {
        wait_copies<0>();
        __syncthreads();
        if (r == 0) {
            left_q.read();
            left_g.read();
        }
        const uint32_t now = (B::stages == 1 ? 0 : r % 2 * 2 * TILE) + half * n * L::ROW;
        if (B::stages == 2 && r + 1 < rounds) load(tiles + (2 * TILE - now));
        float s[n / 8][4], d[n / 8][4];
        uint32_t mask[n / 8][4], seen = 0;
        const int top = r * N + half * n; /* key of the first column */
        const int query = first + row + lane / 4, key = top + lane % 4 * 2;
        const bool edge = top + n > a.keys || (a.causal && top + n > first + row + 1);
        if constexpr (general)
            read_mask<typename P::dtype, n, false>(a, at, edge || first + row + 16 > a.queries, query, key, mask);
        row_products<P, W, n, held>(s, left_q, tiles + now);
        if constexpr (general) seen = add_mask<typename P::dtype>(a, mask, s);
        row_products<P, W, n, held>(d, left_g, tiles + now + TILE);
        score_gradients<P, n, general, false>(a, at, edge, query, key, seen, s, d,
                                              [&](int, int e, float *row_logsumexp, float *row_rest, float *row_delta) {
                                                  *row_logsumexp = logsumexp[e / 2];
                                                  *row_rest = rest[e / 2];
                                                  *row_delta = delta[e / 2];
                                              });
        add_products<P, W, n>(dq, d, tiles + now, in_memory + now);
        if (B::stages == 1 && r + 1 < rounds) {
            __syncthreads();
            load(tiles);
        }
    }
    if constexpr (B::halves == 2) add_halves<W>(dq, shared, half, row);
    if (half) return;
    note_nan<P>(a, number, dq);
    store_rows<P, W>(start<S>(a.grad_q, at, NR_ATTENTION_GRAD_Q), a.row[NR_ATTENTION_GRAD_Q], first + row, a.queries,
                     a.width, dq, a.scale);
}

/* dK and dV, or one of them, summed over the heads of a group. */
template <class P, int W, int N, bool held, bool general, bool makes_k, bool makes_v>
DEVICE void key_block(const fused_args &a, uint32_t number, unsigned char *shared) {
    using S = typename P::S;
    using L = tile<S, W>;
    using B = block_of<P, W, N, true>;
    constexpr int ROWS = B::rows, n = B::n;
    constexpr int TILE = N * L::ROW, STAGE = 2 * TILE; /* Q and G; in their padding logsumexp and its rest, and delta */
    const uint32_t item = number / (uint32_t)a.blocks;
    const int first = (int)(number % (uint32_t)a.blocks) * ROWS;
    const place home = place_of(a, item, 0);
    const int lane = (int)threadIdx.x % 32, row = B::row(), half = B::half();
    const int begin = a.causal ? first / N : 0, rounds = (a.queries + N - 1) / N - begin;
    const int all = rounds > 0 ? rounds * a.group : 0;
    const uint32_t k_tile = shared_address(shared), v_tile = k_tile + ROWS * L::ROW, tiles = v_tile + ROWS * L::ROW;
    const unsigned char *in_memory = shared + 2 * ROWS * L::ROW;
    tile_loader<S, W, ROWS, THREADS> k(start<S>(a.k, home, NR_ATTENTION_K), a.row[NR_ATTENTION_K], first, a.keys,
                                       a.width),
        v(start<S>(a.v, home, NR_ATTENTION_V), a.row[NR_ATTENTION_V], first, a.keys, a.value_width);
    using loader = tile_loader<S, W, N, THREADS>;
    loader q(nullptr, 0, 0, 0, 0), g = q;
    const float *logsumexp = a.logsumexp, *rest = a.logsumexp_rest, *delta = a.delta;
    int in_group = 0, query_round = 0; /* of the next tile to load */
    const auto load = [&](int i) {
        if (query_round == 0) {
            const place at = place_of(a, item, in_group);
            q = loader(start<S>(a.q, at, NR_ATTENTION_Q), a.row[NR_ATTENTION_Q], begin * N, a.queries, a.width);
            g = loader(start<S>(a.g, at, NR_ATTENTION_G), a.row[NR_ATTENTION_G], begin * N, a.queries, a.value_width);
            logsumexp = a.logsumexp + at.head * a.queries;
            rest = a.logsumexp_rest + at.head * a.queries;
            delta = a.delta + at.head * a.queries;
        }
        const uint32_t to = tiles + (B::stages == 1 ? 0 : i % 2 * STAGE);
        q.load(to);
        g.load(to + TILE);
        for (int index = (int)threadIdx.x; index < N; index += THREADS) {
            const int query = (begin + query_round) * N + index;
            copy_async<4>(to + index * L::ROW + L::PADDING, logsumexp + query, query < a.queries);
            if (general) copy_async<4>(to + index * L::ROW + L::PADDING + 4, rest + query, query < a.queries);
            copy_async<4>(to + TILE + index * L::ROW + L::PADDING, delta + query, query < a.queries);
        }
        commit_copies();
        if (++query_round == rounds) {
            query_round = 0;
            in_group++;
        }
    };
    if (threadIdx.x == 0 && !P::is_exact) a.found[number] = 0;
    k.load(k_tile);
    v.load(v_tile);
    if (all > 0) load(0);
    float dk[W / 8][4], dv[W / 8][4]; /* no registers, where it is not made */
#pragma unroll
    for (int j = 0; j < W / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) dk[j][e] = dv[j][e] = 0;
    warp_rows<P, W, held> left_k(k_tile, row), left_v(v_tile, row);
    place at = home;
    int used = 0, head_used = 0; /* the tile at hand: of its head, and the head */
    for (int i = 0; i < all; i++) {
        wait_copies<0>();
        __syncthreads();
        if (i == 0) {
            left_k.read();
            left_v.read();
        }
        if (B::stages == 2 && i + 1 < all) load(i + 1);
        const uint32_t now = (B::stages == 1 ? 0 : i % 2 * STAGE) + half * n * L::ROW;
        const unsigned char *padding =
            in_memory + now + lane % 4 * 2 * L::ROW + L::PADDING; /* of the first column's row */
        const int top = (begin + used) * N + half * n;            /* query of the first column */
        float s[n / 8][4], d[n / 8][4] = {};
        uint32_t mask[n / 8][4], seen = 0;
        const int query = top + lane % 4 * 2, key = first + row + lane / 4; /* of s[0][0] */
        const bool edge = top + n > a.queries || first + ROWS > a.keys || (a.causal && top < first + row + 16);
        if constexpr (general) read_mask<typename P::dtype, n, true>(a, at, edge, query, key, mask);
        row_products<P, W, n, held>(s, left_k, tiles + now); /* keys down, queries across */
        if constexpr (general) seen = add_mask<typename P::dtype>(a, mask, s);
        if constexpr (makes_k) row_products<P, W, n, held>(d, left_v, tiles + now + TILE);
        score_gradients<P, n, general, true>(
            a, at, edge, query, key, seen, s, d,
            [&](int j, int e, float *row_logsumexp, float *row_rest, float *row_delta) {
                const unsigned char *statistics = padding + (j * 8 + e % 2) * L::ROW;
                *row_logsumexp = *reinterpret_cast<const float *>(statistics);
                *row_rest = general ? *reinterpret_cast<const float *>(statistics + 4) : 0;
                *row_delta = *reinterpret_cast<const float *>(statistics + TILE);
            });
        if constexpr (makes_v) add_products<P, W, n>(dv, s, tiles + now + TILE, in_memory + now + TILE);
        if constexpr (makes_k) add_products<P, W, n>(dk, d, tiles + now, in_memory + now);
        if (++used == rounds && ++head_used < a.group) {
            used = 0;
            if (general) at = place_of(a, item, head_used);
        }
        if (B::stages == 1 && i + 1 < all) {
            __syncthreads();
            load(i + 1);
        }
    }
    if constexpr (B::halves == 2) {
        static_assert(makes_k != makes_v, "room for the sums of one");
        add_halves<W>(makes_k ? dk : dv, shared, half, row);
    }
    if (half) return;
    if constexpr (makes_k) {
        note_nan<P>(a, number, dk);
        store_rows<P, W>(start<S>(a.grad_k, home, NR_ATTENTION_GRAD_K), a.row[NR_ATTENTION_GRAD_K], first + row, a.keys,
                         a.width, dk, a.scale);
    }
    if constexpr (makes_v) {
        note_nan<P>(a, number, dv);
        store_rows<P, W>(start<S>(a.grad_v, home, NR_ATTENTION_GRAD_V), a.row[NR_ATTENTION_GRAD_V], first + row, a.keys,
                         a.value_width, dv, 1);
    }
}

/* ---- kernels and their launch ------------------------------------------------------------------------------------ */

enum fused_pass { FUSED_FORWARD, FUSED_QUERIES, FUSED_KEYS, FUSED_KEYS_ONLY, FUSED_VALUES_ONLY };

/* W: columns of a tile, at least the widths; N: rows of the tiles that a block reads; most: blocks of a multiprocessor.
 * The exact policy runs only for blocks that met a NaN. */
template <class P, int W, int N, int pass, int most, bool held, bool general>
__global__ void __launch_bounds__(THREADS, most) fused(const fused_args a) {
#if NR_HAS_MMA
    DYNAMIC_SHARED(unsigned char, shared);
    TELL_SHARED((block_of<P, W, N, pass != FUSED_FORWARD>::bytes));
    const auto run = [&](uint32_t number) {
        if constexpr (pass == FUSED_FORWARD)
            forward_block<P, W, N, held, general>(a, number, shared);
        else if constexpr (pass == FUSED_QUERIES)
            query_block<P, W, N, held, general>(a, number, shared);
        else
            key_block<P, W, N, held, general, pass != FUSED_VALUES_ONLY, pass != FUSED_KEYS_ONLY>(a, number, shared);
    };
    if constexpr (P::is_exact) {
        const uint32_t all = (uint32_t)(a.items * a.blocks * (pass >= FUSED_KEYS ? 1 : a.group));
        for (uint32_t number = blockIdx.x; number < all; number += gridDim.x)
            if (a.found[number]) {
                run(number);
                __syncthreads();
            }
    } else {
        run(blockIdx.x);
    }
#endif
}

template <class P, int W, int N, int pass, int most, bool held, bool general>
static int32_t launch_fused(const nr_call *call, fused_args a) {
    using B = block_of<P, W, N, pass != FUSED_FORWARD>;
    const int64_t rows = pass >= FUSED_KEYS ? a.keys : a.queries;
    a.blocks = (int32_t)((rows + B::rows - 1) / B::rows);
    int64_t blocks = a.items * a.blocks * (pass >= FUSED_KEYS ? 1 : a.group);
    const int64_t few = (int64_t)gpu_of(call)->multiprocessors * 2;
    if (P::is_exact && blocks > few) blocks = few;
    const auto kernel = fused<P, W, N, pass, most, held, general>;
    TRY(nr_call_name(call), cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, B::bytes));
    LAUNCH(kernel, (unsigned)blocks, THREADS, B::bytes, gpu_of(call)->stream, a);
    return launched(call);
}

/* A pass, and then, for 3xTF32, exact products for the blocks that met a NaN. This is rare, so one size of tiles is
 * enough for all widths whose blocks have the same number of rows. Compared to products of wide rows the masks of
 * `general` cost little. */
template <class P, int W, int N, int pass, int most, bool held>
static int32_t run_pass(const nr_call *call, const fused_args &a) {
    constexpr bool is_wide = block_of<P, W, N, pass != FUSED_FORWARD>::is_wide;
    if (is_wide || a.mask || a.seed || !(a.scale > 0))
        NR_TRY((launch_fused<P, W, N, pass, most, held, true>(call, a)));
    else if constexpr (!is_wide)
        NR_TRY((launch_fused<P, W, N, pass, most, held, false>(call, a)));
    if constexpr (P::promotes) {
        constexpr int width = is_wide ? W : 128;
        return launch_fused < single<width, true>, width, pass == FUSED_FORWARD && !is_wide ? 32 : 16, pass, 1, held,
               true > (call, a);
    }
    return NORCH_OK;
}

/* All passes of tiles W wide, of which the one forward goes through `keys` rows at a time; by_queries, by_keys: those
 * of the two backward. most: blocks of a multiprocessor. */
template <class P, int W, int keys, int by_queries, int by_keys, int most, bool held>
static int32_t run_fused(const nr_call *call, const fused_args &a) {
    if (call->op == NR_ATTENTION_FUSED) return run_pass<P, W, keys, FUSED_FORWARD, most, held>(call, a);
    NR_TRY((run_pass<P, W, by_queries, FUSED_QUERIES, 2, held>(call, a)));
    if constexpr (W > 128) { /* the registers hold one sum */
        NR_TRY((run_pass<P, W, by_keys, FUSED_KEYS_ONLY, 2, held>(call, a)));
        return run_pass<P, W, by_keys, FUSED_VALUES_ONLY, 2, held>(call, a);
    } else {
        return run_pass<P, W, by_keys, FUSED_KEYS, 2, held>(call, a);
    }
}

/* The fused attention of a dtype of 16 bits, by its width. */
template <class D, int W, int keys, int by_queries, int by_keys, int most, bool held>
static int32_t run_16bit(const nr_call *call, const fused_args &a) {
    return run_fused<half16<D, W>, W, keys, by_queries, by_keys, most, held>(call, a);
}

template <class D> static int32_t attend_16bit(const nr_call *call, const fused_args &a) {
    const int32_t width = a.width > a.value_width ? a.width : a.value_width;
    if (width <= 32) return run_16bit<D, 32, 64, 64, 64, 3, true>(call, a);
    if (width <= 64) return run_16bit<D, 64, 64, 64, 64, 3, true>(call, a);
    if (width <= 128) return run_16bit<D, 128, 64, 32, 32, 2, false>(call, a);
    return run_16bit<D, 256, 32, 16, 16, 1, false>(call, a);
}

#endif
