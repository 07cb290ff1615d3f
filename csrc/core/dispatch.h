/* dispatch: the only way to a kernel (PyTorch calls it the dispatcher).
 *
 * It finds the kernel, releases the interpreter's lock around long work, and runs the kernel. Code that must see every
 * call (to capture, count or trace) belongs here. */
#ifndef NR_DISPATCH_H
#define NR_DISPATCH_H

#include "tensor.h"

/* Calls that take more nanoseconds on one core release the lock; for shorter ones that costs more than it gains. `make
 * sanitize` sets -1, so that every call releases it. */
#ifndef NR_LONG_WORK
#define NR_LONG_WORK 50e3
#endif

/* Runs the call on the device of `where`. */
int32_t nr_dispatch(nr_call *call, const norch_tensor *where);
/* The usual call of a family: it computes in the dtype of `where`. work: see nr_call. */
static inline int32_t nr_run(nr_family family, int op, const void *plan, double work, const norch_tensor *where) {
    nr_call call = {.family = family, .op = op, .dtype = where->dtype, .work = work, .plan = plan};
    return nr_dispatch(&call, where);
}
/* NULL, or called after each call, even a failed one: it may have written to watched memory (program/packed.h). */
extern void (*nr_watch_call)(const nr_call *call);
/* Waits until no call is running without the lock. norch_set_data() needs it: running calls read the header that it
 * replaces, and the storage that it releases. False if this thread itself is in the middle of a call. */
bool nr_wait_for_calls(void);
/* Counts a call of this thread as running: 1 before Python runs in the middle of it (and may switch threads), -1
 * after. */
void nr_count_running(int32_t change);
/* Releases the interpreter's lock, so that other threads can run Python; NULL if it is kept. */
void *nr_release_lock(void);
/* Takes back the lock that nr_release_lock() released (NULL: it was kept), raises a failure that was deferred until
 * then, and returns status. */
int32_t nr_acquire_lock(void *thread, int32_t status);

#endif
