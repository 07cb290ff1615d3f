/* cuda: the CUDA backend as the library sees it: finding devices and the reason if there are none, memory, copies, and
 * the one runner through which every family is called.
 *
 *   stream       | kernel of a | a is freed | b takes its memory | kernel of b | ...     one a device
 *   600 bytes    their class, 640: waiting -> block -> block                             to LARGEST_KEPT, as in cpu.c
 *   2 MiB        cudaMallocAsync, whose pool keeps what is freed                         above
 *
 * Calls, copies and frees happen in the order of the stream, so freed memory can be used again at once: by the stream
 * in which it was allocated. Memory that other streams use too (nr_device.uses) is freed in a stream that waits for
 * them.
 *
 * Segregated free lists: Wilson, Johnstone, Neely and Boles, "Dynamic Storage Allocation" (1995), 3.6. */
#include "cuda.cuh"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <mutex>
#include <new>
#include <unordered_map>

const nr_host *nr_library;

nr_gpu *nr_gpus;
bool nr_forked;
static bool sync_calls; /* NORCH_SYNC: each call waits for its kernels, so that errors name the call that fails */
static nr_kernel kernels[NR_OP_COUNT][NR_DTYPE_COUNT];

/* ---- errors ---------------------------------------------------------------------------------------------- */

int32_t nr_cuda_fail(const char *op, cudaError_t error) {
    cudaGetLastError(); /* clears an error that does no lasting damage */
    if (error == cudaErrorMemoryAllocation)
        return nr_library->fail(NORCH_ERROR_MEMORY, "%s: out of memory on the CUDA device", op);
    if (error == cudaErrorIllegalAddress || error == cudaErrorLaunchFailure)
        return nr_library->fail(NORCH_ERROR_DEVICE,
                                "%s: an earlier operation, or this one, failed on the CUDA device: %s. What the device "
                                "held is lost; NORCH_SYNC=1 names the operation",
                                op, cudaGetErrorString(error));
    if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorUnsupportedPtxVersion) {
        cudaDeviceProp found;
        int index = 0;
        if (cudaGetDevice(&index) == cudaSuccess && cudaGetDeviceProperties(&found, index) == cudaSuccess)
            return nr_library->fail(NORCH_ERROR_DEVICE,
                                    "%s: this build of norch has no code that cuda:%d (%s) runs: %s; "
                                    "build it with `make cuda CUDA_ARCHS=%d%d`",
                                    op, index, found.name, cudaGetErrorString(error), found.major, found.minor);
    }
    return nr_library->fail(NORCH_ERROR_DEVICE, "%s: failed on the CUDA device: %s", op, cudaGetErrorString(error));
}

static int32_t fork_error() {
    return nr_library->fail(
        NORCH_ERROR_DEVICE,
        "cuda: this process was forked after CUDA was used, and CUDA does not work in such a child; "
        "start it with multiprocessing's \"spawn\", or use CUDA in the child only");
}

int32_t nr_cuda_enter(const nr_backend *self) {
    if (nr_forked) return fork_error();
    static thread_local int current = -1;
    int index = reinterpret_cast<const nr_gpu *>(self)->index;
    if (current == index) return NORCH_OK;
    TRY(self->name, cudaSetDevice(index));
    current = index;
    return NORCH_OK;
}

static const char *const family_names[] = {
#define FAMILY(NAME, name, label, traits) label,
#include "../families.def"
};

const char *nr_call_name(const nr_call *call) {
    if (call->name) return call->name;
    if (call->family == NR_POINTWISE || call->family == NR_REDUCTION) return nr_library->ops[call->op].name;
    return family_names[call->family];
}

/* ---- memory ------------------------------------------------------------------------------------------------- */

/* Blocks up to LARGEST_KEPT wait in classes, four a power of two. */
#define SMALLEST 512
#define LARGEST_KEPT ((size_t)1 << 20)
#define CLASSES 48

struct block {
    block *next;
    void *memory;
};

/* For a block that was not allocated in stream 0, or that other streams use too. */
struct owner {
    int stream;
    uint64_t users; /* a bit a stream */
};

/* The memory of a device. The list nodes are in host memory: device memory cannot hold them. */
struct pool {
    std::mutex lock;
    block *waiting[NR_MOST_STREAMS][CLASSES], *spare; /* of each stream */
    int64_t waiting_bytes, in_use, peak;
    size_t total; /* of the device */
    std::unordered_map<void *, owner> owners;
    cudaStream_t last; /* what several streams use is freed here, after an event of each; made when it is needed */
    cudaEvent_t event;
};
static pool *pools;
bool nr_caching = true;

static pool &pool_of(const nr_backend *self) { return pools[self->device_index]; }

/* Rounds n up to its class; -1 if it has none. */
static int size_class(size_t *n) {
    if (*n <= LARGEST_KEPT) return nr_size_class(n, SMALLEST);
    *n = (*n + 511) / 512 * 512;
    return -1;
}

/* Takes a block out of a list. */
static void *pop(pool &p, block *&list) {
    block *b = list;
    list = b->next;
    b->next = p.spare;
    p.spare = b;
    return b->memory;
}

/* Returns all waiting blocks to CUDA's pool. */
static void release_waiting(const nr_gpu *gpu, pool &p) {
    for (int stream = 0; stream < (nr_several_streams ? NR_MOST_STREAMS : 1); stream++)
        for (block *&list : p.waiting[stream])
            while (list) cudaFreeAsync(pop(p, list), gpu->streams[stream]);
    p.waiting_bytes = 0;
}

static void *take(const nr_gpu *gpu, pool &p, size_t n, int c, int stream) {
    if (c >= 0 && p.waiting[stream][c]) {
        p.waiting_bytes -= (int64_t)n;
        return pop(p, p.waiting[stream][c]);
    }
    void *memory = NULL;
    const bool possible = n <= p.total;
    cudaError_t error = possible ? cudaMallocAsync(&memory, n, gpu->streams[stream]) : cudaErrorMemoryAllocation;
    if (possible && error == cudaErrorMemoryAllocation) { /* the missing memory may be in the cache */
        cudaGetLastError();
        release_waiting(gpu, p);
        nr_cuda_wait(gpu);
        error = cudaMallocAsync(&memory, n, gpu->streams[stream]);
    }
    if (error == cudaSuccess) return memory;
    cudaGetLastError();
    if (error != cudaErrorMemoryAllocation) return nr_cuda_fail(gpu->backend.name, error), nullptr;
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    nr_library->fail(NORCH_ERROR_MEMORY,
                     "out of memory for %zu bytes on %s: tensors hold %lld, %zu of %zu are free on the device", n,
                     gpu->backend.name, (long long)p.in_use, free, total);
    return nullptr;
}

/* The owner of a block, with a separate entry; NULL: the host has no memory. */
static owner *entry_of(pool &p, void *memory, int stream) {
    try {
        return &p.owners.insert({memory, {stream, 0}}).first->second;
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

static void *gpu_alloc(const nr_backend *self, size_t n) {
    if (nr_cuda_enter(self) != NORCH_OK) return nullptr;
    const nr_gpu *gpu = reinterpret_cast<const nr_gpu *>(self);
    pool &p = pool_of(self);
    const int c = size_class(&n), stream = gpu->stream.number();
    std::lock_guard<std::mutex> guard(p.lock);
    void *memory = take(gpu, p, n, c, stream);
    if (!memory) return nullptr;
    if (stream != 0 && !entry_of(p, memory, stream)) {
        cudaFreeAsync(memory, gpu->streams[stream]);
        nr_library->fail(NORCH_ERROR_MEMORY, "%s: out of memory on the host", self->name);
        return nullptr;
    }
    p.in_use += (int64_t)n;
    if (p.in_use > p.peak) p.peak = p.in_use;
    return memory;
}

/* Frees a block once all streams that use it have completed their work. */
static void free_after_users(const nr_gpu *gpu, pool &p, void *memory, const owner &entry) {
    entered there(gpu);
    for (uint64_t users = entry.users | (uint64_t)1 << entry.stream; users; users &= users - 1) {
        cudaStream_t user = gpu->streams[__builtin_ctzll(users)];
        if (cudaEventRecord(p.event, user) != cudaSuccess || cudaStreamWaitEvent(p.last, p.event, 0) != cudaSuccess)
            cudaStreamSynchronize(user);
    }
    cudaFreeAsync(memory, p.last);
}

static void gpu_free(const nr_backend *self, void *memory, size_t n) {
    if (!memory || nr_forked) return;
    const nr_gpu *gpu = reinterpret_cast<const nr_gpu *>(self);
    pool &p = pool_of(self);
    const int c = size_class(&n);
    std::lock_guard<std::mutex> guard(p.lock);
    p.in_use -= (int64_t)n;
    owner entry = {0, 0};
    if (!p.owners.empty()) {
        const auto found = p.owners.find(memory);
        if (found != p.owners.end()) {
            entry = found->second;
            p.owners.erase(found);
        }
    }
    if (entry.users) return free_after_users(gpu, p, memory, entry);
    block *b = c < 0 || !nr_caching ? nullptr : p.spare;
    if (b)
        p.spare = b->next;
    else if (c >= 0 && nr_caching)
        b = static_cast<block *>(malloc(sizeof *b));
    if (b) {
        b->memory = memory;
        b->next = p.waiting[entry.stream][c];
        p.waiting[entry.stream][c] = b;
        p.waiting_bytes += (int64_t)n;
        return;
    }
    entered there(gpu);
    cudaFreeAsync(memory, gpu->streams[entry.stream]);
}

static int32_t gpu_uses(const nr_backend *self, void *memory, int64_t stream) {
    NR_TRY(nr_cuda_enter(self));
    const nr_gpu *gpu = reinterpret_cast<const nr_gpu *>(self);
    pool &p = pool_of(self);
    const int number = nr_cuda_stream_number(gpu, stream);
    if (number < 0) return NORCH_ERROR_VALUE;
    std::lock_guard<std::mutex> guard(p.lock);
    if (!p.last) TRY("record_stream", cudaStreamCreateWithFlags(&p.last, cudaStreamNonBlocking));
    if (!p.event) TRY("record_stream", cudaEventCreateWithFlags(&p.event, cudaEventDisableTiming));
    owner *entry = entry_of(p, memory, 0);
    if (!entry) return nr_library->fail(NORCH_ERROR_MEMORY, "record_stream: out of memory on the host");
    if (entry->stream != number) entry->users |= (uint64_t)1 << number;
    return NORCH_OK;
}

void *nr_cuda_scratch(const nr_gpu *gpu, size_t bytes) {
    if (nr_library->allocation_fails()) {
        nr_library->fail(NORCH_ERROR_MEMORY, "out of memory for %zu bytes of scratch on %s", bytes, gpu->backend.name);
        return nullptr;
    }
    if (!nr_capturing) return gpu_alloc(&gpu->backend, bytes);
    void *memory = nullptr;
    const cudaError_t error = cudaMallocAsync(&memory, bytes, gpu->stream);
    if (error != cudaSuccess) nr_cuda_fail("scratch of a graph", error);
    return memory;
}

void nr_cuda_scratch_free(const nr_gpu *gpu, void *memory, size_t bytes) {
    if (nr_capturing)
        cudaFreeAsync(memory, gpu->stream);
    else
        gpu_free(&gpu->backend, memory, bytes);
}

/* ---- copies, waiting ------------------------------------------------------------------------------------------ */

int32_t nr_cuda_raise_reported(const nr_backend *self, const char *name) {
    volatile nr_report *report = reinterpret_cast<const nr_gpu *>(self)->report;
    const int32_t found = report->found;
    report->found = NR_NOTHING;
    if (found == NR_LOST_INDEX && name)
        return nr_library->fail(NORCH_ERROR_INDEX, "%s: index %lld is out of range for size %lld on %s; it was skipped",
                                name, (long long)report->index, (long long)report->size, self->name);
    if (found == NR_UNMET) return nr_cuda_fail_check(self, report->index);
    if (found == NR_NO_PROBABILITY)
        return nr_library->fail(NORCH_ERROR_VALUE,
                                "bernoulli: a probability is not in [0, 1] (an earlier operation on %s)", self->name);
    if (found == NR_LOST_INDEX)
        return nr_library->fail(
            NORCH_ERROR_INDEX,
            "index: index %lld is out of range for size %lld (an earlier operation on %s; it was skipped)",
            (long long)report->index, (long long)report->size, self->name);
    return NORCH_OK;
}

static int32_t gpu_synchronize(const nr_backend *self) {
    NR_TRY(nr_cuda_enter(self));
    TRY(self->name, nr_cuda_wait(reinterpret_cast<const nr_gpu *>(self)));
    return nr_cuda_raise_reported(self, nullptr);
}

static int32_t gpu_to_host(const nr_backend *self, void *host, const void *device, size_t n) {
    NR_TRY(nr_cuda_enter(self));
    const nr_gpu *gpu = reinterpret_cast<const nr_gpu *>(self);
    if (n) TRY("copy to the host", cudaMemcpyAsync(host, device, n, cudaMemcpyDeviceToHost, gpu->stream));
    TRY("copy to the host", cudaStreamSynchronize(gpu->stream));
    return nr_cuda_raise_reported(self, nullptr);
}

#define STAGED ((size_t)1 << 20) /* the bytes from which staging of pageable memory here takes less time than CUDA's */

/* By norch or another library. */
static bool is_pinned(const void *host) {
    cudaPointerAttributes found;
    const cudaError_t error = cudaPointerGetAttributes(&found, host);
    cudaGetLastError();
    return error == cudaSuccess && found.type != cudaMemoryTypeUnregistered;
}

static int32_t gpu_from_host(const nr_backend *self, void *device, const void *host, size_t n, bool non_blocking) {
    NR_TRY(nr_cuda_enter(self));
    const nr_gpu *gpu = reinterpret_cast<const nr_gpu *>(self);
    if (n >= STAGED && !is_pinned(host))
        NR_TRY(nr_cuda_copy_staged(gpu, device, host, n));
    else if (n)
        TRY("copy to the device", cudaMemcpyAsync(device, host, n, cudaMemcpyHostToDevice, gpu->stream));
    if (!non_blocking) TRY("copy to the device", cudaStreamSynchronize(gpu->stream));
    return NORCH_OK;
}

/* ---- what a program may ask ----------------------------------------------------------------------------------- */

static int32_t gpu_properties(const nr_backend *self, char *name, size_t capacity, int64_t *values) {
    NR_TRY(nr_cuda_enter(self));
    cudaDeviceProp found;
    TRY(self->name, cudaGetDeviceProperties(&found, self->device_index));
    snprintf(name, capacity, "%s", found.name);
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
#ifdef CUDASIM
    const int simulated = 1;
#else
    const int simulated = 0;
#endif
    int64_t all[] = {
        (int64_t)found.totalGlobalMem, found.major, found.minor, found.multiProcessorCount, simulated, driver, runtime};
    memcpy(values, all, sizeof all);
    return NORCH_OK;
}

static int32_t gpu_memory(const nr_backend *self, int64_t *values) {
    NR_TRY(nr_cuda_enter(self));
    pool &p = pool_of(self);
    cudaMemPool_t reserve;
    uint64_t reserved = 0, most = 0;
    size_t free = 0, total = 0;
    TRY(self->name, cudaDeviceGetDefaultMemPool(&reserve, self->device_index));
    TRY(self->name, cudaMemPoolGetAttribute(reserve, cudaMemPoolAttrReservedMemCurrent, &reserved));
    TRY(self->name, cudaMemPoolGetAttribute(reserve, cudaMemPoolAttrReservedMemHigh, &most));
    TRY(self->name, cudaMemGetInfo(&free, &total));
    std::lock_guard<std::mutex> guard(p.lock);
    int64_t all[] = {p.in_use, p.peak, (int64_t)reserved, (int64_t)most, (int64_t)free, (int64_t)total};
    memcpy(values, all, sizeof all);
    nr_cuda_pinned_counts(values + sizeof all / sizeof *all);
    return NORCH_OK;
}

static int32_t gpu_reset_peak(const nr_backend *self) {
    NR_TRY(nr_cuda_enter(self));
    pool &p = pool_of(self);
    cudaMemPool_t reserve;
    uint64_t now = 0; /* sets the peak to the current value */
    TRY(self->name, cudaDeviceGetDefaultMemPool(&reserve, self->device_index));
    TRY(self->name, cudaMemPoolSetAttribute(reserve, cudaMemPoolAttrReservedMemHigh, &now));
    std::lock_guard<std::mutex> guard(p.lock);
    p.peak = p.in_use;
    return NORCH_OK;
}

static int32_t gpu_empty_cache(const nr_backend *self) {
    NR_TRY(nr_cuda_enter(self));
    const nr_gpu *gpu = reinterpret_cast<const nr_gpu *>(self);
    {
        pool &p = pool_of(self);
        std::lock_guard<std::mutex> guard(p.lock);
        release_waiting(gpu, p);
    }
    cudaMemPool_t reserve;
    TRY(self->name, nr_cuda_wait(gpu));
    TRY(self->name, cudaDeviceGetDefaultMemPool(&reserve, self->device_index));
    TRY(self->name, cudaMemPoolTrimTo(reserve, 0));
    nr_cuda_empty_pinned();
    return NORCH_OK;
}

/* ---- calls ----------------------------------------------------------------------------------------------------- */

typedef int32_t (*runner)(const nr_call *call);
static const runner families[] = {
#define FAMILY(NAME, name, label, traits) nr_cuda_##name,
#define HOST(NAME, name, label, traits) nullptr, /* never called */
#include "../families.def"
};

static int32_t run(const nr_call *call) {
    NR_TRY(nr_cuda_enter(call->backend));
    NR_TRY(families[call->family](call));
    if (!sync_calls || nr_capturing) return NORCH_OK;
    TRY(nr_call_name(call), cudaStreamSynchronize(gpu_of(call)->stream));
    return nr_cuda_raise_reported(call->backend, nr_call_name(call));
}

/* ---- finding devices ------------------------------------------------------------------------------------------- */

/* The simulation has no driver, but tests set the answers of one. */
#ifdef CUDASIM
static const char *driver_name() { return getenv("NORCH_CUDASIM_DRIVER"); }
#else
static const char *driver_name() { return "libcuda.so.1"; }
#endif

/* CUDA's runtime gives one number for "no driver" and "an old one"; a query of the driver itself distinguishes them. */
static int32_t ask_driver() {
    const char *name = driver_name();
    if (!name) return NORCH_OK;
    void *driver = dlopen(name, RTLD_NOW);
    if (!driver)
        return nr_library->fail(NORCH_ERROR_DEVICE, "cuda: there is no NVIDIA driver here (libcuda.so.1 is missing)");
    int (*version)(int *), (*init)(unsigned), (*count)(int *), found = 0;
    *(void **)&version = dlsym(driver, "cuDriverGetVersion");
    *(void **)&init = dlsym(driver, "cuInit");
    *(void **)&count = dlsym(driver, "cuDeviceGetCount");
    if (!version || !init || !count || version(&found) != 0)
        return nr_library->fail(NORCH_ERROR_DEVICE, "cuda: libcuda.so.1 is not the library of an NVIDIA driver");
    if (found / 1000 < CUDART_VERSION / 1000)
        return nr_library->fail(
            NORCH_ERROR_DEVICE,
            "cuda: the NVIDIA driver is too old: it supports CUDA %d.%d, and this build of norch needs "
            "CUDA %d; install a newer driver, or build norch with an older nvcc",
            found / 1000, found % 1000 / 10, CUDART_VERSION / 1000);
    int devices = 0, status = init(0);
    if (status == 100 || (status == 0 && (count(&devices) != 0 || devices == 0)))
        return nr_library->fail(NORCH_ERROR_DEVICE, "cuda: the NVIDIA driver sees no CUDA device");
    if (status != 0)
        return nr_library->fail(NORCH_ERROR_DEVICE, "cuda: the NVIDIA driver does not start (cuInit gives %d)", status);
    return NORCH_OK;
}

void *nr_cuda_driver_function(const char *name) {
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
    cudaError_t error = cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result);
#else
    cudaError_t error = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
    if (error != cudaSuccess) cudaGetLastError();
    return error == cudaSuccess && result == cudaDriverEntryPointSuccess ? found : nullptr;
}

static const nr_device device_functions = {nr_cuda_enter,   gpu_properties,       gpu_memory,        gpu_reset_peak,
                                           gpu_empty_cache, nr_cuda_stream,       nr_cuda_event,     gpu_uses,
                                           nr_cuda_pinned,  nr_cuda_reads_pinned, nr_cuda_unpin,     nr_cuda_graph,
                                           nr_cuda_slot,    nr_cuda_feed,         nr_cuda_chain_text};

__global__ void nothing() {}

static int32_t prepare(nr_gpu *gpu, int index) {
    static char names[NR_MOST_DEVICES][16];
    snprintf(names[index], sizeof names[index], "cuda:%d", index);
    gpu->index = index;
    nr_backend *b = &gpu->backend;
    b->name = names[index];
    b->device_type = NORCH_CUDA;
    b->device_index = index;
    b->alloc = gpu_alloc;
    b->free = gpu_free;
    b->to_host = gpu_to_host;
    b->from_host = gpu_from_host;
    b->synchronize = gpu_synchronize;
    b->kernels = kernels;
    b->device = &device_functions;
    b->chains = &nr_cuda_chains;
    for (auto &runner : b->run) runner = run;

    TRY(b->name, cudaSetDevice(index));
    cudaDeviceProp found;
    TRY(b->name, cudaGetDeviceProperties(&found, index));
    gpu->multiprocessors = found.multiProcessorCount;
    cudaFuncAttributes code; /* machine code for an older device lacks later instructions */
    TRY(b->name, cudaFuncGetAttributes(&code, nothing));
    gpu->capability = 10 * found.major + found.minor;
    gpu->is_90 = gpu->capability == 90;
    if (code.ptxVersion < gpu->capability) gpu->capability = code.ptxVersion;
    gpu->most_shared = (int)found.sharedMemPerBlockOptin;
    const uint32_t halves = 1u << NORCH_FLOAT16 | 1u << NORCH_BFLOAT16;
    b->takes_narrow[NR_OPTIM] = b->takes_narrow[NR_NORMALIZE] = halves;
    if (gpu->capability >= 80) b->takes_narrow[NR_MATMUL] = b->takes_narrow[NR_CONV] = halves;
    b->fuses_attention = gpu->capability >= 80;
    pools[index].total = found.totalGlobalMem;
    TRY(b->name, cudaStreamCreateWithFlags(&gpu->streams[0], cudaStreamNonBlocking));
    gpu->stream.device = index;
    gpu->stream.all = gpu->streams;
    cudaMemPool_t reserve;
    uint64_t all = UINT64_MAX; /* the pool keeps freed memory */
    TRY(b->name, cudaDeviceGetDefaultMemPool(&reserve, index));
    TRY(b->name, cudaMemPoolSetAttribute(reserve, cudaMemPoolAttrReleaseThreshold, &all));
    void *shared = nullptr, *on_device = nullptr;
    TRY(b->name, cudaHostAlloc(&shared, sizeof(nr_report), cudaHostAllocMapped));
    memset(shared, 0, sizeof(nr_report));
    TRY(b->name, cudaHostGetDevicePointer(&on_device, shared, 0));
    gpu->report = static_cast<nr_report *>(shared);
    gpu->report_on_device = static_cast<nr_report *>(on_device);
    return NORCH_OK;
}

static void after_fork() { nr_forked = true; }

extern "C" __attribute__((visibility("default"))) uint64_t nr_plugin_abi(void) { return NORCH_ABI; }

extern "C" __attribute__((visibility("default"))) const nr_backend *const *nr_plugin_open(const nr_host *host,
                                                                                          int32_t *count) {
    nr_library = host;
    const char *wanted = getenv("NORCH_SYNC");
    sync_calls = wanted && *wanted && *wanted != '0';
    const char *keep = getenv("NORCH_CUDA_CACHE"); /* "0": freed memory is returned at once, for memory checkers */
    nr_caching = !(keep && *keep == '0');
    if (ask_driver() != NORCH_OK) return nullptr;
    int found = 0;
    cudaError_t error = cudaGetDeviceCount(&found);
    if (error == cudaErrorNoDevice || (error == cudaSuccess && found == 0)) {
        host->fail(NORCH_ERROR_DEVICE, "cuda: the NVIDIA driver sees no CUDA device");
        return nullptr;
    }
    if (error != cudaSuccess) return nr_cuda_fail("cuda", error), nullptr;
    if (found > NR_MOST_DEVICES) found = NR_MOST_DEVICES;
    nr_gpus = static_cast<nr_gpu *>(calloc((size_t)found, sizeof *nr_gpus));
    pools = new (std::nothrow) pool[found]();
    static const nr_backend *list[NR_MOST_DEVICES];
    if (!nr_gpus || !pools) {
        host->fail(NORCH_ERROR_MEMORY, "cuda: out of memory");
        return nullptr;
    }
#define WIDE(NAME, name, ...)          \
    nr_fill_pointwise_##name(kernels); \
    nr_fill_reduce_##name(kernels);
#define NARROW(...)
#include "../dtypes.def"
    for (int op = 0; op < NR_OP_COUNT; op++)
        for (int d = 0; d < NR_DTYPE_COUNT; d++) kernels[op][d] = kernels[op][host->dtypes[d].wide];
    for (int i = 0; i < found; i++) {
        if (prepare(&nr_gpus[i], i) != NORCH_OK) return nullptr;
        list[i] = &nr_gpus[i].backend;
    }
    *count = found;
    pthread_atfork(nullptr, nullptr, after_fork);
    return list;
}
