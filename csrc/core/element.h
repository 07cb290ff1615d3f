/* element: one stored element, which is no complex number, read and written as a number. */
#ifndef NR_ELEMENT_H
#define NR_ELEMENT_H

#include <stdint.h>

/* Writes a number in the stored type of a dtype. */
void nr_put_double(int32_t dtype, double value, void *eight_bytes);
void nr_put_integer(int32_t dtype, int64_t value, void *eight_bytes);
/* Writes a stored element in the stored type of another dtype; `from` may be the place that is written. */
void nr_convert_number(int32_t from_dtype, const void *from, int32_t dtype, void *eight_bytes);
/* Reads one stored element: a float into *value, others into *integer. */
void nr_get(int32_t dtype, const void *at, double *value, int64_t *integer);

#endif
