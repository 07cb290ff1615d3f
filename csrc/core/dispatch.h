/* dispatch: the only way to a kernel (PyTorch calls it the dispatcher).
 *
 * It finds the kernel, releases the interpreter's lock around long work, and runs the kernel. Code that has to see
 * every call (to capture, count or trace) belongs here. */
#ifndef NR_DISPATCH_H
#define NR_DISPATCH_H

#include "tensor.h"

/* Runs the call on the device of `where`. */
int32_t nr_dispatch(nr_call *call, const norch_tensor *where);
/* The call that most families make: it computes on the dtype of `where`. work: see nr_call. */
static inline int32_t nr_run(nr_family family, int op, const void *plan, double work, const norch_tensor *where) {
    nr_call call = {.family = family, .op = op, .dtype = where->dtype, .work = work, .plan = plan};
    return nr_dispatch(&call, where);
}
/* Runs body(program), which repeats calls that were dispatched before; long work releases the lock once for all. */
int32_t nr_dispatch_program(const nr_backend *backend, double work, int32_t (*body)(void *program), void *program);
/* NULL, or called after each call, also one that failed, and after each program: it may have written to memory that is
 * watched (program/packed.h). */
extern void (*nr_watch_call)(const nr_call *call);
extern void (*nr_watch_program)(const void *program);
/* Waits until no call is running without the lock. norch_set_data() needs it: running calls read the header that it
 * replaces, and the storage that it releases. False if this thread itself is in the middle of a call. */
bool nr_wait_for_calls(void);
/* Counts a call of this thread as running: 1 before Python runs in the middle of it (and may switch threads), -1
 * after. */
void nr_count_running(int32_t change);
/* Releases the interpreter's lock, so that other threads run it; NULL where it is kept. */
void *nr_release_lock(void);
/* Takes back the lock that nr_release_lock() released (NULL: it was kept), raises the failure that could not be
 * raised without it, and returns status. */
int32_t nr_acquire_lock(void *thread, int32_t status);

#endif
