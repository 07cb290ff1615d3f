/* optable: see optable.h. */
#include "optable.h"

#include <stddef.h>

#include "error.h"

const nr_op_row nr_ops[NR_OP_COUNT] = {
#define POINTWISE(form, name, domain, result) [NR_OP_##name] = {#name, form, NR_DOMAIN_##domain, NR_##result},
#define UNARY(name, domain, result, formula) POINTWISE(NR_UNARY, name, domain, result)
#define BINARY(name, domain, result, formula) POINTWISE(NR_BINARY, name, domain, result)
#define CHOICE(name, domain, result, formula) POINTWISE(NR_CHOICE, name, domain, result)
#define TERNARY(name, domain, result, formula) POINTWISE(NR_TERNARY, name, domain, result)
#define REDUCE(name, domain, result, ...) POINTWISE(NR_REDUCE, name, domain, result)
#define FINISH REDUCE
#include "../ops.def"
};

const char *norch_op_name(int64_t op) { return op >= 0 && op < NR_OP_COUNT ? nr_ops[op].name : NULL; }

const char *norch_op_form(int64_t op) {
    static const char *const forms[] = {"unary", "binary", "choice", "ternary", "reduce"};
    return op >= 0 && op < NR_OP_COUNT ? forms[nr_ops[op].form] : NULL;
}

/* The result of each row of complex.def, plus 1; 0: the operation has no row there. */
static const uint8_t complex_results[NR_OP_COUNT] = {
#define UNARY(name, result, formula) [NR_OP_##name] = NR_##result + 1,
#define BINARY UNARY
#define CHOICE UNARY
#define TERNARY UNARY
#include "../complex.def"
};

int32_t nr_complex_result(int32_t op, int32_t dtype) {
    const int32_t result = complex_results[op] - 1;
    return result == NR_TRUTH ? NORCH_BOOL : result == NR_PART ? nr_part_of(dtype) : dtype;
}

bool nr_in_domain(int32_t op, int32_t dtype) {
    char kind = nr_dtypes[dtype].kind;
    if (kind == 'c') return complex_results[op] != 0;
    int bit = kind == 'f' ? 1 : kind == 'b' ? 4 : 2;
    return (nr_ops[op].domain & bit) != 0;
}

int32_t norch_op_takes(int64_t op, int64_t dtype) {
    return op >= 0 && op < NR_OP_COUNT && nr_is_dtype(dtype) && nr_in_domain((int32_t)op, (int32_t)dtype);
}

const nr_op_row *nr_op_find(int64_t op, nr_form form) {
    if (op < 0 || op >= NR_OP_COUNT || nr_ops[op].form != form)
        return NR_REFUSE(NORCH_ERROR_VALUE, "opcode %lld is not an operation of this form", (long long)op);
    return &nr_ops[op];
}
