/* matmul_tf32: which tiles of the tensor cores a float32 product is cut into. */
#include "matmul_tf32.cuh"

template <int BM, int BN, int WM, int WN, int blocks, bool wide, int terms>
static constexpr staged_shape shape_of(double alone, double full) {
    using S = mma_shape<BM, BN, WM, WN, 3, blocks, true, true, wide, terms>;
    return staged_shape_of<S, BM, BN, blocks>(
        alone, full,
        {multiply_tf32<mma_shape<BM, BN, WM, WN, 3, blocks, false, false, wide, terms>>,
         multiply_tf32<mma_shape<BM, BN, WM, WN, 3, blocks, false, true, wide, terms>>,
         multiply_tf32<mma_shape<BM, BN, WM, WN, 3, blocks, true, false, wide, terms>>,
         multiply_tf32<mma_shape<BM, BN, WM, WN, 3, blocks, true, true, wide, terms>>});
}

/* Of matrices that can be copied by 16 bytes, and of others. Times: measured on an H100. */
static staged_shape three_terms[] = {
    shape_of<64, 128, 32, 64, 2, true, 3>(36, 56), shape_of<128, 64, 32, 64, 2, true, 3>(36, 59),
    shape_of<32, 128, 32, 32, 3, true, 3>(18, 46), shape_of<128, 32, 32, 32, 3, true, 3>(19, 50)};
static staged_shape three_terms_narrow[] = {shape_of<64, 128, 32, 64, 2, false, 3>(45, 75),
                                            shape_of<32, 128, 32, 32, 3, false, 3>(25, 62)};
static staged_shape one_term[] = {shape_of<64, 128, 32, 64, 2, true, 1>(23, 32),
                                  shape_of<128, 128, 64, 64, 2, true, 1>(46, 58)};
static staged_shape one_term_narrow[] = {shape_of<64, 128, 32, 64, 2, false, 1>(25, 40)};

/* Products and sums for each multiprocessor, from where on this pays, counted as if there were 8 rows and columns at
 * least: before, plain arithmetic, of smaller tiles, is done first. Sums of fewer terms than SHORTEST are more precise in
 * it, too. */
#define LEAST 2e6
#define SHORTEST 256

bool nr_cuda_matmul_tf32_takes(const nr_call *call, const nr_matmul_plan &p) {
    if (call->dtype != NORCH_FLOAT32 || gpu_of(call)->capability < 80 || p.precision == NR_PRECISION_IEEE) return false;
    const double rows = p.m < 8 ? 8 : (double)p.m, columns = p.n < 8 ? 8 : (double)p.n;
    return is_dense(p) && p.k >= SHORTEST && p.m > 1 && p.n > 1 &&
           rows * columns * (double)(p.k * batches_of(p)) >= LEAST * gpu_of(call)->multiprocessors;
}

int32_t nr_cuda_matmul_tf32(const nr_call *call, const nr_matmul_plan &p) {
    static const staged_family family = {SHORTEST, NR_TF32_BK, add_parts<float, float>, sizeof(float)};
    const bool wide = are_wide(p, 4, sizeof(float));
    if (p.precision == NR_PRECISION_TF32)
        return nr_cuda_matmul_staged(call, p, wide ? one_term : one_term_narrow, wide ? 2 : 1, family);
    return wide ? nr_cuda_matmul_staged(call, p, three_terms, 4, family)
                : nr_cuda_matmul_staged(call, p, three_terms_narrow, 2, family);
}
