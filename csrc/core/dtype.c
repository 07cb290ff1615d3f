/* dtype: see dtype.h. */
#include "dtype.h"

#include <stddef.h>

#include "error.h"

#define KIND_B 'b'
#define KIND_U 'u'
#define KIND_I 'i'
#define KIND_F 'f'
/* The dtype of the C type that a narrow row computes in. */
#define COMPUTED_IN(T) _Generic((T){0}, int32_t: NORCH_INT32, float: NORCH_FLOAT32)
const nr_dtype_row nr_dtypes[NR_DTYPE_COUNT] = {
#define WIDE(NAME, label, S, T, A, kind, digits) {#label, sizeof(S), KIND_##kind, NORCH_##NAME, digits, NORCH_##NAME},
#define NARROW(NAME, label, S, T, A, kind, digits) \
    {#label, sizeof(S), KIND_##kind, COMPUTED_IN(T), digits, NORCH_##NAME},
#define COMPLEX(NAME, label, part, PART) \
    {#label, 2 * sizeof(part), 'c', NORCH_##NAME, sizeof(part) == 4 ? 24 : 53, NORCH_##PART},
#include "../dtypes.def"
};

int32_t nr_default_dtype = NORCH_FLOAT32;
uint32_t nr_dtypes_seen;

int64_t norch_dtypes_seen(void) { return nr_dtypes_seen; }

const char *norch_dtype_name(int64_t dtype) { return nr_is_dtype(dtype) ? nr_dtypes[dtype].name : NULL; }

int32_t norch_dtype_size(int64_t dtype) { return nr_is_dtype(dtype) ? nr_dtypes[dtype].size : 0; }

int32_t norch_dtype_kind(int64_t dtype) { return nr_is_dtype(dtype) ? nr_dtypes[dtype].kind : 0; }

int32_t norch_dtype_digits(int64_t dtype) { return nr_is_dtype(dtype) ? nr_dtypes[dtype].digits : 0; }

int32_t norch_dtype_part(int64_t dtype) { return nr_is_dtype(dtype) ? nr_part_of((int32_t)dtype) : -1; }

int32_t norch_default_dtype(void) { return nr_default_dtype; }

int32_t norch_set_default_dtype(int64_t dtype) {
    if (!nr_is_dtype(dtype) || !nr_is_float(dtype))
        return nr_fail(NORCH_ERROR_DTYPE, "set_default_dtype: only floating dtypes can be the default");
    nr_default_dtype = (int32_t)dtype;
    return NORCH_OK;
}

/* The category of a dtype in promotion: bool, integer, float, complex. */
static int rank(int32_t dtype) {
    switch (nr_dtypes[dtype].kind) {
    case 'b': return 0;
    case 'f': return 2;
    case 'c': return 3;
    default: return 1;
    }
}

bool nr_can_cast(int32_t from, int32_t to) { return rank(from) <= rank(to); }

bool norch_can_cast(int64_t from, int64_t to) {
    return nr_is_dtype(from) && nr_is_dtype(to) && nr_can_cast((int32_t)from, (int32_t)to);
}

/* Whether d can represent every number of another dtype of its rank. */
static bool holds(int32_t d, int32_t other) {
    const nr_dtype_row *a = &nr_dtypes[d], *b = &nr_dtypes[other];
    const bool range = a->kind == 'f'   ? 8 * a->size - a->digits >= 8 * b->size - b->digits /* bits of the exponent */
                       : a->kind == 'i' ? true
                                        : b->kind != 'i';
    return rank(d) == rank(other) && a->digits >= b->digits && range;
}

/* The smallest dtype that holds both, of the higher rank where theirs differ. */
static int32_t common_dtype(int32_t a, int32_t b) {
    if (nr_is_complex(a) || nr_is_complex(b)) {
        const int32_t part_a = nr_part_of(a), part_b = nr_part_of(b);
        if (!nr_is_float(part_a)) return b;
        return nr_is_float(part_b) ? nr_complex_of(common_dtype(part_a, part_b)) : a;
    }
    if (rank(a) != rank(b)) return rank(a) > rank(b) ? a : b;
    int32_t best = nr_size_of(a) > nr_size_of(b) ? a : b; /* if no dtype holds both */
    bool found = false;
    for (int32_t d = 0; d < NR_DTYPE_COUNT; d++)
        if (holds(d, a) && holds(d, b) && (!found || nr_size_of(d) < nr_size_of(best))) best = d, found = true;
    return best;
}

int32_t nr_complex_of(int32_t dtype) {
    if (nr_is_complex(dtype)) return dtype;
    return (nr_is_float(dtype) ? dtype : nr_default_dtype) == NORCH_FLOAT64 ? NORCH_COMPLEX128 : NORCH_COMPLEX64;
}

static int8_t promoted[NR_DTYPE_COUNT][NR_DTYPE_COUNT];

__attribute__((constructor)) static void fill_promoted(void) {
    for (int32_t a = 0; a < NR_DTYPE_COUNT; a++)
        for (int32_t b = 0; b < NR_DTYPE_COUNT; b++) promoted[a][b] = (int8_t)common_dtype(a, b);
}

int32_t nr_promote(int32_t a, int32_t b) { return promoted[a][b]; }

int32_t norch_promote_types(int64_t a, int64_t b) {
    if (!nr_is_dtype(a) || !nr_is_dtype(b)) return -1;
    return nr_promote((int32_t)a, (int32_t)b);
}

int32_t nr_result_dtype(int n, const norch_tensor *const *xs) {
    int32_t by_group[3] = {-1, -1, -1}; /* 0 tensors with dimensions, 1 0-d tensors, 2 Python scalars */
    for (int i = 0; i < n; i++) {
        int32_t *best = &by_group[xs[i]->weak ? 2 : xs[i]->ndim == 0 ? 1 : 0];
        *best = *best < 0 ? xs[i]->dtype : nr_promote(*best, xs[i]->dtype);
    }
    if (by_group[2] >= 0 && nr_is_float(by_group[2])) by_group[2] = nr_default_dtype;
    if (by_group[2] >= 0 && nr_is_complex(by_group[2])) by_group[2] = nr_complex_of(nr_default_dtype);
    int32_t result = by_group[0];
    for (int i = 1; i < 3; i++) {
        int32_t lower = by_group[i];
        if (lower < 0) continue;
        if (result < 0)
            result = lower;
        else if (rank(lower) > rank(result)) /* a float decides the precision of a complex result */
            result = nr_is_complex(lower) && nr_is_float(result) ? nr_complex_of(result) : lower;
    }
    return result;
}

int64_t norch_result_type(int64_t n, const void *xs) { return nr_result_dtype((int)n, xs); }
