/* pool: windows over planes and the adjoints, a thread for each written element: it reads all elements that contribute,
 * in a fixed order, so that the order of additions is fixed. Neighbouring threads read neighbours.
 *
 *   forward   x  a b c d e     windows of 3     y  0 1 2        thread 1 reads b c d
 *   adjoint   y  0 1 2         over a b c d e   x  a b c d e    thread b reads windows 0 and 1, thread c 0, 1 and 2;
 *                                                               max: of those the ones whose index is its position
 *
 * The plain way, without atomics. Which window sees what: Dumoulin and Visin, "A guide to convolution arithmetic for
 * deep learning" (2016), chapter 3. */
#include "../families/pool.h"
#include "cuda.cuh"

struct pool_args {
    void *to;
    const void *from;
    int32_t *index;
    int64_t n;
    int32_t size[2], result[2], kernel[2], stride[2], padding[2], dilation[2];
    divisor columns, area; /* of the planes that are written */
    bool count_padding;
    double divisor_of_sum;
};

/* The plane, row and column of element i. */
struct coordinates {
    int64_t plane;
    int32_t row, column;

    DEVICE coordinates(const pool_args &a, int64_t i) {
        uint32_t rest;
        if (a.n < NR_MOST_ELEMENTS) {
            const uint32_t whole = quotient((uint32_t)i, a.area);
            plane = whole;
            rest = (uint32_t)i - whole * a.area.size;
        } else {
            plane = i / a.area.size;
            rest = (uint32_t)(i - plane * a.area.size);
        }
        const uint32_t r = quotient(rest, a.columns);
        row = (int32_t)r;
        column = (int32_t)(rest - r * a.columns.size);
    }
};

/* The first position of window i along axis d, and the number of its positions. A stride of 0: the windows divide the
 * plane. */
DEVICE int32_t begin_of(const pool_args &a, int d, int32_t i) {
    return a.stride[d] ? i * a.stride[d] - a.padding[d] : (int32_t)((int64_t)i * a.size[d] / a.result[d]);
}

DEVICE int32_t taps_of(const pool_args &a, int d, int32_t i) {
    if (a.stride[d]) return a.kernel[d];
    return (int32_t)(((i + 1LL) * a.size[d] + a.result[d] - 1) / a.result[d]) - begin_of(a, d, i);
}

/* The number of elements that window i counts along axis d. */
DEVICE int32_t counted(const pool_args &a, int d, int32_t i) {
    const int32_t begin = begin_of(a, d, i), end = begin + taps_of(a, d, i);
    const int32_t last = a.count_padding ? a.size[d] + a.padding[d] : a.size[d];
    return (end < last ? end : last) - (a.count_padding || begin > 0 ? begin : 0);
}

/* The factor of the sum of window (i, j). */
template <class T> DEVICE T factor(const pool_args &a, int32_t i, int32_t j) {
    if (a.divisor_of_sum != 0) return (T)(1.0 / a.divisor_of_sum);
    return T(1) / (T)((int64_t)counted(a, 0, i) * counted(a, 1, j));
}

/* Among equal elements the first is taken, among NaNs the last. */
template <class T> __global__ void __launch_bounds__(NR_BLOCK) pool_max(const pool_args a) {
    const int64_t i = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= a.n) return;
    const coordinates at(a, i);
    const T *x = static_cast<const T *>(a.from) + at.plane * a.size[0] * a.size[1];
    const int32_t row = begin_of(a, 0, at.row), column = begin_of(a, 1, at.column);
    const int32_t high = taps_of(a, 0, at.row), across = taps_of(a, 1, at.column);
    T best = -(T)INFINITY;
    int32_t where = -1;
    for (int32_t r = 0, y = row; r < high; r++, y += a.dilation[0]) {
        if (y < 0 || y >= a.size[0]) continue;
        for (int32_t s = 0, z = column; s < across; s++, z += a.dilation[1]) {
            if (z < 0 || z >= a.size[1]) continue;
            const int32_t here = y * a.size[1] + z;
            const T v = x[here];
            const bool take = v > best || v != v;
            best = take ? v : best;
            where = take || where < 0 ? here : where;
        }
    }
    static_cast<T *>(a.to)[i] = best;
    a.index[i] = where;
}

template <class T> __global__ void __launch_bounds__(NR_BLOCK) pool_avg(const pool_args a) {
    const int64_t i = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= a.n) return;
    const coordinates at(a, i);
    const T *x = static_cast<const T *>(a.from) + at.plane * a.size[0] * a.size[1];
    const int32_t row = begin_of(a, 0, at.row), column = begin_of(a, 1, at.column);
    const int32_t bottom = row + taps_of(a, 0, at.row), right = column + taps_of(a, 1, at.column);
    T sum = 0;
    for (int32_t y = row < 0 ? 0 : row; y < bottom && y < a.size[0]; y++)
        for (int32_t z = column < 0 ? 0 : column; z < right && z < a.size[1]; z++) sum += x[(int64_t)y * a.size[1] + z];
    static_cast<T *>(a.to)[i] = sum * factor<T>(a, at.row, at.column);
}

/* The windows from `first` to `last` that may see element i along axis d. */
DEVICE void windows_over(const pool_args &a, int d, int32_t i, int32_t *first, int32_t *last) {
    if (!a.stride[d]) {
        *first = (int32_t)((int64_t)i * a.result[d] / a.size[d]);
        *last = (int32_t)(((i + 1LL) * a.result[d] + a.size[d] - 1) / a.size[d]) - 1;
        return;
    }
    const int32_t shifted = i + a.padding[d], span = (a.kernel[d] - 1) * a.dilation[d];
    *first = shifted > span ? (shifted - span + a.stride[d] - 1) / a.stride[d] : 0;
    *last = shifted / a.stride[d] < a.result[d] ? shifted / a.stride[d] : a.result[d] - 1;
}

/* A thread an element of a plane: it sums the gradients of the windows that contain it. */
template <class T, bool max> __global__ void __launch_bounds__(NR_BLOCK) pool_backward(const pool_args a) {
    const int64_t i = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= a.n) return;
    const coordinates at(a, i);
    const int64_t plane = at.plane * a.result[0] * a.result[1], here = (int64_t)at.row * a.size[1] + at.column;
    const T *y = static_cast<const T *>(a.from) + plane;
    const int32_t *index = max ? a.index + plane : nullptr;
    int32_t first[2], last[2];
    windows_over(a, 0, at.row, &first[0], &last[0]);
    windows_over(a, 1, at.column, &first[1], &last[1]);
    T sum = 0;
    for (int32_t r = first[0]; r <= last[0]; r++)
        for (int32_t s = first[1]; s <= last[1]; s++) {
            const int64_t window = (int64_t)r * a.result[1] + s;
            if constexpr (max) {
                if (index[window] == here) sum += y[window];
            } else {
                sum += y[window] * factor<T>(a, r, s);
            }
        }
    static_cast<T *>(a.to)[i] = sum;
}

typedef void (*pool_kernel)(pool_args);

template <class T> static pool_kernel kernel_of(int32_t kind) {
    switch (kind) {
    case NR_POOL_MAX: return pool_max<T>;
    case NR_POOL_AVG: return pool_avg<T>;
    case NR_POOL_MAX_BACKWARD: return pool_backward<T, true>;
    }
    return pool_backward<T, false>;
}

int32_t nr_cuda_pool(const nr_call *call) {
    const nr_pool_plan &p = *static_cast<const nr_pool_plan *>(call->plan);
    const bool backward = call->op == NR_POOL_MAX_BACKWARD || call->op == NR_POOL_AVG_BACKWARD;
    const int64_t *written = backward ? p.size : p.result;
    pool_args a = {};
    a.to = backward ? p.x : p.y;
    a.from = backward ? p.y : p.x;
    a.index = p.index;
    a.n = p.planes * written[0] * written[1];
    if (a.n == 0) return NORCH_OK;
    for (int d = 0; d < 2; d++) {
        const int64_t reach = p.size[d] + 2 * p.padding[d] + p.kernel[d] * p.dilation[d];
        if (reach > NR_MOST_ELEMENTS || p.stride[d] > NR_MOST_ELEMENTS || written[0] * written[1] > NR_MOST_ELEMENTS)
            return nr_library->fail(NORCH_ERROR_SHAPE,
                                    "pool: a plane of (%lld, %lld) and windows of (%lld, %lld) are more than a CUDA "
                                    "kernel counts",
                                    (long long)p.size[0], (long long)p.size[1], (long long)p.kernel[0],
                                    (long long)p.kernel[1]);
        a.size[d] = (int32_t)p.size[d];
        a.result[d] = (int32_t)p.result[d];
        a.kernel[d] = (int32_t)p.kernel[d];
        a.stride[d] = (int32_t)p.stride[d];
        a.padding[d] = (int32_t)p.padding[d];
        a.dilation[d] = (int32_t)p.dilation[d];
    }
    a.columns = divisor_of(written[1]);
    a.area = divisor_of(written[0] * written[1]);
    a.count_padding = p.count_padding != 0;
    a.divisor_of_sum = p.divisor;
    pool_kernel kernel = call->dtype == NORCH_FLOAT32 ? kernel_of<float>(call->op) : kernel_of<double>(call->op);
    return run_blocks(call, kernel, blocks_for(a.n, NR_BLOCK), a);
}
