/* stage_loops: the stages of a layer on columns of a row of a block, for float32: a template of each_dtype.h. */

#include "gemm_pack.h"

/* Columns at a time for which the numbers of channels are repeated. */
#define REPEATED 32

/* (x - mean) scale + shift, each operation rounded, as batch_norm_loops.h has it. */
static void NAME(normalize)(const nr_layer_run *run, const T *norm, int64_t block, int64_t count, const T *x, T *y) {
    norm += block * LANES;
    const NAME(vec) mean = VEC(norm), scale = VEC(norm + run->padded), shift = VEC(norm + 2 * run->padded);
    for (int64_t u = 0; u < count; u++) STORE(y + u * LANES, (VEC(x + u * LANES) - mean) * scale + shift);
}

/* A pointwise stage, by the kernel of its call. */
static void NAME(apply)(const nr_stage *stage, const nr_image *y, int64_t sample, int64_t block, int64_t row,
                        int64_t column, int64_t count, const T *self, T *out) {
    const nr_plan *plan = stage->call.plan;
    T repeated[NR_MAX_OPERANDS][REPEATED * LANES] __attribute__((aligned(VECTOR)));
    char *data[NR_MAX_OPERANDS];
    int64_t stride[NR_MAX_OPERANDS] = {sizeof(T)}, piece = count;
    data[0] = (char *)out;
    for (int o = 1; o < plan->operands; o++) {
        stride[o] = stage->operand[o] == NR_STAGE_NUMBER ? 0 : (int64_t)sizeof(T);
        data[o] = (char *)(uintptr_t)self;
        if (stage->operand[o] == NR_STAGE_NUMBER) data[o] = plan->data[o];
        if (stage->operand[o] == NR_STAGE_IMAGE)
            data[o] = (char *)nr_image_at(stage->image[o], sample, block, row, column);
        if (stage->operand[o] != NR_STAGE_CHANNELS) continue;
        const T *from = (const T *)(const void *)plan->data[o] + sample * y->channels + block * LANES;
        const NAME(vec) numbers = NAME(load_part)(from, (int)least(LANES, y->channels - block * LANES));
        piece = least(count, REPEATED);
        for (int64_t u = 0; u < piece; u++) STORE(repeated[o] + u * LANES, numbers);
        data[o] = (char *)repeated[o];
    }
    for (int64_t u = 0; u < count; u += piece) {
        ((nr_pointwise_kernel)stage->call.kernel)(least(piece, count - u) * LANES, data, stride, false);
        for (int o = 0; o < plan->operands; o++)
            if (o == 0 || stage->operand[o] < NR_STAGE_CHANNELS) data[o] += stride[o] * piece * LANES;
    }
}

static void NAME(finish)(const nr_layer_run *run, int64_t sample, int64_t block, int64_t row, int64_t column,
                         int64_t count) {
    const nr_layer *layer = run->layer;
    T *y = nr_image_at(layer->y, sample, block, row, column);
    const T *self = run->from ? nr_image_at(run->from, sample, block, row, column) : y;
    for (int32_t i = 0; i < layer->stages; i++) {
        if (run->norm[i])
            NAME(normalize)(run, run->norm[i], block, count, self, y);
        else
            NAME(apply)(&layer->stage[i], layer->y, sample, block, row, column, count, self, y);
        self = y;
    }
}
