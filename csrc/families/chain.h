/* chain: the plan of fused calls: pointwise calls, copies and reductions of a program, which a backend runs tile by
 * tile.
 *
 *   loops of a chain      [ inner ... | rows | outer ... ]      innermost first
 *   a tile                all inner ones, and some of the rows
 *
 *   tile 0:  call 0, call 1, call 2, ...   tile 1:  call 0, call 1, ...
 *
 * Results that only the chain uses have no memory of their own, but a buffer of one tile, which stays in a thread's
 * cache. */
#ifndef NR_FAMILIES_CHAIN_H
#define NR_FAMILIES_CHAIN_H

#include "../core/plan.h"

#define NR_CHAIN_ROW 16384     /* elements of the inner loops, at most, if a call needs whole rows */
#define NR_CHAIN_TILE 4096     /* elements of other tiles, at most; divides the leaf of a reduction */
#define NR_CHAIN_FETCHED 1024  /* the same if they come from memory: the first cache has two tiles of each operand */
#define NR_CHAIN_BUFFERS 24576 /* bytes of all buffers, which limit the size of a tile */

/* Limits of chains by elements: */
#define NR_CHAIN_CALLS 64
#define NR_CHAIN_REGISTERS 8  /* that a thread has, or a row */
#define NR_CHAIN_OPERANDS 40  /* in memory, and numbers */
#define NR_CHAIN_REDUCTIONS 8 /* of rows */
#define NR_CHAIN_LOOPS 6      /* once they are merged */
#define NR_CHAIN_SHARED 48000 /* bytes of the registers of a row, at most */

struct nr_call;

typedef enum nr_chain_role {
    NR_EACH,     /* a pointwise call or a copy over all loops */
    NR_ROW,      /* the same over the rows and the outer loops: one element for each row */
    NR_INTO_ROW, /* a reduction of the inner loops */
    NR_INTO_ONE  /* a reduction of the only loop into one element, leaf by leaf */
} nr_chain_role;

#define NR_CHAIN_FETCHES 8

#define NR_IN_MEMORY (-1) /* the value of nr_link.buffer for an operand in memory */

/* A call of a chain. Its plan has the addresses of operands in memory, and the scalars. */
typedef struct nr_link {
    const struct nr_call *call;
    nr_chain_role role;
    bool is_run;  /* a pointwise call whose elements of a tile are one run, of a dtype that kernels take as it is */
    int32_t ndim; /* its loops in a tile; the last has size[ndim - 1] elements for each row */
    int64_t size[NORCH_MAX_DIMS];
    int64_t stride[NORCH_MAX_DIMS]
                  [NR_MAX_OPERANDS]; /* loop by loop; of reductions over the elements of a row, and rows */
    int64_t step[NR_MAX_OPERANDS][NORCH_MAX_DIMS]; /* in memory, over the rows and the outer loops */
    int64_t buffer[NR_MAX_OPERANDS];               /* bytes from the start of all buffers */
    bool long_buffer[NR_MAX_OPERANDS];             /* the buffer holds a leaf of a reduction, not a tile */
} nr_link;

/* An operand in memory, contiguous in a tile, which is prefetched for the next tile while this one is computed. */
typedef struct nr_chain_fetch {
    int32_t link, operand;
    int64_t lines; /* cache lines to prefetch at each call of the chain */
} nr_chain_fetch;

typedef struct nr_chain {
    int64_t count;
    nr_link *links;
    int32_t ndim;                 /* the loop over rows and the outer ones; 0: there is one tile */
    int64_t size[NORCH_MAX_DIMS]; /* of these loops */
    int64_t rows, tiles;          /* rows of a tile; tiles in all */
    int64_t row;                  /* elements of a row */
    int64_t bytes;                /* of all buffers */
    int32_t fetches;
    nr_chain_fetch fetch[NR_CHAIN_FETCHES];
} nr_chain;

/* What a backend provides for chains. With by_element there are no tiles: a thread computes all calls for one element,
 * or, where the chain has rows, threads together for one row. nr_chain.size and nr_link.step then have all loops, those
 * of a row first, tiles is the number of elements or rows, and buffers are numbers of registers. */
typedef struct nr_chain_runner {
    bool by_element;
    /* Whether a call may belong to a chain that begins with `first`; NULL: any may. */
    bool (*takes)(const struct nr_call *call, const struct nr_call *first);
    /* The role in which a reduction gives the same result as alone: NR_INTO_ROW, NR_INTO_ONE, or -1. NULL: none has
     * one. */
    int32_t (*reduces)(const struct nr_call *call);
    bool (*takes_rows)(int64_t rows, int64_t row); /* whether so many rows of so many elements may be computed whole */
    int64_t leaf;                                  /* elements that NR_INTO_ONE takes at a time */
    int32_t (*run)(const nr_chain *chain);
} nr_chain_runner;

#endif
