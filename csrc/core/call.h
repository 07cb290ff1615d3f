/* call: the gate, the only door to a kernel and to device memory.
 *
 * It finds the kernel, lets go of the GIL around long work, and runs. Whoever wants to see every call
 * (to record a graph, to count, to trace) stands here and nowhere else. */
#ifndef NR_CALL_H
#define NR_CALL_H

#include "tensor.h"

/* Runs the call on the device of `where`. */
int32_t nr_gate(nr_call *call, const norch_tensor *where);
/* The call that most families make: it computes on the dtype of `where`. work: see nr_call. */
static inline int32_t nr_run(nr_family family, int op, const void *plan, double work, const norch_tensor *where) {
    nr_call call = {.family = family, .op = op, .dtype = where->dtype, .work = work, .plan = plan};
    return nr_gate(&call, where);
}
/* The same for bytes on their way to and from a device: other Python threads may run meanwhile. */
int32_t nr_gate_to_host(const nr_backend *backend, void *host, const void *device, size_t bytes);
int32_t nr_gate_from_host(const nr_backend *backend, void *device, const void *host, size_t bytes, bool later);
int32_t nr_gate_synchronize(const nr_backend *backend);
/* Device memory. */
void *nr_gate_alloc(const nr_backend *backend, size_t bytes);
void nr_gate_free(const nr_backend *backend, void *memory, size_t bytes);
/* Lets go of the storage that a living tensor has had so far, which a kernel of another thread may still be at work on. */
void nr_gate_release(norch_storage *storage);

#endif
