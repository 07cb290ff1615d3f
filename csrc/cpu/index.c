/* index: reads from and writes to indexed places, row by row of the innermost loop; indices are checked.
 *
 *   index   2 0 1      gather   dense[i] = target[index[i]]      scatter  target[index[i]] = dense[i], or += ...
 *   target  a b c      dense    c a b                            in the order of i: the last of equal places stays
 *
 * Rows of equal indices (x[i] of a matrix) are whole rows of memory, and moved so. A gather is cut anywhere. A scatter is
 * cut only along a loop that moves the target, where no two chunks write to one element; each chunk goes in the order of
 * the nest, so threads change no bit. It is the plain way, one pass: nothing is sorted, and no sum is atomic. */
#include <string.h>

#include "../core/dtype.h"
#include "../families/index.h"
#include "cpu.h"

#define CHUNK 32768 /* elements a thread takes at a time, about */
#define CUTS 32     /* parts a scatter is cut into, at most */

#define WORD uint8_t
#define SIZE 1
#include "index_moves.h"
#define WORD uint16_t
#define SIZE 2
#include "index_moves.h"
#define WORD uint32_t
#define SIZE 4
#include "index_moves.h"
#define WORD uint64_t
#define SIZE 8
#include "index_moves.h"

/* n elements of the innermost loop from these three places on. */
typedef void (*row_kernel)(const nr_index_plan *plan, char *dense, const char *index, char *target, int64_t n);

#ifndef __clang__
#pragma GCC diagnostic ignored "-Wint-in-bool-context" /* bools are added and multiplied */
#endif
#define TEMPLATE "index_kinds.h"
#define WANTED(kind, bits) true
#include "each_dtype.h"

static void offsets(const nr_index_plan *plan, char *dense, const char *index, char *before, int64_t n) {
    const int64_t dense_step = plan->nest.stride[0][0], index_step = plan->nest.stride[1][0];
    const int64_t before_step = plan->nest.stride[2][0], axis_step = plan->axis_stride, size = plan->axis_size;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = *(const int64_t *)(index + i * index_step);
        const int64_t sum = plan->nest.data[2] ? *(const int64_t *)(before + i * before_step) : 0;
        *(int64_t *)(dense + i * dense_step) = sum + (at < 0 ? at + size : at) * axis_step;
    }
}

static row_kernel kernel_of(int32_t kind, int32_t dtype) {
    static const row_kernel moves[2][4] = {{take_1, take_2, take_4, take_8}, {put_1, put_2, put_4, put_8}};
    static const row_kernel *const combine[NR_DTYPE_COUNT] = {
#define WIDE(NAME, name, ...) [NORCH_##NAME] = NR_JOIN2(combine, name),
#define NARROW(...)
#include "../dtypes.def"
    };
    if (kind == NR_OFFSETS) return offsets;
    if (kind > NR_SCATTER) return combine[dtype][kind - NR_SCATTER_ADD];
    return moves[kind == NR_SCATTER][__builtin_ctz((unsigned)nr_size_of(dtype))];
}

typedef struct job {
    const nr_index_plan *plan;
    row_kernel kernel;
    int32_t cut;  /* the loop that is cut into chunks, */
    int64_t part; /* this many steps of it each */
} job;

static void run_chunk(void *context, int64_t chunk) {
    const job *j = context;
    const nr_plan *nest = &j->plan->nest;
    int64_t size[NORCH_MAX_DIMS], at[NORCH_MAX_DIMS] = {0}, rows = 1;
    char *data[3];
    for (int32_t d = 0; d < nest->ndim; d++) size[d] = nest->size[d];
    const int64_t first = chunk * j->part;
    if (size[j->cut] - first < j->part)
        size[j->cut] -= first;
    else
        size[j->cut] = j->part;
    for (int o = 0; o < 3; o++) data[o] = nest->data[o] + first * nest->stride[o][j->cut];
    for (int32_t d = 1; d < nest->ndim; d++) rows *= size[d];
    for (;;) {
        j->kernel(j->plan, data[0], data[1], data[2], size[0]);
        if (--rows == 0) return;
        for (int32_t d = 1; d < nest->ndim; d++) {
            int64_t steps = ++at[d] < size[d] ? 1 : 1 - size[d]; /* on, or back to the start */
            for (int o = 0; o < 3; o++) data[o] += steps * nest->stride[o][d];
            if (steps == 1) break;
            at[d] = 0;
        }
    }
}

int32_t nr_run_index(const nr_call *call) {
    if (call->op >= NR_COUNT) return nr_run_nonzero(call);
    const nr_index_plan *plan = call->plan;
    const nr_plan *nest = &plan->nest;
    if (nest->numel == 0) return NORCH_OK;
    const bool writing = call->op != NR_GATHER && call->op != NR_OFFSETS;
    job j = {.plan = plan, .kernel = kernel_of(call->op, call->dtype)};
    int64_t wanted = nr_threads() == 1 ? 1 : (nest->numel + CHUNK - 1) / CHUNK, parts = 1;
    if (writing && wanted > CUTS) wanted = CUTS;
    /* The outermost loop that gives as many parts, or the longest; for a scatter, short rows cost more than threads
     * give. */
    for (int32_t d = nest->ndim - 1; d >= 0 && parts < wanted; d--) {
        int64_t most = nest->size[d];
        if (writing && nest->stride[2][d] == 0) continue;
        if (writing && d == 0) most /= 64;
        if (most <= parts) continue;
        parts = most;
        j.cut = d;
    }
    if (parts > wanted) parts = wanted;
    j.part = (nest->size[j.cut] + parts - 1) / parts;
    nr_parallel((nest->size[j.cut] + j.part - 1) / j.part, run_chunk, &j);
    return NORCH_OK;
}
