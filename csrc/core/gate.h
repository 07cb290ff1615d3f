/* gate: dispatch, the only way to a kernel.
 *
 * It finds the kernel, releases the interpreter's lock around long work, and runs. Code that has to see every call (to
 * capture a graph, to count, to trace) belongs here and nowhere else. */
#ifndef NR_GATE_H
#define NR_GATE_H

#include "tensor.h"

/* Runs the call on the device of `where`. */
int32_t nr_gate(nr_call *call, const norch_tensor *where);
/* The call that most families make: it computes on the dtype of `where`. work: see nr_call. */
static inline int32_t nr_run(nr_family family, int op, const void *plan, double work, const norch_tensor *where) {
    nr_call call = {.family = family, .op = op, .dtype = where->dtype, .work = work, .plan = plan};
    return nr_gate(&call, where);
}
/* Runs body(program), which runs many calls that the gate has seen before; the lock is released once, if they are long work. */
int32_t nr_gate_program(const nr_backend *backend, double work, int32_t (*body)(void *program), void *program);
/* Waits until no call is halfway: before a living tensor gets another header, which calls read more than once, and releases its
 * storage. False where the caller itself runs in the middle of a call. */
bool nr_gate_wait(void);
/* 1, and -1 after it: Python runs in the middle of a call of this thread, and may switch to other threads. */
void nr_gate_hold(int32_t change);
/* Releases the interpreter's lock, so that other threads run it; NULL where it is kept. */
void *nr_gate_release_lock(void);
/* Takes the lock back that nr_gate_release_lock() released (NULL: it did not), and raises what could not be raised without
 * it; gives status. */
int32_t nr_gate_acquire_lock(void *thread, int32_t status);

#endif
