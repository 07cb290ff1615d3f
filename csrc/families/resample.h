/* resample: the plan of an axis resampled by weights. */
#ifndef NR_FAMILIES_RESAMPLE_H
#define NR_FAMILIES_RESAMPLE_H

#include "../core/fields.h"
#include "../norch.h"

/* FORWARD: y (outer, size, inner) from x (outer, old, inner): element i along the axis is the sum of those at index
 * (taps, size) times weight (taps, size), in the order of taps; a negative index stands for no element. ADJOINT: the
 * gradient of x from that of y. All are contiguous. An index beyond the axis makes the call fail. */
typedef enum nr_resample_kind { NR_RESAMPLE_FORWARD, NR_RESAMPLE_ADJOINT } nr_resample_kind;
NR_PLAN(nr_resample_plan, NUM(int64_t, outer, inner, old, size, taps), IN(const int64_t *, index),
        IN(const void *, weight), OUT_IF(op == NR_RESAMPLE_ADJOINT, void *, x),
        OUT_IF(op == NR_RESAMPLE_FORWARD, void *, y), SIZES(p->outer, p->size, p->inner));

#endif
