/* tensor: makes, retains, releases and compares tensors, which are headers (shape, strides, dtype) over storages. */
#ifndef NR_TENSOR_H
#define NR_TENSOR_H

#include "error.h"
#include "shape.h"
#include "storage.h"

/* A new C-ordered tensor, uninitialized, on the device of `where` (NULL: CPU); NULL if there is no memory. */
norch_tensor *nr_make(int32_t ndim, const int64_t *shape, int32_t dtype, const norch_tensor *where);
/* The same, but checks the shape, dtype and device first. */
norch_tensor *nr_make_on(const char *op, int64_t ndim, const int64_t *shape, int64_t dtype, int64_t device_type,
                         int64_t device_index);
/* A new uninitialized tensor with the shape and device of x, and its strides if x is dense. */
norch_tensor *nr_make_like(const norch_tensor *x, int32_t dtype);
/* Sets the strides of `out`, a new tensor in the shape of x, to those of x if x is dense but not C-ordered (a
 * transpose). */
void nr_preserve_strides(norch_tensor *out, const norch_tensor *x);
/* A new header over the storage of x, `shift` elements further. Checks nothing. */
norch_tensor *nr_make_view(const norch_tensor *x, int32_t ndim, const int64_t *shape, const int64_t *strides,
                           int64_t shift);
/* A tensor over a storage's memory from data on, whose elements are inside this memory according to nr_lies_in(). */
norch_tensor *nr_view_memory(norch_storage *storage, const void *data, int64_t ndim, const int64_t *shape,
                             const int64_t *strides, int32_t dtype);
bool nr_lies_in(const norch_storage *storage, const void *data, int32_t dtype);
/* A tensor over the caller's memory, which the backend can read; strides count elements. release(context) is called
 * when the storage is freed. The caller has checked the shape and dtype. */
norch_tensor *nr_wrap_memory(const char *op, const nr_backend *backend, void *data, int64_t ndim, const int64_t *shape,
                             const int64_t *strides, int32_t dtype, void (*release)(void *), void *context);
static inline bool nr_same_device(const norch_tensor *a, const norch_tensor *b) {
    return a->device_type == b->device_type && a->device_index == b->device_index;
}
/* Whether x, a 0-d CPU tensor, may be combined with tensors on any device. */
static inline bool nr_is_anywhere(const norch_tensor *x) { return x->ndim == 0 && x->device_type == NORCH_CPU; }
static inline const char *nr_device_name(const norch_tensor *x) { return x->storage ? x->storage->backend->name : ""; }

#define nr_release norch_release
/* x with one more reference, for functions that return x itself or a copy of it. */
static inline norch_tensor *nr_retained(const norch_tensor *x) { return norch_retain((norch_tensor *)(uintptr_t)x); }

/* Returns x if the work on it succeeded; otherwise releases x and returns NULL. */
static inline norch_tensor *nr_finished(norch_tensor *x, int32_t status) {
    if (x && status == NORCH_OK) return x;
    nr_release(x);
    return NULL;
}

/* Before the declaration of local variables: calls nr_release() at the end of their block. NR_AT_END(f) calls f on
 * their addresses. */
#define NR_AT_END(f) __attribute__((cleanup(f)))
#define NR_OWNED NR_AT_END(nr_release_local)
static inline void nr_release_local(norch_tensor **x) { nr_release(*x); }

/* How often norch_set_data() has replaced the header of an existing tensor. */
extern int64_t nr_headers_replaced;

/* Releases what x holds, after its last reference. */
void nr_tensor_clear(norch_tensor *x);

#define nr_shape_of(x) nr_shape_text((x)->ndim, (x)->shape)

#endif
