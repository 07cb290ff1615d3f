/* calls: hand-written builtins with files of their own. */
#ifndef NR_CALLS_H
#define NR_CALLS_H

#include <stdint.h>

/* region(x, index): a view, or None if the index holds more than integers, slices, ... and None. */
void *nr_py_region(void *self, void *const *given, int64_t n);

#endif
