/* layers: a layer of a program, and its run. */
#ifndef NR_PROGRAM_LAYERS_H
#define NR_PROGRAM_LAYERS_H

#include "../families/layer.h"
#include "packed.h"
#include "program.h"

struct nr_lowered {
    nr_layer layer;
    nr_packed *packed;                    /* the weight of a convolution; or NULL */
    bool joined;                          /* reads an image of another layer, or another one reads its */
    int64_t stage_instr[NR_LAYER_STAGES]; /* the calls that were folded into it */
};

void nr_lowered_free(nr_lowered *lowered);
/* Runs the layer that begins with a call, and stores the image that the call wrote. */
int32_t nr_run_lowered(const nr_call *call);

#endif
