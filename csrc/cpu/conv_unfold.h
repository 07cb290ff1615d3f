/* conv_unfold: convolutions of few positions and many channels, for one float type: a template of
 * each_dtype.h. Vectors of positions would not be full, and the weight, which is most of what is read, would
 * be read for each of them. The taps of all positions of all images are unfolded into rows, and products read
 * the weight where it lies, once and in order:
 *
 *   columns: (positions, groups * in * taps)       y       = weight columns^T
 *   turned:  (groups * out, positions) of y        columns = turned^T weight,  summed into x
 *                                                  weight  = turned columns
 *
 * Unfolding: Chellapilla, Puri and Simard, "High Performance Convolutional Neural Networks for Document Processing"
 * (2006). */

typedef struct NAME(unfolding) {
    const nr_conv_plan *p;
    T *columns, *turned;
    bool back; /* columns are summed into x */
} NAME(unfolding);

/* Unfolds, or sums into x, UNFOLDED_CHANNELS channels of all positions. Of x outside
 * its size there is nothing to sum. */
static void NAME(unfold_channels)(void *context, int64_t task) {
    const NAME(unfolding) *s = context;
    const nr_conv_plan *p = s->p;
    const int64_t channels = p->groups * p->in, taps = p->kernel[0] * p->kernel[1], plane = p->size[0] * p->size[1];
    const int64_t c0 = task * UNFOLDED_CHANNELS, count = least(UNFOLDED_CHANNELS, channels - c0);
    T *row = s->columns + c0 * taps;
    for (int64_t n = 0; n < p->batch; n++) {
        T *x = (T *)p->x + (n * channels + c0) * plane;
        for (int64_t c = 0; c < count && s->back; c++)
            for (int64_t i = 0; i < plane; i++) x[c * plane + i] = p->bias ? ((const T *)p->bias)[c0 + c] : (T)0;
        for (int64_t at = 0; at < p->result[0] * p->result[1]; at++, row += channels * taps)
            for (int64_t t = 0; t < taps; t++) {
                const int64_t i = at / p->result[1] * p->stride[0] + t / p->kernel[1] * p->dilation[0] - p->padding[0];
                const int64_t j = at % p->result[1] * p->stride[1] + t % p->kernel[1] * p->dilation[1] - p->padding[1];
                const bool inside = i >= 0 && i < p->size[0] && j >= 0 && j < p->size[1];
                T *seen = x + (inside ? i * p->size[1] + j : 0);
                if (s->back)
                    for (int64_t c = 0; c < count && inside; c++) seen[c * plane] += row[c * taps + t];
                else
                    for (int64_t c = 0; c < count; c++) row[c * taps + t] = inside ? seen[c * plane] : (T)0;
            }
    }
}

/* y, (batch, channels, area), to turned or from it, with the bias. */
static void NAME(turn_channel)(void *context, int64_t channel) {
    const NAME(unfolding) *s = context;
    const nr_conv_plan *p = s->p;
    const int64_t area = p->result[0] * p->result[1], channels = p->groups * p->out;
    const T more = p->bias ? ((const T *)p->bias)[channel] : (T)0;
    T *turned = s->turned + channel * p->batch * area, *y = (T *)p->y + channel * area;
    for (int64_t n = 0; n < p->batch; n++, turned += area, y += channels * area)
        for (int64_t i = 0; i < area; i++) y[i] = turned[i] + more;
}

/* y = weight columns^T of each group. */
static nr_matmul_plan NAME(plan_unfolded)(const nr_conv_plan *p, T *columns, T *turned) {
    const int64_t all = p->batch * p->result[0] * p->result[1], k = p->in * p->kernel[0] * p->kernel[1];
    nr_matmul_plan plan = {.alpha = 1, .batch_ndim = 1, .batch = {p->groups}};
    plan.m = p->out, plan.n = all, plan.k = k;
    plan.a = p->weight, plan.a_row = k, plan.a_col = 1;
    plan.b = columns, plan.b_row = 1, plan.b_col = p->groups * k;
    plan.c = turned, plan.c_row = all;
    plan.batch_stride[0][0] = p->out * all, plan.batch_stride[1][0] = p->out * k, plan.batch_stride[2][0] = k;
    return plan;
}

static int32_t NAME(run_unfolded)(const nr_call *call, const nr_conv_plan *p, nr_conv_kind kind) {
    const int64_t area = p->result[0] * p->result[1], all = p->batch * area, k = p->in * p->kernel[0] * p->kernel[1];
    const int64_t row = p->groups * k, out = p->groups * p->out;
    const size_t bytes = (size_t)(all * (row + out)) * sizeof(T);
    NAME(unfolding) s = {.p = p, .columns = nr_scratch(bytes), .back = kind == NR_CONV_INPUT};
    if (!s.columns) return no_scratch(bytes);
    s.turned = s.columns + all * row;
    const int64_t tasks = ceil_div(p->groups * p->in, UNFOLDED_CHANNELS);
    for (int64_t n = 0; n < p->batch && kind != NR_CONV_FORWARD; n++)
        for (int64_t o = 0; o < out; o++)
            memcpy(s.turned + o * all + n * area, (const T *)p->y + (n * out + o) * area, (size_t)area * sizeof(T));
    if (!s.back) nr_parallel(tasks, NAME(unfold_channels), &s);
    nr_matmul_plan plan = NAME(plan_unfolded)(p, s.columns, s.turned);
    const int64_t of_turned = p->out * all, of_weight = p->out * k;
    if (kind == NR_CONV_INPUT) {
        plan.m = all, plan.n = k, plan.k = p->out;
        plan.a = s.turned, plan.a_row = 1, plan.a_col = all;
        plan.b = p->weight, plan.b_row = k, plan.b_col = 1;
        plan.c = s.columns, plan.c_row = row;
        plan.batch_stride[0][0] = k, plan.batch_stride[1][0] = of_turned, plan.batch_stride[2][0] = of_weight;
    } else if (kind == NR_CONV_WEIGHT) {
        plan.m = p->out, plan.n = k, plan.k = all;
        plan.a = s.turned, plan.a_row = all, plan.a_col = 1;
        plan.b = s.columns, plan.b_row = row, plan.b_col = 1;
        plan.c = p->weight, plan.c_row = k;
        plan.batch_stride[0][0] = of_weight, plan.batch_stride[1][0] = of_turned, plan.batch_stride[2][0] = k;
    }
    nr_call product = *call;
    product.plan = (void *)&plan;
    product.kernel = NULL;
    const int32_t status = NR_ISA(nr_run_matmul)(&product);
    if (kind == NR_CONV_FORWARD) nr_parallel(out, NAME(turn_channel), &s);
    if (s.back) nr_parallel(tasks, NAME(unfold_channels), &s);
    if (kind == NR_CONV_WEIGHT) NAME(sum_channels)(p);
    nr_scratch_free(s.columns, bytes);
    return status;
}
