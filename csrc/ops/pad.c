/* pad: adds elements at the ends of axes, by copies within the result. */
#include "ops.h"

/* The most elements that a mode can add at one end of an axis. */
static int64_t most_of(int64_t mode, int64_t size) {
    switch (mode) {
    case NORCH_PAD_REFLECT: return size - 1;
    case NORCH_PAD_REPLICATE: return size ? INT64_MAX : 0;
    case NORCH_PAD_CIRCULAR: return size;
    default: return INT64_MAX;
    }
}

/* Copies elements of y, which is complete except at both ends of one axis, to these ends. */
static int32_t add_ends(const norch_tensor *y, int32_t axis, int64_t before, int64_t after, int64_t mode) {
    const int64_t last = y->shape[axis] - after; /* the first element after those of the input */
    const struct {
        int64_t to, count, from, step;
    } ends[4][2] = {
        [NORCH_PAD_REFLECT] = {{0, before, 2 * before, -1}, {last, after, last - 2, -1}},
        [NORCH_PAD_REPLICATE] = {{0, before, before, 0}, {last, after, last - 1, 0}},
        [NORCH_PAD_CIRCULAR] = {{0, before, last - before, 1}, {last, after, before, 1}},
    };
    for (int i = 0; i < 2; i++) {
        if (ends[mode][i].count == 0) continue;
        norch_tensor to = nr_sliced(y, axis, ends[mode][i].to, ends[mode][i].count, 1);
        const norch_tensor from = nr_sliced(y, axis, ends[mode][i].from, ends[mode][i].count, ends[mode][i].step);
        NR_TRY(nr_copy_into(&to, &from));
    }
    return NORCH_OK;
}

norch_tensor *norch_pad(const norch_tensor *x, int64_t n, const int64_t *before, int64_t n_after, const int64_t *after,
                        int64_t mode, const norch_tensor *value) {
    if (nr_check_tensor("pad", x) || nr_check_tensor("pad", value) || nr_check_numbers("pad", n, n_after)) return NULL;
    if (n > x->ndim || mode < NORCH_PAD_CONSTANT || mode > NORCH_PAD_CIRCULAR || value->ndim)
        return NR_REFUSE(NORCH_ERROR_VALUE, "pad: %lld axes of %d in mode %lld, and a value of %d dimensions",
                         (long long)n, x->ndim, (long long)mode, value->ndim);
    const int32_t lead = x->ndim - (int32_t)n; /* axes that are not padded */
    int64_t shape[NORCH_MAX_DIMS];
    for (int32_t d = 0; d < x->ndim; d++) shape[d] = x->shape[d];
    for (int64_t i = 0; i < n; i++) {
        int64_t *size = &shape[lead + i], most = most_of(mode, *size);
        if (before[i] < 0 || after[i] < 0 || before[i] > most || after[i] > most)
            return NR_REFUSE(NORCH_ERROR_SHAPE, "pad: %lld and %lld elements at the ends of dimension %d of size %lld",
                             (long long)before[i], (long long)after[i], lead + (int32_t)i, (long long)*size);
        if (__builtin_add_overflow(*size, before[i], size) || __builtin_add_overflow(*size, after[i], size))
            return NR_REFUSE(NORCH_ERROR_SHAPE, "pad: dimension %d gets more than 2**63 elements", lead + (int32_t)i);
    }
    if (nr_check_shape("pad", x->ndim, shape)) return NULL;
    norch_tensor *y = nr_make(x->ndim, shape, x->dtype, x);
    if (!y) return NULL;
    norch_tensor middle = *y;
    for (int64_t i = 0; i < n; i++) {
        const int32_t axis = lead + (int32_t)i;
        middle = nr_sliced(&middle, axis, before[i], x->shape[axis], 1);
    }
    int32_t status = mode == NORCH_PAD_CONSTANT ? norch_copy(y, value) : NORCH_OK;
    if (status == NORCH_OK) status = nr_copy_into(&middle, x);
    for (int64_t i = n - 1; i >= 0 && status == NORCH_OK && mode != NORCH_PAD_CONSTANT; i--) {
        norch_tensor part = *y; /* the axes before this one are not complete yet */
        for (int64_t k = 0; k < i; k++) {
            const int32_t axis = lead + (int32_t)k;
            part = nr_sliced(&part, axis, before[k], x->shape[axis], 1);
        }
        status = add_ends(&part, lead + (int32_t)i, before[i], after[i], mode);
    }
    return nr_finished(y, status);
}
