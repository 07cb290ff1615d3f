/* recording: see recording.h. This file begins and ends a recording; replay.c runs it. */
#include "recording.h"

#include <stddef.h>
#include <stdlib.h>

#include "../../core/memory.h"
#include "../node.h"

void *nr_recording_type, *nr_leaf_class;

static void drop(void *field) {
    void **at = field, *object = *at;
    *at = NULL;
    if (object) Py_DecRef(object);
}

/* ---- the object ---------------------------------------------------------------------------------------- */

#define EACH_GUARDED(of, DO)                                                             \
    for (int64_t i_ = 0; i_ < (of).container_count; i_++) DO((of).containers[i_].object) \
    for (int64_t i_ = 0; i_ < (of).guard_count; i_++) {                                  \
        DO((of).guards[i_].key) DO((of).guards[i_].value)                                \
    }
#define EACH_LOGGED(log, DO)                                                     \
    for (int64_t i_ = 0; i_ < (log)->seen_count; i_++) {                         \
        DO((log)->seen[i_].x) DO((log)->seen[i_].node)                           \
    }                                                                            \
    for (int64_t i_ = 0; i_ < (log)->before_count; i_++) DO((log)->before[i_].x) \
    DO((log)->line)
#define EACH_OBJECT(r, DO)                                                                                 \
    EACH_LOGGED(&(r)->log, DO)                                                                             \
    for (int64_t i_ = 0; i_ < (r)->used_count; i_++) {                                                     \
        DO((r)->used[i_].x) DO((r)->used[i_].node) DO((r)->used[i_].hooks) DO((r)->used[i_].grad_after)    \
    }                                                                                                      \
    for (int64_t i_ = 0; i_ < (r)->conditions.leaf_count; i_++) {                                          \
        DO((r)->conditions.leaves[i_].object) DO((r)->conditions.leaves[i_].type)                          \
    }                                                                                                      \
    EACH_GUARDED((r)->conditions.guards, DO)                                                               \
    EACH_GUARDED((r)->later, DO)                                                                           \
    EACH_GUARDED((r)->watches, DO)                                                                         \
    for (int64_t i_ = 0; i_ < (r)->result_count; i_++) {                                                   \
        DO((r)->results[i_].object)                                                                        \
        DO((r)->results[i_].view) for (int k_ = 0; k_ < NR_SPARES; k_++) DO((r)->results[i_].spares[k_].x) \
    }                                                                                                      \
    for (int64_t i_ = 0; i_ < (r)->result_count; i_++) DO((r)->results[i_].version_owner)                  \
    for (int64_t i_ = 0; i_ < (r)->keep_count; i_++) DO((r)->keeps[i_].x)                                  \
    DO((r)->counter) DO((r)->before_run) DO((r)->after_run) DO((r)->restore) DO((r)->stored) DO((r)->kept)

int nr_recording_traverse(nr_recording *r, int (*visit)(void *object, void *argument), void *argument) {
    int status = visit(r->type, argument);
#define VISIT(object) \
    if (!status && (object)) status = visit(object, argument);
    EACH_OBJECT(r, VISIT)
#undef VISIT
    return status;
}

#define DROP(object) drop(&(object));

static void forget_guards(nr_guards *guards) {
    nr_free(guards->versions);
    nr_free(guards->containers);
    nr_free(guards->guards);
    *guards = (nr_guards){0};
}

static void clear_log(nr_log *log) {
    EACH_LOGGED(log, DROP)
    nr_free(log->seen);
    nr_free(log->before);
    nr_free(log->modes);
    *log = (nr_log){0};
}

static int clear(nr_recording *r) {
    if (!r->ready && nr_observer_here() == (nr_observer *)r->program) nr_observe(NULL);
    r->ready = false;
    nr_recordings_changes++;
    EACH_OBJECT(r, DROP)
    clear_log(&r->log);
    forget_guards(&r->conditions.guards);
    forget_guards(&r->later);
    forget_guards(&r->watches);
    r->conditions.leaf_count = r->used_count = r->result_count = r->keep_count = 0;
    return 0;
}

static void dealloc(nr_recording *r) {
    void *type = r->type;
    PyObject_GC_UnTrack(r);
    nr_recording_unlist(r);
    clear(r);
    if (r->program) nr_program_free(r->program);
    nr_free(r->conditions.leaves);
    nr_free(r->conditions.held);
    nr_free(r->conditions.ids);
    nr_free(r->used);
    nr_free(r->headers);
    nr_free(r->keeps);
    nr_free(r->results);
    nr_free(r->args);
    PyObject_GC_Del(r);
    Py_DecRef(type);
}

#define FUNCTION(slot, f) {slot, (void *)(uintptr_t)(f)}

static bool make_type(void) {
    if (nr_recording_type) return true;
    nr_slot slots[] = {FUNCTION(NR_SLOT_DEALLOC, dealloc),
                       FUNCTION(NR_SLOT_TRAVERSE, nr_recording_traverse),
                       FUNCTION(NR_SLOT_CLEAR, clear),
                       {0, NULL}};
    nr_spec spec = {"norch.Recording", sizeof(nr_recording), 0,
                    NR_TYPE_DEFAULT | NR_TYPE_COLLECTED | NR_TYPE_DISALLOW_INSTANTIATION, slots};
    nr_recording_type = PyType_FromSpec(&spec);
    return nr_recording_type != NULL;
}

/* ---- while it records ------------------------------------------------------------------------------------ */

/* A call that fails is noted while its exception is set, which is set again. */
static void *ask_line(void *owner) {
    void *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    void *line = PyObject_CallObject(((nr_recording *)owner)->log.line, NULL);
    if (!line) PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    return line;
}

int32_t nr_recording_keep(nr_recording *r, norch_tensor *x) {
    if (!nr_grow(&r->keeps, r->keep_count, &r->keep_capacity, sizeof *r->keeps))
        return nr_fail(NORCH_ERROR_MEMORY, "capture: out of memory");
    const int32_t block = nr_program_find(r->program, x->storage);
    r->keeps[r->keep_count++] = (nr_kept){norch_retain(x), *x, block >= 0 && r->program->blocks[block].written};
    return NORCH_OK;
}

/* record_begin(strict, line, counter, earlier or None, joins): begins to record the calls of this thread. */
NR_BUILTIN(record_begin) {
    if (n != 5 || nr_observer_here()) {
        PyErr_SetString(PyExc_TypeError, "record_begin: takes five arguments, where nothing records");
        return NULL;
    }
    if (!make_type()) return NULL;
    nr_program *program = nr_program_make(PyObject_IsTrue(args[0]) == 1);
    if (!program) {
        nr_fail(NORCH_ERROR_MEMORY, "capture: out of memory");
        return NULL;
    }
    nr_recording *r = PyType_GenericAlloc(nr_recording_type, 0);
    if (!r) {
        nr_program_free(program);
        return NULL;
    }
    r->program = program;
    nr_recording_list(r);
    r->log.joins = PyObject_IsTrue(args[4]) == 1;
    r->log.line = Py_XNewRef(args[1]);
    r->counter = Py_NewRef(args[2]);
    if (args[3] != NR_NONE) {
        const nr_recording *earlier = nr_recording_of("record_begin", args[3]);
        if (!earlier || nr_note_gradients(&r->log, earlier) != NORCH_OK) {
            Py_DecRef(r);
            return NULL;
        }
    }
    program->owner = r;
    program->line = ask_line;
    program->forget_line = Py_DecRef;
    program->observer.passed = nr_recording_see;
    nr_observe(&program->observer);
    return r;
}

/* record_cancel(recording): ends a recording, which then cannot be run. */
NR_BUILTIN(record_cancel) {
    nr_recording *r = nr_counted("record_cancel", 1, n) ? nr_recording_of("record_cancel", args[0]) : NULL;
    if (!r) return NULL;
    if (nr_observer_here() == &r->program->observer) nr_observe(NULL);
    nr_program *program = r->program;
    if (!r->ready) {
        clear(r);
        r->program = NULL;
        nr_program_free(program);
    }
    return Py_NewRef(NR_NONE);
}

/* ---- the end --------------------------------------------------------------------------------------------- */

/* Forgets tensors that only the recording still holds: views and aliases that the function made. From the last back, as
 * a view holds its base, and again as long as that frees others. */
static void forget_temporary(nr_log *log) {
    int64_t before = -1;
    while (before != log->seen_count) {
        before = log->seen_count;
        for (int64_t i = before - 1; i >= 0; i--)
            if (nr_is_ours_alone(log->seen[i].x)) drop(&log->seen[i].node), drop(&log->seen[i].x);
        int64_t kept = 0;
        for (int64_t i = 0; i < before; i++)
            if (log->seen[i].x) log->seen[kept++] = log->seen[i];
        log->seen_count = kept;
    }
}

static int32_t refuse_end(nr_recording *r, const char *why) {
    nr_program_refuse(r->program, why);
    return NORCH_ERROR_CAPTURE;
}

/* Checks that every external storage in use belongs to a tensor that is still alive, so that a run can check it. */
static int32_t check_reached(nr_recording *r) {
    const nr_conditions *c = &r->conditions;
    for (int64_t b = 0; b < r->program->block_count; b++) {
        const nr_block *block = &r->program->blocks[b];
        if (!block->external) continue;
        bool reached = block->last < 0; /* no call uses it */
        for (int64_t i = 0; i < r->log.seen_count && !reached; i++)
            reached = r->log.seen[i].x->storage == block->storage;
        for (int64_t i = 0; i < c->leaf_count && !reached; i++)
            reached = c->leaves[i].is_tensor && c->leaves[i].tensor.storage == block->storage;
        if (reached) continue;
        if (!r->program->refused_line) r->program->refused_line = Py_XNewRef(r->program->instrs[block->last].line);
        if (nr_was_gradient(&r->log, block->storage)) { /* which may be so in this call only: it does not fail */
            nr_program_spoil(r->program, "a gradient from before the call is dropped after it has been used");
            return NORCH_ERROR_CAPTURE;
        }
        return refuse_end(r, "a tensor that the function uses is gone after it, as where self.state = new replaces "
                             "it");
    }
    return NORCH_OK;
}

/* Whether the backward part uses a storage. */
static bool used_later(const nr_program *program, const norch_storage *storage) {
    const int32_t block = nr_program_find(program, storage);
    return program->divided && block >= 0 && program->blocks[block].last >= program->split;
}

/* The tensors that runs use, out of all that the recording saw. */
static int32_t list_used(nr_recording *r) {
    nr_log *log = &r->log;
    r->used = nr_malloc((size_t)log->seen_count * sizeof *r->used);
    r->headers = nr_malloc((size_t)log->seen_count * 2 * sizeof *r->headers);
    if (!r->used || !r->headers) return nr_fail(NORCH_ERROR_MEMORY, "capture: out of memory");
    for (; r->used_count < log->seen_count; r->used_count++) {
        const nr_seen *seen = &log->seen[r->used_count];
        norch_tensor *x = seen->x;
        const int32_t block = nr_program_find(r->program, x->storage);
        static void *none;
        const bool watched = !r->program->divided && nr_is_graph_leaf(x);
        void **hooks_at = watched ? &((nr_holder *)x->node)->held[NR_NODE_HOOKS] : &none;
        nr_used *used = &r->used[r->used_count];
        r->headers[2 * r->used_count] = seen->header;
        r->headers[2 * r->used_count + 1] = seen->grad_header;
        *used = (nr_used){.x = norch_retain(x),
                          .storage = x->storage,
                          .data = seen->header.data,
                          .node = Py_XNewRef(r->program->divided ? seen->node : x->node), /* as the call found it */
                          .hooks_at = hooks_at,
                          .hooks = Py_XNewRef(*hooks_at),
                          .grad_storage = seen->grad_storage,
                          .grad_data = seen->grad_data,
                          .written = block >= 0 && r->program->blocks[block].written,
                          .later = used_later(r->program, x->storage),
                          .grad_after = Py_XNewRef(nr_grad_of(x)),
                          .result = -1};
        if (!r->program->divided) nr_find_grad_rule(log, r->program, seen, used); /* else backward() sets .grad */
        if (r->conditions.reads & NR_READS_GRAD && !used->sets_grad)
            used->rule = seen->grad_storage ? NR_GRAD_SAME : NR_GRAD_NONE;
    }
    return NORCH_OK;
}

static bool is_in(void *tuple, const void *object) {
    for (int64_t i = 0; i < PyTuple_Size(tuple); i++)
        if (PyTuple_GetItem(tuple, i) == object) return true;
    return false;
}

/* Whether the function itself sets the .grad of an argument, or uses its memory. */
static bool uses_grad(const nr_recording *r, const norch_tensor *x) {
    const norch_tensor *grad = nr_grad_of(x);
    const int32_t block = grad ? nr_program_find(r->program, grad->storage) : -1;
    if (block >= 0 && r->program->blocks[block].last >= 0) return true;
    for (int64_t s = 0; s < r->log.seen_count; s++)
        if (r->log.seen[s].x == x)
            return r->log.seen[s].asked || r->log.seen[s].set ||
                   r->log.seen[s].grad_storage != (grad ? grad->storage : NULL);
    return false;
}

/* Whether the function may use the memory of an argument, or compare its identity, otherwise than as an argument. */
static bool is_reached(const nr_recording *r, int64_t i, void *leaves, void *results) {
    norch_tensor *argument = PyTuple_GetItem(leaves, i);
    if (nr_guards_name(&r->conditions.guards, argument) || nr_guards_name(&r->later, argument)) return true;
    if (nr_is_id(&r->conditions, argument)) return true;
    for (int64_t s = 0; s < r->log.seen_count; s++) {
        const nr_seen *seen = &r->log.seen[s];
        norch_tensor *x = seen->x;
        const norch_tensor *grad = nr_grad_of(x);
        if (seen->grad_storage == argument->storage || (grad && grad->storage == argument->storage)) return true;
        if (x->storage == argument->storage && (seen->reached || (!is_in(leaves, x) && !is_in(results, x))))
            return true;
    }
    return false;
}

/* Reads the arguments, and finds those that each run binds. The others are fixed: a tensor that requires a gradient,
 * unless autograd records the results, one whose .grad the function uses, and one that it reaches otherwise too, as a
 * variable, a parameter, a gradient, or a view of these. */
static int32_t read_leaves(nr_recording *r, void *leaves, void *results) {
    const int64_t count = PyTuple_Size(leaves);
    nr_conditions *c = &r->conditions;
    c->leaves = nr_malloc((size_t)count * sizeof *c->leaves);
    r->args = nr_malloc((size_t)count * sizeof *r->args);
    if (!c->leaves || !r->args) return nr_fail(NORCH_ERROR_MEMORY, "capture: out of memory");
    for (int64_t i = 0; i < count; i++) {
        void *object = PyTuple_GetItem(leaves, i);
        nr_leaf *leaf = &c->leaves[c->leaf_count++];
        *leaf = (nr_leaf){.is_tensor = nr_is_tensor(object), .argument = -1, .shares = (int32_t)i, .twin = (int32_t)i};
        if (!leaf->is_tensor || !((norch_tensor *)object)->storage) {
            leaf->is_tensor = false;
            leaf->object = Py_XNewRef(object);
            continue;
        }
        leaf->tensor = *(norch_tensor *)object;
        const nr_leaf_mode mode = r->log.modes && i < c->first_leaves ? r->log.modes[i] : nr_mode_of(object);
        leaf->needs = mode.needs;
        leaf->type = Py_NewRef(leaf->tensor.type);
        leaf->node_type = mode.node_type;
        leaf->bytes = leaf->tensor.storage->bytes;
        leaf->later = used_later(r->program, leaf->tensor.storage);
        const int32_t block = nr_program_find(r->program, leaf->tensor.storage);
        leaf->written = block >= 0 && r->program->blocks[block].written;
        for (int32_t k = (int32_t)i - 1; k >= 0; k--)
            if (c->leaves[k].is_tensor && c->leaves[k].tensor.storage == leaf->tensor.storage) leaf->shares = k;
        for (int32_t k = 0; k < (int32_t)i && leaf->twin == (int32_t)i; k++)
            if (PyTuple_GetItem(leaves, k) == object) leaf->twin = k;
        const bool fixed = (leaf->needs && !r->log.joins) || (!r->program->divided && uses_grad(r, object)) ||
                           is_reached(r, i, leaves, results);
        if (!fixed) continue;
        leaf->object = Py_XNewRef(object);
        nr_leaf *first = &c->leaves[leaf->shares];
        if (!first->object) first->object = Py_XNewRef(PyTuple_GetItem(leaves, leaf->shares));
    }
    for (int64_t i = 0; i < count; i++) { /* if one of several over one storage is fixed, all are */
        nr_leaf *leaf = &c->leaves[i];
        if (leaf->is_tensor && !leaf->object && c->leaves[leaf->shares].object)
            leaf->object = Py_XNewRef(PyTuple_GetItem(leaves, i));
    }
    return NORCH_OK;
}

/* Forgets arguments that are bound at each run, and views of them: a run need not check that they are unchanged. */
static void forget_bound(nr_log *log, const nr_conditions *c) {
    int64_t kept = 0;
    for (int64_t s = 0; s < log->seen_count; s++) {
        nr_seen one = log->seen[s];
        bool bound = false;
        for (int64_t i = 0; i < c->leaf_count; i++)
            bound |= c->leaves[i].is_tensor && !c->leaves[i].object && c->leaves[i].tensor.storage == one.x->storage;
        if (bound) {
            drop(&one.node);
            drop(&one.x);
        } else {
            log->seen[kept++] = one;
        }
    }
    log->seen_count = kept;
}

static int32_t finish_program(nr_recording *r, void *results) {
    nr_conditions *c = &r->conditions;
    const int64_t outputs = PyTuple_Size(results);
    const norch_tensor **argument = nr_malloc((size_t)(c->leaf_count + outputs) * sizeof *argument);
    if (!argument) return nr_fail(NORCH_ERROR_MEMORY, "capture: out of memory");
    const norch_tensor **result = argument + c->leaf_count;
    int32_t arguments = 0, different = 0, early = 0;
    for (int64_t i = 0; i < c->leaf_count; i++) {
        if (!c->leaves[i].is_tensor || c->leaves[i].object) continue;
        c->leaves[i].argument = arguments;
        argument[arguments++] = &c->leaves[i].tensor;
    }
    for (int64_t i = 0; i < outputs; i++) {
        if (r->results[i].twin == i) result[different++] = PyTuple_GetItem(results, i);
        if (i < r->first_results) early = different;
    }
    const int32_t status = nr_program_finish(r->program, arguments, argument, different, result, early, r->copies);
    nr_free(argument);
    return status;
}

/* Finds the block of each result. Comes before the end of the program, which forgets storages that only results
 * hold. */
static int32_t read_results(nr_recording *r, void *results, void *leaves) {
    const nr_conditions *c = &r->conditions;
    const int64_t count = PyTuple_Size(results);
    if (!(r->results = nr_malloc((size_t)count * sizeof *r->results)))
        return nr_fail(NORCH_ERROR_MEMORY, "capture: out of memory");
    for (int64_t i = 0; i < count; i++) {
        norch_tensor *x = PyTuple_GetItem(results, i);
        nr_returned *one = &r->results[r->result_count++];
        *one = (nr_returned){.header = *x,
                             .leaf = -1,
                             .offset = -1,
                             .block = nr_program_find(r->program, x->storage),
                             .twin = i,
                             .owner = i,
                             .view = nr_mark_of_view(x)};
        for (int64_t k = 0; k < i && i < r->first_results && one->twin == i; k++)
            if (PyTuple_GetItem(results, k) == x) one->twin = k;
        for (int32_t k = 0; k < c->leaf_count && one->leaf < 0; k++)
            if (PyTuple_GetItem(leaves, k) == x) one->leaf = k;
        if (one->leaf < 0 && (one->block < 0 || nr_is_seen(&r->log, x))) one->object = Py_XNewRef(x);
        for (int32_t k = 0; k < c->leaf_count && one->leaf < 0 && !one->object; k++) {
            const nr_leaf *leaf = &c->leaves[k];
            if (!leaf->is_tensor || leaf->object || leaf->tensor.storage != x->storage) continue;
            one->leaf = k;
            one->offset = (char *)x->data - (char *)leaf->tensor.data;
            if (one->offset < 0) return refuse_end(r, "a result begins before the argument that it is a view of");
        }
    }
    return NORCH_OK;
}

/* Sets the headers of results to the memory that runs write. */
static void place_results(nr_recording *r) {
    for (int64_t i = 0; i < r->result_count; i++) {
        nr_returned *one = &r->results[i];
        if (one->leaf >= 0 || one->object) continue;
        const nr_block *block = &r->program->blocks[one->block];
        one->inside = (char *)one->header.data - block->data;
        one->at = (int64_t)block->at + one->inside;
        one->header.offset = (block->kind == NR_RESULT ? one->at : one->inside) / nr_size_of(one->header.dtype);
        if (block->kind != NR_RESULT) one->header.storage = block->storage;
        for (int64_t k = 0; k < r->used_count && block->kind == NR_EXTERNAL && !one->base; k++)
            if (r->used[k].storage == block->storage) one->base = r->used[k].x;
        const size_t bytes = (size_t)(one->header.numel * nr_size_of(one->header.dtype));
        one->whole = one->header.contiguous && bytes && block->results == 1 && (!block->fresh || bytes == block->bytes);
        for (int64_t k = i - 1; k >= 0; k--)
            if (r->results[k].leaf < 0 && !r->results[k].object && r->results[k].block == one->block) one->owner = k;
    }
}

/* Finds results that are .grad of a tensor, too, or views of it, and notes other
 * gradients that the function has made. */
static int32_t place_gradients(nr_recording *r, void *results) {
    for (int64_t i = 0; i < r->used_count; i++) {
        nr_used *used = &r->used[i];
        if (!used->sets_grad || !used->grad_after) continue;
        for (int64_t k = 0; k < r->result_count && used->result < 0; k++)
            if (PyTuple_GetItem(results, k) == used->grad_after && r->results[k].leaf < 0 && !r->results[k].object &&
                r->program->blocks[r->results[k].block].kind == NR_RESULT)
                used->result = k;
        r->returns_grads |= used->result >= 0;
        if (used->result < 0)
            NR_TRY(nr_recording_keep(r, used->grad_after));
        else
            drop(&used->grad_after);
        used->renews = used->grad_after && nr_may_renew(r, used, results);
    }
    for (int64_t i = 0; i < r->used_count; i++) {
        nr_used *used = &r->used[i];
        const norch_tensor *grad = used->grad_after;
        for (int64_t k = 0; k < r->used_count && used->renews; k++) { /* all in a storage are renewed, or none */
            const norch_tensor *other = r->used[k].grad_after;
            used->renews = !other || other->storage != grad->storage || r->used[k].renews;
        }
        for (int64_t k = 0; k < r->result_count && used->renews; k++)
            if (nr_is_view_of_gradient(r, used, k)) r->results[k].base = used->grad_after;
    }
    return NORCH_OK;
}

static int by_address(const void *a, const void *b) {
    const nr_span *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

static void hold(nr_conditions *c, const norch_storage *storage) {
    const char *data = storage->data;
    if (storage->bytes) c->held[c->held_count++] = (nr_span){data, data + storage->bytes};
}

int32_t nr_recording_list_held(nr_recording *r) {
    const nr_program *program = r->program;
    nr_conditions *c = &r->conditions;
    nr_free(c->held);
    c->held_count = 0;
    if (!(c->held = nr_malloc((size_t)(program->block_count + r->used_count + 1) * sizeof *c->held)))
        return nr_fail(NORCH_ERROR_MEMORY, "capture: out of memory");
    for (int64_t i = 0; i < program->block_count; i++) {
        const nr_block *block = &program->blocks[i];
        if (block->kind == NR_KEPT || (block->kind == NR_EXTERNAL && block->last >= 0)) hold(c, block->storage);
    }
    for (int64_t i = 0; i < r->used_count; i++) hold(c, r->used[i].storage); /* also what only Python reads */
    if (program->arena && !program->divided) hold(c, program->arena);        /* a divided one changes its arena */
    qsort(c->held, (size_t)c->held_count, sizeof *c->held, by_address);
    int64_t last = 0;
    for (int64_t i = 1; i < c->held_count; i++) {
        nr_span *before = &c->held[last];
        if (c->held[i].from > before->to)
            c->held[++last] = c->held[i];
        else if (c->held[i].to > before->to)
            before->to = c->held[i].to;
    }
    if (c->held_count) c->held_count = last + 1;
    return NORCH_OK;
}

static int32_t end(nr_recording *r, void *leaves, void *results) {
    forget_temporary(&r->log);
    NR_TRY(read_leaves(r, leaves, results));
    NR_TRY(check_reached(r));
    forget_bound(&r->log, &r->conditions);
    for (int64_t i = 0; i < r->log.seen_count; i++) {
        if (r->log.seen[i].gained)
            return refuse_end(r, "it writes into a tensor that then has a graph; return it instead");
        if (r->log.seen[i].set && r->program->divided)
            return refuse_end(r, "it sets .grad, which backward() adds to; set it before the call");
    }
    NR_TRY(read_results(r, results, leaves));
    NR_TRY(list_used(r));
    NR_TRY(finish_program(r, results));
    place_results(r);
    NR_TRY(place_gradients(r, results));
    return nr_recording_list_held(r);
}

/* record_end(recording, arguments, results, copies, alone, fuses): ends a recording, which then can be run. False if it
 * cannot; refusal() says why. */
NR_BUILTIN(record_end) {
    nr_recording *r = n == 6 ? nr_recording_of("record_end", args[0]) : NULL;
    if (!r || !r->program || r->ready || (nr_observer_here() != &r->program->observer && !r->program->divided)) {
        PyErr_SetString(PyExc_TypeError, "record_end: takes six arguments, of a recording of this thread");
        return NULL;
    }
    if (nr_observer_here() == &r->program->observer) nr_observe(NULL);
    if (!r->program->divided) {
        nr_recording_note_modes(r);
        r->conditions.first_leaves = PyTuple_Size(args[1]);
        r->first_results = PyTuple_Size(args[2]);
    }
    r->copies = PyObject_IsTrue(args[3]) == 1;
    r->alone = PyObject_IsTrue(args[4]) == 1;
    r->program->fuses = PyObject_IsTrue(args[5]) == 1;
    const int32_t status = end(r, args[1], args[2]);
    r->ready = status == NORCH_OK;
    if (!r->ready && PyErr_Occurred()) return NULL;
    clear_log(&r->log);
    nr_recordings_changes++;
    return PyBool_FromLong(r->ready);
}
