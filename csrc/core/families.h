/* families: the families of operations, and the struct that each hands to a backend's runner; pointwise and copy hand an
 * nr_plan. A page of a family needs its own alone. */
#ifndef NR_FAMILIES_H
#define NR_FAMILIES_H

#include <stdbool.h>
#include "plan.h"

typedef enum nr_family {
    NR_POINTWISE,
    NR_REDUCTION,
    NR_MATMUL,
    NR_COPY,
    NR_INDEXING,
    NR_RANDOM,
    NR_OPTIM,
    NR_SCAN,
    NR_SORT,
    NR_SOFTMAX,
    NR_CONV,
    NR_POOL,
    NR_NORMALIZE,
    NR_ATTENTION,
    NR_FAMILY_COUNT
} nr_family;

/* kept: operands 0 the output and 1 the input over the axes that stay; the other nest runs over the
 * reduced axes, in C order (size[0] innermost), strides of the input in bytes. */
typedef struct nr_reduce_plan {
    nr_plan kept;
    int32_t ndim;
    int64_t size[NORCH_MAX_DIMS];
    int64_t stride[NORCH_MAX_DIMS];
    int64_t count; /* elements reduced into each output */
    double param;
} nr_reduce_plan;

/* c[m][n] = sum over k of a[m][k] b[k][n], plus bias[n] if there is one, for each step of the batch nest; and of that, where
 * the call has a kernel, its UNARY row (c is dense then). Strides count elements; c has column stride 1. Batch strides:
 * operand 0 c, 1 a, 2 b. */
typedef struct nr_matmul_plan {
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col, c_row;
    const void *a, *b, *bias;
    void *c;
    int32_t batch_ndim;
    int64_t batch[NORCH_MAX_DIMS];
    int64_t batch_stride[3][NORCH_MAX_DIMS];
} nr_matmul_plan;

/* A nest over operand 0 (dense: written by a gather, read by a scatter), 1 (int64 indices) and 2 (the
 * tensor that is indexed, standing still where the index moves it), data and strides in nest; element at
 * data[2] + index * axis_stride (bytes). Indices are checked, not negative and below axis_size.
 * NR_SCATTER goes through the nest in order: the last write to an element is the one that stays.
 * NR_OFFSETS: element of 0 = that of 2 (data NULL: 0) + index * axis_stride, where a negative index counts from
 * the end of axis_size; all int64.
 * NR_COUNT and NR_NONZERO have a plan of their own. */
typedef enum nr_index_kind {
    NR_GATHER,
    NR_SCATTER,
    NR_SCATTER_ADD,
    NR_SCATTER_PROD,
    NR_SCATTER_AMAX,
    NR_SCATTER_AMIN,
    NR_OFFSETS,
    NR_COUNT,
    NR_NONZERO
} nr_index_kind;
typedef struct nr_index_plan {
    nr_plan nest;
    int64_t axis_stride;
    int64_t axis_size;
} nr_index_plan;

/* n bytes, dense, of shape size; 1 where an element counts. NR_COUNT: counts[i], in memory of the host, becomes the
 * number of those before the i-th chunk, and the last of counts that of all. NR_NONZERO: coordinate d of the i-th of
 * them into out[i * row + d * column]. */
#define NR_NONZERO_CHUNK 65536
typedef struct nr_nonzero_plan {
    const uint8_t *truth;
    int64_t n, size[NORCH_MAX_DIMS];
    int32_t ndim;
    int64_t *counts, *out;
    int64_t row, column;
} nr_nonzero_plan;

/* n elements, C-ordered, from position `counter` of the stream of `seed`. */
typedef enum nr_random_kind { NR_UNIFORM, NR_NORMAL, NR_INTEGERS, NR_BERNOULLI, NR_PERMUTATION } nr_random_kind;
typedef struct nr_random_plan {
    void *out;
    const void *probability; /* bernoulli: contiguous, of the output's dtype */
    int64_t n;
    uint64_t seed, counter;
    int64_t low, span; /* uniform: span values from 0 to 1, where float32 has more */
} nr_random_plan;

/* Optimizer steps: the rows of optim.def, each with the struct of its hyper-parameters. */
#define NR_UNPACK(...) __VA_ARGS__
typedef enum nr_optim_kind {
#define OPTIMIZER(name, ...) NR_OPTIM_##name,
#include "../optim.def"
    NR_OPTIM_COUNT
} nr_optim_kind;
#define OPTIMIZER(name, work, hypers, ...) \
    typedef struct nr_##name##_hyper {     \
        double NR_UNPACK hypers;           \
    } nr_##name##_hyper;
#include "../optim.def"

/* NR_EACH(M, a, b, c) = M(0, a) M(1, b) M(2, c): the state tensors of a row, up to three. */
#define NR_EACH(...) NR_EACH_PICK(__VA_ARGS__, NR_EACH3, NR_EACH2, NR_EACH1, )(__VA_ARGS__)
#define NR_EACH_PICK(m, a, b, c, name, ...) name
#define NR_EACH1(m, a) m(0, a)
#define NR_EACH2(m, a, b) m(0, a) m(1, b)
#define NR_EACH3(m, a, b, c) m(0, a) m(1, b) m(2, c)
#define NR_OPTIM_STATES 3

/* The tensors of a step: n elements each, contiguous; a state tensor that is not there is NULL. hyper points at the struct of
 * the call's kind, in memory of the caller: it is read when the call runs. */
typedef struct nr_optim_item {
    void *param;
    const void *grad;
    void *state[NR_OPTIM_STATES];
    int64_t n;
} nr_optim_item;
typedef struct nr_optim_plan {
    const nr_optim_item *items;
    int64_t count;
    const double *hyper;
} nr_optim_plan;

/* n elements along one axis, for each place of the other axes: these are the nest, whose operand 0 is written and 1
 * read; step: bytes from one element to the next. A scan may come from behind through negative steps. */
typedef enum nr_scan_kind { NR_CUMSUM, NR_CUMPROD, NR_LOGCUMSUMEXP, NR_CUMMAX, NR_CUMMIN, NR_SCAN_COUNT } nr_scan_kind;
typedef struct nr_scan_plan {
    nr_plan nest;
    int64_t n, step[2];
} nr_scan_plan;

/* NR_ARGSORT: the places (int64) of the `count` first of n elements in ascending or, flagged, descending order. NR_SEARCH: for
 * operand 1 its place among the n ordered elements from operand 2 on, behind its equals where flagged. */
typedef enum nr_sort_kind { NR_ARGSORT, NR_SEARCH } nr_sort_kind;
typedef struct nr_sort_plan {
    nr_plan nest;
    int64_t n, count, step[2];
    bool flag;
} nr_sort_plan;

/* All dense, (outer, n, inner), normalised along n. The backward kinds read the result, too. */
typedef enum nr_softmax_kind { NR_SOFTMAX_OF, NR_LOG_SOFTMAX_OF, NR_SOFTMAX_BACK, NR_LOG_SOFTMAX_BACK } nr_softmax_kind;
typedef struct nr_softmax_plan {
    int64_t outer, n, inner;
    void *out;
    const void *x, *result;
} nr_softmax_plan;
/* y[n][o] = bias[o] + sum over channels and taps of x[n][i] weight[o][i], for each group; the other two are its
 * adjoints, x from y and weight, and weight from x and y. Tensors are contiguous: x (batch, groups * in, size),
 * y (batch, groups * out, result), weight (groups * out, in, kernel). Output position p and tap t meet at
 * p * stride + t * dilation - padding; beyond x lie zeros. bias: of the channels that are written, or NULL. sums: where the
 * sums of y by channel go beside the weight, or NULL, as it is for all but the CPU. */
typedef enum nr_conv_kind { NR_CONV_FORWARD, NR_CONV_INPUT, NR_CONV_WEIGHT } nr_conv_kind;
typedef struct nr_conv_plan {
    int64_t batch, groups, in, out;
    int64_t size[2], result[2], kernel[2], stride[2], padding[2], dilation[2];
    void *x, *y, *weight; /* which one is written, the kind says */
    const void *bias;
    void *sums;
} nr_conv_plan;

/* Windows over planes (size) into planes (result): window p sees p * stride + t * dilation - padding, t below kernel,
 * where that lies inside. max: y and index (the place in the plane) of x; avg: y of x, the sum over divisor, or (0) over the
 * size of the window, its padding counted or not. The others are their adjoints, x of y. All contiguous. */
typedef enum nr_pool_kind { NR_POOL_MAX, NR_POOL_MAX_SPREAD, NR_POOL_AVG, NR_POOL_AVG_SPREAD } nr_pool_kind;
typedef struct nr_pool_plan {
    int64_t planes;
    int64_t size[2], result[2], kernel[2], stride[2], padding[2], dilation[2];
    int64_t count_padding;
    double divisor;
    void *x, *y;
    int64_t *index;
} nr_pool_plan;

/* Rows of n contiguous elements, seen as h = (x - mean) / sqrt(variance + eps), or without the mean. forward: out = h weight +
 * bias; back: out = the gradient of x from that of the output, g; and unless sums is NULL, there the sums over rows of g h, then
 * of g. Of the weights, each stands for `each` elements, and a row of n elements goes on where the row before it ended, from the
 * last weight to the first: all of them in each row, or in a few (groups). */
typedef enum nr_normalize_kind { NR_NORMALIZE_FORWARD, NR_NORMALIZE_BACK } nr_normalize_kind;
typedef struct nr_normalize_plan {
    int64_t rows, n, weights, each;
    const void *x, *g, *weight, *bias; /* weight, bias: so many weights, or NULL */
    void *out, *sums;
    double eps;
    int64_t centered;
} nr_normalize_plan;

/* out = softmax(q k^T scale) v for each step of the batch nest: q (queries, width), k (keys, width), v (keys, value_width). row:
 * elements from row to row of q, k, v, g, out and the gradients of q, k and v, whose rows are contiguous; batch strides in the
 * same order. causal: query i sees the keys up to i. BACK: the gradients of q, k and v from that of out, g. */
typedef enum nr_attention_operand {
    NR_ATTENTION_Q,
    NR_ATTENTION_K,
    NR_ATTENTION_V,
    NR_ATTENTION_G,
    NR_ATTENTION_OUT,
    NR_ATTENTION_GRAD_Q,
    NR_ATTENTION_GRAD_K,
    NR_ATTENTION_GRAD_V,
    NR_ATTENTION_OPERANDS
} nr_attention_operand;
typedef enum nr_attention_kind { NR_ATTENTION_FORWARD, NR_ATTENTION_BACK } nr_attention_kind;
typedef struct nr_attention_plan {
    int64_t queries, keys, width, value_width;
    double scale;
    bool causal;
    const void *q, *k, *v, *g;
    void *out, *grad_q, *grad_k, *grad_v;
    int64_t row[NR_ATTENTION_OPERANDS];
    int32_t batch_ndim;
    int64_t batch[NORCH_MAX_DIMS];
    int64_t batch_stride[NR_ATTENTION_OPERANDS][NORCH_MAX_DIMS];
} nr_attention_plan;

#endif
