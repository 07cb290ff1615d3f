/* observer: see observer.h. */
#include "observer.h"

#include "platform.h"

int32_t nr_observers;
static _Thread_local nr_observer *here;
static nr_observer *everywhere;

nr_observer *nr_observer_here(void) { return here ? here : everywhere; }

void nr_observe(nr_observer *observer) {
    __atomic_fetch_add(&nr_observers, (observer != NULL) - (here != NULL), __ATOMIC_RELAXED);
    here = observer;
}

void nr_observe_all(nr_observer *observer) {
    __atomic_fetch_add(&nr_observers, (observer != NULL) - (everywhere != NULL), __ATOMIC_RELAXED);
    everywhere = observer;
}

/* The child of a fork has only the forking thread, and so its observer and that of all threads. */
static void count_again(void) { nr_observers = (here != NULL) + (everywhere != NULL); }

__attribute__((constructor)) static void watch_forks(void) { nr_at_fork(NULL, NULL, count_again); }
