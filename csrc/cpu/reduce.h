/* reduce: the functions of a reduction kernel, for its runner (cpu/reduce.c). A state is the partial result of one
 * output; lanes are the partial results of many columns, stored field by field for vectors. */
#ifndef NR_REDUCE_H
#define NR_REDUCE_H

#include <stdint.h>

#define NR_REDUCE_STEPS 128   /* elements that a lane takes before it is folded, which bounds the rounding error */
#define NR_REDUCE_LEAF 16384  /* elements of a run, at most */
#define NR_REDUCE_BYTES 16384 /* of the lanes, or the states, of one tile */
#define NR_REDUCE_ENOUGH 64   /* elements of a strided run from which on it is packed */

/* Reduces rows of `width` elements into the lanes, which it clears where first is 0. Element (r, k) has the position
 * first + r * row_step + k * lane_step among those reduced since. */
typedef void (*nr_reduce_across)(void *lanes, const char *x, int64_t width, int64_t stride, int64_t rows,
                                 int64_t row_stride, int64_t first, int64_t row_step, int64_t lane_step);

typedef struct nr_reduce_ops {
    int64_t state_size;
    int64_t width; /* columns that fit into lanes */
    void (*clear)(void *states, int64_t n);
    /* Reduces n elements, `stride` bytes apart, into each of `outputs` states, whose elements begin x_step bytes apart.
     * From NR_REDUCE_ENOUGH elements on they are contiguous. position: of the first element in its whole reduced
     * range. */
    void (*run)(void *states, const char *x, int64_t n, int64_t stride, int64_t position, int64_t outputs,
                int64_t x_step);
    nr_reduce_across across;
    void (*fold)(void *states, const void *lanes, int64_t width, int64_t rows, int64_t position);
    void (*merge)(void *states, const void *others, int64_t n);
    void (*finish)(char *out, int64_t stride, const void *states, int64_t n, int64_t count, double param);
} nr_reduce_ops;

/* The type of a reduction's entry in the kernel table: a function, as ISO C cannot store a data pointer there. */
typedef const nr_reduce_ops *(*nr_reduce_kernel)(void);

#endif
