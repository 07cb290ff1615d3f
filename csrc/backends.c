/* backends: finds what computes. The CPU is built in; another device type has none in this version. */
#include "core/error.h"
#include "cpu/cpu.h"

const nr_backend *nr_backend_find(int32_t device_type) {
    if (device_type == NORCH_CPU) return nr_cpu_backend();
    if (device_type == NORCH_CUDA)
        nr_fail(NORCH_ERROR_DEVICE, "cuda: this build of norch has no CUDA backend; leave the tensors on \"cpu\"");
    else
        nr_fail(NORCH_ERROR_DEVICE, "there is no device type number %d", device_type);
    return NULL;
}
