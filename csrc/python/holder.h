/* holder: base classes of Python's whose instances hold a few objects for functions of C. */
#ifndef NR_PYTHON_HOLDER_H
#define NR_PYTHON_HOLDER_H

#include "abi.h"

#define NR_HELD 2
typedef struct nr_holder {
    nr_object object;
    void *held[NR_HELD]; /* or NULL */
} nr_holder;

/* A new class with these attributes, and one slot more: its methods, or what a call does. */
void *nr_holder_class(const char *name, nr_member *members, nr_slot slot);

#endif
