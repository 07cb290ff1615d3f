/* host_call: the plan of a call of a function of the host, such as a collective of norch.distributed, which a replay
 * repeats between the library's calls. */
#ifndef NR_PROGRAM_HOST_CALL_H
#define NR_PROGRAM_HOST_CALL_H

#include "../norch.h"

/* The memory of a tensor that the call reads, or (written) reads and writes. */
typedef struct nr_host_memory {
    void *data;
    int64_t bytes;
    bool written;
} nr_host_memory;

typedef struct nr_host_call_plan nr_host_call_plan;
struct nr_host_call_plan {
    int32_t (*run)(const nr_host_call_plan *plan);
    void *callable; /* what run() calls; kept alive elsewhere as long as the plan */
    uint64_t what;  /* a hash that is equal for calls that do the same */
    int64_t count;
    const nr_host_memory *memory;
};

#endif
