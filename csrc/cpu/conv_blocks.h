/* conv_blocks: convolutions of many channels, and their adjoints, by the loops of layers (conv_image.h), for float32: a
 * template of each_dtype.h.
 *
 *   x (channels, rows, columns) -> image in blocks of LANES channels -> layer without stages -> image -> y
 *   weight                      -> packed, in each call           ---^
 *
 * Forward sums, except those of conv_winograd.h, are bit for bit those of conv_correlate.h. For an adjoint, x from y,
 * each phase of the stride is a forward convolution of y with a part of the taps, in reverse order. */

#include "image_loops.h"

/* Whether blocks of channels suit a grid: it has many positions, or its rows leave lanes idle where lanes are positions.
 * Half a vector of eight is too few idle lanes to pay. */
static bool NAME(fills_blocks)(const int64_t grid[2]) {
    return grid[0] * grid[1] > MOST_FORWARD || LANES > 8 || grid[1] % 4;
}

/* Whether packing the weight and converting x and y to images pays in each call. Each element is moved once; the number
 * of products for which it is used decides. */
static bool NAME(pays_each_time)(const nr_call *call) {
    const nr_conv_plan *p = call->plan;
    const int64_t taps = p->kernel[0] * p->kernel[1], area = p->result[0] * p->result[1];
    bool from_planes;
    if (is_winograd(p)) return NAME(takes)(call, &from_planes);
    return p->groups == 1 && NAME(fills_blocks)(p->result) && p->batch * area >= TRANSPOSED_POSITIONS &&
           p->in * taps >= TRANSPOSED_PRODUCTS && p->out * taps >= TRANSPOSED_PRODUCTS &&
           NAME(takes)(call, &from_planes) && !from_planes;
}

static nr_image NAME(image_of)(int64_t batch, int64_t channels, const int64_t size[2], const int64_t *halo) {
    nr_image image = {.batch = batch, .channels = channels, .lanes = LANES, .blocks = ceil_div(channels, LANES)};
    for (int d = 0; d < 2; d++) {
        image.size[d] = size[d];
        image.halo[d] = halo ? halo[d] : 0;
    }
    image.pitch = (size[1] + 2 * image.halo[1]) * LANES;
    image.plane = (size[0] + 2 * image.halo[0]) * image.pitch;
    return image;
}

/* A layer without stages. `from` is converted to its image x (NULL: x is there already), and its image y to `to`. bias
 * is memory for the bias of all blocks of y. */
static int32_t NAME(run_alone)(const nr_layer *layer, const T *from, T *bias, T *to) {
    const nr_conv_plan *p = layer->call.plan;
    const nr_image *y = layer->y;
    nr_layer_run run = {.layer = layer, .padded = y->blocks * LANES};
    void *planes = (void *)(uintptr_t)from;
    nr_load load = {(nr_image *)(uintptr_t)layer->x, &planes}, store = {(nr_image *)(uintptr_t)y, (void **)&to};
    if (p->bias) {
        memset(bias, 0, (size_t)run.padded * sizeof(T));
        run.bias = memcpy(bias, p->bias, (size_t)p->out * sizeof(T));
    }
    if (from) nr_parallel(layer->x->batch * layer->x->blocks, NAME(load_block), &load);
    NR_TRY(NAME(conv_layer)(&run));
    nr_parallel(y->batch * y->blocks, NAME(store_block), &store);
    return NORCH_OK;
}

/* The forward convolution as a layer without stages, some samples at a time. Sums do not depend on their number. */
static int32_t NAME(forward_as_layer)(const nr_call *call) {
    const nr_conv_plan *p = call->plan;
    int64_t halo[2] = {0, 0};
    nr_grow_halo(p, halo);
    nr_image x = NAME(image_of)(1, p->in, p->size, halo), y = NAME(image_of)(1, p->out, p->result, NULL);
    int64_t samples = least(p->batch, greatest(1, TRANSPOSED_BYTES / (nr_image_bytes(&x) + nr_image_bytes(&y))));
    x.batch = y.batch = samples;
    const int64_t x_bytes = nr_image_bytes(&x), y_bytes = nr_image_bytes(&y);
    const int64_t packed_size = NAME(packed_size)(p);
    const size_t bytes = (size_t)(x_bytes + y_bytes) + (size_t)(packed_size + y.blocks * LANES) * sizeof(T);
    char *scratch = nr_scratch(bytes);
    if (!scratch) return no_scratch(bytes);
    x.data = scratch;
    y.data = scratch + x_bytes;
    T *packed = (T *)(void *)(scratch + x_bytes + y_bytes), *to = p->y;
    NAME(pack_weight)(call, packed);
    const nr_layer layer = {.call = *call, .x = &x, .y = &y, .packed = packed};
    const T *from = p->x;
    int32_t status = NORCH_OK;
    for (int64_t left = p->batch; left > 0 && status == NORCH_OK; left -= samples) {
        x.batch = y.batch = samples = least(samples, left);
        status = NAME(run_alone)(&layer, from, packed + packed_size, to);
        from += samples * p->in * p->size[0] * p->size[1];
        to += samples * p->out * p->result[0] * p->result[1];
    }
    nr_scratch_free(scratch, bytes);
    return status;
}

/* ---- the adjoint ------------------------------------------------------------------------------------------ */

/* The positions phase + i * stride of x. plan: forward, of y, with channels
 * exchanged; which: its taps in the kernel. */
typedef struct NAME(phase) {
    nr_conv_plan plan;
    int64_t at[2], which[MOST_TAPS];
    T *packed;
} NAME(phase);

/* The taps that meet a phase are evenly spaced. Later taps of the kernel meet earlier rows of y. */
static bool NAME(find_phase)(const nr_conv_plan *p, NAME(phase) * s) {
    nr_conv_plan *q = &s->plan;
    int64_t first[2], apart[2];
    *q = *p;
    q->in = p->out;
    q->out = p->in;
    q->x = p->y;
    for (int d = 0; d < 2; d++) {
        int64_t count = 0, high = 0, low = 0;
        for (int64_t r = 0; r < p->kernel[d]; r++) {
            const int64_t offset = s->at[d] + p->padding[d] - r * p->dilation[d];
            if (offset % p->stride[d]) continue;
            if (count == 1) apart[d] = r - first[d];
            if (count++ == 0) first[d] = r, apart[d] = 1, high = offset / p->stride[d];
            low = offset / p->stride[d];
        }
        if (count == 0) return false;
        q->size[d] = p->result[d];
        q->result[d] = ceil_div(p->size[d] - s->at[d], p->stride[d]);
        q->kernel[d] = count;
        q->dilation[d] = count > 1 ? (high - low) / (count - 1) : 1;
        q->padding[d] = -low;
        q->stride[d] = 1;
    }
    for (int64_t r = q->kernel[0] - 1, t = 0; r >= 0; r--)
        for (int64_t c = q->kernel[1] - 1; c >= 0; c--)
            s->which[t++] = (first[0] + r * apart[0]) * p->kernel[1] + first[1] + c * apart[1];
    return true;
}

typedef struct NAME(adjoint) {
    const nr_conv_plan *p;
    int64_t phases;
    NAME(phase) phase[TRANSPOSED_PHASES];
    const NAME(phase) * now; /* being spread: */
    const T *dense;
    T *x;
} NAME(adjoint);

/* The weight of PANEL_COLS channels of x for all phases. The taps of a pair of channels are contiguous. */
static void NAME(pack_adjoint)(void *context, int64_t task) {
    const NAME(adjoint) *s = context;
    const nr_conv_plan *p = s->p;
    const int64_t c = task * PANEL_COLS, left = p->in - c, taps = p->kernel[0] * p->kernel[1];
    const int wide = left > LANES ? PANEL_COLS : LANES;
    T all[MOST_TAPS * PANEL_COLS] __attribute__((aligned(VECTOR)));
    for (int64_t o = 0; o < p->out; o++) {
        const T *from = (const T *)p->weight + (o * p->in + c) * taps;
        NAME(turn_lanes)(wide, all, taps, from, taps, (int)least(wide, left));
        for (const NAME(phase) *f = s->phase; f < s->phase + s->phases; f++) {
            const int64_t count = f->plan.kernel[0] * f->plan.kernel[1];
            T *to = f->packed + (c * p->out + o * wide) * count;
            for (int64_t t = 0; t < count; t++, to += wide)
                for (int i = 0; i < wide; i += LANES) STORE(to + i, VEC(all + f->which[t] * wide + i));
        }
    }
    for (const NAME(phase) *f = s->phase; f < s->phase + s->phases; f++)
        if (is_winograd(&f->plan)) NAME(transform_weight)(&f->plan, task, f->packed);
}

/* Copies a plane of a phase to its positions in x. */
static void NAME(spread_plane)(void *context, int64_t plane) {
    const NAME(adjoint) *s = context;
    const nr_conv_plan *p = s->p, *q = &s->now->plan;
    const int64_t rows = q->result[0], columns = q->result[1], step = p->stride[1];
    const T *from = s->dense + plane * rows * columns;
    for (int64_t i = 0; i < rows; i++, from += columns) {
        T *to = s->x + (plane * p->size[0] + i * p->stride[0] + s->now->at[0]) * p->size[1] + s->now->at[1];
        for (int64_t j = 0; j < columns; j++) to[j * step] = from[j];
    }
}

/* Runs the phases, if each is faster as a layer. Infinite weights times the zeros around y would give NaN. */
static bool NAME(find_adjoint)(const nr_call *call, NAME(adjoint) * s) {
    const nr_conv_plan *p = s->p = call->plan;
    if (p->groups != 1 || p->stride[0] > 2 || p->stride[1] > 2 || p->kernel[0] * p->kernel[1] > MOST_TAPS) return false;
    const int64_t across = least(p->stride[1], p->size[1]);
    s->phases = least(p->stride[0], p->size[0]) * across;
    for (int64_t i = 0; i < s->phases; i++) {
        NAME(phase) *f = &s->phase[i];
        f->at[0] = i / across;
        f->at[1] = i % across;
        nr_call forward = *call;
        forward.op = NR_CONV_FORWARD;
        forward.plan = &f->plan;
        const int64_t taps = p->kernel[0] * p->kernel[1] / s->phases;
        bool from_planes;
        if (!NAME(find_phase)(p, f) || !NAME(fills_blocks)(f->plan.result) ||
            p->batch * p->result[0] * p->result[1] < TRANSPOSED_POSITIONS || p->in * taps < TRANSPOSED_PRODUCTS ||
            p->out * taps < TRANSPOSED_PRODUCTS || !NAME(takes)(&forward, &from_planes) || from_planes)
            return false;
    }
    return is_finite(p, true);
}

static int32_t NAME(input_as_layers)(const nr_call *call, NAME(adjoint) * s) {
    const nr_conv_plan *p = s->p;
    int64_t halo[2] = {0, 0}, packed = 0;
    for (int64_t i = 0; i < s->phases; i++) {
        const nr_conv_plan *q = &s->phase[i].plan;
        nr_grow_halo(q, halo);
        packed += NAME(packed_size)(q);
    }
    const bool spread = s->phases > 1;
    const nr_conv_plan *largest = &s->phase[0].plan;
    nr_image y = NAME(image_of)(1, p->out, p->result, halo), x = NAME(image_of)(1, p->in, largest->result, NULL);
    const int64_t plane = p->in * largest->result[0] * largest->result[1], x_bytes = nr_image_bytes(&x);
    int64_t samples = least(p->batch, greatest(1, TRANSPOSED_BYTES / (nr_image_bytes(&y) + x_bytes)));
    const int64_t y_bytes = samples * nr_image_bytes(&y);
    const int64_t padded = x.blocks * LANES;
    const size_t bytes =
        (size_t)(y_bytes + samples * x_bytes) + (size_t)(packed + padded + (spread ? samples * plane : 0)) * sizeof(T);
    char *scratch = nr_scratch(bytes);
    if (!scratch) return no_scratch(bytes);
    T *at = (T *)(void *)(scratch + y_bytes + samples * x_bytes);
    for (int64_t i = 0; i < s->phases; i++) {
        const nr_conv_plan *q = &s->phase[i].plan;
        s->phase[i].packed = at;
        at += NAME(packed_size)(q);
    }
    T *bias = at;
    s->dense = at += padded;
    s->x = p->x;
    nr_parallel(ceil_div(p->in, PANEL_COLS), NAME(pack_adjoint), s);
    int32_t status = NORCH_OK;
    const T *from = p->y;
    for (int64_t left = p->batch; left > 0 && status == NORCH_OK; left -= samples) {
        samples = least(samples, left);
        for (int64_t i = 0; i < s->phases && status == NORCH_OK; i++) {
            nr_conv_plan *q = &s->phase[i].plan;
            x = NAME(image_of)(samples, p->in, q->result, NULL);
            x.data = scratch + y_bytes;
            y.batch = samples;
            y.data = scratch;
            nr_layer layer = {.call = *call, .x = &y, .y = &x, .packed = s->phase[i].packed};
            layer.call.op = NR_CONV_FORWARD;
            layer.call.plan = q;
            s->now = &s->phase[i];
            status = NAME(run_alone)(&layer, i == 0 ? from : NULL, bias, spread ? at : s->x);
            if (spread && status == NORCH_OK) nr_parallel(samples * p->in, NAME(spread_plane), s);
        }
        from += samples * p->out * p->result[0] * p->result[1];
        s->x += samples * p->in * p->size[0] * p->size[1];
    }
    nr_scratch_free(scratch, bytes);
    return status;
}
