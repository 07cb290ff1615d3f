/* holder: see holder.h. */
#include "holder.h"

#include <stddef.h>

static int traverse(nr_holder *self, int (*visit)(void *object, void *argument), void *argument) {
    int status = visit(self->object.type, argument);
    for (int i = 0; i < NR_HELD && !status; i++)
        if (self->held[i]) status = visit(self->held[i], argument);
    return status;
}

static int clear(nr_holder *self) {
    for (int i = 0; i < NR_HELD; i++) {
        void *object = self->held[i];
        self->held[i] = NULL;
        if (object) Py_DecRef(object);
    }
    return 0;
}

static void free_one(nr_holder *self) {
    void *type = self->object.type;
    clear(self);
    PyObject_GC_Del(self);
    Py_DecRef(type);
}

/* A holder may be the last to refer to another, as in a graph of a million nodes. Beyond this depth they wait for the
 * outermost, so that the C stack does not overflow: in a browser CPython does not know how large that is. */
#define DEEPEST 40
static _Thread_local int depth;
static _Thread_local nr_holder *waiting;

static void dealloc(nr_holder *self) {
    PyObject_GC_UnTrack(self);
    if (depth == DEEPEST) {
        self->next = waiting;
        waiting = self;
        return;
    }
    depth++;
    free_one(self);
    while (depth == 1 && waiting) {
        nr_holder *holder = waiting;
        waiting = holder->next;
        free_one(holder);
    }
    depth--;
}

#define FUNCTION(slot, f) {slot, (void *)(uintptr_t)(f)}

void *nr_holder_class(const char *name, nr_member *members, nr_slot slot, nr_slot another) {
    nr_slot slots[] = {FUNCTION(NR_SLOT_DEALLOC, dealloc),
                       FUNCTION(NR_SLOT_TRAVERSE, traverse),
                       FUNCTION(NR_SLOT_CLEAR, clear),
                       {NR_SLOT_MEMBERS, members},
                       slot,
                       another,
                       {0, NULL}};
    nr_spec spec = {name, sizeof(nr_holder), 0, NR_TYPE_DEFAULT | NR_TYPE_BASE | NR_TYPE_COLLECTED, slots};
    return PyType_FromSpec(&spec);
}
