/* batch_norm_loops: the tiles of batch_norm_isa.c, which has a picture of them, for a float type: a template of
 * each_dtype.h. Ioffe and Szegedy, "Batch Normalization" (2015).
 *
 *   TRAINING   1. the sums of d = x - x[0] and of d^2    2. (x - mean) scale weight + bias
 *   BACKWARD   1. the sums of g and of g (x - mean)    2. scale weight (g - mean(g) - h mean(g h)) */

typedef struct NAME(lanes) {
    T v[LANES];
} NAME(lanes);

/* Adds the sums of some rows to the double-precision sums of all, and clears them. */
ONCE void NAME(flush)(double *restrict sums, NAME(lanes) *restrict part) {
    for (int64_t k = 0; k < LANES; k++) {
        sums[k] += (double)part->v[k];
        part->v[k] = 0;
    }
}

/* The sums of the lanes of each channel. */
ONCE void NAME(fold)(const tile *t, const double *sums, double *of_channel) {
    for (int64_t c = 0; c < t->channels; c++) {
        of_channel[c] = 0;
        for (int64_t k = 0; k < t->each; k++) of_channel[c] += sums[c * t->each + k];
    }
}

/* Copies the number of each channel to each of its lanes. */
ONCE void NAME(spread)(const tile *t, const double *of_channel, NAME(lanes) *restrict to) {
    for (int64_t c = 0; c < t->channels; c++)
        for (int64_t k = 0; k < t->each; k++) to->v[c * t->each + k] = (T)of_channel[c];
}

/* For each lane the sums of d = x - center and of d^2. */
ONCE void NAME(deviations)(const nr_batch_norm_plan *p, const tile *t, const NAME(lanes) * center, double *sums,
                           double *squares) {
    const T *restrict x = p->x;
    NAME(lanes) part = {{0}}, part_squares = {{0}};
    int64_t rows = 0;
    for (int64_t k = 0; k < LANES; k++) sums[k] = squares[k] = 0;
    EACH_ROW(p, *t, {
        for (int64_t k = 0; k < width; k++) {
            const T d = x[at + k] - center->v[k];
            part.v[k] += d;
            part_squares.v[k] += d * d;
        }
        if (++rows % STEPS == 0) {
            NAME(flush)(sums, &part);
            NAME(flush)(squares, &part_squares);
        }
    })
    NAME(flush)(sums, &part);
    NAME(flush)(squares, &part_squares);
}

/* The statistics of a channel whose squares overflow T, or lose digits in it. */
ONCE void NAME(find_wide_moments)(const nr_batch_norm_plan *p, int64_t channel, double *mean, double *variance) {
    const double n = (double)(p->batch * p->inner);
    double sum = 0, squares = 0;
    for (int64_t pass = 0; pass < 2; pass++)
        for (int64_t sample = 0; sample < p->batch; sample++) {
            const T *x = (const T *)p->x + (sample * p->channels + channel) * p->inner;
            for (int64_t i = 0; i < p->inner; i++) {
                if (pass == 0)
                    sum += (double)x[i];
                else
                    squares += ((double)x[i] - sum / n) * ((double)x[i] - sum / n);
            }
        }
    *mean = sum / n;
    *variance = squares / n;
}

/* The statistics in double precision, from sums about an element of each channel, or about the means if an element is
 * too far from its mean. */
static void NAME(find_moments)(const nr_batch_norm_plan *p, const tile *t, double *mean, double *variance) {
    const double n = (double)(p->batch * p->inner);
    double sums[LANES], squares[LANES], origin[LANES] = {0};
    NAME(lanes) center = {{0}};
    bool near = false;
    for (int64_t c = 0; c < t->channels && n > 0; c++)
        origin[c] = (double)((const T *)p->x)[(t->channel + c) * p->inner];
    for (int64_t pass = 0; pass < 2 && !near; pass++) {
        NAME(spread)(t, origin, &center);
        NAME(deviations)(p, t, &center, sums, squares);
        NAME(fold)(t, sums, mean);
        NAME(fold)(t, squares, variance);
        near = true;
        for (int64_t c = 0; c < t->channels; c++) {
            const double away = mean[c] / n;
            variance[c] = variance[c] / n - away * away;
            near &= away * away <= NEAR * variance[c];
            mean[c] = origin[c] + away;
            origin[c] = (double)(T)mean[c];
        }
    }
    for (int64_t c = 0; c < t->channels; c++) {
        if (variance[c] < 0) variance[c] = 0;
        if (NR_IS_OUT_OF_RANGE(T, variance[c], p->eps))
            NAME(find_wide_moments)(p, t->channel + c, &mean[c], &variance[c]);
    }
}

INLINE void NAME(move)(void *running, int64_t channel, double momentum, double to) {
    T *one = (T *)running + channel;
    if (running) *one = (T)((1 - momentum) * (double)*one + momentum * to);
}

/* Stores the statistics of a batch, and updates the running ones. */
static void NAME(store_moments)(const nr_batch_norm_plan *p, const tile *t, const double *mean,
                                const double *variance) {
    const double n = (double)(p->batch * p->inner);
    for (int64_t c = 0; c < t->channels; c++) {
        const int64_t channel = t->channel + c;
        ((T *)p->mean)[channel] = (T)mean[c];
        ((T *)p->variance)[channel] = (T)variance[c];
        NAME(move)(p->running_mean, channel, p->momentum, mean[c]);
        NAME(move)(p->running_variance, channel, p->momentum, n > 1 ? variance[c] * (n / (n - 1)) : variance[c]);
    }
}

static void NAME(load_moments)(const nr_batch_norm_plan *p, const tile *t, double *mean, double *variance) {
    for (int64_t c = 0; c < t->channels; c++) {
        mean[c] = (double)((const T *)p->mean)[t->channel + c];
        variance[c] = (double)((const T *)p->variance)[t->channel + c];
    }
}

static T NAME(scale_of)(const nr_batch_norm_plan *p, double variance) { return (T)(1 / sqrt(variance + p->eps)); }

static T NAME(weight_of)(const nr_batch_norm_plan *p, int64_t channel) {
    return p->weight ? ((const T *)p->weight)[channel] : (T)1;
}

/* Whether T can represent the product of a scale and a weight with all its digits. */
static bool NAME(holds)(double product) {
    return sizeof(T) == sizeof(double) || product == 0 ||
           (fabs(product) >= (double)FLT_MIN && fabs(product) <= (double)FLT_MAX);
}

/* h weight + bias as (x - mean) scale + shift. */
INLINE void NAME(find_affine)(const nr_batch_norm_plan *p, int64_t channel, double mean, double variance, double *scale,
                              double *shift) {
    const T inverse_std = NAME(scale_of)(p, variance), weight = NAME(weight_of)(p, channel);
    const double product = (double)inverse_std * (double)weight;
    *scale = NAME(holds)(product) ? (double)(inverse_std * weight) : product;
    *shift = p->bias ? (double)((const T *)p->bias)[channel] : 0;
    *shift -= (mean - (double)(T)mean) * *scale; /* x is taken from the rounded mean */
}

static void NAME(forward)(const nr_batch_norm_plan *p, const tile *t, const double *mean, const double *variance) {
    const T *restrict x = p->x;
    T *restrict out = p->out;
    double scale[LANES] = {0}, bias[LANES] = {0};
    bool hold = true;
    for (int64_t c = 0; c < t->channels; c++) {
        NAME(find_affine)(p, t->channel + c, mean[c], variance[c], &scale[c], &bias[c]);
        hold &= NAME(holds)(scale[c]);
    }
    NAME(lanes) center = {{0}}, factor = {{0}}, shift = {{0}};
    NAME(spread)(t, mean, &center);
    NAME(spread)(t, scale, &factor);
    NAME(spread)(t, bias, &shift);
    if (!hold) {
        EACH_ROW(p, *t, {
            for (int64_t k = 0; k < width; k++) {
                const int64_t c = k / t->each;
                out[at + k] = (T)(((double)x[at + k] - (double)center.v[k]) * scale[c] + bias[c]);
            }
        })
        return;
    }
    EACH_ROW(p, *t, {
        for (int64_t k = 0; k < width; k++) out[at + k] = (x[at + k] - center.v[k]) * factor.v[k] + shift.v[k];
    })
}

/* The sums of g d and of d of a channel whose sums T cannot represent. */
ONCE void NAME(find_wide_sums)(const nr_batch_norm_plan *p, int64_t channel, double center, double *of_gd,
                               double *of_d) {
    *of_gd = *of_d = 0;
    for (int64_t sample = 0; sample < p->batch; sample++) {
        const int64_t first = (sample * p->channels + channel) * p->inner;
        for (int64_t i = first; i < first + p->inner; i++) {
            const double d = (double)((const T *)p->x)[i] - center;
            *of_gd += (double)((const T *)p->g)[i] * d;
            *of_d += d;
        }
    }
}

static void NAME(backward)(const nr_batch_norm_plan *p, const tile *t, const double *mean, const double *variance,
                           bool training) {
    const T *restrict x = p->x, *restrict g = p->g;
    T *restrict out = p->grad_x;
    const double n = (double)(p->batch * p->inner);
    double of_g[LANES] = {0}, of_gd[LANES] = {0}, of_d[LANES] = {0}, sum[LANES], product[LANES], rest[LANES];
    double factor[LANES] = {0}, slope[LANES] = {0};
    NAME(lanes) part_g = {{0}}, part_gd = {{0}}, part_d = {{0}}, center = {{0}};
    NAME(spread)(t, mean, &center);
    int64_t rows = 0;
    EACH_ROW(p, *t, {
        for (int64_t k = 0; k < width; k++) {
            const T d = x[at + k] - center.v[k];
            part_g.v[k] += g[at + k];
            part_gd.v[k] += g[at + k] * d;
            part_d.v[k] += d;
        }
        if (++rows % STEPS == 0) {
            NAME(flush)(of_g, &part_g);
            NAME(flush)(of_gd, &part_gd);
            NAME(flush)(of_d, &part_d);
        }
    })
    NAME(flush)(of_g, &part_g);
    NAME(flush)(of_gd, &part_gd);
    NAME(flush)(of_d, &part_d);
    NAME(fold)(t, of_g, sum);
    NAME(fold)(t, of_gd, product);
    NAME(fold)(t, of_d, rest);
    for (int64_t c = 0; c < t->channels; c++) {
        if (product[c] - product[c] != 0 || rest[c] - rest[c] != 0)
            NAME(find_wide_sums)(p, t->channel + c, (double)center.v[c * t->each], &product[c], &rest[c]);
        rest[c] = training ? rest[c] / n : 0; /* of the mean, which is stored rounded */
        product[c] -= rest[c] * sum[c];
        const double scale = (double)NAME(scale_of)(p, variance[c]);
        if (p->grad_affine) {
            ((T *)p->grad_affine)[t->channel + c] = (T)(product[c] * scale);
            ((T *)p->grad_affine)[p->channels + t->channel + c] = (T)sum[c];
        }
        factor[c] = scale * (double)NAME(weight_of)(p, t->channel + c);
        slope[c] = training ? product[c] * scale * scale / n : 0;
        sum[c] = training ? sum[c] / n - rest[c] * slope[c] : 0;
    }
    bool hold = true;
    for (int64_t c = 0; c < t->channels; c++) hold &= NAME(holds)(factor[c]);
    if (!hold) {
        EACH_ROW(p, *t, {
            for (int64_t k = 0; k < width; k++) {
                const int64_t c = k / t->each;
                const double centered = (double)g[at + k] - sum[c], d = (double)x[at + k] - (double)center.v[k];
                out[at + k] = (T)(factor[c] * (centered - d * slope[c]));
            }
        })
        return;
    }
    NAME(lanes) factors = {{0}}, means = {{0}}, slopes = {{0}};
    NAME(spread)(t, factor, &factors);
    NAME(spread)(t, sum, &means);
    NAME(spread)(t, slope, &slopes);
    EACH_ROW(p, *t, { /* slopes and means are 0 where the statistics do not depend on x */
                      for (int64_t k = 0; k < width; k++)
                          out[at + k] =
                              factors.v[k] * (g[at + k] - means.v[k] - (x[at + k] - center.v[k]) * slopes.v[k]);
    })
}

static void NAME(run)(const nr_batch_norm_plan *p, int32_t kind, const tile *t) {
    double mean[LANES], variance[LANES];
    if (kind == NR_BATCH_NORM_TRAINING) {
        NAME(find_moments)(p, t, mean, variance);
        NAME(store_moments)(p, t, mean, variance);
    } else {
        NAME(load_moments)(p, t, mean, variance);
        for (int64_t c = 0; c < t->channels && kind == NR_BATCH_NORM_TRAINING_BACKWARD; c++)
            if (NR_IS_OUT_OF_RANGE(T, variance[c], p->eps))
                NAME(find_wide_moments)(p, t->channel + c, &mean[c], &variance[c]);
    }
    if (kind == NR_BATCH_NORM_TRAINING || kind == NR_BATCH_NORM_EVALUATION)
        NAME(forward)(p, t, mean, variance);
    else
        NAME(backward)(p, t, mean, variance, kind == NR_BATCH_NORM_TRAINING_BACKWARD);
}
