/* complex: views of complex tensors as real ones, and back. Real and imaginary parts alternate in memory:
 *
 *   x  re im re im ...    its parts: a view of the real dtype, with a new last axis of size 2
 *
 * Pointwise operations have kernels (complex.def). In copies, indexing, reductions, products and random numbers, the
 * family's file composes operations on the parts; other families refuse complex numbers. */
#include "ops.h"

norch_tensor *norch_view_as_real(const norch_tensor *x) {
    if (nr_check_tensor("view_as_real", x)) return NULL;
    if (!nr_is_complex(x->dtype))
        return NR_REFUSE(NORCH_ERROR_DTYPE, "view_as_real: expected complex numbers, not %s", nr_dtypes[x->dtype].name);
    if (x->ndim == NORCH_MAX_DIMS)
        return NR_REFUSE(NORCH_ERROR_SHAPE, "view_as_real: %d dimensions and one more; at most %d are supported",
                         x->ndim, NORCH_MAX_DIMS);
    int64_t shape[NORCH_MAX_DIMS], strides[NORCH_MAX_DIMS];
    for (int32_t d = 0; d < x->ndim; d++) {
        shape[d] = x->shape[d];
        strides[d] = 2 * x->strides[d];
    }
    shape[x->ndim] = 2;
    strides[x->ndim] = 1;
    norch_tensor *parts = nr_make_view(x, x->ndim + 1, shape, strides, 0);
    if (!parts) return NULL;
    parts->dtype = nr_part_of(x->dtype);
    parts->offset = 2 * x->offset;
    return parts;
}

norch_tensor *norch_view_as_complex(const norch_tensor *x) {
    if (nr_check_tensor("view_as_complex", x)) return NULL;
    if (x->dtype != NORCH_FLOAT32 && x->dtype != NORCH_FLOAT64)
        return NR_REFUSE(NORCH_ERROR_DTYPE, "view_as_complex: expected float32 or float64, not %s",
                         nr_dtypes[x->dtype].name);
    const int32_t last = x->ndim - 1;
    bool fits = last >= 0 && x->shape[last] == 2 && x->strides[last] == 1 && x->offset % 2 == 0;
    int64_t strides[NORCH_MAX_DIMS];
    for (int32_t d = 0; d < last; d++) {
        fits &= x->strides[d] % 2 == 0 || x->shape[d] < 2;
        strides[d] = x->strides[d] / 2;
    }
    if (!fits)
        return NR_REFUSE(NORCH_ERROR_SHAPE,
                         "view_as_complex: the last size must be 2, its stride 1, and the other strides and the offset "
                         "even; got shape %s, strides %s and offset %lld",
                         nr_shape_of(x), nr_shape_text(x->ndim, x->strides), (long long)x->offset);
    norch_tensor *whole = nr_make_view(x, last, x->shape, strides, 0);
    if (!whole) return NULL;
    whole->dtype = nr_complex_of(x->dtype);
    whole->offset = x->offset / 2;
    nr_dtypes_seen |= 1u << whole->dtype;
    return whole;
}

norch_tensor *nr_whole(norch_tensor *parts) {
    norch_tensor *whole = parts ? norch_view_as_complex(parts) : NULL;
    nr_release(parts);
    return whole;
}

norch_tensor *nr_part(const norch_tensor *x, int32_t which) {
    NR_OWNED norch_tensor *parts = norch_view_as_real(x);
    norch_tensor *part = parts ? nr_make_view(parts, x->ndim, parts->shape, parts->strides, which) : NULL;
    if (part) part->dtype = parts->dtype;
    return part;
}
