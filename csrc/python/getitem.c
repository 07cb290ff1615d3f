/* getitem: x[...] with integers, slices, Ellipsis and None, as one view. For other indices it returns None, and
 * norch/ops/getitem.py handles them. */
#include "../core/observer.h"
#include "../core/tensor.h"
#include "abi.h"
#include "calls.h"
#include "object.h"

typedef enum part_kind { INTEGER, SLICE, NEW, DOTS, OTHER } part_kind;

static part_kind kind_of(const nr_object *part) {
    if (part == NR_AT(_Py_NoneStruct)) return NEW;
    if (part == NR_AT(_Py_EllipsisObject)) return DOTS;
    if (part->type == NR_AT(PySlice_Type)) return SLICE;
    if (part->type == NR_AT(PyBool_Type)) return OTHER; /* a mask */
    return PyType_GetFlags(part->type) & NR_TYPE_IS_INTEGER ? INTEGER : OTHER;
}

typedef struct bounds {
    nr_ssize start, stop, step;
} bounds;

/* The view under construction; axis is the next one of x. */
typedef struct region {
    const norch_tensor *x;
    int32_t axis, ndim;
    int64_t shape[NORCH_MAX_DIMS], strides[NORCH_MAX_DIMS], shift;
} region;

static int32_t push(region *r, int64_t size, int64_t stride) {
    if (r->ndim == NORCH_MAX_DIMS)
        return nr_fail(NORCH_ERROR_SHAPE, "index: at most %d dimensions are supported", NORCH_MAX_DIMS);
    r->shape[r->ndim] = size;
    r->strides[r->ndim++] = stride;
    return NORCH_OK;
}

static int32_t keep(region *r, int32_t count) {
    for (; count > 0; count--, r->axis++) NR_TRY(push(r, r->x->shape[r->axis], r->x->strides[r->axis]));
    return NORCH_OK;
}

static int32_t take_one(region *r, void *part) {
    int64_t size = r->x->shape[r->axis], index = PyLong_AsLongLong(part);
    if (index == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return nr_fail(NORCH_ERROR_INDEX, "an index beyond 64 bits is out of range for dimension %d of size %lld",
                       r->axis, (long long)size);
    }
    if (index < -size || index >= size) {
        return nr_fail(NORCH_ERROR_INDEX, "index %lld is out of range for dimension %d of size %lld", (long long)index,
                       r->axis, (long long)size);
    }
    r->shift += (index < 0 ? index + size : index) * r->x->strides[r->axis++];
    return NORCH_OK;
}

static int32_t take_slice(region *r, bounds b) {
    int64_t stride = r->x->strides[r->axis];
    int64_t count = PySlice_AdjustIndices(r->x->shape[r->axis++], &b.start, &b.stop, b.step);
    if (count > 0) r->shift += b.start * stride;
    return push(r, count, count > 1 ? stride * b.step : stride);
}

/* Ellipsis keeps the axes for which there is no index; a second one finds none left. */
static int32_t take_part(region *r, void *part, const bounds **slices, int32_t *skipped) {
    switch (kind_of(part)) {
    case INTEGER: return take_one(r, part);
    case SLICE: return take_slice(r, *(*slices)++);
    case DOTS: {
        const int32_t count = *skipped;
        *skipped = 0;
        return keep(r, count);
    }
    default: return push(r, 1, r->axis < r->x->ndim ? r->x->shape[r->axis] * r->x->strides[r->axis] : 1);
    }
}

/* region(x, index): a view, or None if the index has parts other than integers, slices, Ellipsis and None. */
NR_BUILTIN(region) {
    if (n != 2 || !nr_is_tensor(args[0])) {
        PyErr_SetString(PyExc_TypeError, "region: takes a tensor and an index");
        return NULL;
    }
    if (((nr_object *)args[0])->type == nr_batched_class) return nr_stopped("region", args, n);
    region r = {.x = args[0]};
    nr_observer *observer = nr_observing();
    if (observer) observer->passed(observer, args[0]);
    bool many = PyType_GetFlags(((nr_object *)args[1])->type) & NR_TYPE_IS_TUPLE;
    int64_t parts = many ? PyTuple_Size(args[1]) : 1, axes = 0, dots = 0, found = 0;
    bool is_ambiguous = false;
    bounds unpacked[NORCH_MAX_DIMS];
    const bounds *slices = unpacked;
    for (int64_t i = 0; i < parts; i++) {
        void *part = many ? PyTuple_GetItem(args[1], i) : args[1];
        part_kind kind = kind_of(part);
        /* Reading bounds may run the user's __index__, which may change x, so bounds are read before x. */
        if (kind == SLICE && found < NORCH_MAX_DIMS) {
            bounds *b = &unpacked[found++];
            if (PySlice_Unpack(part, &b->start, &b->stop, &b->step) < 0) return NULL;
        }
        if (kind == OTHER) return Py_NewRef(NR_NONE);
        if (kind == INTEGER || kind == SLICE) {
            axes++;
            is_ambiguous |= dots > 1;
        }
        dots += kind == DOTS;
    }
    int32_t status = NORCH_OK, skipped = r.x->ndim - (int32_t)axes;
    if (is_ambiguous && skipped > 0) {
        status = nr_fail(NORCH_ERROR_INDEX, "only one ellipsis (...) can precede the index of an axis");
    } else if (axes > r.x->ndim) {
        /* unlike in PyTorch, x[0] of a 0-d x is x */
        void *only = many && parts == 1 ? PyTuple_GetItem(args[1], 0) : args[1];
        if (r.x->ndim == 0 && parts == 1 && kind_of(only) == INTEGER && PyLong_AsLongLong(only) == 0)
            return norch_alias(r.x);
        status = nr_fail(NORCH_ERROR_INDEX, "too many indices: %lld for a tensor of %d dimensions", (long long)axes,
                         r.x->ndim);
    }
    for (int64_t i = 0; status == NORCH_OK && i < parts; i++)
        status = take_part(&r, many ? PyTuple_GetItem(args[1], i) : args[1], &slices, &skipped);
    if (status == NORCH_OK) status = keep(&r, r.x->ndim - r.axis);
    return status == NORCH_OK ? nr_make_view(r.x, r.ndim, r.shape, r.strides, r.shift) : NULL;
}
