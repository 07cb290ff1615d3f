/* recurrent: an LSTM or a GRU over all steps. Each step is one product with the state and one fused call for the cell
 * (families/recurrent.h). norch/ops computes the products with the input, and those for the gradients of the weights,
 * for all steps at once.
 *
 *   forward    h0 -> linear -> cell -> h1 -> linear -> cell -> h2 ...      hs[t], cs[t], kept[t] where they stay
 *   backward   .. <- linear <- cell <- g of hs[t] + what comes from t + 1 */
#include "../families/recurrent.h"
#include "ops.h"

/* Nanoseconds per unit, for nr_call.work. */
#define NANOSECONDS 10.0

/* The sizes, and the tensors of which a step uses a part. */
typedef struct layer {
    const char *op;
    int64_t steps, rows, size, gates;
    bool lstm, reverse;
} layer;

static int32_t check_sized(const layer *l, const char *role, const norch_tensor *x, const norch_tensor *like,
                           int32_t ndim, int64_t a, int64_t b, int64_t c) {
    const int64_t shape[] = {a, b, c};
    NR_TRY(nr_check_real(l->op, x));
    NR_TRY(nr_check_written(l->op, role, x, like, ndim, shape));
    return x->contiguous ? NORCH_OK : nr_fail(NORCH_ERROR_SHAPE, "%s: %s is not contiguous", l->op, role);
}

/* Checks the states and what is saved for backward, of the steps of `steps` or of one alone, and sets the sizes. */
static int32_t check(layer *l, const norch_tensor *steps, const norch_tensor *h, const norch_tensor *c,
                     const norch_tensor *weight, const norch_tensor *kept, const norch_tensor *cs) {
    NR_TRY(nr_check_real(l->op, h));
    NR_TRY(nr_check_real(l->op, kept));
    NR_TRY(nr_check_full_float(l->op, h));
    if (h->ndim != 2 || kept->ndim != 3 || steps->ndim != 3)
        return nr_fail(NORCH_ERROR_SHAPE,
                       "%s: a state of shape %s, not (rows, size), and %s, not (steps, rows, 4 size)", l->op,
                       nr_shape_of(h), nr_shape_of(kept));
    const int64_t saved = kept->shape[0] == 1 ? 1 : steps->shape[0];
    l->steps = steps->shape[0];
    l->rows = h->shape[0];
    l->size = h->shape[1];
    l->lstm = c != NULL;
    l->gates = l->lstm ? 4 : 3;
    if (l->lstm && !cs) return nr_fail(NORCH_ERROR_VALUE, "%s: no tensor for the states c", l->op);
    NR_TRY(check_sized(l, "h", h, h, 2, l->rows, l->size, 0));
    NR_TRY(check_sized(l, "what is kept", kept, h, 3, saved, l->rows, 4 * l->size));
    if (l->lstm) NR_TRY(check_sized(l, "c", c, h, 2, l->rows, l->size, 0));
    if (l->lstm) NR_TRY(check_sized(l, "the states c", cs, h, 3, saved, l->rows, l->size));
    const int64_t shape[] = {l->gates * l->size, l->size};
    return nr_check_written(l->op, "the weight", weight, h, 2, shape);
}

/* The address of step t, or of the only one that is kept. */
static void *at(const norch_tensor *x, int64_t t) {
    const int64_t bytes = x->numel / (x->shape[0] ? x->shape[0] : 1) * (x->dtype == NORCH_FLOAT32 ? 4 : 8);
    return (char *)x->data + (x->shape[0] == 1 ? 0 : t * bytes);
}

/* Step t as a matrix. */
static norch_tensor *matrix_at(const norch_tensor *x, int64_t t) {
    const int64_t strides[] = {x->shape[2], 1};
    return nr_make_view(x, 2, x->shape + 1, strides, t * x->shape[1] * x->shape[2]);
}

static int32_t run(const layer *l, nr_recurrent_kind lstm, nr_recurrent_kind gru, nr_recurrent_plan *plan,
                   const norch_tensor *where) {
    plan->rows = l->rows;
    plan->size = l->size;
    return nr_run(NR_RECURRENT, l->lstm ? lstm : gru, plan, (double)(l->rows * l->size) * NANOSECONDS, where);
}

int32_t norch_recurrent(const norch_tensor *from_x, const norch_tensor *h, const norch_tensor *optional_c,
                        const norch_tensor *weight, const norch_tensor *optional_bias, bool reverse,
                        const norch_tensor *hs, const norch_tensor *kept, const norch_tensor *optional_cs) {
    layer l = {.op = "recurrent", .reverse = reverse};
    NR_TRY(check(&l, hs, h, optional_c, weight, kept, optional_cs));
    NR_TRY(check_sized(&l, "the states h", hs, h, 3, l.steps, l.rows, l.size));
    NR_TRY(check_sized(&l, "the gates", from_x, h, 3, l.steps, l.rows, l.gates * l.size));
    if (optional_bias) NR_TRY(check_sized(&l, "the bias", optional_bias, hs, 1, l.gates * l.size, 0, 0));
    if (hs->numel == 0) return NORCH_OK;
    const norch_tensor *state = h;
    NR_OWNED norch_tensor *last = NULL; /* the state, if it is a step of hs */
    const void *c = optional_c ? optional_c->data : NULL;
    for (int64_t i = 0; i < l.steps; i++) {
        const int64_t t = reverse ? l.steps - 1 - i : i;
        NR_OWNED norch_tensor *from_h = norch_linear(state, weight, optional_bias, NR_NO_OP);
        if (!from_h) return NORCH_ERROR_MEMORY;
        nr_recurrent_plan plan = {.from_x = at(from_x, t), .from_h = from_h->data, .h = at(hs, t), .kept = at(kept, t)};
        plan.state = l.lstm ? c : state->data;
        if (l.lstm) c = plan.c = at(optional_cs, t);
        NR_TRY(run(&l, NR_LSTM_FORWARD, NR_GRU_FORWARD, &plan, hs));
        nr_release(last);
        state = last = matrix_at(hs, t);
        if (!state) return NORCH_ERROR_MEMORY;
    }
    return NORCH_OK;
}

norch_tensor *norch_recurrent_backward(const norch_tensor *optional_g_hs, const norch_tensor *optional_g_c,
                                       const norch_tensor *h, const norch_tensor *optional_c,
                                       const norch_tensor *weight, bool reverse, const norch_tensor *optional_hs,
                                       const norch_tensor *kept, const norch_tensor *optional_cs,
                                       const norch_tensor *grad_x, const norch_tensor *optional_grad_h,
                                       const norch_tensor *grad_state) {
    layer l = {.op = "recurrent_backward", .reverse = reverse};
    if (check(&l, kept, h, optional_c, weight, kept, optional_cs)) return NULL;
    const norch_tensor *gates = l.lstm ? grad_x : optional_grad_h;
    if (!gates || kept->numel == 0 || (!l.lstm && l.steps > 1 && !optional_hs))
        return NR_REFUSE(NORCH_ERROR_VALUE, "%s: no gradient of what the state gives, or no states", l.op);
    if ((optional_hs && check_sized(&l, "the states h", optional_hs, h, 3, l.steps, l.rows, l.size)) ||
        check_sized(&l, "the gradient of the gates", grad_x, h, 3, l.steps, l.rows, l.gates * l.size) ||
        check_sized(&l, "the gradient of the gates", gates, h, 3, l.steps, l.rows, l.gates * l.size) ||
        check_sized(&l, "the gradient of the state", grad_state, h, 2, l.rows, l.size, 0) ||
        (optional_g_hs && check_sized(&l, "a gradient", optional_g_hs, h, 3, l.steps, l.rows, l.size)) ||
        (optional_g_c && check_sized(&l, "a gradient", optional_g_c, h, 2, l.rows, l.size, 0)))
        return NULL;
    norch_tensor *product = NULL;
    const void *carried = l.lstm && optional_g_c ? optional_g_c->data : NULL;
    for (int64_t i = l.steps - 1; i >= 0; i--) {
        const int64_t t = reverse ? l.steps - 1 - i : i, before = reverse ? t + 1 : t - 1;
        nr_recurrent_plan plan = {.kept = at(kept, t), .grad_x = at(grad_x, t), .grad_state = grad_state->data};
        plan.g[0] = optional_g_hs ? at(optional_g_hs, t) : NULL;
        plan.g[1] = product ? product->data : NULL;
        if (l.lstm) {
            plan.g_c = carried;
            plan.c = at(optional_cs, t);
            plan.state = i > 0 ? at(optional_cs, before) : optional_c->data;
        } else {
            plan.g[2] = carried;
            plan.grad_h = at(gates, t);
            plan.state = i > 0 ? at(optional_hs, before) : h->data;
        }
        carried = grad_state->data;
        int32_t status = run(&l, NR_LSTM_BACKWARD, NR_GRU_BACKWARD, &plan, h);
        nr_release(product);
        NR_OWNED norch_tensor *step = status == NORCH_OK ? matrix_at(gates, t) : NULL;
        product = step ? norch_matmul(step, weight, false, false) : NULL;
        if (!product) return NULL;
    }
    return product;
}
