/* holder: makes Python classes whose instances have a few object fields that C reads directly. */
#ifndef NR_PYTHON_HOLDER_H
#define NR_PYTHON_HOLDER_H

#include "abi.h"

#define NR_HELD 6
typedef struct nr_holder {
    nr_object object;
    void *held[NR_HELD];    /* or NULL */
    struct nr_holder *next; /* while it waits to be freed */
} nr_holder;

/* A new class with these attributes, and up to two more type slots, such as its methods or its call; {0} is none. */
void *nr_holder_class(const char *name, nr_member *members, nr_slot slot, nr_slot another);

#endif
