/* pointwise: the type of an elementwise kernel: n elements, of operand o from data[o] on at steps of stride[o] bytes.
 * Operand 0 is the output, which may bypass the cache (stream.h). */
#ifndef NR_CPU_POINTWISE_H
#define NR_CPU_POINTWISE_H

#include "cpu.h"

typedef void (*nr_pointwise_kernel)(int64_t n, char *const *data, const int64_t *stride, bool streams);

#endif
