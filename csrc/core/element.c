/* element: see element.h. */
#include "element.h"

#include <string.h>

#include "convert.h"
#include "dtype.h"

void nr_get(int32_t dtype, const void *at, double *value, int64_t *integer) {
#define GET_F *value = (double)
#define GET_B *integer =
#define GET_U *integer =
#define GET_I *integer =
    switch (dtype) {
#define DTYPE(NAME, name, S, T, A, kind, digits) \
    case NORCH_##NAME: GET_##kind NR_OF_##name(*(const S *)at); break;
#include "../dtypes.def"
    }
}

#define PUT(NAME, name, S, T, A, kind, digits) \
    case NORCH_##NAME: {                       \
        S y = (S)NR_TO_##name(value);          \
        memcpy(eight_bytes, &y, sizeof y);     \
        return;                                \
    }
void nr_put_double(int32_t dtype, double value, void *eight_bytes) {
    switch (dtype) {
#define DTYPE PUT
#include "../dtypes.def"
    }
}

void nr_put_integer(int32_t dtype, int64_t value, void *eight_bytes) {
    switch (dtype) {
#define DTYPE PUT
#include "../dtypes.def"
    }
}

void nr_convert_number(int32_t from_dtype, const void *from, int32_t dtype, void *eight_bytes) {
    double value = 0;    /* holds every float */
    int64_t integer = 0; /* holds every integer */
    nr_get(from_dtype, from, &value, &integer);
    if (nr_is_float(from_dtype))
        nr_put_double(dtype, value, eight_bytes);
    else
        nr_put_integer(dtype, integer, eight_bytes);
}
