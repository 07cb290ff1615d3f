/* index: reads from and sums into indexed places, row by row of the innermost loop; indices are checked.
 *
 * A gather is cut anywhere. A scatter is cut only along a loop that moves the target, where no two chunks
 * can meet in one element; each chunk adds in the order of the nest, so threads change no bit. */
#include <string.h>

#include "../core/dtype.h"
#include "cpu.h"

#define CHUNK 32768 /* elements a thread takes at a time, about */
#define CUTS 32     /* parts a scatter is cut into, at most */

#define WORD uint8_t
#define SIZE 1
#include "index_takes.h"
#define WORD uint16_t
#define SIZE 2
#include "index_takes.h"
#define WORD uint32_t
#define SIZE 4
#include "index_takes.h"
#define WORD uint64_t
#define SIZE 8
#include "index_takes.h"

#define PLUS(a, b) ((a) + (b))
#define NAME truth
#define S uint8_t
#define SUM(a, b) (((a) | (b)) != 0)
#include "index_loops.h"
#define NAME uint8
#define S uint8_t
#define SUM(a, b) (uint8_t)((a) + (b))
#include "index_loops.h"
#define NAME int32
#define S int32_t
#define SUM PLUS
#include "index_loops.h"
#define NAME int64
#define S int64_t
#define SUM PLUS
#include "index_loops.h"
#define NAME float32
#define S float
#define SUM PLUS
#include "index_loops.h"
#define NAME float64
#define S double
#define SUM PLUS
#include "index_loops.h"

/* n elements of the innermost loop from these three places on. */
typedef void (*row_kernel)(const nr_index_plan *plan, char *dense, const char *index, char *target, int64_t n);

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
    char *place[3];
    for (int32_t d = 0; d < nest->ndim; d++) size[d] = nest->size[d];
    const int64_t first = chunk * j->part;
    if (size[j->cut] - first < j->part)
        size[j->cut] -= first;
    else
        size[j->cut] = j->part;
    for (int o = 0; o < 3; o++) place[o] = nest->data[o] + first * nest->stride[o][j->cut];
    for (int32_t d = 1; d < nest->ndim; d++) rows *= size[d];
    for (;;) {
        j->kernel(j->plan, place[0], place[1], place[2], size[0]);
        if (--rows == 0) return;
        for (int32_t d = 1; d < nest->ndim; d++) {
            int64_t steps = ++at[d] < size[d] ? 1 : 1 - size[d]; /* on, or back to the start */
            for (int o = 0; o < 3; o++) place[o] += steps * nest->stride[o][d];
            if (steps == 1) break;
            at[d] = 0;
        }
    }
}

int32_t nr_run_index(const nr_call *call) {
    static const row_kernel adds[NR_DTYPE_COUNT] = {add_truth, add_uint8,   add_int32,
                                                    add_int64, add_float32, add_float64};
    const nr_index_plan *plan = call->plan;
    const nr_plan *nest = &plan->nest;
    if (nest->numel == 0) return NORCH_OK;
    const int64_t element = nr_size_of(call->dtype);
    const bool adding = call->op == NR_SCATTER_ADD;
    job j = {.plan = plan};
    j.kernel = adding         ? adds[call->dtype]
               : element == 1 ? take_1
               : element == 2 ? take_2
               : element == 4 ? take_4
                              : take_8;
    /* The longest loop that may be cut: for a scatter, short rows cost more than threads give. */
    int64_t parts = 1;
    for (int32_t d = 0; d < nest->ndim; d++) {
        int64_t most = nest->size[d];
        if (adding && nest->stride[2][d] == 0) continue;
        if (adding && d == 0) most /= 64;
        if (most <= parts) continue;
        parts = most;
        j.cut = d;
    }
    int64_t wanted = (nest->numel + CHUNK - 1) / CHUNK;
    if (adding && wanted > CUTS) wanted = CUTS;
    if (parts > wanted) parts = wanted;
    j.part = (nest->size[j.cut] + parts - 1) / parts;
    int64_t chunks = (nest->size[j.cut] + j.part - 1) / j.part;
    if (chunks == 1)
        run_chunk(&j, 0);
    else
        nr_parallel(chunks, run_chunk, &j);
    return NORCH_OK;
}
