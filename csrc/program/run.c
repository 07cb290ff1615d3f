/* run: runs the calls of a program, one after the other, without Python. */
#include <stdatomic.h>

#include "../core/device.h"
#include "../core/dispatch.h"
#include "../core/platform.h"
#include "program.h"

void nr_program_bind(nr_program *program, int32_t argument, char *data) {
    nr_argument *bound = &program->arguments[argument];
    if (bound->data == data) return;
    bound->data = data;
    if (bound->copied) return;
    for (int64_t i = 0; i < program->binding_count; i++) {
        const nr_use *use = &program->bindings[i];
        if (use->block == -1 - argument) *use->at = data + use->offset;
    }
}

static int32_t fails_at(nr_program *program, int64_t at, int32_t status) {
    program->complete = at;
    return status;
}

static int32_t run_calls(void *of) {
    nr_program *program = of;
    const nr_instr *end = program->instrs + program->to;
    for (const nr_instr *instr = program->instrs + program->from; instr < end; instr++) {
        const int32_t status = nr_program_run_instr(instr);
        if (status != NORCH_OK) return fails_at(program, instr - program->instrs, status);
    }
    return NORCH_OK;
}

static int32_t feed(nr_program *program) {
    const int32_t status = program->feeds ? nr_program_feed(program) : NORCH_OK;
    return status == NORCH_OK ? status : fails_at(program, program->from, status);
}

static int32_t run_graphs(void *of) {
    nr_program *program = of;
    const nr_segment *segment = program->segments, *last = segment + program->segment_count;
    NR_TRY(feed(program));
    while (segment < last && segment->end <= program->from) segment++;
    for (int64_t i = program->from; i < program->to; i++) {
        const bool starts = segment < last && segment->first == i && segment->graph;
        void *graph = starts ? segment->graph : NULL;
        const int32_t status = starts ? program->backend->device->graph(program->backend, NR_GRAPH_RUN, &graph)
                                      : nr_program_run_instr(&program->instrs[i]);
        if (status != NORCH_OK) return fails_at(program, i, status);
        if (starts) i = segment->end - 1;
        while (segment < last && segment->end <= i + 1) segment++;
    }
    return NORCH_OK;
}

static double seconds_now(void) { return 1e-9 * (double)nr_nanoseconds(); }

static int32_t run_timed(void *of) {
    nr_program *program = of;
    NR_TRY(feed(program));
    double before = seconds_now();
    for (int64_t i = program->from; i < program->to; i++) {
        const int32_t status = nr_program_run_instr(&program->instrs[i]);
        if (status != NORCH_OK) return fails_at(program, i, status);
        const double now = seconds_now();
        program->seconds[i] = now - before;
        before = now;
    }
    return NORCH_OK;
}

void nr_program_move(nr_program *program, norch_storage *arena) {
    if (arena == program->arena) return;
    for (int64_t u = 0; u < program->use_count; u++) {
        const nr_use *use = &program->uses[u];
        const nr_block *block = use->block < 0 ? NULL : &program->blocks[use->block];
        if (block && nr_in_arena(block)) *use->at = (char *)arena->data + block->at + use->offset;
    }
    nr_program_free_graphs(program); /* they have the addresses of the old one */
    nr_storage_retain(arena);
    nr_storage_release(program->arena);
    program->arena = arena;
}

void nr_program_renew(nr_program *program, int32_t of, norch_storage *storage) {
    nr_block *block = &program->blocks[of];
    for (int64_t u = 0; u < program->use_count; u++)
        if (program->uses[u].block == of) *program->uses[u].at = (char *)storage->data + program->uses[u].offset;
    nr_program_free_graphs(program); /* they have the addresses of the old one */
    nr_storage_release(block->storage);
    block->storage = storage;
    block->data = storage->data;
}

int32_t nr_program_clear_arena(nr_program *program) {
    if (!program->arena || atomic_load(&program->arena->references) == 1) return NORCH_OK;
    norch_storage *arena = nr_storage_make(program->arena->backend, program->arena->bytes);
    if (!arena) return NORCH_ERROR_MEMORY;
    nr_program_move(program, arena);
    nr_storage_release(arena);
    return NORCH_OK;
}

void nr_program_put_result(nr_program *program, int32_t block, char *data) {
    for (int64_t i = program->blocks[block].first_fresh; i < program->fresh_count; i++) {
        const nr_use *use = &program->fresh[i];
        if (use->block != block) return;
        *use->at = data + use->offset;
    }
}

int32_t nr_program_run(nr_program *program, bool second) {
    program->from = program->complete = second ? program->split : 0;
    program->to = second || !program->divided ? program->count : program->split;
    if (program->from == program->to) return NORCH_OK;
    if (program->backend->device && ++program->runs == 2) NR_TRY(nr_program_make_graphs(program));
    program->complete = program->to;
    const bool device = program->segment_count || program->feeds;
    int32_t (*body)(void *program) = program->seconds ? run_timed : device ? run_graphs : run_calls;
    const double work = second             ? program->work - program->first_work
                        : program->divided ? program->first_work
                                           : program->work;
    void *thread = work < NR_LONG_WORK || program->backend->device ? NULL : nr_release_lock();
    const int32_t status = nr_acquire_lock(thread, body(program));
    nr_packed_note_run(program);
    return status;
}
