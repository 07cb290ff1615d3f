/* copy_pairs: conversions from one dtype to every other, as the table from_DTYPE[to]: a template of each_dtype.h for
 * convert_isa.c. */

/* dtype is a constant wherever this and convert are inlined. */
INLINE void OF_DTYPE(store)(char *to, S x, int32_t dtype) {
    switch (dtype) {
#define WIDE(NAME, name, stored, ...) \
    case NORCH_##NAME: *(stored *)(void *)to = NR_TO_##name((T)x); break;
#define NARROW(...)
#include "../dtypes.def"
    }
}

INLINE void OF_DTYPE(convert)(char *restrict to, const int64_t *to_step, const char *restrict from,
                              const int64_t *from_step, int64_t n0, int64_t n1, int32_t dtype, int64_t size) {
    const bool dense = to_step[0] == size && from_step[0] == sizeof(S);
    for (int64_t j = 0; j < n1; j++, to += to_step[1], from += from_step[1]) {
        if (dense)
            for (int64_t i = 0; i < n0; i++) OF_DTYPE(store)(to + i * size, ((const S *)from)[i], dtype);
        else
            for (int64_t i = 0; i < n0; i++)
                OF_DTYPE(store)(to + i * to_step[0], *(const S *)(from + i * from_step[0]), dtype);
    }
}

#define WIDE(NAME, name, stored, ...)                                                                             \
    static void OF_DTYPE(to_##name)(char *to, const int64_t *to_step, const char *from, const int64_t *from_step, \
                                    int64_t n0, int64_t n1) {                                                     \
        OF_DTYPE(convert)(to, to_step, from, from_step, n0, n1, NORCH_##NAME, sizeof(stored));                    \
    }
#define NARROW(...)
#include "../dtypes.def"

static const nr_mover OF_DTYPE(from)[NR_DTYPE_COUNT] = {
#define WIDE(NAME, name, ...) [NORCH_##NAME] = OF_DTYPE(to_##name),
#define NARROW(...)
#include "../dtypes.def"
};
