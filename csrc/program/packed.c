/* packed: see packed.h. The list is changed with the interpreter's lock held, which a lock of its own replaces where no
 * interpreter is; numbers are packed in the middle of runs, without it. */
#include "packed.h"

#include <pthread.h>
#include <string.h>

#include "../core/dispatch.h"
#include "../core/error.h"
#include "../core/memory.h"
#include "plans.h"
#include "program.h"

struct nr_packed {
    nr_packed *next;
    norch_storage *storage;
    const void *weight;
    int64_t shape[5]; /* groups, channels of each, kernel */
    int64_t references, version;
    size_t bytes;
    float *numbers;
};

static nr_packed *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void forget_lock(void) { pthread_mutex_init(&lock, NULL); }
__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, forget_lock); }

/* ---- writes --------------------------------------------------------------------------------------------- */

static void note_write(void *context, void **at, bool written) {
    (void)context;
    const char *address = *at;
    for (nr_packed *p = written ? all : NULL; p; p = p->next) {
        const char *data = p->storage->data;
        if (address >= data && address < data + p->storage->bytes)
            atomic_fetch_add_explicit(&p->storage->writes, 1, memory_order_release);
    }
}

static void note_numbers(void *context, const void *at, size_t bytes) { (void)context, (void)at, (void)bytes; }

static void note_call(const nr_call *call) {
    if (call->backend->device_type != NORCH_CPU) return;
    const nr_plan_visitor visitor = {note_write, note_numbers, NULL};
    pthread_mutex_lock(&lock);
    nr_plan_visit(call, (void *)(uintptr_t)call->plan, &visitor);
    pthread_mutex_unlock(&lock);
}

static void note_program(const void *of) {
    const nr_program *program = of;
    pthread_mutex_lock(&lock);
    for (int64_t s = program->from; s < program->to; s++)
        for (int64_t u = program->steps[s].first_use; u < program->steps[s].first_use + program->steps[s].uses; u++) {
            const nr_use *use = &program->uses[u];
            const bool own = use->block >= 0 && program->blocks[use->block].kind != NR_EXTERNAL &&
                             program->blocks[use->block].kind != NR_KEPT;
            if (!own) note_write(NULL, use->at, use->written);
        }
    pthread_mutex_unlock(&lock);
}

/* ---- the list ------------------------------------------------------------------------------------------- */

nr_packed *nr_packed_share(norch_storage *storage, const nr_call *call) {
    const nr_conv_plan *p = call->plan;
    const int64_t shape[5] = {p->groups, p->out, p->in, p->kernel[0], p->kernel[1]};
    nr_packed *packed = all;
    while (packed && (packed->weight != p->weight || memcmp(packed->shape, shape, sizeof shape))) packed = packed->next;
    if (packed) {
        packed->references++;
        return packed;
    }
    if (!(packed = nr_malloc(sizeof *packed))) return NULL;
    *packed = (nr_packed){.storage = nr_storage_retain(storage), .weight = p->weight, .references = 1, .version = -1};
    memcpy(packed->shape, shape, sizeof shape);
    packed->bytes = (size_t)call->backend->layers->packed_size(call) * sizeof(float);
    pthread_mutex_lock(&lock);
    packed->next = all;
    all = packed;
    pthread_mutex_unlock(&lock);
    nr_watch_call = note_call;
    nr_watch_program = note_program;
    return packed;
}

void nr_packed_release(nr_packed *packed) {
    if (--packed->references) return;
    pthread_mutex_lock(&lock);
    nr_packed **at = &all;
    while (*at != packed) at = &(*at)->next;
    *at = packed->next;
    pthread_mutex_unlock(&lock);
    if (!all) nr_watch_call = NULL, nr_watch_program = NULL;
    if (packed->numbers) packed->storage->backend->free(packed->storage->backend, packed->numbers, packed->bytes);
    nr_storage_release(packed->storage);
    nr_free(packed);
}

const float *nr_packed_numbers(nr_packed *packed, const nr_call *call) {
    const norch_storage *storage = packed->storage;
    pthread_mutex_lock(&lock);
    const int64_t version = atomic_load_explicit(&storage->writes, memory_order_acquire);
    const bool exposed = atomic_load_explicit(&storage->exposed, memory_order_relaxed);
    if (!packed->numbers && !nr_allocation_fails())
        packed->numbers = storage->backend->alloc(storage->backend, packed->bytes);
    if (!packed->numbers) {
        pthread_mutex_unlock(&lock);
        nr_fail(NORCH_ERROR_MEMORY, "capture: no memory for %zu bytes of a packed weight", packed->bytes);
        return NULL;
    }
    if (exposed || version != packed->version) {
        call->backend->layers->pack(call, packed->numbers);
        packed->version = version;
    }
    pthread_mutex_unlock(&lock);
    return packed->numbers;
}
