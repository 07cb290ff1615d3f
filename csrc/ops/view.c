/* view: new headers over the same elements. Only reshape may copy. */
#include "ops.h"

/* Computes the size given as -1, and checks the number of elements. */
static int32_t complete_shape(const char *op, const norch_tensor *x, int64_t ndim, const int64_t *wanted,
                              int64_t *shape) {
    if (ndim < 0 || ndim > NORCH_MAX_DIMS)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: %lld dimensions; at most %d are supported", op, (long long)ndim,
                       NORCH_MAX_DIMS);
    int64_t open = -1;
    for (int64_t i = 0; i < ndim; i++) {
        shape[i] = wanted[i];
        if (wanted[i] == -1 && open < 0) {
            open = i;
            shape[i] = 1;
        } else if (wanted[i] < 0) {
            return nr_fail(NORCH_ERROR_SHAPE, "%s: shape %s; sizes must not be negative, and only one may be -1", op,
                           nr_shape_text((int32_t)ndim, wanted));
        }
    }
    int64_t count = 0;
    bool fits = nr_count((int32_t)ndim, shape, &count);
    if (fits && open >= 0 && count > 0 && x->numel % count == 0) {
        shape[open] = x->numel / count;
        return NORCH_OK;
    }
    if (open >= 0 && count == 0)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: the -1 in shape %s is ambiguous, as the other sizes hold no element", op,
                       nr_shape_text((int32_t)ndim, wanted));
    if (fits && open < 0 && count == x->numel) return NORCH_OK;
    return nr_fail(NORCH_ERROR_SHAPE, "%s: shape %s does not fit %lld elements of shape %s", op,
                   nr_shape_text((int32_t)ndim, wanted), (long long)x->numel, nr_shape_of(x));
}

/* Strides of a view of the same elements in another shape; false if only a copy can have that shape. */
static bool reshape_strides(int32_t ndim, const int64_t *shape, const int64_t *strides, int32_t new_ndim,
                            const int64_t *new_shape, int64_t *new_strides) {
    for (int32_t i = 0; i < ndim; i++)
        if (shape[i] == 0) {
            nr_fill_strides(new_ndim, new_shape, new_strides);
            return true;
        }
    /* From the last axis on, merges old axes that are contiguous with each other to a run. The new axes must split each
     * run exactly. */
    int32_t to = new_ndim - 1;
    int32_t from = ndim - 1;
    while (from >= 0) {
        int64_t step = strides[from], run = shape[from];
        while (from > 0 && (shape[from - 1] == 1 || run == 1 || strides[from - 1] == step * run)) {
            if (run == 1) step = strides[from - 1];
            run *= shape[--from];
        }
        int64_t left = run;
        while (to >= 0 && (left > 1 || new_shape[to] == 1)) {
            if (left % new_shape[to] != 0) return false;
            new_strides[to] = step;
            step *= new_shape[to];
            left /= new_shape[to--];
        }
        if (left != 1) return false;
        from--;
    }
    for (; to >= 0; to--) new_strides[to] = 1; /* only sizes of 1 remain */
    return true;
}

norch_tensor *norch_view(const norch_tensor *x, int64_t ndim, const int64_t *sizes) {
    int64_t shape[NORCH_MAX_DIMS], strides[NORCH_MAX_DIMS];
    if (nr_check_tensor("view", x) || complete_shape("view", x, ndim, sizes, shape)) return NULL;
    if (reshape_strides(x->ndim, x->shape, x->strides, (int32_t)ndim, shape, strides))
        return nr_make_view(x, (int32_t)ndim, shape, strides, 0);
    return NR_REFUSE(NORCH_ERROR_SHAPE,
                     "view: the strides of shape %s do not allow shape %s without a copy; use reshape()",
                     nr_shape_of(x), nr_shape_text((int32_t)ndim, shape));
}

norch_tensor *norch_reshape(const norch_tensor *x, int64_t ndim, const int64_t *sizes) {
    int64_t shape[NORCH_MAX_DIMS], strides[NORCH_MAX_DIMS];
    if (nr_check_tensor("reshape", x) || complete_shape("reshape", x, ndim, sizes, shape)) return NULL;
    if (reshape_strides(x->ndim, x->shape, x->strides, (int32_t)ndim, shape, strides))
        return nr_make_view(x, (int32_t)ndim, shape, strides, 0);
    NR_OWNED norch_tensor *copy = norch_clone(x);
    if (!copy) return NULL;
    nr_fill_strides((int32_t)ndim, shape, strides);
    return nr_make_view(copy, (int32_t)ndim, shape, strides, 0);
}

norch_tensor *norch_flatten(const norch_tensor *x, int64_t start, int64_t end) {
    int32_t from, to, ndim = 0;
    if (nr_check_tensor("flatten", x) || nr_check_axis("flatten", start, x->ndim, &from) ||
        nr_check_axis("flatten", end, x->ndim, &to))
        return NULL;
    if (from > to)
        return NR_REFUSE(NORCH_ERROR_SHAPE, "flatten: start_dim %lld comes after end_dim %lld", (long long)start,
                         (long long)end);
    int64_t shape[NORCH_MAX_DIMS] = {1};
    for (int32_t i = 0; i < x->ndim; i++) {
        if (i > from && i <= to)
            shape[ndim - 1] *= x->shape[i];
        else
            shape[ndim++] = x->shape[i];
    }
    return norch_reshape(x, x->ndim ? ndim : 1, shape);
}

norch_tensor *norch_permute(const norch_tensor *x, int64_t ndim, const int64_t *axes) {
    if (nr_check_tensor("permute", x)) return NULL;
    if (ndim != x->ndim)
        return NR_REFUSE(NORCH_ERROR_SHAPE, "permute: %lld axes for a tensor of %d dimensions", (long long)ndim,
                         x->ndim);
    int64_t shape[NORCH_MAX_DIMS], strides[NORCH_MAX_DIMS];
    bool seen[NORCH_MAX_DIMS] = {false};
    for (int32_t i = 0; i < x->ndim; i++) {
        int32_t axis;
        if (nr_check_axis("permute", axes[i], x->ndim, &axis)) return NULL;
        if (seen[axis]) return NR_REFUSE(NORCH_ERROR_SHAPE, "permute: axis %d appears twice", axis);
        seen[axis] = true;
        shape[i] = x->shape[axis];
        strides[i] = x->strides[axis];
    }
    return nr_make_view(x, x->ndim, shape, strides, 0);
}

norch_tensor *norch_alias(const norch_tensor *x) {
    if (nr_check_tensor("alias", x)) return NULL;
    return nr_make_view(x, x->ndim, x->shape, x->strides, 0);
}

norch_tensor *norch_transpose(const norch_tensor *x, int64_t dim0, int64_t dim1) {
    int32_t a, b;
    if (nr_check_tensor("transpose", x) || nr_check_axis("transpose", dim0, x->ndim, &a) ||
        nr_check_axis("transpose", dim1, x->ndim, &b))
        return NULL;
    norch_tensor *view = norch_alias(x);
    if (!view || x->ndim == 0) return view;
    view->shape[a] = x->shape[b];
    view->shape[b] = x->shape[a];
    view->strides[a] = x->strides[b];
    view->strides[b] = x->strides[a];
    view->contiguous = nr_is_contiguous(view->ndim, view->shape, view->strides);
    return view;
}

norch_tensor *norch_reverse_axes(const norch_tensor *x) {
    if (nr_check_tensor("permute", x)) return NULL;
    int64_t shape[NORCH_MAX_DIMS], strides[NORCH_MAX_DIMS];
    for (int32_t i = 0; i < x->ndim; i++) {
        shape[i] = x->shape[x->ndim - 1 - i];
        strides[i] = x->strides[x->ndim - 1 - i];
    }
    return nr_make_view(x, x->ndim, shape, strides, 0);
}

norch_tensor *norch_expand(const norch_tensor *x, int64_t ndim, const int64_t *wanted) {
    if (nr_check_tensor("expand", x)) return NULL;
    int64_t lead = ndim - x->ndim;
    if (ndim > NORCH_MAX_DIMS || lead < 0)
        return NR_REFUSE(NORCH_ERROR_SHAPE, "expand: %lld sizes for a tensor of shape %s", (long long)ndim,
                         nr_shape_of(x));
    int64_t shape[NORCH_MAX_DIMS], strides[NORCH_MAX_DIMS];
    for (int64_t i = 0; i < ndim; i++) {
        int64_t size = i < lead ? 1 : x->shape[i - lead];
        bool keep = i >= lead && (wanted[i] == -1 || wanted[i] == size);
        if (!keep && (wanted[i] < 0 || size != 1))
            return NR_REFUSE(NORCH_ERROR_SHAPE,
                             "expand: size %lld at dimension %lld cannot become %lld: shape %s to %s", (long long)size,
                             (long long)i, (long long)wanted[i], nr_shape_of(x), nr_shape_text((int32_t)ndim, wanted));
        shape[i] = keep ? size : wanted[i];
        strides[i] = keep ? x->strides[i - lead] : 0;
    }
    if (nr_check_shape("expand", ndim, shape)) return NULL;
    return nr_make_view(x, (int32_t)ndim, shape, strides, 0);
}

/* The sizes and strides of the axes of x that are not in `removed` (a bit each); returns their number. */
static int32_t axes_but(const norch_tensor *x, uint32_t removed, int64_t *shape, int64_t *strides) {
    int32_t kept = 0;
    for (int32_t i = 0; i < x->ndim; i++) {
        if (removed >> i & 1) continue;
        shape[kept] = x->shape[i];
        strides[kept++] = x->strides[i];
    }
    return kept;
}

norch_tensor *norch_squeeze(const norch_tensor *x, int64_t count, const int64_t *dims) {
    if (nr_check_tensor("squeeze", x)) return NULL;
    uint32_t removed = count < 0 ? UINT32_MAX : 0;
    for (int64_t i = 0; i < count; i++) {
        int32_t axis;
        if (nr_check_axis("squeeze", dims[i], x->ndim, &axis)) return NULL;
        if (removed >> axis & 1) return NR_REFUSE(NORCH_ERROR_SHAPE, "squeeze: dimension %d appears twice", axis);
        removed |= 1u << axis;
    }
    for (int32_t i = 0; i < x->ndim; i++)
        if (x->shape[i] != 1) removed &= ~(1u << i);
    int64_t shape[NORCH_MAX_DIMS], strides[NORCH_MAX_DIMS];
    return nr_make_view(x, axes_but(x, removed, shape, strides), shape, strides, 0);
}

norch_tensor *norch_unsqueeze(const norch_tensor *x, int64_t dim) {
    int32_t axis;
    if (nr_check_tensor("unsqueeze", x) || nr_check_axis("unsqueeze", dim, x->ndim + 1, &axis)) return NULL;
    if (x->ndim == NORCH_MAX_DIMS)
        return NR_REFUSE(NORCH_ERROR_SHAPE, "unsqueeze: at most %d dimensions are supported", NORCH_MAX_DIMS);
    int64_t shape[NORCH_MAX_DIMS], strides[NORCH_MAX_DIMS];
    for (int32_t i = 0; i < x->ndim; i++) {
        shape[i + (i >= axis)] = x->shape[i];
        strides[i + (i >= axis)] = x->strides[i];
    }
    shape[axis] = 1;
    strides[axis] = axis < x->ndim ? x->shape[axis] * x->strides[axis] : 1;
    return nr_make_view(x, x->ndim + 1, shape, strides, 0);
}

norch_tensor *norch_select(const norch_tensor *x, int64_t dim, int64_t index) {
    int32_t axis;
    if (nr_check_tensor("select", x)) return NULL;
    if (x->ndim == 0) return NR_REFUSE(NORCH_ERROR_INDEX, "select: a 0-d tensor has no dimension to index");
    if (nr_check_axis("select", dim, x->ndim, &axis)) return NULL;
    int64_t size = x->shape[axis];
    if (index < -size || index >= size)
        return NR_REFUSE(NORCH_ERROR_INDEX, "index %lld is out of range for dimension %d of size %lld",
                         (long long)index, axis, (long long)size);
    if (index < 0) index += size;
    int64_t shape[NORCH_MAX_DIMS], strides[NORCH_MAX_DIMS];
    return nr_make_view(x, axes_but(x, 1u << axis, shape, strides), shape, strides, index * x->strides[axis]);
}

/* Clips a slice bound as Python does: to [0, size], or to [-1, size - 1] if the step is negative. */
static int64_t clipped(int64_t bound, int64_t size, bool back) {
    if (bound < 0) return bound < -size ? 0 - back : bound + size;
    return bound > size - back ? size - back : bound;
}

norch_tensor *norch_slice(const norch_tensor *x, int64_t dim, int64_t start, int64_t stop, int64_t step) {
    int32_t axis;
    if (nr_check_tensor("slice", x) || nr_check_axis("slice", dim, x->ndim, &axis)) return NULL;
    if (x->ndim == 0) return NR_REFUSE(NORCH_ERROR_INDEX, "slice: a 0-d tensor has no dimension to slice");
    if (step == 0) return NR_REFUSE(NORCH_ERROR_VALUE, "slice: the step must not be 0");
    if (step < -INT64_MAX) step = -INT64_MAX; /* so that -step exists */
    start = clipped(start, x->shape[axis], step < 0);
    stop = clipped(stop, x->shape[axis], step < 0);
    int64_t shape[NORCH_MAX_DIMS], strides[NORCH_MAX_DIMS];
    axes_but(x, 0, shape, strides);
    const int64_t span = step > 0 ? stop - start : start - stop;
    shape[axis] = span > 0 ? (span - 1) / (step > 0 ? step : -step) + 1 : 0;
    int64_t shift = start * strides[axis];
    if (shape[axis] > 1) strides[axis] *= step; /* a single element needs no step, which may be huge */
    return nr_make_view(x, x->ndim, shape, strides, shift);
}

norch_tensor *norch_narrow(const norch_tensor *x, int64_t dim, int64_t start, int64_t length) {
    int32_t axis;
    if (nr_check_tensor("narrow", x)) return NULL;
    if (x->ndim == 0) return NR_REFUSE(NORCH_ERROR_SHAPE, "narrow: a 0-d tensor has no dimension to narrow");
    if (nr_check_axis("narrow", dim, x->ndim, &axis)) return NULL;
    const int64_t size = x->shape[axis], begin = start < 0 ? start + size : start;
    if (begin < 0 || begin > size || length < 0 || length > size - begin)
        return NR_REFUSE(NORCH_ERROR_INDEX,
                         "narrow: %lld elements from %lld on do not lie in dimension %lld of size %lld",
                         (long long)length, (long long)start, (long long)dim, (long long)size);
    int64_t shape[NORCH_MAX_DIMS], strides[NORCH_MAX_DIMS];
    axes_but(x, 0, shape, strides);
    shape[axis] = length;
    return nr_make_view(x, x->ndim, shape, strides, begin * strides[axis]);
}

norch_tensor *norch_diagonal(const norch_tensor *x, int64_t offset, int64_t dim0, int64_t dim1) {
    int32_t a, b;
    if (nr_check_tensor("diagonal", x) || nr_check_axis("diagonal", dim0, x->ndim, &a) ||
        nr_check_axis("diagonal", dim1, x->ndim, &b))
        return NULL;
    if (a == b || x->ndim < 2)
        return NR_REFUSE(NORCH_ERROR_SHAPE, "diagonal: needs two different dimensions, not %lld and %lld of %d",
                         (long long)dim0, (long long)dim1, x->ndim);
    int64_t shape[NORCH_MAX_DIMS], strides[NORCH_MAX_DIMS];
    const int32_t kept = axes_but(x, 1u << a | 1u << b, shape, strides);
    int64_t rows = x->shape[a], columns = x->shape[b], length = 0, shift = 0;
    if (offset >= 0 && offset < columns) {
        length = columns - offset < rows ? columns - offset : rows;
        shift = offset * x->strides[b];
    } else if (offset < 0 && offset > -rows) {
        length = rows + offset < columns ? rows + offset : columns;
        shift = -offset * x->strides[a];
    }
    shape[kept] = length;
    strides[kept] = x->strides[a] + x->strides[b];
    return nr_make_view(x, kept + 1, shape, strides, length ? shift : 0);
}

norch_tensor *norch_unfold(const norch_tensor *x, int64_t dim, int64_t size, int64_t step) {
    int32_t axis;
    if (nr_check_tensor("unfold", x) || nr_check_axis("unfold", dim, x->ndim, &axis)) return NULL;
    int64_t length = x->ndim ? x->shape[axis] : 1;
    if (size < 0 || size > length || step < 1 || x->ndim == NORCH_MAX_DIMS)
        return NR_REFUSE(NORCH_ERROR_VALUE,
                         "unfold: windows of %lld elements, %lld apart, do not fit dimension %d of size %lld",
                         (long long)size, (long long)step, axis, (long long)length);
    int64_t shape[NORCH_MAX_DIMS], strides[NORCH_MAX_DIMS];
    axes_but(x, 0, shape, strides);
    int64_t stride = x->ndim ? x->strides[axis] : 1;
    if (x->ndim) {
        shape[axis] = (length - size) / step + 1;
        if (shape[axis] > 1) strides[axis] = stride * step;
    }
    shape[x->ndim] = size;
    strides[x->ndim] = stride;
    return nr_make_view(x, x->ndim + 1, shape, strides, 0);
}

norch_tensor *norch_reshape_as(const norch_tensor *x, const norch_tensor *like) {
    return norch_reshape(x, like->ndim, like->shape);
}

norch_tensor *norch_expand_as(const norch_tensor *x, const norch_tensor *like) {
    return norch_expand(x, like->ndim, like->shape);
}

norch_tensor *norch_expand_reduced(const norch_tensor *x, const norch_tensor *like, int64_t count, const int64_t *dims,
                                   bool keepdim) {
    if (nr_check_tensor("expand_reduced", x)) return NULL;
    bool reduced[NORCH_MAX_DIMS] = {false};
    bool all = count <= 0; /* no axes means all, as in a reduction */
    for (int64_t i = 0; i < count; i++) {
        int32_t axis;
        if (nr_check_axis("expand_reduced", dims[i], like->ndim, &axis)) return NULL;
        if (like->ndim) reduced[axis] = true;
    }
    int64_t strides[NORCH_MAX_DIMS];
    int32_t from = 0;
    for (int32_t i = 0; i < like->ndim; i++) {
        bool removed = all || reduced[i];
        if (removed && !keepdim) {
            strides[i] = 0;
            continue;
        }
        int64_t wanted = removed ? 1 : like->shape[i];
        if (from >= x->ndim || x->shape[from] != wanted) break;
        strides[i] = removed ? 0 : x->strides[from];
        from++;
    }
    if (from != x->ndim)
        return NR_REFUSE(NORCH_ERROR_SHAPE, "expand_reduced: shape %s is not a reduction of shape %s", nr_shape_of(x),
                         nr_shape_of(like));
    return nr_make_view(x, like->ndim, like->shape, strides, 0);
}

norch_tensor *norch_as_strided(const norch_tensor *x, int64_t ndim, const int64_t *shape, int64_t count,
                               const int64_t *strides, int64_t shift) {
    if (nr_check_tensor("as_strided", x) || nr_check_shape("as_strided", ndim, shape)) return NULL;
    if (count != ndim)
        return NR_REFUSE(NORCH_ERROR_SHAPE, "as_strided: %lld sizes, but %lld strides", (long long)ndim,
                         (long long)count);
    int64_t low = 0, high = 0, numel = 1;
    bool fits = !__builtin_add_overflow(x->offset, shift, &low);
    high = low;
    for (int64_t i = 0; i < ndim; i++) {
        int64_t reach, *end = strides[i] < 0 ? &low : &high;
        numel *= shape[i];
        fits &= shape[i] == 0 || (!__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) &&
                                  !__builtin_add_overflow(*end, reach, end));
    }
    const int64_t held = (int64_t)x->storage->bytes / nr_size_of(x->dtype);
    if (numel && (!fits || low < 0 || high >= held))
        return NR_REFUSE(
            NORCH_ERROR_VALUE,
            "as_strided: shape %s with strides %s from element %lld on leaves the storage of %lld elements",
            nr_shape_text((int32_t)ndim, shape), nr_shape_text((int32_t)ndim, strides), (long long)x->offset + shift,
            (long long)held);
    return nr_make_view(x, (int32_t)ndim, shape, strides, shift);
}

norch_tensor *norch_view_storage(const norch_tensor *x) {
    if (nr_check_tensor("untyped_storage", x)) return NULL;
    const int64_t bytes = (int64_t)x->storage->bytes, step = 1;
    norch_tensor *view = nr_make_view(x, 1, &bytes, &step, 0);
    if (!view) return NULL;
    view->dtype = NORCH_UINT8;
    view->data = x->storage->data;
    view->offset = 0;
    return view;
}

norch_tensor *norch_view_dtype(const norch_tensor *x, int64_t dtype) {
    if (nr_check_tensor("view", x) || nr_check_dtype("view", dtype)) return NULL;
    const int64_t from = nr_size_of(x->dtype), to = nr_size_of((int32_t)dtype);
    const int64_t narrower = from > to ? from / to : 1, wider = to > from ? to / from : 1;
    const int32_t last = x->ndim - 1;
    int64_t shape[NORCH_MAX_DIMS], strides[NORCH_MAX_DIMS];
    bool fits = from == to || (x->ndim > 0 && x->shape[last] % wider == 0 && x->offset % wider == 0 &&
                               (x->strides[last] == 1 || x->shape[last] == 1));
    for (int32_t i = 0; i <= last; i++) {
        shape[i] = i == last ? x->shape[i] * narrower / wider : x->shape[i];
        strides[i] = i == last && from != to ? 1 : x->strides[i] * narrower / wider;
        fits &= i == last || x->strides[i] % wider == 0;
    }
    if (!fits || (uintptr_t)x->data % (uintptr_t)nr_size_of(nr_part_of((int32_t)dtype)))
        return NR_REFUSE(NORCH_ERROR_SHAPE, "view: shape %s with strides %s of %s cannot be seen as %s", nr_shape_of(x),
                         nr_shape_text(x->ndim, x->strides), nr_dtypes[x->dtype].name, nr_dtypes[dtype].name);
    if (nr_check_shape("view", x->ndim, shape)) return NULL;
    norch_tensor *view = nr_make_view(x, x->ndim, shape, strides, 0);
    if (!view) return NULL;
    view->dtype = (int32_t)dtype;
    nr_dtypes_seen |= 1u << dtype;
    view->offset = x->offset * narrower / wider;
    return view;
}

bool norch_overlaps_itself(const norch_tensor *x) {
    /* No two elements share memory if, sorted by absolute stride, each stride exceeds the extent of all smaller ones.
     * */
    int64_t size[NORCH_MAX_DIMS], step[NORCH_MAX_DIMS], reach = 0;
    int32_t n = 0;
    for (int32_t i = 0; i < x->ndim; i++) {
        if (x->shape[i] < 2) continue;
        int32_t at = n++;
        int64_t stride = x->strides[i] < 0 ? -x->strides[i] : x->strides[i];
        for (; at > 0 && step[at - 1] > stride; at--) {
            step[at] = step[at - 1];
            size[at] = size[at - 1];
        }
        step[at] = stride;
        size[at] = x->shape[i];
    }
    for (int32_t i = 0; i < n && x->numel; i++) {
        if (step[i] <= reach) return 1;
        reach += (size[i] - 1) * step[i];
    }
    return 0;
}
