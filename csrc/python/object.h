/* object: tensors as Python objects. */
#ifndef NR_OBJECT_H
#define NR_OBJECT_H

#include <stdbool.h>

#include "../norch.h"

/* The class of results: norch.TensorBase, or the subclass of it that norch_set_class() names. */
extern void *nr_tensor_class;
/* The subclass of it that calls do not take (batched.c); NULL before norch.vmap is used. */
extern void *nr_batched_class;

/* A new tensor of a subclass of it, without elements; NULL with an exception when there is no memory. */
norch_tensor *nr_new_instance(void *class);
bool nr_is_tensor(const void *object);

#endif
