/* conv_product: convolutions of one tap without padding, for one float type: a template of each_dtype.h.
 *
 *   y (out, positions) = weight (out, in) x (in, positions)          x = weight^T y          weight = sum of y x^T
 *
 * The first two are products of conv_panels.h, the third is one of matmul_isa.c, for each image, of tensors where they
 * lie. A stride leaves some positions of x, which are gathered first. Images of few positions are gathered for the
 * third, some beside each other, so that sums are long. */

/* A pass over planes: those of a tensor (images, channels, size), of which `seen` positions at a stride are gathered
 * to, or spread from, `packed`: (pieces, channels, each * area), where a piece has `each` images. */
typedef struct NAME(pass) {
    int64_t channels, size[2], stride[2], seen[2];
    int64_t images, each;
    T *tensor, *packed;
    const T *bias;  /* of each channel, or NULL */
    int64_t planes; /* of a task */
} NAME(pass);

static T *NAME(packed_plane)(const NAME(pass) * s, int64_t image, int64_t channel) {
    const int64_t area = s->seen[0] * s->seen[1];
    return s->packed + ((image / s->each * s->channels + channel) * s->each + image % s->each) * area;
}

/* Images beyond the last one are zeros, which add nothing to a sum. */
static void NAME(gather_task)(void *context, int64_t task) {
    const NAME(pass) *s = context;
    const int64_t all = ceil_div(s->images, s->each) * s->each * s->channels, wide = s->size[1];
    for (int64_t i = task * s->planes; i < least(all, (task + 1) * s->planes); i++) {
        const int64_t image = i / s->channels, area = s->seen[0] * s->seen[1];
        T *to = NAME(packed_plane)(s, image, i % s->channels);
        const T *from = s->tensor + i * s->size[0] * wide;
        if (image >= s->images) {
            memset(to, 0, (size_t)area * sizeof(T));
            continue;
        }
        for (int64_t r = 0; r < s->seen[0]; r++, from += s->stride[0] * wide, to += s->seen[1]) {
            if (s->stride[1] == 1)
                memcpy(to, from, (size_t)s->seen[1] * sizeof(T));
            else if (s->stride[1] == 2)
                NAME(every_other)(s->seen[1], from, to);
            else
                for (int64_t c = 0; c < s->seen[1]; c++) to[c] = from[c * s->stride[1]];
        }
    }
}

/* Adds the bias; positions that are not seen are the bias alone. */
static void NAME(spread_task)(void *context, int64_t task) {
    const NAME(pass) *s = context;
    const bool whole = s->seen[0] * s->seen[1] == s->size[0] * s->size[1];
    for (int64_t i = task * s->planes; i < least(s->images * s->channels, (task + 1) * s->planes); i++) {
        const T *from = NAME(packed_plane)(s, i / s->channels, i % s->channels);
        const T more = s->bias ? s->bias[i % s->channels] : (T)0;
        T *to = s->tensor + i * s->size[0] * s->size[1];
        for (int64_t u = 0; u < s->size[0] * s->size[1]; u++) to[u] = whole ? from[u] + more : more;
        for (int64_t r = 0; r < s->seen[0] && !whole; r++)
            for (int64_t c = 0; c < s->seen[1]; c++)
                to[r * s->stride[0] * s->size[1] + c * s->stride[1]] = *from++ + more;
    }
}

static void NAME(run_pass)(NAME(pass) * s, void (*task)(void *context, int64_t task)) {
    const int64_t planes = ceil_div(s->images, s->each) * s->each * s->channels;
    s->planes = ceil_div(PASS_ELEMENTS, s->size[0] * s->size[1]);
    nr_parallel(ceil_div(planes, s->planes), task, s);
}

/* The sums of y by channel, pairwise over the images. */
static T NAME(sum_images)(int64_t images, const T *y, int64_t area, int64_t apart) {
    if (images == 1) return NAME(sum_of)(area, y);
    const int64_t half = images / 2;
    return NAME(sum_images)(half, y, area, apart) + NAME(sum_images)(images - half, y + half * apart, area, apart);
}

static void NAME(sum_channel)(void *context, int64_t channel) {
    const nr_conv_plan *p = context;
    const int64_t area = p->result[0] * p->result[1];
    ((T *)p->sums)[channel] =
        NAME(sum_images)(p->batch, (const T *)p->y + channel * area, area, p->groups * p->out * area);
}

static void NAME(sum_channels)(const nr_conv_plan *p) {
    if (p->sums) nr_parallel(p->groups * p->out, NAME(sum_channel), (void *)p);
}

/* ---- the gradient of the weight ------------------------------------------------------------------------ */

/* pieces of images that are multiplied at a time, and whether x or y must be gathered */
typedef struct NAME(pieces) {
    int64_t each, round;
    bool pack_x, pack_y;
} NAME(pieces);

static NAME(pieces) NAME(cut)(const nr_conv_plan *p) {
    const int64_t area = p->result[0] * p->result[1], channels = p->groups * (p->in + p->out);
    NAME(pieces) cut;
    cut.each = least(p->batch, greatest(1, SUMMED_TOGETHER / area));
    const int64_t elements = cut.each * area * channels + p->groups * p->in * p->out;
    cut.round = least(ceil_div(p->batch, cut.each), greatest(1, ROUND_ELEMENTS / elements));
    cut.round = least(cut.round, PARTS_WANTED);
    cut.pack_y = cut.each > 1;
    cut.pack_x = cut.pack_y || p->size[0] != p->result[0] || p->size[1] != p->result[1];
    return cut;
}

/* The products of some pieces of `positions`. */
static nr_matmul_plan NAME(plan_product)(const nr_conv_plan *p, int64_t positions, int64_t pieces, T *x, T *y,
                                         T *weight) {
    nr_matmul_plan plan = {.alpha = 1, .batch_ndim = 2, .batch = {p->groups, pieces}};
    const int64_t xs = p->in * positions, ys = p->out * positions, ws = p->in * p->out;
    plan.m = p->out, plan.k = positions, plan.n = p->in;
    plan.a = y, plan.a_row = positions, plan.a_col = 1;
    plan.b = x, plan.b_row = 1, plan.b_col = positions;
    plan.c = weight, plan.c_row = p->in;
    const int64_t one[3] = {ws, ys, xs}; /* of a group of c, a and b */
    for (int operand = 0; operand < 3; operand++) {
        plan.batch_stride[operand][0] = one[operand];
        plan.batch_stride[operand][1] = p->groups * one[operand];
    }
    return plan;
}

static int32_t NAME(tap_weight)(const nr_call *call, const nr_conv_plan *p) {
    const int64_t area = p->result[0] * p->result[1], plane = p->size[0] * p->size[1];
    const int64_t in = p->groups * p->in, out = p->groups * p->out, matrix = out * p->in;
    const NAME(pieces) cut = NAME(cut)(p);
    const int64_t positions = cut.each * area, step = cut.round * cut.each; /* images of a round */
    const bool sum = p->batch > cut.each;
    const int64_t x_size = cut.pack_x ? cut.round * in * positions : 0;
    const int64_t y_size = cut.pack_y ? cut.round * out * positions : 0;
    const size_t bytes = (size_t)(x_size + y_size + (sum ? cut.round * matrix : 0)) * sizeof(T);
    T *scratch = bytes ? nr_scratch(bytes) : NULL, *parts = scratch ? scratch + x_size + y_size : NULL;
    if (bytes && !scratch) return no_scratch(bytes);
    int32_t status = NORCH_OK;
    for (int64_t image = 0; image < p->batch && status == NORCH_OK; image += step) {
        NAME(pass) x = {.channels = in, .images = least(step, p->batch - image), .each = cut.each}, y = x;
        y.channels = out;
        for (int d = 0; d < 2; d++) {
            x.size[d] = p->size[d], x.stride[d] = p->stride[d];
            y.size[d] = p->result[d], y.stride[d] = 1;
            x.seen[d] = y.seen[d] = p->result[d];
        }
        x.tensor = (T *)p->x + image * in * plane, x.packed = cut.pack_x ? scratch : x.tensor;
        y.tensor = (T *)p->y + image * out * area, y.packed = cut.pack_y ? scratch + x_size : y.tensor;
        if (cut.pack_x) NAME(run_pass)(&x, NAME(gather_task));
        if (cut.pack_y) NAME(run_pass)(&y, NAME(gather_task));
        const int64_t pieces = ceil_div(x.images, cut.each);
        nr_matmul_plan plan = NAME(plan_product)(p, positions, pieces, x.packed, y.packed, sum ? parts : p->weight);
        nr_call product = *call;
        product.plan = (void *)&plan;
        product.kernel = NULL;
        status = NR_ISA(nr_run_matmul)(&product);
        for (int64_t part = 0; part < pieces && sum; part++) /* in their order */
            for (int64_t i = 0; i < matrix; i++)
                ((T *)p->weight)[i] = parts[part * matrix + i] + (image || part ? ((T *)p->weight)[i] : (T)0);
    }
    NAME(sum_channels)(p);
    if (scratch) nr_scratch_free(scratch, bytes);
    return status;
}

/* ---- forward, and the gradient of the input ------------------------------------------------------------ */

/* Images in rounds, if a stride makes copies of them. */
static int32_t NAME(run_tap)(const nr_call *call, const nr_conv_plan *p, nr_conv_kind kind) {
    if (kind == NR_CONV_WEIGHT) return NAME(tap_weight)(call, p);
    const int64_t area = p->result[0] * p->result[1], plane = p->size[0] * p->size[1], in = p->groups * p->in;
    if (area == plane) {
        const bool forward = kind == NR_CONV_FORWARD;
        return NAME(run_planes)(p, kind, p->batch, forward ? p->x : p->y, forward ? p->y : p->x, p->bias);
    }
    const int64_t round = least(p->batch, greatest(1, ROUND_ELEMENTS / (in * area)));
    const size_t bytes = (size_t)(round * in * area) * sizeof(T);
    T *dense = nr_scratch(bytes);
    if (!dense) return no_scratch(bytes);
    int32_t status = NORCH_OK;
    for (int64_t image = 0; image < p->batch && status == NORCH_OK; image += round) {
        NAME(pass) x = {.channels = in, .images = least(round, p->batch - image), .each = 1, .packed = dense};
        for (int d = 0; d < 2; d++) x.size[d] = p->size[d], x.stride[d] = p->stride[d], x.seen[d] = p->result[d];
        x.tensor = (T *)p->x + image * in * plane;
        T *y = (T *)p->y + image * p->groups * p->out * area;
        if (kind == NR_CONV_FORWARD) {
            NAME(run_pass)(&x, NAME(gather_task));
            status = NAME(run_planes)(p, kind, x.images, dense, y, p->bias);
        } else {
            status = NAME(run_planes)(p, kind, x.images, y, dense, NULL);
            x.bias = p->bias;
            if (status == NORCH_OK) NAME(run_pass)(&x, NAME(spread_task));
        }
    }
    nr_scratch_free(dense, bytes);
    return status;
}
