/* layers: the memory that the calls of a program use after some of them became layers (lower.c), and the run of a
 * layer. */
#include <string.h>

#include "../core/error.h"
#include "../core/memory.h"
#include "lower.h"

/* ---- the result --------------------------------------------------------------------------------------- */

static void list_use(nr_program *program, nr_instr *instr, nr_use use) {
    program->uses[program->use_count++] = use;
    instr->uses++;
}

static void list_image(lowering *l, nr_instr *instr, const nr_image *image, int64_t first, bool written) {
    const int32_t block = (int32_t)(first + (image - l->images));
    list_use(l->program, instr, (nr_use){(void **)(uintptr_t)&image->data, 0, block, block, written});
}

/* The memory, other than images, that a call reads. from is the call as it was recorded. */
static void list_reads(lowering *l, nr_instr *instr, const nr_instr *from, const nr_use *old) {
    for (int64_t u = from->first_use; u < from->first_use + from->uses; u++) {
        const value *v = l->of_use[u] < 0 ? NULL : &l->values[l->of_use[u]];
        if (!old[u].written && (!v || !v->held_by_layer || v->stored || v->outside))
            list_use(l->program, instr, old[u]);
    }
}

/* The uses of call s in its present form. */
static void list_uses(lowering *l, int64_t s, const nr_instr *recorded, const nr_use *old, int64_t first) {
    nr_instr *instr = &l->program->instrs[s];
    const nr_lowered *lowered = instr->lowered;
    instr->first_use = l->program->use_count;
    instr->uses = 0;
    if (lowered) {
        const nr_layer *layer = &lowered->layer;
        list_reads(l, instr, &recorded[s], old);
        for (int32_t i = 0; i < layer->loads; i++) list_image(l, instr, layer->load[i].image, first, true);
        if (layer->x) list_image(l, instr, layer->x, first, false);
        for (int32_t i = 0; i < layer->stages; i++) {
            list_reads(l, instr, &recorded[lowered->stage_instr[i]], old);
            for (int o = 1; o < NR_MAX_OPERANDS; o++)
                if (layer->stage[i].image[o]) list_image(l, instr, layer->stage[i].image[o], first, false);
        }
        list_image(l, instr, layer->y, first, true);
    } else if (!instr->folded) {
        for (int64_t u = recorded[s].first_use; u < recorded[s].first_use + recorded[s].uses; u++)
            list_use(l->program, instr, old[u]);
    }
    for (int64_t u = recorded[s].first_use; u < recorded[s].first_use + recorded[s].uses && (lowered || instr->folded);
         u++) {
        const value *v = l->of_use[u] < 0 ? NULL : &l->values[l->of_use[u]];
        if (!old[u].written || !v || v->writer != s || v->image < 0 || !(v->stored || v->outside)) continue;
        instr->stored = &l->images[v->image];
        instr->planes = old[u].at;
        list_image(l, instr, instr->stored, first, false);
        list_use(l->program, instr, old[u]);
    }
}

bool nr_layers_list(lowering *l) {
    nr_program *program = l->program;
    const int64_t first = program->block_count;
    int64_t most = program->use_count;
    for (int64_t s = 0; s < program->count; s++)
        if (program->instrs[s].lowered || program->instrs[s].folded)
            most += NR_LAYER_LOADS + 2 + NR_LAYER_STAGES * NR_MAX_OPERANDS + program->instrs[s].uses;
    nr_instr *recorded = nr_malloc((size_t)program->count * sizeof *recorded);
    nr_use *old = program->uses, *uses = nr_malloc((size_t)(2 * most) * sizeof *uses);
    bool allocated = recorded && uses;
    for (int64_t i = 0; i < l->image_count && allocated; i++) {
        nr_image *image = &l->images[i];
        image->pitch = (image->size[1] + 2 * image->halo[1]) * image->lanes;
        image->plane = (image->size[0] + 2 * image->halo[0]) * image->pitch;
        allocated = nr_grow(&program->blocks, program->block_count, &program->block_capacity, sizeof *program->blocks);
        if (allocated)
            program->blocks[program->block_count++] = (nr_block){.bytes = (size_t)nr_image_bytes(image),
                                                                 .backend = program->backend,
                                                                 .kind = NR_TEMPORARY,
                                                                 .is_image = true,
                                                                 .last = -1};
    }
    if (!allocated) {
        program->block_count = first;
        nr_free(recorded);
        nr_free(uses);
        return false;
    }
    memcpy(recorded, program->instrs, (size_t)program->count * sizeof *recorded);
    program->uses = uses;
    program->use_count = 0;
    program->use_capacity = 2 * most;
    for (int64_t s = 0; s < program->count; s++) list_uses(l, s, recorded, old, first);
    nr_free(recorded);
    nr_free(old);
    return true;
}

/* ---- a run ------------------------------------------------------------------------------------------------ */

void nr_lowered_free(nr_lowered *lowered) {
    if (!lowered) return;
    if (lowered->packed) nr_packed_release(lowered->packed);
    nr_free(lowered);
}

int32_t nr_run_lowered(const nr_call *call) {
    const nr_instr *instr = (const nr_instr *)call;
    nr_lowered *lowered = instr->lowered;
    if (lowered) {
        nr_layer *layer = &lowered->layer;
        if (call->family == NR_MATMUL && !nr_packed_is_settled(lowered->packed))
            return call->backend->run[call->family](call);
        if (lowered->packed && !(layer->packed = nr_packed_numbers(lowered->packed, &layer->call)))
            return NORCH_ERROR_MEMORY;
        NR_TRY(call->backend->layers->run(layer));
        layer->backwards = !layer->backwards;
    }
    if (instr->stored) call->backend->layers->store(instr->stored, *instr->planes);
    return NORCH_OK;
}
