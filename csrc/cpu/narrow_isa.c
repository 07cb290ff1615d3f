/* narrow_isa: runs of elements of the narrow dtypes (dtype.h), widened to what kernels compute in and narrowed back,
 * compiled once an instruction set. The conversions are core/convert.h's. */
#include "../core/convert.h"
#include "cpu.h"

#define CONVERSION(name, FROM, TO, convert)                                                       \
    static void name(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n) { \
        if (to_step == sizeof(TO) && from_step == sizeof(FROM)) {                                 \
            TO *restrict y = (TO *)(void *)to;                                                    \
            const FROM *restrict x = (const FROM *)(const void *)from;                            \
            for (int64_t i = 0; i < n; i++) y[i] = (TO)convert(x[i]);                             \
        } else {                                                                                  \
            for (int64_t i = 0; i < n; i++, to += to_step, from += from_step)                     \
                *(TO *)(void *)to = (TO)convert(*(const FROM *)(const void *)from);               \
        }                                                                                         \
    }
#define BOTH(dtype, S, T)                                  \
    CONVERSION(NR_JOIN(widen, dtype), S, T, NR_OF_##dtype) \
    CONVERSION(NR_JOIN(narrow, dtype), T, S, NR_TO_##dtype)
BOTH(int8, int8_t, int32_t)
BOTH(int16, int16_t, int32_t)
BOTH(float16, uint16_t, float)
BOTH(bfloat16, uint16_t, float)

void NR_ISA(nr_fill_narrow)(nr_conversion *widen, nr_conversion *narrow) {
#define ENTER(number, dtype) widen[number] = NR_JOIN(widen, dtype), narrow[number] = NR_JOIN(narrow, dtype);
    ENTER(NORCH_INT8, int8)
    ENTER(NORCH_INT16, int16)
    ENTER(NORCH_FLOAT16, float16)
    ENTER(NORCH_BFLOAT16, bfloat16)
}
