/* attention_float32: the fused attention of float32, by 3xTF32; its tiles are as large as the registers allow. */
#include "attention_fused.cuh"

template <int W, int keys, int by_queries, int by_keys, int most>
static int32_t run(const nr_call *call, const fused_args &a) {
    return run_fused<single<W>, W, keys, by_queries, by_keys, most, false>(call, a);
}

int32_t nr_cuda_attend_float32(const nr_call *call, const fused_args &a) {
    const int32_t width = a.width > a.value_width ? a.width : a.value_width;
    if (width <= 32) return run<32, 64, 64, 64, 3>(call, a);
    if (width <= 64) return run<64, 64, 48, 32, 2>(call, a);
    if (width <= 128) return run<128, 32, 16, 16, 2>(call, a);
    return run<256, 16, 16, 16, 2>(call, a);
}
