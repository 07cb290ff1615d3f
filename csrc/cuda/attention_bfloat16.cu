/* attention_bfloat16: the fused attention of bfloat16. */
#include "attention_fused.cuh"

int32_t nr_cuda_attend_bfloat16(const nr_call *call, const fused_args &a) {
    return attend_16bit<dtype_bfloat16>(call, a);
}
