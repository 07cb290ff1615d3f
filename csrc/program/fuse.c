/* fuse: finds the chains of a program (families/chain.h): calls over one iteration space that a backend runs tile by
 * tile.
 *
 *   before   1 mul  x, 0.5 -> a        after   1 [ mul   x, 0.5  -> buffer 0
 *            2 tanh a      -> b                  tanh  buffer 0  -> buffer 0
 *            3 sum  w      -> s                  add   buffer 0, x -> y ]
 *            4 add  b, x   -> y                3 sum   w       -> s
 *
 * A chain begins with the first call that belongs to none. A later call joins it if
 *   - it has the loops of the chain, or one element for each of its rows, or reduces its rows;
 *   - it shares memory with the chain (drop_unconnected);
 *   - no dependence between it and a call of the chain forbids running them tile by tile (below);
 *   - it can be moved up to the chain: each call in between either can go before the chain, or neither uses memory that
 *     the call writes, nor writes memory that it uses.
 *
 * Two calls depend on each other if they use common memory that one of them writes: the later reads what the earlier
 * writes, writes what it reads, or writes what it writes. A tile runs the calls in their order, but only for its own
 * iterations, and tiles run in any order. So a dependence is kept if (conflict)
 *   - common memory is accessed as the same elements: same address, element size and strides, so an element belongs
 *     to the same iteration of both calls. Views at an offset, transposed, or of another stride are other elements;
 *   - an element that is written belongs to one iteration of the call that writes it (read_nest);
 *   - it is not through a scalar that the later call reads before the chain begins (reads_number);
 *   - the order of the two is that of their roles. A reduction of rows, and a broadcast of an element of each row, are
 *     whole in a tile. But a reduction into one element reads what it reduces after all calls of its chunk, and writes
 *     its result after all chunks: it may depend on an earlier call, whose elements it reads, and no later call on it.
 *
 * Nothing else has to be known about the calls. Loops are compared after splitting: a dense loop may be split into
 * rows, to match another call. Kennedy and McKinley, "Maximizing Loop Parallelism and Improving Data Locality via Loop
 * Fusion and Distribution" (1993). */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "fuse.h"
#include "plans.h"

/* ---- accesses ------------------------------------------------------------------------------------------ */

/* Whether an access may have an element in several iterations of the loops from `from` on. It cannot if, sorted by
 * size, each stride exceeds the extent of all smaller ones. */
static bool repeats(const access *a, int32_t from, int32_t ndim, const int64_t *size) {
    int64_t extent = a->size;
    bool taken[NORCH_MAX_DIMS] = {0};
    for (int32_t n = from; n < ndim; n++) {
        int32_t least = -1;
        for (int32_t d = from; d < ndim; d++)
            if (!taken[d] && (least < 0 || llabs(a->stride[d]) < llabs(a->stride[least]))) least = d;
        taken[least] = true;
        if (llabs(a->stride[least]) < extent) return true;
        extent += llabs(a->stride[least]) * (size[least] - 1);
    }
    return false;
}

/* The loops of a call, innermost first; those of a reduction are the reduced ones and then the kept ones. False: the
 * call cannot be in a chain. */
static bool read_nest(const search *s, int64_t index, member *m, int32_t *ndim, int64_t *size) {
    const nr_instr *instr = &s->program->instrs[index];
    const nr_call *call = &instr->call;
    const bool reduction = call->family == NR_REDUCTION;
    if (instr->dead || instr->lowered || instr->folded || s->taken[index] || call->backend->chains != s->runner ||
        nr_divides(call))
        return false;
    if (nr_is_complex(call->dtype)) return false; /* tiles have the loops of real dtypes */
    if (!reduction && call->family != NR_POINTWISE && call->family != NR_COPY) return false;
    if (s->runner->takes && !s->runner->takes(call, s->count ? &s->program->instrs[s->members[0].instr].call : call))
        return false;
    const nr_plan *plan = call->plan; /* of a reduction: its first field */
    if (plan->numel == 0) return false;
    *m = (member){
        .instr = index, .group = index, .role = NR_EACH, .operands = call->family == NR_POINTWISE ? plan->operands : 2};
    *ndim = 0;
    if (reduction) {
        const nr_reduce_plan *reduce = call->plan;
        const int32_t role = s->runner->reduces ? s->runner->reduces(call) : -1;
        if (role < 0 || (role == NR_INTO_ROW && !s->runner->takes_rows(plan->numel, reduce->count))) return false;
        m->role = (nr_chain_role)role;
        m->operand[1].stride[0] = reduce->stride[0];
        size[(*ndim)++] = reduce->count;
    }
    for (int32_t d = 0; d < plan->ndim; d++) {
        if (plan->size[d] == 1) continue;
        if (*ndim == NORCH_MAX_DIMS) return false;
        for (int o = 0; o < m->operands; o++) m->operand[o].stride[*ndim] = plan->stride[o][d];
        size[(*ndim)++] = plan->size[d];
    }
    for (int o = 0; o < m->operands; o++) {
        access *a = &m->operand[o];
        a->place = NUMBER;
        a->size = nr_plan_element_size(call, o);
        for (int64_t u = instr->first_use; u < instr->first_use + instr->uses; u++) {
            const nr_use *use = &s->program->uses[u];
            if (use->at != (void **)(uintptr_t)&plan->data[o]) continue;
            const bool relative = nr_is_private(s->program, use->block);
            a->place = relative ? use->block : ABSOLUTE;
            a->offset = relative ? use->offset : (int64_t)(intptr_t)plan->data[o];
            a->written = use->written;
        }
        if (a->written && repeats(a, reduction, *ndim, size)) return false;
    }
    return true;
}

/* ---- loops --------------------------------------------------------------------------------------------- */

static bool split(int32_t *ndim, int64_t *size, int32_t d, int64_t first) {
    if (*ndim == NORCH_MAX_DIMS) return false;
    for (int32_t e = (*ndim)++; e > d + 1; e--) size[e] = size[e - 1];
    size[d + 1] = size[d] / first;
    size[d] = first;
    return true;
}

static void split_strides(member *m, int32_t d, int64_t first) {
    for (int o = 0; o < m->operands; o++) {
        int64_t *stride = m->operand[o].stride;
        for (int32_t e = NORCH_MAX_DIMS - 1; e > d + 1; e--) stride[e] = stride[e - 1];
        stride[d + 1] = stride[d] * first;
    }
}

/* Splits loops of the chain, from loop `from` on, and those of a call, until they are the same. On failure loops of the
 * chain may stay split, which does no harm. */
static bool refine(search *s, int32_t from, member *m, int32_t *ndim, int64_t *size) {
    int32_t d = 0;
    for (; from + d < s->ndim && d < *ndim; d++) {
        const int64_t ours = s->size[from + d], theirs = size[d];
        if (ours == theirs) continue;
        if (ours % theirs == 0) {
            if (s->flat || !split(&s->ndim, s->size, from + d, theirs)) return false;
            for (int64_t i = 0; i < s->count; i++) split_strides(&s->members[i], from + d, theirs);
            s->inner += from + d < s->inner;
        } else if (theirs % ours == 0) {
            if (!split(ndim, size, d, ours)) return false;
            split_strides(m, d, ours);
        } else {
            return false;
        }
    }
    return from + d == s->ndim && d == *ndim;
}

/* Makes strides over the rows of the chain strides over all its loops. */
static void shift(member *m, int32_t by) {
    for (int o = 0; o < m->operands; o++) {
        int64_t *stride = m->operand[o].stride;
        memmove(stride + by, stride, (size_t)(NORCH_MAX_DIMS - by) * sizeof *stride);
        memset(stride, 0, (size_t)by * sizeof *stride);
    }
}

/* Whether a call uses memory that the chain uses, or, if `written`, reads memory that the chain writes. */
static bool meets(const search *s, const member *m, bool written) {
    for (int o = written; o < m->operands; o++)
        for (int64_t i = 0; i < s->count; i++)
            for (int k = 0; k < (written ? 1 : s->members[i].operands); k++)
                if (m->operand[o].place != NUMBER && m->operand[o].place == s->members[i].operand[k].place) return true;
    return false;
}

/* Changes the loops of a call to those of the chain, and sets its role. */
static bool fit(search *s, member *m, int32_t ndim, int64_t *size) {
    const int64_t all = nr_product(s->ndim, s->size), row = nr_product(s->inner, s->size), its = nr_product(ndim, size);
    if (m->role == NR_INTO_ONE) {
        if (its != all || s->inner) return false;
        nr_merge_loops(s, 0, s->ndim, NULL);
        s->flat = s->ndim == 1 && ndim == 1;
        return s->flat;
    }
    if (m->role == NR_INTO_ROW) {
        if (its != all || s->flat || (s->inner && size[0] != row)) return false;
        const int64_t count = size[0];
        if (!refine(s, 0, m, &ndim, size)) return false;
        while (nr_product(s->inner, s->size) < count) s->inner++;
        return true;
    }
    if (its == all) return refine(s, 0, m, &ndim, size);
    if (s->flat) return false;
    if (its == all / row) { /* not of a chain without rows, whose `row` is 1 */
        m->role = NR_ROW;
        if (!refine(s, s->inner, m, &ndim, size)) return false;
        shift(m, s->inner);
        return true;
    }
    /* The call has rows, for each of which the chain so far has one element. */
    if (s->inner || its % all != 0 || s->ndim == NORCH_MAX_DIMS || !s->runner->takes_rows(all, its / all) ||
        !meets(s, m, true))
        return false;
    for (int64_t i = 0; i < s->count; i++) {
        shift(&s->members[i], 1);
        s->members[i].role = NR_ROW;
    }
    for (int32_t d = s->ndim++; d > 0; d--) s->size[d] = s->size[d - 1];
    s->size[0] = its / all;
    s->inner = 1;
    return refine(s, 0, m, &ndim, size);
}

/* ---- conflicts ----------------------------------------------------------------------------------------- */

static void reach(const search *s, const access *a, int64_t *low, int64_t *high) {
    *low = *high = a->offset;
    for (int32_t d = 0; d < s->ndim; d++) {
        const int64_t far = a->stride[d] * (s->size[d] - 1);
        *(far < 0 ? low : high) += far;
    }
    *high += a->size;
}

static bool overlap(const search *s, const access *a, const access *b) {
    int64_t a_low, a_high, b_low, b_high;
    reach(s, a, &a_low, &a_high);
    reach(s, b, &b_low, &b_high);
    return a_low < b_high && b_low < a_high;
}

/* Whether a member writes a scalar that a call reads from memory by nr_call.load, which happens before the chain
 * runs. */
static bool reads_number(const search *s, const nr_instr *instr, const member *writer) {
    const access *written = &writer->operand[0];
    const nr_plan *plan = instr->call.plan;
    for (int o = 0; instr->call.load && o < NR_MAX_OPERANDS; o++)
        for (int64_t u = instr->first_use; u < instr->first_use + instr->uses; u++) {
            const nr_use *use = &s->program->uses[u];
            if (use->at != (void **)(uintptr_t)&plan->number[o].at) continue;
            const bool relative = nr_is_private(s->program, use->block);
            const access number = {.place = relative ? use->block : ABSOLUTE,
                                   .offset = relative ? use->offset : (int64_t)(intptr_t)plan->number[o].at,
                                   .size = nr_size_of(plan->number[o].dtype)};
            if (number.place == written->place && overlap(s, &number, written)) return true;
        }
    return false;
}

/* Whether an operand is one element, broadcast over all loops. */
static bool is_one_number(const search *s, const access *a) {
    for (int32_t d = 0; d < s->ndim; d++)
        if (a->stride[d]) return false;
    return true;
}

/* Whether a dependence between a call of the chain and a later one, both with its loops, forbids running them tile by
 * tile. *meet: they share memory, other than one scalar that both read. */
static bool conflict(const search *s, const member *before, const member *after, bool *meet) {
    if (reads_number(s, &s->program->instrs[after->instr], before)) return true;
    *meet = reads_number(s, &s->program->instrs[before->instr], after);
    for (int i = 0; i < before->operands; i++)
        for (int k = 0; k < after->operands; k++) {
            const access *a = &before->operand[i], *b = &after->operand[k];
            if (a->place == NUMBER || a->place != b->place || !overlap(s, a, b)) continue;
            *meet |= a->written || b->written || !is_one_number(s, a);
            if (!a->written && !b->written) continue;
            if (!nr_same_elements(s, a, b) || before->role == NR_INTO_ONE || (b->written && after->role == NR_INTO_ONE))
                return true;
        }
    return false;
}

/* Whether two calls may be exchanged: neither writes a block that the other uses. External storages may overlap; a
 * replay refuses arguments that overlap if they did not in the recording (python/capture/replay.c). */
static bool exchangeable(const search *s, const nr_instr *a, const nr_instr *b) {
    const nr_program *program = s->program;
    for (int64_t u = a->first_use; u < a->first_use + a->uses; u++)
        for (int64_t v = b->first_use; v < b->first_use + b->uses; v++) {
            if (!program->uses[u].written && !program->uses[v].written) continue;
            const nr_block *x = &program->blocks[program->uses[u].home], *y = &program->blocks[program->uses[v].home];
            if (x == y) return false;
            if (x->external && y->external && x->data < y->data + y->bytes && y->data < x->data + x->bytes)
                return false;
        }
    return true;
}

static bool exchangeable_with(const search *s, int64_t index, const int64_t *instrs, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!exchangeable(s, &s->program->instrs[instrs[i]], &s->program->instrs[index])) return false;
    return true;
}

static void unite(search *s, int64_t group, int64_t with) {
    for (int64_t i = 0; i < s->count; i++)
        if (s->members[i].group == group) s->members[i].group = with;
}

static bool join(search *s, int64_t index) {
    member m;
    int32_t ndim;
    int64_t size[NORCH_MAX_DIMS];
    if (s->count == MOST_CALLS || !read_nest(s, index, &m, &ndim, size)) return false;
    if (!exchangeable_with(s, index, s->after, s->after_count)) return false;
    if (s->count == 0) {
        if (m.role == NR_INTO_ONE) return false;
        s->ndim = ndim;
        memcpy(s->size, size, sizeof size);
        s->inner = m.role == NR_INTO_ROW;
        s->flat = false;
    } else {
        const bool alike = m.role == NR_EACH && nr_product(ndim, size) == nr_product(s->ndim, s->size);
        const size_t bytes = offsetof(search, members) + (size_t)s->count * sizeof(member);
        search *before = alike || meets(s, &m, false) ? nr_malloc(bytes) : NULL;
        if (!before) return false;
        memcpy(before, s, bytes);
        bool joins = fit(s, &m, ndim, size), meet[MOST_CALLS] = {0}, met = false;
        for (int64_t i = 0; i < s->count && joins; i++) {
            joins = !conflict(s, &s->members[i], &m, &meet[i]);
            met |= meet[i];
        }
        joins &= alike || met;
        if (!joins) memcpy(s, before, bytes); /* undoes the attempt */
        nr_free(before);
        if (!joins) return false;
        for (int64_t i = 0; i < s->count; i++)
            if (meet[i]) unite(s, s->members[i].group, index);
    }
    s->members[s->count++] = m;
    return true;
}

/* Removes members that share no memory with the first, directly or through others: a later call might have connected
 * them. No dependence forbids running them later. */
static void drop_unconnected(search *s) {
    int64_t kept = 0;
    for (int64_t i = 0; i < s->count; i++)
        if (s->members[i].group == s->members[0].group) s->members[kept++] = s->members[i];
    s->count = kept;
}

/* Whether a call can be moved before the chain, and before the calls that are moved after it. */
static bool goes_first(const search *s, int64_t index) {
    for (int64_t i = 0; i < s->count; i++)
        if (!exchangeable_with(s, index, &s->members[i].instr, 1)) return false;
    return exchangeable_with(s, index, s->after, s->after_count);
}

static void find_members(search *s, const int64_t *list, int64_t count) {
    s->count = s->before_count = s->after_count = 0;
    if (!join(s, list[0])) return;
    for (int64_t i = 1; i < count && s->before_count < MOST_BETWEEN && s->after_count < MOST_BETWEEN; i++) {
        const nr_instr *instr = &s->program->instrs[list[i]];
        if (instr->dead || s->taken[list[i]] || join(s, list[i])) continue;
        if (!s->reorders || nr_has_effects(&instr->call)) break; /* no later call may go before it */
        if (goes_first(s, list[i]))
            s->before[s->before_count++] = list[i];
        else
            s->after[s->after_count++] = list[i];
    }
    drop_unconnected(s);
}

/* ---- the program ---------------------------------------------------------------------------------------- */

static void count_uses(const nr_program *program, int64_t *uses_of) {
    memset(uses_of, 0, (size_t)program->block_count * sizeof *uses_of);
    for (int64_t i = 0; i < program->count; i++) {
        const nr_instr *instr = &program->instrs[i];
        for (int64_t u = instr->first_use; u < instr->first_use + instr->uses && !instr->dead; u++)
            uses_of[program->uses[u].home]++;
    }
}

typedef struct order {
    nr_instr *instrs;
    int64_t count;
} order;

static void put(search *s, order *to, int64_t index, nr_chain *chain, bool follows) {
    s->taken[index] = true;
    to->instrs[to->count] = s->program->instrs[index];
    to->instrs[to->count].chain = chain;
    to->instrs[to->count++].follows = follows;
}

/* Appends the instructions of a list to the new order, chain by chain. */
static void order_instrs(search *s, const int64_t *list, int64_t count, order *to) {
    for (int64_t i = 0; i < count; i++) {
        if (s->taken[list[i]]) continue;
        find_members(s, list + i, count - i);
        nr_chain *chain = s->count > 1 ? nr_chain_make(s) : NULL;
        if (!chain) {
            put(s, to, list[i], NULL, false);
            continue;
        }
        int64_t before[MOST_BETWEEN], members[MOST_CALLS];
        const int64_t before_count = s->before_count;
        memcpy(before, s->before, sizeof before);
        for (int64_t k = 0; k < chain->count; k++) {
            members[k] = s->members[k].instr;
            s->taken[members[k]] = true;
        }
        order_instrs(s, before, before_count, to); /* may form chains of their own */
        for (int64_t k = 0; k < chain->count; k++) put(s, to, members[k], k ? NULL : chain, k > 0);
    }
}

void nr_program_fuse(nr_program *program, bool reorders) {
    const nr_chain_runner *runner = program->backend ? program->backend->chains : NULL;
    if (!runner) return;
    search *s = nr_malloc(sizeof *s);
    bool *taken = nr_malloc((size_t)program->count * sizeof *taken);
    int64_t *uses_of = nr_malloc((size_t)(program->block_count + 1) * sizeof *uses_of);
    int64_t *list = nr_malloc((size_t)program->count * sizeof *list);
    order to = {.instrs = nr_malloc((size_t)program->count * sizeof *to.instrs)};
    if (s && taken && uses_of && list && to.instrs) { /* otherwise, for lack of memory, the calls run one by one */
        memset(taken, 0, (size_t)program->count * sizeof *taken);
        count_uses(program, uses_of);
        *s = (search){program, runner, .reorders = reorders, .taken = taken, .uses_of = uses_of};
        for (int64_t i = 0; i < program->count; i++) list[i] = i;
        order_instrs(s, list, program->split, &to); /* no call moves from one part to the other */
        order_instrs(s, list + program->split, program->count - program->split, &to);
        memcpy(program->instrs, to.instrs, (size_t)program->count * sizeof *to.instrs);
        for (int64_t i = 0; i < program->count; i++) {
            nr_chain *chain = program->instrs[i].chain;
            for (int64_t k = 0; chain && k < chain->count; k++) chain->links[k].call = &program->instrs[i + k].call;
        }
    }
    nr_free(s);
    nr_free(taken);
    nr_free(uses_of);
    nr_free(list);
    nr_free(to.instrs);
}

void nr_program_unfuse(nr_program *program) {
    for (int64_t i = 0; i < program->block_count; i++) program->blocks[i].in_buffer = false;
    for (int64_t i = 0; i < program->count;) {
        nr_instr *instr = &program->instrs[i], *home = &program->instrs[instr->number];
        nr_free(instr->chain);
        instr->chain = NULL;
        instr->follows = false;
        if (instr == home) {
            i++;
            continue;
        }
        const nr_instr other = *home;
        *home = *instr;
        *instr = other;
    }
}
