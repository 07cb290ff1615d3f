/* random: a thread takes one block of words of the stream and makes the two or four elements of it
 * (families/random.h): Philox (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3",
 * 2011), so a seed gives the CPU's numbers.
 *
 *   thread    t                  t + 1            ...     its number and the stream's counter are all that it needs
 *   words     w0  w1  w2  w3  |  w0  w1  w2  w3  | ...
 *   float32   x0  x1  x2  x3  |  x4  x5  x6  x7  | ...    16 bytes written at once; integers of any dtype are as others
 *   others    x0 ...  x1 ...  |  x2 ...  x3 ...  | ...    two words an element
 *
 * Dropout multiplies as it draws: x is read and its result written in the same accesses, and a byte for each element
 * says whether it was kept. */
#include "cuda.cuh"
#include "../families/random.h"

struct random_args {
    void *out;
    const void *probability, *x;
    uint8_t *mask;
    double least, scale;
    int64_t n;
    uint64_t seed, counter, low, span;
    const uint64_t *slot; /* NULL, or the address of seed and counter */
    uint32_t kept;        /* of the bits of a word */
    volatile nr_report *report;
};

/* 1 if the draw is below the probability, else 0; an invalid probability is reported at the next synchronization. */
template <class T> DEVICE T one_with(const random_args &a, T drawn, int64_t i) {
    const T p = static_cast<const T *>(a.probability)[i];
    if (!(p >= 0 && p <= 1)) a.report->found = NR_NO_PROBABILITY;
    return drawn < p ? T(1) : T(0);
}

DEVICE void words_of(const random_args &a, int64_t block, uint32_t *words) {
    const uint64_t seed = a.slot ? a.slot[0] : a.seed, counter = (a.slot ? a.slot[1] : a.counter) + (uint64_t)block;
    philox_of(seed, (uint32_t)counter, (uint32_t)(counter >> 32), words);
}

/* The elements of a block of words: four of float32, two of float64. */
DEVICE void normals_of_block(const uint32_t (&words)[4], float (&out)[4]) {
    normals_of(words, out);
    normals_of(words + 2, out + 2);
}
DEVICE void normals_of_block(const uint32_t (&words)[4], double (&out)[2]) { wide_normals_of(words, out); }
DEVICE void uniforms_of_block(const uint32_t (&words)[4], uint32_t kept, float (&out)[4]) {
    for (int k = 0; k < 4; k++) out[k] = uniform32(words[k] & kept);
}
DEVICE void uniforms_of_block(const uint32_t (&words)[4], uint32_t, double (&out)[2]) {
    for (int k = 0; k < 2; k++) out[k] = uniform64(words + 2 * k);
}

template <class T, int kind> __global__ void __launch_bounds__(NR_BLOCK) draw(const random_args a) {
    constexpr int W = 16 / sizeof(T);
    const int64_t block = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x, first = block * W;
    if (first >= a.n) return;
    uint32_t words[4];
    pack<T, W> values;
    words_of(a, block, words);
    if (kind == NR_NORMAL)
        normals_of_block(words, values.v);
    else
        uniforms_of_block(words, a.kept, values.v);
    for (int k = 0; k < W && kind == NR_BERNOULLI; k++)
        if (first + k < a.n) values.v[k] = one_with(a, values.v[k], first + k);
    T *to = static_cast<T *>(a.out) + first;
    if (first + W <= a.n && reinterpret_cast<uintptr_t>(a.out) % 16 == 0)
        *reinterpret_cast<pack<T, W> *>(to) = values;
    else
        for (int k = 0; k < W; k++)
            if (first + k < a.n) to[k] = values.v[k];
}

template <class T> __global__ void __launch_bounds__(NR_BLOCK) drop(const random_args a) {
    constexpr int W = 16 / sizeof(T);
    const int64_t block = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x, first = block * W;
    if (first >= a.n) return;
    uint32_t words[4];
    T uniforms[W];
    pack<T, W> x = {};
    pack<uint8_t, W> kept;
    const T *from = static_cast<const T *>(a.x) + first;
    T *to = static_cast<T *>(a.out) + first;
    const bool wide =
        first + W <= a.n && (reinterpret_cast<uintptr_t>(a.x) | reinterpret_cast<uintptr_t>(a.out)) % 16 == 0;
    if (wide)
        x = *reinterpret_cast<const pack<T, W> *>(from);
    else
        for (int k = 0; k < W; k++)
            if (first + k < a.n) x.v[k] = from[k];
    words_of(a, block, words);
    uniforms_of_block(words, ~0u, uniforms);
#pragma unroll
    for (int k = 0; k < W; k++) {
        kept.v[k] = uniforms[k] >= (T)a.least;
        x.v[k] *= kept.v[k] ? (T)a.scale : T(0);
    }
    if (wide) {
        *reinterpret_cast<pack<T, W> *>(to) = x;
        *reinterpret_cast<pack<uint8_t, W> *>(a.mask + first) = kept;
        return;
    }
    for (int k = 0; k < W; k++)
        if (first + k < a.n) {
            to[k] = x.v[k];
            a.mask[first + k] = kept.v[k];
        }
}

template <class D> __global__ void __launch_bounds__(NR_BLOCK) draw_integers(const random_args a) {
    int64_t block = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x, first = block * 2;
    if (first >= a.n) return;
    uint32_t words[4];
    words_of(a, block, words);
    for (int k = 0; k < 2 && first + k < a.n; k++) {
        int64_t value = (int64_t)(a.low + scaled(pair(words + 2 * k), a.span));
        static_cast<typename D::S *>(a.out)[first + k] = narrow<D>((typename D::T)value);
    }
}

typedef void (*random_kernel)(random_args);

template <class T> static random_kernel of_floats(int32_t kind) {
    switch (kind) {
    case NR_UNIFORM: return draw<T, NR_UNIFORM>;
    case NR_NORMAL: return draw<T, NR_NORMAL>;
    case NR_BERNOULLI: return draw<T, NR_BERNOULLI>;
    }
    return drop<T>;
}

static random_kernel kernel_of(const nr_call *call) {
    if (call->op != NR_INTEGERS)
        return call->dtype == NORCH_FLOAT32 ? of_floats<float>(call->op) : of_floats<double>(call->op);
    switch (call->dtype) {
#define WIDE(NAME, name, ...) \
    case NORCH_##NAME: return draw_integers<dtype_##name>;
#define NARROW(...)
#include "../dtypes.def"
    }
    return nullptr;
}

int64_t nr_cuda_random_slot(const nr_call *call, void *to) {
    const nr_random_plan &plan = *static_cast<const nr_random_plan *>(call->plan);
    const uint64_t slot[] = {plan.seed, plan.counter};
    if (to) memcpy(to, slot, sizeof slot);
    return sizeof slot;
}

int32_t nr_cuda_random(const nr_call *call) {
    const nr_random_plan &plan = *static_cast<const nr_random_plan *>(call->plan);
    if (plan.n == 0) return NORCH_OK;
    random_args a = {};
    a.out = plan.out;
    a.probability = plan.probability;
    a.x = plan.x;
    a.mask = plan.mask;
    a.least = plan.least;
    a.scale = plan.scale;
    a.report = gpu_of(call)->report_on_device;
    a.n = plan.n;
    a.seed = plan.seed;
    a.counter = plan.counter;
    a.slot = static_cast<const uint64_t *>(plan.slot);
    a.low = (uint64_t)plan.low;
    a.span = (uint64_t)plan.span;
    a.kept = call->op == NR_UNIFORM && plan.span ? (uint32_t)-(((int64_t)1 << 32) / plan.span) : ~0u;
    int64_t in_block = call->dtype == NORCH_FLOAT32 && call->op != NR_INTEGERS ? 4 : 2;
    return run_blocks(call, kernel_of(call), blocks_for(a.n, NR_BLOCK * in_block), a);
}
