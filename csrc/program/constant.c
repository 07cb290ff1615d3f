/* constant: constant folding. A call of the CPU whose inputs are Python's numbers, as in the first steps of backward(),
 * runs once, at the end of the recording, if its result is small or a copy no larger than what it copies. */
#include "../core/error.h"
#include "../core/memory.h"
#include "plans.h"
#include "program.h"

#define MOST_BYTES 64 /* of a result, which is allocated separately */

/* The constant memory that a use reads; NULL: it is not constant. */
static char *constant_of(const nr_program *program, const nr_use *use) {
    const nr_block *block = use->block < 0 ? NULL : &program->blocks[use->block];
    if (!block || use->written) return NULL;
    if (block->kind == NR_CONSTANT) return block->constant;
    return block->kind == NR_EXTERNAL && block->is_number && !block->written ? block->data : NULL;
}

/* Makes a constant scalar part of the plan. It was converted when the call was recorded. */
static void keep_numbers(const nr_program *program, nr_instr *instr) {
    const nr_plan *plan = instr->call.plan;
    for (int64_t u = instr->first_use; u < instr->first_use + instr->uses; u++)
        for (int o = 0; o < NR_MAX_OPERANDS; o++)
            if (program->uses[u].at == (void **)(uintptr_t)&plan->number[o].at &&
                !constant_of(program, &program->uses[u]))
                return;
    instr->call.load = NULL;
}

/* The block that a call writes, if nothing else writes it, and the call writes all of it; else NULL. */
static nr_block *only_result(nr_program *program, const nr_instr *instr) {
    int32_t written = -1;
    size_t most = MOST_BYTES;
    for (int64_t u = instr->first_use; u < instr->first_use + instr->uses; u++) {
        const nr_use *use = &program->uses[u];
        if (use->written) written = use->block;
        if (instr->call.family == NR_COPY && constant_of(program, use) && program->blocks[use->block].bytes > most)
            most = program->blocks[use->block].bytes;
    }
    nr_block *block = written < 0 ? NULL : &program->blocks[written];
    if (!block || block->kind != NR_TEMPORARY || block->bytes > most) return NULL;
    if (nr_plan_dense_bytes(&instr->call) != (int64_t)block->bytes) return NULL;
    int64_t writers = 0;
    for (int64_t u = 0; u < program->use_count; u++)
        writers += program->uses[u].written && program->uses[u].block == written;
    return writers == 1 ? block : NULL;
}

static int32_t fold(nr_program *program, nr_instr *instr) {
    const nr_use *uses = program->uses + instr->first_use;
    nr_block *block = nr_has_effects(&instr->call) ? NULL : only_result(program, instr);
    for (int64_t u = 0; u < instr->uses && block; u++)
        if (!uses[u].written && !constant_of(program, &uses[u])) return NORCH_OK;
    char *result = block ? nr_malloc(block->bytes) : NULL;
    if (!result) return NORCH_OK;
    for (int64_t u = 0; u < instr->uses; u++)
        *uses[u].at = (uses[u].written ? result : constant_of(program, &uses[u])) + uses[u].offset;
    block->kind = NR_CONSTANT;
    block->constant = result;
    nr_program_choose_run(instr);
    instr->dead = true;
    return nr_program_run_instr(instr);
}

int32_t nr_program_fold_constants(nr_program *program) {
    for (int64_t s = 0; s < program->count; s++) {
        nr_instr *instr = &program->instrs[s];
        if (instr->dead || (instr->call.family != NR_POINTWISE && instr->call.family != NR_COPY)) continue;
        if (instr->call.load) keep_numbers(program, instr);
        if (!instr->call.backend->device) NR_TRY(fold(program, instr));
    }
    return NORCH_OK;
}
