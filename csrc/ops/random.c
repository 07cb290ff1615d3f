/* random: checks of random numbers, and how far each call advances the stream. The generator counts the stream in
 * blocks of four 32-bit words. A float32 takes one word, other dtypes two, so that any thread can compute any part of a
 * call. */
#include "../families/random.h"
#include "ops.h"

/* Runs a plan that fills y, which is dense, and advances the counter; returns y, or releases it and returns NULL. */
static norch_tensor *run(uint64_t *state, norch_tensor *y, nr_random_kind kind, nr_random_plan *plan) {
    plan->out = y->data;
    plan->n = y->numel;
    plan->seed = state[0];
    plan->counter = state[1];
    const int64_t block = y->dtype == NORCH_FLOAT32 && kind != NR_INTEGERS ? 4 : 2; /* elements per block of words */
    plan->state = state;
    plan->blocks = (uint64_t)((y->numel + block - 1) / block);
    int32_t status = nr_run(NR_RANDOM, kind, plan, (kind == NR_NORMAL ? 6.0 : 2.0) * (double)y->numel, y);
    if (status != NORCH_OK) return nr_finished(y, status);
    if (y->device_type != NORCH_META) state[1] += plan->blocks;
    return y;
}

/* Fills y with random numbers. */
static norch_tensor *draw(uint64_t *state, norch_tensor *y, nr_random_kind kind, const void *probability, int64_t low,
                          uint64_t span) {
    if (!y || y->numel == 0) return y;
    nr_random_plan plan = {.probability = probability, .low = low, .span = (int64_t)span};
    return run(state, y, kind, &plan);
}

/* The number of equally spaced values in [0, 1) for uniform numbers: few enough that none is rounded up to 1. */
static uint64_t uniform_span(int32_t dtype) {
    return 1ull << (nr_dtypes[dtype].digits < 24 ? nr_dtypes[dtype].digits : 24);
}

/* Scales standard normal parts, so that the complex numbers have variance 1. */
static norch_tensor *scale_parts(norch_tensor *parts) {
    NR_OWNED norch_tensor *scale = parts ? norch_scalar_float(0.70710678118654752) : NULL;
    return nr_finished(parts, scale ? norch_binary_into(parts, NR_OP_mul, parts, scale) : NORCH_ERROR_MEMORY);
}

static norch_tensor *draw_floats(const char *op, uint64_t *state, int64_t ndim, const int64_t *shape, int64_t dtype,
                                 nr_random_kind kind, int64_t device_type, int64_t device_index) {
    if (nr_check_dtype(op, dtype)) return NULL;
    if (nr_is_complex((int32_t)dtype) && nr_check_shape(op, ndim, shape) == NORCH_OK && ndim < NORCH_MAX_DIMS) {
        int64_t of_parts[NORCH_MAX_DIMS] = {0};
        for (int64_t d = 0; d < ndim; d++) of_parts[d] = shape[d];
        of_parts[ndim] = 2;
        norch_tensor *parts =
            draw_floats(op, state, ndim + 1, of_parts, nr_part_of((int32_t)dtype), kind, device_type, device_index);
        return nr_whole(kind == NR_NORMAL ? scale_parts(parts) : parts);
    }
    if (!nr_is_float((int32_t)dtype))
        return NR_REFUSE(NORCH_ERROR_DTYPE, "%s: the dtype must be a float, not %s", op, nr_dtypes[dtype].name);
    norch_tensor *y = nr_make_on(op, ndim, shape, nr_wide((int32_t)dtype), device_type, device_index);
    return nr_narrowed(draw(state, y, kind, NULL, 0, uniform_span((int32_t)dtype)), (int32_t)dtype);
}

norch_tensor *norch_rand(uint64_t *state, int64_t ndim, const int64_t *shape, int64_t dtype, int64_t device_type,
                         int64_t device_index) {
    return draw_floats("rand", state, ndim, shape, dtype, NR_UNIFORM, device_type, device_index);
}

norch_tensor *norch_randn(uint64_t *state, int64_t ndim, const int64_t *shape, int64_t dtype, int64_t device_type,
                          int64_t device_index) {
    return draw_floats("randn", state, ndim, shape, dtype, NR_NORMAL, device_type, device_index);
}

norch_tensor *norch_randint(uint64_t *state, int64_t ndim, const int64_t *shape, int64_t low, int64_t high,
                            int64_t dtype, int64_t device_type, int64_t device_index) {
    if (nr_check_dtype("randint", dtype)) return NULL;
    if (low >= high)
        return NR_REFUSE(NORCH_ERROR_VALUE, "randint: low %lld is not below high %lld", (long long)low,
                         (long long)high);
    const nr_dtype_row *row = &nr_dtypes[dtype];
    const int32_t drawn = dtype == NORCH_BOOL ? NORCH_INT32 : row->wide; /* the dtype that kernels draw */
    const int64_t most = row->kind == 'f' ? INT64_MAX : INT64_MAX >> (63 - row->digits);
    const int64_t least = row->kind == 'u' || row->kind == 'b' ? 0 : -most - 1;
    if (low < least || high - 1 > most)
        return NR_REFUSE(NORCH_ERROR_VALUE, "randint: [%lld, %lld) is out of range for %s", (long long)low,
                         (long long)high, nr_dtypes[dtype].name);
    norch_tensor *y = nr_make_on("randint", ndim, shape, drawn, device_type, device_index);
    return nr_narrowed(draw(state, y, NR_INTEGERS, NULL, low, (uint64_t)high - (uint64_t)low), (int32_t)dtype);
}

norch_tensor *norch_randperm(uint64_t *state, int64_t n, int64_t device_type, int64_t device_index) {
    if (device_type == NORCH_META) return nr_make_on("randperm", 1, &n, NORCH_INT64, device_type, device_index);
    /* sequential, so always on the CPU */
    norch_tensor *identity = nr_make_on("randperm", 1, &n, NORCH_INT64, NORCH_CPU, 0);
    NR_OWNED norch_tensor *y = draw(state, identity, NR_PERMUTATION, NULL, 0, 0);
    return y ? norch_to_device(y, device_type, device_index, 0) : NULL;
}

norch_tensor *norch_bernoulli(uint64_t *state, const norch_tensor *p) {
    if (nr_check_real("bernoulli", p)) return NULL;
    if (!nr_is_float(p->dtype))
        return NR_REFUSE(NORCH_ERROR_DTYPE, "bernoulli: probabilities must be floats, not %s",
                         nr_dtypes[p->dtype].name);
    NR_OWNED norch_tensor *dense = nr_dense(p, nr_wide(p->dtype));
    norch_tensor *y = dense ? nr_make(p->ndim, p->shape, dense->dtype, p) : NULL;
    return y ? nr_narrowed(draw(state, y, NR_BERNOULLI, dense->data, 0, 0), p->dtype) : NULL;
}

norch_tensor *norch_dropout(uint64_t *state, const norch_tensor *x, double p, double scale, const norch_tensor *mask) {
    const char *op = "dropout";
    if (nr_check_real(op, x) || nr_check_real(op, mask) || nr_check_same_device(op, x, mask)) return NULL;
    if (!nr_is_float(x->dtype))
        return NR_REFUSE(NORCH_ERROR_DTYPE, "%s: the input must be of floats, not %s", op, nr_dtypes[x->dtype].name);
    if (mask->dtype != NORCH_BOOL || !mask->contiguous || !nr_same_shape(mask->ndim, mask->shape, x->ndim, x->shape))
        return NR_REFUSE(NORCH_ERROR_SHAPE, "%s: a mask of shape %s and dtype %s for an input of shape %s", op,
                         nr_shape_of(mask), nr_dtypes[mask->dtype].name, nr_shape_of(x));
    NR_OWNED norch_tensor *dense = nr_dense(x, nr_wide(x->dtype));
    norch_tensor *y = dense ? nr_make(x->ndim, x->shape, dense->dtype, x) : NULL;
    nr_random_plan plan = {.mask = mask->data, .least = p, .scale = scale};
    if (y && y->numel) {
        plan.x = dense->data;
        y = run(state, y, NR_DROPOUT, &plan);
    }
    return nr_narrowed(y, x->dtype);
}
