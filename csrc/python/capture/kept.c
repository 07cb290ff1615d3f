/* kept: gradients that the program still holds when a run is about to write the next ones.
 *
 * A run leaves the gradients that it makes in the memory that they had when they were recorded, so that no address
 * changes. If anything but .grad and recordings refers to such a gradient, or to its memory, this run gets new memory
 * for it, and a new tensor, as the function itself would. Gradients that share memory, as those of a layer norm do, are
 * replaced together. */
#include <string.h>

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
static void count(nr_used *one, const nr_recording *of) {
    const norch_storage *storage = ((norch_tensor *)one->grad_after)->storage;
    counter c = {.object = one->grad_after};
    one->held_memory = nr_gradients_over(of, storage);
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

/* A tensor with the header of `before` over another storage of the same size. */
static norch_tensor *over_storage(const norch_tensor *before, norch_storage *storage) {
    norch_tensor header = *before;
    header.storage = storage;
    header.data = (char *)storage->data + ((char *)before->data - (char *)before->storage->data);
    return norch_alias(&header);
}

/* Replaces a gradient among the tensors that stay in use, and as the base of results. */
static void replace(nr_recording *r, norch_tensor *before, norch_tensor *after) {
    for (int64_t i = 0; i < r->keep_count; i++) {
        if (r->keeps[i].x != before) continue;
        r->keeps[i] = (nr_kept){norch_retain(after), *after, r->keeps[i].written};
        norch_release(before);
    }
    for (int64_t i = 0; i < r->result_count; i++)
        if (r->results[i].base == before) r->results[i].base = after;
}

/* Gives a block new memory, and replaces all gradients in it by new tensors. renewed: an array for the new gradient of
 * each tensor in use, all NULL; the caller releases them. */
static int32_t renew(nr_recording *r, const int32_t block, norch_tensor **renewed) {
    norch_storage *before = r->program->blocks[block].storage;
    norch_storage *storage = nr_storage_make(before->backend, before->bytes);
    if (!storage) return NORCH_ERROR_MEMORY;
    bool good = true;
    for (int64_t i = 0; i < r->used_count && good; i++) {
        const norch_tensor *grad = r->used[i].grad_after;
        if (!grad || grad->storage != before) continue;
        for (int64_t k = 0; k < i && !renewed[i]; k++)
            if (r->used[k].grad_after == grad) renewed[i] = norch_retain(renewed[k]);
        if (!renewed[i]) good = (renewed[i] = over_storage(grad, storage)) != NULL;
    }
    if (!good) {
        nr_storage_release(storage);
        return NORCH_ERROR_MEMORY;
    }
    for (int64_t i = 0; i < r->used_count; i++) {
        norch_tensor *grad = r->used[i].grad_after;
        if (!renewed[i]) continue;
        replace(r, grad, renewed[i]);
        r->used[i].grad_after = norch_retain(renewed[i]);
        r->used[i].counted = 0;
        norch_release(grad);
    }
    nr_program_renew(r->program, block, storage);
    for (int64_t i = 0; i < r->result_count; i++) {
        nr_returned *one = &r->results[i];
        if (one->leaf >= 0 || one->object || one->block != block) continue;
        one->header.storage = storage;
        one->header.data = (char *)storage->data + one->inside;
    }
    return nr_recording_list_held(r);
}

static int32_t renew_block_of(nr_recording *r, const norch_tensor *grad) {
    norch_tensor **renewed = nr_malloc((size_t)r->used_count * sizeof *renewed);
    if (!renewed) return nr_fail(NORCH_ERROR_MEMORY, "capture: out of memory");
    memset(renewed, 0, (size_t)r->used_count * sizeof *renewed);
    const int32_t status = renew(r, nr_program_find(r->program, grad->storage), renewed);
    for (int64_t i = 0; i < r->used_count; i++) norch_release(renewed[i]);
    nr_free(renewed);
    return status;
}

int32_t nr_renew_gradients(nr_recording *r) {
    for (int64_t i = 0; i < r->used_count; i++) {
        nr_used *one = &r->used[i];
        if (!one->renews || (one->counted == nr_recordings_changes && is_free(one, one->x->grad == one->grad_after)))
            continue;
        count(one, r);
        int64_t gradients = 0;
        for (int64_t k = 0; k < r->used_count; k++) gradients += r->used[k].x->grad == one->grad_after;
        if (!is_free(one, gradients)) NR_TRY(renew_block_of(r, one->grad_after));
    }
    return NORCH_OK;
}
