/* index: the plans of reads and writes by index, and of nonzero. */
#ifndef NR_FAMILIES_INDEX_H
#define NR_FAMILIES_INDEX_H

#include "../core/plan.h"

/* A nest over operand 0 (dense: written by a gather, read by a scatter), 1 (int64 indices) and 2 (the
 * indexed tensor, with stride 0 along the axis of the index), data and strides in nest; element at
 * data[2] + index * axis_stride (bytes). On the CPU indices come from NR_OFFSETS, which has checked them; a device checks them
 * as it goes.
 * NR_SCATTER goes through the nest in order: the last write to an element is the one that stays.
 * NR_OFFSETS: element of 0 = that of 2 (data NULL: 0) + index * axis_stride, all int64. A negative index counts from the end of
 * axis_size if it wraps. One that is out of range makes the call fail on the CPU; messages name the dimension.
 * NR_COUNT and what follows it have a plan of their own. */
typedef enum nr_index_kind {
    NR_GATHER,
    NR_SCATTER,
    NR_SCATTER_ADD,
    NR_SCATTER_PROD,
    NR_SCATTER_AMAX,
    NR_SCATTER_AMIN,
    NR_OFFSETS,
    NR_COUNT,
    NR_NONZERO,
    NR_MASK_GET,
    NR_MASK_PUT
} nr_index_kind;
typedef struct nr_index_plan {
    nr_plan nest;
    int64_t axis_stride;
    int64_t axis_size;
    int64_t dimension;
    bool wraps;
} nr_index_plan;

/* n bytes, dense, of shape size; 1 where an element counts. NR_COUNT: counts, of a number for each NR_NONZERO_CHUNK elements and
 * one more, becomes what the next call wants to know of them; total, on the host: how many there are. NR_NONZERO:
 * coordinate d of the i-th of them into out[i * row + d * column]. NR_MASK_GET: the i-th of them of dense x, whose elements have
 * item bytes, into out[i]; NR_MASK_PUT: x[i] to the i-th of them of out. */
#define NR_NONZERO_CHUNK 4096
typedef struct nr_nonzero_plan {
    const uint8_t *truth;
    int64_t n, size[NORCH_MAX_DIMS];
    int32_t ndim;
    int64_t *counts, *total;
    int64_t row, column, item;
    const char *x;
    void *out;
} nr_nonzero_plan;

#endif
