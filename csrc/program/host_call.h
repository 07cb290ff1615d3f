/* host_call: the plan of a call that is not the library's own, as a collective of norch.distributed is: a recording makes it
 * between its calls. */
#ifndef NR_PROGRAM_HOST_CALL_H
#define NR_PROGRAM_HOST_CALL_H

#include "../norch.h"

/* Memory of a tensor that the call reads, or (written) reads and writes. */
typedef struct nr_host_memory {
    void *data;
    int64_t bytes;
    bool written;
} nr_host_memory;

typedef struct nr_host_call_plan nr_host_call_plan;
struct nr_host_call_plan {
    int32_t (*run)(const nr_host_call_plan *plan);
    void *callable; /* what run() calls: its owner keeps it as long as the plan */
    uint64_t what;  /* equal for calls that do the same */
    int64_t count;
    const nr_host_memory *memory;
};

#endif
