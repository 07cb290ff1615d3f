/* index: gather, scatter_add, index_select, index_add. All four become one nest over a dense operand, the
 * indices and the tensor that they point into (NR_GATHER, NR_SCATTER_ADD). Indices on the CPU are checked
 * here, before anything is made; a device checks its own. */
#include <string.h>

#include "ops.h"

/* int64 indices as a header that may be restrided at will; `owned` is what a cast has made. */
typedef struct indices {
    norch_tensor view;
    norch_tensor *owned;
} indices;

/* Elements seen again and again (stride 0) are looked at once. */
static norch_tensor without_repeats(const norch_tensor *x) {
    norch_tensor once = *x;
    once.numel = 1;
    for (int32_t d = 0; d < once.ndim; d++) {
        if (once.strides[d] == 0 && once.shape[d] > 1) once.shape[d] = 1;
        once.numel *= once.shape[d];
    }
    once.contiguous = nr_is_contiguous(once.ndim, once.shape, once.strides);
    return once;
}

static int32_t check_range(const char *op, const norch_tensor *index, int64_t size, int32_t axis) {
    if (index->device_type != NORCH_CPU) return NORCH_OK;
    nr_plan plan;
    nr_plan_make(&plan, index->ndim, index->shape, 1, (const norch_tensor *[]){index});
    int64_t at[NORCH_MAX_DIMS] = {0};
    const char *row = plan.data[0];
    for (int64_t left = plan.numel; left > 0; left -= plan.size[0]) {
        const int64_t step = plan.stride[0][0], n = plan.size[0];
        uint64_t wrong = 0; /* one verdict for the row: no branch an element */
        for (int64_t i = 0; i < n; i++)
            wrong |= (uint64_t)((uint64_t)*(const int64_t *)(row + i * step) >= (uint64_t)size);
        for (int64_t i = 0; wrong && i < n; i++) {
            int64_t value = *(const int64_t *)(row + i * step);
            if (value < 0 || value >= size)
                return nr_fail(NORCH_ERROR_INDEX, "%s: index %lld is out of range for size %lld at dimension %d", op,
                               (long long)value, (long long)size, axis);
        }
        for (int32_t d = 1; d < plan.ndim; d++) {
            row += plan.stride[0][d];
            if (++at[d] < plan.size[d]) break;
            row -= plan.stride[0][d] * plan.size[d];
            at[d] = 0;
        }
    }
    return NORCH_OK;
}

/* Checks the dtype of index and its values against size; the result is to be released by done(). */
static int32_t prepare(const char *op, const norch_tensor *index, int64_t size, int32_t axis, indices *result) {
    result->view = *index;
    result->owned = NULL;
    norch_tensor once = without_repeats(index);
    if (index->dtype != NORCH_INT64) {
        result->owned = norch_cast(&once, NORCH_INT64);
        if (!result->owned) return norch_last_error_kind();
        result->view = *result->owned;
        for (int32_t d = 0; d < index->ndim; d++) {
            if (index->shape[d] != once.shape[d]) result->view.strides[d] = 0;
            result->view.shape[d] = index->shape[d];
        }
        result->view.numel = index->numel;
        result->view.contiguous = nr_is_contiguous(index->ndim, index->shape, result->view.strides);
        once = *result->owned;
    }
    int32_t status = check_range(op, &once, size, axis);
    if (status != NORCH_OK) nr_release(result->owned);
    return status;
}

static void done(indices *index) { nr_release(index->owned); }

static int32_t check_operands(const char *op, const norch_tensor *x, const norch_tensor *index,
                              const norch_tensor *src) {
    NR_TRY(nr_check_tensor(op, x));
    NR_TRY(nr_check_tensor(op, index));
    if (src) {
        NR_TRY(nr_check_tensor(op, src));
        if (src->dtype != x->dtype)
            return nr_fail(NORCH_ERROR_DTYPE, "%s: src is %s, but the tensor is %s", op, nr_dtypes[src->dtype].name,
                           nr_dtypes[x->dtype].name);
    }
    const char kind = nr_dtypes[index->dtype].kind;
    if (kind != 'i' && kind != 'u')
        return nr_fail(NORCH_ERROR_DTYPE, "%s: indices must be integers, not %s", op, nr_dtypes[index->dtype].name);
    const norch_tensor *all[] = {x, index, src ? src : x};
    for (int i = 1; i < 3; i++) /* stricter than nr_check_devices: even a 0-d index must lie where it is read */
        if (!nr_same_device(all[i], x))
            return nr_fail(NORCH_ERROR_DEVICE, "%s: tensors on %s and %s; move one with .to()", op, nr_device_name(x),
                           nr_device_name(all[i]));
    return NORCH_OK;
}

/* A 0-d tensor counts as one of a single dimension. */
static norch_tensor at_least_1d(const norch_tensor *x) {
    norch_tensor y = *x;
    if (y.ndim == 0) {
        y.ndim = 1;
        y.shape[0] = y.strides[0] = 1;
    }
    return y;
}

/* Runs over `shape`: dense and index broadcast to it, target seen with its sizes but for axis. */
static int32_t run(nr_index_kind kind, const norch_tensor *dense, const norch_tensor *index, const norch_tensor *target,
                   int32_t axis, const norch_tensor *where) {
    if (dense->numel == 0) return NORCH_OK;
    norch_tensor along = *target;
    for (int32_t d = 0; d < along.ndim; d++) along.shape[d] = dense->shape[d];
    along.strides[axis] = 0;
    along.contiguous = 0;
    nr_index_plan plan = {.axis_size = target->shape[axis]};
    plan.axis_stride = target->strides[axis] * nr_size_of(target->dtype);
    nr_plan_make(&plan.nest, dense->ndim, dense->shape, 3, (const norch_tensor *[]){dense, index, &along});
    nr_call call = {
        .family = NR_INDEXING, .op = (int32_t)kind, .dtype = target->dtype, .from_dtype = NORCH_INT64, .plan = &plan};
    call.work = 2.0 * (double)dense->numel;
    return nr_gate(&call, where);
}

/* y back, or NULL (and y given back) when the call failed. */
static norch_tensor *finish(norch_tensor *y, int32_t status) {
    if (y && status == NORCH_OK) return y;
    nr_release(y);
    return NULL;
}

/* A copy of x with dense added to it; summed wide where the dtype is narrow. */
static norch_tensor *added(const norch_tensor *dense, const norch_tensor *index, const norch_tensor *x, int32_t axis) {
    const bool narrow = nr_is_narrow(x->dtype);
    norch_tensor *y = narrow ? nr_widened(x) : norch_clone(x), *terms = y && narrow ? nr_widened(dense) : NULL;
    int32_t status = narrow && !terms ? norch_last_error_kind() : NORCH_OK;
    if (y && status == NORCH_OK) {
        const norch_tensor target = at_least_1d(y);
        status = run(NR_SCATTER_ADD, terms ? terms : dense, index, &target, axis, y);
    }
    nr_release(terms);
    return nr_narrowed(finish(y, status), x->dtype);
}

/* ---- gather and scatter_add: an index for each element ------------------------------------------- */

static int32_t check_gather(const char *op, const norch_tensor *x, const norch_tensor *index, const norch_tensor *src,
                            int32_t axis) {
    char text[NR_SHAPE_TEXT], limit[NR_SHAPE_TEXT];
    if (index->ndim != x->ndim)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: the index has %d dimensions, the tensor %d", op, index->ndim, x->ndim);
    if (src && src->ndim != x->ndim)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: src has %d dimensions, the tensor %d", op, src->ndim, x->ndim);
    for (int32_t d = 0; d < x->ndim; d++) {
        if (d != axis && index->shape[d] > x->shape[d])
            return nr_fail(NORCH_ERROR_SHAPE,
                           "%s: the index of shape %s is larger than the tensor of shape %s at dimension %d", op,
                           nr_shape_of(text, index), nr_shape_of(limit, x), d);
        if (src && index->shape[d] > src->shape[d])
            return nr_fail(NORCH_ERROR_SHAPE,
                           "%s: the index of shape %s is larger than src of shape %s at dimension %d", op,
                           nr_shape_of(text, index), nr_shape_of(limit, src), d);
    }
    return NORCH_OK;
}

norch_tensor *norch_gather(const norch_tensor *x, int64_t dim, const norch_tensor *index) {
    int32_t axis;
    if (check_operands("gather", x, index, NULL) || nr_check_axis("gather", dim, x->ndim, &axis)) return NULL;
    if (index->numel == 0) return nr_make(index->ndim, index->shape, x->dtype, x);
    const norch_tensor from = at_least_1d(x), at = at_least_1d(index);
    indices checked;
    if (check_gather("gather", &from, &at, NULL, axis) || prepare("gather", &at, from.shape[axis], axis, &checked))
        return NULL;
    norch_tensor *y = nr_make(index->ndim, index->shape, x->dtype, x);
    int32_t status = NORCH_OK;
    if (y) {
        const norch_tensor dense = at_least_1d(y);
        status = run(NR_GATHER, &dense, &checked.view, &from, axis, y);
    }
    done(&checked);
    return finish(y, status);
}

norch_tensor *norch_scatter_add(const norch_tensor *x, int64_t dim, const norch_tensor *index,
                                const norch_tensor *src) {
    int32_t axis;
    if (check_operands("scatter_add", x, index, src) || nr_check_axis("scatter_add", dim, x->ndim, &axis)) return NULL;
    if (index->numel == 0) return norch_clone(x);
    const norch_tensor to = at_least_1d(x), at = at_least_1d(index);
    norch_tensor dense = at_least_1d(src);
    indices checked;
    if (check_gather("scatter_add", &to, &at, &dense, axis) ||
        prepare("scatter_add", &at, to.shape[axis], axis, &checked))
        return NULL;
    for (int32_t d = 0; d < dense.ndim; d++)
        dense.shape[d] = at.shape[d]; /* what the index does not reach is not read */
    dense.numel = at.numel;
    dense.contiguous = nr_is_contiguous(dense.ndim, dense.shape, dense.strides);
    norch_tensor *y = added(&dense, &checked.view, x, axis);
    done(&checked);
    return y;
}

/* ---- index_select and index_add: an index for each slice ----------------------------------------- */

/* The index laid along axis of `shape`, repeated over the rest. */
static norch_tensor spread(const norch_tensor *index, int32_t ndim, const int64_t *shape, int32_t axis) {
    norch_tensor view = *index;
    int64_t step = index->ndim ? index->strides[0] : 0;
    view.ndim = ndim;
    view.numel = 1;
    for (int32_t d = 0; d < ndim; d++) {
        view.shape[d] = shape[d];
        view.strides[d] = d == axis ? step : 0;
        view.numel *= shape[d];
    }
    view.contiguous = nr_is_contiguous(ndim, view.shape, view.strides);
    return view;
}

static int32_t check_1d(const char *op, const norch_tensor *x, const norch_tensor *index) {
    if (index->ndim > 1)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: the index must have at most one dimension, not %d", op, index->ndim);
    if (x->ndim == 0 && index->numel != 1)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: %lld indices into a 0-d tensor; only one is possible", op,
                       (long long)index->numel);
    return NORCH_OK;
}

norch_tensor *norch_index_select(const norch_tensor *x, int64_t dim, const norch_tensor *index) {
    int32_t axis;
    indices checked;
    if (check_operands("index_select", x, index, NULL) || nr_check_axis("index_select", dim, x->ndim, &axis))
        return NULL;
    norch_tensor from = at_least_1d(x);
    if (check_1d("index_select", x, index) || prepare("index_select", index, from.shape[axis], axis, &checked))
        return NULL;
    int64_t shape[NORCH_MAX_DIMS];
    for (int32_t d = 0; d < from.ndim; d++) shape[d] = d == axis ? index->numel : from.shape[d];
    norch_tensor *y = nr_make(x->ndim, shape, x->dtype, x);
    int32_t status = NORCH_OK;
    if (y) {
        const norch_tensor dense = at_least_1d(y), at = spread(&checked.view, from.ndim, shape, axis);
        status = run(NR_GATHER, &dense, &at, &from, axis, y);
    }
    done(&checked);
    return finish(y, status);
}

norch_tensor *norch_index_add(const norch_tensor *x, int64_t dim, const norch_tensor *index, const norch_tensor *src) {
    int32_t axis;
    indices checked;
    if (check_operands("index_add", x, index, src) || nr_check_axis("index_add", dim, x->ndim, &axis)) return NULL;
    if (check_1d("index_add", x, index)) return NULL;
    const norch_tensor to = at_least_1d(x), dense = at_least_1d(src);
    int64_t shape[NORCH_MAX_DIMS];
    for (int32_t d = 0; d < to.ndim; d++) shape[d] = d == axis ? index->numel : to.shape[d];
    if (!nr_same_shape(to.ndim, shape, dense.ndim, dense.shape)) {
        char text[NR_SHAPE_TEXT], wanted[NR_SHAPE_TEXT];
        nr_fail(NORCH_ERROR_SHAPE, "index_add: src has shape %s, but %lld indices at dimension %d want %s",
                nr_shape_of(text, src), (long long)index->numel, axis, nr_shape_text(wanted, to.ndim, shape));
        return NULL;
    }
    if (prepare("index_add", index, to.shape[axis], axis, &checked)) return NULL;
    const norch_tensor at = spread(&checked.view, to.ndim, shape, axis);
    norch_tensor *y = added(&dense, &at, x, axis);
    done(&checked);
    return y;
}
