/* storage: reference-counted bytes on one device. Every byte that a tensor sees lives in one. */
#ifndef NR_STORAGE_H
#define NR_STORAGE_H

#include "backend.h"

struct norch_storage {
    _Atomic int64_t references;
    void *data;
    size_t bytes;
    const nr_backend *backend;
    void (*release)(void *context); /* memory of somebody else: told when it is no longer seen */
    void *context;
    norch_storage *next; /* while it waits in call.c; NULL when it does not */
};

/* Memory of the library itself; every allocation passes here, so that tests can make any one fail. */
void *nr_malloc(size_t n);
void nr_free(void *memory);
/* True when a test wants this allocation to fail; counts it. */
bool nr_allocation_fails(void);

norch_storage *nr_storage_make(const nr_backend *backend, size_t bytes);
norch_storage *nr_storage_wrap(void *data, size_t bytes, const nr_backend *backend, void (*release)(void *),
                               void *context);
void nr_storage_release(norch_storage *storage);

#endif
