/* threads: a few workers that help with chunks of one job at a time.
 *
 * Chunks are handed out by an atomic counter, so a worker that is late (or descheduled) costs only what
 * it has not begun. The caller works too, and waits for those alone that are in the job. A second
 * caller while a job runs does its own work alone. After a fork the child starts without workers.
 *
 *   caller   write job, open it |  take chunks ...  | close it, wait until no worker is inside
 *   worker        look, sleep ..| join, take chunks ... leave |  look, sleep
 *
 * Both look for a while before they sleep: in a training step the next job comes sooner than a sleeper wakes. */
#define _GNU_SOURCE /* sched_getaffinity */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cpu.h"
#include "limits.h"

#define MAX_THREADS 256
#define LOOK 100000 /* nanoseconds that one looks before it sleeps: a sleeper takes up to 50,000 to wake */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_arrived = PTHREAD_COND_INITIALIZER;
static pthread_cond_t spares_wanted = PTHREAD_COND_INITIALIZER;
static pthread_cond_t worker_left = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t one_job = PTHREAD_MUTEX_INITIALIZER;

static int32_t wanted_threads; /* 0: not yet asked for */
static int32_t started;        /* workers alive */
static int32_t helpers;        /* how many of them jobs are for; the spare ones sleep on; changed under the lock */
static _Thread_local int32_t thread_index;
static _Thread_local uint64_t seen; /* the job that this worker had last, as open_job has it */
static _Thread_local bool inside_job;

/* The current job; written while it is closed and no worker is inside. */
static struct {
    int64_t chunks;
    void (*body)(void *context, int64_t chunk);
    void *context;
    _Atomic int64_t next;
} job;

static uint64_t jobs; /* that there have been */
/* The one that may be joined, or 0: its number, times MAX_THREADS, and how many workers it is for. */
static _Atomic uint64_t open_job;
static _Atomic int32_t inside; /* workers in the job */

int32_t nr_thread_index(void) { return thread_index; }

static void take_chunks(void) {
    for (int64_t chunk; (chunk = atomic_fetch_add_explicit(&job.next, 1, memory_order_relaxed)) < job.chunks;)
        job.body(job.context, chunk);
}

/* ---- waiting ------------------------------------------------------------------------------------- */

static bool nobody_inside(void) { return inside == 0; }

static bool is_for_me(uint64_t number) { return number != seen && (uint64_t)thread_index <= number % MAX_THREADS; }

static bool is_new_job(void) { return is_for_me(open_job); }

static int64_t nanoseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void look_for(bool (*there)(void)) {
    const int64_t end = nanoseconds() + LOOK;
    do {
        for (int i = 0; i < 16; i++) {
            if (there()) return;
#if defined(__x86_64__)
            __builtin_ia32_pause();
#elif defined(__aarch64__)
            __asm__ volatile("yield");
#endif
        }
        sched_yield(); /* lets other threads run: perhaps the one that is waited for */
    } while (nanoseconds() < end);
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
    pthread_mutex_lock(&lock); /* or the signal could fall between the caller's look and its sleep */
    pthread_cond_signal(&worker_left);
    pthread_mutex_unlock(&lock);
}

/* Whether the job is still open to this worker, which is inside from then on. Whoever closes a job afterwards waits. */
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
            look_for(is_new_job);
        }
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
    inside = 0;
    pthread_cond_init(&work_arrived, NULL);
    pthread_cond_init(&spares_wanted, NULL);
    pthread_cond_init(&worker_left, NULL);
    after_fork_in_parent();
}

/* Before a fork the last made handler runs first: one_job is taken before the allocator's lock, as it is by a job whose
 * chunks allocate memory. */
__attribute__((constructor)) static void watch_forks(void) {
    nr_memory_watch_forks();
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* Those that this process may run on, or all there are; no more than its containers give it time on. */
static long usable_cores(void) {
    long count = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef CPU_COUNT /* Linux */
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) == 0) count = CPU_COUNT(&cores);
#endif
    const int64_t granted = nr_processor_limit("");
    return granted < count ? (long)granted : count;
}

/* norch/_lib.py refuses other texts. */
static int32_t default_threads(void) {
    const char *text = getenv("NORCH_NUM_THREADS");
    long count = text ? strtol(text, NULL, 10) : 0;
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

int64_t norch_num_threads(void) { return thread_count(); }

int32_t norch_set_num_threads(int64_t count) {
    if (count < 1 || count > MAX_THREADS)
        return nr_fail(NORCH_ERROR_VALUE, "set_num_threads: %lld is not between 1 and %d", (long long)count,
                       MAX_THREADS);
    __atomic_store_n(&wanted_threads, (int32_t)count, __ATOMIC_RELAXED);
    return NORCH_OK;
}

int32_t nr_threads(void) { return inside_job ? 1 : thread_count(); }

/* Starts the missing workers; having fewer is no failure. The lock is held. */
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
    look_for(nobody_inside);
    sleep_until_empty();
    pthread_mutex_unlock(&one_job);
}
