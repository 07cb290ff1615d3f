/* dtype: see dtype.h. */
#include "dtype.h"

#include <stddef.h>

#include "error.h"

#define KIND_B 'b'
#define KIND_U 'u'
#define KIND_I 'i'
#define KIND_F 'f'
#define WIDE(T)               \
    _Generic((T){0},          \
        bool: NORCH_BOOL,     \
        uint8_t: NORCH_UINT8, \
        int32_t: NORCH_INT32, \
        int64_t: NORCH_INT64, \
        float: NORCH_FLOAT32, \
        double: NORCH_FLOAT64)
#define ROW(number, label, S, T, A, class) [number] = {#label, sizeof(S), KIND_##class, WIDE(T)},
const nr_dtype_row nr_dtypes[NR_DTYPE_COUNT] = {NR_DTYPES(ROW)};
#undef ROW

int32_t nr_default_dtype = NORCH_FLOAT32;

const char *norch_dtype_name(int64_t dtype) { return nr_is_dtype(dtype) ? nr_dtypes[dtype].name : NULL; }

int32_t norch_dtype_size(int64_t dtype) { return nr_is_dtype(dtype) ? nr_dtypes[dtype].size : 0; }

int32_t norch_dtype_kind(int64_t dtype) { return nr_is_dtype(dtype) ? nr_dtypes[dtype].kind : 0; }

int32_t norch_default_dtype(void) { return nr_default_dtype; }

int32_t norch_set_default_dtype(int64_t dtype) {
    if (!nr_is_dtype(dtype) || !nr_is_float(dtype))
        return nr_fail(NORCH_ERROR_DTYPE, "set_default_dtype: only floating dtypes can be the default");
    nr_default_dtype = (int32_t)dtype;
    return NORCH_OK;
}

static int rank(int32_t dtype) {
    switch (nr_dtypes[dtype].kind) {
    case 'b': return 0;
    case 'f': return 2;
    default: return 1;
    }
}

int32_t nr_promote(int32_t a, int32_t b) {
    if (rank(a) != rank(b)) return rank(a) > rank(b) ? a : b;
    /* Within a kind the wider one holds the other; of two of one size neither does: uint8 beside int8, and the halves. */
    if (a != b && nr_size_of(a) == nr_size_of(b)) return nr_is_float(a) ? NORCH_FLOAT32 : NORCH_INT16;
    return nr_size_of(a) >= nr_size_of(b) ? a : b;
}

int32_t norch_promote_types(int64_t a, int64_t b) {
    if (!nr_is_dtype(a) || !nr_is_dtype(b)) return -1;
    return nr_promote((int32_t)a, (int32_t)b);
}

int32_t nr_result_dtype(int n, const norch_tensor *const *xs) {
    int32_t of_rank[3] = {-1, -1, -1}; /* 0 tensors with dimensions, 1 0-d tensors, 2 Python scalars */
    for (int i = 0; i < n; i++) {
        int32_t *best = &of_rank[xs[i]->weak ? 2 : xs[i]->ndim == 0 ? 1 : 0];
        *best = *best < 0 ? xs[i]->dtype : nr_promote(*best, xs[i]->dtype);
    }
    if (of_rank[2] >= 0 && nr_is_float(of_rank[2])) of_rank[2] = nr_default_dtype;
    int32_t result = of_rank[0];
    for (int i = 1; i < 3; i++) {
        int32_t lower = of_rank[i];
        if (lower < 0) continue;
        if (result < 0)
            result = lower;
        else if (rank(lower) > rank(result))
            result = lower;
    }
    return result;
}

int64_t norch_result_type(const norch_tensor *a, const norch_tensor *b) {
    const norch_tensor *xs[2] = {a, b};
    return nr_result_dtype(2, xs);
}
