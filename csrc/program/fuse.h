/* fuse: what fuse.c finds out about a chain, for tile.c, which lays it out. */
#ifndef NR_PROGRAM_FUSE_H
#define NR_PROGRAM_FUSE_H

#include "../core/memory.h"
#include "../families/reduce.h"
#include "program.h"

#define MOST_CALLS NR_CHAIN_CALLS
#define MOST_BETWEEN 32 /* calls that a chain is moved behind, and that a call may be moved up over */
#define NUMBER (-2)     /* the place of a number in the plan, */
#define ABSOLUTE (-1)   /* and of memory that is not the program's own: offset is the address */

/* The elements of an operand: the block, or ABSOLUTE, and where they lie in it, loop by loop. */
typedef struct access {
    int32_t place;
    int64_t offset, size;
    int64_t stride[NORCH_MAX_DIMS];
    bool written;
} access;

typedef struct member {
    int64_t step, group; /* members of one group are connected by memory that they use */
    nr_chain_role role;
    int32_t operands;
    access operand[NR_MAX_OPERANDS];
} member;

typedef struct search {
    const nr_program *program;
    const nr_chain_runner *runner;
    bool reorders;
    bool *taken;         /* steps that belong to a chain */
    int64_t *uses_of;    /* a block: by calls that are not dead */
    int32_t ndim, inner; /* the loops of the chain, and of these the inner ones; 0: no call needs whole rows */
    int64_t size[NORCH_MAX_DIMS];
    bool flat; /* a reduction into one element: there is one loop, and stays one */
    int64_t before[MOST_BETWEEN], after[MOST_BETWEEN]; /* calls between the members, which go in front, or behind */
    int64_t before_count, after_count, count;
    member members[MOST_CALLS]; /* last: where a search is put aside, only as many as there are */
} search;

/* tile.c: whether two operands have the same element at each place in the loops. */
bool nr_same_elements(const search *s, const access *a, const access *b);
int64_t nr_product(int32_t ndim, const int64_t *size);
/* Merges the loops from `from` to before `to` that are one in every access to memory; in_buffer[i][o] tells which are not.
 * Gives the new `to`. */
int32_t nr_merge_loops(search *s, int32_t from, int32_t to, const bool (*in_buffer)[NR_MAX_OPERANDS]);
/* The chain of the members that the search has found; NULL: they run one by one. */
nr_chain *nr_chain_make(search *s);

#endif
