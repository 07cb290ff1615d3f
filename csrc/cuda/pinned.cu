/* pinned: memory of the host that devices copy from while the program goes on.
 *
 *   cudaHostAlloc --> in use --> leaving, while a device may read it --> waiting[class] --> in use, or cudaFreeHost
 *                        |           an event in its stream ends that          ^
 *                        +------------- no device was given a copy ------------+
 *
 * Allocating and freeing such memory is slow in CUDA and blocks every device meanwhile. So what is given back
 * waits in size classes for its next use, as PyTorch's CachingHostAllocator has it; and before that, where a device may
 * still read it, until an event in the stream of that device has passed. */
#include "cuda.cuh"

#include <atomic>
#include <mutex>
#include <new>

#define SMALLEST 4096
#define CLASSES 208 /* four a power of two, up to what 64 bits count */

struct pinned {
    pinned *next;
    void *memory;
    size_t bytes;
    int size_class;
    std::atomic<uint64_t> readers; /* a bit for each device that was given a copy from it */
    cudaEvent_t event;             /* when it is given back: what tells that the first of them has come this far */
};

static std::mutex lock;
static pinned *waiting[CLASSES];
static pinned *leaving, **last = &leaving; /* what devices may still read, in the order in which it was given back */
static int64_t in_use, held, made;

static void destroy(pinned *b) {
    held -= (int64_t)b->bytes;
    cudaFreeHost(b->memory);
    cudaGetLastError();
    delete b;
}

static void keep(pinned *b) {
    if (!nr_caching) return destroy(b);
    b->next = waiting[b->size_class];
    waiting[b->size_class] = b;
}

static void leave(pinned *b) {
    b->next = nullptr;
    *last = b;
    last = &b->next;
}

/* Lets the first of its readers tell when it has come this far; false where there is none. */
static bool ask(pinned *b) {
    for (uint64_t readers; (readers = b->readers) != 0; b->readers = readers & (readers - 1)) {
        const nr_gpu *gpu = &nr_gpus[__builtin_ctzll(readers)];
        entered there(gpu);
        if (cudaEventCreateWithFlags(&b->event, cudaEventDisableTiming) == cudaSuccess) {
            if (cudaEventRecord(b->event, gpu->stream) == cudaSuccess) return true;
            cudaEventDestroy(b->event);
        }
        cudaStreamSynchronize(gpu->stream);
        cudaGetLastError();
    }
    return false;
}

/* Keeps what nothing reads any more; wait: all that is leaving. Of a device that is lost nothing is waited for. */
static void collect(bool wait) {
    while (pinned *b = leaving) {
        const cudaError_t answer = wait ? cudaEventSynchronize(b->event) : cudaEventQuery(b->event);
        cudaGetLastError();
        if (answer == cudaErrorNotReady) return;
        cudaEventDestroy(b->event);
        leaving = b->next;
        if (!leaving) last = &leaving;
        const uint64_t readers = b->readers;
        b->readers = readers & (readers - 1);
        if (ask(b))
            leave(b);
        else
            keep(b);
    }
}

static void release_waiting() {
    for (pinned *&first : waiting)
        while (pinned *b = first) {
            first = b->next;
            destroy(b);
        }
}

static pinned *make(size_t n, int size_class) {
    pinned *b = nr_library->allocation_fails() ? nullptr : new (std::nothrow) pinned();
    cudaError_t error = b ? cudaHostAlloc(&b->memory, n, cudaHostAllocDefault) : cudaErrorMemoryAllocation;
    if (b && error == cudaErrorMemoryAllocation) { /* the memory missing may be in the cache */
        cudaGetLastError();
        collect(true);
        release_waiting();
        error = cudaHostAlloc(&b->memory, n, cudaHostAllocDefault);
    }
    if (error == cudaSuccess) {
        b->bytes = n;
        b->size_class = size_class;
        held += (int64_t)n;
        made++;
        return b;
    }
    cudaGetLastError();
    delete b;
    if (error == cudaErrorMemoryAllocation)
        nr_library->fail(NORCH_ERROR_MEMORY,
                         "pin_memory: out of memory for %zu bytes that can be pinned: tensors hold %lld", n,
                         (long long)in_use);
    else
        nr_cuda_fail("pin_memory", error);
    return nullptr;
}

void *nr_cuda_pinned(const nr_backend *self, size_t n, void **memory) {
    if (nr_cuda_enter(self) != NORCH_OK) return nullptr;
    const int size_class = nr_cuda_size_class(&n, SMALLEST);
    std::lock_guard<std::mutex> guard(lock);
    collect(false);
    pinned *b = waiting[size_class];
    if (b)
        waiting[size_class] = b->next;
    else if (!(b = make(n, size_class)))
        return nullptr;
    in_use += (int64_t)n;
    *memory = b->memory;
    return b;
}

void nr_cuda_reads_pinned(const nr_backend *self, void *block) {
    static_cast<pinned *>(block)->readers |= (uint64_t)1 << self->device_index;
}

void nr_cuda_unpin(void *block) {
    if (nr_forked) return;
    pinned *b = static_cast<pinned *>(block);
    std::lock_guard<std::mutex> guard(lock);
    in_use -= (int64_t)b->bytes;
    if (ask(b))
        leave(b);
    else
        keep(b);
}

void nr_cuda_empty_pinned() {
    std::lock_guard<std::mutex> guard(lock);
    collect(false);
    release_waiting();
}

void nr_cuda_pinned_counts(int64_t *values) {
    std::lock_guard<std::mutex> guard(lock);
    values[0] = in_use;
    values[1] = held;
    values[2] = made;
}
