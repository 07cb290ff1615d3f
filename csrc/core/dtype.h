/* dtype: the element types as a table, and PyTorch's promotion between them.
 *
 * A type has a storage type S (what memory holds), a compute type T (what formulas see) and an
 * accumulator A (what sums are kept in). Another dtype is one row here. */
#ifndef NR_DTYPE_H
#define NR_DTYPE_H

#include <stdbool.h>
#include "../norch.h"

/* number, name, S, T, A, kind: B bool, U and I integers, F floats; in the order of promotion */
#define NR_DTYPES(ROW)                                    \
    ROW(NORCH_BOOL, bool, uint8_t, bool, int64_t, B)      \
    ROW(NORCH_UINT8, uint8, uint8_t, uint8_t, int64_t, U) \
    ROW(NORCH_INT32, int32, int32_t, int32_t, int64_t, I) \
    ROW(NORCH_INT64, int64, int64_t, int64_t, int64_t, I) \
    ROW(NORCH_FLOAT32, float32, float, float, float, F)   \
    ROW(NORCH_FLOAT64, float64, double, double, double, F)

#define NR_DTYPE_COUNT 6

typedef struct nr_dtype_row {
    const char *name;
    int32_t size;
    char kind; /* 'b', 'u', 'i' or 'f' */
} nr_dtype_row;

extern const nr_dtype_row nr_dtypes[NR_DTYPE_COUNT];
extern int32_t nr_default_dtype;

static inline bool nr_is_dtype(int64_t dtype) { return dtype >= 0 && dtype < NR_DTYPE_COUNT; }
static inline int64_t nr_size_of(int32_t dtype) { return nr_dtypes[dtype].size; }
static inline bool nr_is_float(int32_t dtype) { return nr_dtypes[dtype].kind == 'f'; }

/* The smallest dtype that holds both, as PyTorch has it. */
int32_t nr_promote(int32_t a, int32_t b);
/* The dtype of an operation on n tensors: dimensioned ones outrank 0-d ones, those outrank Python
 * scalars, unless the lower rank is of a higher kind. */
int32_t nr_result_dtype(int n, const norch_tensor *const *xs);

#endif
