/* chain: runs the calls of a chain (families/chain.h) tile by tile, each with its own kernel.
 *
 *   chunk   [ tile | tile | tile ]   the work of a thread; shapes decide how many tiles it has
 *   tile    call 0: x, y -> buffer a       call 1: a, b -> buffer c       call 2: c -> memory
 *
 * Tiles do not depend on one another, and a kernel computes the same value for an element in any tile. So the results
 * are those of the single calls, one after another, for any number of threads. */
#include <stdatomic.h>
#include <string.h>

#include "../families/chain.h"
#include "pointwise.h"
#include "reduce.h"
#include "stream.h"
#include "tiles.h"

#define CHUNK 16384          /* elements of a chunk, about */
#define WORTH_THREADS 131072 /* elements of all calls */
#define ON_STACK NR_CHAIN_BUFFERS

typedef struct job {
    const nr_chain *chain;
    int64_t tiles_a_chunk;
    char **states; /* of each reduction into one element; NULL if there is no such reduction */
    atomic_bool failed;
} job;

/* One tile: where it begins, and how many rows it has. */
typedef struct tile {
    int64_t at[NORCH_MAX_DIMS], rows;
    char *buffers;
    int64_t in_leaf; /* elements of the leaf before it */
} tile;

static void find_tile(const nr_chain *chain, int64_t index, tile *t) {
    t->rows = 1;
    if (chain->ndim == 0) return;
    const int64_t along = ceil_div(chain->size[0], chain->rows);
    t->at[0] = index % along * chain->rows;
    t->rows = least(chain->rows, chain->size[0] - t->at[0]);
    index /= along;
    for (int32_t d = 1; d < chain->ndim; d++) {
        t->at[d] = index % chain->size[d];
        index /= chain->size[d];
    }
}

static char *address(const nr_chain *chain, const nr_link *link, int o, char *data, const tile *t) {
    if (link->buffer[o] != NR_IN_MEMORY)
        return t->buffers + link->buffer[o] + (link->long_buffer[o] ? t->in_leaf * link->stride[0][o] : 0);
    for (int32_t d = 0; d < chain->ndim; d++) data += t->at[d] * link->step[o][d];
    return data;
}

static void reduce_rows(const nr_chain *chain, const nr_link *link, const tile *t) {
    const nr_reduce_plan *plan = link->call->plan;
    nr_reduce_plan part;
    part.kept.ndim = 1;
    part.kept.operands = 2;
    part.kept.numel = part.kept.size[0] = t->rows;
    part.kept.stride[0][0] = link->stride[1][0];
    part.kept.stride[1][0] = link->stride[1][1];
    for (int o = 0; o < 2; o++) part.kept.data[o] = address(chain, link, o, plan->kept.data[o], t);
    part.ndim = 1;
    part.size[0] = part.count = plan->count;
    part.stride[0] = link->stride[0][1];
    part.param = plan->param;
    nr_reduce_rows(link->call, &part);
}

static void run_link(const nr_chain *chain, const nr_link *link, const tile *t) {
    if (link->role == NR_INTO_ROW) {
        reduce_rows(chain, link, t);
        return;
    }
    const nr_call *call = link->call;
    const nr_plan *plan = call->plan;
    if (link->is_run) {
        char *data[NR_MAX_OPERANDS];
        for (int o = 0; o < plan->operands; o++)
            data[o] = nr_in_plan(plan, o) ? plan->data[o] : address(chain, link, o, plan->data[o], t);
        ((nr_pointwise_kernel)call->kernel)(link->size[0] * t->rows, data, link->stride[0], false);
        return;
    }
    nr_plan part;
    part.operands = call->family == NR_COPY ? 2 : plan->operands;
    part.ndim = link->ndim;
    part.numel = 1;
    for (int32_t d = 0; d < link->ndim; d++) {
        part.size[d] = link->size[d] * (d + 1 == link->ndim ? t->rows : 1);
        part.numel *= part.size[d];
        for (int o = 0; o < part.operands; o++) part.stride[o][d] = link->stride[d][o];
    }
    for (int o = 0; o < part.operands; o++) {
        part.value[o] = plan->value[o];
        part.data[o] = nr_in_plan(plan, o) ? (char *)&part.value[o] : address(chain, link, o, plan->data[o], t);
    }
    nr_call of_part = *call;
    of_part.plan = &part;
    call->backend->run[call->family](&of_part); /* cannot fail: a chain has no integer divisors */
}

static char *data_of(const nr_link *link, int o) {
    return ((const nr_plan *)link->call->plan)->data[o]; /* of a reduction: its first field */
}

/* The addresses of prefetched operands in a tile. */
static void find_ahead(const nr_chain *chain, const tile *t, const char **ahead) {
    for (int32_t f = 0; f < chain->fetches; f++) {
        const nr_link *link = &chain->links[chain->fetch[f].link];
        const int o = chain->fetch[f].operand;
        ahead[f] = address(chain, link, o, data_of(link, o), t);
    }
}

/* Before call i, prefetches a part of the operands and results of the next tile, so that memory is read while the calls
 * compute. A tile is too short for the hardware prefetcher. Results that bypassed the cache (stream.h) would wait for
 * memory in one call of the chain. */
static void fetch(const nr_chain *chain, const char *const *ahead, int64_t i) {
    for (int32_t f = 0; f < chain->fetches; f++) {
        const int64_t lines = chain->fetch[f].lines;
        const char *from = ahead[f] + i * lines * NR_LINE;
        for (int64_t k = 0; k < lines; k++) __builtin_prefetch(from + k * NR_LINE, 0, 3);
    }
}

/* Reduces a chunk, which is a leaf, into the states of the reductions into one element. */
static void reduce_leaves(const job *j, int64_t first, char *buffers) {
    const nr_chain *chain = j->chain;
    for (int64_t i = 0; i < chain->count; i++) {
        const nr_link *link = &chain->links[i];
        if (link->role != NR_INTO_ONE) continue;
        const tile start = {.at = {first}, .buffers = buffers};
        const nr_reduce_plan *plan = link->call->plan;
        nr_reduce_leaf(link->call, address(chain, link, 1, plan->kept.data[1], &start), first, j->states[i]);
    }
}

static void run_chunk(void *context, int64_t chunk) {
    job *j = context;
    const nr_chain *chain = j->chain;
    _Alignas(NR_LINE) char on_stack[ON_STACK];
    const size_t bytes = (size_t)chain->bytes;
    tile t = {.buffers = bytes <= ON_STACK ? on_stack : nr_scratch(bytes)};
    if (!t.buffers) {
        atomic_store(&j->failed, true);
        return;
    }
    const int64_t first = chunk * j->tiles_a_chunk, last = least(first + j->tiles_a_chunk, chain->tiles);
    for (int64_t index = first; index < last; index++) {
        const char *ahead[NR_CHAIN_FETCHES];
        const bool fetches = index + 2 < chain->tiles; /* the last tile may be a part */
        if (fetches) {
            find_tile(chain, index + 1, &t);
            find_ahead(chain, &t, ahead);
        }
        find_tile(chain, index, &t);
        for (int64_t i = 0; i < chain->count; i++) {
            if (fetches) fetch(chain, ahead, i);
            if (chain->links[i].role != NR_INTO_ONE) run_link(chain, &chain->links[i], &t);
        }
        t.in_leaf += t.rows;
    }
    if (j->states) reduce_leaves(j, first * chain->rows, t.buffers);
    if (t.buffers != on_stack) nr_scratch_free(t.buffers, bytes);
}

static int32_t run(job *j) {
    const nr_chain *chain = j->chain;
    const int64_t chunks = ceil_div(chain->tiles, j->tiles_a_chunk);
    if (j->states || chain->tiles * chain->rows * chain->row * chain->count >= WORTH_THREADS)
        nr_parallel(chunks, run_chunk, j);
    else
        for (int64_t chunk = 0; chunk < chunks; chunk++) run_chunk(j, chunk);
    if (atomic_load(&j->failed))
        return nr_fail(NORCH_ERROR_MEMORY, "capture: out of memory for %lld bytes of scratch", (long long)chain->bytes);
    for (int64_t i = 0; i < chain->count && j->states; i++)
        if (chain->links[i].role == NR_INTO_ONE) nr_reduce_join(chain->links[i].call, j->states[i]);
    return NORCH_OK;
}

/* Of all leaves of a reduction, with those of the next one aligned. */
static size_t states_size(const nr_call *call, int64_t leaves) {
    return (size_t)(leaves * nr_reduce_state_size(call) + 7) & ~(size_t)7;
}

static int32_t run_chain(const nr_chain *chain) {
    const int64_t elements = chain->rows * chain->row;
    job j = {.chain = chain, .tiles_a_chunk = elements < CHUNK ? CHUNK / elements : 1};
    size_t bytes = 0;
    const int64_t leaves = ceil_div(chain->tiles, j.tiles_a_chunk);
    for (int64_t i = 0; i < chain->count; i++)
        if (chain->links[i].role == NR_INTO_ONE) bytes += states_size(chain->links[i].call, leaves);
    if (bytes == 0) return run(&j);
    const size_t all = bytes + (size_t)chain->count * sizeof *j.states;
    if (!(j.states = nr_scratch(all)))
        return nr_fail(NORCH_ERROR_MEMORY, "capture: out of memory for %zu bytes of scratch", all);
    char *at = (char *)(j.states + chain->count);
    for (int64_t i = 0; i < chain->count; i++) {
        if (chain->links[i].role != NR_INTO_ONE) continue;
        j.states[i] = at;
        at += states_size(chain->links[i].call, leaves);
    }
    const int32_t status = run(&j);
    nr_scratch_free(j.states, all);
    return status;
}

static bool takes_rows(int64_t rows, int64_t row) {
    (void)rows;
    return row <= NR_CHAIN_ROW;
}

const nr_chain_runner nr_cpu_chains = {
    .reduces = nr_reduce_role, .takes_rows = takes_rows, .leaf = NR_REDUCE_LEAF, .run = run_chain};
