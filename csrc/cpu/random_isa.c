/* random_isa: fills memory with the numbers of families/random.h: Philox (Salmon, Moraes, Dror and Shaw, "Parallel
 * random numbers: as easy as 1, 2, 3", 2011). The counter of a block of words is its number in the stream, so that any
 * chunk can be computed alone, and threads change no number.
 *
 *   block     counter            counter + 1       ...     philox(seed, number) gives four words of 32 bits, of LANES
 *   words     w0  w1  w2  w3  |  w0  w1  w2  w3  | ...     blocks at a time: side by side, into the first cache
 *   float32   x0  x1  x2  x3  |  x4  x5  x6  x7  | ...     a word an element (normals: two words for two)
 *   others    x0 ...  x1 ...  |  x2 ...  x3 ...  | ...     two words an element; integers of any dtype, too
 *   out       [ CHUNK elements, whole blocks: one thread's ][ CHUNK ][ ... ]
 *
 * A permutation is one thread's (Fisher and Yates; Durstenfeld, CACM 7, 1964): each step needs the one before it. */
#include <string.h>

#include "../families/random.h"
#include "cpu.h"
#include "philox.h"

#define LANES 64    /* blocks made at a time */
#define CHUNK 16384 /* elements a thread takes at a time, whole blocks of any dtype */
#define WORDS (4 * LANES)

/* ---- words to elements --------------------------------------------------------------------------- */

#define TEMPLATE "random_loops.h"
#define WANTED(kind, bits) (kind == 'f')
#include "each_dtype.h"

static void convert_integers(const nr_call *call, int64_t first, int64_t n, const uint32_t *words) {
    const nr_random_plan *plan = call->plan;
    const uint64_t low = (uint64_t)plan->low, span = (uint64_t)plan->span;
    const bool narrow = span <= UINT32_MAX;
    uint64_t values[WORDS / 2];
    if (narrow) /* scaled(), of products that vectors have */
        for (int64_t i = 0; i < n; i++)
            values[i] =
                ((uint64_t)words[2 * i + 1] * (uint32_t)span + ((uint64_t)words[2 * i] * (uint32_t)span >> 32)) >> 32;
    else
        for (int64_t i = 0; i < n; i++) values[i] = scaled(pair(words + 2 * i), span);
    switch (call->dtype) {
#define WIDE(NAME, name, S, ...)                                                                     \
    case NORCH_##NAME:                                                                               \
        for (int64_t i = 0; i < n; i++) ((S *)plan->out)[first + i] = (S)(int64_t)(low + values[i]); \
        break;
#define NARROW(...)
#include "../dtypes.def"
    }
}

/* Fisher and Yates, from the back: the element at position i changes with one of the i + 1 up to it. */
static void permute(const nr_random_plan *plan) {
    int64_t *out = plan->out;
    uint32_t words[WORDS];
    for (int64_t i = 0; i < plan->n; i++) out[i] = i;
    for (int64_t drawn = 0; drawn < plan->n; drawn++) {
        int64_t in_batch = drawn % (2 * LANES), i = plan->n - 1 - drawn;
        if (in_batch == 0) philox(plan->seed, plan->counter + (uint64_t)(drawn / 2), LANES, words);
        int64_t other = (int64_t)scaled(pair(words + 2 * in_batch), (uint64_t)i + 1), keep = out[i];
        out[i] = out[other];
        out[other] = keep;
    }
}

static void run_chunk(void *context, int64_t chunk) {
    const nr_call *call = context;
    const nr_random_plan *plan = call->plan;
    const bool integers = call->op == NR_INTEGERS;
    const int64_t in_block = call->dtype == NORCH_FLOAT32 && !integers ? 4 : 2;
    int64_t last = (chunk + 1) * CHUNK < plan->n ? (chunk + 1) * CHUNK : plan->n;
    uint32_t words[WORDS];
    for (int64_t first = chunk * CHUNK; first < last; first += in_block * LANES) {
        int64_t n = last - first < in_block * LANES ? last - first : in_block * LANES;
        philox(plan->seed, plan->counter + (uint64_t)(first / in_block), (n + in_block - 1) / in_block, words);
        if (integers)
            convert_integers(call, first, n, words);
        else
            (call->dtype == NORCH_FLOAT32 ? draw_float32 : draw_float64)(plan, call->op, first, n, words);
    }
}

static int32_t check_probabilities(const nr_call *call) {
    const nr_random_plan *plan = call->plan;
    for (int64_t i = 0; i < plan->n; i++) {
        const double value = call->dtype == NORCH_FLOAT32 ? (double)((const float *)plan->probability)[i]
                                                          : ((const double *)plan->probability)[i];
        if (!(value >= 0 && value <= 1))
            return nr_fail(NORCH_ERROR_VALUE, "bernoulli: probability %g is not in [0, 1]", value);
    }
    return NORCH_OK;
}

int32_t NR_ISA(nr_run_random)(const nr_call *call) {
    const nr_random_plan *plan = call->plan;
    if (call->op == NR_BERNOULLI) NR_TRY(check_probabilities(call)); /* before any is drawn */
    if (call->op == NR_PERMUTATION)
        permute(plan);
    else
        nr_parallel((plan->n + CHUNK - 1) / CHUNK, run_chunk, (void *)(uintptr_t)call);
    return NORCH_OK;
}
