/* storage: see storage.h. */
#include "storage.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "call.h"

static _Atomic int64_t live_storages, live_bytes;
static _Atomic int64_t failing_allocation = -1; /* counts down to the one that fails */
static _Atomic int64_t counted_allocations;
static _Atomic bool watching;

int64_t norch_live_storages(void) { return live_storages; }

int64_t norch_live_bytes(void) { return live_bytes; }

int64_t norch_fail_allocation(int64_t n) {
    failing_allocation = n;
    watching = true;
    return atomic_exchange(&counted_allocations, 0);
}

bool nr_allocation_fails(void) {
    if (!atomic_load_explicit(&watching, memory_order_relaxed)) return false;
    counted_allocations++;
    if (failing_allocation < 0) return false;
    return failing_allocation-- == 0;
}

void *nr_malloc(size_t n) { return nr_allocation_fails() ? NULL : malloc(n ? n : 1); }

void nr_free(void *memory) { free(memory); }

norch_storage *nr_storage_make(const nr_backend *backend, size_t bytes) {
    void *data = nr_gate_alloc(backend, bytes);
    if (!data) return NULL;
    norch_storage *storage = nr_storage_wrap(data, bytes, backend, NULL, NULL);
    if (!storage) nr_gate_free(backend, data, bytes);
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
    storage->next = NULL;
    atomic_fetch_add_explicit(&live_storages, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&live_bytes, (int64_t)bytes, memory_order_relaxed);
    return storage;
}

void nr_storage_release(norch_storage *storage) {
    if (atomic_fetch_sub_explicit(&storage->references, 1, memory_order_acq_rel) != 1) return;
    if (storage->release)
        storage->release(storage->context);
    else
        nr_gate_free(storage->backend, storage->data, storage->bytes);
    atomic_fetch_sub_explicit(&live_storages, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&live_bytes, (int64_t)storage->bytes, memory_order_relaxed);
    nr_free(storage);
}
