/* fuse: the state of the search for a chain, by fuse.c, which tile.c turns into a chain. */
#ifndef NR_PROGRAM_FUSE_H
#define NR_PROGRAM_FUSE_H

#include "../core/memory.h"
#include "../families/reduce.h"
#include "program.h"

#define MOST_CALLS NR_CHAIN_CALLS
#define MOST_BETWEEN 32 /* other calls between the members that are moved before, or after the chain */
#define NUMBER (-2)     /* access.place of a scalar in the plan */
#define ABSOLUTE (-1)   /* access.place of memory that is not the program's own: offset is the address */

/* The elements of an operand. place is a block, NUMBER or ABSOLUTE; offset and strides locate the elements in it. */
typedef struct access {
    int32_t place;
    int64_t offset, size;
    int64_t stride[NORCH_MAX_DIMS];
    bool written;
} access;

typedef struct member {
    int64_t instr, group; /* members of a group share memory */
    nr_chain_role role;
    int32_t operands;
    access operand[NR_MAX_OPERANDS];
} member;

typedef struct search {
    const nr_program *program;
    const nr_chain_runner *runner;
    bool reorders;
    bool *taken;         /* instructions that belong to a chain */
    int64_t *uses_of;    /* for each block: how many calls that are not dead use it */
    int32_t ndim, inner; /* the loops of the chain; inner: those that form a row. 0: no call needs whole rows */
    int64_t size[NORCH_MAX_DIMS];
    bool flat;                                         /* has a reduction into one element, which needs a single loop */
    int64_t before[MOST_BETWEEN], after[MOST_BETWEEN]; /* calls between the members, moved before or after the chain */
    int64_t before_count, after_count, count;
    member members[MOST_CALLS]; /* the last field, so that a saved copy of a search ends with the members it has */
} search;

/* tile.c: whether two operands have the same element at each place in the loops. */
bool nr_same_elements(const search *s, const access *a, const access *b);
int64_t nr_product(int32_t ndim, const int64_t *size);
/* Merges those of the loops [from, to) that every operand in memory steps through with one stride, and returns the new
 * `to`. in_buffer[i][o]: operand o of member i is not in memory. */
int32_t nr_merge_loops(search *s, int32_t from, int32_t to, const bool (*in_buffer)[NR_MAX_OPERANDS]);
/* The chain of the members that the search has found, or NULL if they run one by one. */
nr_chain *nr_chain_make(search *s);

#endif
