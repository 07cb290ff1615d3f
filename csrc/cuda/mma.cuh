/* mma: the tensor cores' products and the copies that feed them, one function an instruction. They need compute
 * capability 8.0 (NR_HAS_MMA); for older devices they are empty, and the host chooses other kernels.
 *
 *   global memory --copy_async--> shared memory --load_matrices--> registers --mma--> sums in registers
 *
 * A warp multiplies m16 x k by k x n8. Lane l has, with g = l / 4 and t = l % 4, in register r or q:
 *
 *                A                                   B                            C
 *   16-bit k16   row g + 8 (r % 2),                  k 2t + 8 r + {0, 1},         row g + 8 (q / 2),
 *                k 2t + 8 (r / 2) + {0, 1}           column g                     column 2t + q % 2
 *   tf32 k8      row g + 8 (r % 2), k t + 4 (r / 2)  k t + 4 r, column g          as above
 *   float64 k16  row g + 8 (r % 2), k t + 4 (r / 2)  k t + 4 r, column g          as above; needs 9.0
 *
 * Source: NVIDIA, Parallel Thread Execution ISA, "Warp Level Matrix Instructions". */
#ifndef NR_CUDA_MMA_H
#define NR_CUDA_MMA_H

#include "cuda.cuh"

#ifdef CUDASIM
#include "simulated_mma.h"
#define NR_HAS_MMA 1
#else

#define NR_HAS_MMA (__CUDA_ARCH__ >= 800)
#if NR_HAS_MMA
#define NR_MMA(...) asm volatile(__VA_ARGS__)
#else
#define NR_MMA(...) (void)0
#endif

/* The offset of p, an address of shared memory, in shared memory. */
DEVICE uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

/* 4, 8 or 16 aligned bytes to shared memory, in the background; zeros where they are not valid, which are not read. */
template <int bytes> DEVICE void copy_async(uint32_t to, const void *from, bool valid) {
    static_assert(bytes == 4 || bytes == 8 || bytes == 16, "");
    if constexpr (bytes == 16)
        NR_MMA("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
    else
        NR_MMA("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(bytes),
               "r"(valid ? bytes : 0) : "memory");
}
/* Ends a group of this thread's copies. */
DEVICE void commit_copies() { NR_MMA("cp.async.commit_group;" :: : "memory"); }
/* Waits until at most the last `pending` groups of this thread are under way. */
template <int pending> DEVICE void wait_copies() { NR_MMA("cp.async.wait_group %0;" ::"n"(pending) : "memory"); }

/* Four 8 x 8 matrices of 16-bit elements: lane l names row l % 8 of matrix l / 8, 16 bytes, and gets in r[i] the
 * elements (g, 2t), (g, 2t + 1) of matrix i; transposed: (2t, g), (2t + 1, g). */
DEVICE void load_matrices(uint32_t (&r)[4], uint32_t at) {
    NR_MMA("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]),
           "=r"(r[3]) : "r"(at) : "memory");
}
DEVICE void load_matrices_transposed(uint32_t (&r)[4], uint32_t at) {
    NR_MMA("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]),
           "=r"(r[3]) : "r"(at) : "memory");
}

#undef NR_MMA
#if NR_HAS_MMA
#define NR_MMA(...) asm(__VA_ARGS__)
#else
#define NR_MMA(...) (void)0
#endif

/* c += a b, of D: dtype_float16 or dtype_bfloat16; products are exact, sums float32. */
template <class D> DEVICE void mma_16bit(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    if constexpr (D::code == NORCH_BFLOAT16)
        NR_MMA(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(
                c[0]),
            "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        NR_MMA(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(
                c[0]),
            "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* c += a b of the first 19 bits of float32 numbers. Sums are truncated, not rounded: long sums drift toward zero. */
DEVICE void mma_tf32(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    NR_MMA(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(
            c[0]),
        "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
/* c = a b: c need not be set to zero. */
DEVICE void mma_tf32_from_zero(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    NR_MMA("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
           "{%10,%10,%10,%10};" : "=f"(c[0]),
           "=f"(c[1]), "=f"(c[2]), "=f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1),
           "f"(0.0f));
}

/* The nearest number of TF32, ties away from zero. */
DEVICE uint32_t round_tf32(uint32_t x) {
    uint32_t rounded = 0;
    NR_MMA("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(__int_as_float((int)x)));
    return rounded;
}

/* c += a b in float64, k16. */
DEVICE void mma_float64(double (&c)[4], const double (&a)[8], const double (&b)[4]) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, "
        "{%12,%13,%14,%15}, {%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]),
          "d"(b[2]), "d"(b[3]));
#endif
}
#undef NR_MMA
#endif

/* A number of float32 as the sum of two that tf32 holds, but for some 2^-22 of it: x = big + small. big is rounded,
 * ties away from zero; the tensor core truncates small. Infinities, and numbers that round to one, become NaN in
 * products. Source: Ootomo, Yokota, "Recovering single precision accuracy from Tensor Cores" (2022). */
DEVICE void split_tf32(uint32_t x, uint32_t *big, uint32_t *small) {
    *big = (x + 0x1000u) & 0xffffe000u;
    *small = (uint32_t)__float_as_int(__int_as_float((int)x) - __int_as_float((int)*big));
}

#endif
