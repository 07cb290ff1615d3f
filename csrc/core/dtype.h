/* dtype: the traits of the element types (dtypes.def), and PyTorch's promotion between them. */
#ifndef NR_DTYPE_H
#define NR_DTYPE_H

#include "../norch.h"

#define NR_DTYPE_COUNT NORCH_DTYPE_COUNT

typedef struct nr_dtype_row {
    const char *name;
    int32_t size;
    char kind;     /* 'b', 'u', 'i', 'f' or 'c' */
    int8_t wide;   /* the dtype in which it is computed: itself, unless it is narrow */
    int8_t digits; /* see dtypes.def */
    int8_t part;   /* the dtype of the parts of a complex dtype; of others the dtype itself */
} nr_dtype_row;

extern const nr_dtype_row nr_dtypes[NR_DTYPE_COUNT];
extern int32_t nr_default_dtype;
extern uint32_t nr_dtypes_seen; /* norch_dtypes_seen(); what gives a tensor a dtype adds it */

static inline bool nr_is_dtype(int64_t dtype) { return dtype >= 0 && dtype < NR_DTYPE_COUNT; }
static inline int64_t nr_size_of(int32_t dtype) { return nr_dtypes[dtype].size; }
static inline int32_t nr_wide(int32_t dtype) { return nr_dtypes[dtype].wide; }
static inline bool nr_is_narrow(int32_t dtype) { return nr_dtypes[dtype].wide != dtype; }
static inline bool nr_is_float(int32_t dtype) { return nr_dtypes[dtype].kind == 'f'; }
static inline bool nr_is_complex(int32_t dtype) { return dtype >= NORCH_COMPLEX64; }
static inline int32_t nr_part_of(int32_t dtype) { return nr_dtypes[dtype].part; }
/* The complex dtype whose parts hold a float; of an integer or bool that of the default dtype; of a complex one
 * itself. */
int32_t nr_complex_of(int32_t dtype);

/* Whether a result may be stored as another dtype: one of the same or a higher category (bool, integer, float,
 * complex). */
bool nr_can_cast(int32_t from, int32_t to);
/* PyTorch's promote_types: the smallest dtype that holds both. */
int32_t nr_promote(int32_t a, int32_t b);
/* PyTorch's result_type of n tensors: those with dimensions decide before 0-d ones, and these before Python scalars,
 * unless the later ones are of a higher category. */
int32_t nr_result_dtype(int n, const norch_tensor *const *xs);

#endif
