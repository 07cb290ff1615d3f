/* optable: ops.def as data. An opcode is the index of a row. */
#ifndef NR_OPTABLE_H
#define NR_OPTABLE_H

#include "dtype.h"

/* opcodes.inc lists NR_OP_name for each row of ops.def. make rewrites it only if names change, so a changed formula
 * rebuilds only the files with formulas. */
typedef enum nr_op {
#include "opcodes.inc"
    NR_OP_COUNT,
    NR_NO_OP = -1
} nr_op;

typedef enum nr_form { NR_UNARY, NR_BINARY, NR_CHOICE, NR_TERNARY, NR_REDUCE } nr_form;
typedef enum nr_result { NR_SAME, NR_FLOAT, NR_TRUTH, NR_SUM, NR_INDEX, NR_PART } nr_result;

#define NR_DOMAIN_C 0 /* complex numbers only: complex.def */
#define NR_DOMAIN_F 1
#define NR_DOMAIN_I 2
#define NR_DOMAIN_IF 3
#define NR_DOMAIN_BI 6
#define NR_DOMAIN_BIF 7

typedef struct nr_op_row {
    const char *name;
    uint8_t form;   /* nr_form */
    uint8_t domain; /* bits: 1 floats, 2 integers, 4 bool */
    uint8_t result; /* nr_result */
} nr_op_row;

extern const nr_op_row nr_ops[NR_OP_COUNT];

bool nr_in_domain(int32_t op, int32_t dtype);
/* The dtype of the result of a row of complex.def for inputs of a complex dtype. */
int32_t nr_complex_result(int32_t op, int32_t dtype);
/* Whether operand 2 is a divisor, which must not be 0 if it is an integer. */
static inline bool nr_op_divides(int32_t op) {
    return op == NR_OP_floor_divide || op == NR_OP_remainder || op == NR_OP_trunc_divide || op == NR_OP_fmod;
}
/* The row of an opcode if it has this form, else NULL with an error. */
const nr_op_row *nr_op_find(int64_t op, nr_form form);

#endif
