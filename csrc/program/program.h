/* program: calls that were recorded as they were dispatched, with the memory that they use, to be run again as a whole.
 *
 * While it records, a program observes its thread (core/observer.h): it appends each finished call with a copy of its
 * plan, and notes for each address in the plan which storage contains it. nr_program_finish() then decides the memory
 * of each storage in later runs: those made before the recording, or alive after it, keep theirs; arguments are bound
 * at each run; all others share one arena. */
#ifndef NR_PROGRAM_H
#define NR_PROGRAM_H

#include "../core/device.h"
#include "../core/observer.h"
#include "../core/tensor.h"
#include "../families/chain.h"
#include "../families/layer.h"

typedef enum nr_block_kind {
    NR_TEMPORARY, /* made and freed in the recording: in the arena */
    NR_CONSTANT, /* the same, with elements that the host wrote once, or that a call computed from such elements once */
    NR_RESULT,   /* held by results only: in the arena, until the end of the run */
    NR_KEPT,     /* made in the recording, and alive after it: .grad, for example */
    NR_EXTERNAL, /* made before the recording */
    NR_ARGUMENT
} nr_block_kind;

/* A storage that the recorded calls use. The program holds a reference to external and kept ones. */
typedef struct nr_block {
    norch_storage *storage; /* NULL: freed */
    char *data;
    size_t bytes;
    const nr_backend *backend;
    nr_block_kind kind;
    bool external, written;
    bool is_number;      /* a Python number, which is constant */
    bool fresh;          /* a result that each run writes into new memory */
    int64_t first_fresh; /* the first of its uses in program->fresh */
    int64_t first, last; /* the calls that use it first and last; last is -1 if none does */
    int64_t born, died;  /* the number of calls before it was allocated, and before it was freed */
    char *constant;      /* a copy of the elements of a constant; or NULL */
    size_t at;           /* offset in the arena */
    int32_t argument;
    int64_t results,
        early;    /* the number of results that are it or views of it, and how many of these the first part returns */
    bool awaited; /* in the search for dead calls, from the last back: its present content is needed, */
    int64_t over_from, over_to; /* except these bytes, which are overwritten first */
    bool in_buffer;             /* used only in one chain, tile by tile, so that it needs no memory */
    bool is_image;              /* an image of a layer, which belongs to no tensor */
} nr_block;

/* An address in a plan. */
typedef struct nr_use {
    void **at;
    int64_t offset;      /* in bytes, from the data of the block; of an argument: from its first element */
    int32_t block, home; /* home: the block of the storage, also where block stands for an argument */
    bool written;
} nr_use;

typedef struct nr_lowered nr_lowered; /* layers.h */

typedef struct nr_instr {
    nr_call call; /* the first field, so that a pointer to it is one to the instruction; the plan is a copy */
    int32_t (*run)(const nr_call *call); /* with the call, or its chain; NULL if nothing runs here */
    void *items;                         /* of the plan of an optimizer or a host call */
    int64_t first_use, uses;
    uint64_t digest, flow; /* hashes of the call and its memory; flow leaves out which external memory it is */
    void *line;            /* what program->line() returned, or NULL */
    int64_t number;        /* the position of the call in the recording */
    bool dead;
    nr_chain *chain;        /* the chain that begins with this instruction, and is run in its place; or NULL */
    bool follows;           /* belongs to the chain of an earlier instruction */
    nr_lowered *lowered;    /* the layer that begins with this instruction, and is run in its place; or NULL */
    bool folded;            /* belongs to the layer of an earlier instruction: */
    int64_t root;           /* the position of that one in the recording */
    const nr_image *stored; /* what the instruction writes, which is stored as planes at: */
    void **planes;
} nr_instr;

/* A tensor that each run binds. */
typedef struct nr_argument {
    char *data; /* of its first element in the present run, or in the last one */
    const nr_backend *backend;
    int64_t numel; /* 0: not contiguous */
    int32_t dtype;
    bool copied;         /* copied before each run to where graphs read it: */
    norch_storage *copy; /* here */
    bool read[2];        /* whether the first, and the second part reads it */
} nr_argument;

/* Calls [first, end) that are the same in each run, so that a device can run them as one graph. */
typedef struct nr_segment {
    int64_t first, end;
    void *graph; /* NULL: the calls run one by one */
} nr_segment;

typedef struct nr_program nr_program;
struct nr_program {
    nr_observer observer; /* the first field, so that a pointer to the observer is one to the program */
    bool strict, fuses;
    char refusal[200];  /* why the recording cannot be replayed; "" if it can */
    void *refused_line; /* what line() returned then, or NULL */
    void *(*line)(void *owner);
    void (*forget_line)(void *line);
    void *owner;
    nr_instr *instrs;
    nr_use *uses, *bindings; /* bindings: the uses of arguments, whose block is -1 - the argument */
    nr_use *fresh;           /* the uses of fresh results, block by block */
    nr_block *blocks;
    int64_t count, use_count, binding_count, fresh_count, block_count, instr_capacity, use_capacity, block_capacity;
    int64_t peak_bytes; /* of temporary blocks and results, if allocated and freed as in the function itself */
    /* A divided program has two parts, a function (the calls before split) and its gradient. They run separately, and
     * other code may run in between; no call moves from one part to the other. The second part reads results of the
     * first in the arena, so that each run whose second part is still to come has an arena of its own. */
    bool divided;
    int64_t split;
    int64_t from, to; /* the calls of the present run */
    int64_t complete; /* where the last run ended: the calls before this one are complete; `to` unless one failed */
    double first_work;
    double work;
    const nr_backend *backend; /* the device, if any call runs on one, else the CPU */
    norch_storage *arena;      /* of the present run, or of the last one; NULL: no block needs it */
    nr_argument *arguments;
    int32_t argument_count;
    nr_image *images;     /* of layers; or NULL */
    nr_segment *segments; /* made by the second run */
    int64_t segment_count, runs;
    norch_storage *slots; /* the slots (core/device.h) of calls in graphs, on the device; NULL: none */
    char *slot_bytes;     /* their content on the host */
    nr_feed *feeds;       /* what is copied to the device before a run; NULL: nothing */
    double *seconds;      /* where the next run writes the time of each call; or NULL */
    bool running;         /* a thread runs it: no other may run it or bind its arguments */
};

/* A program that records the calls of this thread from nr_observe() on; NULL: out of memory. */
nr_program *nr_program_make(bool strict);
/* Stores the reason why the recording cannot be replayed; the first reason is kept. Fails if the program is strict. */
int32_t nr_program_refuse(nr_program *program, const char *why);
/* The same, but never fails. */
void nr_program_spoil(nr_program *program, const char *why);
/* The block of a storage, a new external one if it has none; -1: out of memory. */
int32_t nr_program_see(nr_program *program, norch_storage *storage);
/* The block of a storage that is alive; -1: none. */
int32_t nr_program_find(const nr_program *program, const norch_storage *storage);
/* Ends the recording. arguments: tensors that each run binds. results: those results that were made in the recording.
 * early: how many of them the first part gives. fresh: runs write results into new memory where possible. */
int32_t nr_program_finish(nr_program *program, int32_t arguments, const norch_tensor *const *argument, int32_t results,
                          const norch_tensor *const *result, int32_t early, bool fresh);
/* Sets the address of the elements of an argument. */
void nr_program_bind(nr_program *program, int32_t argument, char *data);
/* Ends the first part: later calls belong to the second. */
void nr_program_divide(nr_program *program);
/* Replaces the arena by another storage of its size, in all plans. */
void nr_program_move(nr_program *program, norch_storage *arena);
/* Replaces the memory of a block that stays in use, in all plans; takes over the reference to it. */
void nr_program_renew(nr_program *program, int32_t block, norch_storage *storage);
/* Called before the first part of a divided program: gives it a new arena if an earlier run may still need the present
 * one. */
int32_t nr_program_clear_arena(nr_program *program);
/* Sets the address of a fresh block. */
void nr_program_put_result(nr_program *program, int32_t block, char *data);
/* Runs all calls, or those of one part. */
int32_t nr_program_run(nr_program *program, bool second);
/* After a run: counts its writes to packed weights (packed.h). */
void nr_packed_note_run(const nr_program *program);
/* The first call in which two programs differ; -1: none. loosely: external memory may differ. */
int64_t nr_program_differs(const nr_program *a, const nr_program *b, bool loosely);
void nr_program_free(nr_program *program);

/* graph.c: captures the segments of a program as graphs of the device; copies arguments and slots to where the graphs
 * read them; frees the graphs. */
int32_t nr_program_make_graphs(nr_program *program);
int32_t nr_program_feed(const nr_program *program);
void nr_program_free_graphs(nr_program *program);
/* Runs one call, or the chain that begins with it. */
/* Whether only the program uses a block. Other blocks may overlap one another. */
static inline bool nr_is_private(const nr_program *program, int32_t block) {
    return block >= 0 && program->blocks[block].kind != NR_EXTERNAL && program->blocks[block].kind != NR_KEPT;
}
static inline int32_t nr_program_run_instr(const nr_instr *instr) {
    return instr->run ? instr->run(&instr->call) : NORCH_OK;
}
/* instr.c: decides how, once the chains are made. */
void nr_program_choose_run(nr_instr *instr);
/* Advances the random number generator for a call, and notes the position in its plan. */
void nr_program_draw(const nr_call *call);
/* The hyper-parameters of a step of an optimizer; NULL for other calls. */
const double *nr_program_hyper(const nr_call *call);

/* constant.c: runs calls that read only constants, and marks them as dead. */
int32_t nr_program_fold_constants(nr_program *program);

/* lower.c: makes layers of convolutions and what follows them, where the weights are constant. */
void nr_program_lower(nr_program *program);

/* fuse.c: finds chains, and moves the instructions of each next to each other. reorders: chains may have other calls in
 * between. */
void nr_program_fuse(nr_program *program, bool reorders);
void nr_program_unfuse(nr_program *program);

/* arena.c: marks dead calls, whose results are overwritten before anything reads them. */
void nr_program_find_dead(nr_program *program);
/* Sets the offsets of temporary blocks and results in the arena; returns its size. */
size_t nr_program_place_blocks(nr_program *program);
/* Whether results depend on memory from before the recording that the calls write to, so that another run would give
 * others. Comes before the end of the recording. */
bool nr_program_carries(const nr_program *program);
/* Whether a block is in the arena, once blocks are placed. */
bool nr_in_arena(const nr_block *block);

#endif
