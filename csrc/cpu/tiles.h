/* tiles: reductions in a chain (chain.c), on the calling thread. */
#ifndef NR_CPU_TILES_H
#define NR_CPU_TILES_H

#include "../families/reduce.h"
#include "cpu.h"

/* See nr_chain_runner.reduces. */
int32_t nr_reduce_role(const nr_call *call);
/* The call over some of its outputs, each of one run. */
void nr_reduce_rows(const nr_call *call, const nr_reduce_plan *plan);
/* A reduction into one element in two steps: nr_reduce_leaf() reduces the leaf that begins with element `first`, at x,
 * into its state; nr_reduce_join() merges all states, which it overwrites, into the result. */
int64_t nr_reduce_state_size(const nr_call *call);
void nr_reduce_leaf(const nr_call *call, const char *x, int64_t first, char *states);
void nr_reduce_join(const nr_call *call, char *states);

#endif
