/* optim: one step of an optimizer over many tensors. Before the first is written, all tensors are checked and those
 * that are not dense are copied. The formulas are the rows of optim.def. */
#include "../families/optim.h"
#include "ops.h"

/* The lists of a step: parameters, gradients and the row's state tensors (NULL: absent). */
enum { PARAM, GRAD, STATE, LISTS = STATE + NR_OPTIM_STATES };

/* The rows of optim.def as data. */
typedef struct row {
    const char *name, *hyper, *state; /* "adam", "lr, beta1, ...", "exp_avg, ..." */
    double work;
    int needed;
    const char *lists[LISTS]; /* their names in messages */
} row;
static const row rows[NR_OPTIM_COUNT] = {
#define TEXT(...) #__VA_ARGS__
#define QUOTE(k, state) #state,
#define OPTIMIZER(name, work, hypers, needed, states, ...) \
    {#name, TEXT hypers, TEXT states, work, needed, {"parameter", "gradient", NR_EACH(QUOTE, NR_UNPACK states)}},
#include "../optim.def"
};

static const row *row_of(int64_t kind) { return kind >= 0 && kind < NR_OPTIM_COUNT ? &rows[kind] : NULL; }

const char *norch_optim_name(int64_t kind) { return row_of(kind) ? rows[kind].name : NULL; }

const char *norch_optim_hyper(int64_t kind) { return row_of(kind) ? rows[kind].hyper : NULL; }

const char *norch_optim_state(int64_t kind) { return row_of(kind) ? rows[kind].state : NULL; }

static int32_t check_step(const row *r, int64_t n, norch_tensor *const *const lists[LISTS], bool *dense) {
    *dense = true;
    for (int l = STATE; l < STATE + r->needed; l++)
        if (!lists[l]) return nr_fail(NORCH_ERROR_VALUE, "%s: %s is missing", r->name, r->lists[l]);
    for (int64_t i = 0; i < n; i++) {
        NR_TRY(nr_check_tensor(r->name, lists[PARAM][i]));
        const norch_tensor *param = lists[PARAM][i];
        if (!nr_is_float(nr_part_of(param->dtype)))
            return nr_fail(NORCH_ERROR_DTYPE,
                           "%s: parameter %lld is %s; only floats and complex numbers can be optimized", r->name,
                           (long long)i, nr_dtypes[param->dtype].name);
        for (int l = 0; l < LISTS; l++) {
            if (!lists[l]) continue;
            const norch_tensor *x = lists[l][i];
            NR_TRY(nr_check_tensor(r->name, x));
            if (l != GRAD) NR_TRY(nr_check_writable(r->name, x));
            if (x->dtype != param->dtype)
                return nr_fail(NORCH_ERROR_DTYPE, "%s: %s %lld is %s, the parameter %s", r->name, r->lists[l],
                               (long long)i, nr_dtypes[x->dtype].name, nr_dtypes[param->dtype].name);
            if (!nr_same_shape(x->ndim, x->shape, param->ndim, param->shape))
                return nr_fail(NORCH_ERROR_SHAPE, "%s: %s %lld has shape %s, the parameter %s", r->name, r->lists[l],
                               (long long)i, nr_shape_of(x), nr_shape_of(param));
            if (!nr_same_device(x, param))
                return nr_fail(NORCH_ERROR_DEVICE, "%s: %s %lld is on %s, the parameter on %s", r->name, r->lists[l],
                               (long long)i, nr_device_name(x), nr_device_name(param));
            *dense = *dense && x->contiguous && !nr_needs_widening(x, NR_OPTIM) && !nr_is_complex(x->dtype) &&
                     (l == PARAM || x->storage != param->storage);
        }
    }
    return NORCH_OK;
}

#define AT_ONCE 64 /* tensors per call */

/* Tensors collected for a call, all of one dtype and on one device. */
typedef struct batch {
    nr_optim_item items[AT_ONCE];
    nr_optim_plan plan;
    nr_optim_kind kind;
    const norch_tensor *where; /* one of the parameters */
    double elements;
} batch;

static int32_t run_batch(batch *b) {
    if (b->plan.count == 0) return NORCH_OK;
    b->plan.items = b->items;
    int32_t status = nr_run(NR_OPTIM, b->kind, &b->plan, rows[b->kind].work * b->elements, b->where);
    b->plan.count = 0;
    b->elements = 0;
    return status;
}

static int32_t add(batch *b, norch_tensor *const xs[LISTS]) {
    const norch_tensor *param = xs[PARAM];
    if (param->numel == 0) return NORCH_OK;
    bool other = b->plan.count && (param->dtype != b->where->dtype || !nr_same_device(param, b->where));
    if (other || b->plan.count == AT_ONCE) NR_TRY(run_batch(b));
    b->where = param;
    b->elements += (double)param->numel;
    nr_optim_item *item = &b->items[b->plan.count++];
    *item = (nr_optim_item){.param = param->data, .grad = xs[GRAD]->data, .n = param->numel};
    for (int k = 0; k < NR_OPTIM_STATES; k++) item->state[k] = xs[STATE + k] ? xs[STATE + k]->data : NULL;
    return NORCH_OK;
}

/* x in the form that all kernels take: wide, dense, real, and outside the parameter's storage. */
static norch_tensor *readied(norch_tensor *x, bool shared) {
    if (nr_is_narrow(x->dtype)) return nr_widened(x);
    NR_OWNED norch_tensor *dense = shared ? norch_clone(x) : norch_contiguous(x);
    if (!dense) return NULL;
    return nr_is_complex(x->dtype) ? norch_view_as_real(dense) : norch_retain(dense);
}

static int32_t copy_back(norch_tensor *x, norch_tensor *dense) {
    if (dense->storage == x->storage) return NORCH_OK;
    NR_OWNED norch_tensor *whole = nr_is_complex(x->dtype) ? norch_view_as_complex(dense) : nr_retained(dense);
    return whole ? nr_copy_into(x, whole) : norch_last_error_kind();
}

/* Runs on readied() tensors, for lists in which some are narrow, complex, not dense or in the parameter's storage, and
 * copies the results back. */
static int32_t run_through_copies(nr_optim_kind kind, int64_t n, norch_tensor *const *const lists[LISTS],
                                  const double *hyper) {
    norch_tensor *(*dense)[LISTS] = nr_malloc((size_t)n * sizeof *dense);
    if (!dense) return nr_fail(NORCH_ERROR_MEMORY, "out of memory for the copies of %lld tensors", (long long)n);
    int32_t status = NORCH_OK;
    for (int64_t i = 0; i < n; i++)
        for (int l = 0; l < LISTS; l++) {
            norch_tensor *x = lists[l] ? lists[l][i] : NULL;
            dense[i][l] = NULL;
            if (!x || status != NORCH_OK) continue;
            bool shared = l != PARAM && x->storage == lists[PARAM][i]->storage;
            dense[i][l] = readied(x, shared);
            if (!dense[i][l]) status = norch_last_error_kind();
        }
    batch b = {.kind = kind, .plan = {.hyper = hyper}};
    for (int64_t i = 0; i < n && status == NORCH_OK; i++) {
        status = add(&b, dense[i]);
        if (status == NORCH_OK) status = run_batch(&b);
        for (int l = 0; l < LISTS && status == NORCH_OK; l++)
            if (l != GRAD && dense[i][l]) status = copy_back(lists[l][i], dense[i][l]);
    }
    for (int64_t i = 0; i < n; i++) nr_release_all(LISTS, dense[i]);
    nr_free(dense);
    return status;
}

int32_t norch_optim_step(int64_t kind, int64_t n, const void *params, const void *grads, const void *state0,
                         const void *state1, const void *state2, const double *hyper) {
    const row *r = row_of(kind);
    if (!r) return nr_fail(NORCH_ERROR_VALUE, "there is no optimizer %lld", (long long)kind);
    norch_tensor *const *const lists[LISTS] = {params, grads, state0, state1, state2};
    bool dense;
    NR_TRY(check_step(r, n, lists, &dense));
    if (!dense) return run_through_copies((nr_optim_kind)kind, n, lists, hyper);
    batch b = {.kind = (nr_optim_kind)kind, .plan = {.hyper = hyper}};
    for (int64_t i = 0; i < n; i++) {
        norch_tensor *xs[LISTS];
        for (int l = 0; l < LISTS; l++) xs[l] = lists[l] ? lists[l][i] : NULL;
        NR_TRY(add(&b, xs));
    }
    return run_batch(&b);
}
