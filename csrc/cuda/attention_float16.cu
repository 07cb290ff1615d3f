/* attention_float16: the fused attention of float16. */
#include "attention_fused.cuh"

template <int W, int keys, int by_queries, int by_keys, int most, bool held>
static int32_t run(const nr_call *call, const fused_args &a) {
    using P = half16<dtype_float16, W>;
    return run_fused<P, P, W, keys, by_queries, by_keys, most, held>(call, a);
}

int32_t nr_cuda_attend_float16(const nr_call *call, const fused_args &a) {
    const int32_t width = a.width > a.value_width ? a.width : a.value_width;
    if (width <= 32) return run<32, 64, 64, 64, 3, true>(call, a);
    if (width <= 64) return run<64, 64, 64, 64, 3, true>(call, a);
    if (width <= 128) return run<128, 64, 32, 32, 2, false>(call, a);
    return run<256, 32, 16, 16, 1, false>(call, a);
}
