/* pointwise: the shape of an elementwise kernel: n elements in one run, operand o starting at data[o]
 * and moving by stride[o] bytes; operand 0 is the output, which may go past the cache (stream.h). */
#ifndef NR_CPU_POINTWISE_H
#define NR_CPU_POINTWISE_H

#include "cpu.h"

typedef void (*nr_pointwise_run)(int64_t n, char *const *data, const int64_t *stride, bool streams);

#endif
