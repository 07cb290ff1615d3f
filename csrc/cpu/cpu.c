/* cpu: the CPU backend: its choice of instruction set and its tables. Memory: memory.c. Threads: threads.c.
 *
 *   kernels     baseline | avx2 | avx512      each fills the table up to the widest that the machine runs, a later row
 *               neon, on aarch64              replacing an earlier one; of the other families the widest alone is
 *               simd128, on WebAssembly       taken */
#include "cpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

static int32_t copy_bytes(const nr_backend *self, void *to, const void *from, size_t n) {
    (void)self;
    if (n) memcpy(to, from, n);
    return NORCH_OK;
}

static int32_t copy_back(const nr_backend *self, void *to, const void *from, size_t n, bool non_blocking) {
    (void)non_blocking;
    return copy_bytes(self, to, from, n);
}

static int32_t nothing_to_wait_for(const nr_backend *self) { return (void)self, NORCH_OK; }

/* ---- instruction sets -------------------------------------------------------------------------- */

static bool always(void) { return true; }

#ifdef __x86_64__
/* Reads cpuid, because __builtin_cpu_supports() depends on the compiler's runtime library, which does not always fill
 * in what it reads. The operating system must also save the registers of the set (Intel's manual, volume 1, 14.3 and
 * 15.2). */
static bool has(unsigned features, unsigned registers) {
    unsigned a, b, c, d, saved, high;
    const unsigned basic = bit_OSXSAVE | bit_AVX | bit_FMA;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & basic) != basic) return false;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & features) != features) return false;
    __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    return (saved & registers) == registers;
}

#define VECTORS 0x06u /* of 16 and 32 bytes */
#define LONG_VECTORS 0xe0u

static __attribute__((unused)) bool has_avx2(void) { return has(bit_AVX2, VECTORS); }

static __attribute__((unused)) bool has_avx512(void) {
    return has(bit_AVX2 | bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL, VECTORS | LONG_VECTORS);
}
#endif

/* The Makefile defines NR_HAS_... for each build that it makes, always one that every machine runs. */
static const struct {
    const nr_isa *isa;
    bool (*supported)(void);
} builds[] = {
#ifdef NR_HAS_neon
    {&nr_build_neon, always},
#endif
#ifdef NR_HAS_simd128
    {&nr_build_simd128, always},
#endif
#ifdef NR_HAS_baseline
    {&nr_build_baseline, always},
#endif
#ifdef NR_HAS_avx2
    {&nr_build_avx2, has_avx2},
#endif
#ifdef NR_HAS_avx512
    {&nr_build_avx512, has_avx512},
#endif
};
#define BUILD_COUNT (int)(sizeof builds / sizeof builds[0])

static int chosen; /* the number of a build */

const char *norch_isa(void) { return builds[chosen].isa->name; }

const char *norch_isa_builds(void) {
    static char names[64];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!names[0])
        for (int i = 0; i < BUILD_COUNT; i++)
            if (builds[i].supported()) {
                if (i) strcat(names, " ");
                strcat(names, builds[i].isa->name);
            }
    pthread_mutex_unlock(&lock);
    return names;
}

/* ---- the table --------------------------------------------------------------------------------- */

static nr_kernel kernels[NR_OP_COUNT][NR_DTYPE_COUNT];

static nr_backend backend = {
    .name = "cpu",
    .device_type = NORCH_CPU,
    .alloc = nr_cpu_alloc,
    .free = nr_cpu_free,
    .to_host = copy_bytes,
    .from_host = copy_back,
    .synchronize = nothing_to_wait_for,
    .kernels = kernels,
    .run =
        {
#define SHARED(NAME, name, label, traits) [NR_##NAME] = nr_run_##name,
#include "../families.def"
        },
    .chains = &nr_cpu_chains,
};

const nr_backend *nr_cpu_backend(void) { return &backend; }

/* Runs when the library is loaded. Chooses the widest build that the machine supports, or the one that NORCH_ISA names;
 * with an unknown name the baseline, and Python refuses the name. */
__attribute__((constructor)) static void choose_isa(void) {
    const char *wanted = getenv("NORCH_ISA");
    if (wanted && !*wanted) wanted = NULL;
    for (int i = 0; i < BUILD_COUNT; i++)
        if (builds[i].supported() && (!wanted || !strcmp(wanted, builds[i].isa->name))) chosen = i;
    for (int i = 0; i <= chosen; i++) { /* a build keeps kernels of the one before that it lacks */
        builds[i].isa->fill_pointwise(kernels);
        builds[i].isa->fill_reduce(kernels);
    }
    nr_fill_complex(kernels);
    const nr_isa *isa = builds[chosen].isa;
    isa->fill_conversions(nr_widen, nr_narrow, nr_conversions);
    nr_fill_rows = isa->fill_rows;
    for (int op = 0; op < NR_OP_COUNT; op++) /* a narrow dtype runs on the kernels of the one it is computed in */
        for (int32_t dtype = 0; dtype < NR_DTYPE_COUNT; dtype++) kernels[op][dtype] = kernels[op][nr_wide(dtype)];
    for (int family = 0; family < NR_FAMILY_COUNT; family++)
        if (isa->run[family]) backend.run[family] = isa->run[family];
    backend.layers = isa->layers;
    isa->choose_int8();
    backend.takes_narrow[NR_MATMUL] = 1u << NORCH_INT8;
    isa->choose_bf16();
    if (isa->choose_conv()) backend.takes_narrow[NR_CONV] = 1u << NORCH_BFLOAT16;
#ifndef __wasm__
    backend.takes_narrow[NR_MATMUL] |= 1u << NORCH_FLOAT16 | 1u << NORCH_BFLOAT16;
#endif
}
