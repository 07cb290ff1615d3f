/* grad_mode: whether this thread records operations (norch/autograd/grad_mode.py). */
#ifndef NR_PYTHON_GRAD_MODE_H
#define NR_PYTHON_GRAD_MODE_H

#include <stdbool.h>

bool nr_grad_enabled(void);

#endif
