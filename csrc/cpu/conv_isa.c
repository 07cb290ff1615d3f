/* conv_isa: convolutions and their adjoints as matrix products, built once per instruction set (with
 * -ffp-contract=fast, as products are). No unfolded copy of the input is ever made: a few of its rows at a time are
 * copied with their padding to scratch memory, and the products read them there.
 *
 *   channels of an image     a band of a few channels                    C: output channels x positions
 *   +-----------+ band 0     +-------------+ about BAND_BYTES, and       +----+----+ tiles in registers: of
 *   | rows that | band 1 ->  | 0 rows .. 0 | BLOCK_BYTES of weights  ->  | += |    | each tap, its weights times the
 *   | taps see  | band 2     | 0 rows .. 0 | beside: second cache        +----+----+ vectors of positions
 *   +-----------+            +-------------+
 *
 * A task is a band of one group of an image, or (weight) some images for a block of channels; a thread takes the next
 * one. This file computes the geometry and chooses by the plan; conv_pad.h, conv_correlate.h (y and x), conv_weight.h,
 * conv_depth.h (one channel to a group), conv_product.h with conv_panels.h (one tap) and conv_unfold.h (few positions)
 * have the loops, and are included once for each float type; conv_image.h has those of layers of recordings, with
 * conv_winograd.h and conv_winograd_weight.h for 3 x 3 taps of float32, and conv_blocks.h uses them for many channels.
 * conv_tiles.h, planned by conv_tiles_plan.h, multiplies bfloat16 by AMX.
 * Convolution as a matrix product without unfolding: Chetlur et al., "cuDNN: Efficient Primitives for Deep Learning"
 * (2014). */
#include <stdatomic.h>
#include <string.h>
#include "../core/convert.h"
#include "../families/conv.h"
#include "../families/matmul.h"
#include "cpu.h"
#include "gemm_isa.h"
#include "image.h"

/* Below this number of multiply-adds a convolution runs in one thread; a large one is divided into at least this number
 * of parts. */
#define SERIAL_WORK 1e6
#define PARTS_WANTED 8
/* Products deeper than this are divided, and shallower ones where panels are packed; padded rows and blocks of A should
 * stay in the second cache. */
#define DEPTH 576
#define PACKED_DEPTH (VECTOR == 64 ? 256 : 384)
/* The side, in channels, of the squares by which weights are transposed. */
#define SQUARE 16
/* Packing a panel takes about the time of this number of rows of A. */
#define PACKING_ROWS 6
#define BAND_BYTES (96 * 1024)
#define BLOCK_BYTES (160 * 1024)
/* The taps that the product for the weight computes together. Each needs a register for its address, and no more are
 * free. */
#if TILE_ROWS < 6
#define OUTER_ROWS 5
#define EACH_OUTER_ROW(X) X(1) X(2) X(3) X(4) X(5)
#else
#define OUTER_ROWS 6
#define EACH_OUTER_ROW(X) X(1) X(2) X(3) X(4) X(5) X(6)
#endif
/* The positions of one panel of the transposed gradient, in the product for the weight. */
#define POSITIONS 256

/* Depthwise convolutions: most taps, phases of an adjoint, bytes of a band and of a row of it, and positions side by
 * side, whose sums hide the latency of each other's additions. */
#define MOST_TAPS 49
#define MOST_PHASES 16
#define DEPTH_BYTES (192 * 1024)
#define LONGEST_ROW (2 * 1024 * 1024)
#define NEIGHBOURS 9
#define EACH_NEIGHBOUR(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9)

/* Kernels of one tap: positions that are summed at once, and those of an image that is not gathered for that
 * (weight); elements gathered at a time, and moved by a task. */
#define SUMMED_TOGETHER 256
#define SUMMED_ALONE 32
#define ROUND_ELEMENTS (4 * 1024 * 1024)
#define PASS_ELEMENTS (64 * 1024)
/* The number of panels that are copied together, and the distance in bytes of rows that share lines of the first
 * cache. */
#define PANELS_TOGETHER 4
#define BAD_STRIDE 1024
/* Up to this number of channels, images are read in place: more are on too many pages for a panel. Up to this number of
 * tiles they are read so even if their rows share lines. */
#define IN_PLACE (VECTOR == 64 ? 64 : INT64_MAX)
#define FEW_TILES 3
/* Up to this number of positions of an image, its product is transposed. */
#define MOST_TRANSPOSED 64
/* Unfolded products are faster up to these numbers of positions: of all images, forward and backward; of each image,
 * whatever the batch size; of each image for a weight of LARGE_WEIGHT elements, forward and in its gradient. The last
 * three hold if the unfolded elements take at most MOST_UNFOLDED bytes. UNFOLDED_CHANNELS: channels of a task. */
#define MOST_FORWARD 100
#define MOST_BACKWARD 256
#define MOST_OF_IMAGE 4
#define LARGE_WEIGHT (1 << 20)
#define MOST_OF_LARGE 25
#define MOST_OF_GRADIENT 64
#define MOST_UNFOLDED ((int64_t)64 << 20)
#define UNFOLDED_CHANNELS 64
/* Convolutions in blocks of channels: positions that pay for a weight that is packed in each call, and products of a
 * number that pay for turning x or y; bytes of these at a time. */
#define TRANSPOSED_POSITIONS 150
#define TRANSPOSED_PRODUCTS 256
#define TRANSPOSED_BYTES ((int64_t)16 << 20)
#define TRANSPOSED_PHASES 4
/* From these numbers of channels, and of 2 x 2 tiles of an image or of all, on, Winograd's transforms pay. */
#define WINOGRAD_CHANNELS 32
#define WINOGRAD_TILES 48
#define WINOGRAD_TILES_OF_ALL 128
/* A task has at least WINOGRAD_TASK_TILES tiles, because it reads the whole weight. If it has more, its factors and
 * sums fill at most this part of the second cache. */
#define WINOGRAD_TASK_TILES 28
#define WINOGRAD_TASK_BYTES(cache) ((cache) / 2)

/* A source (channels, size) read by taps: grid position (i, j) and tap (r, c) meet at (i * step + r, j * step + c), or
 * at a zero outside. Padded rows have first all columns of one residue modulo step[1], then those of the next, so that
 * neighbours on the grid are neighbours in memory. */
typedef struct view {
    int64_t channels, size[2];
    int64_t step[2], grid[2];
    int64_t taps, low[2], span[2]; /* first row and column of the taps, and how many they span */
    int64_t block;                 /* channels copied at a time */
    int64_t rows;                  /* grid rows of a band */
    int64_t residue, pitch, plane; /* columns of one residue, elements of a padded row and of a padded channel */
} view;

/* Where tap (r, c) finds grid position (0, 0) in the padded rows. */
static int64_t offset_of(const view *v, int64_t r, int64_t c) {
    r -= v->low[0];
    c -= v->low[1];
    return r * v->pitch + c % v->step[1] * v->residue + c / v->step[1];
}

/* Divides the grid into bands of at most `rows` rows, of similar height. */
static void choose_band(view *v, int64_t rows, int64_t element, int64_t parts) {
    int64_t columns = (v->grid[1] - 1) * v->step[1] + v->span[1];
    v->residue = ceil_div(columns, v->step[1]);
    v->pitch = v->residue * v->step[1];
    int64_t row = v->block * v->pitch * element, fit = BAND_BYTES / row - v->span[0];
    if (fit < 2)
        fit = least(2, 4 * BAND_BYTES / row - v->span[0]); /* rows of many planes, one each, are slow to copy */
    rows = least(rows, fit < 0 ? 1 : fit / v->step[0] + 1);
    if (parts < PARTS_WANTED) rows = least(rows, ceil_div(v->grid[0], ceil_div(PARTS_WANTED, parts)));
    v->rows = ceil_div(v->grid[0], ceil_div(v->grid[0], rows));
    v->plane = ((v->rows - 1) * v->step[0] + v->span[0]) * v->pitch;
}

/* The taps' bounding box; tap[t] = {row, column}. */
static void bound_taps(view *v, const int64_t (*tap)[2]) {
    for (int d = 0; d < 2; d++) {
        int64_t low = tap[0][d], high = low;
        for (int64_t t = 1; t < v->taps; t++) {
            low = least(low, tap[t][d]);
            high = tap[t][d] > high ? tap[t][d] : high;
        }
        v->low[d] = low;
        v->span[d] = high - low + 1;
    }
}

/* Taps of a forward convolution. */
static void forward_taps(const nr_conv_plan *p, int64_t (*tap)[2]) {
    for (int64_t r = 0; r < p->kernel[0]; r++) {
        for (int64_t c = 0; c < p->kernel[1]; c++, tap++) {
            (*tap)[0] = r * p->dilation[0] - p->padding[0];
            (*tap)[1] = c * p->dilation[1] - p->padding[1];
        }
    }
}

/* The taps that contribute to the positions phase + i * stride of x, as offsets in y; returns their number, and in
 * `which` their indices in the kernel. */
static int64_t phase_taps(const nr_conv_plan *p, const int64_t phase[2], int64_t (*tap)[2], int64_t *which) {
    int64_t count = 0;
    for (int64_t r = 0; r < p->kernel[0]; r++) {
        int64_t row = phase[0] + p->padding[0] - r * p->dilation[0];
        if (row % p->stride[0]) continue;
        for (int64_t c = 0; c < p->kernel[1]; c++) {
            int64_t column = phase[1] + p->padding[1] - c * p->dilation[1];
            if (column % p->stride[1]) continue;
            tap[count][0] = row / p->stride[0];
            tap[count][1] = column / p->stride[1];
            which[count++] = r * p->kernel[1] + c;
        }
    }
    return count;
}

static int32_t no_scratch(size_t bytes) {
    return nr_fail(NORCH_ERROR_MEMORY, "conv: no memory for %lld bytes of scratch", (long long)bytes);
}

#define TEMPLATE "conv_weight.h"
#define WANTED(kind, bits) (kind == 'f')
#include "each_dtype.h"

#define TEMPLATE "conv_depth.h"
#define WANTED(kind, bits) (kind == 'f')
#include "each_dtype.h"

#define TEMPLATE "conv_panels.h"
#define WANTED(kind, bits) (kind == 'f')
#include "each_dtype.h"

#define TEMPLATE "conv_product.h"
#define WANTED(kind, bits) (kind == 'f')
#include "each_dtype.h"

#define TEMPLATE "conv_unfold.h"
#define WANTED(kind, bits) (kind == 'f')
#include "each_dtype.h"

/* Whether all elements of the weight are finite: padding with zeros must not change sums without padding. */
static bool is_finite(const nr_conv_plan *p, bool narrow) {
    const int64_t n = p->groups * p->out * p->in * p->kernel[0] * p->kernel[1];
    int not_finite = 0;
    if (narrow)
        for (int64_t i = 0; i < n; i++) not_finite |= ((const float *)p->weight)[i] * 0 != 0;
    else
        for (int64_t i = 0; i < n; i++) not_finite |= ((const double *)p->weight)[i] * 0 != 0;
    return !not_finite;
}

/* One channel to a group, and groups enough for the lanes of a vector. */
static bool is_depthwise(const nr_conv_plan *p, nr_conv_kind kind, bool narrow) {
    if (p->in != 1 || p->out != 1 || p->groups * 2 * (narrow ? 4 : 8) <= VECTOR) return false;
    if (p->kernel[0] * p->kernel[1] > MOST_TAPS) return false;
    const int64_t wide = greatest(p->size[1], p->result[1] * p->stride[1]) + p->kernel[1] * p->dilation[1];
    if (wide * VECTOR > LONGEST_ROW) return false;
    if (kind != NR_CONV_INPUT) return true;
    for (int d = 0; d < 2; d++)
        if (p->stride[d] > p->size[d]) return false;
    return p->stride[0] <= MOST_PHASES && p->stride[1] <= MOST_PHASES / p->stride[0] && is_finite(p, narrow);
}

/* One tap, which sees no padding. (That behind x is not in the plan.) */
static bool is_product(const nr_conv_plan *p) {
    for (int d = 0; d < 2; d++)
        if (p->kernel[d] != 1 || p->padding[d] || (p->result[d] - 1) * p->stride[d] >= p->size[d]) return false;
    return true;
}

/* Whether there are few positions, which would leave vectors empty, and a weight so large that it should be read only
 * once. With fewer channels, unfolding and adding the unfolded gradients take a larger part of the time. */
static bool is_small(const nr_conv_plan *p, nr_conv_kind kind) {
    const int64_t area = p->result[0] * p->result[1], all = p->batch * area, k = p->in * p->kernel[0] * p->kernel[1];
    const int64_t channels = kind == NR_CONV_FORWARD ? 32 : kind == NR_CONV_WEIGHT ? 64 : 128;
    if (k < 256 || p->out < channels) return false;
    if (all <= (kind == NR_CONV_FORWARD ? MOST_FORWARD : MOST_BACKWARD)) return true;
    const int64_t bytes = all * p->groups * k * (int64_t)sizeof(double);
    int64_t most = kind == NR_CONV_WEIGHT ? 0 : MOST_OF_IMAGE;
    if (k * p->out >= LARGE_WEIGHT) most = kind == NR_CONV_WEIGHT ? MOST_OF_GRADIENT : MOST_OF_LARGE;
    return area <= most && bytes <= MOST_UNFOLDED;
}

/* Whether conv_winograd.h computes a convolution of float32: there are enough channels and tiles to pay for the factors
 * of x, y and the weight, and few tiles extend beyond y. */
static bool is_winograd(const nr_conv_plan *p) {
#ifdef __wasm__ /* a page waits for each byte */
    return (void)p, false;
#else
    for (int d = 0; d < 2; d++)
        if (p->kernel[d] != 3 || p->stride[d] != 1 || p->dilation[d] != 1) return false;
    const int64_t tiles = ceil_div(p->result[0], 2) * ceil_div(p->result[1], 2);
    return p->groups == 1 && p->in >= WINOGRAD_CHANNELS && p->out >= WINOGRAD_CHANNELS &&
           (tiles >= WINOGRAD_TILES || p->batch * tiles >= WINOGRAD_TILES_OF_ALL) &&
           tiles * 64 <= p->result[0] * p->result[1] * 21;
#endif
}

#define TEMPLATE "conv_image.h"
#define WANTED(kind, bits) (kind == 'f' && bits == 32)
#include "each_dtype.h"

#ifndef __wasm__ /* a page waits for each byte */
#define TEMPLATE "conv_blocks.h"
#define WANTED(kind, bits) (kind == 'f' && bits == 32)
#include "each_dtype.h"

#define TEMPLATE "conv_winograd_weight.h"
#define WANTED(kind, bits) (kind == 'f' && bits == 32)
#include "each_dtype.h"
#endif

bool NR_ISA(nr_conv_takes)(const nr_call *call, bool *from_planes) { return takes_float32(call, from_planes); }
bool NR_ISA(nr_conv_pays_alone)(const nr_call *call) { return pays_alone_float32(call->plan); }
int64_t NR_ISA(nr_conv_packed_size)(const nr_call *call) { return packed_size_float32(call->plan); }
void NR_ISA(nr_conv_pack)(const nr_call *call, float *to) { pack_weight_float32(call, to); }
int32_t NR_ISA(nr_conv_layer)(const nr_layer_run *run) { return conv_layer_float32(run); }

/* ---- bfloat16, where the processor multiplies it by tiles ---------------------------------------------- */

#if !defined(__wasm__) /* where ops/conv.c widens it, as the library must be small */
#include "conv_tiles_types.h"
int32_t NR_FIRST(nr_run_tiles)(const nr_call *call, const tile_kernels *run);
#ifdef NR_ISA_BASELINE /* the emulation of the first build serves all */
#define EMULATED
#define TILES_HERE
#include "conv_tiles_plan.h"
#elif defined(__AVX512F__) && defined(__linux__) && (defined(__clang__) || __GNUC__ >= 11)
#define TILES_HERE
#endif
#endif
#ifdef TILES_HERE
#include "amx.h"
#include "conv_tiles.h"
#endif
#ifndef NR_ISA_BASELINE
bool NR_FIRST(nr_choose_conv)(void);
nr_runner NR_FIRST(nr_run_conv);
#endif

#ifdef TILES_HERE
static bool uses_tiles; /* set when the library is loaded */
#endif

bool NR_ISA(nr_choose_conv)(void) {
#ifdef EMULATED
    return uses_tiles = nr_emulates_tiles();
#else
#ifdef TILES_HERE
    uses_tiles = !nr_emulates_tiles() && nr_has_tiles();
    if (uses_tiles) return true;
#endif
#ifdef NR_ISA_BASELINE
    return false;
#else
    return NR_FIRST(nr_choose_conv)();
#endif
#endif
}

int32_t NR_ISA(nr_run_conv)(const nr_call *call) {
#ifdef TILES_HERE
    if (call->dtype == NORCH_BFLOAT16 && uses_tiles) return NR_FIRST(nr_run_tiles)(call, &TILE_NAME(conv));
#endif
#ifndef NR_ISA_BASELINE
    if (call->dtype == NORCH_BFLOAT16) return NR_FIRST(nr_run_conv)(call);
#endif
    const nr_conv_plan *plan = call->plan;
    const nr_conv_kind kind = (nr_conv_kind)call->op;
    const bool narrow = call->dtype == NORCH_FLOAT32;
    const bool any = plan->batch > 0; /* else the weight's gradient is zeros */
    if (any && is_depthwise(plan, kind, narrow)) return (narrow ? run_depth_float32 : run_depth_float64)(plan, kind);
    if (any && is_product(plan)) return (narrow ? run_tap_float32 : run_tap_float64)(plan, kind);
#ifndef __wasm__
    adjoint_float32 adjoint;
    if (any && narrow && is_winograd(plan)) {
        if (kind == NR_CONV_WEIGHT) return winograd_of_weight_float32(plan);
        if (kind == NR_CONV_FORWARD && pays_each_time_float32(call)) return forward_as_layer_float32(call);
        if (kind == NR_CONV_INPUT && find_adjoint_float32(call, &adjoint))
            return input_as_layers_float32(call, &adjoint);
    }
#endif
    if (any && is_small(plan, kind)) return (narrow ? run_unfolded_float32 : run_unfolded_float64)(call, plan, kind);
#ifndef __wasm__
    if (any && narrow && kind == NR_CONV_FORWARD && pays_each_time_float32(call)) return forward_as_layer_float32(call);
    if (any && narrow && kind == NR_CONV_INPUT && find_adjoint_float32(call, &adjoint))
        return input_as_layers_float32(call, &adjoint);
#endif
    if (kind == NR_CONV_FORWARD) return (narrow ? forward_float32 : forward_float64)(plan);
    if (kind == NR_CONV_INPUT) return (narrow ? input_float32 : input_float64)(plan);
    return (narrow ? weight_float32 : weight_float64)(plan);
}
