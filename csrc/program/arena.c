/* arena: dead call elimination, and the offsets of blocks in the arena.
 *
 *   call      0    1    2    3    4          offset
 *   a         [=========]                    0
 *   b              [==============]          |a|
 *   c                        [====]          0, as a is freed
 *
 * Blocks are placed by size, the largest first, each at the lowest offset that is free while it lives: the best of the
 * simple orders in Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference" (2020). */
#include <stdlib.h>
#include <string.h>

#include "../core/memory.h"
#include "plans.h"
#include "program.h"

#define ALIGNMENT 64

bool nr_in_arena(const nr_block *block) {
    return (block->kind == NR_TEMPORARY || (block->kind == NR_RESULT && !block->fresh)) && block->last >= 0 &&
           !block->in_buffer;
}

/* Marks the whole block as needed by later calls. */
static void mark_awaited(nr_block *block) {
    block->awaited = true;
    block->over_from = block->over_to = 0;
}

/* Records a range that a call overwrites. When the ranges cover the whole block, earlier stores to it are dead. If two
 * ranges do not touch, which is rare, only the larger is kept. */
static void note_overwritten(nr_block *block, int64_t from, int64_t bytes) {
    const int64_t to = from + bytes;
    if (from <= block->over_to && to >= block->over_from) {
        if (from < block->over_from) block->over_from = from;
        if (to > block->over_to) block->over_to = to;
    } else if (bytes > block->over_to - block->over_from) {
        block->over_from = from;
        block->over_to = to;
    }
    if (block->over_from == 0 && block->over_to == (int64_t)block->bytes) block->awaited = false;
}

/* Adds the memory that a call reads, if it is not dead, to the memory that earlier calls must provide. External
 * storages always count as needed: they may overlap, and after a failed run they show which calls ran. */
static void note_uses(nr_program *program, const nr_instr *instr) {
    const nr_use *uses = program->uses + instr->first_use;
    const int64_t dense = nr_plan_dense_bytes(&instr->call);
    for (int64_t u = 0; u < instr->uses; u++) {
        nr_block *block = uses[u].block < 0 ? NULL : &program->blocks[uses[u].block];
        if (dense && uses[u].written && block && block->kind != NR_EXTERNAL)
            note_overwritten(block, uses[u].offset, dense);
    }
    for (int64_t u = 0; u < instr->uses; u++)
        if (uses[u].block >= 0 && !(dense && uses[u].written)) mark_awaited(&program->blocks[uses[u].block]);
}

/* Between the two parts of a program any code may read what the first has written. */
static void await_results(nr_program *program) {
    for (int64_t i = 0; i < program->block_count; i++)
        if (program->blocks[i].kind != NR_TEMPORARY) mark_awaited(&program->blocks[i]);
}

void nr_program_find_dead(nr_program *program) {
    for (int64_t i = 0; i < program->block_count; i++) {
        nr_block *block = &program->blocks[i];
        block->over_from = block->over_to = 0;
        block->awaited = block->kind != NR_TEMPORARY;
    }
    for (int64_t s = program->count - 1; s >= 0; s--) {
        nr_instr *instr = &program->instrs[s];
        const nr_use *uses = program->uses + instr->first_use;
        bool needed = nr_has_effects(&instr->call);
        if (s + 1 == program->split) await_results(program);
        for (int64_t u = 0; u < instr->uses && !needed; u++)
            needed = uses[u].written && (uses[u].block < 0 || program->blocks[uses[u].block].awaited);
        instr->dead = !needed;
        if (needed) note_uses(program, instr);
    }
}

bool nr_program_carries(const nr_program *program) {
    bool *carried = nr_malloc((size_t)program->block_count + 1), results = false;
    if (!carried) return true;
    for (int64_t i = 0; i < program->block_count; i++)
        carried[i] = program->blocks[i].written && program->blocks[i].external;
    for (int64_t s = 0; s < program->count && !results; s++) {
        const nr_use *use = program->uses + program->instrs[s].first_use, *end = use + program->instrs[s].uses;
        bool reads = false;
        for (const nr_use *u = use; u < end; u++) reads |= !u->written && carried[u->home];
        for (const nr_use *u = use; u < end && reads; u++) {
            if (!u->written) continue;
            carried[u->home] = true;
            results |= program->blocks[u->home].storage && !program->blocks[u->home].external;
        }
    }
    nr_free(carried);
    return results;
}

/* Finds the first and the last call that uses each block. */
static void find_lives(nr_program *program) {
    for (int64_t i = 0; i < program->block_count; i++)
        program->blocks[i].last = program->blocks[i].kind == NR_RESULT ? program->count : -1;
    for (int64_t s = program->count - 1; s >= 0; s--) {
        const nr_instr *instr = &program->instrs[s];
        const nr_use *uses = program->uses + instr->first_use;
        for (int64_t u = 0; u < instr->uses && !instr->dead; u++) {
            if (uses[u].block < 0) continue;
            nr_block *block = &program->blocks[uses[u].block];
            if (block->last < 0) block->last = s;
            block->first = s;
        }
    }
}

/* Extends the lives of blocks that a chain uses to the whole chain, because its calls run together. */
static void extend_lives(nr_program *program) {
    for (int64_t i = 0; i < program->count; i++) {
        const int64_t end = program->instrs[i].chain ? i + program->instrs[i].chain->count : i;
        for (int64_t s = i; s < end; s++)
            for (int64_t u = 0; u < program->instrs[s].uses; u++) {
                const int32_t b = program->uses[program->instrs[s].first_use + u].block;
                nr_block *block = b < 0 ? NULL : &program->blocks[b];
                if (block && block->first > i) block->first = i;
                if (block && block->last < end - 1) block->last = end - 1;
            }
    }
}

static int by_size(const void *a, const void *b) {
    const nr_block *x = *(nr_block *const *)a, *y = *(nr_block *const *)b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x < y ? -1 : x > y;
}

static size_t end_of(const nr_block *block) {
    return block->at + (block->bytes + !block->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Finds the lowest offset for a block among those placed already, which are sorted by offset. */
static void fit(nr_block *block, nr_block **placed, int64_t count) {
    const size_t size = end_of(block) - block->at;
    block->at = 0;
    for (int64_t i = 0; i < count; i++) {
        const nr_block *other = placed[i];
        if (other->first > block->last || other->last < block->first) continue;
        if (block->at + size <= other->at) break;
        if (end_of(other) > block->at) block->at = end_of(other);
    }
}

/* The most bytes of temporary blocks and results at any time, if each lives as long as its tensors in the function. */
static int64_t peak_of(const nr_program *program) {
    const size_t bytes = (size_t)(program->count + 1) * sizeof(int64_t);
    int64_t *change = nr_malloc(bytes), most = 0, now = 0;
    if (!change) return 0;
    memset(change, 0, bytes);
    for (int64_t i = 0; i < program->block_count; i++) {
        nr_block block = program->blocks[i];
        if ((block.kind != NR_TEMPORARY && block.kind != NR_RESULT) || block.is_image) continue;
        block.at = 0;
        change[block.born] += (int64_t)end_of(&block);
        change[block.died] -= (int64_t)end_of(&block);
    }
    for (int64_t i = 0; i <= program->count; i++) {
        now += change[i];
        if (now > most) most = now;
    }
    nr_free(change);
    return most;
}

size_t nr_program_place_blocks(nr_program *program) {
    find_lives(program);
    extend_lives(program);
    program->peak_bytes = peak_of(program);
    size_t bytes = 0, all = 0;
    int64_t count = 0, placed = 0;
    for (int64_t i = 0; i < program->block_count; i++) count += nr_in_arena(&program->blocks[i]);
    nr_block **sorted = nr_malloc((size_t)(2 * count) * sizeof *sorted), **by_offset = sorted + count;
    for (int64_t i = 0, at = 0; i < program->block_count; i++) {
        nr_block *block = &program->blocks[i];
        if (!nr_in_arena(block)) continue;
        block->at = all; /* one after another, if there is no memory to sort */
        all = end_of(block);
        if (sorted) sorted[at++] = block;
    }
    if (!sorted) return all;
    qsort(sorted, (size_t)count, sizeof *sorted, by_size);
    for (int64_t i = 0; i < count; i++) {
        nr_block *block = sorted[i];
        fit(block, by_offset, placed);
        int64_t to = placed++;
        for (; to > 0 && by_offset[to - 1]->at > block->at; to--) by_offset[to] = by_offset[to - 1];
        by_offset[to] = block;
        if (end_of(block) > bytes) bytes = end_of(block);
    }
    nr_free(sorted);
    return bytes;
}
