/* python: what the library does for the Python interpreter that loaded it, if one did.
 *
 * A tensor is a Python object then: its first two words are what CPython expects of one, so that a result of
 * a call needs no wrapper to own it, and dies with its last reference. Failures become exceptions at once. No
 * header of Python is needed: the few functions of its stable ABI that are used come as addresses. */
#ifndef NR_PYTHON_H
#define NR_PYTHON_H

#include "error.h"

/* The type of tensors as Python objects; NULL when no Python is there. */
extern void *nr_python_type;

/* Raises the failure noted last in this thread, if Python is there and this thread may talk to it. */
void nr_python_raise(int32_t kind, const char *message);

/* Lets other Python threads run during long work; gives what nr_python_lock wants back (NULL: nothing to do). */
void *nr_python_unlock(void);
void nr_python_lock(void *thread);

#endif
