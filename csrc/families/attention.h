/* attention: the plan of scaled dot-product attention. */
#ifndef NR_FAMILIES_ATTENTION_H
#define NR_FAMILIES_ATTENTION_H

#include <stdbool.h>
#include "../core/fields.h"
#include "../norch.h"

/* out = softmax(q k^T scale + mask) v for each item of the batch: q (queries, width), k (keys, width), v (keys,
 * value_width). row: the row strides of q, k, v, g, out and the gradients of q, k and v, whose rows are contiguous;
 * batch strides in the same order. causal: query i attends to keys 0 to i. BACKWARD: the gradients of q, k and v from
 * that of out, g.
 *
 * mask, which the CPU and the fused kinds have, has strides of its own, and is bool (true: attended to) or of the
 * dtype, to be added; a query that attends to no key gives 0. seed, of the same: of dropout, which zeroes weights with
 * a probability and divides the others by 1 minus it. The number of a weight is uniform32 of a word of its stream
 * (families/random.h), in which each query of each head has a row of whole blocks, of four keys each; the backward pass
 * draws it again.
 *
 * The fused kinds, which a backend has if fuses_attention is set, support more. `group` heads of q, group_stride apart
 * in every operand but k and v, share keys and values; of other kinds it is 1. logsumexp of the scores of each query,
 * contiguous, is written by the forward kind (unless NULL), and read, like out, by the backward kind; with a mask or
 * dropout, what rounding leaves of each follows behind all of them. */
typedef enum nr_attention_operand {
    NR_ATTENTION_Q,
    NR_ATTENTION_K,
    NR_ATTENTION_V,
    NR_ATTENTION_G,
    NR_ATTENTION_OUT,
    NR_ATTENTION_GRAD_Q,
    NR_ATTENTION_GRAD_K,
    NR_ATTENTION_GRAD_V,
    NR_ATTENTION_MASK,
    NR_ATTENTION_OPERANDS
} nr_attention_operand;
typedef enum nr_attention_kind {
    NR_ATTENTION_FORWARD,
    NR_ATTENTION_BACKWARD,
    NR_ATTENTION_FUSED,
    NR_ATTENTION_FUSED_BACKWARD
} nr_attention_kind;
NR_PLAN(nr_attention_plan, NUM(int64_t, queries, keys, width, value_width), NUM(double, scale, dropout),
        NUM(bool, causal, mask_is_bool), IN(const void *, q, k, v, g, mask, seed),
        OUT_IF(op == NR_ATTENTION_FORWARD || op == NR_ATTENTION_FUSED, void *, out, logsumexp),
        OUT(void *, grad_q, grad_k, grad_v), NUM(int64_t[NR_ATTENTION_OPERANDS], row, group_stride),
        NUM(int64_t, group), NUM(int64_t, mask_column), /* elements of the mask from one key to the next */
        NUM(int32_t, batch_ndim), DIMS(p->batch_ndim, int64_t[NORCH_MAX_DIMS], batch),
        DIMS(p->batch_ndim, int64_t[NR_ATTENTION_OPERANDS][NORCH_MAX_DIMS], batch_stride),
        SIZES(p->queries, p->keys, p->width));

#endif
