/* attention_run: functions that both kinds of attention kernels share (attention.c). */
#ifndef NR_ATTENTION_RUN_H
#define NR_ATTENTION_RUN_H

#include "../families/attention.h"
#include "ops.h"

/* Completes the plan of an attention, whose options are set, and runs it. x: an operand or NULL for each
 * nr_attention_operand; inputs with unsuitable strides are copied. */
int32_t nr_attention_run(nr_attention_kind kind, nr_attention_plan *plan, const norch_tensor *const *x,
                         bool (*fits)(const norch_tensor *x));

/* Checks the seed (or NULL) and the dropout probability. */
int32_t nr_attention_check_dropout(const char *op, const norch_tensor *q, const norch_tensor *seed, double dropout);

#endif
