/* call: see call.h. */
#include "call.h"

#include <pthread.h>

#include "python.h"

/* Work that is worth the two switches of the GIL, in nanoseconds of one core. */
#define LONG_WORK 50e3

/* Calls that run without the GIL, and the storages that wait for them to end: a chain that ends in itself. Both belong to
 * whoever has the GIL. */
static int64_t calls_outside;
static norch_storage *waiting;

/* The child of a fork has not the threads whose calls these were. What waits goes when its next one ends. */
static void forget_calls(void) { calls_outside = 0; }

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, forget_calls); }

static void *leave(void) {
    if (nr_python_class) calls_outside++;
    return nr_python_unlock();
}

/* The CPU's own bytes are not worth the switches. */
static void *leave_for(const nr_backend *backend) { return backend->device ? leave() : NULL; }

void nr_gate_release(norch_storage *storage) {
    if (calls_outside == 0 || storage->next) { /* one that waits is kept by that */
        nr_storage_release(storage);
        return;
    }
    storage->next = waiting ? waiting : storage;
    waiting = storage;
}

static void release_waiting(void) {
    while (waiting) {
        norch_storage *first = waiting, *next = first->next;
        waiting = next == first ? NULL : next;
        first->next = NULL;
        nr_storage_release(first);
    }
}

/* After work done without the GIL: takes it back, and raises what could not be raised out there. */
static int32_t back(void *thread, int32_t status) {
    nr_python_lock(thread);
    if (thread && --calls_outside == 0) release_waiting();
    if (status != NORCH_OK && thread) nr_python_raise(status, norch_last_error());
    return status;
}

int32_t nr_gate(nr_call *call, const norch_tensor *where) {
    const nr_backend *backend = call->backend = where->storage->backend;
    if (!backend->run[call->family])
        return nr_fail(NORCH_ERROR_DEVICE, "this operation has no kernels on %s; move its inputs with .cpu()",
                       backend->name);
    const bool by_row = call->family == NR_POINTWISE || call->family == NR_REDUCTION;
    if (by_row || (call->family == NR_MATMUL && call->op != NR_NO_OP)) {
        call->kernel = backend->kernels[call->op][call->dtype];
        if (!call->kernel)
            return nr_fail(NORCH_ERROR_DTYPE, "%s: no %s kernel for dtype %s", nr_ops[call->op].name, backend->name,
                           nr_dtypes[call->dtype].name);
    }
    /* A device takes the call and returns before it is done: not worth the switches. */
    if (call->work < LONG_WORK || backend->device) return backend->run[call->family](call);
    void *thread = leave();
    return back(thread, backend->run[call->family](call));
}

int32_t nr_gate_to_host(const nr_backend *backend, void *host, const void *device, size_t bytes) {
    void *thread = leave_for(backend);
    return back(thread, backend->to_host(backend, host, device, bytes));
}

int32_t nr_gate_from_host(const nr_backend *backend, void *device, const void *host, size_t bytes, bool later) {
    void *thread = leave_for(backend);
    return back(thread, backend->from_host(backend, device, host, bytes, later));
}

int32_t nr_gate_synchronize(const nr_backend *backend) {
    void *thread = leave_for(backend);
    return back(thread, backend->synchronize(backend));
}

void *nr_gate_alloc(const nr_backend *backend, size_t bytes) {
    bool refused = nr_allocation_fails();
    void *memory = refused ? NULL : backend->alloc(backend, bytes);
    if (!memory && (refused || !backend->device))
        nr_fail(NORCH_ERROR_MEMORY, "out of memory for %zu bytes on %s", bytes, backend->name);
    return memory;
}

void nr_gate_free(const nr_backend *backend, void *memory, size_t bytes) { backend->free(backend, memory, bytes); }
