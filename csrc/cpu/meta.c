/* meta: the device "meta", whose tensors have no memory. ops/ infers shapes, strides and dtypes before it dispatches,
 * so that a call of this backend does nothing. It has the tables of the CPU's backend, and refuses the same calls. */
#include <pthread.h>
#include <stdatomic.h>

#include "../core/observer.h"
#include "../families/index.h"
#include "cpu.h"

/* Storages get ranges of addresses that no memory has, so that tensors overlap where they would on the CPU. */
#define FIRST_ADDRESS ((uintptr_t)1 << (8 * sizeof(uintptr_t) - 3))

static void *reserve(const nr_backend *self, size_t n) {
    static _Atomic uintptr_t reserved;
    (void)self;
    const uintptr_t size = ((uintptr_t)n + 64) & ~(uintptr_t)63;
    return (void *)(FIRST_ADDRESS + atomic_fetch_add(&reserved, size) % FIRST_ADDRESS);
}

static void forget(const nr_backend *self, void *memory, size_t n) { (void)self, (void)memory, (void)n; }

static int32_t refuse_read(const nr_backend *self, void *host, const void *device, size_t n) {
    (void)self, (void)host, (void)device, (void)n;
    return nr_fail(NORCH_ERROR_META, "Cannot copy out of meta tensor; no data!");
}

static int32_t ignore_write(const nr_backend *self, void *device, const void *host, size_t n, bool non_blocking) {
    (void)self, (void)device, (void)host, (void)n, (void)non_blocking;
    return NORCH_OK;
}

static int32_t run_nothing(const nr_call *call) {
    if (call->family == NR_INDEXING && call->op == NR_COUNT)
        return nr_fail(NORCH_ERROR_META, "%s: the shape of the result depends on elements, which meta tensors lack",
                       call->name);
    return nr_note_unseen("it computes on meta tensors");
}

static nr_backend backend;

static void fill(void) {
    backend = *nr_cpu_backend();
    backend.name = "meta";
    backend.device_type = NORCH_META;
    backend.alloc = reserve;
    backend.free = forget;
    backend.to_host = refuse_read;
    backend.from_host = ignore_write;
    backend.chains = NULL;
    for (int family = 0; family < NR_FAMILY_COUNT; family++) backend.run[family] = run_nothing;
}

const nr_backend *nr_meta_backend(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill);
    return &backend;
}
