/* pinned: pinned memory of the host, for asynchronous copies to devices, and copies of pageable memory by way of it.
 *
 *   cudaHostAlloc --> in use --> leaving, while a device may read it --> waiting[class] --> in use, or cudaFreeHost
 *                        |           an event after each copy ends that        ^
 *                        +------------- no device was given a copy ------------+
 *
 * Allocating and freeing such memory is slow in CUDA and blocks every device meanwhile. So freed memory waits in size
 * classes for its next use, as in PyTorch's CachingHostAllocator. Before that, memory that a device may still read
 * waits for the events that follow the last copies from it, one a stream. */
#include "cuda.cuh"

#include <mutex>
#include <new>
#include <vector>

#define SMALLEST 4096
#define CLASSES 208 /* four a power of two, up to what 64 bits count */

/* A stream with copies from a block, and the event behind the last copy. */
struct reader {
    const nr_gpu *gpu;
    int stream;
    cudaEvent_t event;
};

struct pinned {
    pinned *next;
    void *memory;
    size_t bytes;
    int size_class;
    std::vector<reader> readers;
};

static std::mutex lock;
static pinned *waiting[CLASSES];
static pinned *leaving, **last = &leaving; /* what devices may still read, in the order in which it was given back */
static int64_t in_use, held, allocated;

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

/* Whether no copy reads the block any more; wait: waits until then, unless the device is lost. */
static bool is_read(pinned *b, bool wait) {
    while (!b->readers.empty()) {
        cudaEvent_t event = b->readers.back().event;
        const cudaError_t answer = wait ? cudaEventSynchronize(event) : cudaEventQuery(event);
        cudaGetLastError();
        if (answer == cudaErrorNotReady) return false;
        cudaEventDestroy(event);
        b->readers.pop_back();
    }
    return true;
}

/* Keeps blocks that no copy reads any more; wait: all blocks that are leaving. */
static void collect(bool wait) {
    while (leaving && is_read(leaving, wait)) {
        pinned *b = leaving;
        leaving = b->next;
        if (!leaving) last = &leaving;
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
    if (b && error == cudaErrorMemoryAllocation) { /* the missing memory may be in the cache */
        cudaGetLastError();
        collect(true);
        release_waiting();
        error = cudaHostAlloc(&b->memory, n, cudaHostAllocDefault);
    }
    if (error == cudaSuccess) {
        b->bytes = n;
        b->size_class = size_class;
        held += (int64_t)n;
        allocated++;
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
    const int size_class = nr_size_class(&n, SMALLEST);
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

/* If no event can be created, waits for the copy. */
void nr_cuda_reads_pinned(const nr_backend *self, void *block) {
    const nr_gpu *gpu = reinterpret_cast<const nr_gpu *>(self);
    pinned *b = static_cast<pinned *>(block);
    const int stream = gpu->stream.number();
    entered there(gpu);
    std::lock_guard<std::mutex> guard(lock);
    cudaEvent_t event = nullptr;
    for (const reader &one : b->readers)
        if (one.gpu == gpu && one.stream == stream) event = one.event;
    const bool is_new = !event;
    if (is_new && cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess) event = nullptr;
    bool noted = event && cudaEventRecord(event, gpu->streams[stream]) == cudaSuccess;
    if (noted && is_new) {
        try {
            b->readers.push_back({gpu, stream, event});
        } catch (const std::bad_alloc &) {
            noted = false;
        }
    }
    if (noted) return;
    cudaStreamSynchronize(gpu->streams[stream]);
    if (event && is_new) cudaEventDestroy(event);
    cudaGetLastError();
}

void nr_cuda_unpin(void *block) {
    if (nr_forked) return;
    pinned *b = static_cast<pinned *>(block);
    std::lock_guard<std::mutex> guard(lock);
    in_use -= (int64_t)b->bytes;
    if (b->readers.empty())
        keep(b);
    else
        leave(b);
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
    values[2] = allocated;
}

/* ---- copies of what is not pinned ------------------------------------------------------------------------------
 *
 *   host      [ piece 0 | piece 1 | piece 2 | ...    threads of the host bring a piece into one of two pinned blocks
 *   pinned    [    A    |    B    ]                  while the device copies from the other
 *
 * CUDA does the same with one thread. */

#define PIECE ((size_t)4 << 20)
#define CHUNK ((size_t)1 << 20) /* of a piece, for one thread: on an H100 with 16 cores four did best */

struct piece {
    char *to;
    const char *from;
    size_t bytes;
};

static void copy_chunk(void *context, int64_t chunk) {
    const piece &p = *static_cast<const piece *>(context);
    const size_t at = (size_t)chunk * CHUNK;
    memcpy(p.to + at, p.from + at, p.bytes - at < CHUNK ? p.bytes - at : CHUNK);
}

int32_t nr_cuda_copy_staged(const nr_gpu *gpu, void *device, const void *host, size_t n) {
    void *blocks[2] = {}, *memory[2] = {};
    cudaError_t error = cudaSuccess;
    for (size_t at = 0, k = 0; at < n && error == cudaSuccess; at += PIECE, k ^= 1) {
        if (!blocks[k])
            blocks[k] = nr_cuda_pinned(&gpu->backend, PIECE, &memory[k]);
        else
            is_read(static_cast<pinned *>(blocks[k]), true);
        const size_t bytes = n - at < PIECE ? n - at : PIECE;
        piece p = {static_cast<char *>(memory[k]), static_cast<const char *>(host) + at, bytes};
        const char *from = p.from; /* without pinned memory CUDA stages the piece */
        if (blocks[k]) {
            nr_library->share((int64_t)((bytes + CHUNK - 1) / CHUNK), copy_chunk, &p);
            from = p.to;
        }
        error = cudaMemcpyAsync(static_cast<char *>(device) + at, from, bytes, cudaMemcpyHostToDevice, gpu->stream);
        if (blocks[k]) nr_cuda_reads_pinned(&gpu->backend, blocks[k]);
    }
    for (void *block : blocks)
        if (block) nr_cuda_unpin(block);
    TRY("copy to the device", error);
    return NORCH_OK;
}
