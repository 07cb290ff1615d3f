/* dtype: the element types as a table, and PyTorch's promotion between them.
 *
 * A type has a storage type S (what memory holds), a compute type T (what formulas see) and an
 * accumulator A (what sums are kept in). A narrow type, whose T is the storage type of another, has no kernels of
 * its own: what is stored narrow is widened on its way to the kernels of that other, and the result narrowed. So
 * another such dtype is one row here and its conversions in convert.h and cpu/narrow_isa.c. */
#ifndef NR_DTYPE_H
#define NR_DTYPE_H

#include <stdbool.h>
#include "../norch.h"

/* number, name, S, T, A, kind: B bool, U and I integers, F floats */
#define NR_DTYPES(ROW)                                     \
    ROW(NORCH_BOOL, bool, uint8_t, bool, int64_t, B)       \
    ROW(NORCH_UINT8, uint8, uint8_t, uint8_t, int64_t, U)  \
    ROW(NORCH_INT32, int32, int32_t, int32_t, int64_t, I)  \
    ROW(NORCH_INT64, int64, int64_t, int64_t, int64_t, I)  \
    ROW(NORCH_FLOAT32, float32, float, float, float, F)    \
    ROW(NORCH_FLOAT64, float64, double, double, double, F) \
    ROW(NORCH_INT8, int8, int8_t, int32_t, int64_t, I)     \
    ROW(NORCH_INT16, int16, int16_t, int32_t, int64_t, I)  \
    ROW(NORCH_FLOAT16, float16, uint16_t, float, float, F) \
    ROW(NORCH_BFLOAT16, bfloat16, uint16_t, float, float, F)

#define NR_DTYPE_COUNT 10

typedef struct nr_dtype_row {
    const char *name;
    int32_t size;
    char kind;   /* 'b', 'u', 'i' or 'f' */
    int8_t wide; /* the dtype that it is computed in: itself, unless it is narrow */
} nr_dtype_row;

extern const nr_dtype_row nr_dtypes[NR_DTYPE_COUNT];
extern int32_t nr_default_dtype;

static inline bool nr_is_dtype(int64_t dtype) { return dtype >= 0 && dtype < NR_DTYPE_COUNT; }
static inline int64_t nr_size_of(int32_t dtype) { return nr_dtypes[dtype].size; }
static inline int32_t nr_wide(int32_t dtype) { return nr_dtypes[dtype].wide; }
static inline bool nr_is_narrow(int32_t dtype) { return nr_dtypes[dtype].wide != dtype; }
static inline bool nr_is_float(int32_t dtype) { return nr_dtypes[dtype].kind == 'f'; }

/* The smallest dtype that holds both, as PyTorch has it. */
int32_t nr_promote(int32_t a, int32_t b);
/* The dtype of an operation on n tensors: dimensioned ones outrank 0-d ones, those outrank Python
 * scalars, unless the lower rank is of a higher kind. */
int32_t nr_result_dtype(int n, const norch_tensor *const *xs);

#endif
