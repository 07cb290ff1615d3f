/* cudasim: the host's side of the simulation (see cuda_runtime.h): streams that wait, an arena for device memory, and
 * the scheduler that runs the threads of a block as fibers. What a kernel does wrong ends the device, as on a GPU:
 * every later call fails, and cudaGetErrorString tells what it was.
 *
 * Environment: NORCH_CUDASIM_DEVICES (1), NORCH_CUDASIM_MEMORY (MiB, 2048), NORCH_CUDASIM_SEED. Tests make single
 * calls fail through cudasim_fail(). */
#include "cuda_runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <deque>
#include <map>
#include <mutex>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define FIBER_LEAVE(keep, bottom, size) __sanitizer_start_switch_fiber(keep, bottom, size)
#define FIBER_ENTER(kept, bottom, size) __sanitizer_finish_switch_fiber(kept, bottom, size)
#else
#define FIBER_LEAVE(keep, bottom, size) (void)(keep), (void)(bottom), (void)(size)
#define FIBER_ENTER(kept, bottom, size) (void)(kept), (void)(bottom), (void)(size)
#define ASAN_POISON_MEMORY_REGION(p, n) (void)0
#define ASAN_UNPOISON_MEMORY_REGION(p, n) (void)0
#endif
#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace {

std::recursive_mutex lock;
#define LOCKED std::lock_guard<std::recursive_mutex> guard(lock)

thread_local int current_device;
thread_local cudaError_t last_error;
cudaError_t broken; /* what ended the device */
char message[400];

int64_t number_of(const char *name, int64_t otherwise) {
    const char *text = getenv(name);
    return text && *text ? atoll(text) : otherwise;
}

int device_count() {
    static int count = (int)number_of("NORCH_CUDASIM_DEVICES", 1);
    return count;
}

uint64_t random_state = (uint64_t)number_of("NORCH_CUDASIM_SEED", 1);
uint32_t random_number() {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33);
}

cudaError_t note(cudaError_t error) {
    if (error != cudaSuccess) last_error = error;
    return error;
}

void end_device(cudaError_t error, const char *format, ...) {
    if (broken) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    broken = error;
}

/* ---- injected faults ------------------------------------------------------------------------------------- */

enum { ALLOCATION, LAUNCH_ITSELF, KERNEL, FAULTS };
int64_t failing[FAULTS] = {-1, -1, -1}, counted[FAULTS];

bool fails(int kind) {
    counted[kind]++;
    return failing[kind] >= 0 && failing[kind]-- == 0;
}

/* ---- device memory: an arena that the host cannot touch while no work runs ----------------------------------- */

constexpr size_t ZONE = 256;      /* between blocks, and what sizes are rounded to */
constexpr size_t GRAIN = 1 << 20; /* by which the part of the arena in use grows: whole pages */
constexpr unsigned char CANARY = 0xA5;

struct arena {
    unsigned char *base = nullptr;
    size_t size = 0, used = 0, top = 0;
    std::map<size_t, size_t> live, unused; /* offset to bytes (those of a live block as asked for) */
} memory;

size_t rounded(size_t bytes) { return (bytes + ZONE - 1) / ZONE * ZONE + ZONE; }

bool in_arena(const void *p) {
    return (unsigned char *)p >= memory.base && (unsigned char *)p < memory.base + memory.size;
}

int open_depth;
void open_arena() {
    if (open_depth++ == 0 && memory.top) mprotect(memory.base, memory.top, PROT_READ | PROT_WRITE);
}
void close_arena() {
    if (--open_depth == 0 && memory.top) mprotect(memory.base, memory.top, PROT_NONE);
}
struct opened {
    opened() { open_arena(); }
    ~opened() { close_arena(); }
};

void start_arena() {
    if (memory.base) return;
    memory.size = (size_t)number_of("NORCH_CUDASIM_MEMORY", 2048) << 20;
    void *all = mmap(nullptr, memory.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memory.base = (unsigned char *)all;
    memory.unused[0] = memory.size;
}

void *take(size_t bytes) {
    start_arena();
    size_t wanted = rounded(bytes ? bytes : 1);
    for (auto free = memory.unused.begin(); free != memory.unused.end(); ++free) {
        if (free->second < wanted) continue;
        size_t at = free->first, left = free->second - wanted;
        memory.unused.erase(free);
        if (left) memory.unused[at + wanted] = left;
        memory.live[at] = bytes;
        memory.used += wanted;
        opened now;
        if (at + wanted > memory.top) {
            size_t top = (at + wanted + GRAIN - 1) / GRAIN * GRAIN;
            mprotect(memory.base + memory.top, top - memory.top, PROT_READ | PROT_WRITE);
            ASAN_POISON_MEMORY_REGION(memory.base + memory.top, top - memory.top);
            memory.top = top;
        }
        ASAN_UNPOISON_MEMORY_REGION(memory.base + at, wanted);
        memset(memory.base + at, 0xFF, bytes < 1 << 20 ? bytes : 1 << 20); /* NaN: not what anybody wrote */
        memset(memory.base + at + bytes, CANARY, wanted - bytes);
        ASAN_POISON_MEMORY_REGION(memory.base + at, wanted);
        ASAN_UNPOISON_MEMORY_REGION(memory.base + at, bytes);
        return memory.base + at;
    }
    return nullptr;
}

void give(size_t at) {
    auto found = memory.live.find(at);
    if (found == memory.live.end()) return end_device(cudaErrorInvalidValue, "cudasim: freed what is not allocated");
    size_t bytes = found->second, whole = rounded(bytes ? bytes : 1);
    {
        opened now;
        ASAN_UNPOISON_MEMORY_REGION(memory.base + at, whole);
        for (size_t i = bytes; i < whole; i++)
            if (memory.base[at + i] != CANARY)
                end_device(cudaErrorIllegalAddress, "cudasim: a kernel wrote %zu bytes past a block of %zu bytes",
                           i - bytes, bytes);
        memset(memory.base + at, 0xDD, whole < 1 << 20 ? whole : 1 << 20);
        ASAN_POISON_MEMORY_REGION(memory.base + at, whole);
    }
    memory.live.erase(found);
    memory.used -= whole;
    auto next = memory.unused.lower_bound(at);
    if (next != memory.unused.end() && at + whole == next->first) {
        whole += next->second;
        next = memory.unused.erase(next);
    }
    if (next != memory.unused.begin()) {
        auto before = std::prev(next);
        if (before->first + before->second == at) {
            before->second += whole;
            return;
        }
    }
    memory.unused[at] = whole;
}

/* ---- pinned memory of the host ------------------------------------------------------------------------------- */

std::map<const unsigned char *, size_t> pinned;

bool is_pinned(const void *p) {
    auto next = pinned.upper_bound((const unsigned char *)p);
    if (next == pinned.begin()) return false;
    --next;
    return (const unsigned char *)p < next->first + next->second;
}

/* ---- streams: work waits until somebody waits for it ----------------------------------------------------------- */

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

/* ---- the scheduler ---------------------------------------------------------------------------------------------- */

enum state { FRESH, RUNNABLE, AT_BARRIER, AT_WARP, DONE };

struct thread {
    state now;
    int fiber;
    const char *file;
    int line;
    cudasim::warp_action action;
    unsigned mask;
    uint64_t value, result;
    int operand, width;
};

constexpr int MOST = 1024;
constexpr size_t STACK = 128 << 10;

struct fiber {
    unsigned char *stack = nullptr;
#ifdef __x86_64__
    void *sp = nullptr;
#else
    ucontext_t context;
#endif
    bool idle = false;
    void *fake = nullptr;
};

fiber fibers[MOST];
int fiber_count;
std::vector<int> idle_fibers;
thread threads[MOST];
int thread_count, running, running_fiber, started, start_step, start_first;
const std::function<void()> *body;
void *scheduler_fake; /* what AddressSanitizer wants to know of the stack that we came from */
const void *scheduler_bottom;
size_t scheduler_size;

#ifdef __x86_64__
void *scheduler_sp;
extern "C" void cudasim_switch(void **save, void *load);
__asm__(".text\n.globl cudasim_switch\n.hidden cudasim_switch\ncudasim_switch:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");
#else
ucontext_t scheduler_context;
#endif

void to_scheduler() {
    fiber &f = fibers[running_fiber];
    FIBER_LEAVE(&f.fake, scheduler_bottom, scheduler_size);
#ifdef __x86_64__
    cudasim_switch(&f.sp, scheduler_sp);
#else
    swapcontext(&f.context, &scheduler_context);
#endif
    FIBER_ENTER(f.fake, &scheduler_bottom, &scheduler_size);
}

void stand_at(int t) {
    running = t;
    dim3 size = cudasim::here.block_size;
    cudasim::here.thread = {t % size.x, t / size.x % size.y, t / size.x / size.y};
}

/* The next thread that has not begun, in shuffled order; -1 when all have. */
int next_fresh() {
    if (started == thread_count) return -1;
    return (int)(((int64_t)start_first + (int64_t)started++ * start_step) % thread_count);
}

void fiber_main() {
    FIBER_ENTER(nullptr, &scheduler_bottom, &scheduler_size);
    for (;;) {
        (*body)();
        threads[running].now = DONE;
        int next = next_fresh();
        if (next < 0) {
            idle_fibers.push_back(running_fiber);
            to_scheduler();
        } else {
            threads[next].fiber = running_fiber;
            stand_at(next);
        }
    }
}

int make_fiber() {
    if (!idle_fibers.empty()) {
        int f = idle_fibers.back();
        idle_fibers.pop_back();
        return f;
    }
    fiber &f = fibers[fiber_count];
    if (!f.stack)
        f.stack = (unsigned char *)mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#ifdef __x86_64__
    void **sp = (void **)(f.stack + STACK) - 2;
    *sp = (void *)fiber_main; /* where the first switch returns to */
    f.sp = sp - 6;
#else
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack;
    f.context.uc_stack.ss_size = STACK;
    makecontext(&f.context, fiber_main, 0);
#endif
    return fiber_count++;
}

void resume(int t) {
    thread &one = threads[t];
    one.now = RUNNABLE;
    running_fiber = one.fiber;
    stand_at(t);
    FIBER_LEAVE(&scheduler_fake, fibers[running_fiber].stack, STACK);
#ifdef __x86_64__
    cudasim_switch(&scheduler_sp, fibers[running_fiber].sp);
#else
    swapcontext(&scheduler_context, &fibers[running_fiber].context);
#endif
    FIBER_ENTER(scheduler_fake, nullptr, nullptr);
}

/* The result of a warp operation for one lane, from what all lanes of its group have brought. */
uint64_t exchanged(int base, int lane, unsigned present) {
    const thread &own = threads[base + lane];
    int from = lane;
    switch (own.action) {
    case cudasim::SYNC: return 0;
    case cudasim::BALLOT: {
        uint64_t votes = 0;
        for (int l = 0; l < 32; l++)
            if (present >> l & 1) votes |= threads[base + l].value << l;
        return votes;
    }
    case cudasim::SHUFFLE: from = own.operand & 31; break;
    case cudasim::SHUFFLE_UP: from = lane - own.operand; break;
    case cudasim::SHUFFLE_DOWN: from = lane + own.operand; break;
    case cudasim::SHUFFLE_XOR: from = lane ^ own.operand; break;
    }
    if (from < 0 || from > 31) return own.value;
    if (!(present >> from & 1)) {
        end_device(cudaErrorLaunchFailure, "cudasim: lane %d reads lane %d, which is not in its shuffle, at %s:%d",
                   lane, from, own.file, own.line);
        return 0;
    }
    return threads[base + from].value;
}

/* Lets groups of lanes go on that have all arrived; false when there was none. */
bool resolve_warps() {
    bool any = false;
    for (int base = 0; base < thread_count; base += 32)
        for (int lane = 0; lane < 32 && base + lane < thread_count; lane++) {
            thread &own = threads[base + lane];
            if (own.now != AT_WARP) continue;
            unsigned present = 0;
            bool all = own.mask >> lane & 1;
            for (int l = 0; l < 32 && base + l < thread_count && all; l++) {
                if (!(own.mask >> l & 1)) continue;
                const thread &other = threads[base + l];
                all = other.now == AT_WARP && other.mask == own.mask && other.action == own.action &&
                      other.line == own.line;
                present |= 1u << l;
            }
            if (!all) continue;
            for (int l = 0; l < 32; l++)
                if (present >> l & 1) threads[base + l].result = exchanged(base, l, present);
            for (int l = 0; l < 32; l++)
                if (present >> l & 1) threads[base + l].now = RUNNABLE;
            any = true;
        }
    return any;
}

void resolve_barrier(const char *kernel) {
    int waiting = -1, elsewhere = -1;
    for (int t = 0; t < thread_count; t++)
        if (threads[t].now == AT_BARRIER) waiting = t;
    for (int t = 0; t < thread_count; t++) {
        const thread &one = threads[t];
        if (one.now == AT_WARP && waiting < 0) waiting = t;
        if (waiting >= 0 && t != waiting && (one.now != AT_BARRIER || one.line != threads[waiting].line)) elsewhere = t;
    }
    if (elsewhere < 0) {
        for (int t = 0; t < thread_count; t++) threads[t].now = RUNNABLE;
        return;
    }
    const thread &a = threads[waiting], &b = threads[elsewhere];
    const char *what = b.now == DONE ? "has ended" : "waits elsewhere";
    end_device(cudaErrorLaunchFailure, "cudasim: %s at %s:%d: thread %d waits, thread %d %s (line %d)%s",
               a.now == AT_WARP ? "missing warp lane" : "divergent barrier", a.file, a.line, waiting, elsewhere, what,
               b.now == DONE ? 0 : b.line, kernel);
}

void shuffle_order(int n, int *first, int *step) {
    *first = n ? (int)(random_number() % n) : 0;
    static const int steps[] = {1, 7, 11, 13, 17, 19, 23};
    *step = n % 2 ? 1 : steps[random_number() % 7];
    while (n % *step == 0 && *step != 1) *step = steps[random_number() % 7];
    if (random_number() & 1) *step = n - *step > 0 ? n - *step : *step; /* backward */
}

void run_block() {
    started = 0;
    shuffle_order(thread_count, &start_first, &start_step);
    for (int t = 0; t < thread_count; t++) threads[t].now = FRESH;
    for (int next; (next = next_fresh()) >= 0 && !broken;) {
        threads[next].fiber = make_fiber();
        resume(next);
    }
    while (!broken) {
        int first, step, alive = 0;
        shuffle_order(thread_count, &first, &step);
        for (int i = 0; i < thread_count && !broken; i++) {
            int t = (int)((first + (int64_t)i * step) % thread_count);
            if (threads[t].now == RUNNABLE) resume(t);
        }
        for (int t = 0; t < thread_count; t++) alive += threads[t].now != DONE;
        if (!alive) return;
        bool ready = false;
        for (int t = 0; t < thread_count; t++) ready |= threads[t].now == RUNNABLE;
        if (!ready && !resolve_warps()) resolve_barrier("");
    }
    fiber_count = 0; /* what waits in them is given up */
    idle_fibers.clear();
}

void run_kernel(dim3 grid, dim3 block, size_t shared, const std::function<void()> &kernel) {
    if (fails(KERNEL)) return end_device(cudaErrorIllegalAddress, "cudasim: an injected fault");
    static std::vector<unsigned char> shared_memory;
    shared_memory.assign(shared + 16, 0xFF);
    cudasim::dynamic_shared = (unsigned char *)(((uintptr_t)shared_memory.data() + 15) & ~(uintptr_t)15);
    body = &kernel;
    thread_count = (int)(block.x * block.y * block.z);
    int64_t blocks = (int64_t)grid.x * grid.y * grid.z;
    int64_t first = blocks ? random_number() % blocks : 0;
    cudasim::here.grid_size = grid;
    cudasim::here.block_size = block;
    for (int64_t i = 0; i < blocks && !broken; i++) {
        int64_t b = (first + i) % blocks;
        cudasim::here.block = {(unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y),
                               (unsigned)(b / grid.x / grid.y)};
        run_block();
    }
}

/* Whether a word of a kernel's arguments looks like an address of the host that the device cannot reach. */
bool is_host_pointer(uint64_t word) {
    if (word < (uint64_t)1 << 32 || word >= (uint64_t)1 << 47) return false;
    const void *p = (const void *)(uintptr_t)word;
    if (in_arena(p) || is_pinned(p)) return false;
    unsigned char resident;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return mincore((void *)(word / page * page), 1, &resident) == 0;
}

} // namespace

namespace cudasim {

place here;
unsigned char *dynamic_shared;

void barrier(const char *file, int line) {
    thread &own = threads[running];
    own.now = AT_BARRIER;
    own.file = file;
    own.line = line;
    to_scheduler();
}

uint64_t warp(warp_action action, unsigned mask, uint64_t value, int operand, int width, const char *file, int line) {
    thread &own = threads[running];
    own = {AT_WARP, own.fiber, file, line, action, mask, value, 0, operand, width};
    to_scheduler();
    return threads[running].result;
}

void launch(const void *, dim3 grid, dim3 block, size_t shared, int stream, const void *arguments, size_t bytes,
            std::function<void()> kernel) {
    LOCKED;
    if (broken) return (void)note(broken);
    int64_t size = (int64_t)block.x * block.y * block.z;
    bool possible = size >= 1 && size <= MOST && block.z <= 64 && grid.x >= 1 && grid.x <= 0x7fffffff && grid.y >= 1 &&
                    grid.y <= 65535 && grid.z >= 1 && grid.z <= 65535 && shared <= 227 << 10 && bytes <= 4096;
    if (!possible || fails(LAUNCH_ITSELF)) return (void)note(cudaErrorInvalidConfiguration);
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
    streams[stream].push_back([=, kernel = std::move(kernel)] { run_kernel(grid, block, shared, kernel); });
}

} // namespace cudasim

/* ---- for tests ------------------------------------------------------------------------------------------------- */

#define EXPORTED extern "C" __attribute__((visibility("default")))

/* The n-th allocation (kind 0), launch (1) or kernel (2: when it runs) from now fails; -1 turns that off. Gives how
 * many there were since the last call. */
EXPORTED int64_t cudasim_fail(int kind, int64_t n) {
    LOCKED;
    failing[kind] = n;
    int64_t before = counted[kind];
    counted[kind] = 0;
    return before;
}

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

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int) {
    start_arena();
    *properties = {"cudasim: simulated on the CPU, no GPU", memory.size, 8, 0, 4};
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
    drain(stream); /* what was freed before may be had again */
    *block = bytes > memory.size && memory.base ? nullptr : take(bytes);
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
