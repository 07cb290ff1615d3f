/* without_python: the library in a program without an interpreter, for systems that no Python can be had for. A pointwise
 * operation, a product that several threads share, a reduction, and nothing is left at the end. */
#include <stdio.h>
#include <string.h>

#include "../../csrc/norch_runtime.h"
#include "../../csrc/norch_families.h"

#define N 512

static int64_t op(const char *name) {
    const char *known;
    for (int64_t i = 0; (known = norch_op_name(i)) != NULL; i++)
        if (!strcmp(known, name)) return i;
    return -1;
}

int main(void) {
    const int64_t shape[] = {N, N}, last[] = {1};
    const int64_t float32 = 4;
    if (strcmp(norch_dtype_name(float32), "float32")) return 2;
    norch_set_num_threads(4);
    norch_tensor *a = norch_full(2, shape, float32, 0.5, 0, NORCH_CPU, 0);
    norch_tensor *e = a ? norch_unary(op("exp"), a) : NULL;          /* exp(1/2) */
    norch_tensor *square = e ? norch_binary(op("mul"), e, e) : NULL; /* e */
    norch_tensor *product = square ? norch_matmul(square, a, false, false) : NULL;
    norch_tensor *sums = product ? norch_reduce(op("sum"), product, 1, last, false, -1, 0) : NULL;
    if (!sums) {
        printf("failed: %s\n", norch_last_error());
        return 1;
    }
    const double expected = 2.718281828459045 / 2 * N * N, found = (double)((float *)sums->data)[N - 1];
    norch_tensor *made[] = {a, e, square, product, sums};
    for (int i = 0; i < 5; i++) norch_release(made[i]);
    const int good = found > expected * (1 - 1e-5) && found < expected * (1 + 1e-5) && norch_live_storages() == 0;
    printf("%s: %s, %.3f, wanted %.3f; %lld storages left\n", good ? "good" : "wrong", norch_isa(), found, expected,
           (long long)norch_live_storages());
    return !good;
}
