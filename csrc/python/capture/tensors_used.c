/* tensors_used: the older tensors that a recorded function uses, and its reads and writes of their .grad. */
#include "../../core/memory.h"
#include "recording.h"

bool nr_is_seen(const nr_log *log, const norch_tensor *x) {
    for (int64_t i = log->seen_count - 1; i >= 0; i--)
        if (log->seen[i].x == x) return true;
    return false;
}

void nr_recording_see(nr_observer *self, norch_tensor *x) {
    nr_program *program = (nr_program *)self;
    nr_log *log = &((nr_recording *)program->owner)->log;
    if (!x->storage || program->refusal[0] || nr_is_seen(log, x)) return;
    const int32_t block = nr_program_see(program, x->storage);
    if (block >= 0 && !program->blocks[block].external) return;
    if (block < 0 || !nr_grow(&log->seen, log->seen_count, &log->seen_capacity, sizeof *log->seen)) {
        nr_program_spoil(program, "out of memory for the recording");
        return;
    }
    program->blocks[block].is_number |= x->weak;
    const norch_tensor *grad = nr_grad_of(x);
    log->seen[log->seen_count++] = (nr_seen){.x = norch_retain(x),
                                             .node = Py_XNewRef(x->node),
                                             .grad_storage = grad ? grad->storage : NULL,
                                             .grad_data = grad ? grad->data : NULL,
                                             .header = *x,
                                             .grad_header = grad ? *grad : (norch_tensor){0}};
}

/* The entry of a tensor in the recording of this thread; NULL: there is none. */
static nr_seen *seen_here(norch_tensor *x) {
    nr_observer *observer = nr_observing();
    if (!observer || observer->passed != nr_recording_see) return NULL;
    nr_log *log = &((nr_recording *)((nr_program *)observer)->owner)->log;
    nr_recording_see(observer, x);
    for (int64_t i = 0; i < log->seen_count; i++)
        if (log->seen[i].x == x) return &log->seen[i];
    return NULL;
}

/* grad_of(x): .grad. A recording notes that Python reads it. */
NR_BUILTIN(grad_of) {
    if (!nr_counted("grad_of", 1, n)) return NULL;
    norch_tensor *x = args[0];
    nr_seen *seen = seen_here(x);
    const norch_tensor *grad = nr_grad_of(x);
    if (seen) seen->asked |= seen->grad_storage == (grad ? grad->storage : NULL);
    return Py_NewRef(x->grad);
}

/* note_set_grad(x): Python is about to set .grad. */
NR_BUILTIN(note_set_grad) {
    if (!nr_counted("note_set_grad", 1, n)) return NULL;
    norch_tensor *x = args[0];
    nr_seen *seen = seen_here(x);
    const norch_tensor *grad = nr_grad_of(x);
    if (seen && !seen->set) /* if it differs already, backward() has read it, to set it or to add to it */
        seen->asked |= seen->grad_storage != (grad ? grad->storage : NULL);
    if (seen) seen->set = true;
    return Py_NewRef(NR_NONE);
}

int32_t nr_note_gradients(nr_log *log, const nr_recording *earlier) {
    if (!(log->before = nr_malloc((size_t)earlier->used_count * sizeof *log->before)))
        return nr_fail(NORCH_ERROR_MEMORY, "capture: out of memory");
    for (; log->before_count < earlier->used_count; log->before_count++) {
        norch_tensor *x = earlier->used[log->before_count].x;
        const norch_tensor *grad = nr_grad_of(x);
        log->before[log->before_count] = (nr_grad_before){norch_retain(x), grad ? grad->storage : NULL};
    }
    return NORCH_OK;
}

bool nr_was_gradient(const nr_log *log, const norch_storage *storage) {
    for (int64_t i = 0; i < log->seen_count; i++)
        if (log->seen[i].grad_storage == storage) return true;
    return false;
}

void nr_find_grad_rule(const nr_log *log, const nr_program *program, const nr_seen *seen, nr_used *used) {
    const nr_grad_before *before = NULL;
    for (int64_t i = 0; i < log->before_count && !before; i++)
        if (log->before[i].x == seen->x) before = &log->before[i];
    const norch_tensor *after = used->grad_after;
    if (after) {
        const int32_t of_after = nr_program_find(program, after->storage);
        const bool is_new = of_after >= 0 && !program->blocks[of_after].external;
        const bool other = before && before->storage != after->storage;
        used->sets_grad = seen->set || is_new || after->storage != seen->grad_storage || other;
    } else {
        used->sets_grad = seen->set || seen->grad_storage || (before && before->storage);
    }
    const int32_t of_first = seen->grad_storage ? nr_program_find(program, seen->grad_storage) : -1;
    const bool adds_nothing = after && after->storage == seen->grad_storage && !after->numel; /* no call shows it */
    const bool is_used = of_first >= 0 && program->blocks[of_first].external && program->blocks[of_first].last >= 0;
    if (is_used || adds_nothing)
        used->rule = NR_GRAD_SAME;
    else if (!seen->grad_storage && ((used->sets_grad && !seen->set) || seen->asked) && !(before && before->storage))
        used->rule = NR_GRAD_NONE;
    else if (seen->grad_storage && seen->asked && (!before || before->storage))
        used->rule = NR_GRAD_SOME;
}

/* ---- the list of recordings, for kept.c ------------------------------------------------------------------- */

nr_recording *nr_recordings;
int64_t nr_recordings_changes = 1;

void nr_recording_list(nr_recording *r) {
    r->next = nr_recordings;
    nr_recordings = r;
}

void nr_recording_unlist(const nr_recording *r) {
    nr_recording **at = &nr_recordings;
    while (*at && *at != r) at = &(*at)->next;
    if (*at) *at = r->next;
    nr_recordings_changes++;
}

/* Whether Python puts copies of a tensor with this memory somewhere. */
static bool is_stored(const nr_recording *r, const norch_storage *storage) {
    for (int64_t i = 0; r->stored && i < PyList_Size(r->stored); i++) {
        const norch_tensor *x = PyList_GetItem(r->stored, i);
        if (nr_is_tensor(x) && x->storage == storage) return true;
    }
    return false;
}

bool nr_is_view_of_gradient(const nr_recording *r, const nr_used *one, int64_t k) {
    const nr_returned *result = &r->results[k];
    const norch_storage *storage = ((norch_tensor *)one->grad_after)->storage;
    return result->leaf < 0 && !result->object && r->program->blocks[result->block].storage == storage;
}

int64_t nr_gradients_over(const nr_recording *r, const norch_storage *storage) {
    int64_t count = 0;
    for (int64_t i = 0; i < r->used_count; i++) {
        const norch_tensor *grad = r->used[i].grad_after;
        bool first = grad && grad->storage == storage;
        for (int64_t k = 0; k < i && first; k++) first = r->used[k].grad_after != grad;
        count += first;
    }
    return count;
}

static bool is_gradient(const nr_recording *r, const void *x) {
    for (int64_t i = 0; i < r->used_count; i++)
        if (r->used[i].grad_after == x) return true;
    return false;
}

bool nr_may_renew(const nr_recording *r, const nr_used *one, void *results) {
    const norch_tensor *grad = one->grad_after;
    const int32_t block = nr_program_find(r->program, grad->storage);
    int64_t references = 1 + nr_gradients_over(r, grad->storage); /* of the block, of gradients, of views returned */
    for (int64_t k = 0; k < r->result_count; k++)
        references += r->results[k].twin == k && nr_is_view_of_gradient(r, one, k) &&
                      !is_gradient(r, PyTuple_GetItem(results, k));
    return block >= 0 && r->program->blocks[block].kind == NR_KEPT && grad->storage->references == references &&
           !nr_guards_name(&r->conditions.guards, grad) && !is_stored(r, grad->storage);
}
