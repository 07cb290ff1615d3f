/* kept: gradients that the program still holds when a run is about to write the next ones.
 *
 * A run leaves the gradients that it makes in the memory that they had when they were recorded, so that no address
 * changes. If anything but .grad and recordings refers to such a gradient, or to its memory, this run gets new memory
 * for it, and a new tensor, as the function itself would. */
#include "../../core/memory.h"
#include "recording.h"

typedef struct counter {
    const void *object;
    int64_t found;
} counter;

static int count_one(void *object, void *of) {
    counter *c = of;
    c->found += object == c->object;
    return 0;
}

/* Counts the references that recordings have to a gradient and to its memory. */
static void count(nr_used *one) {
    const norch_storage *storage = ((norch_tensor *)one->grad_after)->storage;
    counter c = {.object = one->grad_after};
    one->held_memory = 1; /* by the gradient */
    for (nr_recording *r = nr_recordings; r; r = r->next) {
        nr_recording_traverse(r, count_one, &c);
        for (int64_t b = 0; r->program && b < r->program->block_count; b++) {
            const nr_block *block = &r->program->blocks[b];
            one->held_memory += block->storage == storage && (block->external || block->kind == NR_KEPT);
        }
    }
    one->held = c.found;
    one->counted = nr_recordings_changes;
}

static bool is_free(const nr_used *one, int64_t gradients) {
    const norch_tensor *grad = one->grad_after;
    return nr_references_of(grad) == one->held + gradients && grad->storage->references == one->held_memory;
}

/* Puts a new tensor over new memory in place of a gradient. */
static int32_t renew(nr_recording *r, norch_tensor *before) {
    const int32_t block = nr_program_find(r->program, before->storage);
    norch_storage *storage = nr_storage_make(before->storage->backend, before->storage->bytes);
    if (!storage) return NORCH_ERROR_MEMORY;
    norch_tensor header = *before;
    header.storage = storage;
    header.data = (char *)storage->data + ((char *)before->data - (char *)before->storage->data);
    norch_tensor *made = norch_alias(&header);
    if (!made) {
        nr_storage_release(storage);
        return NORCH_ERROR_MEMORY;
    }
    norch_retain(before);
    nr_program_renew(r->program, block, storage);
    for (int64_t i = 0; i < r->used_count; i++) {
        if (r->used[i].grad_after != before) continue;
        r->used[i].grad_after = norch_retain(made);
        r->used[i].counted = 0;
        norch_release(before);
    }
    for (int64_t i = 0; i < r->keep_count; i++) {
        if (r->keeps[i].x != before) continue;
        r->keeps[i] = (nr_kept){norch_retain(made), *made};
        norch_release(before);
    }
    for (int64_t i = 0; i < r->result_count; i++) {
        nr_returned *one = &r->results[i];
        if (one->leaf >= 0 || one->object || one->block != block) continue;
        one->header.storage = storage;
        one->header.data = (char *)storage->data + one->inside;
        if (one->base == before) one->base = made;
    }
    norch_release(made);
    norch_release(before);
    return nr_recording_list_held(r);
}

int32_t nr_renew_gradients(nr_recording *r) {
    for (int64_t i = 0; i < r->used_count; i++) {
        nr_used *one = &r->used[i];
        if (!one->renews || (one->counted == nr_recordings_changes && is_free(one, one->x->grad == one->grad_after)))
            continue;
        count(one);
        int64_t gradients = 0;
        for (int64_t k = 0; k < r->used_count; k++) gradients += r->used[k].x->grad == one->grad_after;
        if (!is_free(one, gradients)) NR_TRY(renew(r, one->grad_after));
    }
    return NORCH_OK;
}
