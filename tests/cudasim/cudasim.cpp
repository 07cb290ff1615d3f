/* cudasim: the host's side of the simulation (see cuda_runtime.h): streams that wait, and the functions of the runtime.
 * What a kernel does wrong ends the device, as on a GPU: every later call fails, and cudaGetErrorString tells what it was.
 *
 * Environment: NORCH_CUDASIM_DEVICES (1), NORCH_CUDASIM_MEMORY (MiB, 2048), NORCH_CUDASIM_SEED. Tests make calls fail
 * through cudasim_fail(). */
#include "simulation.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <deque>
#include <mutex>
#include <vector>

namespace cudasim {

cudaError_t broken;
static char message[400];

int64_t number_of(const char *environment, int64_t otherwise) {
    const char *text = getenv(environment);
    return text && *text ? atoll(text) : otherwise;
}

static uint64_t random_state = (uint64_t)number_of("NORCH_CUDASIM_SEED", 1);
uint32_t random_number() {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33);
}

void end_device(cudaError_t error, const char *format, ...) {
    if (broken) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    broken = error;
}

} // namespace cudasim

using namespace cudasim;

namespace {

std::recursive_mutex lock;
#define LOCKED std::lock_guard<std::recursive_mutex> guard(lock)

thread_local int current_device;
thread_local cudaError_t last_error;

int device_count() {
    static int count = (int)number_of("NORCH_CUDASIM_DEVICES", 1);
    return count;
}

cudaError_t note(cudaError_t error) {
    if (error != cudaSuccess) last_error = error;
    return error;
}

/* ---- injected faults ------------------------------------------------------------------------------------- */

enum { ALLOCATION, LAUNCH_ITSELF, KERNEL, FAULTS };
int64_t failing[FAULTS] = {-1, -1, -1}, times[FAULTS], counted[FAULTS];
cudaError_t launch_error = cudaErrorInvalidConfiguration; /* of launches that are to fail */

/* Whether this one is among those that a test wants to fail. */
bool fails(int kind) {
    const int64_t own = counted[kind]++;
    return failing[kind] >= 0 && own >= failing[kind] && own < failing[kind] + times[kind];
}

/* ---- streams: work waits until somebody waits for it ----------------------------------------------------------- */

constexpr size_t MOST_WAITING = 1024; /* a device begins some time, too */
std::map<int, std::deque<std::function<void()>>> streams;

void drain(int stream) {
    auto &queue = streams[stream];
    if (queue.empty()) return;
    opened now;
    while (!queue.empty()) {
        auto work = std::move(queue.front());
        queue.pop_front();
        if (!broken) work();
    }
}

void drain_all() {
    for (auto &one : streams) drain(one.first);
}

/* Whether a word of a kernel's arguments looks like an address of the host that the device cannot reach. */
bool is_host_pointer(uint64_t word) {
#ifdef __SANITIZE_ADDRESS__
    const uint64_t lowest =
        0x10007fff8000; /* below lies what the sanitizer notes of memory, where two small integers may point */
#else
    const uint64_t lowest = (uint64_t)1 << 32;
#endif
    if (word < lowest || word >= (uint64_t)1 << 47) return false;
    const void *p = (const void *)(uintptr_t)word;
    if (in_arena(p) || is_pinned(p)) return false;
    unsigned char resident;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return mincore((void *)(word / page * page), 1, &resident) == 0;
}

} // namespace

namespace cudasim {

void launch(const void *, dim3 grid, dim3 block, size_t shared, int stream, const void *arguments, size_t bytes,
            std::function<void()> kernel) {
    LOCKED;
    if (broken) return (void)note(broken);
    int64_t size = (int64_t)block.x * block.y * block.z;
    bool possible = size >= 1 && size <= MOST_THREADS && block.z <= 64 && grid.x >= 1 && grid.x <= 0x7fffffff &&
                    grid.y >= 1 && grid.y <= 65535 && grid.z >= 1 && grid.z <= 65535 && shared <= MOST_SHARED &&
                    bytes <= 4096;
    if (!possible) return (void)note(cudaErrorInvalidConfiguration);
    if (fails(LAUNCH_ITSELF)) return (void)note(launch_error);
    for (size_t at = 0; at + 8 <= bytes; at += 8) {
        uint64_t word;
        memcpy(&word, (const char *)arguments + at, 8);
        if (is_host_pointer(word)) {
            end_device(cudaErrorIllegalAddress,
                       "cudasim: a kernel is given %#llx, an address of the host, at byte %zu of its arguments",
                       (unsigned long long)word, at);
            return (void)note(broken);
        }
    }
    if (streams[stream].size() >= MOST_WAITING) drain(stream);
    streams[stream].push_back([=, kernel = std::move(kernel)] {
        if (fails(KERNEL))
            end_device(cudaErrorIllegalAddress, "cudasim: an injected fault");
        else
            run_kernel(grid, block, shared, kernel);
    });
}

} // namespace cudasim

/* ---- for tests ------------------------------------------------------------------------------------------------- */

#define EXPORTED extern "C" __attribute__((visibility("default")))

/* The n-th allocation (kind 0), launch (1) or kernel (2: when it runs) from now fails, and `count` from it on; n -1 turns
 * that off. Gives how many there were since the last call. */
EXPORTED int64_t cudasim_fail_many(int kind, int64_t n, int64_t count) {
    LOCKED;
    int64_t before = counted[kind];
    failing[kind] = n;
    times[kind] = count;
    counted[kind] = 0;
    return before;
}

EXPORTED int64_t cudasim_fail(int kind, int64_t n) { return cudasim_fail_many(kind, n, 1); }

EXPORTED void cudasim_launch_error(int error) { launch_error = (cudaError_t)error; }

EXPORTED void cudasim_seed(uint64_t seed) { random_state = seed; }

/* Mends the device: what is queued is dropped. */
EXPORTED void cudasim_mend(void) {
    LOCKED;
    broken = last_error = cudaSuccess;
    message[0] = 0;
    streams.clear();
}

/* Bytes on the device now. */
EXPORTED int64_t cudasim_used(void) {
    LOCKED;
    drain_all();
    return (int64_t)memory.used;
}

/* ---- the runtime -------------------------------------------------------------------------------------------------- */

cudaError_t cudaGetDeviceCount(int *count) {
    *count = device_count();
    return *count ? cudaSuccess : note(cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int device) {
    if (device < 0 || device >= device_count()) return note(cudaErrorInvalidDevice);
    current_device = device;
    return note(broken);
}

cudaError_t cudaGetDevice(int *device) { return *device = current_device, cudaSuccess; }

/* The second device is an older one. */
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
    start_arena();
    const int capability = (int)number_of("NORCH_CUDASIM_CAPABILITY", device == 1 ? 80 : 90);
    *properties = {
        "cudasim: simulated on the CPU, no GPU", memory.size, capability / 10, capability % 10, 4, MOST_SHARED};
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, void (*)()) {
    attributes->ptxVersion = (int)number_of("NORCH_CUDASIM_PTX", 90);
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int *version) { return *version = CUDART_VERSION, cudaSuccess; }

cudaError_t cudaGetLastError(void) {
    cudaError_t error = broken ? broken : last_error;
    last_error = cudaSuccess;
    return error;
}

const char *cudaGetErrorString(cudaError_t error) {
    if (error == broken && broken) return message;
    switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorNoKernelImageForDevice: return "no kernel image is available for execution on the device";
    case cudaErrorNotReady: return "device not ready";
    default: return "unspecified launch failure";
    }
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
    LOCKED;
    static int made = 0;
    *stream = ++made;
    return note(broken);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    LOCKED;
    drain(stream);
    return note(broken);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    LOCKED;
    if (broken || streams[stream].empty()) return note(broken);
    drain(stream); /* so that whoever asks again will hear of it */
    return cudaErrorNotReady;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) { return *pool = device, cudaSuccess; }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *) { return cudaSuccess; }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *value) {
    *(uint64_t *)value = memory.used;
    return cudaSuccess;
}

cudaError_t cudaMallocAsync(void **block, size_t bytes, cudaStream_t stream) {
    LOCKED;
    if (broken) return note(broken);
    if (fails(ALLOCATION)) return note(cudaErrorMemoryAllocation);
    *block = bytes > memory.size && memory.base ? nullptr : take(bytes);
    if (!*block && bytes <= memory.size) {
        drain(stream); /* what was freed before may be had again */
        *block = take(bytes);
    }
    return *block ? cudaSuccess : note(cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeAsync(void *block, cudaStream_t stream) {
    LOCKED;
    if (!in_arena(block)) return note(cudaErrorInvalidValue);
    size_t at = (size_t)((unsigned char *)block - memory.base);
    if (broken)
        give(at);
    else
        streams[stream].push_back([=] { give(at); });
    return note(broken);
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
    LOCKED;
    start_arena();
    *total = memory.size;
    *free = memory.size - memory.used;
    return note(broken);
}

/* Memory of the host that is not pinned is staged: it is read, or has been written, when the call returns. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    LOCKED;
    if (broken) return note(broken);
    bool good = kind == cudaMemcpyHostToDevice   ? in_arena(to) && !in_arena(from)
                : kind == cudaMemcpyDeviceToHost ? !in_arena(to) && in_arena(from)
                                                 : in_arena(to) && in_arena(from);
    if (!good) return note(cudaErrorInvalidValue);
    count_copy(bytes);
    if (kind == cudaMemcpyHostToDevice && !is_pinned(from)) {
        std::vector<unsigned char> staged((const unsigned char *)from, (const unsigned char *)from + bytes);
        streams[stream].push_back([=, staged = std::move(staged)] { memcpy(to, staged.data(), bytes); });
    } else {
        streams[stream].push_back([=] { memcpy(to, from, bytes); });
    }
    if (kind == cudaMemcpyDeviceToHost && !is_pinned(to)) drain(stream);
    return note(broken);
}

cudaError_t cudaMemsetAsync(void *block, int value, size_t bytes, cudaStream_t stream) {
    LOCKED;
    if (broken || !in_arena(block)) return note(broken ? broken : cudaErrorInvalidValue);
    streams[stream].push_back([=] { memset(block, value, bytes); });
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **block, size_t bytes, unsigned) {
    LOCKED;
    if (broken || fails(ALLOCATION)) return note(broken ? broken : cudaErrorMemoryAllocation);
    *block = malloc(bytes ? bytes : 1);
    if (!*block) return note(cudaErrorMemoryAllocation);
    pinned[(unsigned char *)*block] = bytes ? bytes : 1;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *block) {
    LOCKED;
    drain_all();
    pinned.erase((unsigned char *)block);
    free(block);
    return note(broken);
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned) { return *device = host, cudaSuccess; }

struct cudasim_event {
    bool recorded, passed;
    int stream;
    double time;
};

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
    *event = new cudasim_event{};
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    LOCKED;
    *event = {true, false, stream, 0};
    streams[stream].push_back([=] {
        timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        event->time = (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
        event->passed = true;
    });
    return note(broken);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    LOCKED;
    if (event->recorded) drain(event->stream);
    return note(broken);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    LOCKED;
    if (broken || !event->recorded || event->passed) return note(broken);
    drain(event->stream); /* so that whoever asks again will hear of it */
    return cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
    if (!from->recorded || !to->recorded) return note(cudaErrorInvalidValue);
    if (!from->passed || !to->passed) return note(cudaErrorNotReady);
    *milliseconds = (float)(to->time - from->time);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    LOCKED;
    if (event->recorded && !event->passed) drain(event->stream);
    delete event;
    return cudaSuccess;
}
