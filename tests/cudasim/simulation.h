/* simulation: what the parts of the simulation know of each other: memory.cpp, the device's memory; scheduler.cpp, the
 * threads of a block; counting.cpp, what they move; modules.cpp, code made at run time; cudasim.cpp, streams and the functions of the runtime. */
#ifndef CUDASIM_SIMULATION_H
#define CUDASIM_SIMULATION_H

#include "cuda_runtime.h"

#include <functional>
#include <map>
#include <set>

namespace cudasim {

extern cudaError_t broken; /* what ended the device */
/* Ends the device: every later call fails, and tells this. */
void end_device(cudaError_t error, const char *format, ...) __attribute__((format(printf, 2, 3)));

int64_t number_of(const char *environment, int64_t otherwise);
uint32_t random_number();

/* An arena that the host cannot touch while it is not opened. live: offset to bytes, as asked for. reserved: units that
 * a pool has taken from the device and not given back, as CUDA's driver takes memory: 32 MiB at a time. */
constexpr size_t UNIT = (size_t)32 << 20;
struct arena {
    unsigned char *base = nullptr;
    size_t size = 0, used = 0, top = 0, most_reserved = 0;
    std::map<size_t, size_t> live, unused;
    std::set<size_t> reserved;
};
extern arena memory;
void start_arena();
bool in_arena(const void *p);
void *take(size_t bytes); /* NULL: there is no room */
void give(size_t at);
void trim(size_t keep); /* gives units back in which no block lies, until no more than so many bytes are reserved */
struct opened {         /* all of it, or a part */
    opened();
    opened(size_t at, size_t bytes);
    ~opened();
    const size_t from, end;
};

/* Memory of the host that the device can reach. */
extern std::map<const unsigned char *, size_t> pinned;
bool is_pinned(const void *p);

/* For counting.cpp: a kernel begins with so many threads, or (0) ends. */
void count_kernel(int64_t threads);
void count_barrier();
void count_copy(size_t bytes);

/* The running thread waits while this holds; meanwhile others run. */
void wait_while(bool (*holds)(uint32_t at, int value), uint32_t at, int value, const char *file, int line);
void *tile_encoder(); /* cuTensorMapEncodeTiled */
/* tiles.cpp: does one of the block's copies; false when there is none. */
bool finish_a_tile();
void begin_block_of_tiles(int threads);
void end_block_of_tiles(int threads);

/* Runs a kernel now; what it does wrong ends the device. */
void run_kernel(dim3 grid, dim3 block, size_t shared, const std::function<void()> &kernel);
constexpr int MOST_THREADS = 1024; /* of a block */
constexpr size_t MOST_SHARED = 227 << 10;
extern size_t dynamic_size; /* bytes at dynamic_shared */

} // namespace cudasim

#endif
