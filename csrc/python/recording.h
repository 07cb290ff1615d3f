/* recording: a program of csrc/program/ as a Python object, with what has to hold for it to be run again. */
#ifndef NR_PYTHON_RECORDING_H
#define NR_PYTHON_RECORDING_H

#include "../program/program.h"
#include "abi.h"
#include "calls.h"
#include "object.h"

typedef enum nr_grad_rule {
    NR_GRAD_ANY,  /* the program does not depend on it */
    NR_GRAD_NONE, /* .grad was None */
    NR_GRAD_SAME, /* the program uses the memory that .grad had */
} nr_grad_rule;

/* A tensor, there before the recording, that its calls use. Objects are referenced, and NULL where there is none. */
typedef struct nr_seen {
    norch_tensor *x;
    norch_storage *storage;
    void *data, *node;
    void *grad_after;              /* .grad at the end */
    norch_storage *first_storage;  /* of .grad when x was first used, NULL: it was None; without a reference, */
    void *first_data;              /* so that the function itself can free it */
    norch_storage *before_storage; /* the same at the start of the next recording, if that is known */
    bool knows_before;
    nr_grad_rule rule;
    bool sets_grad;      /* a run leaves grad_after in .grad */
    bool written, later; /* later: the second part uses its memory */
    bool gained;         /* the first part has given it another history */
} nr_seen;

/* An argument, as it was when recorded. */
typedef struct nr_leaf {
    void *object;                 /* what is no tensor, and a fixed tensor: the object; else NULL */
    norch_tensor tensor;          /* a copy of the header */
    bool is_tensor, needs, later; /* needs: a gradient; later: as above */
    int32_t argument;             /* of the program; -1: fixed, or unused */
    int32_t shares;               /* the first argument over the same storage */
    char *apart;                  /* memory that was found apart from what else the program uses, the last time, */
    size_t apart_bytes;           /* and how much of it */
} nr_leaf;

/* A condition on Python: container[key] is value, or, where key is NULL, len(container) is size. */
typedef enum nr_guard_kind { NR_IN_DICT, NR_IN_LIST, NR_IN_CELL } nr_guard_kind;
typedef struct nr_guard {
    void *container, *key, *value;
    nr_guard_kind kind;
    int64_t size;     /* of a list with a key: the key */
    uint64_t version; /* of the dict when this was last looked at; 0: unknown */
} nr_guard;

typedef struct nr_returned {
    norch_tensor header; /* over the program's memory */
    void *object;        /* a tensor that was there before, itself; or NULL */
    int32_t leaf;        /* an argument, itself, or a view of it; or -1 */
    int32_t block;       /* of the program; or -1 */
    int64_t at;          /* of the first element: in the slab, in bytes */
    norch_tensor *made;  /* by the run under way */
    int64_t offset;      /* of a view, in bytes from the argument's first element; -1: the argument itself */
} nr_returned;

typedef struct nr_recording {
    int64_t references; /* begins as an object does */
    void *type;
    nr_program *program;
    bool ready, grad_enabled, copies, alone; /* alone: one tensor is returned, without a tuple */
    bool joins;                              /* results are joined to a graph, which arguments may have */
    int64_t first_leaves, first_results;     /* of the first part; the second gets gradients and gives gradients */
    bool asks;                               /* before_run is called in any case */
    int32_t default_dtype;
    nr_seen *seen;
    nr_leaf *leaves;
    nr_guard *guards, *watches; /* watches: entries of dicts, of which before_run wants to know that they changed */
    nr_returned *results;
    int64_t seen_count, seen_capacity, leaf_count, guard_count, watch_count, result_count;
    norch_storage **held; /* storages that a run uses, which no argument may be over */
    int64_t held_count;
    void *earlier;               /* the recording before, whose tensors tell what .grad was */
    void *line, *mode, *counter; /* Python's: tells the user's line; autograd's mode; counts writes */
    void *before_run, *after_run, *kept;
} nr_recording;

extern void *nr_recording_type;
/* Whether dicts have a version, which each change to one makes another (PEP 509): CPython 3.10 and 3.11. */
extern bool nr_dicts_have_versions;
nr_recording *nr_recording_of(const char *name, void *object);
/* Notes the modes under which the function ran. */
int32_t nr_recording_note_modes(nr_recording *recording);
/* The results; NotImplemented where something is not as it was, and nothing has been done. */
void *nr_recording_replay(nr_recording *recording, void *leaves);

#endif
