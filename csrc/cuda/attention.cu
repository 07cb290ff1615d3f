/* attention: products by the tiles of matmul.cu with a softmax between them, where there is no fused kernel
 * (attention_fused.cuh): for float64, and devices without the instructions of mma.cuh. Some items of the batch at a
 * time are computed, or some queries of one, so that the memory for their scores stays bounded; the backward pass
 * recomputes the scores, as on the CPU.
 *
 *   a part: items x R queries      scratch, up to SCORES_BYTES        out
 *     Q (R, E)  x  K^T (E, S)  ->  scores (R, S) -softmax-> P    ->   P V (R, V)      launches: product, rows, product
 *                                  a team of threads a row (rows.cuh); 0 for keys behind a causal query
 *   backward, from g:
 *     P again;  D = g V^T;  dS = scale P (D - the sum of P D);  dQ = dS K;  dK += dS^T Q;  dV += P^T g
 *
 * Queries in parts, scores recomputed in backward: Rabe and Staats, "Self-attention
 * Does Not Need O(n^2) Memory" (2021). */
#include "../families/matmul.h"
#include "attention_pairs.cuh"
#include "rows.cuh"

/* The scratch memory for the scores of one part, unless the scores of a single query take more. */
#ifdef CUDASIM
#define SCORES_BYTES ((int64_t)16 << 10) /* small, so that tests have several parts */
#else
#define SCORES_BYTES ((int64_t)64 << 20)
#endif

struct score_args {
    void *scores;
    const void *slopes_of;           /* back: the probabilities, scores being their gradient */
    int64_t rows, n, queries, first; /* first: of the queries, that of row 0 */
    double scale;
    int32_t team;
    bool causal, wide;
};

template <class T> DEVICE line line_of(const score_args &a, int64_t *row, int64_t *seen) {
    *row = (int64_t)blockIdx.x * (NR_BLOCK / a.team) + threadIdx.x / a.team;
    const bool here = *row < a.rows;
    *row = here ? *row : 0;
    const int64_t query = a.first + *row % a.queries;
    *seen = a.causal && query + 1 < a.n ? query + 1 : a.n;
    return {here ? a.n : 0, (int)threadIdx.x % a.team, a.team, a.wide};
}

/* scores = softmax(scale scores) over the keys that a query sees, and 0 for other keys. */
template <class T, int packs> __global__ void __launch_bounds__(NR_BLOCK) attend(const score_args a) {
    using A = share_sum<T, packs>;
    constexpr int W = line::W<T>;
    int64_t row, seen;
    const line l = line_of<T>(a, &row, &seen);
    T *scores = static_cast<T *>(a.scores) + row * a.n, top = -(T)INFINITY;
    share<T, packs> x(l, scores);
    const auto get = [&](int64_t p, T(&v)[W]) {
        x.get(l, p, v);
#pragma unroll
        for (int k = 0; k < W; k++) v[k] = l.at<T>(p, k) < seen ? v[k] * (T)a.scale : -(T)INFINITY;
    };
    each_pack<T, packs>(l, [&](int64_t p) {
        T v[W];
        get(p, v);
#pragma unroll
        for (int k = 0; k < W; k++) top = v[k] > top ? v[k] : top;
    });
    top = largest_of(l, top);
    A sum = 0;
    each_pack<T, packs>(l, [&](int64_t p) {
        T v[W];
        get(p, v);
#pragma unroll
        for (int k = 0; k < W; k++) sum += l.at<T>(p, k) < seen ? (A)exp(v[k] - top) : A(0);
    });
    const T part = (T)(A(1) / add_up(l, sum));
    each_pack<T, packs>(l, [&](int64_t p) {
        T v[W];
        get(p, v);
#pragma unroll
        for (int k = 0; k < W; k++) v[k] = l.at<T>(p, k) < seen ? exp(v[k] - top) * part : T(0);
        l.store(scores, v, p);
    });
}

/* The gradient of the scores from the gradient d of the probabilities p: scale p (d - the sum of p d). */
template <class T, int packs> __global__ void __launch_bounds__(NR_BLOCK) attend_backward(const score_args a) {
    using A = share_sum<T, packs>;
    constexpr int W = line::W<T>;
    int64_t row, seen;
    const line l = line_of<T>(a, &row, &seen);
    T *slopes = static_cast<T *>(a.scores) + row * a.n;
    const share<T, packs> d(l, slopes), p(l, static_cast<const T *>(a.slopes_of) + row * a.n);
    A sum = 0;
    each_pack<T, packs>(l, [&](int64_t at) {
        T v[W], w[W];
        d.get(l, at, v);
        p.get(l, at, w);
#pragma unroll
        for (int k = 0; k < W; k++) sum += l.at<T>(at, k) < seen ? (A)(v[k] * w[k]) : A(0);
    });
    const T mean = (T)add_up(l, sum);
    each_pack<T, packs>(l, [&](int64_t at) {
        T v[W], w[W];
        d.get(l, at, v);
        p.get(l, at, w);
#pragma unroll
        for (int k = 0; k < W; k++) v[k] = l.at<T>(at, k) < seen ? w[k] * (v[k] - mean) * (T)a.scale : T(0);
        l.store(slopes, v, at);
    });
}

template <class T>
__global__ void __launch_bounds__(NR_BLOCK) add_to(T *sum, int64_t row, const T *x, int64_t columns, int64_t n) {
    const int64_t i = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i < n) sum[i / columns * row + i % columns] += x[i];
}

/* The part that is computed at once: all queries of some items, or some queries of one item, from query `first` on. */
struct attention_part {
    nr_attention_plan p;
    int64_t items, first;
};

template <class T>
static int32_t run_rows(const nr_call *call, const attention_part &part, bool is_backward, void *scores,
                        const void *probabilities) {
    const nr_attention_plan &p = part.p;
    score_args a = {scores,   probabilities, part.items * p.queries, p.keys, p.queries, part.first, p.scale, 0,
                    p.causal, false};
    if (a.rows == 0 || a.n == 0) return NORCH_OK;
    const row_shape shape = row_shape_of<T>(a.rows, a.n);
    a.team = shape.team;
    a.wide = a.n % line::W<T> == 0 && is_aligned(scores, 16) && is_aligned(probabilities, 16);
    auto kernel = with_packs(shape.packs, [&](auto n) {
        constexpr int packs = decltype(n)::packs;
        return is_backward ? attend_backward<T, packs> : attend<T, packs>;
    });
    LAUNCH(kernel, shape.blocks, NR_BLOCK, 0, gpu_of(call)->stream, a);
    return launched(call);
}

/* A matrix of each item; stride: from item to item in each loop of the batch, NULL
 * where they lie one behind another. */
struct items_of {
    const void *data;
    int64_t row, column;
    const int64_t *stride;
};

/* c (m, n) = a (m, k) b (k, n) for all items. */
static int32_t product(const nr_call *call, const nr_attention_plan &p, const items_of &c, int64_t m, int64_t n,
                       int64_t k, const items_of &a, const items_of &b) {
    nr_matmul_plan plan = {};
    const items_of all[3] = {c, a, b};
    const int64_t size[3] = {m * n, m * k, k * n};
    int64_t items = 1;
    plan.batch_ndim = p.batch_ndim;
    for (int32_t d = 0; d < p.batch_ndim; d++) {
        plan.batch[d] = p.batch[d];
        for (int o = 0; o < 3; o++) plan.batch_stride[o][d] = all[o].stride ? all[o].stride[d] : items * size[o];
        items *= p.batch[d];
    }
    if (m == 0 || n == 0 || items == 0) return NORCH_OK;
    plan.m = m;
    plan.n = n;
    plan.k = k;
    plan.a = a.data;
    plan.a_row = a.row;
    plan.a_col = a.column;
    plan.b = b.data;
    plan.b_row = b.row;
    plan.b_col = b.column;
    plan.c = const_cast<void *>(c.data);
    plan.c_row = c.row;
    nr_call one = *call;
    one.plan = &plan;
    return nr_cuda_matmul(&one);
}

template <class T> static int32_t forward(const nr_call *call, const attention_part &part, T *scores) {
    const nr_attention_plan &p = part.p;
    const items_of q = {p.q, p.row[NR_ATTENTION_Q], 1, p.batch_stride[NR_ATTENTION_Q]},
                   v = {p.v, p.row[NR_ATTENTION_V], 1, p.batch_stride[NR_ATTENTION_V]};
    const items_of keys_across = {p.k, 1, p.row[NR_ATTENTION_K], p.batch_stride[NR_ATTENTION_K]},
                   P = {scores, p.keys, 1, nullptr};
    const items_of out = {p.out, p.row[NR_ATTENTION_OUT], 1, p.batch_stride[NR_ATTENTION_OUT]};
    NR_TRY(product(call, p, P, p.queries, p.keys, p.width, q, keys_across));
    NR_TRY(run_rows<T>(call, part, false, scores, nullptr));
    return call->op == NR_ATTENTION_BACKWARD ? NORCH_OK : product(call, p, out, p.queries, p.value_width, p.keys, P, v);
}

/* sum (keys, columns) = across b, a sum over queries. With `more`, memory of the same size, it is added to the sum of
 * earlier parts. */
template <class T>
static int32_t over_queries(const nr_call *call, const nr_attention_plan &p, const items_of &sum, int64_t columns,
                            const items_of &across, const items_of &b, T *more) {
    const items_of part = {more, columns, 1, nullptr};
    NR_TRY(product(call, p, more ? part : sum, p.keys, columns, p.queries, across, b));
    const int64_t n = p.keys * columns;
    if (!more || n == 0) return NORCH_OK;
    T *to = static_cast<T *>(const_cast<void *>(sum.data));
    LAUNCH(add_to<T>, blocks_for(n, NR_BLOCK), NR_BLOCK, 0, gpu_of(call)->stream, to, sum.row, (const T *)more, columns,
           n);
    return launched(call);
}

template <class T>
static int32_t backward(const nr_call *call, const attention_part &part, T *scores, T *slopes, T *more) {
    const nr_attention_plan &p = part.p;
    const items_of q = {p.q, p.row[NR_ATTENTION_Q], 1, p.batch_stride[NR_ATTENTION_Q]},
                   k = {p.k, p.row[NR_ATTENTION_K], 1, p.batch_stride[NR_ATTENTION_K]};
    const items_of values_across = {p.v, 1, p.row[NR_ATTENTION_V], p.batch_stride[NR_ATTENTION_V]},
                   g = {p.g, p.row[NR_ATTENTION_G], 1, p.batch_stride[NR_ATTENTION_G]};
    const items_of dS = {slopes, p.keys, 1, nullptr}, dS_across = {slopes, 1, p.keys, nullptr};
    const items_of P_across = {scores, 1, p.keys, nullptr};
    NR_TRY(forward<T>(call, part, scores));
    const items_of grad_q = {p.grad_q, p.row[NR_ATTENTION_GRAD_Q], 1, p.batch_stride[NR_ATTENTION_GRAD_Q]};
    const items_of grad_k = {p.grad_k, p.row[NR_ATTENTION_GRAD_K], 1, p.batch_stride[NR_ATTENTION_GRAD_K]};
    const items_of grad_v = {p.grad_v, p.row[NR_ATTENTION_GRAD_V], 1, p.batch_stride[NR_ATTENTION_GRAD_V]};
    NR_TRY(product(call, p, dS, p.queries, p.keys, p.value_width, g, values_across));
    NR_TRY(run_rows<T>(call, part, true, slopes, scores));
    NR_TRY(product(call, p, grad_q, p.queries, p.width, p.keys, dS, k));
    NR_TRY(over_queries<T>(call, p, grad_k, p.width, dS_across, q, more));
    return over_queries<T>(call, p, grad_v, p.value_width, P_across, g, more);
}

static const void *moved(const void *data, int64_t bytes) {
    return data ? static_cast<const char *>(data) + bytes : nullptr;
}
static void *moved(void *data, int64_t bytes) { return data ? static_cast<char *>(data) + bytes : nullptr; }

/* `at_once` queries after `at_once` queries. */
template <class T>
static int32_t run_part(const nr_call *call, const nr_attention_plan &p, int64_t items, int64_t at_once) {
    const bool is_backward = call->op == NR_ATTENTION_BACKWARD;
    const size_t score_bytes = ((size_t)(items * at_once * p.keys) * sizeof(T) + 255) / 256 * 256;
    const size_t sums = is_backward && at_once < p.queries
                            ? (size_t)(p.keys * (p.width > p.value_width ? p.width : p.value_width)) * sizeof(T)
                            : 0;
    const size_t bytes = (is_backward ? 2 * score_bytes : score_bytes) + sums;
    char *scratch = static_cast<char *>(nr_cuda_scratch(gpu_of(call), bytes));
    if (!scratch) return NORCH_ERROR_MEMORY;
    T *scores = reinterpret_cast<T *>(scratch), *slopes = reinterpret_cast<T *>(scratch + score_bytes);
    int32_t status;
    int64_t first = 0;
    do {
        attention_part part = {p, items, first};
        const int64_t from = first * (int64_t)sizeof(T);
        part.p.queries = p.queries - first < at_once ? p.queries - first : at_once;
        part.p.q = moved(p.q, from * p.row[NR_ATTENTION_Q]);
        part.p.g = moved(p.g, from * p.row[NR_ATTENTION_G]);
        part.p.out = moved(p.out, from * p.row[NR_ATTENTION_OUT]);
        part.p.grad_q = moved(p.grad_q, from * p.row[NR_ATTENTION_GRAD_Q]);
        status = is_backward
                     ? backward<T>(call, part, scores, slopes, first ? slopes + score_bytes / sizeof(T) : nullptr)
                     : forward<T>(call, part, scores);
    } while (status == NORCH_OK && (first += at_once) < p.queries);
    nr_cuda_scratch_free(gpu_of(call), scratch, bytes);
    return status;
}

/* The outermost loop of the batch in halves, until the scores of a part fit, or it is one item. */
template <class T> static int32_t run(const nr_call *call, nr_attention_plan p) {
    int64_t items = 1;
    for (int32_t d = 0; d < p.batch_ndim; d++) items *= p.batch[d];
    if (items == 0) return NORCH_OK;
    while (p.batch_ndim > 0 && p.batch[p.batch_ndim - 1] == 1) p.batch_ndim--;
    const int64_t query = p.keys * (int64_t)sizeof(T), fit = query ? SCORES_BYTES / query : INT64_MAX;
    if (items * p.queries <= fit) return run_part<T>(call, p, items, p.queries);
    if (items == 1) /* whole tiles of a product, where it may be */
        return run_part<T>(call, p, 1, fit > 128 ? fit / 128 * 128 : fit > 0 ? fit : 1);
    const int32_t last = p.batch_ndim - 1;
    const int64_t whole = p.batch[last], first = whole / 2;
    nr_attention_plan half = p;
    half.batch[last] = first;
    NR_TRY(run<T>(call, half));
    half.batch[last] = whole - first;
    const void **from[] = {&half.q, &half.k, &half.v, &half.g};
    void **to[] = {&half.out, &half.grad_q, &half.grad_k, &half.grad_v};
    for (int i = 0; i < 4; i++) {
        *from[i] = moved(*from[i], first * p.batch_stride[i][last] * (int64_t)sizeof(T));
        *to[i] = moved(*to[i], first * p.batch_stride[NR_ATTENTION_OUT + i][last] * (int64_t)sizeof(T));
    }
    return run<T>(call, half);
}

/* ---- fused kernels ----------------------------------------------------------------------------------------------- */

static fused_args fused_args_of(const nr_attention_plan &p) {
    fused_args a = {};
    a.q = p.q;
    a.k = p.k;
    a.v = p.v;
    a.g = p.g;
    a.mask = p.mask;
    a.out = p.out;
    a.grad_q = p.grad_q;
    a.grad_k = p.grad_k;
    a.grad_v = p.grad_v;
    a.logsumexp = static_cast<float *>(p.logsumexp);
    a.seed = static_cast<const uint64_t *>(p.seed);
    a.queries = (int32_t)p.queries;
    a.keys = (int32_t)p.keys;
    a.width = (int32_t)p.width;
    a.value_width = (int32_t)p.value_width;
    a.group = (int32_t)p.group;
    for (int o = 0; o < NR_ATTENTION_OPERANDS; o++) {
        a.row[o] = (int32_t)p.row[o];
        a.group_stride[o] = p.group_stride[o];
    }
    a.mask_row = p.row[NR_ATTENTION_MASK];
    a.mask_column = p.mask_column;
    a.mask_is_bool = p.mask_is_bool;
    a.scale = (float)p.scale;
    a.kept_factor = p.dropout < 1 ? (float)(1 / (1 - p.dropout)) : 0;
    a.dropped = (uint32_t)ceil((double)(float)p.dropout * 0x1p24); /* uniform32 is a multiple of 2^-24 */
    a.causal = p.causal;
    a.batch = nest_of<NR_ATTENTION_OPERANDS>(p.batch_ndim, p.batch, p.batch_stride);
    a.items = 1;
    for (int32_t d = 0; d < p.batch_ndim; d++) a.items *= p.batch[d];
    return a;
}

static int32_t attend_fused(const nr_call *call, const nr_attention_plan &p) {
    fused_args a = fused_args_of(p);
    const int64_t rows = p.queries > p.keys ? p.queries : p.keys, heads = a.items * p.group;
    const int64_t blocks = heads * ((rows + FEWEST_ROWS - 1) / FEWEST_ROWS);
    const bool back = call->op == NR_ATTENTION_FUSED_BACKWARD;
    const size_t deltas = back ? (size_t)(heads * p.queries) : 0, bytes = (deltas + (size_t)blocks) * sizeof(float);
    if (blocks == 0) return NORCH_OK;
    void *scratch = nr_cuda_scratch(gpu_of(call), bytes);
    if (!scratch) return NORCH_ERROR_MEMORY;
    a.delta = static_cast<float *>(scratch);
    a.found = static_cast<int32_t *>(scratch) + deltas;
    a.logsumexp_rest = a.logsumexp ? a.logsumexp + heads * p.queries : nullptr;
    const int32_t status = call->dtype == NORCH_FLOAT32   ? nr_cuda_attend_float32(call, a)
                           : call->dtype == NORCH_FLOAT16 ? nr_cuda_attend_float16(call, a)
                                                          : nr_cuda_attend_bfloat16(call, a);
    nr_cuda_scratch_free(gpu_of(call), scratch, bytes);
    return status;
}

int32_t nr_cuda_attention(const nr_call *call) {
    const nr_attention_plan &p = *static_cast<const nr_attention_plan *>(call->plan);
    if (call->op == NR_ATTENTION_FUSED || call->op == NR_ATTENTION_FUSED_BACKWARD) return attend_fused(call, p);
    return call->dtype == NORCH_FLOAT32 ? run<float>(call, p) : run<double>(call, p);
}
