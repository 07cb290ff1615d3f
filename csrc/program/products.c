/* products: matrix products of a program whose right operand is a weight from before the recording: they run with the
 * weight packed (packed.h), as the convolutions of lower.c do. Each product is a layer by itself, which reads and
 * writes the same memory as the product.
 *
 * Products with one weight, such as those of the steps of a recurrent layer, and runs of one program take turns in
 * which columns come first: the caches still have what the product before used last. */
#include <string.h>

#include "../core/memory.h"
#include "../families/matmul.h"
#include "lower.h"

norch_storage *nr_storage_read(const nr_program *program, const nr_instr *instr, const void *field) {
    for (int64_t u = instr->first_use; u < instr->first_use + instr->uses; u++) {
        const nr_use *use = &program->uses[u];
        if (use->at != field) continue;
        const nr_block *block = &program->blocks[use->home];
        return use->block == use->home && block->kind == NR_EXTERNAL ? block->storage : NULL;
    }
    return NULL;
}

/* Up to this number of bytes, weights that single rows read are packed, because they fit into a cache. From memory, an
 * unpacked weight is read as fast. */
#define CACHED (8 << 20)

static bool is_product(const nr_program *program, const nr_instr *instr) {
    const nr_call *call = &instr->call;
    return !instr->dead && call->family == NR_MATMUL && call->dtype == NORCH_FLOAT32 && !call->load &&
           call->backend == program->backend;
}

/* Whether the weights of single rows stay in a cache. The instructions of a layer use one weight, one after the other. */
static bool rows_are_cached(const nr_program *program) {
    const void *last = NULL;
    double bytes = 0;
    for (int64_t s = 0; s < program->count; s++) {
        const nr_matmul_plan *plan = program->instrs[s].call.plan;
        if (!is_product(program, &program->instrs[s]) || plan->m > 1 || plan->b == last) continue;
        bytes += (double)plan->k * (double)plan->n * (double)sizeof(float);
        last = plan->b;
    }
    return bytes <= CACHED;
}

void nr_program_pack_products(nr_program *program) {
    const nr_layer_runner *runner = program->backend->layers;
    const bool rows = rows_are_cached(program);
    const void *last = NULL; /* the weight of the product before */
    bool backwards = false;
    for (int64_t s = 0; s < program->count; s++) {
        nr_instr *instr = &program->instrs[s];
        const nr_call *call = &instr->call;
        if (!is_product(program, instr) || (!rows && ((const nr_matmul_plan *)call->plan)->m == 1)) continue;
        norch_storage *storage = nr_storage_read(program, instr, &((const nr_matmul_plan *)call->plan)->b);
        if (!storage || !runner->packed_size(call)) continue;
        nr_lowered *lowered = nr_malloc(sizeof *lowered);
        if (!lowered) return; /* the others run without packing */
        memset(lowered, 0, sizeof *lowered);
        backwards = ((const nr_matmul_plan *)call->plan)->b == last && !backwards;
        last = ((const nr_matmul_plan *)call->plan)->b;
        lowered->layer.backwards = backwards;
        lowered->layer.call = *call;
        lowered->packed = nr_packed_share((norch_storage *[2]){storage}, call, NULL);
        if (!lowered->packed) {
            nr_free(lowered);
            return;
        }
        instr->lowered = lowered;
    }
}
