/* tile: makes a chain: the size of its tiles, which results are in buffers, and the loops of each call in a tile.
 *
 *   call      0    1    2    3        buffer
 *   a         [=========]             0
 *   b              [=========]        1
 *   c                   [====]        0: each element of a is read for the last time before that of c is written
 *
 * A buffer holds the elements of one tile, contiguous in the order of the loops. */
#include <string.h>

#include "fuse.h"

#define SECOND_CACHE (1 << 20) /* bytes of the second-level cache, about */
#define MOST_BUFFERS 64
#define LINE 64              /* bytes of a cache line */
#define PAST_CACHE (1 << 17) /* elements of a chain from which on its operands are not in the second-level cache */

/* ---- loops --------------------------------------------------------------------------------------------- */

int64_t nr_product(int32_t ndim, const int64_t *size) {
    int64_t all = 1;
    for (int32_t d = 0; d < ndim; d++) all *= size[d];
    return all;
}

bool nr_same_elements(const search *s, const access *a, const access *b) {
    return a->offset == b->offset && a->size == b->size &&
           memcmp(a->stride, b->stride, (size_t)s->ndim * sizeof *a->stride) == 0;
}

int32_t nr_merge_loops(search *s, int32_t from, int32_t to, const bool (*in_buffer)[NR_MAX_OPERANDS]) {
    for (int32_t d = from; d + 1 < to;) {
        bool joins = true;
        for (int64_t i = 0; i < s->count; i++)
            for (int o = 0; o < s->members[i].operands; o++) {
                const access *a = &s->members[i].operand[o];
                const bool reduced = s->members[i].role >= NR_INTO_ROW && o == 1; /* whose strides kernels ask for */
                if (a->place == NUMBER || (in_buffer && in_buffer[i][o] && !reduced)) continue;
                joins &= a->stride[d + 1] == a->stride[d] * s->size[d];
            }
        if (!joins) {
            d++;
            continue;
        }
        s->size[d] *= s->size[d + 1];
        for (int32_t e = d + 1; e + 1 < s->ndim; e++) s->size[e] = s->size[e + 1];
        for (int64_t i = 0; i < s->count; i++)
            for (int o = 0; o < s->members[i].operands; o++) {
                int64_t *stride = s->members[i].operand[o].stride;
                for (int32_t e = d + 1; e + 1 < s->ndim; e++) stride[e] = stride[e + 1];
            }
        s->ndim--;
        to--;
    }
    return to;
}

/* ---- buffers ---------------------------------------------------------------------------------------------- */

typedef struct buffer {
    int64_t bytes, free_from; /* bytes of an element, or in all; the first member for which it may be reused */
    bool by_row, is_long;
    int64_t at;
} buffer;

typedef struct plan {
    bool in_buffer[MOST_CALLS][NR_MAX_OPERANDS];
    int32_t of[MOST_CALLS][NR_MAX_OPERANDS]; /* buffers */
    buffer buffers[MOST_BUFFERS];
    int32_t count;
} plan;

static access *operand_of(search *s, int64_t n) {
    return &s->members[n / NR_MAX_OPERANDS].operand[n % NR_MAX_OPERANDS];
}

static bool has_operand(const search *s, int64_t n) {
    return n % NR_MAX_OPERANDS < s->members[n / NR_MAX_OPERANDS].operands;
}

/* The last member that uses the block of operand `first`, if the block needs no memory: it is temporary, written before
 * it is read, and used by this chain only, with the same elements throughout. Otherwise -1. */
static int64_t last_if_internal(search *s, int64_t first, bool *is_long) {
    const access *a = operand_of(s, first);
    if (!a->written || a->place < 0 || s->program->blocks[a->place].kind != NR_TEMPORARY) return -1;
    if (s->members[first / NR_MAX_OPERANDS].role == NR_INTO_ONE) return -1;
    int64_t uses = 0, last = -1;
    *is_long = false;
    for (int64_t n = 0; n < s->count * NR_MAX_OPERANDS; n++) {
        if (!has_operand(s, n) || operand_of(s, n)->place != a->place) continue;
        if (n / NR_MAX_OPERANDS < first / NR_MAX_OPERANDS || !nr_same_elements(s, a, operand_of(s, n))) return -1;
        const member *m = &s->members[n / NR_MAX_OPERANDS];
        if (n / NR_MAX_OPERANDS == first / NR_MAX_OPERANDS && n != first)
            return -1;                                            /* reads the block before anything is written to it */
        if (m->role >= NR_INTO_ROW && n % NR_MAX_OPERANDS == 1) { /* kernels add dense elements in another order */
            const nr_reduce_plan *reduce = s->program->instrs[m->instr].call.plan;
            if (reduce->stride[0] != a->size) return -1;
            *is_long |= m->role == NR_INTO_ONE;
        }
        uses++;
        last = n / NR_MAX_OPERANDS;
    }
    return uses == s->uses_of[a->place] ? last : -1;
}

/* Gives each block that needs no memory a buffer, reusing those of the same size that are no longer needed. A pointwise
 * call may write to the buffer that it reads. */
static bool assign_buffers(search *s, plan *p) {
    memset(p, 0, sizeof *p);
    for (int64_t n = 0; n < s->count * NR_MAX_OPERANDS; n++) {
        if (!has_operand(s, n) || p->in_buffer[n / NR_MAX_OPERANDS][n % NR_MAX_OPERANDS]) continue;
        bool is_long;
        const int64_t last = last_if_internal(s, n, &is_long), first = n / NR_MAX_OPERANDS;
        if (last < 0) continue;
        const access *a = operand_of(s, n);
        const bool by_row = s->members[first].role != NR_EACH;
        const bool over = s->program->instrs[s->members[first].instr].call.family == NR_POINTWISE;
        int32_t r = 0;
        for (; r < p->count; r++) {
            const buffer *one = &p->buffers[r];
            if ((s->runner->by_element || one->bytes == a->size) && one->by_row == by_row && one->is_long == is_long &&
                one->free_from + !over <= first)
                break;
        }
        if (r == (s->runner->by_element ? NR_CHAIN_REGISTERS : MOST_BUFFERS)) return false;
        if (r == p->count) p->buffers[p->count++] = (buffer){.bytes = a->size, .by_row = by_row, .is_long = is_long};
        p->buffers[r].free_from = is_long ? s->count : last;
        for (int64_t k = n; k < s->count * NR_MAX_OPERANDS; k++) {
            if (!has_operand(s, k) || operand_of(s, k)->place != a->place) continue;
            p->in_buffer[k / NR_MAX_OPERANDS][k % NR_MAX_OPERANDS] = true;
            p->of[k / NR_MAX_OPERANDS][k % NR_MAX_OPERANDS] = r;
        }
    }
    return true;
}

/* ---- the chain ------------------------------------------------------------------------------------------ */

/* Whether operands come from memory, so that the next tile is prefetched. */
static bool fetches(const search *s) { return !s->runner->by_element && nr_product(s->ndim, s->size) >= PAST_CACHE; }

/* Decides how many inner loops are whole in a tile, how many rows it has, and the bytes of its buffers. */
static bool cut_tile(search *s, plan *p, nr_chain *chain, int32_t *whole) {
    const int64_t limit = fetches(s) ? NR_CHAIN_FETCHED : NR_CHAIN_TILE;
    int64_t bytes = 0, most = 1;
    for (int32_t r = 0; r < p->count; r++)
        if (!p->buffers[r].by_row && !p->buffers[r].is_long) bytes += p->buffers[r].bytes;
    while (2 * most <= limit && 2 * most * bytes <= NR_CHAIN_BUFFERS) most *= 2;
    if (s->inner) most = 2 * NR_CHAIN_TILE; /* from the second cache, as rows are many kernel calls in any case */
    *whole = s->inner;
    while (!s->inner && *whole < s->ndim && nr_product(*whole + 1, s->size) <= most) ++*whole;
    chain->row = nr_product(*whole, s->size);
    chain->ndim = s->ndim - *whole;
    chain->rows = chain->tiles = 1;
    if (chain->ndim > 0) {
        memcpy(chain->size, s->size + *whole, (size_t)chain->ndim * sizeof *chain->size);
        if (chain->row < most) chain->rows = most / chain->row;
        if (chain->rows > chain->size[0]) chain->rows = chain->size[0];
        chain->tiles = (chain->size[0] + chain->rows - 1) / chain->rows * nr_product(chain->ndim - 1, chain->size + 1);
    }
    for (int32_t r = 0; r < p->count; r++) {
        buffer *one = &p->buffers[r];
        const int64_t elements = one->is_long ? s->runner->leaf : one->by_row ? chain->rows : chain->rows * chain->row;
        one->at = chain->bytes;
        chain->bytes += (elements * one->bytes + LINE - 1) / LINE * LINE;
    }
    /* A chain of one tile gains nothing: its data stay in the cache anyway. */
    return chain->bytes <= SECOND_CACHE && chain->tiles > 1;
}

/* The same for a device, where a thread takes one element, or threads one row, and a buffer is a register. */
static bool cut_elements(const search *s, plan *p, nr_chain *chain) {
    chain->ndim = s->ndim;
    memcpy(chain->size, s->size, sizeof chain->size);
    chain->rows = 1;
    chain->row = nr_product(s->inner, s->size);
    chain->tiles = nr_product(s->ndim - s->inner, s->size + s->inner);
    for (int32_t r = 0; r < p->count; r++) p->buffers[r].at = r;
    return s->ndim <= NR_CHAIN_LOOPS;
}

/* Whether all members are within the limits of a kernel. */
static bool fit_kernel(const search *s, const plan *p) {
    int64_t operands = 0, reductions = 0, size = 4, elements = 0; /* size: of the largest element, as registers are */
    for (int64_t i = 0; i < s->count; i++) {
        reductions += s->members[i].role == NR_INTO_ROW;
        for (int o = 0; o < s->members[i].operands; o++) {
            operands += !p->in_buffer[i][o];
            if (s->members[i].operand[o].size > size) size = s->members[i].operand[o].size;
        }
    }
    for (int32_t r = 0; r < p->count && s->inner; r++)
        elements += p->buffers[r].by_row ? 1 : nr_product(s->inner, s->size);
    return operands <= NR_CHAIN_OPERANDS && reductions <= NR_CHAIN_REDUCTIONS && elements * size <= NR_CHAIN_SHARED;
}

/* Gives registers to as many members as a kernel of a chain can have; the others are left for another chain. */
static bool fill_registers(search *s, plan *p) {
    for (; s->count > 1; s->count--)
        if (assign_buffers(s, p) && fit_kernel(s, p)) return true;
    return false;
}

/* The strides of an operand over the loops of a tile, the last of which is over rows. */
static void stride_tile(const search *s, const plan *p, const nr_chain *chain, int32_t whole, int64_t i, int o,
                        int64_t *stride) {
    const access *a = &s->members[i].operand[o];
    const bool dense = p->in_buffer[i][o], by_row = dense && p->buffers[p->of[i][o]].by_row;
    for (int32_t d = 0; d < whole; d++)
        stride[d] = by_row || a->place == NUMBER ? 0 : dense ? a->size * nr_product(d, s->size) : a->stride[d];
    stride[whole] = a->place == NUMBER ? 0
                    : by_row           ? a->size
                    : dense            ? a->size * chain->row
                    : chain->ndim      ? a->stride[whole]
                                       : 0;
}

static void make_link(const search *s, const plan *p, const nr_chain *chain, int32_t whole, int64_t i, nr_link *link) {
    const member *m = &s->members[i];
    const bool each = m->role == NR_EACH;
    link->role = m->role;
    for (int o = 0; o < m->operands; o++) {
        int64_t stride[NORCH_MAX_DIMS + 1];
        stride_tile(s, p, chain, whole, i, o, stride);
        link->buffer[o] = p->in_buffer[i][o] ? p->buffers[p->of[i][o]].at : NR_IN_MEMORY;
        link->long_buffer[o] = p->in_buffer[i][o] && p->buffers[p->of[i][o]].is_long;
        for (int32_t d = 0; d < chain->ndim; d++)
            link->step[o][d] = m->operand[o].place == NUMBER ? 0 : m->operand[o].stride[whole + d];
        for (int32_t d = 0; d <= whole && each; d++) link->stride[d][o] = stride[d];
        if (each) continue;
        link->stride[0][o] = stride[whole];
        link->stride[1][o] = stride[whole];
    }
    if (m->role >= NR_INTO_ROW) { /* the reduced elements have the stride that they have in memory */
        const nr_reduce_plan *reduce = s->program->instrs[m->instr].call.plan;
        link->stride[0][1] = reduce->stride[0];
        return;
    }
    /* Merges the loops of the tile that each operand steps through with one stride. The last loop is over rows. */
    const int32_t loops = each ? whole + 1 : 1;
    int64_t size[NORCH_MAX_DIMS + 1];
    for (int32_t d = 0; d < loops; d++) size[d] = each && d < whole ? s->size[d] : 1;
    link->ndim = 0;
    for (int32_t d = 0; d < loops; d++) {
        bool joins = link->ndim > 0;
        const int32_t to = link->ndim - 1;
        for (int o = 0; o < m->operands && joins; o++)
            joins = link->stride[d][o] == link->stride[to][o] * link->size[to];
        if (d + 1 == loops && each && chain->rows == 1 && link->ndim > 0) joins = true; /* no row follows */
        if (joins) {
            link->size[to] *= size[d];
            continue;
        }
        for (int o = 0; o < m->operands; o++) link->stride[link->ndim][o] = link->stride[d][o];
        link->size[link->ndim++] = size[d];
    }
    const nr_call *call = &s->program->instrs[m->instr].call;
    link->is_run = call->family == NR_POINTWISE && link->ndim == 1 && !nr_is_narrow(call->dtype);
}

/* Whether the elements of a tile are contiguous in an operand in memory. */
static bool is_dense(const search *s, const nr_chain *chain, int32_t whole, const access *a) {
    int64_t next = a->size;
    for (int32_t d = 0; d < whole + (chain->ndim > 0); d++) {
        if (a->stride[d] != next) return false;
        next *= s->size[d];
    }
    return true;
}

/* Lists the operands to prefetch (fetch() in cpu/chain.c), each block once. */
static void list_fetches(const search *s, const plan *p, nr_chain *chain, int32_t whole) {
    for (int64_t i = 0; i < s->count; i++)
        for (int o = 0; o < s->members[i].operands && chain->fetches < NR_CHAIN_FETCHES; o++) {
            const access *a = &s->members[i].operand[o];
            bool is_loaded = a->place == NUMBER || p->in_buffer[i][o];
            for (int32_t f = 0; f < chain->fetches && !is_loaded; f++) {
                const access *b = &s->members[chain->fetch[f].link].operand[chain->fetch[f].operand];
                is_loaded = a->place == b->place && a->offset == b->offset;
            }
            if (is_loaded || !is_dense(s, chain, whole, a)) continue;
            const int64_t lines = chain->rows * chain->row * a->size / LINE;
            chain->fetch[chain->fetches++] = (nr_chain_fetch){(int32_t)i, o, (lines + s->count - 1) / s->count};
        }
}

/* The chain that the search has found, with its links; NULL if it is not worth it. */
nr_chain *nr_chain_make(search *s) {
    nr_chain *chain = nr_malloc(sizeof *chain + (size_t)s->count * sizeof(nr_link));
    plan *p = nr_malloc(sizeof *p);
    const bool by_element = s->runner->by_element;
    bool good = chain && p && (by_element ? fill_registers(s, p) : assign_buffers(s, p));
    if (good) {
        memset(chain, 0, sizeof *chain);
        s->inner = nr_merge_loops(s, 0, s->inner, p->in_buffer);
        nr_merge_loops(s, s->inner, s->ndim, p->in_buffer);
        int32_t whole = 0;
        good = by_element ? cut_elements(s, p, chain) : cut_tile(s, p, chain, &whole) && whole < NORCH_MAX_DIMS;
        chain->count = s->count;
        chain->links = (nr_link *)(chain + 1);
        for (int64_t i = 0; i < s->count && good; i++) {
            nr_link *link = &chain->links[i];
            memset(link, 0, sizeof *link);
            make_link(s, p, chain, whole, i, link);
            if (p->in_buffer[i][0]) s->program->blocks[s->members[i].operand[0].place].in_buffer = true;
        }
        if (good && fetches(s)) list_fetches(s, p, chain, whole);
    }
    nr_free(p);
    if (good) return chain;
    nr_free(chain);
    return NULL;
}
