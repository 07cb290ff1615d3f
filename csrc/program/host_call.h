/* host_call: the plan of a call of a function of the host, such as a collective of norch.distributed, which a replay
 * repeats between the library's calls. */
#ifndef NR_PROGRAM_HOST_CALL_H
#define NR_PROGRAM_HOST_CALL_H

#include <stdbool.h>

#include "../core/fields.h"
#include "../norch.h"

/* The memory of a tensor that the call reads, or (written) reads and writes. */
NR_PLAN(nr_host_memory, OUT_IF(p->written, void *, data), NUM(int64_t, bytes), NUM(bool, written));

/* callable: the function that run() calls. Another object keeps it alive as long as the plan. what: a hash that is
 * equal for calls that do the same. */
typedef struct nr_host_call_plan nr_host_call_plan;
NR_PLAN(nr_host_call_plan, OTHER(int32_t (*)(const nr_host_call_plan *), run), OTHER(void *, callable),
        NUM(uint64_t, hash), ITEMS(nr_host_memory, memory, count), SIZES(SUM(p->count, p->memory[i].bytes)));

#endif
