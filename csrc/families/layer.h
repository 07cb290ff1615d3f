/* layer: the plan of a layer of a network in a recording: a convolution or another call, and the pointwise calls that
 * follow it, on images whose channels lie in blocks of a vector.
 *
 *   planes   (batch, channels, rows, columns)                   image   (batch, blocks, rows, columns, lanes)
 *            a a a a ..  of channel 0                                   a b c d   a b c d ..   of channels 0 to 3
 *            b b b b ..  of channel 1                                   zeros around each plane, for the taps outside
 *
 * A layer computes what its calls compute one by one, in the same order of sums and with the same roundings. */
#ifndef NR_FAMILIES_LAYER_H
#define NR_FAMILIES_LAYER_H

#include "../core/backend.h"
#include "conv.h"

/* float32. Lanes of the last block that stand for no channel may have any value. */
typedef struct nr_image {
    int64_t batch, channels, size[2], halo[2]; /* halo: zeros before and behind each row, and column */
    int64_t lanes, blocks, pitch, plane;       /* numbers of a row and of a plane, with the halo */
    void *data;
} nr_image;

static inline int64_t nr_image_bytes(const nr_image *image) { return image->batch * image->blocks * image->plane * 4; }

/* Number (row, column) of a block of a sample. */
static inline float *nr_image_at(const nr_image *image, int64_t sample, int64_t block, int64_t row, int64_t column) {
    return (float *)image->data + (sample * image->blocks + block) * image->plane +
           (row + image->halo[0]) * image->pitch + (column + image->halo[1]) * image->lanes;
}

/* Makes the halo as large as the forward convolution p reads outside its source: behind it perhaps further than before
 * it, as the padding behind may be another one than before. */
static inline void nr_grow_halo(const nr_conv_plan *p, int64_t halo[2]) {
    for (int d = 0; d < 2; d++) {
        const int64_t last = (p->result[d] - 1) * p->stride[d] + (p->kernel[d] - 1) * p->dilation[d] - p->padding[d];
        const int64_t behind = last - (p->size[d] - 1);
        if (halo[d] < p->padding[d]) halo[d] = p->padding[d];
        if (halo[d] < behind) halo[d] = behind;
    }
}

#define NR_LAYER_STAGES 8
#define NR_LAYER_LOADS 4

/* Where a stage finds an operand: in the result of the layer so far, in its plan, in an image of the same size, or,
 * one number a channel, in the memory to which the plan points. */
typedef enum nr_stage_operand { NR_STAGE_SELF, NR_STAGE_NUMBER, NR_STAGE_IMAGE, NR_STAGE_CHANNELS } nr_stage_operand;

/* A call that is applied to each element of the result: batch normalisation of evaluation, or a pointwise operation. */
typedef struct nr_stage {
    nr_call call;
    nr_stage_operand operand[NR_MAX_OPERANDS];
    const nr_image *image[NR_MAX_OPERANDS];
} nr_stage;

/* An image that is made of the planes at *from before the layer runs. */
typedef struct nr_load {
    nr_image *image;
    void *const *from;
} nr_load;

/* conv: forward, of x, or where x is NULL of the planes of its plan, with a packed weight. pool: max, of x. matmul: the
 * call itself, with a packed right operand, and neither images nor stages. Another family: the stages alone, of x. */
typedef struct nr_layer {
    nr_call call;
    const nr_image *x, *y;
    const float *packed;
    bool backwards; /* of a product: from the last columns to the first */
    int32_t loads, stages;
    nr_load load[NR_LAYER_LOADS];
    nr_stage stage[NR_LAYER_STAGES];
} nr_layer;

typedef struct nr_layer_runner {
    int64_t (*lanes)(void);
    /* Whether it runs a convolution as a layer, of an image, or from_planes. */
    bool (*takes)(const nr_call *call, bool *from_planes);
    bool (*pays_alone)(
        const nr_call *call); /* whether it runs faster as a layer where it shares no image with others */
    /* The size of a packed weight, in numbers. Calls that pack one weight to the same size pack it in the same way, and
     * share it. 0: the product runs faster as it is. */
    int64_t (*packed_size)(const nr_call *call);
    void (*pack)(const nr_call *call, float *to);
    int32_t (*run)(const nr_layer *layer);
    void (*store)(const nr_image *image, float *planes);
} nr_layer_runner;

#endif
