/* batch_norm_isa: batch normalisation and its gradients, built once per instruction set; batch_norm_loops.h has the
 * loops for each float type.
 *
 *   x (batch, channels, inner)   [ c0 c0 c0 c0 ... | c1 c1 c1 ... ]   long planes: a tile is a channel
 *                                [ c0 c0 c1 c1 c2 c2 ... | c32 ...]   short ones: a tile is the channels that fit LANES
 *   tile                         lane 0 | lane 1 | ... | lane LANES - 1: rows of LANES elements of each sample, summed
 *                                lane by lane, and then over the lanes of each channel
 *
 * Ioffe and Szegedy, "Batch Normalization" (2015). Shifted sums for a variance: Chan, Golub and LeVeque, "Algorithms
 * for Computing the Sample Variance" (1983). */
#ifndef __clang__
#pragma GCC optimize("no-unswitch-loops") /* copies of loops would double the code and save no time */
#endif
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include "../families/batch_norm.h"
#include "cpu.h"
#include "image.h"

#define LANES 64    /* contiguous elements that have separate sums */
#define STEPS 64    /* rows of LANES that are added before their sum is added in double precision */
#define CHUNK 16384 /* elements a thread takes at a time */
#define NEAR 4      /* of a variance: the square of an origin's distance from the mean, at most */

/* Some channels: a run of `length` elements in each sample. */
typedef struct tile {
    int64_t channel, channels, length;
    int64_t each; /* lanes of a channel */
} tile;

typedef struct job {
    const nr_batch_norm_plan *plan;
    int64_t tiles, in_tile, in_chunk; /* in_tile: channels; in_chunk: tiles */
    int32_t kind, dtype;
} job;

static tile tile_of(const job *j, int64_t number) {
    const nr_batch_norm_plan *p = j->plan;
    const int64_t first = number * j->in_tile, channels = least(j->in_tile, p->channels - first);
    return (tile){first, channels, channels * p->inner, p->inner > LANES ? LANES : p->inner};
}

/* Runs statements for each row of lanes of a tile: `at` is the offset of its first element, `width` the number of its
 * lanes. */
#define EACH_ROW(p, t, ...)                                                                 \
    for (int64_t sample = 0; sample < (p)->batch; sample++)                                 \
        for (int64_t begin = 0; begin < (t).length; begin += LANES) {                       \
            const int64_t at = (sample * (p)->channels + (t).channel) * (p)->inner + begin; \
            const int64_t width = least(LANES, (t).length - begin);                         \
            __VA_ARGS__                                                                     \
        }

/* Marks functions that run once for many rows. They are not inlined, to keep the code small. */
#define ONCE static __attribute__((noinline))

#define NAME OF_DTYPE
#define TEMPLATE "batch_norm_loops.h"
#define WANTED(kind, bits) (kind == 'f')
#include "each_dtype.h"

void NR_ISA(nr_batch_norm_affine)(const nr_batch_norm_plan *p, float *mean, float *scale, float *shift) {
    for (int64_t c = 0; c < p->channels; c++) {
        const double of_mean = (double)((const float *)p->mean)[c];
        double of_scale, of_shift;
        find_affine_float32(p, c, of_mean, (double)((const float *)p->variance)[c], &of_scale, &of_shift);
        mean[c] = (float)of_mean, scale[c] = (float)of_scale, shift[c] = (float)of_shift;
    }
}

static void run_chunk(void *context, int64_t chunk) {
    const job *j = context;
    for (int64_t i = chunk * j->in_chunk; i < least((chunk + 1) * j->in_chunk, j->tiles); i++) {
        const tile t = tile_of(j, i);
        (j->dtype == NORCH_FLOAT32 ? run_float32 : run_float64)(j->plan, j->kind, &t);
    }
}

int32_t NR_ISA(nr_run_batch_norm)(const nr_call *call) {
    const nr_batch_norm_plan *p = call->plan;
    job j = {.plan = p, .kind = call->op, .dtype = call->dtype};
    if (p->channels == 0) return NORCH_OK;
    j.in_tile = p->inner && p->inner < LANES ? LANES / p->inner : 1;
    j.tiles = ceil_div(p->channels, j.in_tile);
    j.in_chunk = CHUNK / (p->batch * p->inner * j.in_tile + 1) + 1;
    nr_parallel(ceil_div(j.tiles, j.in_chunk), run_chunk, &j);
    return NORCH_OK;
}
