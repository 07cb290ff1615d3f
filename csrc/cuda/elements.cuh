/* elements: the traits of element types in kernels, and reads and writes of elements. It uses no host header, so that
 * NVRTC compiles it too (chain_compile.cu).
 *
 * Division by invariant integers: Granlund, Montgomery (PLDI 1994). */
#ifndef NR_CUDA_ELEMENTS_H
#define NR_CUDA_ELEMENTS_H

#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define NR_SHARED static __device__ __forceinline__ /* what core/ shares with kernels */
extern "C" {
#include "../core/convert.h"
#include "../core/optable.h"
#include "../core/plan.h"
}

#ifndef LAUNCH
#define LAUNCH(kernel, grid, block, shared, stream, ...) kernel<<<grid, block, shared, stream>>>(__VA_ARGS__)
#define DYNAMIC_SHARED(type, name)                             \
    extern __shared__ __align__(16) unsigned char nr_shared[]; \
    type *name = reinterpret_cast<type *>(nr_shared)
/* The most dynamic shared memory that a launch gives the kernel that says so: `make cuda-report` reads it. */
#define TELL_SHARED(bytes) asm("// dynamic shared memory: %0" ::"n"(bytes))
#endif

#define DEVICE __device__ __forceinline__

#define NR_BLOCK 256

/* ---- element types ------------------------------------------------------------------------------------ */

/* The traits of dtypes.def, by the number of the dtype: S is stored, T computed, A the type of sums. Kernels are
 * compiled for the wide dtypes, and read and write the narrow ones too, whose number they get as an argument. */
template <int number> struct dtype;
#define NR_KIND_B 4
#define NR_KIND_U 2
#define NR_KIND_I 2
#define NR_KIND_F 1
#define DTYPE(NAME, name, Stored, Computed, Sum, class, digits) \
    template <> struct dtype<NORCH_##NAME> {                    \
        using S = Stored;                                       \
        using T = Computed;                                     \
        using A = Sum;                                          \
        static constexpr int kind = NR_KIND_##class;            \
        static constexpr int code = NORCH_##NAME;               \
    };                                                          \
    using dtype_##name = dtype<NORCH_##NAME>;
#include "../dtypes.def"

template <bool first, class A, class B> struct choose {
    using type = A;
};
template <class A, class B> struct choose<false, A, B> {
    using type = B;
};

template <class A, class B> constexpr bool is_same = false;
template <class A> constexpr bool is_same<A, A> = true;

/* The conversions of core/convert.h, in one instruction where the GPU has it. */
DEVICE float float_of_float16(uint16_t x) {
#ifdef __CUDA_ARCH__
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
#else
    return nr_float_of_float16(x);
#endif
}
DEVICE uint16_t float16_of_float(float x) {
#ifdef __CUDA_ARCH__
    uint16_t y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
#else
    return nr_float16_of_float(x);
#endif
}
DEVICE uint16_t bfloat16_of_float(float x) {
#if __CUDA_ARCH__ >= 800
    uint16_t y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
#else
    return nr_bfloat16_of_float(x);
#endif
}

/* The stored value of a dtype as a number to compute with, and back. */
template <class D> DEVICE typename D::T widen(typename D::S x) {
    if constexpr (D::code == NORCH_FLOAT16)
        return float_of_float16(x);
    else if constexpr (D::code == NORCH_BFLOAT16)
        return nr_float_of_bfloat16(x);
    else
        return (typename D::T)x;
}
template <class D> DEVICE typename D::S narrow(typename D::T x) {
    if constexpr (D::code == NORCH_FLOAT16)
        return float16_of_float(x);
    else if constexpr (D::code == NORCH_BFLOAT16)
        return bfloat16_of_float(x);
    else
        return (typename D::S)x;
}

/* Calls what(dtype) with D itself, or with the narrow dtype of that number which D computes for. */
template <class D, class Call> DEVICE void with_stored(int32_t number, const Call &call) {
#define WIDE(...)
#define NARROW(NAME, name, Stored, Computed, ...)   \
    if constexpr (is_same<Computed, typename D::T>) \
        if (number == NORCH_##NAME) return call(dtype_##name());
#include "../dtypes.def"
    call(D());
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* n / size for n < 2^31, by a product. */
struct divisor {
    uint32_t size, factor, shift;
};

static inline divisor divisor_of(int64_t size) {
    divisor d = {size ? (uint32_t)size : 1, 0, 0}; /* an empty loop has no threads */
    while (((uint64_t)1 << d.shift) < d.size) d.shift++;
    d.factor = (uint32_t)((((uint64_t)1 << 32) * (((uint64_t)1 << d.shift) - d.size)) / d.size + 1);
    return d;
}

DEVICE uint32_t quotient(uint32_t n, const divisor &d) { return (__umulhi(n, d.factor) + n) >> d.shift; }

/* A number, or numbers on the device `stride` elements apart (0 or 1). */
struct operand {
    const char *data; /* NULL: value */
    uint64_t value;
    int64_t step; /* wide, so that no byte of a kernel's arguments is left unset */
};

/* The low bytes of a number that the host has put into a word. */
template <class S> DEVICE S immediate(uint64_t value) {
    S x;
    memcpy(&x, &value, sizeof x);
    return x;
}

/* a b + c, of floats rounded once, whether the file is compiled with contraction or
 * without. The simulation rounds twice. */
template <class T> DEVICE T multiply_add(T a, T b, T c) {
#ifndef CUDASIM
    if constexpr (is_same<T, float>) return fmaf(a, b, c);
    if constexpr (is_same<T, double>) return fma(a, b, c);
#endif
    return a * b + c;
}

/* ---- runs of elements ----------------------------------------------------------------------------------- */

/* As many elements as one access of at most 16 bytes moves. */
template <class S, int n> struct alignas(sizeof(S) * n) pack {
    S v[n];
};

/* n elements of the narrow or wide dtype `number` from the i-th, as D computes with them; `wide`: there are so many,
 * at an address that one access may take. A number that the host has sent has dtype D. */
template <class D, int n>
DEVICE void load(typename D::T *to, int32_t number, const operand &x, int64_t i, int64_t count, bool wide) {
    using T = typename D::T;
    if (!x.data) {
        T one = widen<D>(immediate<typename D::S>(x.value));
        for (int k = 0; k < n; k++) to[k] = one;
        return;
    }
    with_stored<D>(number, [&](auto stored) {
        using Stored = decltype(stored);
        using S = typename Stored::S;
        const S *from = reinterpret_cast<const S *>(x.data);
        if (x.step == 0) {
            T one = widen<Stored>(*from);
            for (int k = 0; k < n; k++) to[k] = one;
        } else if (wide) {
            pack<S, n> all = *reinterpret_cast<const pack<S, n> *>(from + i);
            for (int k = 0; k < n; k++) to[k] = widen<Stored>(all.v[k]);
        } else {
            for (int k = 0; k < n; k++) to[k] = i + k < count ? widen<Stored>(from[i + k]) : T();
        }
    });
}

template <class D, int n>
DEVICE void store(void *to, int32_t number, const typename D::T *from, int64_t i, int64_t count, bool wide) {
    with_stored<D>(number, [&](auto stored) {
        using Stored = decltype(stored);
        using S = typename Stored::S;
        if (wide) {
            pack<S, n> all;
            for (int k = 0; k < n; k++) all.v[k] = narrow<Stored>(from[k]);
            *reinterpret_cast<pack<S, n> *>(static_cast<S *>(to) + i) = all;
        } else {
            for (int k = 0; k < n; k++)
                if (i + k < count) static_cast<S *>(to)[i + k] = narrow<Stored>(from[k]);
        }
    });
}

/* One element at an address. */
template <class D> DEVICE typename D::T load_one(int32_t number, const void *from) {
    typename D::T x;
    with_stored<D>(number, [&](auto stored) {
        using Stored = decltype(stored);
        x = widen<Stored>(*static_cast<const typename Stored::S *>(from));
    });
    return x;
}
template <class D> DEVICE void store_one(int32_t number, void *to, typename D::T x) {
    with_stored<D>(number, [&](auto stored) {
        using Stored = decltype(stored);
        *static_cast<typename Stored::S *>(to) = narrow<Stored>(x);
    });
}

#endif
