/* conv_tiles_types: a convolution of bfloat16 that tiles compute (conv_tiles.h), as conv_tiles_plan.h plans it. */

#include "tile_pack.h"

#define TILE_DEPTH (2 * TILE_ROW) /* numbers along k, and lanes of two tiles, of a step */
#define TILE_STRIDE 2             /* the longest of an adjoint */
/* Numbers of a row of a plane, and of all planes of a part for the weight, at most; positions of such a part. */
#define TILE_PITCH 4096
#define TILE_NUMBERS ((int64_t)8 << 20)
#define TILE_POSITIONS 8192
/* An image is unfolded up to these numbers of positions for each channel of y, and bytes; and if x has few channels. */
#define UNFOLDED_FORWARD 2
#define UNFOLDED_WEIGHT 4
#define MOST_UNFOLDED_FORWARD (nr_second_cache() / 2)
#define MOST_UNFOLDED_WEIGHT (nr_second_cache() * 2)
#define UNFOLDED_IN 16

/* The planes of a source. Row i and column j of plane c see the source's channel at (i, j) * step + low. */
typedef struct tile_view {
    const nr_conv_plan *p;
    const bf16_bits *from; /* the first channel of the first sample of the part */
    int64_t channels, sample, area, wide;
    int64_t size[2], step[2], low[2], grid[2];
    bool unfolded, pairs;
    int64_t residues, residue[MOST_TAPS][2], filled; /* filled: channels of a residue, with zeros */
    int64_t span[2];                                 /* rows and columns that the taps of a residue span */
    int64_t samples, first[2], count[2];             /* the part */
    int64_t extent[2], rows, beyond, plane; /* numbers or pairs; beyond: those after the last row that tiles see */
} tile_view;

typedef struct tile_conv {
    const nr_conv_plan *p;
    const struct tile_kernels *run;
    nr_conv_kind kind;
    bool alone; /* in one thread */
    int64_t taps, tap[MOST_TAPS][2], which[MOST_TAPS], shift[MOST_TAPS];
    int64_t phases, across, first_tap[TILE_STRIDE * TILE_STRIDE + 1]; /* of an adjoint; else there is one */
    int64_t begin[MOST_TAPS], apart[MOST_TAPS]; /* of the steps of a tap of an adjoint; apart 0: it has none */
    int64_t lanes, steps;
    tile_view x, y; /* y: for the weight */
    const bf16_bits *weight, *bias;
    bf16_bits *to;
    bf16_both *left, *right;
    bf16_bits *image, *planes;
    float *sums;
    int64_t *offset;
    const char *left_at;
    int64_t left_lane, left_row, left_step; /* bytes */
    int64_t groups, chunks;                 /* of 32 positions; tasks of these */
    bool add, last;
    _Atomic bool special; /* there may be infinities or NaN */
} tile_conv;

/* The functions of an ISA build (conv_tiles.h): tasks, whose context is a tile_conv. */
typedef void tile_task(void *context, int64_t task);
typedef struct tile_kernels {
    tile_task *pad_pair, *pad_alone, *pad_right, *pack_forward, *pack_input, *sum_positions, *sum_weight;
    nr_runner *widened; /* of float32 */
} tile_kernels;
