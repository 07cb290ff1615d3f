/* wgmma: the instructions of compute capability 9.0 (NR_HAS_WGMMA) that load tiles of matrices into shared memory and
 * multiply them from there, one function an instruction.
 *
 *   one thread:     expect_bytes(full)   copy_tile ... copy_tile     (the tensor memory accelerator, in the background)
 *                        |                                  ^
 *                        v                                  |
 *   four warps:     wait_barrier(full)   wgmma ... wgmma   arrive(empty): the place may be filled again
 *
 * An mbarrier counts arrivals and the bytes that it was told to expect; when none is missing its phase, 0 or 1, ends,
 * and the next begins. Tiles in shared memory have rows of 128 bytes, whose chunks of 16 are XORed with the row's
 * number modulo 8, from an address that 1024 divides.
 *
 * A warpgroup of 4 warps multiplies m64 n N and 32 bytes of k: k16, of TF32 k8. Lane l of warp w has with g = l / 4,
 * t = l % 4 in d[4 j + q]: row 16 w + g + 8 (q / 2), column 8 j + 2 t + q % 2.
 *
 * Source: NVIDIA, Parallel Thread Execution ISA, "Asynchronous Warpgroup Level Matrix Instructions", "mbarrier". */
#ifndef NR_CUDA_WGMMA_H
#define NR_CUDA_WGMMA_H

#include "mma.cuh"

/* The description of a matrix for the tensor memory accelerator; cuTensorMapEncodeTiled creates it (CUtensorMap). */
struct alignas(64) tensor_map {
    uint64_t opaque[16];
};

#ifdef CUDASIM
#include "simulated_wgmma.h"
#define NR_HAS_WGMMA 1
#else

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define NR_HAS_WGMMA 1
#define NR_ASM(...) asm volatile(__VA_ARGS__)
#else
#define NR_HAS_WGMMA 0
#define NR_ASM(...) (void)0
#endif

/* A warpgroup releases registers of its threads, or waits until it has as many as it needs: n each, a multiple of 8. */
template <int n> DEVICE void limit_registers() { NR_ASM("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(n)); }
template <int n> DEVICE void raise_registers() { NR_ASM("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(n)); }

/* ---- mbarriers, by their addresses in shared memory -------------------------------------------------------------- */

DEVICE void init_barrier(uint32_t barrier, int arrivals) {
    NR_ASM("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/* After the inits, before a __syncthreads(). */
DEVICE void publish_barriers() { NR_ASM("fence.mbarrier_init.release.cluster;" :: : "memory"); }
DEVICE void arrive(uint32_t barrier) { NR_ASM("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory"); }
/* An arrival that says how many bytes are to come in this phase. */
DEVICE void expect_bytes(uint32_t barrier, int bytes) {
    NR_ASM("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
/* Waits until the phase of this parity is over. */
DEVICE void wait_barrier(uint32_t barrier, int parity) {
    int over = 0;
    do {
        NR_ASM("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }" : "=r"(
                   over) : "r"(barrier),
               "r"(parity) : "memory");
    } while (!over);
}

/* Begins to copy the map's box at these places, in elements, to shared memory; zeros where the matrix ends.
 * Its bytes count for the barrier. */
DEVICE void copy_tile(uint32_t to, const tensor_map *map, int x, int y, int first_batch, int second_batch,
                      uint32_t barrier) {
    NR_ASM(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];" ::
            "r"(to),
        "l"(map), "r"(x), "r"(y), "r"(first_batch), "r"(second_batch), "r"(barrier) : "memory");
}

/* Makes what this thread has written to shared memory visible to store_tile(). */
DEVICE void publish_to_stores() { NR_ASM("fence.proxy.async.shared::cta;" :: : "memory"); }
/* Begins to copy a box of shared memory to the matrix, except the part outside of it. */
DEVICE void store_tile(const tensor_map *map, uint32_t from, int x, int y, int first_batch, int second_batch) {
    NR_ASM("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map), "r"(from),
           "r"(x), "r"(y), "r"(first_batch), "r"(second_batch) : "memory");
}
DEVICE void commit_stores() { NR_ASM("cp.async.bulk.commit_group;" :: : "memory"); }
/* Waits until this thread's stores have read shared memory. */
DEVICE void wait_stores() { NR_ASM("cp.async.bulk.wait_group.read 0;" :: : "memory"); }

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* Before the first wgmma of a run: registers and shared memory are as they should be. */
DEVICE void begin_products() { NR_ASM("wgmma.fence.sync.aligned;" :: : "memory"); }
DEVICE void commit_products() { NR_ASM("wgmma.commit_group.sync.aligned;" :: : "memory"); }
/* Waits until at most the last `pending` groups are under way. */
template <int pending> DEVICE void wait_products() {
    NR_ASM("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

/* "%0, %1, ... %31" and so on, and the registers d[i] ... of which they are the numbers. */
#define NR_TEN(tens)                                                                                                  \
    "%" #tens "0, %" #tens "1, %" #tens "2, %" #tens "3, %" #tens "4, %" #tens "5, %" #tens "6, %" #tens "7, %" #tens \
    "8, %" #tens "9, "
#define NR_THIRTY NR_TEN() NR_TEN(1) NR_TEN(2)
#define NR_SIXTY NR_THIRTY NR_TEN(3) NR_TEN(4) NR_TEN(5)
#define NR_NINETY NR_SIXTY NR_TEN(6) NR_TEN(7) NR_TEN(8)
#define NR_TO_31 NR_THIRTY "%30, %31"
#define NR_TO_63 NR_SIXTY "%60, %61, %62, %63"
#define NR_TO_95 NR_NINETY "%90, %91, %92, %93, %94, %95"
#define NR_TO_127 NR_NINETY NR_TEN(9) NR_TEN(10) NR_TEN(11) "%120, %121, %122, %123, %124, %125, %126, %127"
#define NR_SUMS_8(i)                                                                                            \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
        "+f"(d[i + 7])
#define NR_SUMS_32(i) NR_SUMS_8(i), NR_SUMS_8(i + 8), NR_SUMS_8(i + 16), NR_SUMS_8(i + 24)

/* wgmma for n columns of a type; list: the sums' numbers; the numbers of the other operands; then the sums. */
#define NR_WGMMA(k, type, layout, n, list, a, b, add, a_across, b_across, ...)                                         \
    NR_ASM("{ .reg .pred p; setp.ne.b32 p, " add ", 0; wgmma.mma_async.sync.aligned.m64n" n "k" k ".f32." type         \
           "." type " {" list "}, " a ", " b ", p, 1, 1" layout(a_across, b_across) "; }" : __VA_ARGS__ : "l"(a_tile), \
           "l"(b_tile), "r"((int)keep), "n"(across_a), "n"(across_b))
#define NR_EITHER_WAY(a, b) ", " a ", " b
#define NR_ALONG_K(a, b) ""
#define NR_WGMMA_OF(D, ...)                                      \
    if constexpr (D::code == NORCH_BFLOAT16)                     \
        NR_WGMMA_TYPE("16", "bf16", NR_EITHER_WAY, __VA_ARGS__); \
    else if constexpr (D::code == NORCH_FLOAT16)                 \
        NR_WGMMA_TYPE("16", "f16", NR_EITHER_WAY, __VA_ARGS__);  \
    else                                                         \
        NR_WGMMA_TYPE("8", "tf32", NR_ALONG_K, __VA_ARGS__)
#define NR_WGMMA_TYPE(k, type, layout, ...) NR_WGMMA(k, type, layout, __VA_ARGS__)

/* d = a b, plus d where keep, over 32 bytes of k. The tiles are described by describe_tile(); across: a tile's rows are
 * of k, not of m or n, which float32 (TF32, the first 19 bits) does not allow. */
template <class D, bool across_a, bool across_b>
DEVICE void wgmma(float (&d)[32], uint64_t a_tile, uint64_t b_tile, bool keep) {
    NR_WGMMA_OF(D, "64", NR_TO_31, "%32", "%33", "%34", "%35", "%36", NR_SUMS_32(0));
}
template <class D, bool across_a, bool across_b>
DEVICE void wgmma(float (&d)[64], uint64_t a_tile, uint64_t b_tile, bool keep) {
    NR_WGMMA_OF(D, "128", NR_TO_63, "%64", "%65", "%66", "%67", "%68", NR_SUMS_32(0), NR_SUMS_32(32));
}
template <class D, bool across_a, bool across_b>
DEVICE void wgmma(float (&d)[96], uint64_t a_tile, uint64_t b_tile, bool keep) {
    NR_WGMMA_OF(D, "192", NR_TO_95, "%96", "%97", "%98", "%99", "%100", NR_SUMS_32(0), NR_SUMS_32(32), NR_SUMS_32(64));
}
template <class D, bool across_a, bool across_b>
DEVICE void wgmma(float (&d)[128], uint64_t a_tile, uint64_t b_tile, bool keep) {
    NR_WGMMA_OF(D, "256", NR_TO_127, "%128", "%129", "%130", "%131", "%132", NR_SUMS_32(0), NR_SUMS_32(32),
                NR_SUMS_32(64), NR_SUMS_32(96));
}
#undef NR_ASM
#endif

/* The descriptor for wgmma of a tile at an address of shared memory: 1024 bytes from 8 rows to the next 8; of a tile
 * across, 64 columns wide, `leading` bytes from one to the next. */
DEVICE uint64_t describe_tile(uint32_t at, int leading) {
    const uint64_t swizzle_128 = 1;
    return (uint64_t)((at & 0x3ffff) >> 4) | (uint64_t)(leading >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 |
           swizzle_128 << 62;
}

#endif
