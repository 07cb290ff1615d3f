/* owner: releases memory that another library owns. */
#include "storage.h"

/* An owner of memory may hold a storage with an owner, and so on. Beyond DEEPEST releases in a chain, the next waits in
 * a list, so that the stack cannot overflow. */
#define DEEPEST 50
static _Thread_local norch_storage *waiting;
static _Thread_local int depth;

void nr_release_owner(norch_storage *storage, void (*end)(norch_storage *)) {
    if (depth == DEEPEST) {
        storage->data = waiting;
        waiting = storage;
        return;
    }
    depth++;
    for (;;) {
        storage->release(storage->context);
        end(storage);
        if (depth > 1 || !waiting) break;
        storage = waiting;
        waiting = storage->data;
    }
    depth--;
}
