/* matmul_tf32: which tiles of the tensor cores a float32 product is cut into, and into how many parts of k.
 *
 * A multiprocessor holds `blocks` tiles at a time, the device a wave of them. Where C has few tiles, k is cut so that
 * tiles x parts fill whole waves, from below:
 *
 *   parts = waves * slots / tiles          for 1, 2, 3 ... waves; what is estimated to end first is taken
 *
 * so that the device decides where sums are cut: a device gives the same bits each time, another one may give others. */
#include "matmul_tf32.cuh"

struct tf32_kernel {
    matmul_kernel run;
    uint64_t allowed; /* a bit for each device that lets it have its shared memory */
};

struct tf32_shape {
    int32_t bm, bn, blocks, shared, threads;
    double round;             /* what a wave takes for one k, of the time of the first shape's */
    tf32_kernel kernel[2][2]; /* [A along k][B along k] */
};

template <int BM, int BN, int WM, int WN, int blocks, bool wide, int terms> static tf32_shape shape_of(double round) {
    using S = mma_shape<BM, BN, WM, WN, 3, blocks, true, true, wide, terms>;
    return {BM,
            BN,
            blocks,
            S::shared,
            S::threads,
            round,
            {{{multiply_tf32<mma_shape<BM, BN, WM, WN, 3, blocks, false, false, wide, terms>>, 0},
              {multiply_tf32<mma_shape<BM, BN, WM, WN, 3, blocks, false, true, wide, terms>>, 0}},
             {{multiply_tf32<mma_shape<BM, BN, WM, WN, 3, blocks, true, false, wide, terms>>, 0},
              {multiply_tf32<mma_shape<BM, BN, WM, WN, 3, blocks, true, true, wide, terms>>, 0}}}};
}

/* [wide]: matrices that can be copied by 16 bytes, and those that cannot. */
#define SHAPES 4
static tf32_shape precise[2][SHAPES] = {
    {shape_of<64, 128, 32, 64, 2, false, 3>(1), shape_of<32, 128, 32, 32, 3, false, 3>(1)},
    {shape_of<64, 128, 32, 64, 2, true, 3>(1), shape_of<128, 64, 32, 64, 2, true, 3>(1),
     shape_of<32, 128, 32, 32, 3, true, 3>(1), shape_of<128, 32, 32, 32, 3, true, 3>(1)},
};
static tf32_shape quick[2] = {shape_of<64, 128, 32, 64, 2, false, 1>(1), shape_of<64, 128, 32, 64, 2, true, 1>(1)};

#define SHORTEST_PART 256 /* of k */
#define FIXED 64.0        /* what a block's beginning and end take, in columns of k */
#define ADDED 5e-5        /* what writing and adding an element of a part takes, in the same */

struct tf32_cut {
    tf32_shape *shape;
    int64_t tiles, parts;
    double time;
};

/* The best cut of k for a shape. */
static tf32_cut cut_for(tf32_shape *shape, const nr_gpu *gpu, const nr_matmul_plan &p, int64_t batches) {
    const int64_t tiles = ((p.m + shape->bm - 1) / shape->bm) * ((p.n + shape->bn - 1) / shape->bn);
    const int64_t slots = (int64_t)gpu->multiprocessors * shape->blocks, most = p.k / SHORTEST_PART;
    tf32_cut best = {shape, tiles, 1, 0};
    for (int64_t waves = 0; waves <= 4; waves++) {
        int64_t parts = waves * slots / (tiles * batches);
        if (waves > 0 && parts <= 1) continue;
        if (parts > most) parts = most;
        if (parts < 1) parts = 1;
        const int64_t blocks = tiles * batches * parts;
        double time = (double)((blocks + slots - 1) / slots) * shape->round * ((double)p.k / (double)parts + FIXED);
        if (parts > 1) time += ADDED * (double)(parts * batches * p.m * p.n);
        if (waves == 0 || time < best.time) best.parts = parts, best.time = time;
        if (parts == most) break;
    }
    return best;
}

bool nr_cuda_matmul_tf32_takes(const nr_call *call, const nr_matmul_plan &p) {
    if (call->dtype != NORCH_FLOAT32 || gpu_of(call)->capability < 80) return false;
    return (p.a_col == 1 || p.a_row == 1) && (p.b_row == 1 || p.b_col == 1) && p.k >= SHORTEST_PART && p.m >= 8 &&
           p.n >= 8;
}

int32_t nr_cuda_matmul_tf32(const nr_call *call, const nr_matmul_plan &p) {
    const nr_gpu *gpu = gpu_of(call);
    const bool a_along = p.a_col == 1, b_along = p.b_col != 1;
    const bool wide = (a_along ? is_wide(p.a, p.k, p.a_row, p, 1, 4, 4) : is_wide(p.a, p.m, p.a_col, p, 1, 4, 4)) &&
                      (b_along ? is_wide(p.b, p.k, p.b_col, p, 2, 4, 4) : is_wide(p.b, p.n, p.b_row, p, 2, 4, 4));
    const int64_t batches = batches_of(p);
    tf32_cut best = cut_for(&precise[wide][0], gpu, p, batches);
    for (int i = 1; i < SHAPES && precise[wide][i].bm; i++) {
        const tf32_cut other = cut_for(&precise[wide][i], gpu, p, batches);
        if (other.time < best.time) best = other;
    }
    tf32_kernel *kernel = &best.shape->kernel[a_along][b_along];
    NR_TRY(nr_cuda_allow_shared(call, (const void *)kernel->run, best.shape->shared, &kernel->allowed));
    matmul_args g = matmul_args_of(call, p);
    if (best.parts > 1) cut_k(&g, best.parts, NR_TF32_BK);
    return nr_cuda_matmul_launch(call, g, kernel->run, best.tiles, batches, (unsigned)best.shape->threads,
                                 (size_t)best.shape->shared, add_parts<float, float>, sizeof(float));
}
