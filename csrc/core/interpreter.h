/* interpreter: the hooks by which the core uses the interpreter that loaded the library; csrc/python registers
 * CPython's. Without hooks tensors come from calloc(), failures are only messages, and there is no lock.
 *
 * With an interpreter a tensor is one of its objects: the C struct itself is the Tensor that Python code holds, so that
 * a result needs no wrapper, and is freed with its last reference. */
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

/* The status of a failure whose exception the interpreter has set already. */
#define NR_RAISED (-1)

extern const nr_interpreter_hooks *nr_interpreter; /* NULL: none */

#endif
