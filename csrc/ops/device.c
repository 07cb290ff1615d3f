/* device: the count, properties, memory, streams and events of devices, from the backend; the CPU supports only count
 * and synchronize. */
#include <string.h>

#include "../core/device.h"
#include "../core/observer.h"
#include "../core/transfer.h"
#include "ops.h"

int64_t norch_device_count(int64_t type) {
    const nr_device_type *devices = nr_device_type_find(type);
    return devices ? devices->count() : -1;
}

static const nr_backend *find(const char *op, int64_t type, int64_t index) {
    const nr_backend *backend = nr_backend_find(type, index);
    if (!backend || backend->device) return backend;
    return NR_REFUSE(NORCH_ERROR_DEVICE, "%s: not supported on %s", op, backend->name);
}

int32_t norch_device_properties(int64_t type, int64_t index, char *name, int64_t capacity, int64_t *values) {
    const nr_backend *backend = find("properties", type, index);
    return backend ? backend->device->properties(backend, name, (size_t)capacity, values) : NORCH_ERROR_DEVICE;
}

int32_t norch_set_nvrtc(const char *libraries) {
    if (*nr_nvrtc) return NORCH_OK;
    const size_t length = strlen(libraries);
    if (length >= sizeof nr_nvrtc) return nr_fail(NORCH_ERROR_VALUE, "nvrtc: %zu bytes of paths are too many", length);
    memcpy(nr_nvrtc, libraries, length + 1);
    return NORCH_OK;
}

int64_t norch_device_chain(int64_t type, int64_t index, int64_t number, char *text, int64_t capacity) {
    const nr_backend *backend = find("chain", type, index);
    return backend ? backend->device->chain_text(backend, number, text, capacity) : -1;
}

int32_t norch_device_memory(int64_t type, int64_t index, int64_t *values) {
    const nr_backend *backend = find("memory", type, index);
    return backend ? backend->device->memory(backend, values) : NORCH_ERROR_DEVICE;
}

int32_t norch_device_reset_peak(int64_t type, int64_t index) {
    const nr_backend *backend = find("reset_peak", type, index);
    return backend ? backend->device->reset_peak(backend) : NORCH_ERROR_DEVICE;
}

int32_t norch_device_empty_cache(int64_t type, int64_t index) {
    const nr_backend *backend = find("empty_cache", type, index);
    return backend ? backend->device->empty_cache(backend) : NORCH_ERROR_DEVICE;
}

int32_t norch_device_synchronize(int64_t type, int64_t index) {
    const nr_backend *backend = nr_backend_find(type, index);
    return backend ? nr_transfer_synchronize(backend) : NORCH_ERROR_DEVICE;
}

int32_t norch_device_stream(int64_t type, int64_t index, int64_t action, int64_t *stream, double *value) {
    const nr_backend *backend = find("stream", type, index);
    if (!backend) return NORCH_ERROR_DEVICE;
    if (action == NR_STREAM_USE) NR_TRY(nr_note_unseen("another stream is chosen"));
    if (action == NR_STREAM_WAIT) return nr_transfer_wait_for(backend, NULL, *stream);
    return backend->device->stream(backend, (int32_t)action, stream, value);
}

int32_t norch_device_event(int64_t type, int64_t index, int64_t action, int64_t stream, void *event, void *other,
                           double *value) {
    const nr_backend *backend = find("event", type, index);
    if (!backend) return NORCH_ERROR_DEVICE;
    if (action == NR_EVENT_HOLD) NR_TRY(nr_note_unseen("a stream waits for an event"));
    if (action == NR_EVENT_WAIT) return nr_transfer_wait_for(backend, event, stream);
    return backend->device->event(backend, (int32_t)action, stream, event, other, value);
}

int32_t norch_record_stream(const norch_tensor *x, int64_t stream) {
    if (nr_check_tensor("record_stream", x)) return norch_last_error_kind();
    const norch_storage *storage = x->storage;
    const nr_backend *backend = find("record_stream", x->device_type, x->device_index);
    if (!backend) return NORCH_ERROR_DEVICE;
    return storage->release ? NORCH_OK : backend->device->uses(backend, storage->data, stream);
}

/* Frees pinned memory, and identifies it: a storage with this release function is pinned. Only one plugin can be
 * loaded. */
static void (*_Atomic unpin)(void *);

bool norch_is_pinned(const norch_tensor *x) {
    if (nr_check_tensor("is_pinned", x)) return 0;
    return x->storage->release && x->storage->release == unpin;
}

norch_tensor *norch_pin(const norch_tensor *x, int64_t type, int64_t index) {
    const nr_backend *backend = nr_check_tensor("pin_memory", x) ? NULL : find("pin_memory", type, index);
    if (!backend) return NULL;
    if (x->device_type != NORCH_CPU)
        return NR_REFUSE(NORCH_ERROR_DEVICE, "pin_memory: only tensors on the CPU can be pinned, not those on %s",
                         nr_device_name(x));
    int64_t strides[NORCH_MAX_DIMS];
    nr_fill_strides(x->ndim, x->shape, strides);
    void *memory, *block = backend->device->pinned(backend, (size_t)(x->numel * nr_size_of(x->dtype)), &memory);
    if (!block) return NULL;
    void (*free)(void *) = backend->device->unpin;
    unpin = free;
    norch_tensor *y = norch_from_memory(memory, x->ndim, x->shape, strides, x->dtype, *(void **)(void *)&free, block);
    if (!y) {
        free(block);
        return NULL;
    }
    return nr_finished(y, nr_copy_into(y, x));
}
