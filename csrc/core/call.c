/* call: see call.h. */
#include "call.h"

/* Work that is worth the two switches of the GIL, in nanoseconds of one core. */
#define LONG_WORK 50e3

static void *(*save_thread)(void);
static void (*restore_thread)(void *);

void norch_set_gil(void *save, void *restore) {
    *(void **)&save_thread = save;
    *(void **)&restore_thread = restore;
}

int32_t nr_gate(nr_call *call, const norch_tensor *where) {
    const nr_backend *backend = where->storage->backend;
    if (call->family == NR_POINTWISE || call->family == NR_REDUCTION) {
        call->kernel = backend->kernels[call->op][call->dtype];
        if (!call->kernel)
            return nr_fail(NORCH_ERROR_DTYPE, "%s: no %s kernel for dtype %s", nr_ops[call->op].name, backend->name,
                           nr_dtypes[call->dtype].name);
    }
    if (call->work < LONG_WORK || !save_thread) return backend->run[call->family](call);
    void *thread = save_thread();
    int32_t status = backend->run[call->family](call);
    restore_thread(thread);
    return status;
}

void *nr_gate_alloc(const nr_backend *backend, size_t bytes) {
    void *memory = nr_allocation_fails() ? NULL : backend->alloc(bytes);
    if (!memory) nr_fail(NORCH_ERROR_MEMORY, "out of memory for %zu bytes on %s", bytes, backend->name);
    return memory;
}

void nr_gate_free(const nr_backend *backend, void *memory, size_t bytes) { backend->free(memory, bytes); }
