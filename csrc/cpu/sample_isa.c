/* sample_isa: images sampled at coordinates, and the gradients, built once per instruction set. RUN points at a time:
 * for each axis where the coordinates lie and which elements have a weight there; their products are the taps of a
 * point. sample_loops.h holds the loops, for each float type.
 *
 *   x    a b c d        a point between f and g, b and c:    y = w0 b + w1 c + w2 f + w3 g, of every channel
 *        e f g h        outside x a tap reads 0
 *
 * The taps are computed once for all channels. A task has whole runs of points, or, for the gradient of x, to which
 * points anywhere add, whole channels: threads do not change the order of sums. Jaderberg et al., "Spatial Transformer
 * Networks" (2015), section 3.3; cubic weights: Keys, "Cubic convolution interpolation" (1981), a = -0.75. */
#include <math.h>
#include <string.h>
#include "../families/sample.h"
#include "gather.h"

#define MOST_TAPS 16
#define TASK 8      /* runs of points of a task, */
#define CHANNELS 16 /* or channels */

#define FLOOR(x) _Generic((x), float: floorf, default: floor)(x)
#define RINT(x) _Generic((x), float: rintf, default: rint)(x)

#ifndef __wasm__ /* a page waits for each byte: calls are composed of others there */

typedef struct job {
    const nr_sample_plan *plan;
    int32_t kind, dtype;
    int64_t parts; /* tasks of an image */
} job;

#define NAME OF_DTYPE
#define TEMPLATE "sample_loops.h"
#define WANTED(kind, bits) (kind == 'f')
#include "each_dtype.h"

static void run_task(void *context, int64_t task) {
    const job *j = context;
    (j->dtype == NORCH_FLOAT32 ? run_float32 : run_float64)(j, task / j->parts, task % j->parts);
}

int32_t NR_ISA(nr_run_sample)(const nr_call *call) {
    const nr_sample_plan *p = call->plan;
    job j = {.plan = p, .kind = call->op, .dtype = call->dtype};
    j.parts = call->op == NR_SAMPLE_INPUT ? ceil_div(p->channels, CHANNELS) : ceil_div(p->points, TASK * RUN);
    nr_parallel(p->images * j.parts, run_task, &j);
    return NORCH_OK;
}

#else

int32_t NR_ISA(nr_run_sample)(const nr_call *call) {
    (void)call;
    return nr_fail(NORCH_ERROR_DEVICE, "sample: no kernel in WebAssembly");
}

#endif
