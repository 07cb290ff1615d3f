/* scheduler: runs the threads of a block as fibers, in a shuffled order. One runs until it must wait for others; barriers
 * and warp operations are resolved when no thread can go on, and those that cannot be end the device. */
#include "simulation.h"

#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#define FIBER_LEAVE(keep, bottom, size) __sanitizer_start_switch_fiber(keep, bottom, size)
#define FIBER_ENTER(kept, bottom, size) __sanitizer_finish_switch_fiber(kept, bottom, size)
#else
#define FIBER_LEAVE(keep, bottom, size) (void)(keep), (void)(bottom), (void)(size)
#define FIBER_ENTER(kept, bottom, size) (void)(kept), (void)(bottom), (void)(size)
#endif
#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace cudasim {

place here;
unsigned char *dynamic_shared;
size_t dynamic_size;

namespace {

enum thread_state { FRESH, RUNNABLE, AT_BARRIER, AT_WARP, AT_CONDITION, DONE };

struct thread {
    thread_state now;
    int fiber;
    const char *file;
    int line;
    warp_action action;
    unsigned mask;
    uint64_t value, result;
    int operand, width;
    bool (*holds)(uint32_t at, int value); /* AT_CONDITION, of value and operand */
};

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

fiber fibers[MOST_THREADS];
int fiber_count;
std::vector<int> idle_fibers;
thread threads[MOST_THREADS];
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
    dim3 size = here.block_size;
    here.thread = {t % size.x, t / size.x % size.y, t / size.x / size.y};
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
    case SYNC: return 0;
    case BALLOT: {
        uint64_t votes = 0;
        for (int l = 0; l < 32; l++)
            if (present >> l & 1) votes |= threads[base + l].value << l;
        return votes;
    }
    case COOPERATE: {
        warp_task *lanes[32];
        for (int l = 0; l < 32; l++) lanes[l] = reinterpret_cast<warp_task *>((uintptr_t)threads[base + l].value);
        for (int l = 0; l < 32; l++)
            if (lanes[l]->run != lanes[lane]->run)
                end_device(cudaErrorLaunchFailure, "cudasim: lanes of a warp at different instructions, at %s:%d",
                           own.file, own.line);
        if (!broken) lanes[lane]->run(lanes, lane);
        return 0;
    }
    case SHUFFLE: from = own.operand & 31; break;
    case SHUFFLE_UP: from = lane - own.operand; break;
    case SHUFFLE_DOWN: from = lane + own.operand; break;
    case SHUFFLE_XOR: from = lane ^ own.operand; break;
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
            bool all = own.mask >> lane & 1 && (own.action != COOPERATE || base + 32 <= thread_count);
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

/* Lets threads go on whose condition no longer holds; false when there was none. */
bool resolve_conditions() {
    bool any = false;
    for (int t = 0; t < thread_count; t++) {
        thread &own = threads[t];
        if (own.now != AT_CONDITION || own.holds((uint32_t)own.value, own.operand)) continue;
        own.now = RUNNABLE;
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
        if ((one.now == AT_WARP || one.now == AT_CONDITION) && waiting < 0) waiting = t;
        if (waiting >= 0 && t != waiting && (one.now != AT_BARRIER || one.line != threads[waiting].line)) elsewhere = t;
    }
    if (elsewhere < 0) {
        for (int t = 0; t < thread_count; t++) threads[t].now = RUNNABLE;
        return;
    }
    const thread &a = threads[waiting], &b = threads[elsewhere];
    const char *what = b.now == DONE ? "has ended" : "waits elsewhere";
    end_device(cudaErrorLaunchFailure, "cudasim: %s at %s:%d: thread %d waits, thread %d %s (line %d)%s",
               a.now == AT_WARP        ? "missing warp lane"
               : a.now == AT_CONDITION ? "endless wait"
                                       : "divergent barrier",
               a.file, a.line, waiting, elsewhere, what, b.now == DONE ? 0 : b.line, kernel);
}

void shuffle_order(int n, int *first, int *step) {
    *first = n ? (int)(random_number() % n) : 0;
    static const int steps[] = {1, 7, 11, 13, 17, 19, 23};
    *step = n % 2 ? 1 : steps[random_number() % 7];
    while (n % *step == 0 && *step != 1) *step = steps[random_number() % 7];
    if (random_number() & 1) *step = n - *step > 0 ? n - *step : *step; /* backward */
}

/* Copies of a thread that it has not waited for, of the group g. */
struct waiting_copy {
    int group, bytes;
    uint32_t to;
    const void *from; /* NULL: zeros */
};
std::vector<waiting_copy> copies[MOST_THREADS];
int copy_groups[MOST_THREADS];

void run_block() {
    for (int t = 0; t < thread_count; t++) {
        copies[t].clear();
        copy_groups[t] = 0;
    }
    begin_block_of_tiles(thread_count);
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
        if (!alive) return end_block_of_tiles(thread_count);
        bool ready = false;
        for (int t = 0; t < thread_count; t++) ready |= threads[t].now == RUNNABLE;
        if (!ready && !resolve_conditions() && !resolve_warps() && !finish_a_tile()) resolve_barrier("");
    }
    fiber_count = 0; /* what waits in them is given up */
    idle_fibers.clear();
}

} // namespace

void run_kernel(dim3 grid, dim3 block, size_t shared, const std::function<void()> &kernel) {
    static std::vector<unsigned char> shared_memory;
    shared_memory.assign(shared + 1024, 0xFF);
    dynamic_shared = (unsigned char *)(((uintptr_t)shared_memory.data() + 1023) & ~(uintptr_t)1023);
    dynamic_size = shared;
    body = &kernel;
    thread_count = (int)(block.x * block.y * block.z);
    int64_t blocks = (int64_t)grid.x * grid.y * grid.z;
    count_kernel(blocks * thread_count);
    int64_t first = blocks ? random_number() % blocks : 0;
    here.grid_size = grid;
    here.block_size = block;
    for (int64_t i = 0; i < blocks && !broken; i++) {
        int64_t b = (first + i) % blocks;
        here.block = {(unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y), (unsigned)(b / grid.x / grid.y)};
        run_block();
    }
    count_kernel(0);
}

void barrier(const char *file, int line) {
    count_barrier();
    thread &own = threads[running];
    own.now = AT_BARRIER;
    own.file = file;
    own.line = line;
    to_scheduler();
}

bool barrier_or(bool value, const char *file, int line) {
    static bool any;
    barrier(file, line); /* all have read the one before */
    any = false;
    barrier(file, line);
    any |= value;
    barrier(file, line);
    return any;
}

void wait_while(bool (*holds)(uint32_t at, int value), uint32_t at, int value, const char *file, int line) {
    thread &own = threads[running];
    own = {AT_CONDITION, own.fiber, file, line, SYNC, 0, at, 0, value, 0, holds};
    to_scheduler();
}

void cooperate(warp_task *own, const char *file, int line) {
    warp(COOPERATE, 0xffffffffu, (uint64_t)(uintptr_t)own, 0, 32, file, line);
}

uint32_t shared_offset(const void *p) {
    const ptrdiff_t at = (const unsigned char *)p - dynamic_shared;
    if (at < 0 || at > (ptrdiff_t)dynamic_size)
        end_device(cudaErrorLaunchFailure, "cudasim: an address that is not in dynamic shared memory");
    return (uint32_t)at;
}

unsigned char *shared_bytes(uint32_t at, uint32_t bytes, uint32_t alignment) {
    static unsigned char nowhere[1024];
    if (at % alignment == 0 && (size_t)at + bytes <= dynamic_size) return dynamic_shared + at;
    end_device(at % alignment ? cudaErrorLaunchFailure : cudaErrorIllegalAddress,
               "cudasim: %u bytes at %u of %zu of shared memory, aligned to %u", bytes, at, dynamic_size, alignment);
    return nowhere;
}

void copy_later(uint32_t to, const void *from, int bytes, bool valid) {
    memset(shared_bytes(to, (uint32_t)bytes, (uint32_t)bytes), 0xFF, (size_t)bytes);
    if (valid && (uintptr_t)from % (uintptr_t)bytes)
        end_device(cudaErrorLaunchFailure, "cudasim: a copy of %d bytes from an address that %d does not divide", bytes,
                   bytes);
    copies[running].push_back({copy_groups[running], bytes, to, valid ? from : nullptr});
}

void end_copy_group() { copy_groups[running]++; }

void finish_copies(int pending) {
    auto &own = copies[running];
    size_t done = 0;
    for (; done < own.size() && own[done].group < copy_groups[running] - pending && !broken; done++) {
        const waiting_copy &one = own[done];
        unsigned char *to = shared_bytes(one.to, (uint32_t)one.bytes, 4);
        if (one.from)
            memcpy(to, one.from, (size_t)one.bytes);
        else
            memset(to, 0, (size_t)one.bytes);
    }
    own.erase(own.begin(), own.begin() + (ptrdiff_t)done);
}

uint64_t warp(warp_action action, unsigned mask, uint64_t value, int operand, int width, const char *file, int line) {
    thread &own = threads[running];
    own = {AT_WARP, own.fiber, file, line, action, mask, value, 0, operand, width, nullptr};
    to_scheduler();
    return threads[running].result;
}

} // namespace cudasim
