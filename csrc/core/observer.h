/* observer: callbacks of the core, for one thread or for all: calls, new and freed storages, and reads and writes by
 * the host. csrc/program/ records with it, csrc/python/profile.c times with it. */
#ifndef NR_OBSERVER_H
#define NR_OBSERVER_H

#include "storage.h"

typedef struct nr_observer nr_observer;
struct nr_observer {
    bool replays; /* what it sees is run again later, so that no result may depend on values that the host reads now */
    /* NULL, or called before a call runs, or before a copy of bytes (call is NULL). A failure stops it. */
    int32_t (*starts)(nr_observer *self, const nr_call *call);
    /* NULL, or called after a copy of bytes between the host and a device. */
    void (*moved)(nr_observer *self, const nr_backend *device, size_t bytes, bool to_host);
    /* Called after a call has run; its kernel and backend are set, and its plan belongs to the caller. */
    int32_t (*call)(nr_observer *self, const nr_call *call);
    /* NULL, or called with a call of a function of the host, to be repeated in a replay (program/host_call.h). */
    int32_t (*host_call)(nr_observer *self, const nr_call *call);
    void (*failed)(nr_observer *self);
    /* A storage was created, and its field observer set; its last reference was released, perhaps on another thread. */
    void (*created)(nr_observer *self, norch_storage *storage);
    void (*freed)(nr_observer *self, norch_storage *storage);
    /* Python passes a tensor to a call. */
    void (*passed)(nr_observer *self, norch_tensor *x);
    /* The host has written all elements of a new tensor. */
    int32_t (*host_wrote)(nr_observer *self, const norch_tensor *x);
    /* An operation is about to run that the observer cannot follow; a failure stops it. */
    int32_t (*refuse)(nr_observer *self, const char *event);
};

/* The number of observers. While it is 0, as in most programs, nr_observing() need not look up one of the thread. */
extern int32_t nr_observers;
/* The observer of this thread, or else the one of all threads. */
nr_observer *nr_observer_here(void);
/* Sets the observer of this thread; NULL ends it. */
void nr_observe(nr_observer *observer);
/* Sets the observer of all threads that have not set one; NULL ends it. */
void nr_observe_all(nr_observer *observer);

static inline nr_observer *nr_observing(void) { return __builtin_expect(nr_observers, 0) ? nr_observer_here() : 0; }

static inline bool nr_records(void) {
    const nr_observer *observer = nr_observing();
    return observer && observer->replays;
}

static inline int32_t nr_note_unseen(const char *event) {
    nr_observer *observer = nr_observing();
    return observer ? observer->refuse(observer, event) : NORCH_OK;
}

static inline int32_t nr_note_host_wrote(const norch_tensor *x) {
    nr_observer *observer = nr_observing();
    return observer && x ? observer->host_wrote(observer, x) : NORCH_OK;
}

#endif
