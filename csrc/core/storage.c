/* storage: see storage.h. All memory of tensors is allocated and freed here. */
#include "storage.h"

#include <stdatomic.h>

#include "error.h"
#include "memory.h"
#include "observer.h"

static _Atomic int64_t live_storages, live_bytes;

int64_t norch_live_storages(void) { return live_storages; }

int64_t norch_live_bytes(void) { return live_bytes; }

static void *allocate(const nr_backend *backend, uint64_t bytes) {
    bool refused = bytes > SIZE_MAX / 2 /* if addresses have 32 bits */ || nr_allocation_fails();
    void *memory = refused ? NULL : backend->alloc(backend, (size_t)bytes);
    if (!memory && (refused || !backend->device)) /* a device sets the error itself */
        nr_fail(NORCH_ERROR_MEMORY, "out of memory for %llu bytes on %s", (unsigned long long)bytes, backend->name);
    return memory;
}

static int64_t held_bytes(const norch_storage *storage) {
    return storage->backend->device_type == NORCH_META ? 0 : (int64_t)storage->bytes;
}

norch_storage *nr_storage_make(const nr_backend *backend, uint64_t bytes) {
    void *data = allocate(backend, bytes);
    if (!data) return NULL;
    norch_storage *storage = nr_storage_wrap(data, (size_t)bytes, backend, NULL, NULL);
    if (!storage) backend->free(backend, data, (size_t)bytes);
    return storage;
}

norch_storage *nr_storage_wrap(void *data, size_t bytes, const nr_backend *backend, void (*release)(void *),
                               void *context) {
    norch_storage *storage = nr_malloc(sizeof *storage);
    if (!storage) return NR_REFUSE(NORCH_ERROR_MEMORY, "out of memory for %zu bytes", sizeof *storage);
    atomic_init(&storage->references, 1);
    storage->data = data;
    storage->bytes = bytes;
    storage->backend = backend;
    storage->release = release;
    storage->context = context;
    storage->observer = nr_observing();
    atomic_init(&storage->writes, 0);
    atomic_init(&storage->exposed, release != NULL);
    atomic_fetch_add_explicit(&live_storages, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&live_bytes, held_bytes(storage), memory_order_relaxed);
    if (storage->observer) storage->observer->created(storage->observer, storage);
    return storage;
}

norch_storage *nr_storage_retain(norch_storage *storage) {
    atomic_fetch_add_explicit(&storage->references, 1, memory_order_relaxed);
    return storage;
}

static void end(norch_storage *storage) {
    atomic_fetch_sub_explicit(&live_storages, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&live_bytes, held_bytes(storage), memory_order_relaxed);
    nr_free(storage);
}

void nr_storage_release(norch_storage *storage) {
    if (atomic_fetch_sub_explicit(&storage->references, 1, memory_order_acq_rel) != 1) return;
    if (storage->observer) storage->observer->freed(storage->observer, storage);
    if (storage->release) {
        nr_release_owner(storage, end);
        return;
    }
    storage->backend->free(storage->backend, storage->data, storage->bytes);
    end(storage);
}
