/* record: records calls and storages as an observer of the thread, and turns them into a program at the end. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "../core/error.h"
#include "../core/memory.h"
#include "layers.h"
#include "plans.h"
#include "program.h"

void nr_program_spoil(nr_program *program, const char *why) {
    if (program->refusal[0]) return;
    snprintf(program->refusal, sizeof program->refusal, "%s", why);
    if (program->line && nr_observer_here() == &program->observer)
        program->refused_line = program->line(program->owner);
}

/* Spoils the recording, but does not fail: the call itself has succeeded, and the function goes on. */
static int32_t shortage(nr_program *program) {
    nr_program_spoil(program, "out of memory for the recording");
    return NORCH_OK;
}

int32_t nr_program_refuse(nr_program *program, const char *why) {
    nr_program_spoil(program, why);
    return program->strict ? nr_fail(NORCH_ERROR_CAPTURE, "capture: %s", why) : NORCH_OK;
}

/* ---- blocks ------------------------------------------------------------------------------------------ */

/* Searches from the latest block on: a freed storage may have had the same address. */
int32_t nr_program_find(const nr_program *program, const norch_storage *storage) {
    for (int64_t i = program->block_count - 1; i >= 0; i--)
        if (program->blocks[i].storage == storage) return (int32_t)i;
    return -1;
}

static int32_t add_block(nr_program *program, norch_storage *storage, bool external) {
    if (!nr_grow(&program->blocks, program->block_count, &program->block_capacity, sizeof *program->blocks)) return -1;
    program->blocks[program->block_count] = (nr_block){.storage = storage,
                                                       .data = storage->data,
                                                       .bytes = storage->bytes,
                                                       .backend = storage->backend,
                                                       .external = external,
                                                       .last = -1};
    if (external) atomic_fetch_add_explicit(&storage->references, 1, memory_order_relaxed);
    return (int32_t)program->block_count++;
}

int32_t nr_program_see(nr_program *program, norch_storage *storage) {
    const int32_t block = nr_program_find(program, storage);
    return block >= 0 ? block : add_block(program, storage, true);
}

static void created(nr_observer *self, norch_storage *storage) {
    nr_program *program = (nr_program *)self;
    const int32_t i = add_block(program, storage, false);
    if (i >= 0) {
        program->blocks[i].born = program->count;
        return;
    }
    storage->observer = NULL;
    shortage(program);
}

static void freed(nr_observer *self, norch_storage *storage) {
    nr_program *program = (nr_program *)self;
    const int32_t i = nr_program_find(program, storage);
    if (i < 0) return;
    program->blocks[i].storage = NULL;
    program->blocks[i].died = program->count;
}

static int32_t host_wrote(nr_observer *self, const norch_tensor *x) {
    nr_program *program = (nr_program *)self;
    const int32_t i = nr_program_find(program, x->storage);
    if (i < 0 || program->refusal[0]) return NORCH_OK;
    nr_block *block = &program->blocks[i];
    block->constant = nr_malloc(block->bytes);
    if (!block->constant) return shortage(program);
    memcpy(block->constant, block->data, block->bytes);
    return NORCH_OK;
}

/* ---- calls ------------------------------------------------------------------------------------------- */

typedef struct context {
    nr_program *program;
    nr_instr *instr;
    const char *original; /* the plan of the caller */
    bool lost, short_of_memory;
} context;

static void hash(uint64_t *digest, const void *at, size_t n) {
    const unsigned char *byte = at; /* FNV-1a */
    for (size_t i = 0; i < n; i++) *digest = (*digest ^ byte[i]) * 0x100000001b3ull;
}

static void take_numbers(void *of, const void *at, size_t bytes) { hash(&((context *)of)->instr->digest, at, bytes); }

static void take_address(void *of, void **at, bool written) {
    context *c = of;
    nr_program *program = c->program;
    const char *address = *at;
    int64_t i = program->block_count - 1;
    for (; i >= 0; i--) {
        const nr_block *block = &program->blocks[i];
        if (block->storage && address >= block->data && address < block->data + (block->bytes ? block->bytes : 1))
            break;
    }
    c->lost |= i < 0;
    if (i < 0) return;
    if (!nr_grow(&program->uses, program->use_count, &program->use_capacity, sizeof *program->uses)) {
        shortage(program);
        return;
    }
    nr_block *block = &program->blocks[i];
    if (block->last < 0) block->first = program->count;
    block->last = program->count;
    block->written |= written;
    program->uses[program->use_count++] = (nr_use){at, address - block->data, (int32_t)i, (int32_t)i, written};
    c->instr->uses++;
}

/* Copies an array that a plan points at, and makes it point at the copy. */
static void take_items(void *of, const void **at, size_t bytes) {
    context *c = of;
    if (!(c->instr->items = nr_malloc(bytes))) {
        c->short_of_memory = true;
        return;
    }
    if (bytes) memcpy(c->instr->items, *at, bytes);
    *at = c->instr->items;
}

/* Makes scalars of the plan those of its copy. */
static void take_nest(void *of, nr_plan *nest) {
    const context *c = of;
    const nr_plan *from = (const nr_plan *)(c->original + ((const char *)nest - (const char *)c->instr->call.plan));
    for (int o = 0; o < from->operands; o++)
        if (nr_in_plan(from, o)) nest->data[o] = (char *)&nest->value[o];
}

static int32_t append(nr_observer *self, const nr_call *call) {
    nr_program *program = (nr_program *)self;
    if (program->refusal[0] || nr_is_empty(call)) return NORCH_OK;
    const size_t bytes = nr_plan_bytes(call);
    if (!bytes) return nr_program_refuse(program, "the shape of a result depends on the elements of a tensor");
    if (!nr_grow(&program->instrs, program->count, &program->instr_capacity, sizeof *program->instrs))
        return shortage(program);
    nr_instr *instr = &program->instrs[program->count];
    *instr = (nr_instr){
        .call = *call, .number = program->count, .first_use = program->use_count, .digest = 0xcbf29ce484222325ull};
    void *plan = nr_malloc(bytes);
    if (!plan) return shortage(program);
    memcpy(plan, call->plan, bytes);
    instr->call.plan = plan;
    const int32_t head[] = {(int32_t)call->family, call->op, call->dtype, call->from_dtype};
    hash(&instr->digest, head, sizeof head);
    context c = {.program = program, .instr = instr, .original = call->plan};
    const nr_plan_visitor visitor = {take_address, take_numbers, take_items, take_nest, .context = &c};
    nr_plan_visit(&instr->call, plan, &visitor);
    if (c.short_of_memory) {
        nr_free(plan);
        program->use_count = instr->first_use;
        return shortage(program);
    }
    if (program->line) instr->line = program->line(program->owner);
    if (!program->backend || call->backend->device) program->backend = call->backend;
    program->work += call->work;
    program->count++;
    return c.lost ? nr_program_refuse(program, "a call uses memory that belongs to no tensor") : NORCH_OK;
}

static void failed(nr_observer *self) { nr_program_spoil((nr_program *)self, "a call failed"); }

static int32_t refuse(nr_observer *self, const char *message) { return nr_program_refuse((nr_program *)self, message); }

void nr_program_divide(nr_program *program) {
    program->divided = true;
    program->split = program->count;
    program->first_work = program->work;
}

nr_program *nr_program_make(bool strict) {
    nr_program *program = nr_malloc(sizeof *program);
    if (!program) return NULL;
    *program = (nr_program){.observer = {.replays = true,
                                         .call = append,
                                         .host_call = append,
                                         .failed = failed,
                                         .created = created,
                                         .freed = freed,
                                         .host_wrote = host_wrote,
                                         .refuse = refuse},
                            .strict = strict};
    return program;
}

/* ---- the end of a recording -------------------------------------------------------------------------- */

static int32_t refuse_end(nr_program *program, const char *why) {
    nr_program_refuse(program, why);
    return NORCH_ERROR_CAPTURE;
}

/* Whether an address lies among the elements of x. */
static bool within(const norch_tensor *x, const char *address) {
    const char *low = x->data, *high = low;
    if (!x->numel) return address == low; /* a product of no rows has the address, and reads nothing */
    for (int32_t d = 0; d < x->ndim; d++) {
        const int64_t reach = (x->shape[d] - 1) * x->strides[d] * nr_size_of(x->dtype);
        *(reach > 0 ? &high : &low) += reach;
    }
    return address >= low && address < high + nr_size_of(x->dtype);
}

static int32_t name_blocks(nr_program *program, int32_t arguments, const norch_tensor *const *argument, int32_t results,
                           const norch_tensor *const *result, int32_t early) {
    for (int32_t i = 0; i < results; i++) {
        const int32_t found = nr_program_find(program, result[i]->storage);
        if (found < 0) continue;
        program->blocks[found].results++;
        program->blocks[found].early += i < early;
    }
    for (int64_t i = 0; i < program->block_count; i++) {
        nr_block *block = &program->blocks[i];
        if (block->storage && block->storage->observer == &program->observer) /* not of a recording that is paused */
            block->storage->observer = NULL;
        if (block->external) {
            block->kind = NR_EXTERNAL;
        } else if (!block->storage) {
            block->kind = block->constant && !block->written ? NR_CONSTANT : NR_TEMPORARY;
        } else if ((block->results == block->storage->references || (program->divided && block->results)) &&
                   !block->constant) { /* between the parts any code may hold results of the first */
            block->kind = NR_RESULT;
            block->storage = NULL; /* it stays with the caller; runs write to the arena */
            block->died = program->count;
        } else {
            block->kind = NR_KEPT;
            atomic_fetch_add_explicit(&block->storage->references, 1, memory_order_relaxed);
        }
        if (program->divided && block->kind == NR_KEPT && block->written)
            return refuse_end(program, "a tensor that it makes is kept elsewhere; return it");
        if (block->constant && block->written)
            return refuse_end(program, "a tensor made of Python's numbers is written to; copy it with clone() first");
    }
    for (int32_t a = 0; a < arguments; a++) {
        const int32_t found = nr_program_find(program, argument[a]->storage);
        if (found >= 0) program->blocks[found].kind = NR_ARGUMENT;
    }
    return NORCH_OK;
}

/* Makes addresses in the storage of an argument relative to the argument that contains them. */
static int32_t relate(nr_program *program, int32_t arguments, const norch_tensor *const *argument) {
    for (int64_t u = 0; u < program->use_count; u++) {
        nr_use *use = &program->uses[u];
        nr_block *block = &program->blocks[use->block];
        if (block->kind != NR_ARGUMENT) continue;
        int32_t owner = -1;
        for (int32_t a = 0; a < arguments && owner < 0; a++)
            if (argument[a]->storage == block->storage && within(argument[a], *use->at)) owner = a;
        if (owner < 0) return refuse_end(program, "an argument is used beyond its elements");
        use->offset = (char *)*use->at - (char *)argument[owner]->data;
        use->block = -1 - owner;
    }
    for (int64_t u = 0; u < program->use_count; u++) program->binding_count += program->uses[u].block < 0;
    program->bindings = nr_malloc((size_t)program->binding_count * sizeof *program->bindings);
    if (!program->bindings) return nr_fail(NORCH_ERROR_MEMORY, "capture: out of memory for the recording");
    for (int64_t u = 0, to = 0; u < program->use_count; u++)
        if (program->uses[u].block < 0) program->bindings[to++] = program->uses[u];
    return NORCH_OK;
}

/* Refuses writes to an argument, and writes of the second part, the gradient, to external memory. */
static int32_t check_parts(nr_program *program) {
    for (int64_t s = 0; s < program->count; s++)
        for (int64_t u = program->instrs[s].first_use; u < program->instrs[s].first_use + program->instrs[s].uses;
             u++) {
            const nr_use *use = &program->uses[u];
            if (!use->written) continue;
            if (use->block < 0) return refuse_end(program, "it writes into an argument; write into a clone()");
            if (s >= program->split && program->blocks[use->block].kind == NR_EXTERNAL)
                return refuse_end(program, "its gradient writes into a tensor that was there before");
        }
    return NORCH_OK;
}

/* Adds to the hashes of each instruction what its addresses refer to, for comparisons with other recordings. */
static void name_uses(nr_program *program) {
    for (int64_t s = 0; s < program->count; s++) {
        nr_instr *instr = &program->instrs[s];
        instr->flow = instr->digest;
        for (int64_t u = instr->first_use; u < instr->first_use + instr->uses; u++) {
            const nr_use *use = &program->uses[u];
            const nr_block *block = use->block < 0 ? NULL : &program->blocks[use->block];
            const bool there = block && block->kind == NR_EXTERNAL;
            const int64_t name[] = {use->offset, block ? (int64_t)block->kind : -1,
                                    there ? (int64_t)(intptr_t)block->data : use->block};
            hash(&instr->digest, name, sizeof name);
            hash(&instr->flow, name, there ? 2 * sizeof *name : sizeof name);
            if (!block || !block->constant) continue;
            hash(&instr->digest, block->constant, block->bytes);
            hash(&instr->flow, block->constant, block->bytes);
        }
    }
}

/* Finds the results that runs can write into new memory, and lists their uses. It excludes those that one part gives
 * and the other uses, and those on a device, as addresses in graphs are fixed. */
static int32_t find_fresh(nr_program *program) {
    if (program->backend && program->backend->device) return NORCH_OK;
    for (int64_t b = 0; b < program->block_count; b++) {
        nr_block *block = &program->blocks[b];
        const bool of_first = block->early == block->results && block->last < program->split;
        const bool of_second = !block->early && block->first >= program->split;
        block->fresh = block->kind == NR_RESULT && (of_first || of_second);
    }
    for (int64_t u = 0; u < program->use_count; u++)
        program->fresh_count += program->uses[u].block >= 0 && program->blocks[program->uses[u].block].fresh;
    program->fresh = nr_malloc((size_t)program->fresh_count * sizeof *program->fresh);
    if (!program->fresh) return nr_fail(NORCH_ERROR_MEMORY, "capture: out of memory for the recording");
    int64_t to = 0;
    for (int64_t b = 0; b < program->block_count; b++) {
        if (!program->blocks[b].fresh) continue;
        program->blocks[b].first_fresh = to;
        for (int64_t u = 0; u < program->use_count; u++)
            if (program->uses[u].block == b) program->fresh[to++] = program->uses[u];
    }
    return NORCH_OK;
}

static int32_t place(nr_program *program) {
    nr_program_find_dead(program);
    NR_TRY(nr_program_fold_constants(program));
    if (program->fuses) nr_program_lower(program);
    size_t bytes = nr_program_place_blocks(program);
    for (int reorders = 1; program->fuses && reorders >= 0; reorders--) {
        nr_program_fuse(program, reorders);
        const size_t fused = nr_program_place_blocks(program);
        if (fused <= bytes) {
            bytes = fused;
            break;
        }
        nr_program_unfuse(program); /* a chain lengthens lives, so that fewer blocks share memory */
        bytes = nr_program_place_blocks(program);
    }
    const nr_backend *backend = NULL; /* of the arena */
    for (int64_t i = 0; i < program->block_count; i++) {
        const nr_block *block = &program->blocks[i];
        if (!nr_in_arena(block)) continue;
        if (backend && backend != block->backend)
            return refuse_end(program, "it computes on two devices; move its tensors to one of them before the call");
        backend = block->backend;
    }
    if (bytes && !(program->arena = nr_storage_make(backend, bytes))) return NORCH_ERROR_MEMORY;
    for (int64_t u = 0; u < program->use_count; u++) {
        const nr_use *use = &program->uses[u];
        const nr_block *block = use->block < 0 ? NULL : &program->blocks[use->block];
        if (!block || block->kind == NR_EXTERNAL || block->kind == NR_KEPT || block->in_buffer || block->fresh)
            continue;
        if (block->kind != NR_CONSTANT && block->last < 0) continue; /* of a dead call */
        char *data = block->kind == NR_CONSTANT ? block->constant : (char *)program->arena->data + block->at;
        *use->at = data + use->offset;
    }
    for (int64_t i = 0; i < program->count; i++) nr_program_choose_run(&program->instrs[i]);
    return NORCH_OK;
}

int32_t nr_program_finish(nr_program *program, int32_t arguments, const norch_tensor *const *argument, int32_t results,
                          const norch_tensor *const *result, int32_t early, bool fresh) {
    NR_TRY(name_blocks(program, arguments, argument, results, result, early));
    if (program->refusal[0]) return refuse_end(program, program->refusal);
    NR_TRY(relate(program, arguments, argument));
    if (!program->divided)
        program->split = program->count;
    else
        NR_TRY(check_parts(program));
    name_uses(program);
    if (fresh) NR_TRY(find_fresh(program));
    program->arguments = nr_malloc((size_t)arguments * sizeof *program->arguments);
    if (!program->arguments) return nr_fail(NORCH_ERROR_MEMORY, "capture: out of memory for the recording");
    for (int32_t a = 0; a < arguments; a++) {
        const norch_tensor *x = argument[a];
        program->arguments[a] = (nr_argument){
            .data = x->data, .backend = x->storage->backend, .numel = x->contiguous ? x->numel : 0, .dtype = x->dtype};
    }
    program->argument_count = arguments;
    return place(program);
}

int64_t nr_program_differs(const nr_program *a, const nr_program *b, bool loosely) {
    for (int64_t i = 0; i < a->count && i < b->count; i++) {
        const nr_instr *x = &a->instrs[i], *y = &b->instrs[i];
        if (loosely ? x->flow != y->flow : x->digest != y->digest) return i;
    }
    if (a->count == b->count) return -1;
    return a->count < b->count ? a->count : b->count;
}

void nr_program_free(nr_program *program) {
    if (program->refused_line) program->forget_line(program->refused_line);
    for (int64_t i = 0; i < program->count; i++) {
        nr_instr *instr = &program->instrs[i];
        nr_free((void *)(uintptr_t)instr->call.plan);
        nr_free(instr->items);
        nr_free(instr->chain);
        nr_lowered_free(instr->lowered);
        if (instr->line) program->forget_line(instr->line);
    }
    for (int64_t i = 0; i < program->block_count; i++) {
        nr_block *block = &program->blocks[i];
        if (block->storage && !block->external && block->storage->observer == &program->observer)
            block->storage->observer = NULL; /* still recording */
        else if (block->storage)
            nr_storage_release(block->storage);
        nr_free(block->constant);
    }
    nr_program_free_graphs(program);
    if (program->slots) nr_storage_release(program->slots);
    nr_free(program->slot_bytes);
    nr_free(program->feeds);
    if (program->arena) nr_storage_release(program->arena);
    nr_free(program->images);
    nr_free(program->instrs);
    nr_free(program->uses);
    nr_free(program->bindings);
    nr_free(program->fresh);
    nr_free(program->blocks);
    for (int32_t a = 0; a < program->argument_count; a++)
        if (program->arguments[a].copy) nr_storage_release(program->arguments[a].copy);
    nr_free(program->arguments);
    nr_free(program);
}
