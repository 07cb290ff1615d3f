/* modes: what each thread sets for its operations, as bits of one word (norch/autograd/grad_mode.py, autocast.py). */
#ifndef NR_PYTHON_MODES_H
#define NR_PYTHON_MODES_H

#include <stdbool.h>

/* Under no_grad(); under autocast for the CPU, and for CUDA. */
enum { NR_UNRECORDED = 1, NR_CASTS_CPU = 2, NR_CASTS_CUDA = 4, NR_CASTING = NR_CASTS_CPU | NR_CASTS_CUDA };

/* Those of this thread. */
int nr_modes(void);

static inline bool nr_grad_enabled(void) { return !(nr_modes() & NR_UNRECORDED); }

#endif
