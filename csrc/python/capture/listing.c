/* listing: queries of a recording, of its calls and of its memory (norch/program/captured.py, listing.py). */
#include "../../program/plans.h"
#include "recording.h"

/* line_of(recording, i): what line() returned for the i-th call, or None. */
NR_BUILTIN(line_of) {
    const nr_recording *r = nr_counted("line_of", 2, n) ? nr_recording_of("line_of", args[0]) : NULL;
    if (!r) return NULL;
    const int64_t i = PyLong_AsLongLong(args[1]);
    void *line = r->program && i >= 0 && i < r->program->count ? r->program->instrs[i].line : NULL;
    line = line ? line : NR_NONE;
    return Py_NewRef(line);
}

static void put(void *tuple, int64_t i, int64_t value) { PyTuple_SetItem(tuple, i, PyLong_FromLongLong(value)); }

/* The number of the graph that an instruction belongs to, from 1 on; 0: none. */
static int64_t graph_of(const nr_program *program, int64_t instr) {
    for (int64_t i = 0; i < program->segment_count; i++) {
        const nr_segment *segment = &program->segments[i];
        if (segment->graph && instr >= segment->first && instr < segment->end) return i + 1;
    }
    return 0;
}

/* The position in the recording of the call with which the layer of an instruction begins; -1: it belongs to none. */
static int64_t layer_of(const nr_instr *instr) {
    if (instr->lowered) return instr->number;
    return instr->folded ? instr->root : -1;
}

/* program_calls(recording, i): (family, op, dtype, whether it is dead, its position in the recording, whether it
 * belongs to the chain of the call before it, its graph, its layer, whether a layer's result is stored, sizes...) of
 * the i-th call; None past the end. */
NR_BUILTIN(program_calls) {
    const nr_recording *r = nr_counted("program_calls", 2, n) ? nr_recording_of("program_calls", args[0]) : NULL;
    if (!r) return NULL;
    const int64_t i = PyLong_AsLongLong(args[1]);
    if (!r->program || i < 0 || i >= r->program->count) return Py_NewRef(NR_NONE);
    const nr_instr *instr = &r->program->instrs[i];
    int64_t sizes[NORCH_MAX_DIMS];
    const int32_t count = nr_plan_sizes(&instr->call, sizes);
    void *tuple = PyTuple_New(9 + count);
    if (!tuple) return NULL;
    put(tuple, 0, instr->call.family);
    put(tuple, 1, instr->call.op);
    put(tuple, 2, instr->call.dtype);
    put(tuple, 3, instr->dead);
    put(tuple, 4, instr->number);
    put(tuple, 5, instr->follows);
    put(tuple, 6, graph_of(r->program, i));
    put(tuple, 7, layer_of(instr));
    put(tuple, 8, instr->stored != NULL);
    for (int32_t d = 0; d < count; d++) put(tuple, 9 + d, sizes[d]);
    return tuple;
}

/* program_memory(recording): the bytes of temporary results, of results and copies of arguments, of memory that stays
 * after a run, of constants; and the peak of the first in the function itself. */
NR_BUILTIN(program_memory) {
    const nr_recording *r = nr_counted("program_memory", 1, n) ? nr_recording_of("program_memory", args[0]) : NULL;
    if (!r) return NULL;
    void *tuple = PyTuple_New(4);
    if (!tuple) return NULL;
    int64_t working = r->program && r->program->arena ? (int64_t)r->program->arena->bytes : 0, kept = 0, constant = 0;
    if (r->program && r->program->slots) working += (int64_t)r->program->slots->bytes;
    for (int32_t a = 0; r->program && a < r->program->argument_count; a++)
        if (r->program->arguments[a].copy) working += (int64_t)r->program->arguments[a].copy->bytes;
    for (int64_t b = 0; r->program && b < r->program->block_count; b++) {
        const nr_block *block = &r->program->blocks[b];
        if (block->kind == NR_KEPT) kept += (int64_t)block->bytes;
        if (block->kind == NR_CONSTANT) constant += (int64_t)block->bytes;
    }
    put(tuple, 0, working);
    put(tuple, 1, kept);
    put(tuple, 2, constant);
    put(tuple, 3, r->program ? r->program->peak_bytes : 0);
    return tuple;
}

/* program_uses(recording, i): block, whether it is written, ... of each address of the i-th call, as one flat tuple;
 * the block of argument a is -1 - a. */
NR_BUILTIN(program_uses) {
    nr_recording *r = nr_counted("program_uses", 2, n) ? nr_recording_of("program_uses", args[0]) : NULL;
    if (!r) return NULL;
    const int64_t i = PyLong_AsLongLong(args[1]);
    const bool there = r->program && i >= 0 && i < r->program->count;
    const nr_instr *instr = there ? &r->program->instrs[i] : NULL;
    void *tuple = PyTuple_New(instr ? 2 * instr->uses : 0);
    for (int64_t u = 0; tuple && instr && u < instr->uses; u++) {
        const nr_use *use = &r->program->uses[instr->first_use + u];
        PyTuple_SetItem(tuple, 2 * u, PyLong_FromLongLong(use->block));
        PyTuple_SetItem(tuple, 2 * u + 1, PyBool_FromLong(use->written));
    }
    return tuple;
}

/* refusal(recording): why the recording cannot be run, or None. */
NR_BUILTIN(refusal) {
    const nr_recording *r = nr_counted("refusal", 1, n) ? nr_recording_of("refusal", args[0]) : NULL;
    if (!r) return NULL;
    if (r->program && r->program->refusal[0]) return PyUnicode_FromString(r->program->refusal);
    return Py_NewRef(NR_NONE);
}

/* refused_line(recording): what line() returned where the refusal arose, or None. */
NR_BUILTIN(refused_line) {
    const nr_recording *r = nr_counted("refused_line", 1, n) ? nr_recording_of("refused_line", args[0]) : NULL;
    if (!r) return NULL;
    void *line = r->program && r->program->refused_line ? r->program->refused_line : NR_NONE;
    return Py_NewRef(line);
}

/* differs(a, b, loosely): the first call in which two recordings differ; -1: none. */
NR_BUILTIN(differs) {
    const nr_recording *a = nr_counted("differs", 3, n) ? nr_recording_of("differs", args[0]) : NULL;
    const nr_recording *b = a ? nr_recording_of("differs", args[1]) : NULL;
    if (!b) return NULL;
    const bool loosely = PyObject_IsTrue(args[2]) == 1;
    return PyLong_FromLongLong(a->program && b->program ? nr_program_differs(a->program, b->program, loosely) : 0);
}

/* is_running(recording) */
NR_BUILTIN(is_running) {
    const nr_recording *r = nr_counted("is_running", 1, n) ? nr_recording_of("is_running", args[0]) : NULL;
    return r ? PyBool_FromLong(r->program && r->program->running) : NULL;
}
