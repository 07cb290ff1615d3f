/* attention_isa: attention and its gradients a head at a time, built once per instruction set (with -ffp-contract=fast,
 * as products are). The scores of some queries against all keys stay in the second cache and are never stored; the
 * backward pass recomputes them, as in Dao et al., "FlashAttention" (2022). A softmax over whole rows needs no
 * rescaling.
 *
 * This file cuts the work; attention_loops.h holds the loops and their picture, for each float type. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include "../families/attention.h"
#include "cpu.h"
#include "gemm_isa.h"
#include "math.h"
#include "philox.h"

/* Below this number of multiply-adds one thread computes all; a large forward pass is cut into at least this number of
 * tasks. */
#define SERIAL_WORK 1e6
#define TASKS_WANTED 8
/* The number of scores that are kept at a time, and the largest number of queries that they belong to. */
#define SCORES 16384
#define MOST_QUERIES 64
#define IN_PLACE (128 << 10) /* bytes from the first to the last row of an operand that tiles read where it lies */
/* The same limit for an operand that is read again for many rows: with AVX2 a panel is one cache line of each row, and
 * lines that are far apart evict each other from the first cache. */
#define IN_PLACE_AGAIN (VECTOR == 32 ? 32 << 10 : IN_PLACE)
#define MANY_TILES 4
#define DRAWN 64   /* blocks of random words that are drawn at a time */
#define PIECE 1024 /* numbers of a row after which their sum goes into double precision */

/* How one head is cut into tasks and blocks of queries, and the scratch memory of each thread. */
typedef struct job {
    const nr_attention_plan *plan;
    int64_t items, queries, parts, pitch;
    int64_t scratch_size; /* elements for one worker */
    void *scratch;
    _Atomic int64_t next;
} job;

static int64_t item_count(const nr_attention_plan *p) {
    int64_t items = 1;
    for (int32_t d = 0; d < p->batch_ndim; d++) items *= p->batch[d];
    return items;
}

/* The offset in elements, in operand x, of an item of the batch. */
static int64_t item_offset(const nr_attention_plan *p, nr_attention_operand x, int64_t item) {
    int64_t offset = 0;
    for (int32_t d = 0; d < p->batch_ndim; item /= p->batch[d++]) offset += item % p->batch[d] * p->batch_stride[x][d];
    return offset;
}

/* The number of values, out of 2^24 equally likely ones, that dropout drops: those below its probability in float32. */
static uint32_t dropped_of(const nr_attention_plan *p) { return (uint32_t)ceil((double)(float)p->dropout * 0x1p24); }

#define TEMPLATE "attention_loops.h"
#define WANTED(kind, bits) (kind == 'f')
#include "each_dtype.h"

int32_t NR_ISA(nr_run_attention)(const nr_call *call) {
    return (call->dtype == NORCH_FLOAT32 ? attend_float32 : attend_float64)(call->plan,
                                                                            call->op == NR_ATTENTION_BACKWARD);
}
