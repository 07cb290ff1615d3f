/* shape: see shape.h. */
#include "shape.h"

#include "../norch.h"

bool nr_count(int32_t ndim, const int64_t *shape, int64_t *count) {
    int64_t n = 1, bytes = 16; /* room for the widest element, so that byte offsets fit too */
    for (int32_t i = 0; i < ndim; i++) {
        n *= shape[i] != 0; /* a size of 0 makes the count 0, */
        /* but the product of the other sizes must still fit, as strides are made of it */
        if (__builtin_mul_overflow(bytes, shape[i] ? shape[i] : 1, &bytes)) return false;
    }
    *count = n ? bytes / 16 : 0;
    return true;
}

void nr_fill_strides(int32_t ndim, const int64_t *shape, int64_t *strides) {
    int64_t step = 1;
    for (int32_t i = ndim - 1; i >= 0; i--) {
        strides[i] = step;
        step *= shape[i] > 1 ? shape[i] : 1;
    }
}

void nr_fill_strides_in_order(int32_t ndim, const int64_t *shape, const int64_t *order, int64_t *strides) {
    int32_t axis[NORCH_MAX_DIMS]; /* outermost in memory first */
    for (int32_t i = 0; i < ndim; i++) {
        int32_t at = i;
        for (; at > 0 && order[axis[at - 1]] < order[i]; at--) axis[at] = axis[at - 1];
        axis[at] = i;
    }
    int64_t step = 1;
    for (int32_t i = ndim - 1; i >= 0; i--) {
        strides[axis[i]] = step;
        step *= shape[axis[i]] > 1 ? shape[axis[i]] : 1;
    }
}

bool nr_is_contiguous(int32_t ndim, const int64_t *shape, const int64_t *strides) {
    int64_t step = 1;
    bool dense = true;
    for (int32_t i = ndim - 1; i >= 0; i--) {
        if (shape[i] == 0) return true;
        if (shape[i] != 1) {
            dense &= strides[i] == step;
            step *= shape[i];
        }
    }
    return dense;
}

bool nr_same_shape(int32_t ndim_a, const int64_t *a, int32_t ndim_b, const int64_t *b) {
    if (ndim_a != ndim_b) return false;
    for (int32_t i = 0; i < ndim_a; i++)
        if (a[i] != b[i]) return false;
    return true;
}

bool nr_broadcast(int32_t *out_ndim, int64_t *out, int32_t ndim, const int64_t *shape, int32_t *at) {
    int32_t more = ndim - *out_ndim;
    if (more > 0) {
        for (int32_t i = *out_ndim - 1; i >= 0; i--) out[i + more] = out[i];
        for (int32_t i = 0; i < more; i++) out[i] = 1;
        *out_ndim = ndim;
    }
    int32_t lead = *out_ndim - ndim;
    for (int32_t i = 0; i < ndim; i++) {
        int64_t *size = &out[lead + i];
        if (*size == shape[i] || shape[i] == 1) continue;
        if (*size != 1) {
            *at = lead + i;
            return false;
        }
        *size = shape[i];
    }
    return true;
}

bool nr_axis(int64_t axis, int32_t ndim, int32_t *result) {
    int32_t span = ndim ? ndim : 1;
    if (axis < -span || axis >= span) return false;
    *result = (int32_t)(axis < 0 ? axis + span : axis);
    return true;
}
