/* threads: a pool of workers that share the chunks of one job at a time.
 *
 * An atomic counter hands out chunks, so that a late (or descheduled) worker delays nobody: others take its chunks. The
 * caller works too, and at the end waits only for workers that have joined the job. A second caller while a job runs
 * does all its work itself. After a fork the child starts without workers.
 *
 *   caller   write job, open it |  take chunks ...  | close it, wait until no worker is inside
 *   worker        look, sleep ..| join, take chunks ... leave |  look, sleep
 *
 * Both spin for a while before they sleep: in a training step the next job comes sooner than a sleeping thread
 * wakes.
 *
 * WebAssembly has one thread; other numbers have no effect. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "../core/platform.h"
#include "cpu.h"
#include "limits.h"

#define MAX_THREADS 256
#define SPIN 100000 /* nanoseconds of spinning before a sleep: waking takes up to 50,000 */

static int32_t wanted_threads; /* 0: not yet set */

#ifndef __wasm__
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_arrived = PTHREAD_COND_INITIALIZER;
static pthread_cond_t spares_wanted = PTHREAD_COND_INITIALIZER;
static pthread_cond_t worker_left = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t one_job = PTHREAD_MUTEX_INITIALIZER;

static int32_t started; /* workers alive */
static int32_t helpers; /* how many workers jobs use; the others sleep; changed under the lock */
static _Thread_local int32_t thread_index;
static _Thread_local uint64_t seen; /* the value of open_job for the last job of this worker */
static _Thread_local bool inside_job;

/* The current job; it is written only while open_job is 0 and no worker is inside. */
static struct {
    int64_t chunks;
    void (*body)(void *context, int64_t chunk);
    void *context;
    _Atomic int64_t next;
} job;

static uint64_t jobs; /* the number of jobs so far */
/* The job that workers may join: its number times MAX_THREADS, plus how many workers it uses. 0: none. */
static _Atomic uint64_t open_job;
static _Atomic int32_t inside; /* workers in the job */

static void take_chunks(void) {
    for (int64_t chunk; (chunk = atomic_fetch_add_explicit(&job.next, 1, memory_order_relaxed)) < job.chunks;)
        job.body(job.context, chunk);
}

/* ---- waiting ------------------------------------------------------------------------------------- */

static bool nobody_inside(void) { return inside == 0; }

static bool is_for_me(uint64_t number) { return number != seen && (uint64_t)thread_index <= number % MAX_THREADS; }

static bool is_new_job(void) { return is_for_me(open_job); }

static void spin_until(bool (*there)(void)) {
    const int64_t end = nr_nanoseconds() + SPIN;
    do {
        for (int i = 0; i < 16; i++) {
            if (there()) return;
#if defined(__x86_64__)
            __builtin_ia32_pause();
#elif defined(__aarch64__)
            __asm__ volatile("yield");
#endif
        }
        sched_yield(); /* the thread that this one waits for may need the core */
    } while (nr_nanoseconds() < end);
}

static void sleep_until_empty(void) {
    pthread_mutex_lock(&lock);
    while (!nobody_inside()) pthread_cond_wait(&worker_left, &lock);
    pthread_mutex_unlock(&lock);
}

static void sleep_until_job(void) {
    pthread_mutex_lock(&lock);
    while (!is_new_job()) pthread_cond_wait(thread_index <= helpers ? &work_arrived : &spares_wanted, &lock);
    pthread_mutex_unlock(&lock);
}

/* ---- workers ------------------------------------------------------------------------------------- */

static void leave(void) {
    if (atomic_fetch_sub(&inside, 1) > 1) return;
    pthread_mutex_lock(&lock); /* otherwise the signal could come between the caller's check and its sleep */
    pthread_cond_signal(&worker_left);
    pthread_mutex_unlock(&lock);
}

/* Enters a job, if it is still open. `inside` is increased before the check, so that a caller that closes the job after
 * the check waits for this worker. */
static bool join(uint64_t number) {
    atomic_fetch_add(&inside, 1);
    if (open_job == number) return true;
    leave();
    return false;
}

static void *worker(void *argument) {
    thread_index = (int32_t)(intptr_t)argument;
    inside_job = true;
    for (;;) {
        sleep_until_job();
        for (uint64_t number; is_for_me(number = open_job);) {
            if (!join(number)) break;
            seen = number;
            take_chunks();
            leave();
            spin_until(is_new_job);
        }
    }
    return NULL;
}

/* ---- fork: no lock stays held in the child, which forgets the workers that it does not have -------- */

static void before_fork(void) {
    pthread_mutex_lock(&one_job);
    pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void) {
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&one_job);
}

static void after_fork_in_child(void) {
    started = 0;
    inside = 0;
    pthread_cond_init(&work_arrived, NULL);
    pthread_cond_init(&spares_wanted, NULL);
    pthread_cond_init(&worker_left, NULL);
    after_fork_in_parent();
}

/* Handlers before a fork run in reverse order of registration, so that one_job is taken before the allocator's lock:
 * the order of a job whose chunks allocate memory. */
__attribute__((constructor)) static void watch_forks(void) {
    nr_memory_watch_forks();
    nr_at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* The number of cores that this process may use: limited by its affinity and by the CPU time of its containers. */
static int64_t usable_cores(void) {
    const int64_t count = nr_usable_processors(), granted = nr_processor_limit("");
    return granted < count ? granted : count;
}

/* From NORCH_NUM_THREADS, of which norch/_binding/library.py refuses texts that are no numbers. */
static int32_t default_threads(void) {
    const char *text = getenv("NORCH_NUM_THREADS");
    int64_t count = text ? strtoll(text, NULL, 10) : 0;
    if (count <= 0) count = usable_cores();
    return count < 1 ? 1 : count > MAX_THREADS ? MAX_THREADS : (int32_t)count;
}

static int32_t thread_count(void) {
    int32_t count = __atomic_load_n(&wanted_threads, __ATOMIC_RELAXED);
    if (count == 0) {
        count = default_threads();
        __atomic_store_n(&wanted_threads, count, __ATOMIC_RELAXED);
    }
    return count;
}

int32_t nr_threads(void) { return inside_job ? 1 : thread_count(); }

/* Starts the missing workers; if that fails there are fewer, which is no error. The lock is held. */
static void start_workers(int32_t count) {
    while (started < count) {
        pthread_t thread;
        pthread_attr_t detached;
        pthread_attr_init(&detached);
        pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
        int failed = pthread_create(&thread, &detached, worker, (void *)(intptr_t)(started + 1));
        pthread_attr_destroy(&detached);
        if (failed) return;
        started++;
    }
}

void nr_share(int64_t chunks, void (*body)(void *context, int64_t chunk), void *context) {
    int32_t threads = nr_threads();
    if (chunks <= 1 || threads == 1 || pthread_mutex_trylock(&one_job) != 0) {
        for (int64_t chunk = 0; chunk < chunks; chunk++) body(context, chunk);
        return;
    }
    job.chunks = chunks;
    job.body = body;
    job.context = context;
    job.next = 0;
    pthread_mutex_lock(&lock);
    start_workers(threads - 1);
    if (threads - 1 > helpers) pthread_cond_broadcast(&spares_wanted);
    helpers = threads - 1;
    open_job = ++jobs * MAX_THREADS + (uint64_t)helpers;
    pthread_cond_broadcast(&work_arrived);
    pthread_mutex_unlock(&lock);

    inside_job = true;
    take_chunks();
    inside_job = false;

    open_job = 0;
    spin_until(nobody_inside);
    sleep_until_empty();
    pthread_mutex_unlock(&one_job);
}

#else

static int32_t thread_count(void) { return 1; }

int32_t nr_threads(void) { return 1; }

void nr_share(int64_t chunks, void (*body)(void *context, int64_t chunk), void *context) {
    for (int64_t chunk = 0; chunk < chunks; chunk++) body(context, chunk);
}

#endif

int64_t norch_num_threads(void) { return thread_count(); }

int32_t norch_set_num_threads(int64_t count) {
    if (count < 1 || count > MAX_THREADS)
        return nr_fail(NORCH_ERROR_VALUE, "set_num_threads: %lld is not between 1 and %d", (long long)count,
                       MAX_THREADS);
    __atomic_store_n(&wanted_threads, (int32_t)count, __ATOMIC_RELAXED);
    return NORCH_OK;
}
