/* layer_isa: the layers of recordings (families/layer.h) on the CPU, for float32, built once per instruction set:
 * images from planes and back, and pooling. conv_image.h has the convolutions, stage_isa.c what follows them.
 *
 *   a task   columns of a row of a block:  [ convolution ][ batch norm ][ + image ][ relu ]   while they are in cache
 */
#include <math.h>
#include "../families/conv.h"
#include "../families/pool.h"
#include "gemm_isa.h"
#include "image.h"

#define TEMPLATE "layer_loops.h"
#define WANTED(kind, bits) (kind == 'f' && bits == 32)
#include "each_dtype.h"

static int64_t lanes(void) { return VECTOR / (int64_t)sizeof(float); }

static int32_t no_scratch(size_t bytes) {
    return nr_fail(NORCH_ERROR_MEMORY, "capture: no memory for %lld bytes of scratch", (long long)bytes);
}

static int32_t run_call(nr_layer_run *run) {
    const nr_layer *layer = run->layer;
    if (layer->call.family == NR_CONV) return NR_ISA(nr_conv_layer)(run);
    if (layer->call.family != NR_POOL) run->from = layer->x;
    nr_parallel(layer->y->batch * layer->y->blocks,
                layer->call.family == NR_POOL ? pool_block_float32 : map_block_float32, (void *)(uintptr_t)run);
    return NORCH_OK;
}

static int64_t packed_size(const nr_call *call) {
    return call->family == NR_MATMUL ? NR_ISA(nr_product_packed_size)(call) : NR_ISA(nr_conv_packed_size)(call);
}

static void pack(const nr_call *call, float *to) {
    (call->family == NR_MATMUL ? NR_ISA(nr_product_pack) : NR_ISA(nr_conv_pack))(call, to);
}

static int32_t run_layer(const nr_layer *layer) {
    if (layer->call.family == NR_MATMUL) return NR_ISA(nr_packed_product)(layer);
    const nr_image *y = layer->y;
    nr_layer_run run = {.layer = layer, .padded = y->blocks * y->lanes};
    const float *bias = layer->call.family == NR_CONV ? ((const nr_conv_plan *)layer->call.plan)->bias : NULL;
    int64_t numbers = bias ? run.padded : 0;
    for (int32_t i = 0; i < layer->stages; i++)
        numbers += layer->stage[i].call.family == NR_BATCH_NORM ? 3 * run.padded : 0;
    const size_t bytes = (size_t)numbers * sizeof(float);
    float *scratch = bytes ? nr_scratch(bytes) : NULL, *to = scratch;
    if (bytes && !scratch) return no_scratch(bytes);
    if (bytes) memset(scratch, 0, bytes);
    if (bias) {
        run.bias = memcpy(to, bias, (size_t)y->channels * sizeof(float));
        to += run.padded;
    }
    for (int32_t i = 0; i < layer->stages; i++) {
        if (layer->stage[i].call.family != NR_BATCH_NORM) continue;
        NR_ISA(nr_batch_norm_affine)(layer->stage[i].call.plan, to, to + run.padded, to + 2 * run.padded);
        run.norm[i] = to;
        to += 3 * run.padded;
    }
    for (int32_t i = 0; i < layer->loads; i++)
        nr_parallel(layer->load[i].image->batch * layer->load[i].image->blocks, load_block_float32,
                    (void *)(uintptr_t)&layer->load[i]);
    const int32_t status = run_call(&run);
    if (bytes) nr_scratch_free(scratch, bytes);
    return status;
}

static void store(const nr_image *image, float *planes) {
    nr_load s = {.image = (nr_image *)(uintptr_t)image, .from = (void *const *)&planes};
    nr_parallel(image->batch * image->blocks, store_block_float32, &s);
}

const nr_layer_runner NR_ISA(nr_layers) = {.lanes = lanes,
                                           .takes = NR_ISA(nr_conv_takes),
                                           .pays_alone = NR_ISA(nr_conv_pays_alone),
                                           .packed_size = packed_size,
                                           .pack = pack,
                                           .run = run_layer,
                                           .store = store};
