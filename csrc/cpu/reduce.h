/* reduce: what a reduction kernel gives to its runner (cpu/reduce.c). A state is the result so far of
 * one output; lanes are the states of many columns side by side, in a form that vectors like. */
#ifndef NR_REDUCE_H
#define NR_REDUCE_H

#include <stdint.h>

#define NR_REDUCE_STEPS 128   /* what a lane may take before it is folded: bounds the rounding error */
#define NR_REDUCE_LEAF 16384  /* elements that one run may have */
#define NR_REDUCE_BYTES 16384 /* the lanes, or the states, of one tile */
#define NR_REDUCE_ENOUGH 64   /* elements with gaps from which a run is packed */

/* Rows of `width` elements into the lanes. Among what was reduced since the lanes were cleared, element
 * (r, k) has the position first + r * row_step + k * lane_step. */
typedef void (*nr_reduce_across)(void *lanes, const char *x, int64_t width, int64_t stride, int64_t rows,
                                 int64_t row_stride, int64_t first, int64_t row_step, int64_t lane_step);

typedef struct nr_reduce_ops {
    int64_t state_size;
    int64_t width; /* columns that fit into lanes */
    void (*clear)(void *states, int64_t n);
    /* n elements, `stride` bytes apart, into each of `outputs` states, whose elements begin x_step bytes apart; from
     * NR_REDUCE_ENOUGH on they are neighbours. position: of the first among all that are reduced. */
    void (*run)(void *states, const char *x, int64_t n, int64_t stride, int64_t position, int64_t outputs,
                int64_t x_step);
    void (*clear_lanes)(void *lanes, int64_t width);
    nr_reduce_across across;
    void (*fold)(void *states, const void *lanes, int64_t width, int64_t position);
    void (*merge)(void *states, const void *others, int64_t n);
    void (*finish)(char *out, int64_t stride, const void *states, int64_t n, int64_t count, double param);
} nr_reduce_ops;

/* An entry of the kernel table is a function of this type: ISO C lets no data pointer be one of code. */
typedef const nr_reduce_ops *(*nr_reduce_kernel)(void);

#endif
