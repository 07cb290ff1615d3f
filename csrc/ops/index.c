/* index: reads and writes at indices in tensors, in two forms: an index for each element along one dimension (gather,
 * scatter), or broadcast index tensors for some dimensions (index_get, index_put: NumPy's advanced indexing; the caller
 * applies the basic part first, as a view).
 *
 * Each becomes one loop nest over three operands: a dense tensor, an index for each of its elements, and the indexed
 * tensor. On the CPU a call before it (NR_OFFSETS) checks the indices, so that nothing is written if one is out of
 * range, and combines several index tensors to byte offsets. A device checks indices in the kernel. This file reads no
 * index. */
#include <string.h>

#include "../families/index.h"
#include "ops.h"

/* How the operations differ. */
typedef struct variant {
    const char *name;
    nr_index_kind kind;
    bool wraps; /* negative indices count from the end */
} variant;

static const variant variants[] = {
    [NORCH_INDEX_GET] = {"index", NR_GATHER, true},
    [NORCH_INDEX_TAKE] = {"take", NR_GATHER, true},
    [NORCH_INDEX_SELECT] = {"index_select", NR_GATHER, false},
    [NORCH_INDEX_EMBEDDING] = {"embedding", NR_GATHER, false},
    [NORCH_INDEX_GATHER] = {"gather", NR_GATHER, false},
    [NORCH_INDEX_PUT] = {"index_put", NR_SCATTER, true},
    [NORCH_INDEX_PUT_ADD] = {"index_put", NR_SCATTER_ADD, true},
    [NORCH_INDEX_FILL] = {"index_fill", NR_SCATTER, true},
    [NORCH_INDEX_COPY] = {"index_copy", NR_SCATTER, false},
    [NORCH_INDEX_ADD] = {"index_add", NR_SCATTER_ADD, false},
    [NORCH_INDEX_SCATTER] = {"scatter", NR_SCATTER, false},
    [NORCH_INDEX_SCATTER_ADD] = {"scatter_add", NR_SCATTER_ADD, false},
    [NORCH_INDEX_SCATTER_PROD] = {"scatter_reduce", NR_SCATTER_PROD, false},
    [NORCH_INDEX_SCATTER_AMAX] = {"scatter_reduce", NR_SCATTER_AMAX, false},
    [NORCH_INDEX_SCATTER_AMIN] = {"scatter_reduce", NR_SCATTER_AMIN, false},
};

/* The indexed elements of a tensor, as two operands of the nest in the shape of the result. */
typedef struct places {
    norch_tensor index;  /* int64 */
    int64_t step;        /* bytes from one index to the next */
    norch_tensor along;  /* the indexed tensor, with stride 0 along the axis of the index */
    int64_t size;        /* size of the axis, for checks in kernels, */
    bool is_offset;      /* unless the index is the sum of several */
    bool checked;        /* whether the CPU checked the indices before the kernel */
    int64_t dimension;   /* otherwise the kernel's message names the axis so */
    norch_tensor *owned; /* the tensor that owns the memory of index, or NULL */
} places;

/* ---- indices ------------------------------------------------------------------------------------- */

/* A view with size 1 in place of each expanded dimension (stride 0). */
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

/* Writes before + index * step, in bytes, into offsets; before may be NULL, for 0. On the CPU the call first checks the
 * indices against the size of their axis; errors name it `dimension`. Without offsets that is all. */
static int32_t add_offsets(const variant *w, norch_tensor *offsets, const norch_tensor *before,
                           const norch_tensor *index, int64_t size, int64_t step, int64_t dimension) {
    static const norch_tensor nothing = {.numel = 1, .dtype = NORCH_INT64}; /* its data is NULL */
    const norch_tensor *shaped = offsets ? offsets : index;
    if (shaped->numel == 0) return NORCH_OK;
    nr_index_plan plan;
    plan.axis_size = size;
    plan.axis_stride = step;
    plan.is_offset = false;
    plan.dimension = dimension;
    plan.wraps = w->wraps;
    plan.checked = false;
    nr_plan_make(&plan.nest, shaped->ndim, shaped->shape, 3,
                 (const norch_tensor *[]){offsets ? offsets : &nothing, index, before ? before : &nothing});
    nr_call call = {.family = NR_INDEXING, .op = NR_OFFSETS, .dtype = NORCH_INT64, .plan = &plan, .name = w->name};
    call.work = 2.0 * (double)shaped->numel;
    return nr_dispatch(&call, shaped);
}

/* *view: index as int64; *owned: the new tensor that it is a view of, or NULL. On the CPU kernels check each index when
 * they read it. `checked` asks for a copy with negative indices wrapped; a gather that reads each index for only one of
 * its `reads` elements does not need it. A write in place, to `apart`, must not begin if an index is out of range, so
 * all are checked before. An index that overlaps `apart` is copied. */
static int32_t prepare(const variant *w, const norch_tensor *index, const norch_tensor *apart, bool *checked,
                       int64_t reads, int64_t size, int64_t dimension, norch_tensor *view, norch_tensor **owned) {
    *view = *index;
    *owned = NULL;
    const bool cpu = index->device_type == NORCH_CPU, cast = index->dtype != NORCH_INT64;
    const bool overlaps = apart && norch_overlaps(apart, index), reading = w->kind == NR_GATHER;
    const norch_tensor once = without_repeats(index);
    *checked &= cpu && (reading ? once.numel != reads : w->wraps || apart);
    if (cast || (!cpu && overlaps))
        *owned = norch_cast(&once, NORCH_INT64);
    else if (*checked && (reading || w->wraps || overlaps))
        *owned = nr_make(once.ndim, once.shape, NORCH_INT64, index);
    else
        return *checked ? add_offsets(w, NULL, NULL, &once, size, 1, dimension) : NORCH_OK;
    if (!*owned) return norch_last_error_kind();
    *view = **owned;
    for (int32_t d = 0; d < index->ndim; d++) {
        if (index->shape[d] != once.shape[d]) view->strides[d] = 0;
        view->shape[d] = index->shape[d];
    }
    view->numel = index->numel;
    view->contiguous = nr_is_contiguous(index->ndim, index->shape, view->strides);
    if (!*checked) return NORCH_OK;
    int32_t status = add_offsets(w, *owned, NULL, cast ? *owned : &once, size, 1, dimension);
    if (status != NORCH_OK) nr_release(*owned);
    return status;
}

static int32_t check_index(const variant *w, const norch_tensor *x, const norch_tensor *index) {
    NR_TRY(nr_check_tensor(w->name, index));
    const char kind = nr_dtypes[index->dtype].kind;
    if (kind != 'i' && kind != 'u')
        return nr_fail(NORCH_ERROR_DTYPE, "%s: indices must be integers, not %s", w->name,
                       nr_dtypes[index->dtype].name);
    return nr_check_same_device(w->name, x, index);
}

static int32_t check_source(const variant *w, const norch_tensor *x, const norch_tensor *src) {
    NR_TRY(nr_check_tensor(w->name, src));
    if (src->dtype != x->dtype)
        return nr_fail(NORCH_ERROR_DTYPE, "%s: src is %s, but the tensor is %s", w->name, nr_dtypes[src->dtype].name,
                       nr_dtypes[x->dtype].name);
    return nr_check_same_device(w->name, x, src);
}

/* ---- running ------------------------------------------------------------------------------------- */

static int32_t run(const variant *w, nr_index_kind kind, const norch_tensor *dense, const places *p,
                   const norch_tensor *where) {
    if (dense->numel == 0) return NORCH_OK;
    nr_index_plan plan = {.axis_size = p->size, .axis_stride = p->step, .is_offset = p->is_offset};
    plan.dimension = p->dimension;
    plan.wraps = w->wraps;
    plan.checked = p->checked;
    const norch_tensor *operands[] = {dense, &p->index, &p->along};
    /* the last of two writes to an element must win, so the loops stay in C order */
    (kind == NR_SCATTER && dense->ndim > 1 ? nr_plan_in_order : nr_plan_make)(&plan.nest, dense->ndim, dense->shape, 3,
                                                                              operands);
    nr_call call = {.family = NR_INDEXING, .op = (int32_t)kind, .dtype = where->dtype, .plan = &plan};
    call.name = w->name;
    call.work = 2.0 * (double)dense->numel;
    return nr_dispatch(&call, where);
}

static norch_tensor *read_from(const variant *w, const norch_tensor *x, int32_t ndim, const places *p) {
    norch_tensor *y = nr_make(ndim, p->along.shape, x->dtype, x);
    if (!y) return NULL;
    norch_tensor dense = *y; /* at least 1-d, like the indexed elements */
    if (ndim == 0) dense = p->along, dense.data = y->data;
    return nr_finished(y, run(w, NR_GATHER, &dense, p, x));
}

/* The tensor to write to: x itself, a copy, or a wide copy if the operation computes with narrow values. */
static norch_tensor *target(const variant *w, norch_tensor *x, int64_t in_place) {
    if (in_place && nr_check_writable(w->name, x)) return NULL;
    if (w->kind > NR_SCATTER && nr_is_narrow(x->dtype)) return nr_widened(x);
    return in_place ? norch_retain(x) : norch_clone(x);
}

/* src in the dtype of y, which target() returned. */
static norch_tensor *source(const norch_tensor *src, const norch_tensor *y) {
    return src->dtype == y->dtype ? nr_retained(src) : nr_widened(src);
}

/* Writes `dense`, in the shape of the index, to the indexed elements of y. If it shares memory with y, it is copied
 * first. */
static int32_t write_dense(const variant *w, norch_tensor *y, const norch_tensor *dense, const places *p) {
    if (!norch_overlaps(y, dense)) return run(w, w->kind, dense, p, y);
    NR_OWNED norch_tensor *copy = norch_clone(dense);
    return copy ? run(w, w->kind, copy, p, y) : norch_last_error_kind();
}

/* Ends a write to y, which target() returned: casts it back if it is wide, and returns the result. */
static norch_tensor *finish_write(norch_tensor *x, norch_tensor *y, int32_t status, int64_t in_place) {
    y = nr_finished(y, status);
    if (!y || y->dtype == x->dtype) return y;
    if (!in_place) return nr_narrowed(y, x->dtype);
    status = nr_copy_into(x, y);
    nr_release(y);
    return status == NORCH_OK ? norch_retain(x) : NULL;
}

/* ---- complex numbers: their parts ------------------------------------------------------------------ */

/* An index, or a mask, expanded over both parts. */
static norch_tensor *for_both(const norch_tensor *index) {
    int64_t shape[NORCH_MAX_DIMS];
    NR_OWNED norch_tensor *column = norch_unsqueeze(index, -1);
    if (!column) return NULL;
    memcpy(shape, column->shape, (size_t)column->ndim * sizeof *shape);
    shape[index->ndim] = 2;
    return norch_expand(column, column->ndim, shape);
}

static norch_tensor *complex_gather(const norch_tensor *x, int32_t axis, const norch_tensor *index) {
    NR_OWNED norch_tensor *at = for_both(index), *parts = at ? norch_view_as_real(x) : NULL;
    return parts ? nr_whole(norch_gather(parts, axis, at)) : NULL;
}

/* The result of a write to the parts of x; in place x itself. */
static norch_tensor *written(norch_tensor *x, norch_tensor *parts, bool in_place) {
    if (!parts || !in_place) return nr_whole(parts);
    nr_release(parts);
    return norch_retain(x);
}

static norch_tensor *complex_scatter(norch_tensor *x, int64_t kind, int32_t axis, const norch_tensor *index,
                                     const norch_tensor *src, bool in_place) {
    NR_OWNED norch_tensor *all = src->ndim == 0 ? norch_expand(src, index->ndim, index->shape) : nr_retained(src);
    NR_OWNED norch_tensor *from = all ? norch_view_as_real(all) : NULL, *at = from ? for_both(index) : NULL;
    NR_OWNED norch_tensor *parts = at ? norch_view_as_real(x) : NULL;
    return parts ? written(x, norch_scatter(parts, kind, axis, at, from, in_place), in_place) : NULL;
}

static norch_tensor *complex_get(const norch_tensor *x, int64_t kind, int64_t n, const void *indices, int64_t count,
                                 const int64_t *axes, int64_t names, const int64_t *named, int64_t lead) {
    NR_OWNED norch_tensor *parts = norch_view_as_real(x);
    return parts ? nr_whole(norch_index_get(parts, kind, n, indices, count, axes, names, named, lead)) : NULL;
}

static norch_tensor *complex_put(norch_tensor *x, int64_t kind, int64_t n, const void *indices, int64_t count,
                                 const int64_t *axes, int64_t names, const int64_t *named, int64_t lead,
                                 const norch_tensor *values, bool in_place) {
    NR_OWNED norch_tensor *from = norch_view_as_real(values), *parts = from ? norch_view_as_real(x) : NULL;
    if (!parts) return NULL;
    return written(x, norch_index_put(parts, kind, n, indices, count, axes, names, named, lead, from, in_place),
                   in_place);
}

static norch_tensor *complex_mask_get(const norch_tensor *x, const norch_tensor *mask) {
    NR_OWNED norch_tensor *both = for_both(mask), *parts = both ? norch_view_as_real(x) : NULL;
    NR_OWNED norch_tensor *flat = parts ? norch_mask_get(parts, both) : NULL;
    return flat ? nr_whole(norch_view(flat, 2, (const int64_t[]){-1, 2})) : NULL;
}

static int32_t complex_mask_put(norch_tensor *x, const norch_tensor *mask, const norch_tensor *values) {
    NR_OWNED norch_tensor *both = for_both(mask), *parts = both ? norch_view_as_real(x) : NULL;
    NR_OWNED norch_tensor *from = parts ? norch_view_as_real(values) : NULL;
    NR_OWNED norch_tensor *flat = from ? norch_flatten(from, 0, -1) : NULL;
    return flat ? norch_mask_put(parts, both, flat) : norch_last_error_kind();
}

/* ---- an index for each element ------------------------------------------------------------------- */

/* A view of a 0-d tensor as a 1-d one. */
static norch_tensor at_least_1d(const norch_tensor *x) {
    norch_tensor y = *x;
    if (y.ndim == 0) {
        y.ndim = 1;
        y.shape[0] = y.strides[0] = 1;
    }
    return y;
}

static norch_tensor cut_to(const norch_tensor *x, const norch_tensor *shape) {
    norch_tensor part = *x;
    for (int32_t d = 0; d < part.ndim; d++) part.shape[d] = shape->shape[d];
    part.numel = shape->numel;
    part.contiguous = nr_is_contiguous(part.ndim, part.shape, part.strides);
    return part;
}

static int32_t check_sizes(const variant *w, const norch_tensor *x, const norch_tensor *index, const norch_tensor *src,
                           int32_t axis) {
    if (index->ndim != x->ndim)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: the index has %d dimensions, the tensor %d", w->name, index->ndim,
                       x->ndim);
    if (src && src->ndim != x->ndim)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: src has %d dimensions, the tensor %d", w->name, src->ndim, x->ndim);
    for (int32_t d = 0; d < x->ndim; d++) {
        if (d != axis && index->shape[d] > x->shape[d])
            return nr_fail(NORCH_ERROR_SHAPE,
                           "%s: the index of shape %s is larger than the tensor of shape %s at dimension %d", w->name,
                           nr_shape_of(index), nr_shape_of(x), d);
        if (src && index->shape[d] > src->shape[d])
            return nr_fail(NORCH_ERROR_SHAPE,
                           "%s: the index of shape %s is larger than src of shape %s at dimension %d", w->name,
                           nr_shape_of(index), nr_shape_of(src), d);
    }
    return NORCH_OK;
}

/* The elements of x that `index`, with an index for each of them, selects. done() releases p. */
static int32_t place_each(const variant *w, const norch_tensor *x, int32_t axis, const norch_tensor *index,
                          const norch_tensor *src, const norch_tensor *apart, places *p) {
    const norch_tensor from = at_least_1d(x), at = at_least_1d(index);
    NR_TRY(check_sizes(w, &from, &at, src, axis));
    p->checked = true;
    NR_TRY(prepare(w, &at, apart, &p->checked, at.numel, from.shape[axis], axis, &p->index, &p->owned));
    p->along = cut_to(&from, &at);
    p->along.strides[axis] = 0;
    p->along.contiguous = 0;
    p->size = from.shape[axis];
    p->dimension = axis;
    p->is_offset = false;
    p->step = from.strides[axis] * nr_size_of(x->dtype);
    return NORCH_OK;
}

static void done(places *p) { nr_release(p->owned); }

norch_tensor *norch_gather(const norch_tensor *x, int64_t dim, const norch_tensor *index) {
    const variant *w = &variants[NORCH_INDEX_GATHER];
    int32_t axis;
    places p;
    if (nr_check_tensor(w->name, x) || check_index(w, x, index) || nr_check_axis(w->name, dim, x->ndim, &axis))
        return NULL;
    if (nr_is_complex(x->dtype) && x->ndim == 0) return nr_refuse_complex(w->name, x->dtype), NULL;
    if (nr_is_complex(x->dtype)) return complex_gather(x, axis, index);
    if (index->numel == 0) return nr_make(index->ndim, index->shape, x->dtype, x);
    if (place_each(w, x, axis, index, NULL, NULL, &p)) return NULL;
    norch_tensor *y = read_from(w, x, index->ndim, &p);
    done(&p);
    return y;
}

norch_tensor *norch_scatter(norch_tensor *x, int64_t kind, int64_t dim, const norch_tensor *index,
                            const norch_tensor *src, bool in_place) {
    const variant *w = &variants[kind];
    int32_t axis;
    places p;
    if (nr_check_tensor(w->name, x) || check_index(w, x, index) || check_source(w, x, src) ||
        nr_check_axis(w->name, dim, x->ndim, &axis))
        return NULL;
    if (nr_is_complex(x->dtype) && (x->ndim == 0 || w->kind > NR_SCATTER_ADD))
        return nr_refuse_complex(w->name, x->dtype), NULL;
    if (nr_is_complex(x->dtype)) return complex_scatter(x, kind, axis, index, src, in_place);
    norch_tensor *y = target(w, x, in_place);
    if (!y || index->numel == 0) return finish_write(x, y, NORCH_OK, in_place);
    NR_OWNED norch_tensor *from = source(src, y);
    if (!from) return nr_finished(y, NORCH_ERROR_MEMORY);
    const norch_tensor at = at_least_1d(index);
    norch_tensor dense = at_least_1d(from);
    if (src->ndim == 0 && x->ndim > 0) { /* a 0-d src: one value for all */
        dense.ndim = at.ndim;
        for (int32_t d = 0; d < at.ndim; d++) dense.strides[d] = 0, dense.shape[d] = at.shape[d];
    }
    int32_t status = place_each(w, y, axis, index, &dense, in_place ? y : NULL, &p);
    if (status == NORCH_OK) {
        dense = cut_to(&dense, &at); /* elements beyond the index are not read */
        status = write_dense(w, y, &dense, &p);
        done(&p);
    }
    return finish_write(x, y, status, in_place);
}

/* ---- index tensors for some dimensions ------------------------------------------------------------- */

/* A view of index tensor x in a result of shape (ndim, shape) whose dimensions [lead, lead + broadcast) are those of
 * the broadcast index tensors. */
static norch_tensor broadcast_view(const norch_tensor *x, int32_t broadcast, int32_t lead, int32_t ndim,
                                   const int64_t *shape) {
    norch_tensor view = *x;
    view.ndim = ndim;
    view.numel = 1;
    for (int32_t d = 0; d < ndim; d++) {
        const int32_t x_axis = d - lead - (broadcast - x->ndim);
        const bool moves = d >= lead && d < lead + broadcast && x_axis >= 0 && x->shape[x_axis] != 1;
        view.shape[d] = shape[d];
        view.strides[d] = moves ? x->strides[x_axis] : 0;
        view.numel *= shape[d];
    }
    view.contiguous = nr_is_contiguous(ndim, view.shape, view.strides);
    return view;
}

/* The elements of x that n index tensors select. Their broadcast dimensions follow the first `lead` kept dimensions. */
static int32_t place_all(const variant *w, const norch_tensor *x, int64_t n, const norch_tensor *const *indices,
                         int64_t count, const int64_t *axes, int64_t names, const int64_t *named, int64_t lead,
                         const norch_tensor *apart, places *p) {
    int32_t broadcast = 0, bad, at = 0;
    int64_t common[NORCH_MAX_DIMS], shape[NORCH_MAX_DIMS], strides[NORCH_MAX_DIMS];
    bool indexed[NORCH_MAX_DIMS] = {false};
    if (n < 1 || n != count || n != names)
        return nr_fail(NORCH_ERROR_VALUE, "%s: %lld indices for %lld axes with %lld names", w->name, (long long)n,
                       (long long)count, (long long)names);
    for (int64_t i = 0; i < n; i++) {
        NR_TRY(check_index(w, x, indices[i]));
        indexed[axes[i]] = true;
        if (!nr_broadcast(&broadcast, common, indices[i]->ndim, indices[i]->shape, &bad))
            return nr_fail(NORCH_ERROR_INDEX,
                           "%s: index %lld, of shape %s, does not broadcast to those before it, of size %lld at "
                           "dimension %d",
                           w->name, (long long)i, nr_shape_of(indices[i]), (long long)common[bad], bad);
    }
    const int32_t ndim = x->ndim - (int32_t)n + broadcast;
    if (ndim > NORCH_MAX_DIMS)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: %d dimensions; at most %d are supported", w->name, ndim, NORCH_MAX_DIMS);
    for (int32_t d = 0, kept = 0; d <= x->ndim; d++) {
        if (d < x->ndim && indexed[d]) continue;
        if (kept++ == lead)
            for (int32_t b = 0; b < broadcast; b++) shape[at] = common[b], strides[at++] = 0;
        if (d < x->ndim) shape[at] = x->shape[d], strides[at++] = x->strides[d];
    }
    NR_TRY(nr_check_shape(w->name, ndim, shape));
    p->along = *x;
    p->along.ndim = ndim;
    p->along.contiguous = 0;
    nr_count(ndim, shape, &p->along.numel);
    for (int32_t d = 0; d < ndim; d++) p->along.shape[d] = shape[d], p->along.strides[d] = strides[d];

    norch_tensor view, *owned, *offsets = NULL;
    const bool direct = n == 1 && (x->device_type == NORCH_CPU || !w->wraps); /* a single index needs no offsets */
    int64_t positions;
    p->owned = NULL;
    if (nr_count(broadcast, common, &positions) && positions == 0) return NORCH_OK; /* no index is read */
    for (int64_t i = 0; i < n; i++) {
        const int32_t axis = (int32_t)axes[i];
        const int64_t step = x->strides[axis] * nr_size_of(x->dtype);
        bool checked = direct;
        int32_t status =
            prepare(w, indices[i], apart, &checked, p->along.numel, x->shape[axis], named[i], &view, &owned);
        if (status == NORCH_OK && direct) {
            *p = (places){.index = view, .step = step, .along = p->along, .size = x->shape[axis], .owned = owned};
            p->dimension = named[i];
            p->checked = checked;
        } else if (status == NORCH_OK) {
            const norch_tensor *before = offsets;
            view = broadcast_view(&view, broadcast, 0, broadcast, common);
            if (!offsets) offsets = nr_make(broadcast, common, NORCH_INT64, x);
            status = !offsets ? norch_last_error_kind()
                              : add_offsets(w, offsets, before, &view, x->shape[axis], step, named[i]);
            nr_release(owned);
        }
        if (status != NORCH_OK) {
            nr_release(offsets);
            return status;
        }
    }
    if (offsets) *p = (places){.index = *offsets, .step = 1, .along = p->along, .is_offset = true, .owned = offsets};
    p->index = broadcast_view(&p->index, broadcast, (int32_t)lead, ndim, shape);
    return NORCH_OK;
}

norch_tensor *norch_index_get(const norch_tensor *x, int64_t kind, int64_t n, const void *indices, int64_t count,
                              const int64_t *axes, int64_t names, const int64_t *named, int64_t lead) {
    const variant *w = &variants[kind];
    places p;
    if (nr_check_tensor(w->name, x)) return NULL;
    if (nr_is_complex(x->dtype)) return complex_get(x, kind, n, indices, count, axes, names, named, lead);
    if (place_all(w, x, n, indices, count, axes, names, named, lead, NULL, &p)) return NULL;
    norch_tensor *y = read_from(w, x, p.along.ndim, &p);
    if (!y) nr_name_shortage(w->name);
    done(&p);
    return y;
}

norch_tensor *norch_index_put(norch_tensor *x, int64_t kind, int64_t n, const void *indices, int64_t count,
                              const int64_t *axes, int64_t names, const int64_t *named, int64_t lead,
                              const norch_tensor *values, bool in_place) {
    const variant *w = &variants[kind];
    places p;
    if (nr_check_tensor(w->name, x) || check_source(w, x, values)) return NULL;
    if (nr_is_complex(x->dtype))
        return complex_put(x, kind, n, indices, count, axes, names, named, lead, values, in_place);
    norch_tensor *y = target(w, x, in_place);
    if (!y) return NULL;
    int32_t status = place_all(w, y, n, indices, count, axes, names, named, lead, in_place ? y : NULL, &p);
    if (status != NORCH_OK) return nr_finished(y, status);
    bool fits = values->ndim <= p.along.ndim;
    for (int32_t d = 0; fits && d < values->ndim; d++)
        fits = values->shape[d] == 1 || values->shape[d] == p.along.shape[d + p.along.ndim - values->ndim];
    NR_OWNED norch_tensor *from = fits ? source(values, y) : NULL;
    if (from) {
        const norch_tensor dense = broadcast_view(from, p.along.ndim, 0, p.along.ndim, p.along.shape);
        status = write_dense(w, y, &dense, &p);
    } else if (fits) {
        status = norch_last_error_kind();
    } else {
        status = nr_fail(NORCH_ERROR_SHAPE, "%s: values of shape %s do not broadcast to the indexed shape %s", w->name,
                         nr_shape_of(values), nr_shape_of(&p.along));
    }
    done(&p);
    return finish_write(x, y, status, in_place);
}

/* ---- nonzero --------------------------------------------------------------------------------------- */

/* The non-zero elements of a tensor, counted, and the plan of the call that visits them. */
typedef struct visit {
    nr_nonzero_plan plan;
    norch_tensor *truth, *counts;
    int64_t total;
    const char *name;
} visit;

static int32_t run_visit(visit *v, nr_index_kind kind, const norch_tensor *where, int32_t dtype) {
    nr_call call = {.family = NR_INDEXING, .op = (int32_t)kind, .dtype = dtype, .plan = &v->plan, .name = v->name};
    call.work = (kind == NR_COUNT ? 0.1 : 1.0) * (double)v->plan.n;
    return nr_dispatch(&call, where);
}

static int32_t count_true(visit *v, const char *name, const norch_tensor *x) {
    const int64_t chunks = (x->numel + NR_NONZERO_CHUNK - 1) / NR_NONZERO_CHUNK + 1;
    *v = (visit){.plan = {.ndim = x->ndim, .n = x->numel}, .name = name};
    v->truth = nr_dense(x, NORCH_BOOL);
    v->counts = v->truth ? nr_make(1, &chunks, NORCH_INT64, x) : NULL;
    if (!v->counts) return norch_last_error_kind();
    for (int32_t d = 0; d < x->ndim; d++) v->plan.size[d] = x->shape[d];
    v->plan.truth = v->truth->data;
    v->plan.counts = v->counts->data;
    v->plan.total = &v->total;
    return run_visit(v, NR_COUNT, x, NORCH_BOOL);
}

static void end_visit(visit *v) {
    nr_release(v->counts);
    nr_release(v->truth);
}

norch_tensor *norch_nonzero(const norch_tensor *x, bool by_dimension) {
    if (nr_check_tensor("nonzero", x)) return NULL;
    NR_AT_END(end_visit) visit v;
    if (count_true(&v, "nonzero", x)) return NULL;
    const int64_t shape[2][2] = {{v.total, x->ndim}, {x->ndim, v.total}};
    norch_tensor *y = nr_make(2, shape[by_dimension != 0], NORCH_INT64, x);
    if (!y || !y->numel) return y;
    v.plan.out = y->data;
    v.plan.row = y->strides[by_dimension != 0];
    v.plan.column = y->strides[by_dimension == 0];
    return nr_finished(y, run_visit(&v, NR_NONZERO, x, NORCH_INT64));
}

static int32_t check_mask(const char *name, const norch_tensor *x, const norch_tensor *mask) {
    NR_TRY(nr_check_tensor(name, x));
    NR_TRY(nr_check_tensor(name, mask));
    NR_TRY(nr_check_same_device(name, x, mask));
    bool fits = mask->dtype == NORCH_BOOL && mask->ndim == x->ndim;
    for (int32_t d = 0; fits && d < x->ndim; d++) fits = mask->shape[d] == x->shape[d];
    if (fits) return NORCH_OK;
    return nr_fail(NORCH_ERROR_SHAPE, "%s: a mask of shape %s and dtype %s for shape %s", name, nr_shape_of(mask),
                   nr_dtypes[mask->dtype].name, nr_shape_of(x));
}

norch_tensor *norch_mask_get(const norch_tensor *x, const norch_tensor *mask) {
    static const char name[] = "index";
    if (check_mask(name, x, mask)) return NULL;
    if (nr_is_complex(x->dtype)) return complex_mask_get(x, mask);
    NR_AT_END(end_visit) visit v;
    if (count_true(&v, name, mask)) return NULL;
    NR_OWNED norch_tensor *dense = nr_dense(x, x->dtype);
    norch_tensor *y = dense ? nr_make(1, &v.total, x->dtype, x) : NULL;
    if (!y || !y->numel) return y;
    v.plan.x = dense->data;
    v.plan.out = y->data;
    v.plan.item = nr_size_of(x->dtype);
    return nr_finished(y, run_visit(&v, NR_MASK_GET, x, x->dtype));
}

int32_t norch_mask_put(norch_tensor *x, const norch_tensor *mask, const norch_tensor *values) {
    static const char name[] = "masked_scatter_";
    NR_TRY(check_mask(name, x, mask));
    NR_TRY(nr_check_tensor(name, values));
    NR_TRY(nr_check_same_device(name, x, values));
    NR_TRY(nr_check_writable(name, x));
    if (!x->contiguous || values->dtype != x->dtype || values->ndim != 1)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: values of shape %s and dtype %s for a tensor of shape %s and dtype %s",
                       name, nr_shape_of(values), nr_dtypes[values->dtype].name, nr_shape_of(x),
                       nr_dtypes[x->dtype].name);
    if (nr_is_complex(x->dtype)) return complex_mask_put(x, mask, values);
    NR_AT_END(end_visit) visit v;
    NR_TRY(count_true(&v, name, mask));
    if (v.total != values->numel)
        return nr_fail(NORCH_ERROR_SHAPE, "%s: %lld values for %lld elements", name, (long long)values->numel,
                       (long long)v.total);
    if (!v.total) return NORCH_OK;
    NR_OWNED norch_tensor *dense = norch_overlaps(x, values) ? norch_clone(values) : nr_dense(values, x->dtype);
    if (!dense) return norch_last_error_kind();
    v.plan.x = dense->data;
    v.plan.out = x->data;
    v.plan.item = nr_size_of(x->dtype);
    return run_visit(&v, NR_MASK_PUT, x, x->dtype);
}
