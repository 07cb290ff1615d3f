/* join: cat and stack. A device with kernels for it moves many tensors in one call (families/join.h). Other tensors,
 * and all on the CPU, are copied one by one (copy.c). */
#include "../families/join.h"
#include "ops.h"

/* As in PyTorch, cat() ignores an empty 1-d tensor, whatever the shape of the others. */
static bool skipped(const norch_tensor *x) { return x->ndim == 1 && x->shape[0] == 0; }

/* Checks n tensors to be joined; *dtype is that of the result. */
static int32_t check_pieces(const char *op, int64_t n, const norch_tensor *const *xs, int32_t *dtype) {
    if (n <= 0 || !xs) return nr_fail(NORCH_ERROR_VALUE, "%s: no tensors given", op);
    for (int64_t i = 0; i < n; i++) {
        NR_TRY(nr_check_tensor(op, xs[i]));
        NR_TRY(nr_check_same_device(op, xs[0], xs[i]));
        *dtype = i ? nr_promote(*dtype, xs[i]->dtype) : xs[i]->dtype;
    }
    return NORCH_OK;
}

norch_tensor nr_sliced(const norch_tensor *y, int32_t axis, int64_t at, int64_t size, int64_t step) {
    norch_tensor part = *y;
    part.data = (char *)y->data + at * y->strides[axis] * nr_size_of(y->dtype);
    part.shape[axis] = size;
    part.strides[axis] *= step;
    part.numel = 1;
    for (int32_t d = 0; d < part.ndim; d++) part.numel *= part.shape[d];
    part.contiguous = nr_is_contiguous(part.ndim, part.shape, part.strides);
    return part;
}

#define LARGEST_PIECE ((int64_t)1 << 30) /* bytes: a larger piece is as fast by itself */

/* The pieces of a result that wait for a call. */
typedef struct gathered {
    const char *op;
    norch_tensor *y;
    nr_join_piece pieces[NR_JOIN_PIECES];
    int64_t count, bytes;
} gathered;

static void begin(gathered *all, const char *op, norch_tensor *y) {
    all->op = op;
    all->y = y;
    all->count = all->bytes = 0;
}

static int32_t run(gathered *all) {
    if (all->count == 0) return NORCH_OK;
    const nr_join_plan plan = {all->pieces, all->count};
    nr_call call = {.family = NR_JOIN, .dtype = all->y->dtype, .plan = &plan, .name = all->op};
    call.work = 0.2 * (double)all->bytes;
    all->count = all->bytes = 0;
    return nr_dispatch(&call, all->y);
}

/* Whether x has the dtype of `part`, and both consist of contiguous rows. */
static bool is_piece(const norch_tensor *part, const norch_tensor *x, nr_join_piece *piece) {
    if (x->dtype != part->dtype || nr_is_complex(x->dtype)) return false;
    const int64_t size = nr_size_of(x->dtype);
    nr_plan plan;
    nr_plan_make(&plan, part->ndim, part->shape, 2, (const norch_tensor *[]){part, x});
    const bool dense = plan.stride[0][0] == size && plan.stride[1][0] == size;
    const int32_t rows = dense ? 1 : 0; /* the loop over rows */
    if (plan.ndim > rows + 1 || plan.numel * size > LARGEST_PIECE) return false;
    *piece = (nr_join_piece){.to = plan.data[0], .from = plan.data[1], .rows = 1};
    piece->width = dense ? plan.size[0] * size : size;
    if (plan.ndim > rows) {
        piece->rows = plan.size[rows];
        piece->to_step = plan.stride[0][rows];
        piece->from_step = plan.stride[1][rows];
    }
    return true;
}

/* Copies x to `part` of the result, or adds it to the next call. */
static int32_t put(gathered *all, norch_tensor *part, const norch_tensor *x) {
    if (part->numel == 0) return NORCH_OK;
    nr_join_piece *piece = &all->pieces[all->count];
    if (!all->y->storage->backend->run[NR_JOIN] || !is_piece(part, x, piece)) return nr_copy_into(part, x);
    all->bytes += piece->rows * piece->width;
    return ++all->count == NR_JOIN_PIECES ? run(all) : NORCH_OK;
}

norch_tensor *norch_cat(int64_t n, const void *list, int64_t dim) {
    const norch_tensor *const *xs = list;
    int32_t dtype, axis;
    if (check_pieces("cat", n, xs, &dtype)) return NULL;
    int64_t lead = 0; /* the operand that determines the shape */
    while (lead < n - 1 && skipped(xs[lead])) lead++;
    const norch_tensor *first = xs[lead];
    if (nr_check_axis("cat", dim, first->ndim, &axis)) return NULL;
    int64_t shape[NORCH_MAX_DIMS], total = 0;
    for (int32_t d = 0; d < first->ndim; d++) shape[d] = first->shape[d];
    for (int64_t i = 0; i < n; i++) {
        const norch_tensor *x = xs[i];
        if (x->ndim == 0)
            return NR_REFUSE(NORCH_ERROR_SHAPE, "cat: operand %lld is 0-d; stack() joins 0-d tensors", (long long)i);
        if (skipped(x)) continue;
        if (x->ndim != first->ndim)
            return NR_REFUSE(NORCH_ERROR_SHAPE, "cat: operand %lld has %d dimensions, operand %lld has %d",
                             (long long)i, x->ndim, (long long)lead, first->ndim);
        for (int32_t d = 0; d < x->ndim; d++) {
            if (d == axis || x->shape[d] == first->shape[d]) continue;
            return NR_REFUSE(NORCH_ERROR_SHAPE,
                             "cat: operand %lld has size %lld at dimension %d, operand %lld has %lld", (long long)i,
                             (long long)x->shape[d], d, (long long)lead, (long long)first->shape[d]);
        }
        if (__builtin_add_overflow(total, x->shape[axis], &total))
            return NR_REFUSE(NORCH_ERROR_SHAPE, "cat: the sizes at dimension %d add up to more than 2**63", axis);
    }
    shape[axis] = total;
    if (nr_check_shape("cat", first->ndim, shape)) return NULL;
    norch_tensor *y = nr_make(first->ndim, shape, dtype, xs[0]);
    gathered all;
    begin(&all, "cat", y);
    int32_t status = NORCH_OK;
    int64_t at = 0;
    for (int64_t i = 0; y && status == NORCH_OK && i < n; i++) {
        if (xs[i]->numel == 0 && (skipped(xs[i]) || y->numel == 0)) continue;
        norch_tensor part = nr_sliced(y, axis, at, xs[i]->shape[axis], 1);
        at += xs[i]->shape[axis];
        status = put(&all, &part, xs[i]);
    }
    return nr_finished(y, status == NORCH_OK ? run(&all) : status);
}

norch_tensor *norch_stack(int64_t n, const void *list, int64_t dim) {
    const norch_tensor *const *xs = list;
    int32_t dtype, axis;
    if (check_pieces("stack", n, xs, &dtype)) return NULL;
    const norch_tensor *first = xs[0];
    if (first->ndim == NORCH_MAX_DIMS)
        return NR_REFUSE(NORCH_ERROR_SHAPE, "stack: %d dimensions and one more; at most %d are supported", first->ndim,
                         NORCH_MAX_DIMS);
    if (nr_check_axis("stack", dim, first->ndim + 1, &axis)) return NULL;
    for (int64_t i = 1; i < n; i++) {
        if (nr_same_shape(first->ndim, first->shape, xs[i]->ndim, xs[i]->shape)) continue;
        return NR_REFUSE(NORCH_ERROR_SHAPE, "stack: operand %lld has shape %s, operand 0 has %s", (long long)i,
                         nr_shape_of(xs[i]), nr_shape_of(first));
    }
    int64_t shape[NORCH_MAX_DIMS];
    for (int32_t d = 0; d <= first->ndim; d++)
        shape[d] = d < axis ? first->shape[d] : d == axis ? n : first->shape[d - 1];
    if (nr_check_shape("stack", first->ndim + 1, shape)) return NULL;
    norch_tensor *y = nr_make(first->ndim + 1, shape, dtype, xs[0]);
    gathered all;
    begin(&all, "stack", y);
    int32_t status = NORCH_OK;
    for (int64_t i = 0; y && status == NORCH_OK && i < n; i++) {
        norch_tensor part = nr_sliced(y, axis, i, 1, 1);
        for (int32_t d = axis; d < first->ndim; d++) { /* drop the axis of size 1 */
            part.shape[d] = part.shape[d + 1];
            part.strides[d] = part.strides[d + 1];
        }
        part.ndim--;
        status = put(&all, &part, xs[i]);
    }
    return nr_finished(y, status == NORCH_OK ? run(&all) : status);
}
