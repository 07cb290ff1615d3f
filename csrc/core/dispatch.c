/* dispatch: see dispatch.h. The lock of the interpreter is Python's GIL. */
#include "dispatch.h"

#include "check.h"
#include "interpreter.h"
#include "observer.h"
#include "platform.h"

/* Calls that run without the lock, and threads that wait for them to end. The lock protects both counts. */
static int64_t unlocked_calls, waiting;
static _Thread_local int64_t held; /* calls of this thread that an observer has interrupted to run Python */

/* The child of a fork has only the forking thread. */
static void forget_threads(void) {
    unlocked_calls = held;
    waiting = 0;
}

__attribute__((constructor)) static void watch_forks(void) { nr_at_fork(NULL, NULL, forget_threads); }

/* While a thread waits, new calls keep the lock; otherwise it might wait forever. */
void *nr_release_lock(void) {
    if (!nr_interpreter || waiting) return NULL;
    unlocked_calls++;
    return nr_interpreter->release_lock();
}

int32_t nr_acquire_lock(void *thread, int32_t status) {
    if (!thread) return status;
    nr_interpreter->acquire_lock(thread);
    unlocked_calls--;
    if (status != NORCH_OK && status != NR_RAISED) nr_interpreter->raise(status, norch_last_error());
    return status;
}

void nr_count_running(int32_t change) {
    if (!nr_interpreter) return;
    unlocked_calls += change;
    held += change;
}

bool nr_wait_for_calls(void) {
    if (held) return false;
    if (unlocked_calls == 0) return true;
    waiting++;
    while (unlocked_calls) {
        void *thread = nr_interpreter->release_lock();
        nr_rest();
        nr_interpreter->acquire_lock(thread);
    }
    waiting--;
    return true;
}

void (*nr_watch_call)(const nr_call *call);

static int32_t watched(const nr_call *call, int32_t status) {
    if (__builtin_expect(nr_watch_call != NULL, 0)) nr_watch_call(call);
    return status;
}

static int32_t run(const nr_call *call) {
    const nr_backend *backend = call->backend;
    if (call->load) call->load(call);
    /* A device only queues the call, and "meta" computes nothing, so the lock is kept. */
    if (call->work < NR_LONG_WORK || backend->device_type != NORCH_CPU)
        return watched(call, backend->run[call->family](call));
    void *thread = nr_release_lock();
    return watched(call, nr_acquire_lock(thread, backend->run[call->family](call)));
}

static int32_t run_observed(const nr_call *call, nr_observer *observer) {
    nr_count_running(1);
    int32_t status = observer->starts ? observer->starts(observer, call) : NORCH_OK;
    nr_count_running(-1);
    if (status != NORCH_OK) return status;
    status = run(call);
    nr_count_running(1);
    if (status == NORCH_OK)
        status = observer->call(observer, call);
    else
        observer->failed(observer);
    nr_count_running(-1);
    return status;
}

int32_t nr_dispatch(nr_call *call, const norch_tensor *where) {
    const nr_backend *backend = call->backend = where->storage->backend;
    if (!backend->run[call->family])
        return nr_fail(NORCH_ERROR_DEVICE, "this operation has no kernels on %s; move its inputs with .cpu()",
                       backend->name);
    const bool composed = call->family != NR_POINTWISE; /* complex results come from operations on real parts */
    if (composed && nr_is_complex(call->dtype))
        return nr_refuse_complex(call->name ? call->name : "this operation", call->dtype);
    const bool by_row = call->family == NR_POINTWISE || call->family == NR_REDUCTION;
    if (by_row || (call->family == NR_MATMUL && call->op != NR_NO_OP)) {
        call->kernel = backend->kernels[call->op][call->dtype];
        if (!call->kernel)
            return nr_fail(NORCH_ERROR_DTYPE, "%s: no %s kernel for dtype %s", nr_ops[call->op].name, backend->name,
                           nr_dtypes[call->dtype].name);
    }
    nr_observer *observer = nr_observing();
    if (observer) return run_observed(call, observer);
    return run(call);
}
