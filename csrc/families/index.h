/* index: the plans of reads and writes by index, and of nonzero. */
#ifndef NR_FAMILIES_INDEX_H
#define NR_FAMILIES_INDEX_H

#include "../core/fields.h"
#include "../core/plan.h"

/* A nest over operand 0 (dense: written by a gather, read by a scatter), 1 (int64 indices) and 2 (the indexed tensor,
 * with stride 0 along the axis of the index). The indexed element is at data[2] + index * axis_stride, in bytes. The
 * kernel compares indices with axis_size, unless is_offset: they are sums that NR_OFFSETS has made of several. On the
 * CPU NR_OFFSETS has compared those of a write in place before, and `checked` ones, which do not wrap any more.
 * NR_SCATTER runs in the order of the nest: of several writes to one element the last one stays.
 * NR_OFFSETS: element of 0 = that of 2 (data NULL: 0) + index * axis_stride, all int64; without 0 (data NULL) it only
 * compares. A negative index counts from the end of axis_size if it wraps. One out of range makes the call fail on the
 * CPU; the message names the dimension.
 * NR_COUNT and the kinds after it have an nr_nonzero_plan. */
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
NR_PLAN(nr_index_plan, NEST(op == NR_GATHER || op == NR_OFFSETS ? 1 : 4, nest), NUM(int64_t, axis_stride, axis_size),
        NUM(bool, is_offset, checked), NUM(int64_t, dimension), NUM(bool, wraps));

/* truth: n bytes, dense, of shape size; 1 for a selected element. NR_COUNT: writes counts, which has a number for each
 * NR_NONZERO_CHUNK elements and one more, in a form that the next call of the backend reads; total, on the host: the
 * number of selected elements. NR_NONZERO: out[i * row + d * column] = coordinate d of the i-th selected element.
 * NR_MASK_GET: out[i] = the i-th selected element of x, which is dense with item bytes an element; NR_MASK_PUT: the
 * i-th of out = x[i]. No recording has these calls, as their results have no fixed shape. */
#define NR_NONZERO_CHUNK 4096
NR_PLAN(nr_nonzero_plan, IN(const uint8_t *, truth), NUM(int64_t, n), NUM(int32_t, ndim),
        DIMS(p->ndim, int64_t[NORCH_MAX_DIMS], size), OUT(int64_t *, counts, total), NUM(int64_t, row, column, item),
        IN(const char *, x), OUT(void *, out), SIZES(p->n));

#endif
