/* storage: a reference-counted block of memory on one device, which tensors and their views share. */
#ifndef NR_STORAGE_H
#define NR_STORAGE_H

#include <stdatomic.h>

#include "backend.h"

struct norch_storage {
    _Atomic int64_t references;
    void *data;
    size_t bytes;
    const nr_backend *backend;
    void (*release)(void *context); /* frees memory that is not the backend's, after the last reference; or NULL */
    void *context;
    struct nr_observer *observer; /* the one that was active when it was made; NULL: none, or it has ended */
    _Atomic int64_t writes;       /* how often calls have written to it while it is watched (program/packed.h) */
    _Atomic bool exposed;         /* its address is known outside the library, where writes cannot be noticed */
};

norch_storage *nr_storage_make(const nr_backend *backend, uint64_t bytes);
norch_storage *nr_storage_wrap(void *data, size_t bytes, const nr_backend *backend, void (*release)(void *),
                               void *context);
norch_storage *nr_storage_retain(norch_storage *storage);
void nr_storage_release(norch_storage *storage);
/* Releases memory that is not the backend's, and then calls end(storage). */
void nr_release_owner(norch_storage *storage, void (*end)(norch_storage *));
/* Must be called wherever the address of elements leaves the library: its owner may write to them unnoticed. */
static inline void nr_storage_expose(norch_storage *storage) {
    atomic_store_explicit(&storage->exposed, true, memory_order_relaxed);
}

#endif
