/* transfer: see transfer.h. */
#include "transfer.h"

#include "device.h"
#include "dispatch.h"
#include "observer.h"

/* Copies on the CPU are too short to be worth it. */
static void *release_lock_for(const nr_backend *backend) { return backend->device ? nr_release_lock() : NULL; }

static int32_t note_start(void) {
    nr_observer *observer = nr_observing();
    if (!observer || !observer->starts) return NORCH_OK;
    nr_count_running(1);
    const int32_t status = observer->starts(observer, NULL);
    nr_count_running(-1);
    return status;
}

static int32_t note_end(int32_t status, const nr_backend *backend, size_t bytes, bool to_host) {
    nr_observer *observer = nr_observing();
    if (!observer || !observer->moved) return status;
    nr_count_running(1);
    observer->moved(observer, backend, bytes, to_host);
    nr_count_running(-1);
    return status;
}

int32_t nr_transfer_to_host(const nr_backend *backend, void *host, const void *device, size_t bytes) {
    NR_TRY(nr_note_unseen("Python reads the elements of a tensor"));
    NR_TRY(note_start());
    void *thread = release_lock_for(backend);
    const int32_t status = nr_acquire_lock(thread, backend->to_host(backend, host, device, bytes));
    return note_end(status, backend, bytes, true);
}

int32_t nr_transfer_from_host(const nr_backend *backend, void *device, const void *host, size_t bytes,
                              bool non_blocking) {
    NR_TRY(nr_note_unseen("elements are copied from the host to a device"));
    NR_TRY(note_start());
    void *thread = release_lock_for(backend);
    const int32_t status = nr_acquire_lock(thread, backend->from_host(backend, device, host, bytes, non_blocking));
    return note_end(status, backend, bytes, false);
}

int32_t nr_transfer_synchronize(const nr_backend *backend) {
    void *thread = release_lock_for(backend);
    return nr_acquire_lock(thread, backend->synchronize(backend));
}

int32_t nr_transfer_wait_for(const nr_backend *backend, void **event, int64_t stream) {
    const nr_device *device = backend->device;
    void *thread = nr_release_lock();
    return nr_acquire_lock(thread, event ? device->event(backend, NR_EVENT_WAIT, stream, event, NULL, NULL)
                                         : device->stream(backend, NR_STREAM_WAIT, &stream, NULL));
}
