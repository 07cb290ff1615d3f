/* quantized: the plans of products with a weight of 8-bit or 4-bit integers, and of this weight as floats.
 *
 *   a row of the weight has k integers, in blocks of 32, the last one filled up with zeros
 *   8 bits  int8:   one a byte
 *   4 bits  uint8:  16 bytes a block: byte i has integer i of the block in its low half, and integer i + 16 in its
 *                   high half, each plus 8
 *   scale   float32 (n, groups): integer (j, c) stands for scale[j][c / group] times it; a group has a
 *                   power of two of columns, 32 or more */
#ifndef NR_FAMILIES_QUANTIZED_H
#define NR_FAMILIES_QUANTIZED_H

#include "../core/convert.h"
#include "../core/fields.h"
#include "../norch.h"

#define NR_QUANTIZED_BLOCK 32
#define NR_QUANTIZED_PART 2048 /* columns of a group whose products with integers are summed as integers at most */

/* LINEAR: y[m][n] = sum over k of x[m][k] w[n][k], plus bias[n] if there is one. WEIGHT: y[n][k] = w[n][k]; m is 1.
 * DYNAMIC: LINEAR with 8-bit integers in place of x, the nearest to x[m][k] / s, times the scale s of their row. All
 * are contiguous, and float32 but for the weight. */
typedef enum nr_quantized_kind { NR_QUANTIZED_LINEAR, NR_QUANTIZED_WEIGHT, NR_QUANTIZED_DYNAMIC } nr_quantized_kind;
NR_PLAN(nr_quantized_plan, NUM(int64_t, m, n, k, groups), NUM(int32_t, bits, shift), /* group: 1 << shift blocks */
        IN(const void *, x, weight, scale, bias), OUT(void *, y), SIZES(p->m, p->n, p->k));

static inline int64_t nr_quantized_blocks(const nr_quantized_plan *p) {
    return (p->k + NR_QUANTIZED_BLOCK - 1) / NR_QUANTIZED_BLOCK;
}

/* The stride of the four rows of the weight, of n, that are multiplied by one row of x together: memory is faster if it
 * is read in four places. 0 for more rows of x: there the rows of the weight lie side by side. */
static inline int64_t nr_quantized_stride(const nr_quantized_plan *p, int64_t n) { return p->m == 1 ? n / 4 : 0; }

/* The scale of a row of x whose largest magnitude has these bits, so that it is 127. It is not subnormal, nor is 1 over
 * it infinite. NaN, and so the whole row of y, if an element of the row is not finite. */
NR_SHARED float nr_scale_of_row(uint32_t most) {
    const float scale = nr_float_of_bits(most) / 127;
    return most >= 0x7f800000u ? nr_float_of_bits(0x7fc00000u) : scale > 0x1p-126f ? scale : 0x1p-126f;
}

#endif
