/* packed: see packed.h. The list, and the ranges of memory, are changed and read with the interpreter's lock held;
 * numbers are packed in the middle of runs, without it, and have a lock of their own. */
#include "packed.h"

#include <pthread.h>
#include <string.h>

#include "../core/dispatch.h"
#include "../core/error.h"
#include "../core/memory.h"
#include "../core/platform.h"
#include "../families/quantized.h"
#include "plans.h"
#include "program.h"

struct nr_packed {
    nr_packed *next;
    norch_storage *storage[2];   /* of the weight, and NULL; or of its integers, and of their scales */
    const void *weight;          /* or its integers */
    nr_quantized_plan quantized; /* computes the weight, if there are scales */
    /* For a convolution: groups, channels of each, kernel; for a product: sizes and strides. Then k, groups and bits of
     * integers. */
    int64_t shape[8];
    int64_t references, version;
    _Atomic int64_t asked; /* the version at the last query of a product */
    size_t bytes;
    float *numbers;
};

static nr_packed *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void forget_lock(void) { pthread_mutex_init(&lock, NULL); }
__attribute__((constructor)) static void watch_forks(void) { nr_at_fork(NULL, NULL, forget_lock); }

/* ---- writes --------------------------------------------------------------------------------------------- */

/* The storages of packed weights, sorted by address; they do not overlap. One is listed for each of its weights. */
typedef struct range {
    const char *from, *to;
    norch_storage *storage;
} range;
static range *ranges;
static int64_t range_count, range_capacity;

/* The number of ranges that begin at an address or before it. */
static int64_t ranges_up_to(const char *address) {
    int64_t low = 0, high = range_count;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (ranges[middle].from <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool add_range(norch_storage *storage) {
    if (storage->release) return true; /* memory of others may overlap; it is exposed */
    if (!nr_grow(&ranges, range_count, &range_capacity, sizeof *ranges)) return false;
    const char *from = storage->data;
    const int64_t at = ranges_up_to(from);
    memmove(ranges + at + 1, ranges + at, (size_t)(range_count++ - at) * sizeof *ranges);
    ranges[at] = (range){from, from + storage->bytes, storage};
    return true;
}

static void drop_range(const norch_storage *storage) {
    const int64_t at = ranges_up_to(storage->data) - 1;
    if (at < 0 || ranges[at].storage != storage) return;
    memmove(ranges + at, ranges + at + 1, (size_t)(--range_count - at) * sizeof *ranges);
}

static void note_write(void *context, void **at, bool written) {
    (void)context;
    const char *address = *at;
    const int64_t found = written ? ranges_up_to(address) - 1 : -1;
    if (found >= 0 && address < ranges[found].to)
        atomic_fetch_add_explicit(&ranges[found].storage->writes, 1, memory_order_release);
}

static void note_call(const nr_call *call) {
    if (call->backend->device_type != NORCH_CPU) return;
    nr_plan_visit(call, (void *)(uintptr_t)call->plan, &(nr_plan_visitor){.address = note_write});
}

void nr_packed_note_run(const nr_program *program) {
    for (int64_t s = program->from; all && s < program->to; s++)
        for (int64_t u = program->instrs[s].first_use; u < program->instrs[s].first_use + program->instrs[s].uses;
             u++) {
            const nr_use *use = &program->uses[u];
            if (!nr_is_private(program, use->block)) note_write(NULL, use->at, use->written);
        }
}

/* ---- the list ------------------------------------------------------------------------------------------- */

/* The weight of a call, and its shape. The shape of a product begins with 0, or with -1 for one row. */
static const void *weight_of(const nr_call *call, int64_t shape[5]) {
    if (call->family == NR_MATMUL) {
        const nr_matmul_plan *p = call->plan;
        memcpy(shape, (const int64_t[5]){p->m == 1 ? -1 : 0, p->k, p->n, p->b_row, p->b_col}, 5 * sizeof *shape);
        return p->b;
    }
    const nr_conv_plan *p = call->plan;
    memcpy(shape, (const int64_t[5]){p->groups, p->out, p->in, p->kernel[0], p->kernel[1]}, 5 * sizeof *shape);
    return p->weight;
}

static bool add_ranges(norch_storage *const storage[2]) {
    if (!add_range(storage[0])) return false;
    if (!storage[1] || add_range(storage[1])) return true;
    drop_range(storage[0]);
    return false;
}

nr_packed *nr_packed_share(norch_storage *const storage[2], const nr_call *call, const nr_call *quantized) {
    int64_t shape[8] = {0};
    const void *weight = weight_of(call, shape);
    nr_quantized_plan plan = {0};
    if (quantized) {
        plan = *(const nr_quantized_plan *)quantized->plan;
        weight = plan.weight;
        memcpy(shape + 5, (const int64_t[3]){plan.k, plan.groups, plan.bits}, 3 * sizeof *shape);
    }
    const size_t bytes = (size_t)call->backend->layers->packed_size(call) * sizeof(float);
    nr_packed *packed = all;
    while (packed && (packed->weight != weight || packed->quantized.scale != plan.scale || packed->bytes != bytes ||
                      memcmp(packed->shape, shape, sizeof shape)))
        packed = packed->next;
    if (packed) {
        packed->references++;
        return packed;
    }
    if (!(packed = nr_malloc(sizeof *packed))) return NULL;
    if (!add_ranges(storage)) {
        nr_free(packed);
        return NULL;
    }
    *packed = (nr_packed){.storage = {nr_storage_retain(storage[0]), storage[1] ? nr_storage_retain(storage[1]) : NULL},
                          .weight = weight,
                          .quantized = plan,
                          .references = 1,
                          .version = -1,
                          .asked = -1};
    memcpy(packed->shape, shape, sizeof shape);
    packed->bytes = bytes;
    packed->next = all;
    all = packed;
    nr_watch_call = note_call;
    return packed;
}

void nr_packed_release(nr_packed *packed) {
    if (--packed->references) return;
    nr_packed **at = &all;
    while (*at != packed) at = &(*at)->next;
    *at = packed->next;
    if (!all) nr_watch_call = NULL;
    const nr_backend *backend = packed->storage[0]->backend;
    if (packed->numbers) backend->free(backend, packed->numbers, packed->bytes);
    for (int i = 0; i < 2 && packed->storage[i]; i++) {
        drop_range(packed->storage[i]);
        nr_storage_release(packed->storage[i]);
    }
    nr_free(packed);
}

static bool is_exposed(const nr_packed *packed) {
    bool exposed = false;
    for (int i = 0; i < 2 && packed->storage[i]; i++)
        exposed |= atomic_load_explicit(&packed->storage[i]->exposed, memory_order_relaxed);
    return exposed;
}

/* Grows with each write. */
static int64_t version_of(const nr_packed *packed) {
    int64_t writes = 0;
    for (int i = 0; i < 2 && packed->storage[i]; i++)
        writes += atomic_load_explicit(&packed->storage[i]->writes, memory_order_acquire);
    return writes;
}

bool nr_packed_is_settled(nr_packed *packed) {
    if (is_exposed(packed)) return false;
    const int64_t version = version_of(packed);
    return atomic_exchange_explicit(&packed->asked, version, memory_order_relaxed) == version;
}

static float *allocate(const nr_backend *backend, size_t bytes) {
    float *memory = nr_allocation_fails() ? NULL : backend->alloc(backend, bytes);
    if (!memory) nr_fail(NORCH_ERROR_MEMORY, "capture: no memory for %zu bytes of a packed weight", bytes);
    return memory;
}

/* Computes the weight from its integers, and packs it. */
static int32_t pack_quantized(const nr_packed *packed, const nr_call *call) {
    const nr_backend *backend = call->backend;
    nr_quantized_plan plan = packed->quantized;
    nr_conv_plan conv = *(const nr_conv_plan *)call->plan;
    const size_t bytes = (size_t)(plan.n * plan.k) * sizeof(float);
    float *weight = allocate(backend, bytes);
    if (!weight) return NORCH_ERROR_MEMORY;
    plan.y = conv.weight = weight;
    const int32_t status = backend->run[NR_QUANTIZED](&(nr_call){
        .family = NR_QUANTIZED, .op = NR_QUANTIZED_WEIGHT, .dtype = NORCH_FLOAT32, .plan = &plan, .backend = backend});
    nr_call of_floats = *call;
    of_floats.plan = &conv;
    if (status == NORCH_OK) backend->layers->pack(&of_floats, packed->numbers);
    backend->free(backend, weight, bytes);
    return status;
}

static int32_t pack(const nr_packed *packed, const nr_call *call) {
    if (packed->storage[1]) return pack_quantized(packed, call);
    call->backend->layers->pack(call, packed->numbers);
    return NORCH_OK;
}

const float *nr_packed_numbers(nr_packed *packed, const nr_call *call) {
    pthread_mutex_lock(&lock);
    const int64_t version = version_of(packed);
    if (!packed->numbers) packed->numbers = allocate(call->backend, packed->bytes);
    int32_t status = packed->numbers ? NORCH_OK : NORCH_ERROR_MEMORY;
    if (status == NORCH_OK && (is_exposed(packed) || version != packed->version)) {
        status = pack(packed, call);
        packed->version = status == NORCH_OK ? version : -1;
    }
    pthread_mutex_unlock(&lock);
    return status == NORCH_OK ? packed->numbers : NULL;
}
