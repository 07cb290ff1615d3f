/* matmul_tf32: which tiles of the tensor cores a float32 product is cut into, and which
 * instructions multiply it as TF32. */
#include "matmul_16bit.cuh"
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

/* Of matrices that can be copied by 16 bytes, and of others. In brackets: nanoseconds for a column of k of one tile
 * that a multiprocessor has alone, and of all that it holds (alone, full: matmul.cuh), as measured on an H100. */
static staged_shape three_terms[] = {
    shape_of<64, 128, 32, 64, 2, true, 3>(36, 56), shape_of<128, 64, 32, 64, 2, true, 3>(36, 59),
    shape_of<32, 128, 32, 32, 3, true, 3>(18, 46), shape_of<128, 32, 32, 32, 3, true, 3>(19, 50)};
static staged_shape three_terms_narrow[] = {shape_of<64, 128, 32, 64, 2, false, 3>(45, 75),
                                            shape_of<32, 128, 32, 32, 3, false, 3>(25, 62)};
static staged_shape one_term[] = {shape_of<64, 128, 32, 64, 2, true, 1>(23, 32),
                                  shape_of<128, 128, 64, 64, 2, true, 1>(46, 58)};
static staged_shape one_term_narrow[] = {shape_of<64, 128, 32, 64, 2, false, 1>(25, 40)};

/* Products and sums for each multiprocessor, from where on this pays, counted as if there were 8 rows and
 * columns at least: before, plain arithmetic, of smaller tiles, is done first. Sums of fewer terms than
 * SHORTEST are more precise in it, too. */
#define LEAST 2e6
#define SHORTEST 256

bool nr_cuda_matmul_tf32_takes(const nr_call *call, const nr_matmul_plan &p) {
    if (call->dtype != NORCH_FLOAT32 || gpu_of(call)->capability < 80 || p.precision == NR_PRECISION_IEEE) return false;
    const double rows = p.m < 8 ? 8 : (double)p.m, columns = p.n < 8 ? 8 : (double)p.n;
    return is_dense(p) && p.k >= SHORTEST && p.m > 1 && p.n > 1 &&
           rows * columns * (double)(p.k * batches_of(p)) >= LEAST * gpu_of(call)->multiprocessors;
}

/* ---- TF32 by wgmma ----------------------------------------------------------------------------------------------- */

/* It reads operands along k. An operand with another layout is copied if the product is large enough to repay this: on
 * an H100 a multiply-add of mma.sync takes SAVED_NS more, a copy reads and writes COPIED_A_NS bytes in a nanosecond. */
#define SAVED_NS 1.1e-5
#define COPIED_A_NS 2400.0
#define COPY_NS 4000.0 /* a launch, and memory */
#ifdef CUDASIM
#define WORTH 1e3 /* its products are small */
#else
#define WORTH 1
#endif

/* Gives an operand of a plan the strides of a copy whose rows of k begin at multiples of 16 bytes; its elements. */
static int64_t lay_along_k(nr_matmul_plan *p, int operand) {
    const int64_t pitch = (p->k + 3) / 4 * 4;
    int64_t elements = pitch * (operand == 1 ? p->m : p->n);
    (operand == 1 ? p->a : p->b) = nullptr;
    (operand == 1 ? p->a_row : p->b_col) = pitch;
    (operand == 1 ? p->a_col : p->b_row) = 1;
    for (int32_t d = 0; d < p->batch_ndim; d++)
        if (p->batch_stride[operand][d]) { /* else all batches read the first */
            p->batch_stride[operand][d] = elements;
            elements *= p->batch[d];
        }
    return elements;
}

/* Copies an operand of p to the address that `to` has. */
static int32_t copy_operand(const nr_call *call, const nr_matmul_plan &p, const nr_matmul_plan &to, int operand) {
    const bool a = operand == 1;
    nr_plan all = {};
    all.operands = 2;
    all.numel = 1;
    all.data[0] = static_cast<char *>(const_cast<void *>(a ? to.a : to.b));
    all.data[1] = static_cast<char *>(const_cast<void *>(a ? p.a : p.b));
    auto loop = [&](int64_t size, int64_t to_stride, int64_t from_stride) {
        all.size[all.ndim] = size;
        all.stride[0][all.ndim] = to_stride * (int64_t)sizeof(float);
        all.stride[1][all.ndim++] = from_stride * (int64_t)sizeof(float);
        all.numel *= size;
    };
    loop(p.k, 1, a ? p.a_col : p.b_row);
    loop(a ? p.m : p.n, a ? to.a_row : to.b_col, a ? p.a_row : p.b_col);
    for (int32_t d = 0; d < p.batch_ndim; d++)
        if (p.batch_stride[operand][d]) loop(p.batch[d], to.batch_stride[operand][d], p.batch_stride[operand][d]);
    nr_call copy = *call;
    copy.family = NR_COPY;
    copy.plan = &all;
    return nr_cuda_copy(&copy);
}

/* The plan by which wgmma computes p, and the elements of the copies that it needs; false: mma.sync is better. */
static bool plan_wgmma(const nr_call *call, const nr_matmul_plan &p, nr_matmul_plan *q, int64_t (&elements)[2]) {
    double copying = 0;
    *q = p;
    for (int i = 0; i < 2; i++) {
        elements[i] = nr_wgmma_reads(call, p, i + 1) ? 0 : lay_along_k(q, i + 1);
        if (elements[i]) copying += COPY_NS + 2 * sizeof(float) * (double)elements[i] / COPIED_A_NS;
    }
    return nr_wgmma_takes(call, *q) &&
           copying <= (double)(p.m * p.n) * (double)(p.k * batches_of(p)) * SAVED_NS * WORTH;
}

static int32_t run_wgmma(const nr_call *call, const nr_matmul_plan &p, nr_matmul_plan q, const int64_t (&elements)[2]) {
    if (elements[0] + elements[1] == 0) return nr_cuda_matmul_tiles(call, p, batches_of(p));
    const scratch copies(gpu_of(call), (size_t)(elements[0] + elements[1]) * sizeof(float));
    if (copies.failed()) return NORCH_ERROR_MEMORY;
    if (elements[0]) q.a = copies.memory;
    if (elements[1]) q.b = copies.memory + elements[0] * (int64_t)sizeof(float);
    for (int i = 0; i < 2; i++)
        if (elements[i]) NR_TRY(copy_operand(call, p, q, i + 1));
    return nr_cuda_matmul_tiles(call, q, batches_of(p));
}

int32_t nr_cuda_matmul_tf32(const nr_call *call, const nr_matmul_plan &p) {
    static const staged_family family = {SHORTEST, NR_TF32_BK, add_parts<float, float>, sizeof(float)};
    const bool wide = are_wide(p, 4, sizeof(float));
    nr_matmul_plan q;
    int64_t elements[2];
    if (p.precision == NR_PRECISION_TF32 && plan_wgmma(call, p, &q, elements)) return run_wgmma(call, p, q, elements);
    if (p.precision == NR_PRECISION_TF32)
        return nr_cuda_matmul_staged(call, p, wide ? one_term : one_term_narrow, wide ? 2 : 1, family);
    return wide ? nr_cuda_matmul_staged(call, p, three_terms, 4, family)
                : nr_cuda_matmul_staged(call, p, three_terms_narrow, 2, family);
}
