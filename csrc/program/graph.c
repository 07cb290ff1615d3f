/* graph: runs of calls that are launched as one.
 *
 *   call       copy  0      1    2     3    4       5    6     7
 *              x, y  matmul relu matmul relu loss    ...       optimizer
 *   launched   each  [            one graph           ]        alone
 *
 * A call is launched alone if a run changes what it is given: a number that is read again, the position of the random numbers,
 * the options of an optimizer, an address of an argument. Small arguments are copied first, always to the same place, if that
 * makes fewer launches. So graphs never have to be changed. */
#include "../core/device.h"
#include "../core/gate.h"
#include "../core/memory.h"
#include "plans.h"
#include "program.h"

#define SHORTEST 3      /* calls: fewer are launched as fast alone */
#define SMALL (1 << 20) /* bytes of an argument that are copied in the time of a launch or two */

/* ---- segments ------------------------------------------------------------------------------------------- */

/* Whether a call reads a number again in each run: that of a tensor, as Python's are constants. */
static bool reads_number(const nr_program *program, const nr_step *step) {
    const nr_plan *plan = step->call.plan;
    for (int64_t u = step->first_use; u < step->first_use + step->uses && step->call.load; u++) {
        const nr_use *use = &program->uses[u];
        const nr_block *block = use->block < 0 ? NULL : &program->blocks[use->block];
        if (block && (block->kind == NR_CONSTANT || block->is_number)) continue;
        for (int o = 0; o < NR_MAX_OPERANDS; o++)
            if (use->at == (void **)(uintptr_t)&plan->number[o].at) return true;
    }
    return false;
}

/* Whether a call does the same in each run, with the same kernels, and never waits for the device. */
static bool is_fixed(const nr_program *program, const nr_step *step) {
    if (step->dead) return true;
    const nr_call *call = &step->call;
    if (call->backend != program->backend || reads_number(program, step) || !nr_is_launch_only(call)) return false;
    for (int64_t u = step->first_use; u < step->first_use + step->uses; u++)
        if (program->uses[u].block < 0 && !program->arguments[-1 - program->uses[u].block].copied) return false;
    return true;
}

/* Finds segments, and notes them where there is room; *launches: of a run, without copies of arguments. */
static int64_t find_segments(const nr_program *program, nr_segment *segments, int64_t *launches) {
    int64_t count = 0, first = 0, calls = 0;
    *launches = 0;
    for (int64_t i = 0; i <= program->count; i++) {
        const bool fixed = i < program->count && is_fixed(program, &program->steps[i]);
        if (fixed && i != program->split) {
            calls += !program->steps[i].dead;
            continue;
        }
        *launches += (calls >= SHORTEST ? 1 : calls) + (i < program->count && !fixed);
        if (calls >= SHORTEST) {
            if (segments) segments[count] = (nr_segment){first, i, NULL};
            count++;
        }
        first = fixed ? i : i + 1;
        calls = fixed && !program->steps[i].dead;
    }
    return count;
}

/* ---- arguments ------------------------------------------------------------------------------------------ */

/* Marks arguments that can be copied: small ones, whose memory no call writes to. Gives the number of copies in all parts. */
static int64_t mark_copied(nr_program *program) {
    int64_t copies = 0;
    for (int32_t a = 0; a < program->argument_count; a++) {
        nr_argument *one = &program->arguments[a];
        int32_t home = -1;
        for (int64_t i = 0; i < program->count; i++) {
            const nr_step *step = &program->steps[i];
            for (int64_t u = step->first_use; u < step->first_use + step->uses && !step->dead; u++) {
                if (program->uses[u].block != -1 - a) continue;
                one->read[i >= program->split] = true;
                home = program->uses[u].home;
            }
        }
        const int64_t bytes = one->numel * nr_size_of(one->dtype);
        one->copied = home >= 0 && !program->blocks[home].written && one->backend == program->backend && bytes > 0 &&
                      bytes <= SMALL;
        copies += one->copied ? one->read[0] + one->read[1] : 0;
    }
    return copies;
}

static void unmark_copied(nr_program *program) {
    for (int32_t a = 0; a < program->argument_count; a++) {
        nr_argument *one = &program->arguments[a];
        one->copied = false;
        if (one->copy) nr_storage_release(one->copy);
        one->copy = NULL;
    }
}

/* Lets calls read copies of small arguments, if that makes fewer launches. Where memory is short, they read them in place. */
static void place_copies(nr_program *program) {
    int64_t before, after;
    find_segments(program, NULL, &before);
    const int64_t copies = mark_copied(program);
    find_segments(program, NULL, &after);
    bool good = copies > 0 && after + copies < before;
    for (int32_t a = 0; a < program->argument_count && good; a++) {
        nr_argument *one = &program->arguments[a];
        if (!one->copied) continue;
        one->copy = nr_storage_make(program->backend, (size_t)(one->numel * nr_size_of(one->dtype)));
        good = one->copy != NULL;
    }
    if (!good) {
        unmark_copied(program);
        return;
    }
    for (int64_t i = 0; i < program->binding_count; i++) {
        const nr_use *use = &program->bindings[i];
        const nr_argument *one = &program->arguments[-1 - use->block];
        if (one->copied) *use->at = (char *)one->copy->data + use->offset;
    }
}

int32_t nr_program_copy_arguments(const nr_program *program) {
    for (int32_t a = 0; a < program->argument_count; a++) {
        const nr_argument *one = &program->arguments[a];
        const bool second = program->from == program->split && program->divided;
        if (!one->copied || !one->read[second]) continue;
        const int64_t size = nr_size_of(one->dtype);
        const nr_plan plan = {.ndim = 1,
                              .operands = 2,
                              .size = {one->numel},
                              .stride = {{size}, {size}},
                              .data = {one->copy->data, one->data},
                              .numel = one->numel};
        const nr_call call = {.family = NR_COPY,
                              .dtype = one->dtype,
                              .from_dtype = one->dtype,
                              .plan = &plan,
                              .backend = program->backend};
        NR_TRY(call.backend->run[NR_COPY](&call));
    }
    return NORCH_OK;
}

/* ---- graphs --------------------------------------------------------------------------------------------- */

static int32_t note(const nr_program *program, nr_segment *segment) {
    const nr_backend *backend = program->backend;
    NR_TRY(backend->device->graph(backend, NR_GRAPH_BEGIN, &segment->graph));
    int32_t status = NORCH_OK;
    for (int64_t i = segment->first; i < segment->end && status == NORCH_OK; i++)
        status = nr_program_run_step(&program->steps[i]);
    const int32_t ended = backend->device->graph(backend, NR_GRAPH_END, &segment->graph);
    return status == NORCH_OK ? ended : status;
}

int32_t nr_program_make_graphs(nr_program *program) {
    int64_t launches;
    place_copies(program);
    const int64_t count = find_segments(program, NULL, &launches);
    if (count == 0) return NORCH_OK;
    program->segments = nr_malloc((size_t)count * sizeof *program->segments);
    if (!program->segments) return NORCH_OK; /* the calls are run one by one */
    program->segment_count = find_segments(program, program->segments, &launches);
    nr_gate_wait(); /* no other thread is in the middle of a copy on the stream */
    for (int64_t i = 0; i < count; i++) NR_TRY(note(program, &program->segments[i]));
    return NORCH_OK;
}

void nr_program_free_graphs(nr_program *program) {
    for (int64_t i = 0; i < program->segment_count; i++)
        if (program->segments[i].graph)
            program->backend->device->graph(program->backend, NR_GRAPH_FREE, &program->segments[i].graph);
    nr_free(program->segments);
    program->segments = NULL;
    program->segment_count = 0;
}
