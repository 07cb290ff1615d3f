/* recurrent: the plan of one step of an LSTM or a GRU, behind its matrix products. */
#ifndef NR_FAMILIES_RECURRENT_H
#define NR_FAMILIES_RECURRENT_H

#include "../norch.h"

/* All contiguous: (rows, size), or the values of several gates side by side, (rows, gates, size). from_x and from_h: what the input
 * and the state give the gates, biases included. The formulas stand in cells.h.
 *
 * LSTM: gates i, f, n, o, of from_x + from_h; `state` is c; h, c and kept, the values of the gates, are written.
 * GRU: gates r, z, n; `state` is h; h and kept are written: the values of the gates, and what from_h gives n.
 *
 * backward: g[0] + g[1] + g[2] is the gradient of h, g_c that of c; each may be NULL. Written: the gradients of from_x, of from_h
 * where it is another (GRU), and of `state`, without what goes through from_h; this one may be g_c, or g[2]. */
typedef enum nr_recurrent_kind { NR_LSTM_FORWARD, NR_GRU_FORWARD, NR_LSTM_BACKWARD, NR_GRU_BACKWARD } nr_recurrent_kind;
typedef struct nr_recurrent_plan {
    int64_t rows, size;
    const void *from_x, *from_h, *state, *g[3], *g_c;
    void *h, *c, *kept, *grad_x, *grad_h, *grad_state;
} nr_recurrent_plan;

#endif
