/* graph: sequences of calls that a device launches as one graph.
 *
 *   before    x, y, learning rate, step count, random numbers  -> where the graph reads them, in one launch (feed)
 *   call      0      1    2      3    4    ...  optimizer
 *             matmul relu matmul relu loss
 *   launched  [            one graph            ]
 *
 * A call whose kernel arguments change from run to run (a scalar that is read again, the address of an argument) is
 * launched alone, so that graphs never have to be updated. Arguments that kernels can read from fixed memory of the
 * device do not count: options of an optimizer and the position of the random numbers have slots, and small tensors are
 * copied, if that makes fewer launches. */
#include <string.h>

#include "../core/device.h"
#include "../core/dispatch.h"
#include "../core/memory.h"
#include "../families/optim.h"
#define NR_SHARED static inline __attribute__((unused))
#include "../families/random.h"
#include "plans.h"
#include "program.h"

#define SHORTEST 3      /* fewer calls are as fast without a graph */
#define SMALL (1 << 20) /* bytes of an argument that take the time of a launch or two to copy */

/* ---- segments ------------------------------------------------------------------------------------------- */

/* Whether a call reads a scalar again in each run: one in a tensor, as Python numbers are constants. */
static bool reads_number(const nr_program *program, const nr_instr *instr) {
    const nr_plan *plan = instr->call.plan;
    for (int64_t u = instr->first_use; u < instr->first_use + instr->uses && instr->call.load; u++) {
        const nr_use *use = &program->uses[u];
        const nr_block *block = use->block < 0 ? NULL : &program->blocks[use->block];
        if (block && (block->kind == NR_CONSTANT || block->is_number)) continue;
        for (int o = 0; o < NR_MAX_OPERANDS; o++)
            if (use->at == (void **)(uintptr_t)&plan->number[o].at) return true;
    }
    return false;
}

/* The field for the address of the slot in the plan of a call; NULL: it can have no slot. */
static const void **slot_of(const nr_instr *instr) {
    void *plan = (void *)(uintptr_t)instr->call.plan;
    if (instr->call.family == NR_RANDOM) return &((nr_random_plan *)plan)->slot;
    return instr->call.family == NR_OPTIM ? &((nr_optim_plan *)plan)->slot : NULL;
}

/* Whether a call has the same launches in each run, and never waits for the device. */
static bool is_fixed(const nr_program *program, const nr_instr *instr) {
    if (instr->dead) return true;
    const nr_call *call = &instr->call;
    if (call->backend != program->backend || reads_number(program, instr)) return false;
    if (!nr_is_launch_only(call) && !(slot_of(instr) && *slot_of(instr))) return false;
    for (int64_t u = instr->first_use; u < instr->first_use + instr->uses; u++)
        if (program->uses[u].block < 0 && !program->arguments[-1 - program->uses[u].block].copied) return false;
    return true;
}

/* Counts the segments, and writes them to `segments` unless that is NULL; *launches: of a run, without the feed. */
static int64_t find_segments(const nr_program *program, nr_segment *segments, int64_t *launches) {
    int64_t count = 0, first = 0, calls = 0;
    *launches = 0;
    for (int64_t i = 0, end; i <= program->count; i = end) {
        end = i < program->count && program->instrs[i].chain ? i + program->instrs[i].chain->count : i + 1;
        bool fixed = i < program->count;
        for (int64_t k = i; k < end && fixed; k++) fixed = is_fixed(program, &program->instrs[k]);
        if (fixed && i != program->split) {
            calls += !program->instrs[i].dead;
            continue;
        }
        *launches += (calls >= SHORTEST ? 1 : calls) + (i < program->count && !fixed);
        if (calls >= SHORTEST) {
            if (segments) segments[count] = (nr_segment){first, i, NULL};
            count++;
        }
        first = fixed ? i : end;
        calls = fixed && !program->instrs[i].dead;
    }
    return count;
}

/* ---- copies before a run ----------------------------------------------------------------------------------- */

/* Marks the arguments that can be copied: small ones that no call writes, with the alignment of a copy
 * (NR_ALIGNMENT). */
static void mark_copied(nr_program *program, bool wanted) {
    for (int32_t a = 0; a < program->argument_count; a++) {
        nr_argument *one = &program->arguments[a];
        int32_t home = -1;
        one->copied = false;
        for (int64_t i = 0; i < program->count && wanted; i++) {
            const nr_instr *instr = &program->instrs[i];
            for (int64_t u = instr->first_use; u < instr->first_use + instr->uses && !instr->dead; u++) {
                if (program->uses[u].block != -1 - a) continue;
                one->read[i >= program->split] = true;
                home = program->uses[u].home;
            }
        }
        const int64_t bytes = one->numel * nr_size_of(one->dtype);
        one->copied = home >= 0 && !program->blocks[home].written && one->backend == program->backend && bytes > 0 &&
                      bytes <= SMALL && (uintptr_t)one->data % NR_ALIGNMENT == 0;
    }
}

/* Gives slots to the calls that can have them, as offsets into program->slots from NR_ALIGNMENT on (an
 * offset of 0 means none), and returns the end of the last. Calls take random numbers in their order, so
 * that all of them must be on this device. */
static int64_t mark_slots(nr_program *program, bool wanted) {
    int64_t end = NR_ALIGNMENT;
    for (int64_t i = 0; i < program->count; i++)
        wanted &= program->instrs[i].call.family != NR_RANDOM || program->instrs[i].call.backend == program->backend;
    for (int64_t i = 0; i < program->count; i++) {
        const nr_instr *instr = &program->instrs[i];
        const void **slot = slot_of(instr);
        if (!slot) continue;
        *slot = NULL;
        if (!wanted || instr->dead || instr->call.backend != program->backend) continue;
        *slot = (const void *)(uintptr_t)end;
        end += (program->backend->device->slot(&instr->call, NULL) + NR_ALIGNMENT - 1) / NR_ALIGNMENT * NR_ALIGNMENT;
    }
    return end;
}

/* Allocates copies and slots, and writes their addresses into the plans. */
static int32_t place(nr_program *program, int64_t slots) {
    program->feeds = nr_malloc((size_t)(program->argument_count + 1) * sizeof *program->feeds);
    program->slot_bytes = nr_malloc((size_t)slots);
    if (!program->feeds || !program->slot_bytes)
        return nr_fail(NORCH_ERROR_MEMORY, "capture: out of memory for what graphs read");
    memset(program->slot_bytes, 0, (size_t)slots); /* the gaps between slots are copied with them */
    for (int32_t a = 0; a < program->argument_count; a++) {
        nr_argument *one = &program->arguments[a];
        if (!one->copied) continue;
        one->copy = nr_storage_make(program->backend, (size_t)(one->numel * nr_size_of(one->dtype)));
        if (!one->copy) return NORCH_ERROR_MEMORY;
    }
    if (slots > NR_ALIGNMENT && !(program->slots = nr_storage_make(program->backend, (size_t)slots)))
        return NORCH_ERROR_MEMORY;
    for (int64_t i = 0; i < program->binding_count; i++) {
        const nr_use *use = &program->bindings[i];
        const nr_argument *one = &program->arguments[-1 - use->block];
        if (one->copied) *use->at = (char *)one->copy->data + use->offset;
    }
    for (int64_t i = 0; i < program->count && program->slots; i++) {
        const void **slot = slot_of(&program->instrs[i]);
        if (slot && *slot) *slot = (char *)program->slots->data + (uintptr_t)*slot;
    }
    return NORCH_OK;
}

/* Chooses between slots, copies of small arguments, both and neither by the number of launches. On failure later runs
 * use neither. */
static int32_t place_feeds(nr_program *program) {
    int64_t least, launches;
    int best = 0;
    find_segments(program, NULL, &least);
    for (int how = 1; how < 4; how++) {
        mark_copied(program, how & 1);
        mark_slots(program, how & 2);
        find_segments(program, NULL, &launches);
        if (launches + 1 >= least) continue;
        least = launches + 1;
        best = how;
    }
    mark_copied(program, best & 1);
    const int64_t slots = mark_slots(program, best & 2);
    const int32_t status = best ? place(program, slots) : NORCH_OK;
    if (best && status == NORCH_OK) return NORCH_OK;
    mark_copied(program, false);
    mark_slots(program, false);
    for (int32_t a = 0; a < program->argument_count; a++) {
        if (program->arguments[a].copy) nr_storage_release(program->arguments[a].copy);
        program->arguments[a].copy = NULL;
    }
    nr_free(program->feeds);
    nr_free(program->slot_bytes);
    program->feeds = NULL;
    program->slot_bytes = NULL;
    return status;
}

int32_t nr_program_feed(const nr_program *program) {
    const nr_device *device = program->backend->device;
    const bool second = program->divided && program->from == program->split;
    int64_t count = 0;
    for (int32_t a = 0; a < program->argument_count; a++) {
        const nr_argument *one = &program->arguments[a];
        if (!one->copied || !one->read[second]) continue;
        program->feeds[count++] = (nr_feed){one->copy->data, one->data, one->numel * nr_size_of(one->dtype), false};
    }
    int64_t first = 0, end = 0; /* of the slots of this part, which are contiguous */
    for (int64_t i = program->from; i < program->to && program->slots; i++) {
        const nr_call *call = &program->instrs[i].call;
        const void **slot = slot_of(&program->instrs[i]);
        if (!slot || !*slot) continue;
        const int64_t at = (const char *)*slot - (const char *)program->slots->data;
        if (call->family == NR_RANDOM) nr_program_draw(call);
        if (!first) first = at;
        end = at + device->slot(call, program->slot_bytes + at);
    }
    if (end)
        program->feeds[count++] =
            (nr_feed){(char *)program->slots->data + first, program->slot_bytes + first, end - first, true};
    return count ? device->feed(program->backend, count, program->feeds) : NORCH_OK;
}
/* ---- graphs --------------------------------------------------------------------------------------------- */

static int32_t capture_segment(const nr_program *program, nr_segment *segment) {
    const nr_backend *backend = program->backend;
    NR_TRY(backend->device->graph(backend, NR_GRAPH_BEGIN, &segment->graph));
    int32_t status = NORCH_OK;
    for (int64_t i = segment->first; i < segment->end && status == NORCH_OK; i++)
        status = nr_program_run_instr(&program->instrs[i]);
    const int32_t ended = backend->device->graph(backend, NR_GRAPH_END, &segment->graph);
    if (status == NORCH_OK) return ended;
    if (segment->graph) backend->device->graph(backend, NR_GRAPH_FREE, &segment->graph); /* it lacks calls */
    return status;
}

int32_t nr_program_make_graphs(nr_program *program) {
    int64_t launches;
    NR_TRY(place_feeds(program));
    const int64_t count = find_segments(program, NULL, &launches);
    if (count == 0) return NORCH_OK;
    program->segments = nr_malloc((size_t)count * sizeof *program->segments);
    if (!program->segments) return NORCH_OK; /* the calls are run one by one */
    program->segment_count = find_segments(program, program->segments, &launches);
    nr_wait_for_calls(); /* no other thread is in the middle of a copy on the stream */
    for (int64_t i = 0; i < count; i++) NR_TRY(capture_segment(program, &program->segments[i]));
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
