/* results: the results of a run for Python.
 *
 *   an argument, a tensor from before the recording   the same object
 *   a view of such, or of a gradient of kept.c        a view
 *   all of a block of the program                     memory of its own, which the run writes
 *   several views of a block, or a part of it         one new piece of memory, in which they lie as in the block
 *
 * A block that stays in use after the run, and one on a device, is copied. */
#include <stddef.h>
#include <string.h>

#include "../../core/memory.h"
#include "../node.h"
#include "recording.h"

#define FEW 64 /* elements up to which a result, such as a loss, is copied here */

static norch_tensor *copied(const norch_tensor *x) {
    if (!x->contiguous || x->numel > FEW || x->device_type != NORCH_CPU) return norch_cast(x, x->dtype);
    norch_tensor *copy = nr_make(x->ndim, x->shape, x->dtype, x);
    if (copy) memcpy(copy->data, x->data, (size_t)(x->numel * nr_size_of(x->dtype)));
    return copy;
}

/* ---- results that a run writes into new memory ------------------------------------------------------------ */

/* A new tensor for a result, or one of an earlier run that Python has forgotten. */
static norch_tensor *new_result(nr_returned *one) {
    const size_t from = offsetof(norch_tensor, type); /* the count of references comes before */
    for (int i = 0; i < NR_SPARES; i++) {
        const nr_spare *spare = &one->spares[i];
        if (spare->x && nr_is_ours_alone(spare->x) &&
            !memcmp((const char *)spare->x + from, (const char *)&spare->as_returned + from, sizeof *spare->x - from) &&
            spare->x->storage->references == 1 && !nr_has_weak_references(spare->x))
            return norch_retain(spare->x);
    }
    return nr_make(one->header.ndim, one->header.shape, one->header.dtype, NULL);
}

/* Keeps a small result in place of an older one. */
static void keep_result(nr_returned *one, norch_tensor *x) {
    if (x->numel > FEW) return;
    for (int i = 0; i < NR_SPARES; i++)
        if (one->spares[i].x == x) return;
    nr_spare *spare = &one->spares[one->oldest];
    one->oldest = (one->oldest + 1) % NR_SPARES;
    norch_tensor *before = spare->x;
    *spare = (nr_spare){norch_retain(x), *x};
    norch_release(before);
}

int32_t nr_make_results(nr_recording *r, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++) {
        nr_returned *one = &r->results[i];
        norch_tensor *like = &one->header;
        if (one->twin < i || one->object) continue;
        if (one->leaf >= 0 ? one->offset < 0 : !r->program->blocks[one->block].fresh || one->owner < i) continue;
        if (one->leaf >= 0) {
            const norch_tensor *argument = r->args[one->leaf];
            like->storage = argument->storage;
            like->data = (char *)argument->data + one->offset;
            one->output = norch_alias(like);
        } else if (one->whole) {
            one->output = new_result(one);
        } else {
            const int64_t bytes = (int64_t)r->program->blocks[one->block].bytes;
            one->output = nr_make(1, &bytes, NORCH_UINT8, NULL);
        }
        if (!one->output) return NORCH_ERROR_MEMORY;
        if (one->leaf < 0) nr_program_put_result(r->program, one->block, one->output->data);
    }
    return NORCH_OK;
}

void nr_drop_outputs(nr_recording *r) {
    for (int64_t i = 0; i < r->result_count; i++) {
        norch_release(r->results[i].output);
        r->results[i].output = NULL;
    }
}

/* ---- what Python gets ------------------------------------------------------------------------------------- */

/* A header of `bytes` bytes, on the device of `like`. */
static norch_tensor row_of_bytes(const norch_tensor *like, norch_storage *storage, void *data, size_t bytes) {
    norch_tensor row = *like;
    row.dtype = NORCH_UINT8;
    row.ndim = row.contiguous = 1;
    row.numel = row.shape[0] = (int64_t)bytes;
    row.strides[0] = 1;
    row.offset = 0;
    row.storage = storage;
    row.data = data;
    return row;
}

/* A copy of a block as a row of bytes. */
static norch_tensor *copy_of_block(const nr_recording *r, const nr_returned *one) {
    const nr_block *block = &r->program->blocks[one->block];
    norch_storage *storage = block->kind == NR_RESULT ? r->program->arena : block->storage;
    char *data = (char *)storage->data + (block->kind == NR_RESULT ? block->at : 0);
    const norch_tensor row = row_of_bytes(&one->header, storage, data, block->bytes);
    return norch_cast(&row, NORCH_UINT8);
}

/* A result as it lies in its block, of which row is the copy. */
static norch_tensor *view_in(const nr_returned *one, norch_tensor *row) {
    norch_tensor header = one->header;
    header.storage = row->storage;
    header.data = (char *)row->data + one->inside;
    header.offset = one->inside / nr_size_of(header.dtype);
    norch_tensor *view = norch_alias(&header);
    return view && nr_share_version(row, view) ? view : NULL;
}

/* A result that the next run overwrites: it shares the version counter of `version_owner`, to which that run counts a
 * write. */
static norch_tensor *over_memory_of_program(nr_returned *one) {
    if (!one->version_owner && !(one->version_owner = norch_alias(&one->header))) return NULL;
    norch_tensor *view = norch_alias(&one->header);
    return view && nr_share_version(one->version_owner, view) ? view : NULL;
}

/* A result over memory of the program. */
static norch_tensor *give_from_memory(nr_recording *r, nr_returned *one) {
    const nr_block *block = &r->program->blocks[one->block];
    if (one->whole && block->fresh) {
        norch_tensor *output = one->output;
        one->output = NULL;
        if (!r->program->divided) keep_result(one, output); /* else it gets a node, which would live as long */
        return output;
    }
    if (block->kind == NR_RESULT && !block->fresh && block->last < 0) /* no call writes it: it has no elements */
        return nr_make(one->header.ndim, one->header.shape, one->header.dtype, &one->header);
    if (block->kind == NR_RESULT && !block->fresh) {
        one->header.storage = r->program->arena;
        one->header.data = (char *)r->program->arena->data + one->at;
    }
    if (!r->copies) return over_memory_of_program(one);
    if (one->whole) return copied(&one->header);
    nr_returned *owner = &r->results[one->owner];
    if (!owner->output && !(owner->output = copy_of_block(r, one))) return NULL;
    return view_in(one, owner->output);
}

static norch_tensor *give_result(nr_recording *r, nr_returned *one) {
    if (one->object) return norch_retain(one->object);
    if (one->leaf >= 0 && one->offset < 0) return norch_retain(r->args[one->leaf]);
    if (one->leaf < 0 && !one->base) return give_from_memory(r, one);
    norch_tensor *view = one->output ? one->output : norch_alias(&one->header);
    one->output = NULL;
    if (!view || !nr_share_version(one->base ? one->base : r->args[one->leaf], view)) return NULL;
    if (one->view) nr_set_view(view, one->view);
    return view;
}

/* The arena of this run, as a tensor, for the backward part; None if there is no arena. */
static void *give_arena(const nr_recording *r) {
    norch_storage *arena = r->program->arena;
    if (!arena) return Py_NewRef(NR_NONE);
    const norch_tensor row = row_of_bytes(&r->results[0].header, arena, arena->data, arena->bytes);
    return norch_alias(&row);
}

void *nr_give_results(nr_recording *r, int64_t from, int64_t to) {
    const bool waits = r->program->divided && from == 0, alone = r->alone && !r->program->divided;
    void *results = alone ? give_result(r, &r->results[0]) : PyTuple_New(to - from + waits);
    for (int64_t i = from; results && !alone && i < to + waits; i++) {
        const bool is_twin = i < to && r->results[i].twin < i;
        void *result = is_twin  ? norch_retain(PyTuple_GetItem(results, r->results[i].twin))
                       : i < to ? give_result(r, &r->results[i])
                                : give_arena(r);
        if (result && !PyTuple_SetItem(results, i - from, result)) continue;
        Py_DecRef(results);
        results = NULL;
    }
    nr_drop_outputs(r); /* the rows of bytes */
    return results;
}

/* recorded_results(recording, results): those of the call that was recorded, with copies of what the next run writes
 * to. */
NR_BUILTIN(recorded_results) {
    nr_recording *r = nr_counted("recorded_results", 2, n) ? nr_recording_of("recorded_results", args[0]) : NULL;
    if (!r) return NULL;
    void *results = PyTuple_New(r->result_count);
    for (int64_t i = 0; results && i < r->result_count; i++) {
        nr_returned *one = &r->results[i];
        const bool is_kept =
            one->leaf < 0 && !one->object && !one->base && r->program->blocks[one->block].kind == NR_KEPT;
        void *result = one->twin < i ? norch_retain(PyTuple_GetItem(results, one->twin))
                       : is_kept     ? give_from_memory(r, one)
                                     : norch_retain(PyTuple_GetItem(args[1], i));
        if (result && !PyTuple_SetItem(results, i, result)) continue;
        Py_DecRef(results);
        results = NULL;
    }
    nr_drop_outputs(r);
    return results;
}
