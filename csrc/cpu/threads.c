/* threads: a few workers that help with chunks of one job at a time.
 *
 * Chunks are handed out by an atomic counter, so a worker that is late (or descheduled) costs only what
 * it has not begun. The caller works too and never waits for a worker that has taken no chunk. A second
 * caller while a job runs does its own work alone. After a fork the child starts without workers. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "cpu.h"

#define MAX_THREADS 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_arrived = PTHREAD_COND_INITIALIZER;
static pthread_cond_t worker_left = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t one_job = PTHREAD_MUTEX_INITIALIZER;

static int32_t wanted_threads; /* 0: not yet asked for */
static int32_t started;        /* workers alive */
static _Thread_local int32_t thread_index;
static _Thread_local bool inside_job;

/* The job at hand; written under the lock while no worker is inside. */
static struct {
    uint64_t number;
    int64_t chunks;
    void (*body)(void *context, int64_t chunk);
    void *context;
    int32_t helpers; /* how many workers may join */
    int32_t inside;  /* how many are in it */
    _Atomic int64_t next;
} job;

int32_t nr_thread_index(void) { return thread_index; }

static void take_chunks(void) {
    for (int64_t chunk; (chunk = atomic_fetch_add_explicit(&job.next, 1, memory_order_relaxed)) < job.chunks;)
        job.body(job.context, chunk);
}

static void *worker(void *argument) {
    thread_index = (int32_t)(intptr_t)argument;
    inside_job = true;
    uint64_t seen = 0;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (job.number == seen || thread_index > job.helpers || job.next >= job.chunks) {
            seen = job.number;
            pthread_cond_wait(&work_arrived, &lock);
        }
        seen = job.number;
        job.inside++;
        pthread_mutex_unlock(&lock);
        take_chunks();
        pthread_mutex_lock(&lock);
        if (--job.inside == 0) pthread_cond_signal(&worker_left);
    }
    return NULL;
}

/* ---- fork: nothing is held across it, and the child forgets the workers it does not have --------- */

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
    job.inside = 0;
    pthread_cond_init(&work_arrived, NULL);
    pthread_cond_init(&worker_left, NULL);
    after_fork_in_parent();
}

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* norch/_lib.py refuses what is no number. */
static int32_t default_threads(void) {
    const char *text = getenv("NORCH_NUM_THREADS");
    long count = text ? strtol(text, NULL, 10) : 0;
    if (count <= 0) count = sysconf(_SC_NPROCESSORS_ONLN);
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

int64_t norch_num_threads(void) { return thread_count(); }

int32_t norch_set_num_threads(int64_t count) {
    if (count < 1 || count > MAX_THREADS)
        return nr_fail(NORCH_ERROR_VALUE, "set_num_threads: %lld is not between 1 and %d", (long long)count,
                       MAX_THREADS);
    __atomic_store_n(&wanted_threads, (int32_t)count, __ATOMIC_RELAXED);
    return NORCH_OK;
}

int32_t nr_threads(void) { return inside_job ? 1 : thread_count(); }

/* Starts what is missing; fewer than wished is no failure. The lock is held. */
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

void nr_parallel(int64_t chunks, void (*body)(void *context, int64_t chunk), void *context) {
    int32_t threads = nr_threads();
    if (chunks <= 1 || threads == 1 || pthread_mutex_trylock(&one_job) != 0) {
        for (int64_t chunk = 0; chunk < chunks; chunk++) body(context, chunk);
        return;
    }
    pthread_mutex_lock(&lock);
    start_workers(threads - 1);
    job.number++;
    job.chunks = chunks;
    job.body = body;
    job.context = context;
    job.helpers = threads - 1;
    atomic_store(&job.next, 0);
    pthread_cond_broadcast(&work_arrived);
    pthread_mutex_unlock(&lock);

    inside_job = true;
    take_chunks();
    inside_job = false;

    pthread_mutex_lock(&lock);
    while (job.inside > 0) pthread_cond_wait(&worker_left, &lock);
    job.chunks = 0; /* nobody who wakes late finds anything */
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&one_job);
}
