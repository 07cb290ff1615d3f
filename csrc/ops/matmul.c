/* matmul: checks, shapes and plans of matrix products.
 *
 * Kernels take strided operands, so that no transpose, slice or expansion is copied. Evenly spaced batches of A with
 * one common right operand become more rows of A: (B, T, C) @ (C, N) is one product with B * T rows. */
#include <string.h>

#include "../core/observer.h"
#include "../families/matmul.h"
#include "ops.h"

/* Rough speed of one core, for nr_call.work. */
#define OPERATIONS_PER_NS 10.0

static int32_t float32_precision = NR_PRECISION_FLOAT32;

int64_t norch_float32_precision(void) { return float32_precision; }

int32_t norch_set_float32_precision(int64_t precision) {
    if (precision < 0 || precision >= NR_PRECISION_COUNT)
        return nr_fail(NORCH_ERROR_VALUE, "set_float32_precision: there is no precision %lld", (long long)precision);
    float32_precision = (int32_t)precision;
    return NORCH_OK;
}

/* The batch dimensions of an operand, and its stride along batch dimension d, counted from the innermost. */
static int32_t batch_dims(const norch_tensor *x) { return x->ndim > 2 ? x->ndim - 2 : 0; }

static int64_t batch_stride(const norch_tensor *x, int32_t d) {
    int32_t axis = batch_dims(x) - 1 - d;
    return axis < 0 || x->shape[axis] == 1 ? 0 : x->strides[axis];
}

/* Refuses different dtypes, and bool. */
static int32_t check_dtypes(const char *op, const norch_tensor *a, const norch_tensor *b) {
    if (a->dtype != b->dtype)
        return nr_fail(NORCH_ERROR_DTYPE,
                       "%s: expected both to have the same dtype, but got %s and %s; x.to(y.dtype) casts", op,
                       nr_dtypes[a->dtype].name, nr_dtypes[b->dtype].name);
    if (a->dtype == NORCH_BOOL) return nr_fail(NORCH_ERROR_DTYPE, "%s: not defined for dtype bool", op);
    return NORCH_OK;
}

static int32_t check_operands(const char *op, const norch_tensor *a, const norch_tensor *b) {
    NR_TRY(nr_check_tensor(op, a));
    NR_TRY(nr_check_tensor(op, b));
    if (a->ndim == 0 || b->ndim == 0)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: both operands need at least 1 dimension: %s and %s", op, nr_shape_of(a),
                       nr_shape_of(b));
    const norch_tensor *both[] = {a, b};
    NR_TRY(nr_check_devices(op, 2, both));
    return check_dtypes(op, a, b);
}

static int32_t inner_mismatch(const char *op, int64_t a_size, int64_t b_size, const norch_tensor *a,
                              const norch_tensor *b) {
    return nr_fail(NORCH_ERROR_SHAPE, "%s: sizes %lld and %lld of the inner dimension do not match: %s and %s", op,
                   (long long)a_size, (long long)b_size, nr_shape_of(a), nr_shape_of(b));
}

/* Batch sizes of the result, outermost first. */
static int32_t broadcast_batches(const char *op, const norch_tensor *a, const norch_tensor *b, int32_t *ndim,
                                 int64_t *shape) {
    *ndim = batch_dims(a);
    for (int32_t i = 0; i < *ndim; i++) shape[i] = a->shape[i];
    int32_t at = 0;
    if (nr_broadcast(ndim, shape, batch_dims(b), b->shape, &at)) return NORCH_OK;
    return nr_fail(NORCH_ERROR_SHAPE, "%s: batch sizes %lld and %lld at dimension %d do not broadcast: %s and %s", op,
                   (long long)a->shape[at - *ndim + batch_dims(a)], (long long)b->shape[at - *ndim + batch_dims(b)], at,
                   nr_shape_of(a), nr_shape_of(b));
}

/* The loops over batches: folded into M if they form one product, else collapsed. The output is C-ordered. */
static void plan_batches(nr_matmul_plan *plan, const norch_tensor *a, const norch_tensor *b, int32_t ndim,
                         const int64_t *shape) {
    int64_t c_stride = plan->m * plan->n;
    plan->batch_ndim = 0;
    for (int32_t d = 0; d < ndim; d++) {
        int64_t size = shape[ndim - 1 - d], a_stride = batch_stride(a, d), b_stride = batch_stride(b, d);
        if (size == 1) continue;
        if (plan->batch_ndim == 0 && b_stride == 0 && (plan->m == 1 || a_stride == plan->m * plan->a_row)) {
            if (plan->m == 1) plan->a_row = a_stride;
            plan->m *= size;
        } else {
            int32_t to = plan->batch_ndim++;
            plan->batch[to] = size;
            plan->batch_stride[0][to] = c_stride;
            plan->batch_stride[1][to] = a_stride;
            plan->batch_stride[2][to] = b_stride;
        }
        c_stride *= size;
    }
    if (plan->batch_ndim > 1)
        plan->batch_ndim = nr_nest_collapse(plan->batch_ndim, plan->batch, 3, plan->batch_stride, 1);
}

/* Makes the output, m x n with `ndim` batch dimensions, and runs the plan, whose m, n, k and matrix strides are set.
 * keep_m, keep_n: whether the result has these dimensions. */
static norch_tensor *multiply(nr_matmul_plan *plan, const norch_tensor *a, const norch_tensor *b, int32_t ndim,
                              int64_t *shape, bool keep_m, bool keep_n, int32_t epilogue) {
    int32_t batches = ndim;
    if (keep_m) shape[ndim++] = plan->m;
    if (keep_n) shape[ndim++] = plan->n;
    norch_tensor *out = nr_make(ndim, shape, a->dtype, a);
    if (!out || out->numel == 0) return out;
    plan_batches(plan, a, b, batches, shape);
    plan->a = a->data;
    plan->b = b->data;
    plan->c = out->data;
    plan->c_row = plan->n;
    plan->precision = float32_precision;
    nr_call call = {.family = NR_MATMUL, .op = epilogue, .dtype = a->dtype, .from_dtype = a->dtype, .plan = plan};
    call.work = (double)out->numel * (2.0 * (double)plan->k + 1.0) / OPERATIONS_PER_NS;
    return nr_finished(out, nr_dispatch(&call, out));
}

/* The last two axes of an operand; a vector is one row (left operand) or one column. */
typedef struct matrix {
    int64_t rows, columns, row_stride, column_stride;
} matrix;

static matrix as_matrix(const norch_tensor *x, bool transposed, bool vector_is_row) {
    int64_t size = x->shape[x->ndim - 1], stride = x->strides[x->ndim - 1];
    if (x->ndim == 1) return vector_is_row ? (matrix){1, size, 0, stride} : (matrix){size, 1, stride, 0};
    int64_t other_size = x->shape[x->ndim - 2], other_stride = x->strides[x->ndim - 2];
    return transposed ? (matrix){size, other_size, stride, other_stride}
                      : (matrix){other_size, size, other_stride, stride};
}

/* ---- complex numbers: one product of real matrices, with B as 2 x 2 blocks -----------------------------
 *
 *   [ re a  im a  .. ]  [  re b  im b  .. ]  =  [ re c  im c  .. ]
 *                       [ -im b  re b  .. ]
 *                       [    ..           ]                                                              */

/* b (..., K, N) as the real matrix (..., 2 K, 2 N). */
static norch_tensor *blocks_of(const norch_tensor *b) {
    int64_t shape[NORCH_MAX_DIMS];
    const int32_t rows = b->ndim - 2;
    if (b->ndim + 2 > NORCH_MAX_DIMS)
        return NR_REFUSE(NORCH_ERROR_SHAPE, "matmul: complex operands of %d dimensions; at most %d are supported",
                         b->ndim, NORCH_MAX_DIMS - 2);
    memcpy(shape, b->shape, (size_t)(rows + 1) * sizeof *shape);
    shape[rows + 1] = 2;
    shape[rows + 2] = b->shape[rows + 1];
    NR_OWNED norch_tensor *both = nr_make(b->ndim + 1, shape, b->dtype, b);
    NR_OWNED norch_tensor *plain = both ? norch_select(both, rows + 1, 0) : NULL;
    NR_OWNED norch_tensor *turned = plain ? norch_select(both, rows + 1, 1) : NULL; /* i b */
    NR_OWNED norch_tensor *re = turned ? nr_part(turned, 0) : NULL, *im = re ? nr_part(b, 1) : NULL;
    if (!im || nr_copy_into(plain, b) || norch_unary_into(re, NR_OP_neg, im)) return NULL;
    NR_OWNED norch_tensor *turned_im = nr_part(turned, 1), *re_of_b = turned_im ? nr_part(b, 0) : NULL;
    if (!re_of_b || nr_copy_into(turned_im, re_of_b)) return NULL;
    NR_OWNED norch_tensor *parts = norch_view_as_real(both);
    shape[rows] *= 2;
    shape[rows + 1] = 2 * b->shape[rows + 1];
    return parts ? norch_reshape(parts, b->ndim, shape) : NULL;
}

/* a (..., K) as a real tensor (..., 2 K); back() makes a real result (..., 2 N) complex (..., N). */
static norch_tensor *rows_of(const norch_tensor *a) {
    int64_t shape[NORCH_MAX_DIMS];
    memcpy(shape, a->shape, (size_t)a->ndim * sizeof *shape);
    shape[a->ndim - 1] *= 2;
    NR_OWNED norch_tensor *parts = norch_view_as_real(a);
    return parts ? norch_reshape(parts, a->ndim, shape) : NULL;
}

static norch_tensor *back(norch_tensor *rows, bool vector) {
    if (!rows || vector) return nr_whole(rows);
    int64_t shape[NORCH_MAX_DIMS + 1];
    memcpy(shape, rows->shape, (size_t)rows->ndim * sizeof *shape);
    shape[rows->ndim - 1] /= 2;
    shape[rows->ndim] = 2;
    norch_tensor *parts = norch_view(rows, rows->ndim + 1, shape);
    nr_release(rows);
    return nr_whole(parts);
}

static norch_tensor *complex_matmul(const norch_tensor *a, const norch_tensor *b, bool transpose_a, bool transpose_b) {
    NR_OWNED norch_tensor *left = transpose_a && a->ndim > 1 ? norch_transpose(a, -1, -2) : norch_alias(a);
    NR_OWNED norch_tensor *right = !left          ? NULL
                                   : b->ndim == 1 ? norch_unsqueeze(b, 1)
                                   : transpose_b  ? norch_transpose(b, -1, -2)
                                                  : norch_alias(b);
    NR_OWNED norch_tensor *rows = right ? rows_of(left) : NULL, *blocks = rows ? blocks_of(right) : NULL;
    return blocks ? back(norch_matmul(rows, blocks, false, false), b->ndim == 1) : NULL;
}

/* Sizes and strides of the last two axes, and the batch sizes of the result. */
static int32_t plan_operands(const char *op, nr_matmul_plan *plan, const norch_tensor *a, const norch_tensor *b,
                             bool transpose_a, bool transpose_b, int32_t *ndim, int64_t *shape) {
    const matrix left = as_matrix(a, transpose_a, true), right = as_matrix(b, transpose_b, false);
    if (left.columns != right.rows) return inner_mismatch(op, left.columns, right.rows, a, b);
    plan->m = left.rows;
    plan->n = right.columns;
    plan->k = left.columns;
    plan->a_row = left.row_stride;
    plan->a_col = left.column_stride;
    plan->b_row = right.row_stride;
    plan->b_col = right.column_stride;
    return a->ndim > 2 || b->ndim > 2 ? broadcast_batches(op, a, b, ndim, shape) : NORCH_OK;
}

static norch_tensor *matmul(const char *op, const norch_tensor *a, const norch_tensor *b, bool transpose_a,
                            bool transpose_b) {
    if (check_operands(op, a, b)) return NULL;
    if (nr_needs_widening(a, NR_MATMUL)) {
        NR_OWNED norch_tensor *wide_a = nr_widened_as_laid(a), *wide_b = wide_a ? nr_widened_as_laid(b) : NULL;
        return wide_b ? nr_narrowed(matmul(op, wide_a, wide_b, transpose_a, transpose_b), a->dtype) : NULL;
    }
    nr_matmul_plan plan = {0};
    int64_t shape[NORCH_MAX_DIMS];
    int32_t ndim = 0;
    if (plan_operands(op, &plan, a, b, transpose_a, transpose_b, &ndim, shape)) return NULL;
    if (nr_is_complex(a->dtype)) return complex_matmul(a, b, transpose_a, transpose_b);
    return multiply(&plan, a, b, ndim, shape, a->ndim > 1, b->ndim > 1, NR_NO_OP);
}

norch_tensor *norch_matmul(const norch_tensor *a, const norch_tensor *b, bool transpose_a, bool transpose_b) {
    return matmul("matmul", a, b, transpose_a, transpose_b);
}

norch_tensor *norch_product(int64_t kind, const norch_tensor *a, const norch_tensor *b) {
    static const struct {
        const char *name;
        int32_t ndim[2];
    } products[] = {[NORCH_PRODUCT_MM] = {"mm", {2, 2}},
                    [NORCH_PRODUCT_BMM] = {"bmm", {3, 3}},
                    [NORCH_PRODUCT_MV] = {"mv", {2, 1}},
                    [NORCH_PRODUCT_DOT] = {"dot", {1, 1}},
                    [NORCH_PRODUCT_VDOT] = {"vdot", {1, 1}}};
    if (kind < 0 || kind >= (int64_t)(sizeof products / sizeof *products))
        return NR_REFUSE(NORCH_ERROR_VALUE, "product: there is no kind %lld", (long long)kind);
    const char *name = products[kind].name;
    const norch_tensor *const both[] = {a, b};
    for (int i = 0; i < 2; i++)
        if (both[i]->ndim != products[kind].ndim[i])
            return NR_REFUSE(NORCH_ERROR_SHAPE, "%s: expected %d dimensions, got shape %s", name,
                             products[kind].ndim[i], nr_shape_of(both[i]));
    if (kind == NORCH_PRODUCT_BMM && a->shape[0] != b->shape[0])
        return NR_REFUSE(NORCH_ERROR_SHAPE, "bmm: batches of %lld and %lld: %s and %s", (long long)a->shape[0],
                         (long long)b->shape[0], nr_shape_of(a), nr_shape_of(b));
    return matmul(name, a, b, false, false);
}

norch_tensor *norch_addmm(const norch_tensor *residual, const norch_tensor *a, const norch_tensor *b, double beta,
                          double alpha) {
    if (check_operands("addmm", a, b) || check_operands("addmm", a, residual)) return NULL;
    if (!nr_is_float(a->dtype)) return NR_REFUSE(NORCH_ERROR_DTYPE, "addmm: floats, not %s", nr_dtypes[a->dtype].name);
    if (a->ndim < 2 && b->ndim != 1)
        return NR_REFUSE(NORCH_ERROR_SHAPE, "addmm: a matrix, or two vectors, not %s and %s", nr_shape_of(a),
                         nr_shape_of(b));
    if (nr_needs_widening(a, NR_MATMUL) || (nr_is_narrow(a->dtype) && a->device_type == NORCH_CPU)) {
        NR_OWNED norch_tensor *wide_a = nr_widened_as_laid(a), *wide_b = wide_a ? nr_widened_as_laid(b) : NULL;
        NR_OWNED norch_tensor *wide_residual = wide_b ? nr_widened(residual) : NULL;
        return wide_residual ? nr_narrowed(norch_addmm(wide_residual, wide_a, wide_b, beta, alpha), a->dtype) : NULL;
    }
    nr_matmul_plan plan = {.alpha = alpha, .beta = beta};
    int64_t shape[NORCH_MAX_DIMS];
    int32_t ndim = 0;
    const bool keep_n = b->ndim > 1 || a->ndim == 1;
    if (a->ndim == 1) {
        plan.m = a->shape[0], plan.n = b->shape[0], plan.k = 1;
        plan.a_row = a->strides[0], plan.b_col = b->strides[0];
    } else if (plan_operands("addmm", &plan, a, b, false, false, &ndim, shape)) {
        return NULL;
    }
    shape[ndim] = plan.m;
    shape[ndim + 1] = plan.n;
    NR_OWNED norch_tensor *whole = norch_expand(residual, ndim + 1 + keep_n, shape);
    NR_OWNED norch_tensor *dense = whole ? nr_dense(whole, a->dtype) : NULL;
    if (!dense) return NULL;
    plan.residual = dense->data;
    return multiply(&plan, a, b, ndim, shape, true, keep_n, NR_NO_OP);
}

norch_tensor *norch_solve_triangle(const norch_tensor *a, const norch_tensor *b, bool upper, bool unit) {
    if (check_operands("solve_triangle", a, b)) return NULL;
    if (a->ndim != 2 || b->ndim != 2 || a->shape[0] != a->shape[1] || a->shape[1] != b->shape[0] ||
        a->device_type == NORCH_CUDA || (a->dtype != NORCH_FLOAT32 && a->dtype != NORCH_FLOAT64))
        return NR_REFUSE(NORCH_ERROR_SHAPE, "solve_triangle: %s and %s", nr_shape_of(a), nr_shape_of(b));
    if (nr_note_unseen("solve_triangular")) return NULL;
    nr_matmul_plan plan = {
        .m = a->shape[0], .n = b->shape[1], .k = a->shape[0], .triangle = NR_LOWER + upper + 2 * unit};
    plan.a_row = a->strides[0], plan.a_col = a->strides[1];
    NR_OWNED norch_tensor *rows = nr_dense(b, b->dtype);
    int64_t shape[NORCH_MAX_DIMS];
    if (!rows) return NULL;
    plan.b_row = plan.n, plan.b_col = 1;
    return multiply(&plan, a, rows, 0, shape, true, true, NR_NO_OP);
}

/* Checks the weight and the bias of a linear layer. */
static int32_t check_layer(const norch_tensor *x, const norch_tensor *weight, const norch_tensor *bias) {
    NR_TRY(check_operands("linear", x, weight));
    if (weight->ndim != 2)
        return nr_fail(NORCH_ERROR_SHAPE, "linear: the weight needs 2 dimensions (out, in), not %s",
                       nr_shape_of(weight));
    if (x->shape[x->ndim - 1] != weight->shape[1])
        return inner_mismatch("linear", x->shape[x->ndim - 1], weight->shape[1], x, weight);
    if (!bias) return NORCH_OK;
    NR_TRY(nr_check_tensor("linear", bias));
    if (bias->ndim != 1 || bias->shape[0] != weight->shape[0])
        return nr_fail(NORCH_ERROR_SHAPE, "linear: the bias needs shape (%lld,), not %s", (long long)weight->shape[0],
                       nr_shape_of(bias));
    const norch_tensor *both[] = {x, bias};
    NR_TRY(nr_check_devices("linear", 2, both));
    return check_dtypes("linear", x, bias);
}

/* Whether the product's kernel can apply the epilogue: the epilogue keeps the dtype, which must be wide or one that the
 * device's kernels take. */
static bool fuses_epilogue(const norch_tensor *x, int64_t epilogue) {
    if (epilogue < 0 || epilogue >= NR_OP_COUNT || nr_ops[epilogue].form != NR_UNARY) return false;
    if (nr_is_narrow(x->dtype) && (x->device_type == NORCH_CPU || nr_needs_widening(x, NR_MATMUL))) return false;
    const bool keeps =
        nr_ops[epilogue].result == NR_SAME || (nr_ops[epilogue].result == NR_FLOAT && nr_is_float(x->dtype));
    return keeps && nr_in_domain((int32_t)epilogue, x->dtype);
}

norch_tensor *norch_linear(const norch_tensor *x, const norch_tensor *weight, const norch_tensor *bias,
                           int64_t epilogue) {
    if (check_layer(x, weight, bias)) return NULL;
    if (nr_is_complex(x->dtype)) {
        NR_OWNED norch_tensor *product = complex_matmul(x, weight, false, true);
        if (!product) return NULL;
        NR_OWNED norch_tensor *sums = bias ? norch_binary(NR_OP_add, product, bias) : nr_retained(product);
        if (!sums) return NULL;
        return epilogue == NR_NO_OP ? norch_retain(sums) : norch_unary(epilogue, sums);
    }
    if (epilogue != NR_NO_OP && !fuses_epilogue(x, epilogue)) {
        NR_OWNED norch_tensor *sums = norch_linear(x, weight, bias, NR_NO_OP);
        return sums ? norch_unary(epilogue, sums) : NULL;
    }
    if (nr_needs_widening(x, NR_MATMUL)) {
        NR_OWNED norch_tensor *wide_x = nr_widened_as_laid(x),
                              *wide_weight = wide_x ? nr_widened_as_laid(weight) : NULL;
        NR_OWNED norch_tensor *wide_bias = wide_weight && bias ? nr_widened(bias) : NULL;
        if (!wide_weight || (bias && !wide_bias)) return NULL;
        return nr_narrowed(norch_linear(wide_x, wide_weight, wide_bias, NR_NO_OP), x->dtype);
    }
    NR_OWNED norch_tensor *copy = NULL;
    if (bias && !bias->contiguous) { /* kernels need a contiguous bias */
        bias = copy = norch_clone(bias);
        if (!bias) return NULL;
    }
    nr_matmul_plan plan = {0};
    plan.m = x->ndim == 1 ? 1 : x->shape[x->ndim - 2];
    plan.k = weight->shape[1];
    plan.n = weight->shape[0];
    plan.a_row = x->ndim == 1 ? 0 : x->strides[x->ndim - 2];
    plan.a_col = x->strides[x->ndim - 1];
    plan.b_row = weight->strides[1];
    plan.b_col = weight->strides[0];
    plan.bias = bias ? bias->data : NULL;
    int64_t shape[NORCH_MAX_DIMS];
    int32_t ndim = batch_dims(x);
    for (int32_t i = 0; i < ndim; i++) shape[i] = x->shape[i];
    return multiply(&plan, x, weight, ndim, shape, x->ndim > 1, true, (int32_t)epilogue);
}
