/* copy: moves and converts elements between any two strided layouts: dense bytes by CUDA's own copy, a transpose in
 * tiles through shared memory, rows (of what cat joins, of a slice) in words of up to 16 bytes, all else element by
 * element. A conversion has one kernel for each target dtype, which branches on the source's dtype: every thread takes
 * the same branch.
 *
 *   turn    source      a warp reads 32      shared memory, 32 x 33     a warp reads a column,      target
 *           a b c ..    neighbours of a  ->  a b c .. |                 which the 33rd element  ->  a d g ..
 *           d e f ..    row                  d e f .. | unused          puts into 32 banks,         b e h ..
 *           g h i ..                         g h i .. |                 and writes a row            c f i ..
 *
 * Ruetsch and Micikevicius, "Optimizing Matrix Transpose in CUDA" (NVIDIA, 2009). */
#include "convert.cuh"

struct copy_args {
    char *to;
    operand from;
    int64_t n;
    int32_t from_dtype;
    bool aligned;
    nest<2> where; /* the strided kernels' */
};

/* n elements in the order of memory, from element i on. */
template <int n, class S> DEVICE void load_words(S *to, const operand &x, int64_t i, int64_t count, bool wide) {
    const S *from = reinterpret_cast<const S *>(x.data);
    if (x.step == 0) {
        S one = from ? *from : immediate<S>(x.value);
        for (int k = 0; k < n; k++) to[k] = one;
    } else if (wide) {
        pack<S, n> all = *reinterpret_cast<const pack<S, n> *>(from + i);
        for (int k = 0; k < n; k++) to[k] = all.v[k];
    } else {
        for (int k = 0; k < n; k++) to[k] = i + k < count ? from[i + k] : S();
    }
}
template <int n, class S> DEVICE void store_words(S *to, const S *from, int64_t i, int64_t count, bool wide) {
    if (wide) {
        pack<S, n> all;
        for (int k = 0; k < n; k++) all.v[k] = from[k];
        *reinterpret_cast<pack<S, n> *>(to + i) = all;
    } else {
        for (int k = 0; k < n; k++)
            if (i + k < count) to[i + k] = from[k];
    }
}

/* ---- conversions --------------------------------------------------------------------------------------------- */

/* Calls to(dtype) with the class of a dtype number. */
template <class Call> DEVICE void with_dtype(int32_t number, const Call &call) {
    switch (number) {
#define DTYPE(NAME, name, ...) \
    case NORCH_##NAME: call(dtype_##name()); break;
#include "../dtypes.def"
    }
}

template <class To> __global__ void __launch_bounds__(NR_BLOCK) convert_dense(const copy_args a) {
    int64_t i = ((int64_t)blockIdx.x * NR_BLOCK + threadIdx.x) * 4;
    if (i >= a.n) return;
    bool wide = a.aligned && i + 4 <= a.n;
    typename To::S out[4];
    with_dtype(a.from_dtype, [&](auto from) {
        using From = decltype(from);
        typename From::S x[4];
        load_words<4>(x, a.from, i, a.n, wide);
        for (int k = 0; k < 4; k++) out[k] = convert<To, From>(x[k]);
    });
    store_words<4>(reinterpret_cast<typename To::S *>(a.to), out, i, a.n, wide);
}

template <class To> __global__ void __launch_bounds__(NR_BLOCK) convert_strided(const copy_args a) {
    uint32_t i = blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= a.n) return;
    int64_t at[2];
    a.where.find(i, at);
    with_dtype(a.from_dtype, [&](auto from) {
        using From = decltype(from);
        auto x = *reinterpret_cast<const typename From::S *>(a.from.data + at[1]);
        *reinterpret_cast<typename To::S *>(a.to + at[0]) = convert<To, From>(x);
    });
}

/* ---- moves: by size of the element, or of the word ------------------------------------------------------------- */

struct alignas(16) word16 {
    uint64_t half[2];
};

template <class W> __global__ void __launch_bounds__(NR_BLOCK) fill_dense(const copy_args a) {
    constexpr int n = 16 / sizeof(W) < 8 ? 16 / sizeof(W) : 8;
    int64_t i = ((int64_t)blockIdx.x * NR_BLOCK + threadIdx.x) * n;
    if (i >= a.n) return;
    W x[n];
    load_words<n>(x, a.from, i, a.n, false);
    store_words<n>(reinterpret_cast<W *>(a.to), x, i, a.n, a.aligned && i + n <= a.n);
}

template <class W> __global__ void __launch_bounds__(NR_BLOCK) move_strided(const copy_args a) {
    uint32_t i = blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= a.n) return;
    int64_t at[2];
    a.where.find(i, at);
    W *to = reinterpret_cast<W *>(a.to + at[0]);
    if (sizeof(W) > sizeof a.from.value || a.from.data)
        *to = *reinterpret_cast<const W *>(a.from.data + at[1]);
    else
        *to = immediate<W>(a.from.value);
}

/* Tiles of 32 x 32: read along the source's dense dimension, written along that of the target. */
struct turn_args {
    char *to;
    const char *from;
    uint32_t size0, size1; /* dimension 0 is dense in the target, 1 in the source */
    uint32_t tiles0, tiles1;
    int64_t to1, from0; /* the other strides, in bytes */
    nest<2> rest;
};

template <class W> __global__ void __launch_bounds__(NR_BLOCK) turn(const turn_args a) {
    __shared__ W tile[32][33];
    uint32_t t0 = blockIdx.x % a.tiles0 * 32, t1 = blockIdx.x / a.tiles0 % a.tiles1 * 32;
    int64_t at[2];
    a.rest.find(blockIdx.x / a.tiles0 / a.tiles1, at);
    uint32_t lane = threadIdx.x % 32, row = threadIdx.x / 32;
    for (uint32_t r = row; r < 32; r += NR_BLOCK / 32)
        if (t0 + r < a.size0 && t1 + lane < a.size1)
            tile[r][lane] = *reinterpret_cast<const W *>(a.from + at[1] + (int64_t)(t0 + r) * a.from0 +
                                                         (int64_t)(t1 + lane) * (int64_t)sizeof(W));
    __syncthreads();
    for (uint32_t r = row; r < 32; r += NR_BLOCK / 32)
        if (t1 + r < a.size1 && t0 + lane < a.size0)
            *reinterpret_cast<W *>(a.to + at[0] + (int64_t)(t1 + r) * a.to1 +
                                   (int64_t)(t0 + lane) * (int64_t)sizeof(W)) = tile[lane][r];
}

/* ---- which one --------------------------------------------------------------------------------------------------- */

typedef void (*copy_kernel)(copy_args);

static copy_kernel conversion_to(int32_t number, bool dense) {
    switch (number) {
#define DTYPE(NAME, name, ...) \
    case NORCH_##NAME: return dense ? convert_dense<dtype_##name> : convert_strided<dtype_##name>;
#include "../dtypes.def"
    }
    return nullptr;
}

/* The dimension along which the source is dense, if it is not dimension 0, along which the target is dense. */
static int32_t turned(const nr_plan &plan, int64_t size) {
    if (plan.stride[0][0] != size || plan.size[0] < 16) return 0;
    for (int32_t d = 1; d < plan.ndim; d++)
        if (plan.stride[1][d] == size && plan.stride[1][0] != size && plan.size[d] >= 16) return d;
    return 0;
}

static int32_t run_turn(const nr_call *call, const nr_plan &plan, int32_t across, int64_t size) {
    turn_args a = {};
    a.to = plan.data[0];
    a.from = plan.data[1];
    a.size0 = (uint32_t)plan.size[0];
    a.size1 = (uint32_t)plan.size[across];
    a.tiles0 = (a.size0 + 31) / 32;
    a.tiles1 = (a.size1 + 31) / 32;
    a.to1 = plan.stride[0][across];
    a.from0 = plan.stride[1][0];
    nr_plan rest = plan;
    rest.ndim = 0;
    int64_t batches = 1;
    for (int32_t d = 1; d < plan.ndim; d++) {
        if (d == across) continue;
        rest.size[rest.ndim] = plan.size[d];
        for (int o = 0; o < 2; o++) rest.stride[o][rest.ndim] = plan.stride[o][d];
        batches *= plan.size[d];
        rest.ndim++;
    }
    a.rest = nest_of<2>(rest.ndim, rest.size, rest.stride);
    return run_blocks(call, BY_SIZE(turn, size), (unsigned)(batches * a.tiles0 * a.tiles1), a);
}

/* The largest word, of up to 16 bytes, that divides rows which are dense on both sides; else the size of an element. */
static int64_t word_of(const nr_plan &plan, int64_t size) {
    if (is_immediate(plan, 1) || plan.ndim == 0 || plan.stride[0][0] != size || plan.stride[1][0] != size) return size;
    uint64_t all = 16 | (uint64_t)(plan.size[0] * size);
    for (int o = 0; o < 2; o++) {
        all |= reinterpret_cast<uintptr_t>(plan.data[o]);
        for (int32_t d = 1; d < plan.ndim; d++) all |= (uint64_t)plan.stride[o][d];
    }
    return (int64_t)(all & -all); /* the lowest bit: the largest power of two that divides all */
}

static int32_t run_strided(const nr_call *call, const nr_plan &plan) {
    int64_t size = nr_library->dtypes[call->dtype].size;
    bool moves = call->dtype == call->from_dtype;
    int32_t across = moves && !is_immediate(plan, 1) ? turned(plan, size) : 0;
    if (across) return run_turn(call, plan, across, size);
    copy_args a = {};
    a.to = plan.data[0];
    a.from = operand_of(plan, 1, nr_library->dtypes[call->dtype].size);
    a.n = plan.numel;
    a.from_dtype = call->from_dtype;
    a.where = nest_of<2>(plan.ndim, plan.size, plan.stride);
    const int64_t word = moves ? word_of(plan, size) : size;
    if (word > size) {
        a.n = a.n / (word / size);
        a.where.size[0] = divisor_of(plan.size[0] * size / word);
        a.where.stride[0][0] = a.where.stride[1][0] = word;
    }
    copy_kernel kernel = !moves       ? conversion_to(call->dtype, false)
                         : word == 16 ? move_strided<word16>
                                      : BY_SIZE(move_strided, word);
    return run_blocks(call, kernel, blocks_for(a.n, NR_BLOCK), a);
}

int32_t nr_cuda_copy(const nr_call *call) {
    const nr_plan &plan = *static_cast<const nr_plan *>(call->plan);
    if (plan.numel == 0) return NORCH_OK;
    int64_t size = nr_library->dtypes[call->dtype].size, from_size = nr_library->dtypes[call->from_dtype].size;
    bool moves = call->dtype == call->from_dtype, row = plan.ndim == 1 && plan.stride[0][0] == size;
    if (!row || (plan.stride[1][0] != from_size && plan.stride[1][0] != 0))
        return in_parts(plan, [&](const nr_plan &part) { return run_strided(call, part); });
    if (moves && plan.stride[1][0] != 0) {
        TRY("copy", cudaMemcpyAsync(plan.data[0], plan.data[1], (size_t)(plan.numel * size), cudaMemcpyDeviceToDevice,
                                    gpu_of(call)->stream));
        return NORCH_OK;
    }
    copy_args a = {};
    a.to = plan.data[0];
    a.from = operand_of(plan, 1, nr_library->dtypes[call->dtype].size);
    a.from.step = plan.stride[1][0] != 0;
    a.n = plan.numel;
    a.from_dtype = call->from_dtype;
    int width = moves ? (size >= 2 ? 16 / (int)size : 8) : 4;
    a.aligned = is_aligned(a.to, size * width) && (!a.from.step || is_aligned(a.from.data, from_size * width));
    copy_kernel kernel = moves ? BY_SIZE(fill_dense, size) : conversion_to(call->dtype, true);
    return run_blocks(call, kernel, blocks_for(a.n, NR_BLOCK * width), a);
}
