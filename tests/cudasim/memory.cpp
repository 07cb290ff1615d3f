/* memory: the device's memory: blocks in an arena, with watched zones between them, that the host cannot touch while no
 * work runs; and which memory of the host is pinned. */
#include "simulation.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) (void)0
#define ASAN_UNPOISON_MEMORY_REGION(p, n) (void)0
#endif

namespace cudasim {

constexpr size_t ZONE = 256; /* between blocks, and what sizes are rounded to */
static const size_t PAGE = (size_t)sysconf(_SC_PAGESIZE);
constexpr size_t GRAIN = 1 << 20; /* by which the part of the arena in use grows and shrinks: whole pages */
constexpr unsigned char CANARY = 0xA5;

arena memory;

static size_t rounded(size_t bytes) { return (bytes + ZONE - 1) / ZONE * ZONE + ZONE; }

bool in_arena(const void *p) {
    return (unsigned char *)p >= memory.base && (unsigned char *)p < memory.base + memory.size;
}

static int open_depth;
opened::opened() : opened(0, memory.top) {}
opened::opened(size_t at, size_t bytes) : from(at / PAGE * PAGE), end((at + bytes + PAGE - 1) / PAGE * PAGE) {
    if (open_depth++ == 0 && from < end) mprotect(memory.base + from, end - from, PROT_READ | PROT_WRITE);
}
opened::~opened() {
    if (--open_depth == 0 && from < end) mprotect(memory.base + from, end - from, PROT_NONE);
}

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
        for (size_t unit = at / UNIT; unit <= (at + wanted - 1) / UNIT; unit++) memory.reserved.insert(unit);
        if (memory.reserved.size() > memory.most_reserved) memory.most_reserved = memory.reserved.size();
        if (at + wanted > memory.top) {
            size_t top = (at + wanted + GRAIN - 1) / GRAIN * GRAIN;
            ASAN_POISON_MEMORY_REGION(memory.base + memory.top, top - memory.top);
            memory.top = top;
        }
        opened now(at, wanted);
        ASAN_UNPOISON_MEMORY_REGION(memory.base + at, wanted);
        memset(memory.base + at, 0xFF, bytes < 1 << 20 ? bytes : 1 << 20); /* NaN: not what anybody wrote */
        memset(memory.base + at + bytes, CANARY, wanted - bytes);
        ASAN_POISON_MEMORY_REGION(memory.base + at, wanted);
        ASAN_UNPOISON_MEMORY_REGION(memory.base + at, bytes);
        return memory.base + at;
    }
    return nullptr;
}

/* What is open and shut at every turn takes time by the pages that the system has given it. */
static void give_back(size_t at, size_t bytes) {
    const size_t first = (at + GRAIN - 1) / GRAIN * GRAIN, end = (at + bytes) / GRAIN * GRAIN;
    if (first < end) madvise(memory.base + first, end - first, MADV_DONTNEED);
}
static void lower_top() {
    if (memory.unused.empty()) return;
    const auto last = std::prev(memory.unused.end());
    const size_t top = (last->first + GRAIN - 1) / GRAIN * GRAIN;
    if (last->first + last->second < memory.size || top >= memory.top) return;
    mprotect(memory.base + top, memory.top - top, PROT_NONE);
    memory.top = top;
}

void give(size_t at) {
    auto found = memory.live.find(at);
    if (found == memory.live.end()) return end_device(cudaErrorInvalidValue, "cudasim: freed what is not allocated");
    size_t bytes = found->second, whole = rounded(bytes ? bytes : 1);
    {
        opened now(at, whole);
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
    give_back(at, whole);
    auto next = memory.unused.lower_bound(at);
    if (next != memory.unused.end() && at + whole == next->first) {
        whole += next->second;
        next = memory.unused.erase(next);
    }
    if (next != memory.unused.begin()) {
        auto before = std::prev(next);
        if (before->first + before->second == at) {
            before->second += whole;
            return lower_top();
        }
    }
    memory.unused[at] = whole;
    lower_top();
}

void trim(size_t keep) {
    std::set<size_t> held;
    for (const auto &block : memory.live)
        for (size_t unit = block.first / UNIT; unit <= (block.first + rounded(block.second) - 1) / UNIT; unit++)
            held.insert(unit);
    for (auto unit = memory.reserved.begin(); unit != memory.reserved.end() && memory.reserved.size() * UNIT > keep;)
        unit = held.count(*unit) ? std::next(unit) : memory.reserved.erase(unit);
}

/* ---- pinned memory of the host ------------------------------------------------------------------------------- */

std::map<const unsigned char *, size_t> pinned;

bool is_pinned(const void *p) {
    auto next = pinned.upper_bound((const unsigned char *)p);
    if (next == pinned.begin()) return false;
    --next;
    return (const unsigned char *)p < next->first + next->second;
}

} // namespace cudasim
