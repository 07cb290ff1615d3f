/* call: see call.h. */
#include "call.h"

#include "python.h"

/* Work that is worth the two switches of the GIL, in nanoseconds of one core. */
#define LONG_WORK 50e3

int32_t nr_gate(nr_call *call, const norch_tensor *where) {
    const nr_backend *backend = where->storage->backend;
    if (call->family == NR_POINTWISE || call->family == NR_REDUCTION) {
        call->kernel = backend->kernels[call->op][call->dtype];
        if (!call->kernel)
            return nr_fail(NORCH_ERROR_DTYPE, "%s: no %s kernel for dtype %s", nr_ops[call->op].name, backend->name,
                           nr_dtypes[call->dtype].name);
    }
    if (call->work < LONG_WORK) return backend->run[call->family](call);
    void *thread = nr_python_unlock();
    int32_t status = backend->run[call->family](call);
    nr_python_lock(thread);
    if (status != NORCH_OK && thread)
        nr_python_raise(status, norch_last_error()); /* it could not be raised out there */
    return status;
}

void *nr_gate_alloc(const nr_backend *backend, size_t bytes) {
    void *memory = nr_allocation_fails() ? NULL : backend->alloc(bytes);
    if (!memory) nr_fail(NORCH_ERROR_MEMORY, "out of memory for %zu bytes on %s", bytes, backend->name);
    return memory;
}

void nr_gate_free(const nr_backend *backend, void *memory, size_t bytes) { backend->free(memory, bytes); }
