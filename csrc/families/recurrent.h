/* recurrent: the plan of one step of an LSTM or a GRU, after its matrix products. */
#ifndef NR_FAMILIES_RECURRENT_H
#define NR_FAMILIES_RECURRENT_H

#include "../core/fields.h"
#include "../norch.h"

/* All tensors are contiguous: (rows, size), or (rows, gates, size) for all gates. from_x and from_h: the products of
 * the input and of the state with the weights, plus biases. cells.h has the formulas.
 *
 * LSTM: gates i, f, n, o of from_x + from_h; `state` is c; writes h, c, which may be `state` itself, and kept, the
 * values of the gates. GRU: gates r, z, n; `state` is h; writes h and kept, the values of the gates and from_h of
 * gate n.
 *
 * backward: the gradient of h is g[0] + g[1] + g[2], that of c is g_c; each may be NULL. Writes the gradients of
 * from_x, of from_h if that differs (GRU), and of `state`, without the part through from_h; the last may be g_c or g[2]
 * itself. */
typedef enum nr_recurrent_kind { NR_LSTM_FORWARD, NR_GRU_FORWARD, NR_LSTM_BACKWARD, NR_GRU_BACKWARD } nr_recurrent_kind;
NR_PLAN(nr_recurrent_plan, NUM(int64_t, rows, size), IN(const void *, from_x, from_h, state), IN(const void *[3], g),
        IN(const void *, g_c), OUT_IF(op == NR_LSTM_FORWARD || op == NR_GRU_FORWARD, void *, c, kept),
        OUT(void *, h, grad_x, grad_h, grad_state), SIZES(p->rows, p->size));

#endif
