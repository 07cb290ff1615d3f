/* norch_families.h: the public C API of families of operations: products, layers, order, indexing, random numbers,
 * optimizers. As norch.h says, the bindings of Python come from this text. */
#ifndef NORCH_FAMILIES_H
#define NORCH_FAMILIES_H

#include "norch.h"

#pragma GCC visibility push(default)

/* ---- conditions --------------------------------------------------------------------------------- */

#define NORCH_CHECK_PROBABILITIES 0
#define NORCH_CHECK_QUANTILE 1
#define NORCH_CHECK_NANQUANTILE 2
#define NORCH_CHECK_VARIANCES 3
#define NORCH_CHECK_CLASSES 4
#define NORCH_CHECK_COUNTS 5
#define NORCH_CHECK_WEIGHTS 6

/* Fails with the message of a condition unless all elements of x, bool, are true. */
int32_t norch_check(const norch_tensor *x, int64_t condition);

/* ---- scans, order, softmax -------------------------------------------------------------------- */

#define NORCH_SCAN_SUM 0
#define NORCH_SCAN_PROD 1
#define NORCH_SCAN_LOGSUMEXP 2
#define NORCH_SCAN_MAX 3
#define NORCH_SCAN_MIN 4

/* Running sums, products or log-sum-exps along dim (integers and bool in int64), from the end if reverse; or the
 * indices (int64) of the running extremes: the last of equal ones; NaN wins. */
norch_tensor *norch_scan(int64_t kind, const norch_tensor *x, int64_t dim, bool reverse);
/* The same indices of the running maxima, or minima if least; the extremes go to values, of shape and dtype of x. */
norch_tensor *norch_scan_extreme(const norch_tensor *x, int64_t dim, bool least, norch_tensor *values);
/* The indices (int64) that sort x along dim, the first k of them (-1: all). Stable; NaN is the greatest. The elements
 * themselves go to optional_values, of the dtype of x. */
norch_tensor *norch_argsort(const norch_tensor *x, int64_t dim, int64_t k, bool descending,
                            norch_tensor *optional_values);
#define NORCH_MEDIAN -1
#define NORCH_NANMEDIAN -2

/* The index (int64) that argsort would put at place k along dim, which has then size 1; k
 * NORCH_MEDIAN: that of the lower median, or of the first NaN; NORCH_NANMEDIAN: of the median of the
 * elements that are not NaN. On the CPU only. */
norch_tensor *norch_order_index(const norch_tensor *x, int64_t dim, int64_t k);
/* The elements of x in order along dim, without their indices: zeros of either sign in any order. */
norch_tensor *norch_sorted(const norch_tensor *x, int64_t dim, bool descending);
/* The index (int64) at which each value keeps the last axis of sorted in order: before equal elements, or after them if
 * right. sorted is 1-d, or has the leading axes of values. */
norch_tensor *norch_searchsorted(const norch_tensor *sorted, const norch_tensor *values, bool right);
/* softmax along dim, or its logarithm; and the gradient of x, from g, the gradient of the result. */
norch_tensor *norch_softmax(const norch_tensor *x, int64_t dim, bool log);
norch_tensor *norch_softmax_backward(const norch_tensor *g, const norch_tensor *result, int64_t dim, bool log);

/* Losses log(sum(exp(x))) - x[target] of the rows of x (N, C), or of x (C), of floats, with targets (N) or (), int64; 0
 * where the target is `ignored`. reduced: their sum, divided by the number of targets that are not ignored if there is
 * an optional_count (0-d), which gets it. smoothing: the part of the target that is spread over all classes. log_sums
 * (N, 2) gets what the gradient needs; it and the count have the dtype that x is computed in. backward: the gradient of
 * x, from g, that of the result. */
norch_tensor *norch_cross_entropy(const norch_tensor *x, const norch_tensor *target, const norch_tensor *log_sums,
                                  const norch_tensor *optional_count, int64_t ignored, bool reduced, double smoothing);
norch_tensor *norch_cross_entropy_backward(const norch_tensor *g, const norch_tensor *x, const norch_tensor *target,
                                           const norch_tensor *log_sums, const norch_tensor *optional_count,
                                           int64_t ignored, double smoothing);
/* The same of x (N, C, ...) or (C), of logarithms of probabilities, with targets (N, ...) or (): -x[target], times the
 * target's element of optional_weight (C). The count is that of the weights. backward: the gradient, of `classes`. */
norch_tensor *norch_nll(const norch_tensor *x, const norch_tensor *target, const norch_tensor *optional_weight,
                        const norch_tensor *optional_count, int64_t ignored, bool reduced);
norch_tensor *norch_nll_backward(const norch_tensor *g, const norch_tensor *target, const norch_tensor *optional_weight,
                                 const norch_tensor *optional_count, int64_t ignored, int64_t classes);

/* ---- products ------------------------------------------------------------------------------- */

#define NORCH_PRODUCT_MM 0
#define NORCH_PRODUCT_BMM 1
#define NORCH_PRODUCT_MV 2
#define NORCH_PRODUCT_DOT 3
#define NORCH_PRODUCT_VDOT 4

/* NumPy's matmul for every rank; a flag transposes the last two axes of its operand (not of a vector). linear: x (...,
 * K) @ weight (N, K)^T + optional_bias (N), then the UNARY row `epilogue` unless it is -1: in the same pass, if it
 * keeps the dtype. addmm: beta * residual + alpha * (a (..., M, K) @ b (..., K, N)), rounded once, in the same pass: of
 * floats, not on the CPU. The residual broadcasts to the product. */
norch_tensor *norch_matmul(const norch_tensor *a, const norch_tensor *b, bool transpose_a, bool transpose_b);
norch_tensor *norch_linear(const norch_tensor *x, const norch_tensor *weight, const norch_tensor *optional_bias,
                           int64_t epilogue);
/* matmul of two matrices (mm), two batches of as many (bmm), a matrix and a vector (mv), two vectors (dot, vdot). */
norch_tensor *norch_product(int64_t kind, const norch_tensor *a, const norch_tensor *b);
norch_tensor *norch_addmm(const norch_tensor *residual, const norch_tensor *a, const norch_tensor *b, double beta,
                          double alpha);
/* x of a x = b for a triangle a (M, M) and b (M, N), floats on the CPU; the rest of a is not read. */
norch_tensor *norch_solve_triangle(const norch_tensor *a, const norch_tensor *b, bool upper, bool unit);
/* linear with a weight (N, K) of 8-bit (int8) or 4-bit (uint8) integers, as csrc/families/quantized.h stores them,
 * times scale (N, groups); of float32, float16 and bfloat16, in float32. dynamic: each row of x becomes 8-bit integers,
 * and their products are summed exactly. weight: the (N, columns) float32 that it stands for. */
norch_tensor *norch_quantized_linear(const norch_tensor *x, const norch_tensor *weight, const norch_tensor *scale,
                                     const norch_tensor *optional_bias, bool dynamic);
norch_tensor *norch_quantized_weight(const norch_tensor *weight, const norch_tensor *scale, int64_t columns);
/* How CUDA devices compute products of float32 from now on: 0, with the precision of float32, by whatever is fastest;
 * 1, in the arithmetic of float32 alone (IEEE 754), and 2, with the 10 bits of TF32. */
int32_t norch_set_float32_precision(int64_t precision);
int64_t norch_float32_precision(void);

/* ---- recurrent layers ----------------------------------------------------------------------- */

/* An LSTM over all steps or, without c, a GRU, of float32 or float64. from_x (steps, rows, gates * size): the products
 * of the input with its weights, plus bias. h, c (rows, size): the first state. weight (gates * size, size) and bias
 * (gates * size) apply to the state. reverse: from the last step to the first. Written, contiguous: the states hs
 * (steps, rows, size), of an LSTM cs, and kept (steps, rows, 4 * size), which the gradients need. Without gradients
 * the last two have one step, which each step writes: cs is then the last c.
 *
 * backward, from the gradients of hs and of the last c (NULL: 0), writes that of from_x; of a GRU, in grad_h, that of
 * the product of state and weight (of an LSTM it is that of from_x); in grad_state that of c, of a GRU the part of that
 * of h which does not go through the weight. It returns the part which does. A GRU of several steps reads hs. */
int32_t norch_recurrent(const norch_tensor *from_x, const norch_tensor *h, const norch_tensor *optional_c,
                        const norch_tensor *weight, const norch_tensor *optional_bias, bool reverse,
                        const norch_tensor *hs, const norch_tensor *kept, const norch_tensor *optional_cs);
norch_tensor *norch_recurrent_backward(const norch_tensor *optional_g_hs, const norch_tensor *optional_g_c,
                                       const norch_tensor *h, const norch_tensor *optional_c,
                                       const norch_tensor *weight, bool reverse, const norch_tensor *optional_hs,
                                       const norch_tensor *kept, const norch_tensor *optional_cs,
                                       const norch_tensor *grad_x, const norch_tensor *optional_grad_h,
                                       const norch_tensor *grad_state);

/* ---- attention ------------------------------------------------------------------------------ */

/* softmax(q k^T scale + mask) v over q (..., L, E), k (..., S, E), v (..., S, V), of one float dtype and with the same
 * leading axes; causal: query i sees the keys up to i; the result has the strides of norch_empty_like(q, V).
 * On the CPU: optional_mask (..., L, S) or with sizes of 1, of bools (true takes part) or of the dtype of q; a query
 * that sees no key gives 0; dropout by optional_seed, an int64. backward: from g, the gradient of the result, those of
 * q, k and v, into tensors of their shapes whose rows are contiguous. */
norch_tensor *norch_attention(const norch_tensor *q, const norch_tensor *k, const norch_tensor *v,
                              const norch_tensor *optional_mask, const norch_tensor *optional_seed, double scale,
                              bool causal, double dropout);
int32_t norch_attention_backward(const norch_tensor *g, const norch_tensor *q, const norch_tensor *k,
                                 const norch_tensor *v, const norch_tensor *optional_mask,
                                 const norch_tensor *optional_seed, double scale, bool causal, double dropout,
                                 int64_t n, const void *grads);
/* Whether the device has the fused kernels for such operands (of widths within their limits). They know float16 and
 * bfloat16 too; optional_mask (..., L, S), of bools (true takes part) or of the dtype of q; dropout by optional_seed,
 * an int64 on the device; and heads of q, the axis before the rows, in groups that share one of k and v. A query that
 * sees no key gives 0. optional_logsumexp: float32 (2, ..., L), contiguous, two numbers whose sum it is, written for
 * backward, which needs the result too. */
bool norch_attention_fuses(const norch_tensor *q, const norch_tensor *k, const norch_tensor *v);
norch_tensor *norch_attention_fused(const norch_tensor *q, const norch_tensor *k, const norch_tensor *v,
                                    const norch_tensor *optional_mask, const norch_tensor *optional_seed,
                                    const norch_tensor *optional_logsumexp, double scale, bool causal, double dropout);
int32_t norch_attention_fused_backward(const norch_tensor *g, const norch_tensor *q, const norch_tensor *k,
                                       const norch_tensor *v, const norch_tensor *out, const norch_tensor *logsumexp,
                                       const norch_tensor *optional_mask, const norch_tensor *optional_seed,
                                       double scale, bool causal, double dropout, int64_t n, const void *grads);

/* ---- convolution ----------------------------------------------------------------------------- */

/* geometry: {stride, padding before, padding after, dilation}, a pair (rows, columns) each, and groups. x (N, C, H, W),
 * weight (O, C / groups, kernel), optional_bias (O) to (N, O, ...). The adjoints: conv_input (a transposed convolution)
 * gives (N, C, *size) from y (N, O, ...), with a bias (C); conv_weight gives (O, C / groups, *kernel), and writes the
 * sums of y by channel, the bias's gradient, to optional_sums (O). */
norch_tensor *norch_conv(const norch_tensor *x, const norch_tensor *weight, const norch_tensor *optional_bias,
                         int64_t count, const int64_t *geometry);
norch_tensor *norch_conv_input(const norch_tensor *y, const norch_tensor *weight, const norch_tensor *optional_bias,
                               int64_t count, const int64_t *geometry, int64_t axes, const int64_t *size);
norch_tensor *norch_conv_weight(const norch_tensor *x, const norch_tensor *y, int64_t count, const int64_t *geometry,
                                int64_t axes, const int64_t *kernel, norch_tensor *optional_sums);

/* ---- pooling -------------------------------------------------------------------------------- */

/* Over the last two axes. window: {kernel, stride, padding, dilation, size of the result}, a pair each; every window
 * must begin before the end of x. Strides of 0 divide the axes: window i of n from i size / n, rounded down, to (i + 1)
 * size / n, rounded up, whatever the kernel is. max: `index` (int32, of the result's shape) gets the positions of the
 * maxima in their planes, of less than 2^31 elements. backward: zeros of the given size, to which x, the gradient of
 * the result, is added at these positions. */
norch_tensor *norch_pool_max(const norch_tensor *x, int64_t count, const int64_t *window, norch_tensor *index);
norch_tensor *norch_pool_max_backward(const norch_tensor *x, const norch_tensor *index, int64_t count,
                                      const int64_t *window, int64_t axes, const int64_t *size);
/* divisor 0: the size of the window, with or without its padding. backward: the gradient of x from the result's. */
norch_tensor *norch_pool_avg(const norch_tensor *x, int64_t count, const int64_t *window, bool count_padding,
                             double divisor);
norch_tensor *norch_pool_avg_backward(const norch_tensor *x, int64_t count, const int64_t *window, bool count_padding,
                                      double divisor, int64_t axes, const int64_t *size);

/* ---- sampling ------------------------------------------------------------------------------- */

#define NORCH_SAMPLE_BILINEAR 0
#define NORCH_SAMPLE_NEAREST 1
#define NORCH_SAMPLE_BICUBIC 2
#define NORCH_SAMPLE_ZEROS 0
#define NORCH_SAMPLE_BORDER 1
#define NORCH_SAMPLE_REFLECTION 2

/* x with axis dim of size n: element i of it is the sum of those at index[k, i], int64 (k, n), times weight[k, i], of
 * the dtype of x; a negative index stands for no element. backward: from g, the gradient of the result, that of x,
 * whose axis has the given size. float32 and float64, on the CPU only. */
norch_tensor *norch_resample(const norch_tensor *x, int64_t dim, const norch_tensor *index, const norch_tensor *weight);
norch_tensor *norch_resample_backward(const norch_tensor *g, int64_t dim, const norch_tensor *index,
                                      const norch_tensor *weight, int64_t size);
/* Images x (N, C, H, W) at the coordinates grid (N, H', W', 2), x and y from -1 to 1, of the same float dtype: (N, C,
 * H', W'); or (N, C, D, H, W) and (N, D', H', W', 3), not bicubic. Outside an image are zeros, its border or its
 * reflection; corners: -1 and 1 are the centres of the outer pixels, not their edges. backward: from g, the gradient of
 * the result, those of x and grid into contiguous tensors. On the CPU only. */
norch_tensor *norch_grid_sample(const norch_tensor *x, const norch_tensor *grid, int64_t mode, int64_t padding,
                                bool corners);
int32_t norch_grid_sample_backward(const norch_tensor *g, const norch_tensor *x, const norch_tensor *grid, int64_t mode,
                                   int64_t padding, bool corners, norch_tensor *optional_of_x,
                                   norch_tensor *optional_of_grid);

/* The norms of order p, which is 1, 2 or infinity, of the differences of rows of a (..., M, K) and b (..., N, K), of
 * the same leading axes: (..., M, N); without b of each row of a with those after it, (..., M (M - 1) / 2). backward:
 * the sum over N of weight (..., M, N) times the differences, for p = 1 times their signs: (..., M, K), which is the
 * gradient of a if weight is that of the norms, for p = 2 divided by these. float32 and float64, on the CPU only. */
norch_tensor *norch_distances(const norch_tensor *a, const norch_tensor *optional_b, double p);
norch_tensor *norch_distances_backward(const norch_tensor *weight, const norch_tensor *a, const norch_tensor *b,
                                       double p);

/* ---- normalisation -------------------------------------------------------------------------- */

/* The last `axes` axes of x with mean 0 and variance 1 (centered false: mean square 1), times weight, plus bias, both
 * of the shape of those axes; if axes is negative, over -axes groups of the channels of x (N, C, ...), weight and bias
 * (C). backward: from g, the gradient of the result, that of x into a contiguous tensor of its shape; and into a second
 * one of shape (2, ...), if given, those of weight and bias. */
norch_tensor *norch_normalize(const norch_tensor *x, const norch_tensor *optional_weight,
                              const norch_tensor *optional_bias, int64_t axes, double eps, bool centered);
int32_t norch_normalize_backward(const norch_tensor *g, const norch_tensor *x, const norch_tensor *optional_weight,
                                 int64_t axes, double eps, bool centered, int64_t n, const void *grads);

/* Channels of x (N, C, ...) with mean 0 and variance 1, times weight, plus bias, of float32 or float64; the others (C),
 * of the same dtype. With mean and variance given, the statistics are those of x: they are written there, and the
 * running ones move towards them by momentum; else the running ones are read. backward: from g, the gradient of the
 * result, and the statistics, those of x, and of weight and bias (2, C), into contiguous tensors; training: the
 * statistics depend on x. */
norch_tensor *norch_batch_norm(const norch_tensor *x, const norch_tensor *optional_mean,
                               const norch_tensor *optional_variance, const norch_tensor *optional_running_mean,
                               const norch_tensor *optional_running_variance, const norch_tensor *optional_weight,
                               const norch_tensor *optional_bias, double momentum, double eps);
int32_t norch_batch_norm_backward(const norch_tensor *g, const norch_tensor *x, const norch_tensor *mean,
                                  const norch_tensor *variance, const norch_tensor *optional_weight, double eps,
                                  bool training, int64_t n, const void *grads);

/* ---- joining ------------------------------------------------------------------------------- */

/* xs: n tensor pointers. */
norch_tensor *norch_cat(int64_t n, const void *xs, int64_t dim);
norch_tensor *norch_stack(int64_t n, const void *xs, int64_t dim);
/* x with elements added before and after each of its last n axes: value (0-d); those of x mirrored at the outermost
 * one; the outermost one; those at the other end. */
norch_tensor *norch_pad(const norch_tensor *x, int64_t n, const int64_t *before, int64_t n_after, const int64_t *after,
                        int64_t mode, const norch_tensor *value);
#define NORCH_PAD_CONSTANT 0
#define NORCH_PAD_REFLECT 1
#define NORCH_PAD_REPLICATE 2
#define NORCH_PAD_CIRCULAR 3

/* ---- indexing: every index is checked before anything is read or written -------------------- */

/* The operation, and its name in messages: a read, a write (the last one of several stays), a sum and so on. Negative
 * indices count from the end for GET, TAKE, PUT, PUT_ADD and FILL; for the others they are out of range. */
#define NORCH_INDEX_GET 0
#define NORCH_INDEX_TAKE 1
#define NORCH_INDEX_SELECT 2
#define NORCH_INDEX_EMBEDDING 3
#define NORCH_INDEX_GATHER 4
#define NORCH_INDEX_PUT 5
#define NORCH_INDEX_PUT_ADD 6
#define NORCH_INDEX_FILL 7
#define NORCH_INDEX_COPY 8
#define NORCH_INDEX_ADD 9
#define NORCH_INDEX_SCATTER 10
#define NORCH_INDEX_SCATTER_ADD 11
#define NORCH_INDEX_SCATTER_PROD 12
#define NORCH_INDEX_SCATTER_AMAX 13
#define NORCH_INDEX_SCATTER_AMIN 14

/* gather: out[i][j] = x[index[i][j]][j], for dim 0. scatter: writes src[i][j] to x[index[i][j]][j], or combines the
 * two; not in_place: in a copy of x. A 0-d src is written to every index. */
norch_tensor *norch_gather(const norch_tensor *x, int64_t dim, const norch_tensor *index);
norch_tensor *norch_scatter(norch_tensor *x, int64_t kind, int64_t dim, const norch_tensor *index,
                            const norch_tensor *src, bool in_place);
/* n index tensors for n axes of x, broadcast together; their dimensions follow the first `lead` of the other dimensions
 * of x. named: for each axis the dimension that messages name. put writes values, broadcast to the shape that get would
 * have. */
norch_tensor *norch_index_get(const norch_tensor *x, int64_t kind, int64_t n, const void *indices, int64_t count,
                              const int64_t *axes, int64_t names, const int64_t *named, int64_t lead);
norch_tensor *norch_index_put(norch_tensor *x, int64_t kind, int64_t n, const void *indices, int64_t count,
                              const int64_t *axes, int64_t names, const int64_t *named, int64_t lead,
                              const norch_tensor *values, bool in_place);
/* The coordinates of elements that are not 0: (count, ndim), or by_dimension (ndim, count). */
norch_tensor *norch_nonzero(const norch_tensor *x, bool by_dimension);
/* The elements of x where mask (bool, of the shape of x) holds, 1-d; put writes as many values to a contiguous x. */
norch_tensor *norch_mask_get(const norch_tensor *x, const norch_tensor *mask);
int32_t norch_mask_put(norch_tensor *x, const norch_tensor *mask, const norch_tensor *values);

/* ---- random: one counter-based stream (Philox 4x32-10) -------------------------------------- */

/* state points at {seed, counter} of the caller; the call advances the counter. */
norch_tensor *norch_rand(uint64_t *state, int64_t ndim, const int64_t *shape, int64_t dtype, int64_t device_type,
                         int64_t device_index);
norch_tensor *norch_randn(uint64_t *state, int64_t ndim, const int64_t *shape, int64_t dtype, int64_t device_type,
                          int64_t device_index);
norch_tensor *norch_randint(uint64_t *state, int64_t ndim, const int64_t *shape, int64_t low, int64_t high,
                            int64_t dtype, int64_t device_type, int64_t device_index);
norch_tensor *norch_randperm(uint64_t *state, int64_t n, int64_t device_type, int64_t device_index);
norch_tensor *norch_bernoulli(uint64_t *state, const norch_tensor *p);
/* x, of floats, with elements multiplied by 0 with probability p, and else by scale; mask, contiguous bools of its
 * shape, gets which were kept. An element is kept where norch_rand() would draw p or more. */
norch_tensor *norch_dropout(uint64_t *state, const norch_tensor *x, double p, double scale, const norch_tensor *mask);

/* ---- optimizer steps over many tensors at once ---------------------------------------------- */

/* Row `kind` of optim.def: its name, hyper-parameters ("lr, momentum, ...") and state tensors; NULL past the last. */
const char *norch_optim_name(int64_t kind);
const char *norch_optim_hyper(int64_t kind);
const char *norch_optim_state(int64_t kind);
/* One step: of n tensors each, params and state are updated in place; a state that the row does not have, or that is
 * optional and not there, is NULL. hyper points at the row's hyper-parameters, doubles in that order, read when the
 * step runs. */
int32_t norch_optim_step(int64_t kind, int64_t n, const void *params, const void *grads, const void *state0,
                         const void *state1, const void *state2, const double *hyper);

#pragma GCC visibility pop

#endif
