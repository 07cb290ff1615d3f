/* cpu: what the CPU's families share: threads, scratch memory, and the functions of each ISA build. */
#ifndef NR_CPU_H
#define NR_CPU_H

#include "../core/backend.h"
#include "../core/error.h"
#include "../core/memory.h"

const nr_backend *nr_cpu_backend(void);
const nr_backend *nr_meta_backend(void); /* meta.c */

#define INLINE static inline __attribute__((always_inline))
INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t greatest(int64_t a, int64_t b) { return a > b ? a : b; }
INLINE int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Asserts that no iteration of the loop behind it reads or writes what another one writes. */
#ifdef __clang__
#define IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define IVDEP _Pragma("GCC ivdep")
#endif

/* With a sanitizer freed blocks are not cached, so that it sees every use after free. (Clang before 21 has no macro of
 * that name.) */
#ifdef __SANITIZE_ADDRESS__
#define NR_CACHING 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NR_CACHING 0
#endif
#endif
#ifndef NR_CACHING
#define NR_CACHING 1
#endif

/* Calls body(context, chunk) for each chunk in [0, chunks), on as many threads as are free. Any thread may run any
 * chunk, so results are the same only if shapes alone decide the chunks, and no chunk depends on another.
 *
 * In the families a `job` is the context: the plan of a call, and how it is cut into chunks. Where threads need scratch
 * memory a chunk is a `worker`, which has some, and takes tasks from a counter of the job. */
void nr_share(int64_t chunks, void (*body)(void *context, int64_t chunk), void *context);
static inline void nr_parallel(int64_t chunks, void (*body)(void *context, int64_t chunk), void *context) {
    if (chunks == 1)
        body(context, 0);
    else
        nr_share(chunks, body, context);
}
/* 1 when nr_parallel would run everything in the caller. */
int32_t nr_threads(void);

/* Whether products of bfloat16 use the tile instructions of Intel's AMX, for which it asks the system; or what does the
 * same in plain C, for tests (amx.c). */
bool nr_has_tiles(void);
bool nr_emulates_tiles(void);

/* Bytes of the second cache of a core, alike in each call. */
int64_t nr_second_cache(void);

/* The memory of tensors, for the table of the backend. */
void *nr_cpu_alloc(const nr_backend *self, size_t n);
void nr_cpu_free(const nr_backend *self, void *data, size_t n);
/* Aligned scratch memory from the same allocator; NULL when there is none. */
void *nr_scratch(size_t n);
void nr_scratch_free(void *memory, size_t n);
/* Registers the allocator's fork handlers; threads.c says when. */
void nr_memory_watch_forks(void);

extern const struct nr_chain_runner nr_cpu_chains;

/* Families compiled once per instruction set carry its name: NR_ISA(run_matmul) is run_matmul_avx2.
 * NR_ISA_NAME comes from the compiler's command line. */
#define NR_JOIN(a, b) a##_##b
#define NR_JOIN2(a, b) NR_JOIN(a, b)
#define NR_ISA(name) NR_JOIN2(name, NR_ISA_NAME)
/* The build that every machine of the architecture runs. It has all kernels (NR_ISA_BASELINE); others replace some. */
#ifdef __aarch64__
#define NR_FIRST_ISA neon
#elif defined __wasm__
#define NR_FIRST_ISA simd128
#else
#define NR_FIRST_ISA baseline
#endif
#define NR_FIRST(name) NR_JOIN2(name, NR_FIRST_ISA)

/* Conversions of n elements of a narrow dtype to and from its wide one, whose elements have NR_WIDE bytes; steps in
 * bytes. A buffer of NR_PIECE wide elements fits the stack. */
typedef void (*nr_conversion)(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n);
extern nr_conversion nr_widen[NR_DTYPE_COUNT], nr_narrow[NR_DTYPE_COUNT];
#define NR_WIDE 4
#define NR_PIECE 1024

/* Copies n1 rows of n0 elements, steps in bytes; nr_conversions[from][to] converts between wide dtypes. */
typedef void (*nr_mover)(char *to, const int64_t *to_step, const char *from, const int64_t *from_step, int64_t n0,
                         int64_t n1);
extern nr_mover nr_conversions[NR_DTYPE_COUNT][NR_DTYPE_COUNT];

/* Repeats each of `rows` scalars of `size` bytes, step bytes apart, n times in buffer, which has NR_FILL_BYTES bytes
 * more. */
typedef void nr_row_filler(char *buffer, const char *from, int64_t step, int64_t n, int64_t rows, int64_t size);
extern nr_row_filler *nr_fill_rows;
#define NR_FILL_BYTES 64

typedef nr_kernel (*nr_kernel_rows)[NR_DTYPE_COUNT];
void nr_fill_complex(nr_kernel_rows kernels); /* those of complex.def, for every machine */

/* The runners of families; those compiled once call kernels of the ISA builds on runs of elements, or have none. */
typedef int32_t nr_runner(const nr_call *call);
#define SHARED(NAME, name, label, traits) nr_runner nr_run_##name;
#ifdef NR_ISA_NAME
#define PER_ISA(NAME, name, label, traits) nr_runner NR_ISA(nr_run_##name);
#endif
#include "../families.def"
nr_runner nr_run_nonzero; /* called by nr_run_index */

/* The functions of an ISA build (build_isa.c). The fill functions put their kernels into the table. */
typedef struct nr_isa {
    const char *name;
    void (*fill_pointwise)(nr_kernel_rows kernels);
    void (*fill_reduce)(nr_kernel_rows kernels);
    void (*fill_conversions)(nr_conversion *widen, nr_conversion *narrow, nr_mover (*wide)[NR_DTYPE_COUNT]);
    nr_row_filler *fill_rows;
    bool (*choose_bf16)(void); /* called once, when the library is loaded, as is */
    bool (*choose_conv)(void); /* whether convolutions take bfloat16; called likewise */
    void (*choose_int8)(void); /* what chooses the instructions that multiply 8-bit integers */
    const struct nr_layer_runner *layers;
    nr_runner *run[NR_FAMILY_COUNT]; /* NULL: the family is compiled once */
} nr_isa;
extern const nr_isa nr_build_baseline, nr_build_avx2, nr_build_avx512, nr_build_neon, nr_build_simd128;
#ifdef NR_ISA_NAME
void NR_ISA(nr_fill_pointwise)(nr_kernel_rows kernels);
void NR_ISA(nr_fill_reduce)(nr_kernel_rows kernels);
void NR_ISA(nr_fill_conversions)(nr_conversion *widen, nr_conversion *narrow, nr_mover (*wide)[NR_DTYPE_COUNT]);
nr_row_filler NR_ISA(nr_fill_rows);
bool NR_ISA(nr_choose_bf16)(void);
bool NR_ISA(nr_choose_conv)(void);
void NR_ISA(nr_choose_int8)(void);
/* From the family `quantized`: products of integers with integers. */
int32_t NR_ISA(nr_run_int8)(const nr_call *call);
/* How many products a float matmul sums before it adds them to those before, if it
 * does so in the order of k, else 0. */
int64_t NR_ISA(nr_matmul_depth)(const nr_call *call);
/* Products with a packed right operand: its numbers (0: the product runs as it is), its packing, and a run. */
int64_t NR_ISA(nr_product_packed_size)(const nr_call *call);
void NR_ISA(nr_product_pack)(const nr_call *call, float *to);
struct nr_layer;
int32_t NR_ISA(nr_packed_product)(const struct nr_layer *layer);
extern const struct nr_layer_runner NR_ISA(nr_layers);
#endif

#endif
