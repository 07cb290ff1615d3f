/* program: calls that were recorded at the gate, with the memory that they use, to be run again in one go.
 *
 * While it records, a program observes its thread (core/observer.h): it appends each finished call, with a copy of its plan, and
 * tells for each address in the plan which storage it lies in. nr_program_finish() then says where each storage lives from
 * now on: what was there before stays where it is, what lives on after the recording does too, arguments are bound at each
 * run, and all others share one slab. */
#ifndef NR_PROGRAM_H
#define NR_PROGRAM_H

#include "../core/device.h"
#include "../core/observer.h"
#include "../core/tensor.h"
#include "../families/chain.h"

typedef enum nr_block_kind {
    NR_TEMPORARY, /* made and gone in the recording: in the slab */
    NR_CONSTANT,  /* the same, with elements that the host wrote once */
    NR_RESULT,    /* a result and nothing else: in the slab, to its end */
    NR_KEPT,      /* made in the recording, and alive: .grad, for example */
    NR_EXTERNAL,  /* there before the recording */
    NR_ARGUMENT
} nr_block_kind;

/* A storage that the recorded calls use. The program holds a reference to those that are external or kept. */
typedef struct nr_block {
    norch_storage *storage; /* NULL: gone */
    char *data;
    size_t bytes;
    const nr_backend *backend;
    nr_block_kind kind;
    bool external, written;
    bool is_number;      /* of Python's: constant */
    bool fresh;          /* a result that each run puts into new memory, */
    int64_t first_fresh; /* and the first of its uses in program->fresh */
    int64_t first, last; /* the calls that use it first and last; last is -1 if none does */
    int64_t born, died;  /* the numbers of calls before it was made, and before it was gone */
    char *constant;      /* what the host wrote, or NULL */
    size_t at;           /* in the slab */
    int32_t argument;
    int64_t results;            /* headers of results over it */
    bool awaited;               /* while calls are read from the last one back: what it has now is read, or left, */
    int64_t over_from, over_to; /* and bytes that are overwritten before */
    bool in_buffer;             /* only a chain uses it, tile by tile: it needs no memory */
} nr_block;

/* An address in a plan. */
typedef struct nr_use {
    void **at;
    int64_t offset;      /* in bytes, from the data of the block; of an argument: from its first element */
    int32_t block, home; /* home: also of an argument the block of its storage */
    bool written;
} nr_use;

typedef struct nr_step {
    nr_call call; /* its plan, and arrays of that, are the step's own */
    void *items;  /* of the plan of an optimizer or a host call */
    int64_t first_use, uses;
    uint64_t digest, flow; /* what it does, with which memory; flow: the same, whatever memory was there before */
    void *line;            /* what program->line gave, or NULL */
    int64_t number;        /* of the call as recorded */
    bool dead;
    nr_chain *chain; /* which begins with this step, and is run here */
    bool follows;    /* belongs to the chain of a step before */
} nr_step;

/* A tensor that each run binds. */
typedef struct nr_argument {
    char *data; /* of its first element in the run under way, or in the last one */
    const nr_backend *backend;
    int64_t numel; /* of its elements, which lie side by side; 0: they do not */
    int32_t dtype;
    bool copied; /* before each run, to where graphs read it, */
    norch_storage *copy;
    bool read[2]; /* in the first part, in the second */
} nr_argument;

/* Calls from first to before end that do the same in each run, which a device may run as one graph. */
typedef struct nr_segment {
    int64_t first, end;
    void *graph; /* NULL: none, they run one by one */
} nr_segment;

typedef struct nr_program nr_program;
struct nr_program {
    nr_observer observer; /* first: the observer is the program */
    bool strict, fuses;
    char refusal[200]; /* why this cannot be recorded; "" if nothing speaks against it */
    void *(*line)(void *owner);
    void (*forget_line)(void *line);
    void *owner;
    nr_step *steps;
    nr_use *uses, *bindings; /* bindings: the uses of arguments, whose block is -1 - the argument */
    nr_use *fresh;           /* those of fresh results, block by block */
    nr_block *blocks;
    int64_t count, use_count, binding_count, fresh_count, block_count, step_capacity, use_capacity, block_capacity;
    int64_t peak_bytes; /* of temporary blocks and results, as the function itself allocates and frees them */
    /* A program in two parts, a function and its gradient, is run part by part, with anything between the two: the first part
     * has the calls before split, and no call may move from one to the other. What the second reads of the first lies in the
     * slab, so that each run that waits for its second part has a slab of its own. */
    bool divided;
    int64_t split;
    int64_t from, to; /* the calls of the run that is under way */
    double first_work;
    double work;
    const nr_backend *backend; /* that of the calls: a device, if any call is for one */
    norch_storage *slab;       /* of the run under way, or of the last one; NULL: nothing is in it */
    nr_argument *arguments;
    int32_t argument_count;
    nr_segment *segments; /* made by the second run */
    int64_t segment_count, runs;
    norch_storage *slots; /* what calls of graphs read anew in each run (core/device.h), on the device; NULL: nothing */
    char *slot_bytes;     /* the same on the host, before a run, */
    nr_feed *feeds;       /* and all that is moved then; NULL: nothing */
    double *seconds;      /* of each call, which the next run fills; NULL: it does not */
    bool running;         /* by some thread: nobody else may run it or bind its arguments */
};

/* A program that records what this thread does from nr_observe() on; NULL: out of memory. */
nr_program *nr_program_make(bool strict);
/* Says why it cannot be recorded: the first reason counts. Fails if the program is strict. */
int32_t nr_program_refuse(nr_program *program, const char *why);
/* The same, where nothing may fail any more. */
void nr_program_spoil(nr_program *program, const char *why);
/* The block of a storage that a tensor uses, which becomes an external one if it is none; -1: out of memory. */
int32_t nr_program_see(nr_program *program, norch_storage *storage);
/* The block of a storage that is alive; -1: none. */
int32_t nr_program_find(const nr_program *program, const norch_storage *storage);
/* Ends the recording. arguments: tensors that each run binds; results: what a run gives, as far as the recording made it;
 * fresh: into new memory, where that is possible. */
int32_t nr_program_finish(nr_program *program, int32_t arguments, const norch_tensor *const *argument, int32_t results,
                          const norch_tensor *const *result, bool fresh);
/* Uses the elements of x as those of an argument. */
void nr_program_bind(nr_program *program, int32_t argument, char *data);
/* Ends the first part: the calls from here on are the second. */
void nr_program_divide(nr_program *program);
/* From now on the slab is another storage of its size. */
void nr_program_move(nr_program *program, norch_storage *slab);
/* Before the first part of a divided program is run: gives it a slab that no earlier run waits with. */
int32_t nr_program_clear_slab(nr_program *program);
/* Puts the result over a block that is fresh at data. */
void nr_program_put_result(nr_program *program, int32_t block, char *data);
/* Runs all calls, or those of one part. */
int32_t nr_program_run(nr_program *program, bool second);
/* The first call in which two programs differ; -1: none. loosely: memory that was there before may be another. */
int64_t nr_program_differs(const nr_program *a, const nr_program *b, bool loosely);
void nr_program_free(nr_program *program);

/* graph.c: notes the segments of a program for a device, each as a graph; moves arguments and slots to where graphs read
 * them; and frees graphs. */
int32_t nr_program_make_graphs(nr_program *program);
int32_t nr_program_feed(const nr_program *program);
void nr_program_free_graphs(nr_program *program);
/* step.c: runs one call, or the chain that begins with it. */
int32_t nr_program_run_step(const nr_step *step);
/* Takes the random numbers of a call: its plan says which. */
void nr_program_draw(const nr_call *call);

/* fuse.c: finds chains, and puts the steps of each side by side. reorders: also steps that are not. */
void nr_program_fuse(nr_program *program, bool reorders);
void nr_program_unfuse(nr_program *program);

/* layout.c: which calls are dead: nothing reads what they write before it is overwritten. */
void nr_program_find_dead(nr_program *program);
/* Where in the slab temporary blocks and results lie; gives its size. */
size_t nr_program_layout(nr_program *program);
/* Whether a block lies in the slab, once the layout is made. */
bool nr_in_slab(const nr_block *block);

#endif
