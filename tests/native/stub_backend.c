/* stub_backend: the core on its own, with a device of a few lines. A tensor is made on the stub, one call is dispatched and
 * doubles it, a call without a kernel and a device that does not exist are refused, and nothing is left at the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../csrc/core/dispatch.h"

static int runs;

static void *stub_alloc(const nr_backend *self, size_t n) { return (void)self, malloc(n); }

static void stub_free(const nr_backend *self, void *memory, size_t n) { (void)self, (void)n, free(memory); }

static void a_kernel(void) {}

static int32_t run_pointwise(const nr_call *call) {
    const nr_plan *plan = call->plan;
    float *out = (float *)plan->data[0];
    const float *x = (const float *)plan->data[1];
    for (int64_t i = 0; i < plan->numel; i++) out[i] = 2 * x[i];
    runs += call->kernel == a_kernel;
    return NORCH_OK;
}

static nr_kernel kernels[NR_OP_COUNT][NR_DTYPE_COUNT];
static const nr_backend stub = {.name = "stub",
                                .alloc = stub_alloc,
                                .free = stub_free,
                                .kernels = kernels,
                                .run = {[NR_POINTWISE] = run_pointwise}};

static const nr_backend *find(int64_t index) {
    return index == 0 ? &stub : NR_REFUSE(NORCH_ERROR_DEVICE, "there is one stub");
}

static int64_t count(void) { return 1; }

static int failures;

static void expect(int holds, const char *what) {
    if (holds) return;
    printf("failed: %s; last error: %s\n", what, norch_last_error());
    failures++;
}

int main(void) {
    static const nr_device_type stubs = {find, count};
    nr_register_device_type(NORCH_CPU, &stubs);
    kernels[NR_OP_add][NORCH_FLOAT32] = a_kernel;

    const int64_t shape[] = {2, 3};
    norch_tensor *x = norch_empty(2, shape, NORCH_FLOAT32, NORCH_CPU, 0);
    norch_tensor *y = x ? nr_make_like(x, NORCH_FLOAT32) : NULL;
    expect(y && y->numel == 6 && y->contiguous, "two tensors on the stub");
    if (!y) return 1;
    for (int i = 0; i < 6; i++) ((float *)x->data)[i] = (float)i;

    nr_plan plan;
    nr_plan_make(&plan, 2, shape, 2, (const norch_tensor *[]){y, x});
    expect(nr_run(NR_POINTWISE, NR_OP_add, &plan, 1e6, y) == NORCH_OK && runs == 1, "one call dispatched");
    expect(((float *)y->data)[5] == 10, "its result");
    expect(nr_run(NR_POINTWISE, NR_OP_sub, &plan, 1, y) == NORCH_ERROR_DTYPE &&
               !strcmp(norch_last_error(), "sub: no stub kernel for dtype float32"),
           "a call without a kernel");
    expect(nr_run(NR_SORT, 0, &plan, 1, y) == NORCH_ERROR_DEVICE, "a family without a runner");
    expect(!norch_empty(2, shape, NORCH_FLOAT32, NORCH_CPU, 1) &&
               !norch_empty(2, shape, NORCH_FLOAT32, NORCH_CUDA, 0) &&
               !strcmp(norch_last_error(), "there is no device type number 1"),
           "devices that do not exist");

    norch_release(norch_retain(x));
    norch_release(x);
    norch_release(y);
    expect(norch_live_storages() == 0 && norch_live_bytes() == 0, "all memory given back");
    return failures != 0;
}
