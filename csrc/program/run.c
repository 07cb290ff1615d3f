/* run: a program's calls, one after the other, without Python. */
#include <time.h>

#include "../core/device.h"
#include "../core/gate.h"
#include "program.h"

void nr_program_bind(nr_program *program, int32_t argument, char *data) {
    if (program->bound[argument] == data) return;
    program->bound[argument] = data;
    for (int64_t i = 0; i < program->binding_count; i++) {
        const nr_use *use = &program->bindings[i];
        if (use->block == -1 - argument) *use->at = data + use->offset;
    }
}

int32_t nr_program_renew(nr_program *program) {
    for (int64_t i = 0; program->renews && i < program->binding_count; i++) {
        const nr_use *use = &program->bindings[i];
        nr_block *block = use->block < 0 ? NULL : &program->blocks[use->block];
        if (!block) continue;
        if (!block->storage && !(block->storage = nr_storage_make(block->backend, block->bytes))) {
            nr_program_leave_results(program);
            return NORCH_ERROR_MEMORY;
        }
        *use->at = (char *)block->storage->data + use->offset;
    }
    return NORCH_OK;
}

void nr_program_leave_results(nr_program *program) {
    for (int64_t i = 0; program->renews && i < program->binding_count; i++) {
        nr_block *block = program->bindings[i].block < 0 ? NULL : &program->blocks[program->bindings[i].block];
        if (!block || !block->storage) continue;
        nr_storage_release(block->storage);
        block->storage = NULL;
    }
}

static int32_t run_all(void *of) {
    const nr_program *program = of;
    const nr_segment *segment = program->segments, *last = segment + program->segment_count;
    for (int64_t i = 0; i < program->count; i++) {
        if (segment < last && segment->first == i && segment->graph) {
            void *graph = segment->graph;
            NR_TRY(program->backend->device->graph(program->backend, NR_GRAPH_RUN, &graph));
            i = segment->end - 1;
        } else {
            NR_TRY(nr_program_run_step(&program->steps[i]));
        }
        while (segment < last && segment->end <= i + 1) segment++;
    }
    return NORCH_OK;
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int32_t run_timed(void *of) {
    const nr_program *program = of;
    double before = seconds_now();
    for (int64_t i = 0; i < program->count; i++) {
        NR_TRY(nr_program_run_step(&program->steps[i]));
        const double now = seconds_now();
        program->seconds[i] = now - before;
        before = now;
    }
    return NORCH_OK;
}

int32_t nr_program_run(nr_program *program) {
    if (program->count == 0) return NORCH_OK;
    if (program->backend->device && ++program->runs == 2) NR_TRY(nr_program_make_graphs(program));
    return nr_gate_program(program->backend, program->work, program->seconds ? run_timed : run_all, program);
}
