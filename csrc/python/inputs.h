/* inputs: the inputs of rows of ops.def as tensors. */
#ifndef NR_PYTHON_INPUTS_H
#define NR_PYTHON_INPUTS_H

#include "object.h"

/* A new reference to the cached tensor of a Python number; NULL for other objects, and if none is cached. */
void *nr_tensor_of_number(void *x);

/* Whether x is a tensor that overrides nothing. */
static inline bool nr_is_plain(const void *x) {
    const void *type = ((const nr_object *)x)->type;
    return type == nr_tensor_class || type == nr_parameter_class;
}

/* Fills the inputs of a row with tensors; numbers beside a tensor become their cached tensors. Returns how many of
 * these must be released; -1 if the caller has to convert an input. */
static inline int32_t nr_take_inputs(void *const *args, int64_t inputs, void **taken, void **converted) {
    int32_t count = 0;
    for (int64_t i = 0; i < inputs; i++) {
        taken[i] = args[i];
        if (nr_is_plain(args[i])) continue;
        taken[i] = count < inputs - 1 ? nr_tensor_of_number(args[i]) : NULL;
        if (taken[i]) {
            converted[count++] = taken[i];
            continue;
        }
        while (count > 0) Py_DecRef(converted[--count]);
        return -1;
    }
    return count;
}

#endif
