/* replay: dispatched calls, recorded on a backend that wraps the CPU's, and run again after the values of
 * their tensors have changed. What depends on values happens in the calls: the second run sees the new indices, divisors,
 * probabilities and numbers, and fails where they are bad, having written nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../csrc/core/dispatch.h"
#include "../../csrc/families/index.h"
#include "../../csrc/families/random.h"
#include "../../csrc/norch_families.h"

#define MOST 8

static nr_call calls[MOST];
static union {
    nr_plan nest;
    nr_index_plan index;
    nr_random_plan random;
} plans[MOST];
static int count, failures;
static nr_backend recorder;
static const nr_backend *cpu;

static void expect(int holds, const char *what) {
    if (holds) return;
    printf("failed: %s; last error: %s\n", what, norch_last_error());
    failures++;
}

/* Temporaries of recorded calls are kept: their addresses are in the plans. */
static void keep(const nr_backend *self, void *memory, size_t n) { (void)self, (void)memory, (void)n; }

static int32_t record(const nr_call *call) {
    if (count == MOST) return nr_fail(NORCH_ERROR_VALUE, "more than %d calls", MOST);
    nr_call *kept = &calls[count];
    *kept = *call;
    kept->plan = &plans[count];
    const nr_plan *nest = call->plan;
    if (call->family == NR_INDEXING) {
        plans[count].index = *(const nr_index_plan *)call->plan;
    } else if (call->family == NR_RANDOM) {
        plans[count].random = *(const nr_random_plan *)call->plan;
    } else {
        plans[count].nest = *nest;
        for (int o = 0; o < nest->operands; o++)
            if (nest->data[o] == (const char *)&nest->value[o])
                plans[count].nest.data[o] = (char *)&plans[count].nest.value[o];
    }
    count++;
    return cpu->run[call->family](call);
}

static int32_t replay(void) {
    for (int i = 0; i < count; i++) {
        if (calls[i].load) calls[i].load(&calls[i]);
        NR_TRY(cpu->run[calls[i].family](&calls[i]));
    }
    return NORCH_OK;
}

static norch_tensor *integers(int64_t n, const int64_t *values) {
    norch_tensor *x = norch_from_bytes(values, n * 8, 1, &n, NORCH_INT64);
    if (!x) exit(1);
    x->storage->backend = &recorder;
    return x;
}

static norch_tensor *floats(int64_t n, const float *values) {
    norch_tensor *x = norch_from_bytes(values, n * 4, 1, &n, NORCH_FLOAT32);
    if (!x) exit(1);
    x->storage->backend = &recorder;
    return x;
}

static void set(norch_tensor *x, int64_t i, int64_t value) { ((int64_t *)x->data)[i] = value; }
static int64_t at(const norch_tensor *x, int64_t i) { return ((const int64_t *)x->data)[i]; }
static float float_at(const norch_tensor *x, int64_t i) { return ((const float *)x->data)[i]; }
static int fails(int32_t kind, const char *message) { return replay() == kind && !strcmp(norch_last_error(), message); }

static void test_reads(void) {
    norch_tensor *x = integers(4, (int64_t[]){10, 20, 30, 40}), *index = integers(3, (int64_t[]){0, 1, -1});
    const norch_tensor *indices[] = {index};
    count = 0;
    norch_tensor *y = norch_index_get(x, NORCH_INDEX_GET, 1, indices, 1, (int64_t[]){0}, 1, (int64_t[]){0}, 0);
    expect(y && count == 1 && at(y, 2) == 40, "x[index] is a gather that checks");
    set(index, 0, -4), set(index, 1, 3), set(index, 2, 2);
    expect(replay() == NORCH_OK && at(y, 0) == 10 && at(y, 1) == 40 && at(y, 2) == 30, "x[index] with other indices");
    set(index, 1, 4), set(index, 0, 1);
    expect(fails(NORCH_ERROR_INDEX, "index: index 4 is out of range for size 4 at dimension 0") && at(y, 0) == 10,
           "x[index] with one out of range");
    set(index, 1, -5);
    expect(fails(NORCH_ERROR_INDEX, "index: index -5 is out of range for size 4 at dimension 0"), "one below");
    count = 0;
    set(index, 1, 2), set(index, 2, 1);
    norch_tensor *z = norch_gather(x, 0, index);
    set(index, 0, -1);
    expect(z && fails(NORCH_ERROR_INDEX, "gather: index -1 is out of range for size 4 at dimension 0"),
           "gather takes no negative index");
}

static void test_writes(void) {
    norch_tensor *x = integers(4, (int64_t[]){0, 0, 0, 0}), *index = integers(2, (int64_t[]){0, 1});
    norch_tensor *rows = integers(4, (int64_t[]){0, 0, 0, 0}), *values = integers(2, (int64_t[]){5, 6});
    const norch_tensor *indices[] = {index};
    count = 0;
    expect(norch_index_put(x, NORCH_INDEX_PUT_ADD, 1, indices, 1, (int64_t[]){0}, 1, (int64_t[]){0}, 0, values, true) ==
               x,
           "index_put");
    set(index, 0, 3), set(index, 1, 4);
    expect(fails(NORCH_ERROR_INDEX, "index_put: index 4 is out of range for size 4 at dimension 0") && at(x, 3) == 0,
           "index_put writes nothing where one index is out of range");
    set(index, 1, -1);
    expect(replay() == NORCH_OK && at(x, 3) == 11, "index_put elsewhere");

    norch_tensor *grid = norch_view(rows, 2, (int64_t[]){2, 2}), *other = integers(2, (int64_t[]){0, 0});
    const norch_tensor *both[] = {index, other};
    set(index, 0, 0), set(index, 1, 1);
    count = 0;
    expect(norch_index_put(grid, NORCH_INDEX_PUT, 2, both, 2, (int64_t[]){0, 1}, 2, (int64_t[]){0, 1}, 0, values,
                           true) == grid &&
               at(rows, 2) == 6,
           "two index tensors");
    set(other, 0, 1), set(other, 1, 2);
    expect(fails(NORCH_ERROR_INDEX, "index_put: index 2 is out of range for size 2 at dimension 1") && at(rows, 1) == 0,
           "the second is out of range");
    set(other, 1, -1);
    expect(replay() == NORCH_OK && at(rows, 1) == 5 && at(rows, 3) == 6, "both elsewhere");
}

static void test_divisors(void) {
    norch_tensor *x = integers(3, (int64_t[]){7, -7, 9}), *by = integers(3, (int64_t[]){2, 2, 3});
    count = 0;
    norch_tensor *y = norch_binary(NR_OP_floor_divide, x, by);
    expect(y && count == 1 && at(y, 1) == -4, "a quotient is one call");
    set(by, 2, 0), set(by, 0, 1);
    expect(fails(NORCH_ERROR_ZERO_DIVISION, "floor_divide: integer division by zero") && at(y, 0) == 3,
           "division by 0");
    set(by, 2, 4);
    expect(replay() == NORCH_OK && at(y, 0) == 7 && at(y, 2) == 2, "other divisors");
    count = 0;
    expect(norch_binary_into(x, NR_OP_remainder, x, by) == NORCH_OK, "in place");
    const int64_t before = at(x, 1);
    set(by, 0, 0);
    expect(fails(NORCH_ERROR_ZERO_DIVISION, "remainder_: integer division by zero") && at(x, 1) == before,
           "in place by 0");
}

static void test_numbers(void) {
    norch_tensor *x = floats(3, (float[]){1, 2, 3}), *number = norch_scalar_float(2.0);
    count = 0;
    norch_tensor *y = norch_binary(NR_OP_mul, x, number);
    expect(y && count == 1 && float_at(y, 2) == 6, "a product with a number of another dtype");
    *(double *)number->data = 0.5;
    expect(replay() == NORCH_OK && float_at(y, 2) == 1.5f, "the number as it is when the call runs");
}

static void test_probabilities(void) {
    uint64_t state[2] = {1, 0};
    norch_tensor *p = floats(3, (float[]){1, 0, 1});
    count = 0;
    norch_tensor *y = norch_bernoulli(state, p);
    expect(y && count == 1 && float_at(y, 0) == 1 && float_at(y, 1) == 0, "bernoulli");
    ((float *)p->data)[0] = 0, ((float *)p->data)[2] = 1.5f;
    expect(fails(NORCH_ERROR_VALUE, "bernoulli: probability 1.5 is not in [0, 1]") && float_at(y, 0) == 1,
           "bernoulli draws nothing where one is no probability");
}

int main(void) {
    cpu = nr_backend_find(NORCH_CPU, 0);
    recorder = *cpu;
    recorder.free = keep;
    for (int family = 0; family < NR_FAMILY_COUNT; family++) recorder.run[family] = record;
    test_reads();
    test_writes();
    test_divisors();
    test_numbers();
    test_probabilities();
    return failures != 0;
}
