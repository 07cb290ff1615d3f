/* pointwise: the shape of the elementwise kernels: what the launcher (pointwise.cu) passes to those that
 * pointwise_dtype.cu makes of the rows of ops.def. */
#ifndef NR_CUDA_POINTWISE_H
#define NR_CUDA_POINTWISE_H

#include "cuda.cuh"

#define NR_INPUTS 3

/* n elements in a row; inputs are such rows too, or one number. */
struct dense_args {
    void *out;
    operand in[NR_INPUTS];
    int64_t n;
    int32_t number; /* the dtype that memory holds */
    bool aligned;   /* every address is one that wide accesses may take */
};

/* Elements anywhere, or runs of `width` neighbours, where an input may be one number. */
struct strided_args {
    char *out;
    operand in[NR_INPUTS];
    uint32_t n; /* elements, or runs */
    int32_t number;
    bool runs;
    nest<NR_INPUTS + 1> where;
};

struct pointwise_kernel {
    void (*dense)(dense_args);
    void (*halves)(dense_args); /* the same of dtypes of 2 bytes, 8 elements a thread */
    void (*strided)(strided_args);
    int32_t width;      /* elements that a thread of `dense` takes, or in a run */
    bool choice, truth; /* the first input is a bool, the result is one */
};

#endif
