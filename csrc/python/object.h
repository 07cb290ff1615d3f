/* object: tensors as Python objects. */
#ifndef NR_OBJECT_H
#define NR_OBJECT_H

#include <stdbool.h>

#include "../norch_runtime.h"

/* The class of results: norch.TensorBase, or the subclass of it that was set by norch_set_class(). */
extern void *nr_tensor_class;
/* A subclass that overrides nothing, so that calls take its instances as plain ones; NULL before norch.nn is imported. */
extern void *nr_parameter_class;
/* Its subclass for batched tensors, which calls do not take (batched.c); NULL before norch.vmap is used. */
extern void *nr_batched_class;

/* A new instance of such a class, without elements; NULL with an exception if there is no memory. */
norch_tensor *nr_new_instance(void *class);
bool nr_is_tensor(const void *object);
/* Whether there are weak references to a tensor of the class of results. */
bool nr_has_weak_references(const norch_tensor *x);

#endif
