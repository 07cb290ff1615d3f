/* modes: the modes of a thread as bits of one word (norch/autograd/grad_mode.py, autocast.py, anomaly.py). */
#ifndef NR_PYTHON_MODES_H
#define NR_PYTHON_MODES_H

#include <stdbool.h>

#include "abi.h"

/* Under no_grad(); under autocast for the CPU, and for CUDA; in anomaly mode, which all threads share; within a
 * TorchFunctionMode, which gets all calls; with a setting of autocast that programs can read, on or off; under
 * inference_mode(). */
enum {
    NR_UNRECORDED = 1,
    NR_CASTS_CPU = 2,
    NR_CASTS_CUDA = 4,
    NR_CASTING = NR_CASTS_CPU | NR_CASTS_CUDA,
    NR_TRACED = 8,
    NR_OVERRIDDEN = 16,
    NR_CAST_SETTING = 32,
    NR_INFERENCE = 64,
    NR_GRAD_MODE = NR_UNRECORDED | NR_INFERENCE,
    NR_COMPARED = NR_GRAD_MODE | NR_TRACED /* by a replay; Python compares autocast */
};

/* The modes of this thread. */
int nr_modes(void);
void nr_set_modes(int of, int to); /* these bits of them */

/* In anomaly mode: the stack of the user's call, a new reference, or NULL after an exception. */
void *nr_stack_of_call(void);
extern void *nr_anomaly; /* the function that is called for it; NULL in no anomaly mode */

/* An attribute of `mode` (mode.c) that is a bit of this thread's modes, or its opposite. */
typedef struct nr_mode_bit {
    const char *name;
    int bit;
    bool inverted;
} nr_mode_bit;
void *nr_get_mode(void *self, void *context);
void *nr_get_anomaly(void *self, void *context);
int nr_set_mode(void *self, void *value, void *context);

static inline bool nr_grad_enabled(void) { return !(nr_modes() & NR_UNRECORDED); }

#endif
