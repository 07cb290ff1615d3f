/* chain: pointwise calls, copies and reductions of a program that a backend runs together, tile by tile.
 *
 *   loops of a chain      [ inner ... | rows | outer ... ]      innermost first
 *   a tile                all inner ones, and some of the rows
 *
 *   tile 0:  call 0, call 1, call 2, ...   tile 1:  call 0, call 1, ...
 *
 * What only the chain uses has no memory of its own: it lies in a buffer, of one tile, that a thread has in its cache. */
#ifndef NR_FAMILIES_CHAIN_H
#define NR_FAMILIES_CHAIN_H

#include "../core/plan.h"

#define NR_CHAIN_ROW 16384     /* elements of the inner loops, where a call needs all of them at once, at most */
#define NR_CHAIN_TILE 4096     /* elements of other tiles, at most; divides the leaf of a reduction */
#define NR_CHAIN_BUFFERS 24576 /* bytes of all buffers, which choose the size of a tile */

/* Of chains by elements, at most: */
#define NR_CHAIN_CALLS 64
#define NR_CHAIN_REGISTERS 8 /* that a thread has */
#define NR_CHAIN_OPERANDS 40 /* in memory, and numbers */
#define NR_CHAIN_LOOPS 6     /* once they are merged */

struct nr_call;

typedef enum nr_chain_role {
    NR_EACH,     /* a pointwise call or a copy over all loops */
    NR_ROW,      /* the same over the rows and the outer loops: an element a row */
    NR_INTO_ROW, /* a reduction of the inner loops */
    NR_INTO_ONE  /* a reduction of all loops, of which there is one, into one element: leaf by leaf */
} nr_chain_role;

#define NR_CHAIN_FETCHES 8

#define NR_IN_MEMORY (-1) /* the buffer of an operand that has none */

/* A call of a chain. The addresses of operands in memory, and numbers, are those of its plan. */
typedef struct nr_link {
    const struct nr_call *call;
    nr_chain_role role;
    bool is_run;  /* a pointwise call whose elements of a tile are one run, of a dtype that kernels take as it is */
    bool streams; /* the same, and the result is large, and nothing in the chain reads it */
    int32_t ndim; /* its loops in a tile; the last has size[ndim - 1] elements for each row */
    int64_t size[NORCH_MAX_DIMS];
    int64_t stride[NORCH_MAX_DIMS]
                  [NR_MAX_OPERANDS]; /* loop by loop; of reductions over the elements of a row, and rows */
    int64_t step[NR_MAX_OPERANDS][NORCH_MAX_DIMS]; /* in memory, over the rows and the outer loops */
    int64_t buffer[NR_MAX_OPERANDS];               /* bytes from the start of all buffers */
    bool long_buffer[NR_MAX_OPERANDS];             /* it has a leaf of a reduction, not a tile */
} nr_link;

/* An operand in memory whose elements of a tile are neighbours: those of the next tile are fetched while this one is computed. */
typedef struct nr_chain_fetch {
    int32_t link, operand;
    int64_t lines; /* of the cache that it has in a tile, for each call of the chain */
} nr_chain_fetch;

typedef struct nr_chain {
    int64_t count;
    nr_link *links;
    int32_t ndim;                 /* the loop over rows, and the outer ones; 0: the tile is all */
    int64_t size[NORCH_MAX_DIMS]; /* theirs */
    int64_t rows, tiles;          /* rows of a tile; tiles in all */
    int64_t row;                  /* elements of a row */
    int64_t bytes;                /* of all buffers */
    int32_t fetches;
    nr_chain_fetch fetch[NR_CHAIN_FETCHES];
} nr_chain;

/* What a backend provides for chains. One that goes by elements has neither tiles nor reductions: a thread takes an element
 * through all calls. A chain's loops are then all outer ones, and buffers are numbers of registers. */
typedef struct nr_chain_runner {
    bool by_element;
    /* NULL, or whether a call may belong to a chain that begins with `first`. */
    bool (*takes)(const struct nr_call *call, const struct nr_call *first);
    /* The role that a reduction may have without other results: NR_INTO_ROW, NR_INTO_ONE, or -1. NULL: none has one. */
    int32_t (*reduces)(const struct nr_call *call);
    int64_t leaf; /* elements that NR_INTO_ONE takes at a time */
    int32_t (*run)(const nr_chain *chain);
} nr_chain_runner;

#endif
