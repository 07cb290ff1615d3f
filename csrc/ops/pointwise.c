/* pointwise: the elementwise operations of ops.def: promotion, broadcasting, conversion of inputs, in-place writes. The
 * backend has the loops. */
#include <string.h>

#include "../core/observer.h"
#include "ops.h"

#define MAX_INPUTS 3

/* The state of one call. `ready` are the inputs after conversion to the kernel's dtype. */
typedef struct state {
    const nr_op_row *row;
    int32_t op;
    int inputs;
    const char *mark; /* "_" in place: follows the name in messages */
    const norch_tensor *input[MAX_INPUTS];
    int32_t compute; /* dtype of the kernel */
    int32_t result;  /* dtype of the kernel's output */
    int32_t narrow;  /* dtype to which the result is cast afterwards */
    int32_t ndim;
    int64_t shape[NORCH_MAX_DIMS]; /* all inputs, broadcast */
    bool mixed;                    /* some input differs from the result in shape, dtype or device */
    const norch_tensor *ready[MAX_INPUTS];
    norch_tensor *temporary[MAX_INPUTS]; /* new tensors among the ready inputs, to be released; or NULL */
    bool converted[MAX_INPUTS];          /* a scalar that is converted inside the plan */
    bool elsewhere;                      /* the result is not on the CPU */
} state;

static int32_t check_form(state *s, int64_t op) {
    static const nr_form plain_form[] = {NR_UNARY, NR_BINARY, NR_TERNARY};
    bool choice = s->inputs == 3 && op >= 0 && op < NR_OP_COUNT && nr_ops[op].form == NR_CHOICE;
    s->row = nr_op_find(op, choice ? NR_CHOICE : plain_form[s->inputs - 1]);
    if (!s->row) return NORCH_ERROR_VALUE;
    s->op = (int32_t)op;
    for (int i = 0; i < s->inputs; i++) NR_TRY(nr_check_tensor(s->row->name, s->input[i]));
    return nr_check_devices(s->row->name, s->inputs, s->input);
}

/* Whether the result is also a Python number, computed in float64: derivatives combine their formula's constants. */
static bool of_numbers(int inputs, const norch_tensor *a, const norch_tensor *b) {
    return inputs == 2 && a->weak && b->weak;
}

static int32_t result_dtype(const state *s, int32_t dtype) {
    if (nr_is_complex(dtype)) return nr_complex_result(s->op, dtype);
    return s->row->result == NR_TRUTH ? NORCH_BOOL : dtype;
}

static int32_t infer_dtype(state *s) {
    int first = s->row->form == NR_CHOICE;
    if (first && s->input[0]->dtype != NORCH_BOOL)
        return nr_fail(NORCH_ERROR_DTYPE, "%s%s: the condition must be bool, not %s", s->row->name, s->mark,
                       nr_dtypes[s->input[0]->dtype].name);
    int32_t dtype = s->inputs == 1 && !s->input[0]->weak ? s->input[0]->dtype
                                                         : nr_result_dtype(s->inputs - first, s->input + first);
    if (s->row->result == NR_FLOAT && !nr_is_float(dtype) && !nr_is_complex(dtype)) dtype = nr_default_dtype;
    if (nr_is_float(dtype) && of_numbers(s->inputs, s->input[0], s->input[1])) dtype = NORCH_FLOAT64;
    if (!nr_in_domain(s->op, dtype) && nr_is_complex(dtype))
        return nr_fail(NORCH_ERROR_DTYPE, "%s%s: %s is not supported", s->row->name, s->mark, nr_dtypes[dtype].name);
    if (!nr_in_domain(s->op, dtype))
        return nr_fail(NORCH_ERROR_DTYPE, "%s%s: not defined for dtype %s", s->row->name, s->mark,
                       nr_dtypes[dtype].name);
    s->compute = dtype;
    s->result = s->narrow = result_dtype(s, dtype);
    if (dtype == NORCH_FLOAT64 || dtype == NORCH_INT64) return NORCH_OK; /* they hold every number that gets here */
    bool by_value;
    NR_TRY(nr_admit_numbers(s->mark, s->op, s->inputs, s->input, dtype, &by_value));
    if (by_value) s->result = result_dtype(s, s->compute = NORCH_INT64);
    return NORCH_OK;
}

static int32_t infer_shape(state *s) {
    s->ndim = s->input[0]->ndim;
    for (int32_t d = 0; d < s->ndim; d++) s->shape[d] = s->input[0]->shape[d];
    for (int i = 1; i < s->inputs; i++) {
        const norch_tensor *x = s->input[i];
        if (x->ndim == 0 || nr_same_shape(x->ndim, x->shape, s->ndim, s->shape)) continue;
        int32_t at, before = s->ndim;
        int64_t whole[NORCH_MAX_DIMS];
        memcpy(whole, s->shape, sizeof whole);
        if (!nr_broadcast(&s->ndim, s->shape, x->ndim, x->shape, &at))
            return nr_fail(NORCH_ERROR_SHAPE,
                           "%s%s: sizes %lld and %lld at dimension %d do not broadcast: shapes %s and %s", s->row->name,
                           s->mark, (long long)s->shape[at], (long long)x->shape[at - (s->ndim - x->ndim)], at,
                           nr_shape_text(before, whole), nr_shape_of(x));
    }
    for (int i = 0; i < s->inputs; i++) {
        const norch_tensor *x = s->input[i];
        bool condition = i == 0 && s->row->form == NR_CHOICE;
        if (x->weak || condition) continue;
        s->mixed |= x->dtype != s->compute || !nr_same_shape(x->ndim, x->shape, s->ndim, s->shape) ||
                    (s->elsewhere && nr_is_anywhere(x));
    }
    return NORCH_OK;
}

static bool converts_to_zero(const norch_tensor *number, int32_t dtype) {
    int64_t converted = 0;
    nr_convert_number(number->dtype, number->data, dtype, &converted);
    return converted == 0;
}

/* Checks the divisors of an integer division on a device; the CPU's runner does so itself. */
static int32_t check_divisor(const state *s) {
    if (!s->elsewhere || !nr_op_divides(s->op) || nr_is_float(s->compute)) return NORCH_OK;
    for (int32_t i = 0; i < s->ndim; i++)
        if (s->shape[i] == 0) return NORCH_OK; /* nothing is divided */
    const norch_tensor *divisor = s->input[1];
    if (divisor->device_type == NORCH_META) return NORCH_OK;
    bool good = false;
    if (divisor->weak && divisor->numel == 1 && divisor->device_type == NORCH_CPU) { /* a number */
        good = !converts_to_zero(divisor, s->compute);
    } else if (nr_records() && !nr_is_anywhere(divisor)) {
        return nr_check_divisors(divisor);
    } else {
        NR_TRY(nr_note_unseen("integer divisors on the host are read, to find zeros; divide by a number, or floats"));
        NR_TRY(nr_all_nonzero(divisor, &good));
    }
    return good ? NORCH_OK
                : nr_fail(NORCH_ERROR_ZERO_DIVISION, "%s%s: integer division by zero", s->row->name, s->mark);
}

/* The input that determines the device of the result. */
static const norch_tensor *device_input(const state *s) {
    for (int i = 0; i < s->inputs; i++)
        if (!nr_is_anywhere(s->input[i])) return s->input[i];
    return s->input[0];
}

/* Casts inputs of other dtypes, and copies an input that overlaps the output unless it is the same view. */
static int32_t ready_inputs(state *s, const norch_tensor *out) {
    for (int i = 0; i < s->inputs; i++) {
        const norch_tensor *x = s->input[i];
        bool condition = i == 0 && s->row->form == NR_CHOICE;
        bool cast = !condition && x->dtype != s->compute;
        s->ready[i] = x;
        const bool number = x->numel == 1 && x->device_type == NORCH_CPU && (cast || s->elsewhere);
        s->converted[i] = number && (condition || !nr_is_complex(s->compute)); /* a plan holds eight bytes */
        if (s->converted[i]) continue;
        if (number)
            s->temporary[i] = nr_complex_number(x, s->compute, device_input(s));
        else if (cast)
            s->temporary[i] = norch_cast(x, s->compute);
        else if (out && norch_overlaps(out, x) && !norch_is_same(out, x))
            s->temporary[i] = norch_clone(x);
        else
            continue;
        if (!s->temporary[i]) return NORCH_ERROR_MEMORY;
        s->ready[i] = s->temporary[i];
    }
    return NORCH_OK;
}

/* A scalar operand of a call on a narrow dtype is passed in the wide dtype. It is not rounded to float16 or bfloat16
 * first, so that x / 100000 does not divide by infinity; but comparisons round it, as they round the other operand. */
static void load_number(const nr_call *call, int o) {
    const nr_plan *plan = call->plan;
    const bool exact = nr_is_float(call->dtype) && nr_ops[call->op].result != NR_TRUTH;
    nr_load_number(plan, o, exact ? nr_wide(call->dtype) : call->dtype);
    if (exact || !nr_is_narrow(call->dtype)) return;
    nr_convert_number(call->dtype, plan->data[o], nr_wide(call->dtype), plan->data[o]);
}

static void load_numbers(const nr_call *call) {
    const nr_plan *plan = call->plan;
    for (int o = 1; o < plan->operands; o++) {
        if (!nr_in_plan(plan, o)) continue;
        if (o == 1 && nr_ops[call->op].form == NR_CHOICE) /* the condition is bool for every dtype */
            nr_load_number(plan, o, NORCH_BOOL);
        else
            load_number(call, o);
    }
}

static int32_t run(state *s, norch_tensor *out) {
    const norch_tensor *operands[NR_MAX_OPERANDS] = {out};
    for (int i = 0; i < s->inputs; i++) operands[i + 1] = s->ready[i];
    nr_plan plan;
    nr_plan_make(&plan, s->ndim, s->shape, s->inputs + 1, operands);
    nr_call call = {
        .family = NR_POINTWISE, .op = s->op, .dtype = s->compute, .work = (double)plan.numel, .plan = &plan};
    for (int i = 0; i < s->inputs; i++)
        if (s->converted[i]) {
            nr_plan_number(&plan, i + 1, s->input[i]);
            call.load = load_numbers;
        }
    call.in_place = *s->mark;
    return nr_dispatch(&call, out);
}

/* The result has the memory layout of the inputs of its shape if they agree, so that one loop steps through all memory
 * in order; otherwise it is C-ordered. */
static norch_tensor *make_result(const state *s) {
    norch_tensor *out = nr_make(s->ndim, s->shape, s->result, device_input(s));
    const norch_tensor *first = NULL;
    for (int i = 0; i < s->inputs && out; i++) {
        const norch_tensor *x = s->ready[i];
        if (s->converted[i] || x->numel != out->numel || x->ndim != s->ndim) continue;
        if (!first) first = x;
        if (first->contiguous) return out;
        for (int32_t d = 0; d < s->ndim; d++)
            if (x->shape[d] > 1 && x->strides[d] != first->strides[d]) return out;
    }
    if (first) nr_preserve_strides(out, first);
    return out;
}

static void finish(state *s) {
    for (int i = 0; i < s->inputs; i++)
        if (s->temporary[i]) nr_release(s->temporary[i]);
}

/* ---- into a new tensor ------------------------------------------------------------------------- */

static norch_tensor *compute(int64_t op, int inputs, const norch_tensor *a, const norch_tensor *b,
                             const norch_tensor *c) {
    state s = {.inputs = inputs, .mark = "", .input = {a, b, c}};
    if (check_form(&s, op)) return NULL;
    s.elsewhere = device_input(&s)->device_type != NORCH_CPU;
    if (infer_dtype(&s) || infer_shape(&s) || check_divisor(&s)) return NULL;
    norch_tensor *out = NULL;
    if (ready_inputs(&s, NULL) == NORCH_OK) out = make_result(&s);
    if (out) out = nr_finished(out, run(&s, out));
    finish(&s);
    if (out && s.result != s.narrow) out = nr_narrowed(out, s.narrow);
    if (out) out->mixed = s.mixed;
    return out;
}

norch_tensor *norch_unary(int64_t op, const norch_tensor *x) { return compute(op, 1, x, NULL, NULL); }

norch_tensor *norch_binary(int64_t op, const norch_tensor *a, const norch_tensor *b) {
    norch_tensor *out = compute(op, 2, a, b, NULL);
    if (out) out->weak = of_numbers(2, a, b);
    return out;
}

norch_tensor *norch_ternary(int64_t op, const norch_tensor *a, const norch_tensor *b, const norch_tensor *c) {
    return compute(op, 3, a, b, c);
}

/* ---- in place ---------------------------------------------------------------------------------- */

static int32_t check_out(const state *s, const norch_tensor *out) {
    NR_TRY(nr_check_tensor(s->row->name, out));
    const norch_tensor *from = device_input(s);
    if (!nr_same_device(out, from) && !nr_is_anywhere(from))
        return nr_fail(NORCH_ERROR_DEVICE, "%s_: a result on %s cannot be written into a tensor on %s", s->row->name,
                       nr_device_name(from), nr_device_name(out));
    NR_TRY(nr_check_writable(s->row->name, out));
    if (!nr_same_shape(out->ndim, out->shape, s->ndim, s->shape))
        return nr_fail(NORCH_ERROR_SHAPE, "%s_: the result has shape %s and cannot be written into shape %s",
                       s->row->name, nr_shape_text(s->ndim, s->shape), nr_shape_of(out));
    if (nr_is_complex(s->compute) && !nr_is_complex(s->result) && nr_is_complex(out->dtype)) /* abs_ */
        return nr_fail(NORCH_ERROR_DTYPE, "%s_: %s is not supported", s->row->name, nr_dtypes[s->compute].name);
    if (!nr_can_cast(s->result, out->dtype))
        return nr_fail(NORCH_ERROR_DTYPE, "%s_: a result of dtype %s cannot be written into a tensor of dtype %s",
                       s->row->name, nr_dtypes[s->result].name, nr_dtypes[out->dtype].name);
    return NORCH_OK;
}

static int32_t compute_into(norch_tensor *out, int64_t op, int inputs, const norch_tensor *a, const norch_tensor *b,
                            const norch_tensor *c) {
    state s = {.inputs = inputs, .mark = "_", .input = {a, b, c}};
    NR_TRY(check_form(&s, op));
    NR_TRY(infer_dtype(&s));
    NR_TRY(infer_shape(&s));
    NR_TRY(check_out(&s, out));
    s.elsewhere = out->device_type != NORCH_CPU;
    NR_TRY(check_divisor(&s));
    bool direct = out->dtype == s.result;
    int32_t status = ready_inputs(&s, direct ? out : NULL);
    if (status == NORCH_OK && direct) {
        status = run(&s, out);
    } else if (status == NORCH_OK) { /* computed in the promoted dtype, then cast to out */
        NR_OWNED norch_tensor *result = nr_make(s.ndim, s.shape, s.result, out);
        status = result ? run(&s, result) : NORCH_ERROR_MEMORY;
        if (status == NORCH_OK) status = nr_copy_into(out, result);
    }
    finish(&s);
    return status;
}

int32_t norch_unary_into(norch_tensor *out, int64_t op, const norch_tensor *x) {
    return compute_into(out, op, 1, x, NULL, NULL);
}

int32_t norch_binary_into(norch_tensor *out, int64_t op, const norch_tensor *a, const norch_tensor *b) {
    return compute_into(out, op, 2, a, b, NULL);
}

int32_t norch_ternary_into(norch_tensor *out, int64_t op, const norch_tensor *a, const norch_tensor *b,
                           const norch_tensor *c) {
    return compute_into(out, op, 3, a, b, c);
}

int32_t nr_all_nonzero(const norch_tensor *x, bool *result) {
    NR_OWNED norch_tensor *all = norch_reduce(NR_OP_all, x, -1, NULL, 0, -1, 0);
    if (!all) return norch_last_error_kind();
    double value;
    int64_t integer = 0;
    int32_t status = norch_item(all, &value, &integer);
    *result = integer != 0;
    return status;
}
