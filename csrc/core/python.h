/* python: what the core asks of the Python interpreter that loaded it, if one did; csrc/python answers.
 *
 * A tensor is a Python object then: the C tensor is the very Tensor that Python sees, so that a result needs no
 * wrapper, and dies with its last reference. Failures become exceptions at once. */
#ifndef NR_PYTHON_H
#define NR_PYTHON_H

#include <stdbool.h>

#include "error.h"

/* The class that results have; NULL when no Python is there. */
extern void *nr_python_class;

/* Memory for a tensor, an object of nr_python_class with its head and its autograd fields set; NULL when there is none. */
norch_tensor *nr_python_new(void *class);
/* One reference more, or less: the last one ends in nr_tensor_end() and frees the memory. */
void nr_python_retain(norch_tensor *x);
void nr_python_release(norch_tensor *x);

/* Whether a Python object is a tensor. */
bool nr_python_is_tensor(const void *object);

/* Raises the failure noted last in this thread, if Python is there and this thread may talk to it. */
void nr_python_raise(int32_t kind, const char *message);

/* Lets other Python threads run during long work; gives what nr_python_lock wants back (NULL: nothing to do). */
void *nr_python_unlock(void);
void nr_python_lock(void *thread);

#endif
