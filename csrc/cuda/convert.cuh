/* convert: one number from one dtype to another on a GPU, by the rules of core/convert.h. */
#ifndef NR_CUDA_CONVERT_H
#define NR_CUDA_CONVERT_H

#include "cuda.cuh"

template <class I> DEVICE I integer_of(float x) {
    if constexpr (sizeof(I) == 4)
        return nr_int32_of_float(x);
    else
        return nr_int64_of_float(x);
}
template <class I> DEVICE I integer_of(double x) {
    if constexpr (sizeof(I) == 4)
        return nr_int32_of_double(x);
    else
        return nr_int64_of_double(x);
}

/* An element of dtype From as one of dtype To. */
template <class To, class From> DEVICE typename To::S convert(typename From::S stored) {
    const typename From::T x = widen<From>(stored);
    if constexpr (To::kind == NR_KIND_B)
        return x != 0;
    else if constexpr (To::kind == NR_KIND_F)
        return narrow<To>((typename To::T)x);
    else if constexpr (From::kind != NR_KIND_F)
        return (typename To::S)(int64_t)x;
    else if constexpr (is_same<typename To::T, int32_t>) /* int8 and int16 too */
        return (typename To::S)integer_of<int32_t>(x);
    else
        return (typename To::S)integer_of<int64_t>(x);
}

#endif
