/* recording: a program of csrc/program/ as a Python object, with the conditions under which it may be run again. */
#ifndef NR_PYTHON_RECORDING_H
#define NR_PYTHON_RECORDING_H

#include "../../program/program.h"
#include "../abi.h"
#include "../calls.h"
#include "../modes.h"
#include "../object.h"

typedef enum nr_grad_rule {
    NR_GRAD_ANY,  /* the program does not depend on it */
    NR_GRAD_NONE, /* .grad was None */
    NR_GRAD_SOME, /* .grad was not None, which Python has read */
    NR_GRAD_SAME, /* the program uses the memory that .grad had */
} nr_grad_rule;

/* While it records: a tensor from before the recording that its calls use. The objects are owned references. */
typedef struct nr_seen {
    norch_tensor *x;
    void *node;
    norch_storage *grad_storage;      /* of .grad when x was first used; NULL: it was None. Not a reference, so that */
    void *grad_data;                  /* the function itself can free it */
    norch_tensor header, grad_header; /* copies, of x and .grad as they were then */
    bool gained;                      /* the forward part has changed its node in the autograd graph */
    bool asked;                       /* Python has read .grad as it was then */
    bool set;                         /* Python has set .grad, though perhaps to what it was */
    bool reached;                     /* Python can read it otherwise than as an argument */
} nr_seen;

/* The storage of a tensor's .grad when the recording began; NULL: it was None. */
typedef struct nr_grad_before {
    norch_tensor *x;
    norch_storage *storage;
} nr_grad_before;

/* Whether an argument requires a gradient, and the class of its node, which is not a reference. */
typedef struct nr_leaf_mode {
    bool needs;
    void *node_type;
} nr_leaf_mode;

/* The state that exists only while it records; empty afterwards. */
typedef struct nr_log {
    nr_seen *seen;
    nr_grad_before *before; /* of the tensors that the last recording used */
    int64_t seen_count, seen_capacity, before_count;
    bool joins;          /* autograd records the results, if arguments require gradients */
    nr_leaf_mode *modes; /* of two parts: those of the arguments in the first; else NULL */
    void *line;          /* of Python: a function for the user's line */
} nr_log;

/* A tensor from before the recording that a run uses: as it must be before the run, and as it is after it. */
typedef struct nr_used {
    norch_tensor *x;
    norch_storage *storage;
    void *data, *node;
    void **hooks_at, *hooks; /* on the gradient of a leaf, where the function itself computes it */
    nr_grad_rule rule;
    norch_storage *grad_storage; /* for NR_GRAD_SAME */
    void *grad_data;
    bool written, later; /* later: the backward part uses its memory */
    bool sets_grad;      /* a run leaves grad_after in .grad, */
    void *grad_after;
    int64_t result; /* or this result, which is .grad too; -1: none */
    bool renews; /* if the program holds grad_after, a run makes a new one (kept.c); the references to it and to its */
    int64_t held, held_memory, counted; /* memory that recordings have, and when they were counted */
} nr_used;

/* An argument, as it was when recorded. */
typedef struct nr_leaf {
    void *object;          /* an argument that must be the same: a fixed tensor, or no tensor; else NULL */
    norch_tensor tensor;   /* a copy of the header */
    bool is_tensor, needs; /* needs: requires a gradient */
    bool written, later;   /* as in nr_used */
    int32_t argument;      /* of the program; -1: fixed, or unused */
    int32_t shares;        /* the first argument over the same storage */
    int32_t twin;          /* the first argument that is the same object */
    void *type;            /* the class of the tensor */
    size_t bytes;          /* of its storage */
    void *node_type;       /* the class of its node; not a reference */
} nr_leaf;

/* A condition on a value of Python. Its row is the tuple (container, kind, key, value), without the value if it is
 * absent: container[key] is value; the container has so many (key) entries; the keys of a dict are, in order, those of
 * the tuple value; the pointer at an offset (key) in an object is value; container() is true, and is not called while
 * the version of the class value, at the offset key, is that of the last call. */
typedef enum nr_guard_kind { NR_GUARD_ITEM, NR_GUARD_SIZE, NR_GUARD_KEYS, NR_GUARD_FIELD, NR_GUARD_CALL } nr_guard_kind;
typedef struct nr_guard {
    void *key, *value; /* value NULL: absent */
    int64_t number;    /* a size, an offset, or the key of a list */
    nr_guard_kind kind;
} nr_guard;

/* An object that guards read: a dict, a list, the cell of a variable, the fields of an object, or a function. */
typedef enum nr_container_kind { NR_DICT, NR_LIST, NR_CELL, NR_FIELDS, NR_CALLABLE } nr_container_kind;
typedef struct nr_container {
    nr_guard *first, *end;
    void *object;
    nr_container_kind kind;
} nr_container;

/* The version of a dict or of a class, or the pointer in a field, and that when the guards were last checked. */
typedef struct nr_version {
    const uint64_t *now;
    uint64_t checked;
} nr_version;

typedef struct nr_guards {
    nr_version *versions; /* of the containers, apart so that few cache lines are read */
    nr_container *containers;
    nr_guard *guards;
    int64_t container_count, guard_count;
    int64_t versioned; /* containers, the first ones, have versions */
} nr_guards;

/* Memory from `from` to before `to`. */
typedef struct nr_span {
    const char *from, *to;
} nr_span;

/* A small result, and its fields when it was given to Python. If only the recording refers to it and Python has not
 * changed it, a later run gives it again. */
typedef struct nr_spare {
    norch_tensor *x, as_returned;
} nr_spare;

#define NR_SPARES 2 /* loss = step() drops the previous loss only after the call */

typedef struct nr_returned {
    norch_tensor header; /* over the program's memory */
    void *object;        /* the result is this tensor from before the recording; or NULL */
    int32_t leaf;        /* the result is this argument, or a view of it; or -1 */
    int32_t block;       /* the result is over this block of the program; or -1 */
    int64_t twin;        /* the first result that is the same object */
    int64_t at;          /* bytes from the arena to the first element */
    int64_t inside;      /* bytes from the block to it */
    int64_t owner;       /* the first result over the same block */
    bool whole; /* the only one, with elements, and contiguous; where runs write it into new memory, all of that */
    norch_tensor *output; /* what the present run gives for it; of an owner: a row of bytes, in which others lie, too */
    int64_t offset;       /* of a view, in bytes from the argument's first element; -1: the argument itself */
    norch_tensor *base;   /* in the list of used tensors, or the .grad of one: the result is a view of it; or NULL */
    void *view;           /* the _view of such views (norch/autograd/view_history.py), which marks them; or NULL */
    norch_tensor *version_owner; /* without copies: every tensor given for it shares its version counter; or NULL */
    nr_spare spares[NR_SPARES];
    int oldest; /* of the spares */
} nr_returned;

/* A tensor that the function made and that stays in use, and a copy of its header. */
typedef struct nr_kept {
    norch_tensor *x, header;
    bool written; /* by runs */
} nr_kept;

/* The conditions besides the tensors in use. */
typedef struct nr_conditions {
    int modes; /* NR_COMPARED of them */
    int32_t default_dtype;
    nr_leaf *leaves;
    nr_guards guards;
    int64_t reads; /* NR_READS_... */
    int64_t *ids;  /* numbers that id() of an argument may be compared with */
    nr_span *held; /* memory that a run or Python uses, which no argument may overlap: sorted, with gaps */
    int64_t leaf_count, held_count, id_count, id_capacity;
    int64_t first_leaves; /* of the forward part; those that follow are gradients, of the backward part */
} nr_conditions;

static inline bool nr_is_id(const nr_conditions *c, const void *object) {
    for (int64_t i = 0; i < c->id_count; i++)
        if (c->ids[i] == (int64_t)(intptr_t)object) return true;
    return false;
}

/* log: while it records. conditions, used: before a run. used, results: after it. */
typedef struct nr_recording nr_recording;
struct nr_recording {
    intptr_t references; /* the first two fields are those of every Python object */
    void *type;
    nr_program *program;
    void **args; /* the arguments of the run that is under way */
    bool ready;
    nr_log log;
    nr_conditions conditions;
    nr_used *used;
    nr_returned *results;
    int64_t used_count, result_count, first_results; /* first_results: of the forward part */
    bool copies, alone;                              /* alone: one tensor is returned, without a tuple */
    bool returns_grads;                              /* some results are .grad, too */
    nr_guards later;                                 /* what Python reads in the backward part */
    nr_guards watches;                               /* entries of dicts; if one has changed, before_run is called */
    bool always_asks;                                /* before_run is always called */
    void *counter;                                   /* of Python: the write counter */
    void *before_run, *after_run, *kept;
    norch_tensor *headers; /* two for each tensor in use: copies of its header and of that of .grad */
    nr_kept *keeps;
    int64_t headers_replaced; /* nr_headers_replaced when the headers were last compared */
    int64_t keep_count, keep_capacity;
    nr_recording *next;     /* in the list of all */
    void *restore, *stored; /* of Python: puts what the function stores where it does so; the list of what it copies */
};

/* Newer versions of CPython keep the reference count in the lower half only. */
static inline int64_t nr_references_of(const norch_tensor *x) { return (uint32_t)x->references; }
static inline bool nr_is_ours_alone(const norch_tensor *x) { return nr_references_of(x) == 1; }

/* The properties of tensors that Python reads besides shapes and dtypes. */
enum {
    NR_READS_GRAD = 1,
    NR_READS_HISTORY = 2, /* is_leaf, grad_fn */
    NR_READS_STRIDES = 4,
    NR_READS_STORAGE = 8, /* storage_offset(), untyped_storage() */
    NR_READS_ATTRIBUTES = 16,
};

extern void *nr_recording_type;
extern void *nr_leaf_class; /* of the nodes of leaves */
static inline bool nr_is_graph_leaf(const norch_tensor *x) { return ((nr_object *)x->node)->type == nr_leaf_class; }
static inline nr_leaf_mode nr_mode_of(const norch_tensor *x) {
    return (nr_leaf_mode){x->node != NR_NONE, ((nr_object *)x->node)->type};
}
/* The index of an object that is among the arguments. */
static inline int32_t nr_first_of(void *const *args, const void *object) {
    int32_t i = 0;
    while (args[i] != object) i++;
    return i;
}
/* Whether dicts have a version that each change increases (PEP 509): CPython 3.10 to 3.12. */
extern bool nr_dicts_have_versions;
static inline nr_recording *nr_recording_of(const char *name, void *object) {
    if (nr_recording_type && ((nr_object *)object)->type == nr_recording_type) return object;
    PyErr_Format(PyExc_TypeError, "%s: expected a recording", name);
    return NULL;
}
/* guards.c: numbers and strings are the same if they are equal and of one type, other objects if they are
 * identical. NULL is the same as NULL. */
bool nr_same_object(void *a, void *b);
/* Reads guards from a list of rows, in which those of one container are neighbours; or from None. */
int32_t nr_guards_read(nr_guards *guards, void *rows);
/* Whether a guard compares something with an object. */
bool nr_guards_name(const nr_guards *guards, const void *object);
/* Whether all guards hold; -1 after an exception. */
int nr_guards_hold(nr_guards *guards);
/* Whether an entry is another object than at the last call; -1 after an exception. */
int nr_guards_change(nr_guards *watches);
/* Whether the result of callable() is true; -1 after an exception. */
int nr_calls_true(void *callable);
/* Notes the modes in which the function ran. */
static inline void nr_recording_note_modes(nr_recording *recording) {
    recording->conditions.modes = nr_modes() & NR_COMPARED;
    recording->conditions.default_dtype = nr_default_dtype;
}
/* Runs the recording and returns the results; NotImplemented if a condition does not hold, and nothing was run. */
void *nr_recording_replay(nr_recording *recording, void *leaves);
/* results.c: makes the memory and the views that results of a part need, before it runs; what Python gets of
 * them, after it: after results of the first of two parts its arena; and drops what was made. The .data of
 * an argument may be set in the run. */
int32_t nr_make_results(nr_recording *recording, int64_t from, int64_t to);
void *nr_give_results(nr_recording *recording, int64_t from, int64_t to);
void nr_drop_outputs(nr_recording *recording);
/* tensors_used.c: the recordings that are alive, as a list, and a number that grows when they may hold other tensors;
 * adds to the list; takes one out. */
extern nr_recording *nr_recordings;
extern int64_t nr_recordings_changes;
void nr_recording_list(nr_recording *recording);
void nr_recording_unlist(const nr_recording *recording);
/* The number of gradients in a storage; one that several tensors share counts once. */
int64_t nr_gradients_over(const nr_recording *recording, const norch_storage *storage);
/* Whether a gradient that the function makes can be replaced by a new one, and whether
 * the k-th result is a view of it. */
bool nr_may_renew(const nr_recording *recording, const nr_used *one, void *results);
bool nr_is_view_of_gradient(const nr_recording *recording, const nr_used *one, int64_t k);
/* kept.c: replaces those that the program holds. */
int32_t nr_renew_gradients(nr_recording *recording);
/* recording.c: visits the objects that a recording refers to; lists the memory that no argument may overlap. */
int nr_recording_traverse(nr_recording *recording, int (*visit)(void *object, void *argument), void *argument);
int32_t nr_recording_list_held(nr_recording *recording);
/* Notes a tensor that the function made, whose header must stay as it is. */
int32_t nr_recording_keep(nr_recording *recording, norch_tensor *x);
/* Notes a tensor that a call takes or Python reads, if it is from before the recording. */
void nr_recording_see(nr_observer *program, norch_tensor *x);
bool nr_is_seen(const nr_log *log, const norch_tensor *x);

static inline norch_tensor *nr_grad_of(const norch_tensor *x) { return nr_is_tensor(x->grad) ? x->grad : NULL; }
/* Notes the gradients that the tensors of the recording before have now. */
int32_t nr_note_gradients(nr_log *log, const nr_recording *earlier);
/* Whether a storage was that of .grad of a tensor when the function first used that tensor. */
bool nr_was_gradient(const nr_log *log, const norch_storage *storage);
/* Decides what .grad of a tensor must be before a run, and what it is after it. */
void nr_find_grad_rule(const nr_log *log, const nr_program *program, const nr_seen *seen, nr_used *used);

#endif
