/* interpreter: the program that loaded the library, as the core sees it. csrc/python registers CPython's hooks here;
 * without any, tensors come from calloc(), failures are messages only, and there is no lock.
 *
 * Under an interpreter a tensor is one of its objects: the C struct is the very Tensor that Python code holds, so that
 * a result needs no wrapper and dies with its last reference. */
#ifndef NR_INTERPRETER_H
#define NR_INTERPRETER_H

#include "../norch.h"

typedef struct nr_interpreter_hooks {
    norch_tensor *(*new_tensor)(void); /* the fields of the object are set; NULL: out of memory */
    void (*retain)(norch_tensor *x);
    void (*release)(norch_tensor *x); /* the last reference calls nr_tensor_clear() and frees the object */
    /* Raises an exception for a failure, if this thread holds the lock. */
    void (*raise)(int32_t kind, const char *message);
    /* Releases the lock around long work; acquire_lock takes back what release_lock gave. */
    void *(*release_lock)(void);
    void (*acquire_lock)(void *thread);
} nr_interpreter_hooks;

/* The status of a call of the interpreter's that failed: its exception is set. */
#define NR_RAISED (-1)

extern const nr_interpreter_hooks *nr_interpreter; /* NULL: none */

#endif
