/* counting: what kernels move. g++ -fsanitize=thread puts a call before each access of memory, which is answered here
 * instead of by that sanitizer: `make cuda-counts` compiles the kernels so. Elsewhere nothing calls this.
 *
 * Counted are bytes that threads ask for of the device's memory, and the sectors of 32 bytes that a kernel touches, each
 * once: what comes from and goes to DRAM where the cache is large. Bytes of shared memory are counted, too. */
#include "simulation.h"

#include <link.h>
#include <sys/mman.h>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace cudasim {
namespace {

enum {
    LAUNCHES,
    THREADS,
    BARRIERS,
    READ,
    WRITTEN,
    WIDE,
    READ_ONCE,
    WRITTEN_ONCE,
    SHARED_READ,
    SHARED_WRITTEN,
    COPIED,
    KINDS
};
int64_t counts[KINDS];
constexpr size_t SECTOR = 32;

/* The kernel that has touched a sector last. */
struct sectors {
    uint32_t *last = nullptr;
    int64_t touch(size_t from, size_t bytes, uint32_t kernel) {
        if (!last)
            last = (uint32_t *)mmap(nullptr, memory.size / SECTOR * sizeof *last, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        int64_t fresh = 0;
        for (size_t s = from / SECTOR; s <= (from + bytes - 1) / SECTOR; s++) {
            fresh += last[s] != kernel;
            last[s] = kernel;
        }
        return fresh * (int64_t)SECTOR;
    }
};
sectors read_by, written_by;
uint32_t kernel; /* the running one's number; 0: none runs */

/* Where the variables of this library lie: the shared memory of kernels is among them. */
struct own_data {
    const char *from = nullptr, *end = nullptr;
};
own_data find_own_data() {
    own_data found;
    dl_iterate_phdr(
        [](dl_phdr_info *info, size_t, void *to) {
            for (int i = 0; i < info->dlpi_phnum; i++) {
                const auto &part = info->dlpi_phdr[i];
                const char *from = (const char *)info->dlpi_addr + part.p_vaddr, *end = from + part.p_memsz;
                if (part.p_type == PT_LOAD && (const char *)&counts >= from && (const char *)&counts < end)
                    *(own_data *)to = {from, end};
            }
            return 0;
        },
        &found);
    return found;
}

bool is_shared(const void *p) {
    static const own_data data = find_own_data();
    const char *at = (const char *)p;
    if (at >= (const char *)dynamic_shared && at < (const char *)dynamic_shared + dynamic_size) return true;
    if (at >= (const char *)&here && at < (const char *)(&here + 1)) return false; /* threadIdx and its kin */
    return at >= data.from && at < data.end && p != &dynamic_shared;
}

void access(const void *p, size_t bytes, bool writes) {
    if (!kernel) return;
    if (in_arena(p)) {
        const size_t at = (size_t)((const unsigned char *)p - memory.base);
        counts[writes ? WRITTEN : READ] += (int64_t)bytes;
        counts[writes ? WRITTEN_ONCE : READ_ONCE] += (writes ? written_by : read_by).touch(at, bytes, kernel);
        if (bytes == 16) counts[WIDE] += 16;
    } else if (is_shared(p)) {
        counts[writes ? SHARED_WRITTEN : SHARED_READ] += (int64_t)bytes;
    }
}

} // namespace

void count_kernel(int64_t threads) {
    static uint32_t last;
    kernel = threads ? ++last : 0;
    if (!threads) return;
    counts[LAUNCHES]++;
    counts[THREADS] += threads;
}
void count_barrier() { counts[BARRIERS]++; }
void count_copy(size_t bytes) { counts[COPIED] += (int64_t)bytes; }

} // namespace cudasim

/* Writes what was counted since the last call; gives how many numbers there are. */
EXPORTED int cudasim_counts(int64_t *to) {
    for (int i = 0; i < cudasim::KINDS; i++) {
        to[i] = cudasim::counts[i];
        cudasim::counts[i] = 0;
    }
    return cudasim::KINDS;
}

#define ACCESS(bytes)                                                                           \
    extern "C" void __tsan_read##bytes(void *p) { cudasim::access(p, bytes, false); }           \
    extern "C" void __tsan_write##bytes(void *p) { cudasim::access(p, bytes, true); }           \
    extern "C" void __tsan_unaligned_read##bytes(void *p) { cudasim::access(p, bytes, false); } \
    extern "C" void __tsan_unaligned_write##bytes(void *p) { cudasim::access(p, bytes, true); }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
extern "C" void __tsan_read_range(void *p, size_t bytes) { cudasim::access(p, bytes, false); }
extern "C" void __tsan_write_range(void *p, size_t bytes) { cudasim::access(p, bytes, true); }
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void *) {}
extern "C" void __tsan_func_exit() {}
