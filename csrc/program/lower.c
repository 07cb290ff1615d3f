/* lower: makes layers (families/layer.h) of convolutions of a program and of the calls that follow them.
 *
 *   before   1 conv       x     -> a       after   1 [ conv       x (planes) -> image A
 *            2 batch_norm a     -> b                   batch_norm
 *            3 relu       b     -> b                   relu       ]
 *            4 conv       b     -> c                2, 3: folded into 1
 *            5 batch_norm c     -> d                4 [ conv       A -> image B
 *            6 add        d, b  -> e                   batch_norm
 *            7 mean       e     -> f                   add        A ], and e is stored from B after 6
 *                                                   5, 6: folded into 4     7 mean e -> f
 *
 * A value is what one call writes to a block; a call that writes into its input makes another value. A layer begins
 * with a convolution, with a maximum over windows, or with a pointwise call that reads an image; its result is an
 * image. A later call is folded into it if
 *   - it is the batch normalisation of evaluation, or a pointwise call over elements of the same size;
 *   - nothing else reads the result of the layer so far, nor gets it as a result of the program;
 *   - all else that it reads is there before the layer begins.
 *
 * Values that only layers read have an image alone. Those that another call reads, or that stay after the run, are also
 * stored as planes, where the call that wrote them stood. Images are blocks of the arena like others (arena.c).
 *
 * A weight is packed, and packed again after it was written to (packed.h). So that nothing else that layers read
 * can be written in between, programs that write to memory from before the recording have no layers. A weight
 * that a call computes of integers (families/quantized.h) is computed while it is packed, and the call is dead
 * if nothing else reads the weight. */
#include <string.h>

#include "../core/error.h"
#include "../core/memory.h"
#include "../families/batch_norm.h"
#include "../families/conv.h"
#include "../families/pool.h"
#include "../families/quantized.h"
#include "lower.h"
#include "plans.h"

/* ---- values ------------------------------------------------------------------------------------------- */

/* Whether a call of the program has, or may have, computed the memory that is read. */
static bool is_computed(const nr_program *program, const nr_use *use) {
    return use->block >= 0 && program->blocks[use->block].kind != NR_EXTERNAL &&
           program->blocks[use->block].kind != NR_CONSTANT && program->blocks[use->block].kind != NR_ARGUMENT;
}

/* Whether a call writes the whole block, so that nothing of its earlier value remains. */
static bool overwrites(const nr_program *program, const nr_instr *instr, const nr_use *use) {
    return use->offset == 0 && nr_plan_dense_bytes(&instr->call) == (int64_t)program->blocks[use->block].bytes;
}

/* The values that calls read and write. */
static bool find_values(lowering *l) {
    nr_program *program = l->program;
    int32_t *current = nr_malloc((size_t)program->block_count * sizeof *current + 1);
    if (!current) return false;
    for (int64_t b = 0; b < program->block_count; b++) current[b] = -1;
    for (int64_t s = 0; s < program->count; s++) {
        const nr_instr *instr = &program->instrs[s];
        for (int pass = 0; pass < 2; pass++)
            for (int64_t u = instr->first_use; u < instr->first_use + instr->uses; u++) {
                const nr_use *use = &program->uses[u];
                if (use->written != pass) continue;
                l->of_use[u] = -1;
                if (instr->dead || !is_computed(program, use)) continue;
                int32_t *at = &current[use->block];
                if (*at < 0 || (use->written && l->values[*at].writer != s)) {
                    if (*at >= 0 && !overwrites(program, instr, use)) l->values[*at].readers++;
                    l->values[l->value_count] =
                        (value){use->block, use->written ? s : -1, .before = *at, .image = -1, .layer = -1};
                    *at = (int32_t)l->value_count++;
                }
                l->of_use[u] = *at;
                if (use->written) continue;
                bool again = false;
                for (int64_t w = instr->first_use; w < u; w++)
                    again |= !program->uses[w].written && l->of_use[w] == *at;
                l->values[*at].readers += !again;
            }
    }
    for (int64_t b = 0; b < program->block_count; b++)
        if (current[b] >= 0)
            l->values[current[b]].outside = program->blocks[b].kind == NR_RESULT || program->blocks[b].kind == NR_KEPT;
    nr_free(current);
    return true;
}

static int64_t use_of(const lowering *l, const nr_instr *instr, const void *field) {
    for (int64_t u = instr->first_use; u < instr->first_use + instr->uses; u++)
        if (l->program->uses[u].at == field) return u;
    return -1;
}

/* The value of a use that covers its block; NULL if it is a part, or if the block does not belong to the program. */
static value *whole(const lowering *l, int64_t u, int64_t bytes) {
    if (u < 0 || l->of_use[u] < 0) return NULL;
    const nr_use *use = &l->program->uses[u];
    if (use->offset || l->program->blocks[use->block].bytes != (size_t)bytes) return NULL;
    return &l->values[l->of_use[u]];
}

/* Records that a call reads the memory of a value. */
static void need_planes(lowering *l, int64_t u) {
    if (u >= 0 && l->of_use[u] >= 0) l->values[l->of_use[u]].stored = true;
}

/* The call that writes the memory of a use; -1 if no call of the program does. */
static int64_t memory_ready(const lowering *l, int64_t u) {
    return l->of_use[u] < 0 ? -1 : l->values[l->of_use[u]].writer;
}

/* ---- images ------------------------------------------------------------------------------------------- */

static int32_t add_image(lowering *l, int64_t batch, int64_t channels, const int64_t size[2]) {
    nr_image *image = &l->images[l->image_count];
    const int64_t lanes = l->runner->lanes();
    *image = (nr_image){.batch = batch,
                        .channels = channels,
                        .size = {size[0], size[1]},
                        .lanes = lanes,
                        .blocks = (channels + lanes - 1) / lanes};
    return (int32_t)l->image_count++;
}

static int64_t planes_bytes(const nr_image *image) {
    return image->batch * image->channels * image->size[0] * image->size[1] * (int64_t)sizeof(float);
}

static bool same_size(const nr_image *a, const nr_image *b) {
    return a->batch == b->batch && a->channels == b->channels && a->size[0] == b->size[0] && a->size[1] == b->size[1];
}

/* An image of the planes of a use, which the layer loads before it runs; -1 if it loads too many already. */
static int32_t load(lowering *l, int64_t s, nr_lowered *to, int64_t u, const nr_image *like) {
    if (to->layer.loads == NR_LAYER_LOADS) return -1;
    const int32_t image = add_image(l, like->batch, like->channels, like->size);
    to->layer.load[to->layer.loads] = (nr_load){&l->images[image], (void *const *)l->program->uses[u].at};
    to->layer.loads++;
    need_planes(l, u);
    value *v = whole(l, u, planes_bytes(like));
    if (v) v->image = image, v->ready = s;
    return image;
}

/* ---- calls -------------------------------------------------------------------------------------------- */

static nr_lowered *new_layer(lowering *l, int64_t s) {
    nr_lowered *lowered = nr_malloc(sizeof *lowered);
    l->failed |= !lowered;
    if (!lowered) return NULL;
    memset(lowered, 0, sizeof *lowered);
    lowered->layer.call = l->program->instrs[s].call;
    return lowered;
}

/* Records that `out` is the result of a layer that begins with call s. */
static void begin(lowering *l, int64_t s, nr_lowered *lowered, value *out, int32_t image) {
    l->program->instrs[s].lowered = lowered;
    lowered->layer.y = &l->images[image];
    out->image = image;
    out->ready = out->layer = s;
    out->held_by_layer = true;
}

/* Records that a layer reads the image of a value. */
static void join(lowering *l, nr_lowered *lowered, const value *v) {
    if (!v->held_by_layer) return;
    lowered->joined = true;
    if (l->program->instrs[v->ready].lowered) l->program->instrs[v->ready].lowered->joined = true;
}

static bool is_float(const nr_instr *instr) {
    return instr->call.dtype == NORCH_FLOAT32 && instr->call.backend->device_type == NORCH_CPU;
}

/* Whether a call computes a weight of integers. */
static bool is_weight(const nr_call *call) { return call->family == NR_QUANTIZED && call->op == NR_QUANTIZED_WEIGHT; }

/* The call that computes the weight of integers from before the recording, and their storages; or NULL. */
static const nr_call *find_quantized(const lowering *l, const value *weight, norch_storage *storage[2]) {
    const nr_instr *instr = weight && weight->writer >= 0 ? &l->program->instrs[weight->writer] : NULL;
    if (!instr || !is_weight(&instr->call)) return NULL;
    const nr_quantized_plan *p = instr->call.plan;
    storage[0] = nr_storage_read(l->program, instr, &p->weight);
    storage[1] = nr_storage_read(l->program, instr, &p->scale);
    return storage[0] && storage[1] ? &instr->call : NULL;
}

static bool lower_conv(lowering *l, int64_t s) {
    nr_instr *instr = &l->program->instrs[s];
    const nr_conv_plan *p = instr->call.plan;
    bool from_planes;
    if (instr->call.op != NR_CONV_FORWARD || l->alone[s] || !is_float(instr) ||
        !l->runner->takes(&instr->call, &from_planes))
        return false;
    const int64_t xu = use_of(l, instr, &p->x), wu = use_of(l, instr, &p->weight), yu = use_of(l, instr, &p->y);
    const nr_image like = {.batch = p->batch, .channels = p->groups * p->in, .size = {p->size[0], p->size[1]}};
    value *x = whole(l, xu, planes_bytes(&like));
    value *weight = whole(l, wu, p->groups * p->out * p->in * p->kernel[0] * p->kernel[1] * (int64_t)sizeof(float));
    norch_storage *storage[2] = {nr_storage_read(l->program, instr, &p->weight)};
    const nr_call *quantized = storage[0] ? NULL : find_quantized(l, weight, storage);
    value *y = whole(l, yu, p->batch * p->groups * p->out * p->result[0] * p->result[1] * (int64_t)sizeof(float));
    if (!y || !(storage[0] || quantized) || (x && x == y)) return false;
    const bool has_image = x && x->image >= 0 && same_size(&l->images[x->image], &like);
    if (has_image && p->stride[1] > 2) return false;
    nr_lowered *lowered = new_layer(l, s);
    if (!lowered) return false;
    int32_t image = has_image ? x->image : -1;
    if (has_image) join(l, lowered, x);
    if (!has_image && !from_planes) image = load(l, s, lowered, xu, &like);
    if (image < 0) need_planes(l, xu);
    if (!(lowered->packed = nr_packed_share(storage, &instr->call, quantized))) {
        l->failed = true;
        nr_free(lowered);
        return false;
    }
    if (image >= 0) {
        nr_image *seen = &l->images[image];
        nr_grow_halo(p, seen->halo);
        lowered->layer.x = seen;
    }
    if (quantized) weight->held_by_layer = true;
    if (p->bias) need_planes(l, use_of(l, instr, &p->bias));
    begin(l, s, lowered, y, add_image(l, p->batch, p->groups * p->out, p->result));
    return true;
}

static bool lower_pool(lowering *l, int64_t s) {
    nr_instr *instr = &l->program->instrs[s];
    const nr_pool_plan *p = instr->call.plan;
    if (instr->call.op != NR_POOL_MAX || !is_float(instr) || p->stride[1] == 0) return false;
    const int64_t area = p->planes * p->size[0] * p->size[1], result = p->planes * p->result[0] * p->result[1];
    value *x = whole(l, use_of(l, instr, &p->x), area * (int64_t)sizeof(float));
    value *y = whole(l, use_of(l, instr, &p->y), result * (int64_t)sizeof(float));
    const int64_t iu = use_of(l, instr, &p->index);
    const value *index = iu < 0 || l->of_use[iu] < 0 ? NULL : &l->values[l->of_use[iu]];
    if (!x || !y || x == y || x->image < 0 || !index || index->readers || index->outside) return false;
    const nr_image *seen = &l->images[x->image];
    const int64_t planes = seen->batch * seen->channels, rows[2] = {seen->size[0], p->result[1]};
    /* windows of one row take the rows as they are cut into planes elsewhere: max_pool1d() has channels for rows */
    const bool of_rows = p->kernel[0] == 1 && p->stride[0] == 1 && p->padding[0] == 0 && p->result[0] == p->size[0] &&
                         planes * seen->size[0] == p->planes * p->size[0];
    if (!(of_rows || (planes == p->planes && seen->size[0] == p->size[0])) || seen->size[1] != p->size[1]) return false;
    nr_lowered *lowered = new_layer(l, s);
    if (!lowered) return false;
    lowered->layer.x = seen;
    join(l, lowered, x);
    begin(l, s, lowered, y, add_image(l, seen->batch, seen->channels, of_rows ? rows : p->result));
    return true;
}

/* ---- stages ------------------------------------------------------------------------------------------- */

/* The operands of a call that could be a stage: their uses, or -1. */
typedef struct operands {
    int count;
    int64_t use[NR_MAX_OPERANDS];
    nr_stage_operand kind[NR_MAX_OPERANDS];
    value *value[NR_MAX_OPERANDS]; /* of an image, if it has one */
    value *out;
    nr_image like;
} operands;

static bool read_batch_norm(const lowering *l, const nr_instr *instr, operands *o) {
    const nr_batch_norm_plan *p = instr->call.plan;
    if (instr->call.op != NR_BATCH_NORM_EVALUATION) return false;
    const int64_t bytes = p->batch * p->channels * p->inner * (int64_t)sizeof(float);
    o->count = 2;
    o->use[1] = use_of(l, instr, &p->x);
    o->kind[1] = NR_STAGE_IMAGE;
    o->value[1] = whole(l, o->use[1], bytes);
    o->out = whole(l, use_of(l, instr, &p->out), bytes);
    if (!o->out || !o->value[1] || o->value[1]->image < 0) return false;
    o->like = l->images[o->value[1]->image];
    const void *const fields[] = {&p->weight, &p->bias, &p->mean, &p->variance};
    for (int i = 0; i < 4; i++) {
        const int64_t u = use_of(l, instr, fields[i]);
        if (u >= 0 && l->of_use[u] >= 0) return false; /* computed in the program */
    }
    return o->like.batch == p->batch && o->like.channels == p->channels &&
           o->like.size[0] * o->like.size[1] == p->inner;
}

static bool is_dense(const nr_plan *plan, int o) {
    int64_t step = sizeof(float);
    for (int32_t d = 0; d < plan->ndim; step *= plan->size[d++])
        if (plan->stride[o][d] != step) return false;
    return true;
}

/* One number for each channel of each sample. */
static bool is_channels(const nr_plan *plan, int o, const nr_image *like) {
    return plan->ndim == 2 && plan->size[0] == like->size[0] * like->size[1] && plan->stride[o][0] == 0 &&
           plan->stride[o][1] == sizeof(float);
}

static bool read_pointwise(const lowering *l, const nr_instr *instr, operands *o) {
    const nr_plan *plan = instr->call.plan;
    const nr_op_row *row = &nr_ops[instr->call.op];
    if (row->form == NR_CHOICE || row->result > NR_FLOAT || instr->call.load || !instr->call.kernel) return false;
    const int64_t bytes = plan->numel * (int64_t)sizeof(float);
    bool found = false;
    o->count = plan->operands;
    o->out = is_dense(plan, 0) ? whole(l, use_of(l, instr, &plan->data[0]), bytes) : NULL;
    if (!o->out) return false;
    for (int i = 1; i < o->count; i++) {
        o->use[i] = nr_in_plan(plan, i) ? -1 : use_of(l, instr, &plan->data[i]);
        o->kind[i] = o->use[i] < 0 ? NR_STAGE_NUMBER : NR_STAGE_IMAGE;
        o->value[i] = is_dense(plan, i) ? whole(l, o->use[i], bytes) : NULL;
        if (found || !o->value[i] || o->value[i]->image < 0) continue;
        o->like = l->images[o->value[i]->image];
        found = true;
    }
    if (!found || planes_bytes(&o->like) != bytes) return false;
    for (int i = 1; i < o->count; i++) {
        if (o->kind[i] == NR_STAGE_NUMBER || is_dense(plan, i)) continue;
        if (!is_channels(plan, i, &o->like)) return false;
        o->kind[i] = NR_STAGE_CHANNELS;
    }
    return true;
}

static bool has_image(const lowering *l, const operands *o, int i) {
    return o->value[i] && o->value[i]->image >= 0 && same_size(&l->images[o->value[i]->image], &o->like);
}

/* Whether all memory that the call reads, except that of `self`, has its value before call `root`. */
static bool all_ready(const lowering *l, const operands *o, const value *self, int64_t root) {
    for (int i = 1; i < o->count; i++) {
        if (o->kind[i] == NR_STAGE_NUMBER || (self && o->value[i] == self)) continue;
        const bool image = o->kind[i] == NR_STAGE_IMAGE && has_image(l, o, i);
        if ((image ? o->value[i]->ready : memory_ready(l, o->use[i])) >= root) return false;
    }
    return true;
}

/* The number of images that a call has to load from planes. */
static int to_load(const lowering *l, const operands *o) {
    int count = 0;
    for (int i = 1; i < o->count; i++) count += o->kind[i] == NR_STAGE_IMAGE && !has_image(l, o, i);
    return count;
}

/* The value whose layer the call can be folded into: the latest value that it reads. */
static value *layer_to_join(const lowering *l, const operands *o) {
    value *best = NULL;
    for (int i = 1; i < o->count; i++) {
        value *v = o->kind[i] == NR_STAGE_IMAGE ? o->value[i] : NULL;
        if (!v || v->layer < 0 || v->readers != 1 || v->outside || !has_image(l, o, i)) continue;
        const nr_lowered *lowered = l->program->instrs[v->layer].lowered;
        if (lowered->layer.stages == NR_LAYER_STAGES || lowered->layer.loads + to_load(l, o) > NR_LAYER_LOADS) continue;
        if (all_ready(l, o, v, v->layer) && (!best || v->layer > best->layer)) best = v;
    }
    return best;
}

static void add_stage(lowering *l, int64_t s, nr_lowered *lowered, const operands *o, const value *self, int64_t root) {
    nr_stage *stage = &lowered->layer.stage[lowered->layer.stages];
    stage->call = l->program->instrs[s].call;
    for (int i = 1; i < o->count; i++) {
        stage->operand[i] = o->kind[i];
        if (o->kind[i] == NR_STAGE_CHANNELS) need_planes(l, o->use[i]);
        if (o->kind[i] != NR_STAGE_IMAGE) continue;
        if (o->value[i] && o->value[i] == self) {
            stage->operand[i] = NR_STAGE_SELF;
            continue;
        }
        if (has_image(l, o, i)) join(l, lowered, o->value[i]);
        const int32_t image = has_image(l, o, i) ? o->value[i]->image : load(l, root, lowered, o->use[i], &o->like);
        stage->image[i] = &l->images[image];
    }
    lowered->stage_instr[lowered->layer.stages++] = s;
}

/* Makes a call part of the layer of `self`, whose image becomes that of its result. */
static void fold(nr_instr *instr, int64_t root, value *self, value *out) {
    instr->folded = true;
    instr->root = root;
    out->image = self->image;
    out->ready = out->layer = root;
    out->held_by_layer = true;
    self->image = -1;
}

/* A copy of an image is the image. */
static bool lower_copy(lowering *l, int64_t s) {
    nr_instr *instr = &l->program->instrs[s];
    const nr_plan *plan = instr->call.plan;
    const int64_t bytes = plan->numel * (int64_t)sizeof(float);
    if (!is_float(instr) || instr->call.from_dtype != NORCH_FLOAT32 || !is_dense(plan, 0) || !is_dense(plan, 1))
        return false;
    value *from = whole(l, use_of(l, instr, &plan->data[1]), bytes);
    value *to = whole(l, use_of(l, instr, &plan->data[0]), bytes);
    if (!from || !to || from->image < 0 || from == to) return false;
    if (from->layer >= 0 && from->readers == 1 && !from->outside) {
        fold(instr, from->layer, from, to);
        return true;
    }
    instr->folded = to->held_by_layer = true;
    instr->root = from->held_by_layer ? from->ready : s;
    to->image = from->image;
    to->ready = from->ready;
    return true;
}

static bool lower_stage(lowering *l, int64_t s) {
    nr_instr *instr = &l->program->instrs[s];
    operands o = {0};
    if (!is_float(instr)) return false;
    if (!(instr->call.family == NR_BATCH_NORM ? read_batch_norm(l, instr, &o) : read_pointwise(l, instr, &o)))
        return false;
    value *self = layer_to_join(l, &o);
    if (self) {
        const int64_t root = self->layer;
        add_stage(l, s, l->program->instrs[root].lowered, &o, self, root);
        fold(instr, root, self, o.out);
        return true;
    }
    for (int i = 1; i < o.count && !self; i++)
        if (o.kind[i] == NR_STAGE_IMAGE && has_image(l, &o, i)) self = o.value[i];
    nr_lowered *lowered = new_layer(l, s);
    if (!lowered) return false;
    lowered->layer.x = &l->images[self->image];
    join(l, lowered, self);
    add_stage(l, s, lowered, &o, self, s);
    begin(l, s, lowered, o.out, add_image(l, o.like.batch, o.like.channels, o.like.size));
    return true;
}

/* A call that does not become part of a layer reads planes, and writes to planes or a part of them. */
static void keep(lowering *l, int64_t s) {
    const nr_instr *instr = &l->program->instrs[s];
    for (int64_t u = instr->first_use; u < instr->first_use + instr->uses; u++) {
        if (!l->program->uses[u].written) {
            need_planes(l, u);
            continue;
        }
        const int32_t before = l->of_use[u] < 0 ? -1 : l->values[l->of_use[u]].before;
        if (before >= 0) l->values[before].stored = true;
    }
}

/* ---- the program ---------------------------------------------------------------------------------------- */

/* Whether a program may have layers. */
static bool is_suited(const nr_program *program) {
    if (program->divided || !program->backend || program->backend->device || !program->backend->layers) return false;
    for (int64_t s = 0; s < program->count; s++) {
        const nr_instr *instr = &program->instrs[s];
        for (int64_t u = instr->first_use; u < instr->first_use + instr->uses; u++) {
            const nr_use *use = &program->uses[u];
            if (use->written && (use->block < 0 || program->blocks[use->block].kind == NR_EXTERNAL)) return false;
        }
    }
    return true;
}

static bool has_conv(const nr_program *program) {
    bool any = false;
    for (int64_t s = 0; s < program->count && !any; s++) {
        const nr_instr *instr = &program->instrs[s];
        any = !instr->dead && instr->call.family == NR_CONV && instr->call.backend == program->backend;
    }
    return any;
}

static void undo(nr_program *program) {
    for (int64_t s = 0; s < program->count; s++) {
        nr_lowered_free(program->instrs[s].lowered);
        program->instrs[s].lowered = NULL;
        program->instrs[s].folded = false;
    }
}

/* Makes the layers of a program; true if there are any. */
static bool lower_all(lowering *l) {
    bool any = false;
    l->value_count = l->image_count = 0;
    l->failed = l->failed || !find_values(l);
    for (int64_t s = 0; s < l->program->count && !l->failed; s++) {
        const nr_instr *instr = &l->program->instrs[s];
        if (instr->dead) continue;
        const nr_family family = instr->call.family;
        const bool lowered = family == NR_CONV                                   ? lower_conv(l, s)
                             : family == NR_POOL                                 ? lower_pool(l, s)
                             : family == NR_COPY                                 ? lower_copy(l, s)
                             : family == NR_BATCH_NORM || family == NR_POINTWISE ? lower_stage(l, s)
                                                                                 : false;
        if (!lowered) keep(l, s);
        any |= lowered;
    }
    return any;
}

/* Finds convolutions that share no image with another layer and run faster without layers. */
static bool find_alone(lowering *l) {
    bool any = false;
    for (int64_t s = 0; s < l->program->count && !l->failed; s++) {
        const nr_instr *instr = &l->program->instrs[s];
        if (!instr->lowered || instr->lowered->joined || instr->call.family != NR_CONV) continue;
        l->alone[s] = !l->runner->pays_alone(&instr->call);
        any |= l->alone[s];
    }
    return any;
}

/* Marks calls as dead that compute weights which no call reads any more. */
static void drop_weights(const lowering *l) {
    for (int64_t i = 0; i < l->value_count; i++) {
        const value *v = &l->values[i];
        nr_instr *instr = v->held_by_layer && v->writer >= 0 ? &l->program->instrs[v->writer] : NULL;
        if (instr && is_weight(&instr->call)) instr->dead = !v->stored && !v->outside;
    }
}

static void lower_convs(nr_program *program) {
    lowering l = {.program = program, .runner = program->backend->layers};
    l.of_use = nr_malloc((size_t)program->use_count * sizeof *l.of_use);
    l.values = nr_malloc((size_t)program->use_count * sizeof *l.values);
    l.images = nr_malloc((size_t)(program->count * (NR_LAYER_LOADS + 1)) * sizeof *l.images);
    l.alone = nr_malloc((size_t)program->count * sizeof *l.alone);
    l.failed = !l.of_use || !l.values || !l.images || !l.alone;
    if (!l.failed) memset(l.alone, 0, (size_t)program->count * sizeof *l.alone);
    bool any = lower_all(&l);
    if (find_alone(&l)) {
        undo(program);
        any = lower_all(&l);
    }
    if (!l.failed && any && nr_layers_list(&l)) {
        drop_weights(&l);
        program->images = l.images;
        l.images = NULL;
    } else {
        undo(program);
    }
    nr_free(l.of_use);
    nr_free(l.values);
    nr_free(l.images);
    nr_free(l.alone);
}

void nr_program_lower(nr_program *program) {
    if (!is_suited(program)) return;
    if (has_conv(program)) lower_convs(program);
    nr_program_pack_products(program);
}
