/* copy: checks and plans of clone, cast, copy_ and transfers between devices. The backend has the loops (NR_COPY). */
#include <string.h>

#include "../core/convert.h"
#include "../core/device.h"
#include "../core/transfer.h"
#include "ops.h"

/* ---- Python numbers ------------------------------------------------------------------------------ */

void nr_plan_number(nr_plan *plan, int o, const norch_tensor *x) {
    plan->number[o] = (nr_number){x->data, x->dtype};
    plan->data[o] = (char *)&plan->value[o];
}

void nr_load_number(const nr_plan *plan, int o, int32_t dtype) {
    nr_convert_number(plan->number[o].dtype, plan->number[o].at, dtype, plan->data[o]);
}

static void load_source(const nr_call *call) { nr_load_number(call->plan, 1, call->dtype); }

norch_tensor *nr_complex_number(const norch_tensor *x, int32_t dtype, const norch_tensor *where) {
    NR_OWNED norch_tensor *number = norch_cast(x, dtype);
    return number ? norch_to_device(number, where->device_type, where->device_index, false) : NULL;
}

/* ---- copies to and from complex numbers ---------------------------------------------------------- */

/* Sets the imaginary parts of x to 0. */
static int32_t make_real(const norch_tensor *x) {
    NR_OWNED norch_tensor *imaginary = nr_part(x, 1);
    if (!imaginary) return norch_last_error_kind();
    nr_plan plan;
    nr_plan_make(&plan, x->ndim, x->shape, 2, (const norch_tensor *[]){imaginary, imaginary});
    for (int32_t d = 0; d < plan.ndim; d++) plan.stride[1][d] = 0;
    plan.data[1] = (char *)&plan.value[1];
    plan.value[1] = 0;
    nr_call call = {.family = NR_COPY, .dtype = imaginary->dtype, .from_dtype = imaginary->dtype, .plan = &plan};
    call.work = (double)x->numel;
    return nr_dispatch(&call, imaginary);
}

/* Writes src != 0 to dst, by applying logical_not twice. */
static int32_t copy_truth(norch_tensor *dst, const norch_tensor *src) {
    for (int i = 0; i < 2; i++) {
        const norch_tensor *operands[] = {dst, i ? dst : src};
        nr_plan plan;
        nr_plan_make(&plan, dst->ndim, dst->shape, 2, operands);
        NR_TRY(nr_run(NR_POINTWISE, NR_OP_logical_not, &plan, (double)dst->numel, operands[1]));
    }
    return NORCH_OK;
}

static int32_t copy_complex(norch_tensor *dst, const norch_tensor *src) {
    if (!nr_same_device(dst, src) && nr_is_complex(src->dtype)) { /* a 0-d tensor of the CPU */
        norch_tensor borrowed = *src;
        borrowed.references = 1; /* this thread's header: its count is not shared */
        NR_OWNED norch_tensor *there = norch_to_device(&borrowed, dst->device_type, dst->device_index, false);
        return there ? copy_complex(dst, there) : norch_last_error_kind();
    }
    if (nr_is_complex(dst->dtype) && nr_is_complex(src->dtype)) {
        NR_OWNED norch_tensor *to = norch_view_as_real(dst), *from = to ? norch_view_as_real(src) : NULL;
        return from ? nr_copy_into(to, from) : norch_last_error_kind();
    }
    if (dst->dtype == NORCH_BOOL) return copy_truth(dst, src);
    if (!nr_is_complex(dst->dtype))
        return nr_fail(NORCH_ERROR_DTYPE, "to: %s cannot hold the imaginary parts of %s; take .real or .abs()",
                       nr_dtypes[dst->dtype].name, nr_dtypes[src->dtype].name);
    NR_TRY(make_real(dst));
    NR_OWNED norch_tensor *real = nr_part(dst, 0);
    return real ? nr_copy_into(real, src) : norch_last_error_kind();
}

/* ---- the copy that all other functions use ------------------------------------------------------- */

int32_t nr_copy_into(norch_tensor *dst, const norch_tensor *src) {
    if (dst->numel == 0) return NORCH_OK;
    if (nr_is_complex(dst->dtype) || nr_is_complex(src->dtype)) return copy_complex(dst, src);
    nr_plan plan;
    int32_t from_dtype = src->dtype;
    void (*load)(const nr_call *) = NULL;
    nr_plan_make(&plan, dst->ndim, dst->shape, 2, (const norch_tensor *[]){dst, src});
    if (src->device_type != dst->device_type && src->device_type == NORCH_CPU) { /* 0-d: the plan carries its value */
        nr_plan_number(&plan, 1, src);
        load = load_source;
        from_dtype = dst->dtype;
        for (int32_t d = 0; d < plan.ndim; d++) plan.stride[1][d] = 0;
    }
    bool dense = plan.ndim == 1 && from_dtype == dst->dtype && plan.stride[1][0] == nr_size_of(from_dtype);
    nr_call call = {.family = NR_COPY, .dtype = dst->dtype, .from_dtype = from_dtype, .plan = &plan, .load = load};
    call.work = (double)plan.numel * (dense ? 0.2 * (double)nr_size_of(from_dtype) : 2.0);
    return nr_dispatch(&call, dst);
}

/* A dense copy of x in a dtype, C-ordered or (preserve) with the memory layout of x; the caller has checked x. */
static norch_tensor *copied(const norch_tensor *x, int32_t dtype, bool preserve) {
    norch_tensor *y = preserve ? nr_make_like(x, dtype) : nr_make(x->ndim, x->shape, dtype, x);
    return y ? nr_finished(y, nr_copy_into(y, x)) : NULL;
}

norch_tensor *norch_clone(const norch_tensor *x) {
    if (nr_check_tensor("clone", x)) return NULL;
    return copied(x, x->dtype, false);
}

norch_tensor *norch_contiguous(norch_tensor *x) {
    if (nr_check_tensor("contiguous", x)) return NULL;
    return x->contiguous ? norch_retain(x) : copied(x, x->dtype, false);
}

norch_tensor *norch_cast(const norch_tensor *x, int64_t dtype) {
    if (nr_check_tensor("to", x) || nr_check_dtype("to", dtype)) return NULL;
    if (nr_check_stored("to", x, (int32_t)dtype)) return NULL;
    return copied(x, (int32_t)dtype, true);
}

norch_tensor *nr_dense(const norch_tensor *x, int32_t dtype) {
    return x->contiguous && x->dtype == dtype ? nr_retained(x) : copied(x, dtype, false);
}

int32_t nr_make_dense(int n, const norch_tensor **xs, norch_tensor **copies) {
    for (int i = 0; i < n; i++) {
        copies[i] = NULL;
        if (!xs[i] || xs[i]->contiguous) continue;
        xs[i] = copies[i] = copied(xs[i], xs[i]->dtype, false);
        if (xs[i]) continue;
        nr_release_all(i, copies);
        return norch_last_error_kind();
    }
    return NORCH_OK;
}

void nr_release_all(int n, norch_tensor *const *xs) {
    for (int i = 0; i < n; i++) nr_release(xs[i]);
}

norch_tensor *nr_widened(const norch_tensor *x) {
    return nr_is_narrow(x->dtype) ? copied(x, nr_wide(x->dtype), false) : nr_retained(x);
}

norch_tensor *nr_widened_as_laid(const norch_tensor *x) {
    return nr_is_narrow(x->dtype) ? copied(x, nr_wide(x->dtype), true) : nr_retained(x);
}

bool nr_needs_widening(const norch_tensor *x, nr_family family) {
    return nr_is_narrow(x->dtype) && !(x->storage->backend->takes_narrow[family] >> x->dtype & 1);
}

norch_tensor *nr_narrowed(norch_tensor *x, int32_t dtype) {
    if (!x || x->dtype == dtype) return x;
    norch_tensor *narrow = copied(x, dtype, false);
    nr_release(x);
    return narrow;
}

static int32_t check_broadcast(const char *op, const norch_tensor *dst, const norch_tensor *src) {
    int32_t lead = dst->ndim - src->ndim;
    bool fits = true;
    for (int32_t d = 0; d < src->ndim && fits; d++)
        fits = src->shape[d] == 1 || (d + lead >= 0 && src->shape[d] == dst->shape[d + lead]);
    if (fits && lead >= 0) return NORCH_OK;
    return nr_fail(NORCH_ERROR_SHAPE, "%s: shape %s does not broadcast to %s", op, nr_shape_of(src), nr_shape_of(dst));
}

int32_t norch_copy(norch_tensor *dst, const norch_tensor *src) {
    NR_TRY(nr_check_tensor("copy_", dst));
    NR_TRY(nr_check_tensor("copy_", src));
    NR_TRY(nr_check_stored("copy_", src, dst->dtype));
    NR_TRY(check_broadcast("copy_", dst, src));
    if (dst->numel == 0) return NORCH_OK;
    NR_TRY(nr_check_writable("copy_", dst));
    if (norch_is_same(dst, src)) return NORCH_OK;

    NR_OWNED norch_tensor *owned = NULL; /* a copy of src, if src overlaps dst or is on another device */
    bool across = !nr_same_device(dst, src);
    if (across && !nr_is_anywhere(src)) {
        norch_tensor borrowed = *src;
        borrowed.references = 1; /* this thread's header: its count is not shared */
        owned = norch_to_device(&borrowed, dst->device_type, dst->device_index, 0);
    } else if (norch_overlaps(dst, src)) {
        owned = copied(src, src->dtype, false);
    } else {
        return nr_copy_into(dst, src);
    }
    return owned ? nr_copy_into(dst, owned) : norch_last_error_kind();
}

/* ---- devices ------------------------------------------------------------------------------------- */

norch_tensor *norch_to_device(norch_tensor *x, int64_t device_type, int64_t device_index, bool non_blocking) {
    if (nr_check_tensor("to", x)) return NULL;
    if (x->device_type == device_type && x->device_index == device_index) return norch_retain(x);
    if (x->device_type == NORCH_META)
        return NR_REFUSE(NORCH_ERROR_META, "to: Cannot copy out of meta tensor; no data! Module.to_empty() or "
                                           "load_state_dict(assign=True) gives it elements");
    if (device_type == NORCH_META) {
        norch_tensor *meta = norch_empty(x->ndim, x->shape, x->dtype, device_type, device_index);
        if (meta) nr_preserve_strides(meta, x);
        return meta;
    }
    NR_OWNED norch_tensor *dense = norch_contiguous(x);
    norch_tensor *y = dense ? norch_empty(x->ndim, x->shape, x->dtype, device_type, device_index) : NULL;
    if (!y) return NULL;
    const size_t bytes = (size_t)(x->numel * nr_size_of(x->dtype));
    const nr_backend *from = x->storage->backend, *to = y->storage->backend;
    void *host = NULL; /* between two devices: bytes pass through the host */
    int32_t status = NORCH_OK;
    if (bytes == 0) {
        status = NORCH_OK;
    } else if (from->device_type == NORCH_CPU) {
        status = nr_transfer_from_host(to, y->data, dense->data, bytes, non_blocking);
        if (non_blocking && dense->storage->release == to->device->unpin)
            to->device->reads_pinned(to, dense->storage->context);
    } else if (to->device_type == NORCH_CPU) {
        status = nr_transfer_to_host(from, y->data, dense->data, bytes);
    } else if (!(host = nr_malloc(bytes))) {
        status = nr_fail(NORCH_ERROR_MEMORY, "to: out of memory for %zu bytes", bytes);
    } else {
        status = nr_transfer_to_host(from, host, dense->data, bytes);
        if (status == NORCH_OK) status = nr_transfer_from_host(to, y->data, host, bytes, false);
    }
    nr_free(host);
    return nr_finished(y, status);
}
