/* matmul: the plan of matrix products. */
#ifndef NR_FAMILIES_MATMUL_H
#define NR_FAMILIES_MATMUL_H

#include "../core/fields.h"
#include "../norch.h"

/* The argument of norch_set_float32_precision(). */
enum nr_float32_precision { NR_PRECISION_FLOAT32, NR_PRECISION_IEEE, NR_PRECISION_TF32, NR_PRECISION_COUNT };

/* Which triangle of a is read; of a unit triangle the diagonal is not read and stands for ones. */
typedef enum nr_triangle { NR_NO_TRIANGLE, NR_LOWER, NR_UPPER, NR_UNIT_LOWER, NR_UNIT_UPPER } nr_triangle;

/* c[m][n] = sum over k of a[m][k] b[k][n], plus bias[n] if there is one, for each item of the batch; then the epilogue,
 * if the call has a kernel, of a UNARY row (c is dense then). With a residual, dense as c is, c is beta residual +
 * alpha times that sum. With a triangle, an nr_triangle, c is the solution of a c = b instead. Strides count elements; c
 * has column stride 1. Batch strides: operand 0 is c, 1 a, 2 b. */
NR_PLAN(nr_matmul_plan, NUM(int64_t, m, n, k), NUM(int64_t, a_row, a_col, b_row, b_col, c_row),
        IN(const void *, a, b, bias, residual), NUM(double, alpha, beta), OUT(void *, c),
        NUM(int32_t, precision, triangle), /* precision: an nr_float32_precision */
        NUM(int32_t, batch_ndim), DIMS(p->batch_ndim, int64_t[NORCH_MAX_DIMS], batch),
        DIMS(p->batch_ndim, int64_t[3][NORCH_MAX_DIMS], batch_stride), SIZES(p->m, p->n, p->k));

#endif
