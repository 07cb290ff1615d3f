/* layer_loops: the loops of layer_isa.c over blocks of an image, for float32: a template of each_dtype.h. */

#include "gemm_pack.h"
#include "image_loops.h"

/* ---- calls that are no convolutions --------------------------------------------------------------------- */

/* The number of columns to which stages are applied at a time if no image has a halo, so that rows follow each
 * other. */
#define MAPPED 128

static void NAME(map_block)(void *context, int64_t task) {
    const nr_layer_run *run = context;
    const nr_image *y = run->layer->y;
    const int64_t b = task % y->blocks, sample = task / y->blocks, area = y->size[0] * y->size[1];
    if (any_halo(run->layer)) {
        for (int64_t i = 0; i < y->size[0]; i++) NR_ISA(nr_layer_finish)(run, sample, b, i, 0, y->size[1]);
        clear_halo(y, sample, b, 0, y->size[0]);
        return;
    }
    for (int64_t at = 0; at < area; at += MAPPED)
        NR_ISA(nr_layer_finish)(run, sample, b, 0, at, least(MAPPED, area - at));
}

typedef INTEGER NAME(truths) __attribute__((vector_size(VECTOR)));

/* The maxima of windows: among equal elements the first is taken, among NaNs the last, as in pool_loops.h. */
static void NAME(pool_block)(void *context, int64_t task) {
    const nr_layer_run *run = context;
    const nr_pool_plan *p = run->layer->call.plan;
    const nr_image *x = run->layer->x, *y = run->layer->y;
    const int64_t b = task % y->blocks, sample = task / y->blocks;
    for (int64_t i = 0; i < y->size[0]; i++) {
        const int64_t top = i * p->stride[0] - p->padding[0];
        T *out = nr_image_at(y, sample, b, i, 0);
        for (int64_t j = 0; j < y->size[1]; j++, out += LANES) {
            const int64_t left = j * p->stride[1] - p->padding[1];
            const int64_t from = left < 0 ? ceil_div(-left, p->dilation[1]) : 0;
            const int64_t to = least(p->kernel[1], ceil_div(x->size[1] - left, p->dilation[1]));
            NAME(vec) best = (NAME(vec)){0} - (T)INFINITY;
            for (int64_t r = 0; r < p->kernel[0]; r++) {
                const int64_t row = top + r * p->dilation[0];
                if (row < 0 || row >= x->size[0]) continue;
                const T *in = nr_image_at(x, sample, b, row, left + from * p->dilation[1]);
                for (int64_t c = from; c < to; c++, in += p->dilation[1] * LANES) {
                    const NAME(vec) v = VEC(in);
                    const NAME(truths) take = (v > best) | (v != v);
                    best = (NAME(vec))((take & (NAME(truths))v) | (~take & (NAME(truths))best));
                }
            }
            STORE(out, best);
        }
        NR_ISA(nr_layer_finish)(run, sample, b, i, 0, y->size[1]);
    }
    clear_halo(y, sample, b, 0, y->size[0]);
}
