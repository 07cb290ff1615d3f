/* matmul: the plan of matrix products. */
#ifndef NR_FAMILIES_MATMUL_H
#define NR_FAMILIES_MATMUL_H

#include "../norch.h"

/* The argument of norch_set_float32_precision(). */
enum nr_float32_precision { NR_PRECISION_FLOAT32, NR_PRECISION_IEEE, NR_PRECISION_TF32, NR_PRECISION_COUNT };

/* c[m][n] = sum over k of a[m][k] b[k][n], plus bias[n] if there is one, for each item of the batch; then the epilogue,
 * if the call has a kernel, of a UNARY row (c is dense then). With a residual, dense as c is, c is beta residual + alpha
 * times that sum; not on the CPU. Strides count elements; c has column stride 1. Batch strides: operand 0 is c, 1 a, 2 b. */
typedef struct nr_matmul_plan {
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col, c_row;
    const void *a, *b, *bias, *residual;
    double alpha, beta;
    void *c;
    int32_t precision; /* an nr_float32_precision */
    int32_t batch_ndim;
    int64_t batch[NORCH_MAX_DIMS];
    int64_t batch_stride[3][NORCH_MAX_DIMS];
} nr_matmul_plan;

#endif
