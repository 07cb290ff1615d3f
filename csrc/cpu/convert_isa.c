/* convert_isa: conversions of runs of elements between dtypes: of narrow ones (dtypes.def) to and from their wide ones,
 * and of wide ones to each other; compiled once per instruction set. Loops around core/convert.h; float16 uses the
 * instructions of F16C if the CPU has them. */
#if defined(__AVX2__)
#include <cpuid.h>
#include <immintrin.h>
#endif
#include <string.h>

#include "../core/convert.h"
#include "../core/dtype.h"
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
#define WIDE(...)
#define NARROW(NAME, name, S, T, ...) BOTH(name, S, T)
#include "../dtypes.def"

#define TEMPLATE "copy_pairs.h"
#define WANTED(kind, bits) true
#include "each_dtype.h"

#if defined(__AVX2__)
#define F16C __attribute__((target("f16c")))
#if defined(__AVX512F__)
#define HALVES 16
#define STORE_WIDE(to, x) _mm512_storeu_ps(to, x)
#define LOAD_WIDE(from) _mm512_loadu_ps(from)
#define STORE_HALVES(to, x) _mm256_storeu_si256((__m256i *)(void *)(to), x)
#define LOAD_HALVES(from) _mm256_loadu_si256((const __m256i *)(const void *)(from))
#define WIDEN_HALVES(x) _mm512_cvtph_ps(x)
#define NARROW_TO_HALVES(x) _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT)
#else
#define HALVES 8
#define STORE_WIDE(to, x) _mm256_storeu_ps((float *)(void *)(to), x)
#define LOAD_WIDE(from) _mm256_loadu_ps((const float *)(const void *)(from))
#define STORE_HALVES(to, x) _mm_storeu_si128((__m128i *)(void *)(to), x)
#define LOAD_HALVES(from) _mm_loadu_si128((const __m128i *)(const void *)(from))
#define WIDEN_HALVES(x) _mm256_cvtph_ps(x)
#define NARROW_TO_HALVES(x) _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT)
#endif

F16C static void widen_f16c(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n) {
    bool dense = to_step == sizeof(float) && from_step == sizeof(uint16_t);
    for (; dense && n >= HALVES; n -= HALVES, to += 4 * HALVES, from += 2 * HALVES)
        STORE_WIDE(to, WIDEN_HALVES(LOAD_HALVES(from)));
    widen_float16(to, to_step, from, from_step, n);
}

F16C static void narrow_f16c(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n) {
    bool dense = to_step == sizeof(uint16_t) && from_step == sizeof(float);
    for (; dense && n >= HALVES; n -= HALVES, to += 2 * HALVES, from += 4 * HALVES)
        STORE_HALVES(to, NARROW_TO_HALVES(LOAD_WIDE(from)));
    narrow_float16(to, to_step, from, from_step, n);
}

static bool has_f16c(void) {
    unsigned int a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

void NR_ISA(nr_fill_conversions)(nr_conversion *widen, nr_conversion *narrow, nr_mover (*wide)[NR_DTYPE_COUNT]) {
#define ENTER(number, dtype) widen[number] = NR_JOIN(widen, dtype), narrow[number] = NR_JOIN(narrow, dtype);
#define WIDE(...)
#define NARROW(NAME, name, ...) ENTER(NORCH_##NAME, name)
#include "../dtypes.def"
#define WIDE(NAME, name, ...) memcpy(wide[NORCH_##NAME], NR_JOIN2(from, name), sizeof wide[0]);
#define NARROW(...)
#include "../dtypes.def"
#if defined(__AVX2__)
    if (has_f16c()) {
        ENTER(NORCH_FLOAT16, f16c)
    }
#endif
}
