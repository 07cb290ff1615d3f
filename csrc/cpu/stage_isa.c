/* stage_isa: the calls that follow a convolution or another call in a layer (families/layer.h), built once per
 * instruction set. They are computed by the kernels, or the formulas, of the calls that they replace, so that results
 * have the same bits. */
#include "gemm_isa.h"
#include "image.h"
#include "pointwise.h"

#define TEMPLATE "stage_loops.h"
#define WANTED(kind, bits) (kind == 'f' && bits == 32)
#include "each_dtype.h"

void NR_ISA(nr_layer_finish)(const nr_layer_run *run, int64_t sample, int64_t block, int64_t row, int64_t column,
                             int64_t count) {
    finish_float32(run, sample, block, row, column, count);
}
