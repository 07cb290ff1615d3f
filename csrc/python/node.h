/* node: the nodes of autograd's graph, and where they are made. */
#ifndef NR_PYTHON_NODE_H
#define NR_PYTHON_NODE_H

#include "../norch.h"
#include "holder.h"

/* The fields of a node: see norch/autograd/node.py. */
enum { NR_NODE_EDGES, NR_NODE_SEQ, NR_NODE_HOOKS, NR_NODE_METAS, NR_NODE_SAVED, NR_NODE_STACK };

/* Codes of the values that a node saves, a character each, beside 0 (None) and the number of an input, or of another
 * value, counted from 1 on: the meta tensor of an input, and the result. */
#define NR_SAVES_META 64
#define NR_SAVES_RESULT 127

/* In a thread that records: out, with a node of node_class if a gradient is wanted; on failure NULL, and out is
 * released. inputs: n tensors or None; others: the other values that the class's SavePlan names. selections: the
 * class's, or NULL. broadcast: the engine sums and casts the gradients back to the inputs' shapes and dtypes. */
norch_tensor *nr_record(norch_tensor *out, void *node_class, void *selections, void *const *inputs, int64_t n,
                        void *const *others, int64_t others_count, bool broadcast);

/* The same, of out; NULL without an error if no gradient is wanted. written: out, if it is an input too, and the row
 * will be written into it; or NULL. */
nr_holder *nr_node_for(norch_tensor *out, const void *written, void *node_class, void *selections, void *const *inputs,
                       int64_t n, void *const *others, int64_t others_count, bool broadcast);
#define NR_MOST_INPUTS 31 /* of one operation, and other values: NR_SAVES_META is above the sum */
void *nr_next_seq(void);  /* the next sequence number, a new reference */

/* Flags beside the position of a saved value that a gradient function reads: it is the result; it may be an object that
 * holds tensors. */
#define NR_READS_RESULT 32
#define NR_READS_HOLDER 64

/* The saved values of a node, a new reference; a saved result, or if gradients are recorded an
 * alias of it with its history. */
void *nr_saved_by(nr_holder *node);
void *nr_result_of(nr_holder *node, void *saved);
bool nr_is_node_class(void *class);
bool nr_takes_node_class(const char *name, void *class); /* raises for another class */
/* The node that the gradient of x goes to, or None: a new reference; NULL on failure. */
void *nr_edge_of(norch_tensor *x);

/* Sets the version counter that all tensors over a storage share (norch/_tensor/handle.py) to the number `time`. */
bool nr_note_write(norch_tensor *x, void *time);
/* Lets view, made of base, share its version counter; on failure the view is released. */
bool nr_share_version(norch_tensor *base, norch_tensor *view);

/* ---- views: view_history.c --------------------------------------------------------------------------------------- */

/* Takes x, a view, again from its base if the history of that has changed. */
bool nr_refresh_view(norch_tensor *x);
/* The history of the result that the node saved, a new reference. */
void *nr_history_of(nr_holder *node);
/* The object that marks views that a replay takes of the same tensor as x, which may be a view;
 * NULL: none. A new reference. */
void *nr_mark_of_view(const norch_tensor *x);
void nr_set_view(norch_tensor *x, void *view);
/* The field `view` of the view view_fn(x, *arguments), a new reference: with its history; and of one taken while
 * nothing is recorded, and loses the gradient of x if that has one. */
void *nr_new_view(norch_tensor *x, void *view_fn, void *arguments);
void *nr_view_without_history(bool loses_gradient);
bool nr_is_severed(const norch_tensor *x);

#endif
