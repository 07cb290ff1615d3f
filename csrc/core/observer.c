/* observer: see observer.h. */
#include "observer.h"

#include <pthread.h>

int32_t nr_observers;
static _Thread_local nr_observer *here;

nr_observer *nr_observer_here(void) { return here; }

void nr_observe(nr_observer *observer) {
    __atomic_fetch_add(&nr_observers, (observer != NULL) - (here != NULL), __ATOMIC_RELAXED);
    here = observer;
}

/* The child of a fork has the observer of the thread that forked, and no other. */
static void count_again(void) { nr_observers = here != NULL; }

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, count_again); }
