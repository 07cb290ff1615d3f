/* index: gather and scatter, row by row of the innermost loop, and the check of indices.
 *
 *   index   2 0 1      gather   dense[i] = target[index[i]]      scatter  target[index[i]] = dense[i], or += ...
 *   target  a b c      dense    c a b                            in the order of i: the last of equal places stays
 *
 * If a row has one index (x[i] of a matrix), it is copied as a whole. A gather can be cut anywhere. A scatter is cut
 * only along a loop that moves the target, so that no two chunks write to one element; each chunk runs in the order of
 * the nest, so that threads do not change the result. No sorting and no atomic sums are needed. */
#include <string.h>

#include "../core/dtype.h"
#include "../families/index.h"
#include "cpu.h"

#define CHUNK 32768 /* elements a thread takes at a time, about */
#define CUTS 32     /* parts a scatter is cut into, at most */
#define PIECE 512   /* indices that a gather checks at a time */

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

/* Runs n elements of the innermost loop, from these three addresses on. False if an index is out of range. */
typedef bool (*row_kernel)(const nr_index_plan *plan, char *dense, const char *index, int64_t index_step, char *target,
                           int64_t n);

#ifndef __clang__
#pragma GCC diagnostic ignored "-Wint-in-bool-context" /* bools are added and multiplied */
#endif
#define TEMPLATE "index_kinds.h"
#define WANTED(kind, bits) true
#include "each_dtype.h"

/* Copies n indices, with negative ones wrapped, and returns whether all are in range. It combines sign bits by or
 * instead of branching for each element, and reads each index once, so that another thread cannot change it after the
 * check. */
static __attribute__((noinline)) bool checked(const nr_index_plan *plan, int64_t *to, const char *index, int64_t step,
                                              int64_t n) {
    const int64_t below = plan->axis_size, wrap = plan->wraps ? below : 0, *from = (const int64_t *)index;
    int64_t wrong = 0;
    if (step == sizeof(int64_t) && !wrap)
        for (int64_t i = 0; i < n; i++) {
            wrong |= from[i] | (below - 1 - from[i]);
            to[i] = from[i];
        }
    else
        for (int64_t i = 0; i < n; i++, index += step) {
            const int64_t number = *(const int64_t *)index, at = number + (number >> 63 & wrap);
            wrong |= at | (below - 1 - at);
            to[i] = at;
        }
    return wrong >= 0;
}

/* Whether n indices, which do not wrap, are in range. */
static bool in_range(const nr_index_plan *plan, const char *index, int64_t step, int64_t n) {
    const int64_t below = plan->axis_size, *from = (const int64_t *)index;
    int64_t wrong = 0;
    if (step == sizeof(int64_t))
        for (int64_t i = 0; i < n; i++) wrong |= from[i] | (below - 1 - from[i]);
    else
        for (int64_t i = 0; i < n; i++, index += step)
            wrong |= *(const int64_t *)index | (below - 1 - *(const int64_t *)index);
    return wrong >= 0;
}

/* NR_OFFSETS for a row: writes the offsets, and returns whether all indices are in range. */
static bool offsets(const nr_index_plan *plan, char *dense, const char *index, const char *before, int64_t n) {
    const int64_t *step[] = {plan->nest.stride[0], plan->nest.stride[1], plan->nest.stride[2]};
    const int64_t below = plan->axis_size, wrap = plan->wraps ? below : 0, axis_step = plan->axis_stride;
    const bool sums = plan->nest.data[2] != NULL;
    int64_t wrong = 0;
    if (!dense) return in_range(plan, index, *step[1], n);
    if (!sums && axis_step == 1 && *step[0] == sizeof(int64_t)) /* perhaps the index itself */
        return checked(plan, (int64_t *)dense, index, *step[1], n);
    for (int64_t i = 0; i < n; i++, index += *step[1], before += *step[2], dense += *step[0]) {
        const int64_t number = *(const int64_t *)index, at = number + (number >> 63 & wrap);
        wrong |= at | (below - 1 - at);
        *(int64_t *)dense = (sums ? *(const int64_t *)before : 0) + at * axis_step;
    }
    return wrong >= 0;
}

/* A gather of a row, whose indices wrap, a piece at a time; returns whether all are in range. */
static bool gather_row(const nr_index_plan *plan, row_kernel kernel, char *dense, const char *index, char *target,
                       int64_t n) {
    const int64_t step = plan->nest.stride[1][0], piece = step ? PIECE : n;
    int64_t at[PIECE];
    for (int64_t first = 0; first < n; first += piece) {
        const int64_t count = n - first < piece ? n - first : piece;
        if (!checked(plan, at, index + first * step, step, step ? count : 1) ||
            !kernel(plan, dense + first * plan->nest.stride[0][0], (const char *)at, step ? (int64_t)sizeof *at : 0,
                    target + first * plan->nest.stride[2][0], count))
            return false;
    }
    return true;
}

static row_kernel kernel_of(int32_t kind, int32_t dtype) {
    static const row_kernel moves[2][4] = {{take_1, take_2, take_4, take_8}, {put_1, put_2, put_4, put_8}};
    static const row_kernel *const combine[NR_DTYPE_COUNT] = {
#define WIDE(NAME, name, ...) [NORCH_##NAME] = NR_JOIN2(combine, name),
#define NARROW(...)
#include "../dtypes.def"
    };
    if (kind == NR_OFFSETS) return NULL;
    if (kind > NR_SCATTER) return combine[dtype][kind - NR_SCATTER_ADD];
    return moves[kind == NR_SCATTER][__builtin_ctz((unsigned)nr_size_of(dtype))];
}

typedef struct job {
    const nr_index_plan *plan;
    row_kernel kernel; /* NULL: offsets */
    bool wraps;        /* a gather whose indices may count from the end */
    int32_t cut;       /* the loop that is cut into chunks, */
    int64_t part;      /* this many steps of it each */
    _Atomic bool lost; /* an index is out of range */
} job;

static void run_chunk(void *context, int64_t chunk) {
    job *j = context;
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
        const bool found = !j->kernel ? offsets(j->plan, data[0], data[1], data[2], size[0])
                           : j->wraps ? gather_row(j->plan, j->kernel, data[0], data[1], data[2], size[0])
                                      : j->kernel(j->plan, data[0], data[1], nest->stride[1][0], data[2], size[0]);
        if (!found) j->lost = true;
        if (--rows == 0) return;
        for (int32_t d = 1; d < nest->ndim; d++) {
            int64_t steps = ++at[d] < size[d] ? 1 : 1 - size[d]; /* on, or back to the start */
            for (int o = 0; o < 3; o++) data[o] += steps * nest->stride[o][d];
            if (steps == 1) break;
            at[d] = 0;
        }
    }
}

/* Sets an error for the first index out of range. If offsets() has overwritten the indices, recovers it from the
 * offset. */
static int32_t fail_lost(const nr_call *call) {
    const nr_index_plan *plan = call->plan;
    const nr_plan *nest = &plan->nest;
    const int64_t wrap = plan->wraps ? plan->axis_size : 0;
    const bool over = nest->data[0] == nest->data[1];
    int64_t at[NORCH_MAX_DIMS] = {0}, index = 0;
    const char *data = nest->data[1];
    for (int64_t i = 0; i < nest->numel; i++) {
        index = *(const int64_t *)data;
        if (over && index < 0) index -= wrap;
        if (index < -wrap || index >= plan->axis_size) break;
        for (int32_t d = 0; d < nest->ndim; d++) {
            data += nest->stride[1][d];
            if (++at[d] < nest->size[d]) break;
            data -= nest->stride[1][d] * nest->size[d];
            at[d] = 0;
        }
    }
    return nr_fail(NORCH_ERROR_INDEX, "%s: index %lld is out of range for size %lld at dimension %lld", call->name,
                   (long long)index, (long long)plan->axis_size, (long long)plan->dimension);
}

int32_t nr_run_index(const nr_call *call) {
    if (call->op >= NR_COUNT) return nr_run_nonzero(call);
    const nr_index_plan *plan = call->plan;
    const nr_plan *nest = &plan->nest;
    if (nest->numel == 0) return NORCH_OK;
    const bool writing = call->op != NR_GATHER && call->op != NR_OFFSETS;
    job j = {.plan = plan, .kernel = kernel_of(call->op, call->dtype)};
    j.wraps = call->op == NR_GATHER && plan->wraps && !plan->is_offset && !plan->checked;
    int64_t wanted = nr_threads() == 1 ? 1 : (nest->numel + CHUNK - 1) / CHUNK, parts = 1;
    if (writing && wanted > CUTS) wanted = CUTS;
    /* Divides the outermost loop that is long enough, or the longest. The innermost loop of a scatter counts as 64
     * times shorter, because short rows cost more than threads gain. */
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
    return j.lost ? fail_lost(call) : NORCH_OK;
}
