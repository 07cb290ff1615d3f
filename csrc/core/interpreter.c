/* interpreter: see interpreter.h. */
#include "interpreter.h"

#include <stddef.h>

const nr_interpreter_hooks *nr_interpreter = NULL;
