/* numbers: Python numbers combined with tensors of a dtype that cannot hold them. If an integer dtype holds every
 * result, the integer acts by its value, in int64 (x == 300, x.clamp(max=300), x // 300); otherwise the call is
 * refused, and so is storing the number. It never wraps. A 0-d tensor acts by its value in the same operations.
 *
 * A finite number that a float dtype rounds to infinity is refused where it may be the result itself. */
#include <math.h>
#include <string.h>

#include "../core/observer.h"
#include "ops.h"

enum { NONE = 0, BELOW = 1, ABOVE = 2, EITHER = 3 };

/* The numbers, below or above the range of an integer dtype, for which an operation's results are within the range.
 * operand: the number's position. */
static int sides_in_range(int32_t op, int operand, bool is_signed) {
    const int second = operand == 1 ? EITHER : NONE;
    switch (op) {
    case NR_OP_maximum:
    case NR_OP_fmax:
    case NR_OP_clamp_min: return BELOW;
    case NR_OP_minimum:
    case NR_OP_fmin:
    case NR_OP_clamp_max: return ABOVE;
    case NR_OP_clamp: return operand == 1 ? EITHER : operand == 2 ? ABOVE : NONE;
    case NR_OP_bitwise_left_shift: /* counts modulo the size of the integer */
    case NR_OP_bitwise_right_shift: return second;
    case NR_OP_pow: return second & ABOVE; /* modulo the size too */
    case NR_OP_floor_divide:
    case NR_OP_trunc_divide: return is_signed ? second : second & ABOVE; /* -1, 0 or 1 */
    case NR_OP_remainder: /* between 0 and the divisor, with the divisor's sign */
        return operand == 0 ? EITHER : is_signed ? NONE : ABOVE;
    case NR_OP_fmod: /* between 0 and both operands, with the dividend's sign */
        return operand == 1 || is_signed ? EITHER : ABOVE;
    case NR_OP_bitwise_and: return is_signed ? NONE : EITHER;
    default: return nr_ops[op].result == NR_TRUTH ? EITHER : NONE;
    }
}

/* On which side of an integer dtype's range a number is. */
static int side_of_integer(int64_t value, int32_t dtype) {
    const int64_t most = (int64_t)(((uint64_t)1 << nr_dtypes[dtype].digits) - 1);
    const int64_t least = nr_dtypes[dtype].kind == 'i' ? -most - 1 : 0;
    return value < least ? BELOW : value > most ? ABOVE : NONE;
}

/* The same for an operand, if it is a Python integer. */
static int side_of(const norch_tensor *x, int32_t dtype) {
    if (!x->weak || x->dtype != NORCH_INT64 || x->device_type != NORCH_CPU) return NONE;
    int64_t value;
    memcpy(&value, x->data, sizeof value);
    return side_of_integer(value, dtype);
}

static int64_t read_integer(const norch_tensor *x) {
    switch (x->dtype) {
    case NORCH_UINT8: return *(const uint8_t *)x->data;
    case NORCH_INT8: return *(const int8_t *)x->data;
    case NORCH_INT16: return *(const int16_t *)x->data;
    case NORCH_INT32: return *(const int32_t *)x->data;
    default: return *(const int64_t *)x->data;
    }
}

static int32_t refuse(const char *op, const char *mark, const norch_tensor *x, int32_t dtype) {
    if (nr_is_float(x->dtype)) {
        double value;
        memcpy(&value, x->data, sizeof value);
        return nr_fail(NORCH_ERROR_VALUE, "%s%s: %g does not fit %s", op, mark, value, nr_dtypes[dtype].name);
    }
    return nr_fail(NORCH_ERROR_VALUE, "%s%s: %lld does not fit %s", op, mark, (long long)read_integer(x),
                   nr_dtypes[dtype].name);
}

int32_t nr_check_stored(const char *op, const norch_tensor *x, int32_t dtype) {
    if (!x->weak || !nr_is_integer(dtype) || x->device_type != NORCH_CPU) return NORCH_OK;
    bool fits = side_of(x, dtype) == NONE;
    if (nr_is_float(x->dtype)) {
        double value;
        memcpy(&value, x->data, sizeof value);
        const double end = ldexp(1, nr_dtypes[dtype].digits); /* the first integer beyond the range */
        fits = value >= (nr_dtypes[dtype].kind == 'i' ? -end : 0) && value <= end - 1 && value < end;
    }
    return fits ? NORCH_OK : refuse(op, "", x, dtype);
}

/* Whether x is a 0-d tensor of an integer dtype with a larger range than dtype. */
static bool is_wider(const norch_tensor *x, int32_t dtype) {
    return !x->weak && !x->ndim && nr_is_integer(x->dtype) && nr_promote(x->dtype, dtype) != dtype;
}

/* Whether a 0-d tensor of a wider dtype, which does not take part in promotion, is outside the range of dtype in an
 * operation where operands act by value. *side: where, if the value can be read. */
static bool is_beyond(int32_t op, const norch_tensor *x, int32_t dtype, int *side) {
    *side = NONE;
    if (!is_wider(x, dtype)) return false;
    if (op != NR_OP_where && sides_in_range(op, 1, true) == NONE) return false;
    if (nr_records() || x->device_type != NORCH_CPU) return op != NR_OP_where; /* a replay may find any value there */
    if (x->data) *side = side_of_integer(read_integer(x), dtype);
    return *side != NONE;
}

/* Whether the result may be the number itself. */
static bool gives_operand(int32_t op, int operand) {
    switch (op) {
    case NR_OP_maximum:
    case NR_OP_minimum:
    case NR_OP_fmax:
    case NR_OP_fmin:
    case NR_OP_clamp_min:
    case NR_OP_clamp_max: return true;
    case NR_OP_clamp:
    case NR_OP_where: return operand > 0;
    default: return false;
    }
}

/* On which side of the numbers that do not round to the infinities of a float dtype an operand is, if it is a Python
 * float. */
static int side_of_floats(const norch_tensor *x, int32_t dtype) {
    if (!x->weak || x->dtype != NORCH_FLOAT64 || x->device_type != NORCH_CPU) return NONE;
    double value;
    memcpy(&value, x->data, sizeof value);
    if (fabs(value) <= 65504) return NONE; /* all float dtypes hold it */
    const int digits = nr_dtypes[dtype].digits, exponents = 8 * (int)nr_size_of(dtype) - digits - 1;
    const double end = ldexp(2 - ldexp(1, -digits), (1 << exponents) - 1);
    return isinf(value) ? NONE : value <= -end ? BELOW : value >= end ? ABOVE : NONE;
}

static int32_t admit_floats(const char *mark, int32_t op, int n, const norch_tensor *const *operands, int32_t dtype) {
    if (op == NR_OP_where && nr_size_of(dtype) < 4) return NORCH_OK; /* infinities, as of PyTorch's where() */
    for (int i = 0; i < n; i++) {
        const int side = side_of_floats(operands[i], dtype);
        if (side == NONE || !gives_operand(op, i)) continue;
        const int held = op == NR_OP_clamp && i == 1 ? BELOW : sides_in_range(op, i, true);
        if (side & ~held) return refuse(nr_ops[op].name, mark, operands[i], dtype);
    }
    return NORCH_OK;
}

int32_t nr_admit_numbers(const char *mark, int32_t op, int n, const norch_tensor *const *operands, int32_t dtype,
                         bool *by_value) {
    *by_value = false;
    if (nr_is_float(dtype)) return admit_floats(mark, op, n, operands, dtype);
    if (!nr_is_integer(dtype)) return NORCH_OK;
    int upper = NONE; /* the side of clamp's upper bound */
    if (op == NR_OP_clamp && !is_beyond(op, operands[2], dtype, &upper)) upper = side_of(operands[2], dtype);
    for (int i = 0; i < n && nr_records(); i++)
        if (gives_operand(op, i) && is_wider(operands[i], dtype))
            NR_TRY(nr_note_unseen(
                "a 0-d tensor is read, to see whether a narrower integer dtype holds it; convert it first"));
    for (int i = 0; i < n; i++) {
        int side;
        *by_value |= is_beyond(op, operands[i], dtype, &side);
        if (!gives_operand(op, i)) side = NONE; /* arithmetic of tensors wraps */
        if (side == NONE) side = side_of(operands[i], dtype);
        if (side == NONE) continue;
        bool held = sides_in_range(op, i, nr_dtypes[dtype].kind == 'i') & side;
        if (op == NR_OP_clamp && side == ABOVE) held &= i == 2 || upper == NONE;
        if (!held) return refuse(nr_ops[op].name, mark, operands[i], dtype);
        *by_value = true;
    }
    return NORCH_OK;
}
