/* image: types and functions that the parts of a layer (families/layer.h) share on the CPU: layer_isa.c, conv_isa.c and
 * batch_norm_isa.c. */
#ifndef NR_CPU_IMAGE_H
#define NR_CPU_IMAGE_H

#include <string.h>

#include "../families/batch_norm.h"
#include "../families/layer.h"
#include "cpu.h"

/* A layer during its run. from is the input of the first stage (NULL: y). padded is the number of channels of all
 * blocks of y; bias has one number for each, or is NULL; norm has, for each stage that is a batch normalization, the
 * mean, scale and shift of each. */
typedef struct nr_layer_run {
    const nr_layer *layer;
    const nr_image *from;
    int64_t padded;
    const float *bias, *norm[NR_LAYER_STAGES];
} nr_layer_run;

#ifdef NR_ISA_NAME
/* Applies the stages to `count` columns of a row of a block, which hold the result of the layer's call. */
void NR_ISA(nr_layer_finish)(const nr_layer_run *run, int64_t sample, int64_t block, int64_t row, int64_t column,
                             int64_t count);
/* Whether a convolution can be a layer, and its parts (nr_layer_runner). */
bool NR_ISA(nr_conv_takes)(const nr_call *call, bool *from_planes);
bool NR_ISA(nr_conv_pays_alone)(const nr_call *call);
int64_t NR_ISA(nr_conv_packed_size)(const nr_call *call);
void NR_ISA(nr_conv_pack)(const nr_call *call, float *to);
int32_t NR_ISA(nr_conv_layer)(const nr_layer_run *run);
/* (x - mean) scale + shift is batch normalization in eval mode. */
void NR_ISA(nr_batch_norm_affine)(const nr_batch_norm_plan *p, float *mean, float *scale, float *shift);
#endif

/* Whether an image that a layer reads or writes has a halo. */
INLINE bool any_halo(const nr_layer *layer) {
    int64_t halo = layer->x->halo[0] | layer->x->halo[1] | layer->y->halo[0] | layer->y->halo[1];
    for (int32_t i = 0; i < layer->stages; i++)
        for (int o = 1; o < NR_MAX_OPERANDS; o++) {
            const nr_image *image = layer->stage[i].image[o];
            if (image) halo |= image->halo[0] | image->halo[1];
        }
    return halo != 0;
}

/* Zeros around rows [first, end) of a block, and above and below the plane where they reach its edges. */
INLINE void clear_halo(const nr_image *y, int64_t sample, int64_t block, int64_t first, int64_t end) {
    const size_t side = (size_t)(y->halo[1] * y->lanes) * sizeof(float);
    const size_t ends = (size_t)(y->halo[0] * y->pitch) * sizeof(float);
    float *row = nr_image_at(y, sample, block, first, -y->halo[1]);
    if (first == 0 && ends) memset(row - y->halo[0] * y->pitch, 0, ends);
    for (int64_t i = first; i < end; i++, row += y->pitch) {
        if (!side) continue;
        memset(row, 0, side);
        memset(row + y->pitch - y->halo[1] * y->lanes, 0, side);
    }
    if (end == y->size[0] && ends) memset(nr_image_at(y, sample, block, end, -y->halo[1]), 0, ends);
}

#endif
