/* graph: runs of calls that are launched as one.
 *
 *   call       0      1     2     3     4      5     6       7
 *   matmul of an argument   relu  matmul  relu   loss  ...   optimizer
 *   launched   alone  [ one graph    ]        alone [ graph ] alone
 *
 * A call is launched alone if a run changes what it is given: an address of an argument, a number that is read anew, the
 * position of the random numbers, the options of an optimizer. So graphs never have to be changed. */
#include "../core/device.h"
#include "../core/gate.h"
#include "../core/memory.h"
#include "plans.h"
#include "program.h"

#define SHORTEST 3 /* calls: fewer are launched as fast alone */

/* Whether a call does the same in each run, with the same kernels, and never waits for the device. */
static bool is_fixed(const nr_program *program, const nr_step *step) {
    if (step->dead) return true;
    const nr_call *call = &step->call;
    if (call->backend != program->backend || call->load || !nr_is_launch_only(call)) return false;
    for (int64_t u = step->first_use; u < step->first_use + step->uses; u++)
        if (program->uses[u].block < 0) return false;
    return true;
}

/* Finds segments; gives their number, and notes them where there is room. */
static int64_t find_segments(const nr_program *program, nr_segment *segments) {
    int64_t count = 0, first = 0, calls = 0;
    for (int64_t i = 0; i <= program->count; i++) {
        if (i < program->count && is_fixed(program, &program->steps[i])) {
            calls += !program->steps[i].dead;
            continue;
        }
        if (calls >= SHORTEST) {
            if (segments) segments[count] = (nr_segment){first, i, NULL};
            count++;
        }
        first = i + 1;
        calls = 0;
    }
    return count;
}

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
    const int64_t count = find_segments(program, NULL);
    if (count == 0) return NORCH_OK;
    program->segments = nr_malloc((size_t)count * sizeof *program->segments);
    if (!program->segments) return NORCH_OK; /* the calls are run one by one */
    program->segment_count = find_segments(program, program->segments);
    nr_gate_wait(); /* no other thread is in the middle of a copy on the stream */
    for (int64_t i = 0; i < count; i++) NR_TRY(note(program, &program->segments[i]));
    return NORCH_OK;
}

void nr_program_free_graphs(nr_program *program) {
    for (int64_t i = 0; i < program->segment_count; i++)
        if (program->segments[i].graph)
            program->backend->device->graph(program->backend, NR_GRAPH_FREE, &program->segments[i].graph);
    nr_free(program->segments);
}
