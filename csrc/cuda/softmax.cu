/* softmax: softmax and its logarithm along an axis, forward and backward. Rows: a team of threads each, who combine
 * what they found in shared memory in a fixed order. Columns (inner > 1): a thread each, neighbours side by side. The
 * largest element is taken off first, so that nothing overflows. */
#include "cuda.cuh"

struct softmax_args {
    void *out;
    const void *x, *result;
    int64_t rows, n, inner; /* inner: elements from one of a row to the next, 1 for rows */
    int32_t team;
};

/* What all threads of a team have, joined by join(a, b); each gets it. */
template <class Join> DEVICE double joined(double own, int team, double *memory, const Join &join) {
    const int member = (int)threadIdx.x % team;
    double *mine = memory + threadIdx.x;
    for (int half = team / 2; half > 0; half /= 2) {
        *mine = own;
        __syncthreads();
        if (member < half) own = join(own, mine[half]);
        __syncthreads();
    }
    *mine = own;
    __syncthreads();
    own = memory[(int)threadIdx.x - member];
    __syncthreads();
    return own;
}

DEVICE double larger_of(double a, double b) { return b > a ? b : a; }
DEVICE double sum_of(double a, double b) { return a + b; }

/* Along one row or column; `team` threads share it, `member` is this one, which adds up its share in A. */
template <class T, int kind, class A, class Meet>
DEVICE void normalise(const softmax_args &a, int64_t row, int64_t member, int64_t team, bool here, const Meet &meet) {
    const int64_t first = row / a.inner * a.n * a.inner + row % a.inner, step = a.inner;
    const T *x = static_cast<const T *>(a.x) + first, *y = static_cast<const T *>(a.result) + first;
    T *out = static_cast<T *>(a.out) + first;
    const int64_t n = here ? a.n : 0; /* a row behind the last takes part in the meetings only */
    if constexpr (kind == NR_SOFTMAX_OF || kind == NR_LOG_SOFTMAX_OF) {
        double top = -(double)INFINITY, sum;
        A share_of_sum = 0;
        for (int64_t i = member; i < n; i += team) top = larger_of(top, (double)x[i * step]);
        top = meet(top, [](double p, double q) { return larger_of(p, q); });
        for (int64_t i = member; i < n; i += team) share_of_sum += (A)exp(x[i * step] - (T)top);
        sum = meet((double)share_of_sum, [](double p, double q) { return sum_of(p, q); });
        const double share = kind == NR_SOFTMAX_OF ? 1.0 / sum : log(sum);
        for (int64_t i = member; i < n; i += team) {
            T d = x[i * step] - (T)top;
            out[i * step] = kind == NR_SOFTMAX_OF ? (T)((double)exp(d) * share) : (T)((double)d - share);
        }
    } else {
        A share = 0;
        for (int64_t i = member; i < n; i += team)
            share += kind == NR_SOFTMAX_BACK ? (A)(x[i * step] * y[i * step]) : (A)x[i * step];
        const double sum = meet((double)share, [](double p, double q) { return sum_of(p, q); });
        for (int64_t i = member; i < n; i += team)
            out[i * step] = kind == NR_SOFTMAX_BACK ? y[i * step] * (x[i * step] - (T)sum)
                                                    : x[i * step] - exp(y[i * step]) * (T)sum;
    }
}

template <class T, int kind> __global__ void __launch_bounds__(NR_BLOCK) softmax_rows(const softmax_args a) {
    __shared__ double memory[NR_BLOCK];
    double *meeting = memory;
    const int64_t row = (int64_t)blockIdx.x * (NR_BLOCK / a.team) + threadIdx.x / a.team;
    const bool here = row < a.rows;
    normalise<T, kind, T>(a, here ? row : 0, (int)threadIdx.x % a.team, a.team, here,
                          [=](double own, auto join) { return joined(own, a.team, meeting, join); });
}

template <class T, int kind> __global__ void __launch_bounds__(NR_BLOCK) softmax_columns(const softmax_args a) {
    const int64_t column = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (column < a.rows) normalise<T, kind, double>(a, column, 0, 1, true, [](double own, auto) { return own; });
}

typedef void (*softmax_kernel)(softmax_args);

template <class T> static softmax_kernel kernel_of(int32_t kind, bool rows) {
    switch (kind) {
    case NR_SOFTMAX_OF: return rows ? softmax_rows<T, NR_SOFTMAX_OF> : softmax_columns<T, NR_SOFTMAX_OF>;
    case NR_LOG_SOFTMAX_OF: return rows ? softmax_rows<T, NR_LOG_SOFTMAX_OF> : softmax_columns<T, NR_LOG_SOFTMAX_OF>;
    case NR_SOFTMAX_BACK: return rows ? softmax_rows<T, NR_SOFTMAX_BACK> : softmax_columns<T, NR_SOFTMAX_BACK>;
    }
    return rows ? softmax_rows<T, NR_LOG_SOFTMAX_BACK> : softmax_columns<T, NR_LOG_SOFTMAX_BACK>;
}

int32_t nr_cuda_softmax(const nr_call *call) {
    const nr_softmax_plan &p = *static_cast<const nr_softmax_plan *>(call->plan);
    if (p.outer == 0 || p.n == 0 || p.inner == 0) return NORCH_OK;
    softmax_args a = {p.out, p.x, p.result, p.outer * p.inner, p.n, p.inner, 1};
    const bool rows = p.inner == 1;
    while (rows && a.team < NR_BLOCK && a.team * 4 <= a.n) a.team *= 2;
    softmax_kernel kernel =
        call->dtype == NORCH_FLOAT32 ? kernel_of<float>(call->op, rows) : kernel_of<double>(call->op, rows);
    LAUNCH(kernel, blocks_for(a.rows, NR_BLOCK / a.team), NR_BLOCK, 0, gpu_of(call)->stream, a);
    LAUNCHED(call);
    return NORCH_OK;
}
