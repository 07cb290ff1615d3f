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
#include <memory>
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

enum { ALLOCATION, LAUNCH_ITSELF, KERNEL, GRAPH, FAULTS };
int64_t failing[FAULTS] = {-1, -1, -1, -1}, times[FAULTS], counted[FAULTS];
cudaError_t launch_error = cudaErrorInvalidConfiguration; /* of launches that are to fail */

/* Whether this one is among those that a test wants to fail. */
bool fails(int kind) {
    const int64_t own = counted[kind]++;
    return failing[kind] >= 0 && own >= failing[kind] && own < failing[kind] + times[kind];
}

/* ---- streams: work waits until somebody waits for it; then other streams get on too, or not, by chance ---------- */

/* A point in a stream, which it has passed or not. */
struct mark {
    int stream;
    bool passed;
    double time;
};
typedef std::shared_ptr<mark> mark_at;

/* What a stream is given: something to do, a point to pass, another stream's point to wait for, or something that other
 * processes take part in: it is tried until it gives true. */
struct work {
    std::function<void()> run;
    mark_at passes, awaits;
    std::function<bool()> tries;
};

constexpr size_t MOST_WAITING = 1024; /* a device begins some time, too */
std::map<int, std::deque<work>> streams;

} // namespace

/* A graph, or one that is being made: what runs, and blocks that belong to it. */
struct cudasim_graph {
    std::vector<std::function<void()>> runs;
    std::vector<size_t> blocks;
};

namespace {

cudasim_graph *noted; /* by this stream */
int noting;

void queue(int stream, std::function<void()> run) {
    if (noted && stream == noting)
        noted->runs.push_back(std::move(run));
    else
        streams[stream].push_back({std::move(run), nullptr, nullptr, nullptr});
}

/* Whether a point is passed, or lost with what cudasim_mend() has dropped. */
bool is_past(const mark_at &at) { return at->passed || streams[at->stream].empty(); }

/* Does the first work of a stream, or, where that waits for another stream, of that one; false: other processes have to do
 * something first. */
bool advance(int stream) {
    while (!streams[stream].empty() && streams[stream].front().awaits && !is_past(streams[stream].front().awaits))
        stream = streams[stream].front().awaits->stream;
    if (streams[stream].empty()) return true;
    if (streams[stream].front().tries && !broken && !streams[stream].front().tries()) return false;
    const work first = std::move(streams[stream].front());
    streams[stream].pop_front();
    if (first.run && !broken) first.run();
    if (!first.passes) return true;
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    first.passes->time = (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
    first.passes->passed = true;
    return true;
}

/* Any stream that has work; the random one of them. */
int any_stream(int otherwise) {
    std::vector<int> busy;
    for (const auto &one : streams)
        if (!one.second.empty()) busy.push_back(one.first);
    return busy.empty() ? otherwise : busy[random_number() % busy.size()];
}

/* Runs a stream until that is true or it has no more work; meanwhile others run as chance has it. Other processes are waited
 * for with the lock open, so that other threads can ask; or, where waits is false, not at all. */
template <class Done> void run_until(int stream, const Done &done, bool waits = true) {
    if (streams[stream].empty() || done()) return;
    opened now;
    while (!streams[stream].empty() && !done()) {
        const bool others = streams.size() > 1 && random_number() % 2;
        if (advance(others ? any_stream(stream) : stream)) continue;
        if (!waits) return;
        lock.unlock();
        usleep(50);
        lock.lock();
    }
}

void drain(int stream) {
    run_until(stream, [] { return false; });
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
    queue(stream, [=, kernel = std::move(kernel)] {
        if (fails(KERNEL))
            end_device(cudaErrorIllegalAddress, "cudasim: an injected fault");
        else
            run_kernel(grid, block, shared, kernel);
    });
}

} // namespace cudasim

/* ---- for tests ------------------------------------------------------------------------------------------------- */

#define EXPORTED extern "C" __attribute__((visibility("default")))

/* The n-th allocation (kind 0), launch (1), kernel (2: when it runs) or launch of a graph (3) from now fails, and `count` from it on; n -1 turns
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

/* Gives a stream what processes do together (tests/nccl): tries(argument), again and again, until it is other than 0. */
EXPORTED void cudasim_queue(int stream, int (*tries)(void *), void *argument) {
    LOCKED;
    streams[stream].push_back({nullptr, nullptr, nullptr, [=] { return tries(argument) != 0; }});
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

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    *least = 0;
    *greatest = -5;
    return note(broken);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned, int) {
    LOCKED;
    static int made = 0;
    *stream = ++made;
    return note(broken);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaDeviceSynchronize(void) {
    LOCKED;
    drain_all();
    return note(broken);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    LOCKED;
    if (noted && stream == noting) return note(cudaErrorStreamCaptureUnsupported);
    drain(stream);
    return note(broken);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    LOCKED;
    if (broken || streams[stream].empty()) return note(broken);
    run_until(stream, [] { return false; }, false); /* so that whoever asks again will hear of it */
    return cudaErrorNotReady;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) { return *pool = device, cudaSuccess; }

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr attribute, void *value) {
    LOCKED;
    if (attribute == cudaMemPoolAttrReservedMemHigh) {
        if (*(uint64_t *)value) return note(cudaErrorInvalidValue);
        memory.most_reserved = memory.reserved.size();
    }
    return cudaSuccess;
}

/* What is freed later in a stream is held yet. */
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t keep) {
    LOCKED;
    trim(keep);
    return note(broken);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr attribute, void *value) {
    LOCKED;
    const size_t units = attribute == cudaMemPoolAttrReservedMemHigh ? memory.most_reserved : memory.reserved.size();
    *(uint64_t *)value = units * UNIT;
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
    else if (noted && stream == noting)
        noted->blocks.push_back(at);
    else
        queue(stream, [=] { give(at); });
    return note(broken);
}

/* ---- graphs: what a stream is given is noted, and given again at each launch ------------------------------------- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    LOCKED;
    if (broken || noted) return note(broken ? broken : cudaErrorStreamCaptureUnsupported);
    noted = new cudasim_graph;
    noting = stream;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *graph) {
    LOCKED;
    *graph = noted;
    noted = nullptr;
    return note(broken);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long) {
    LOCKED;
    if (fails(ALLOCATION)) return note(cudaErrorMemoryAllocation);
    *made = new cudasim_graph(std::move(*graph));
    graph->blocks.clear();
    return note(broken);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    LOCKED;
    for (size_t at : graph->blocks) give(at);
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return cudaGraphDestroy(graph); }

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
    LOCKED;
    if (fails(GRAPH)) return note(launch_error);
    for (const auto &run : graph->runs) queue(stream, run);
    return note(broken);
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
    LOCKED;
    start_arena();
    *total = memory.size;
    const size_t reserved = memory.reserved.size() * UNIT;
    *free = memory.size > reserved ? memory.size - reserved : 0;
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
        queue(stream, [=, staged = std::move(staged)] { memcpy(to, staged.data(), bytes); });
    } else {
        queue(stream, [=] { memcpy(to, from, bytes); });
    }
    if (kind == cudaMemcpyDeviceToHost && !is_pinned(to)) drain(stream);
    return note(broken);
}

cudaError_t cudaMemsetAsync(void *block, int value, size_t bytes, cudaStream_t stream) {
    LOCKED;
    if (broken || !in_arena(block)) return note(broken ? broken : cudaErrorInvalidValue);
    queue(stream, [=] { memset(block, value, bytes); });
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

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *p) {
    LOCKED;
    attributes->type = in_arena(p)    ? cudaMemoryTypeDevice
                       : is_pinned(p) ? cudaMemoryTypeHost
                                      : cudaMemoryTypeUnregistered;
    return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned) { return *device = host, cudaSuccess; }

struct cudasim_event {
    mark_at last; /* none before the first record */
    bool timing;
};

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    *event = new cudasim_event{nullptr, flags != cudaEventDisableTiming};
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    LOCKED;
    event->last = std::make_shared<mark>(mark{stream, false, 0});
    streams[stream].push_back({nullptr, event->last, nullptr, nullptr});
    return note(broken);
}

/* It waits for the last record before this call; later ones do not matter. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    LOCKED;
    if (event->last && event->last->stream != stream)
        streams[stream].push_back({nullptr, nullptr, event->last, nullptr});
    return note(broken);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    LOCKED;
    if (const mark_at last = event->last) run_until(last->stream, [&] { return last->passed; });
    return note(broken);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    LOCKED;
    const mark_at last = event->last;
    if (broken || !last || last->passed) return note(broken);
    run_until(last->stream, [&] { return last->passed; }, false); /* so that whoever asks again will hear of it */
    return cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
    if (!from->last || !to->last || !from->timing || !to->timing) return note(cudaErrorInvalidValue);
    if (!from->last->passed || !to->last->passed) return note(cudaErrorNotReady);
    *milliseconds = (float)(to->last->time - from->last->time);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return cudaSuccess;
}
