/* attention_float16: the fused attention of float16. */
#include "attention_fused.cuh"

int32_t nr_cuda_attend_float16(const nr_call *call, const fused_args &a) {
    return attend_16bit<dtype_float16>(call, a);
}
