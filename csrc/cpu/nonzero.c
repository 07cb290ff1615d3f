/* nonzero: the coordinates of true elements, and masked reads and writes. Chunks are counted first, so that each knows
 * where to write.
 *
 *   truth    [ chunk: 5 true ][ chunk: 0 ][ chunk: 3 ]     NR_COUNT: a thread takes a chunk and counts it, branch-free
 *   counts   0                5           5           8    then one adds them up: where each chunk begins, and all
 *   out      [ rows 0 to 4   ]            [ 5 to 7   ]     NR_NONZERO: the same chunks, of each row a BLOCK at a time;
 *                                                          the indices found stay in the first cache
 *
 * Counts, their running sums, writes: Blelloch, "Prefix Sums and Their Applications" (1990). */
#include <string.h>

#include "../families/index.h"
#include "cpu.h"

#define CHUNK 65536 /* elements that a thread takes: several of the plan's, so that the counts fit */
#define BLOCK 256   /* elements looked at without a branch */

static void count_chunk(void *context, int64_t chunk) {
    const nr_nonzero_plan *plan = context;
    const int64_t first = chunk * CHUNK, rest = plan->n - first;
    const int64_t n = rest < CHUNK ? rest : CHUNK;
    const uint8_t *truth = plan->truth + first;
    uint32_t count = 0;
    for (int64_t i = 0; i < n; i++) count += truth[i] != 0;
    plan->counts[chunk + 1] = count;
}

/* Writes the positions of the true ones among n <= BLOCK bytes to found; returns their number. */
static int64_t find(const uint8_t *truth, int64_t n, int64_t *found) {
    int64_t count = 0, i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t eight;
        memcpy(&eight, truth + i, sizeof eight);
        if (!eight) continue;
        if (eight == 0x0101010101010101u) {
            for (int64_t k = 0; k < 8; k++) found[count + k] = i + k;
            count += 8;
            continue;
        }
        for (int64_t k = i; k < i + 8; k++) {
            found[count] = k;
            count += truth[k] != 0;
        }
    }
    for (; i < n; i++) {
        found[count] = i;
        count += truth[i] != 0;
    }
    return count;
}

static void write_chunk(void *context, int64_t chunk) {
    const nr_nonzero_plan *plan = context;
    int64_t at[NORCH_MAX_DIMS], found[BLOCK + 1];
    int64_t position = chunk * CHUNK, left = position;
    const int64_t rest = plan->n - position, end = position + (rest < CHUNK ? rest : CHUNK);
    const int32_t last = plan->ndim - 1;
    int64_t *out = (int64_t *)plan->out + plan->counts[chunk] * plan->row;
    for (int32_t d = last; d >= 0; d--) {
        at[d] = left % plan->size[d];
        left /= plan->size[d];
    }
    while (position < end) {
        int64_t n = plan->size[last] - at[last]; /* the rest of this row, of the chunk, of a block */
        if (n > end - position) n = end - position;
        if (n > BLOCK) n = BLOCK;
        const int64_t count = find(plan->truth + position, n, found);
        for (int32_t d = 0; d < last; d++)
            for (int64_t i = 0; i < count; i++) out[i * plan->row + d * plan->column] = at[d];
        for (int64_t i = 0; i < count; i++) out[i * plan->row + last * plan->column] = at[last] + found[i];
        out += count * plan->row;
        position += n;
        at[last] += n;
        for (int32_t d = last; d > 0 && at[d] == plan->size[d]; d--) {
            at[d] = 0;
            at[d - 1]++;
        }
    }
}

/* Elements of a type for each true one, side by side, from their places or, put, to them. */
#define OF_TYPE(T)                                                                                 \
    static void visit_##T(char *places, char *beside, const int64_t *found, int64_t n, bool put) { \
        T *all = (T *)(void *)places, *dense = (T *)(void *)beside;                                \
        if (put)                                                                                   \
            for (int64_t i = 0; i < n; i++) all[found[i]] = dense[i];                              \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) dense[i] = all[found[i]];                              \
    }
OF_TYPE(uint8_t)
OF_TYPE(uint16_t)
OF_TYPE(uint32_t)
OF_TYPE(uint64_t)

static void visit_chunk(const nr_nonzero_plan *plan, int64_t chunk, bool put) {
    int64_t found[BLOCK + 1], position = chunk * CHUNK, written = plan->counts[chunk];
    const int64_t end = plan->n - position < CHUNK ? plan->n : position + CHUNK;
    char *places = put ? plan->out : (char *)(uintptr_t)plan->x, *dense = put ? (char *)(uintptr_t)plan->x : plan->out;
    for (; position < end; position += BLOCK) {
        const int64_t count = find(plan->truth + position, end - position < BLOCK ? end - position : BLOCK, found);
        (plan->item == 1   ? visit_uint8_t
         : plan->item == 2 ? visit_uint16_t
         : plan->item == 4
             ? visit_uint32_t
             : visit_uint64_t)(places + position * plan->item, dense + written * plan->item, found, count, put);
        written += count;
    }
}

static void get_chunk(void *context, int64_t chunk) { visit_chunk(context, chunk, false); }
static void put_chunk(void *context, int64_t chunk) { visit_chunk(context, chunk, true); }

int32_t nr_run_nonzero(const nr_call *call) {
    nr_nonzero_plan plan = *(const nr_nonzero_plan *)call->plan;
    const int64_t chunks = (plan.n + CHUNK - 1) / CHUNK;
    nr_parallel(chunks,
                call->op == NR_COUNT      ? count_chunk
                : call->op == NR_NONZERO  ? write_chunk
                : call->op == NR_MASK_GET ? get_chunk
                                          : put_chunk,
                &plan);
    if (call->op != NR_COUNT) return NORCH_OK;
    plan.counts[0] = 0;
    for (int64_t i = 0; i < chunks; i++) plan.counts[i + 1] += plan.counts[i];
    *plan.total = plan.counts[chunks];
    return NORCH_OK;
}
