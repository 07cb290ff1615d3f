/* sample: the plan of images sampled at coordinates. */
#ifndef NR_FAMILIES_SAMPLE_H
#define NR_FAMILIES_SAMPLE_H

#include "../core/fields.h"
#include "../norch_families.h"

/* x (images, channels, size[0], ...) at grid (images, points, axes), whose last axis has coordinates from -1 to 1, that
 * of the last axis of x first. FORWARD: y (images, channels, points). INPUT: the gradient of x into `x`, and GRID: that
 * of grid into `slope`, from the one of y. All are contiguous. mode and padding are NORCH_SAMPLE_... of norch.h. */
typedef enum nr_sample_kind { NR_SAMPLE_FORWARD, NR_SAMPLE_INPUT, NR_SAMPLE_GRID } nr_sample_kind;
NR_PLAN(nr_sample_plan, NUM(int64_t, images, channels, points, axes, mode, padding, corners), NUM(int64_t[3], size),
        IN(const void *, grid), OUT_IF(op == NR_SAMPLE_INPUT, void *, x), OUT_IF(op == NR_SAMPLE_FORWARD, void *, y),
        OUT(void *, slope), SIZES(p->images, p->channels, p->points));

#endif
