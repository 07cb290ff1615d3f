/* matmul_wgmma: products of float16 and bfloat16 matrices, and of float32 ones as TF32, by wgmma (wgmma.cuh), for
 * compute capability 9.0. Files named *_wgmma.cu are compiled for sm_90a instead of sm_90.
 *
 *   a warpgroup's one thread   asks for tiles of A and B, 128 bytes of k at a time, for as many stages as are free
 *   two warpgroups             multiply 64 rows of A each by the BN columns of B; they have its registers, for the sums
 *
 * TF32 lies along k only, and is rounded by the tensor memory accelerator on its way.
 *
 * A block computes one tile of 128 x BN after the other, so that the first stages of the next are on their way while
 * sums are rounded. Each warp's rows of C go through shared memory, in the layout of a tensor map, and are stored
 * from there while the next products run.
 *
 * Method: Thakkar and others, CUTLASS ("warp-specialized persistent kernels"). */
#include "matmul_16bit.cuh"
#include "wgmma.cuh"

#define BM 128
#define LINE 128 /* bytes of a row in shared memory */
#define GROUPS 2 /* warpgroups that multiply */
#define THREADS ((GROUPS + 1) * 128)
#define BOX (64 * LINE) /* bytes of 64 rows */
#define ROWS 16         /* of C that a warp has */

/* Coordinates of a batch in a tensor map: 0 in a loop in which the operand does not change. */
struct batch_place {
    int first, second;
};
DEVICE batch_place batch_of(const product_16bit &g, int batch, int operand) {
    const int inner = g.batch.ndim > 0 ? (int)g.batch.size[0].size : 1;
    return {g.batch.stride[operand][0] ? batch % inner : 0, g.batch.stride[operand][1] ? batch / inner : 0};
}

/* staged: columns that a warp collects in shared memory and stores at once, where C
 * has a map (0: there never is one). */
template <class D, int BN, int stages, int blocks, int staged, bool a_along_k, bool b_along_k>
__global__ void __launch_bounds__(THREADS, blocks)
    multiply(const __grid_constant__ tensor_map a_map, const __grid_constant__ tensor_map b_map,
             const __grid_constant__ tensor_map c_map, const bool c_mapped, const product_16bit g) {
#if NR_HAS_WGMMA
    constexpr int BK = LINE / (int)sizeof(typename D::S), a_bytes = BM * LINE, b_bytes = BN * LINE;
    DYNAMIC_SHARED(unsigned char, shared);
    const uint32_t begin = shared_address(shared), a_at = (begin + 1023) / 1024 * 1024, b_at = a_at + stages * a_bytes,
                   c_at = b_at + stages * b_bytes, full = c_at + GROUPS * 4 * staged * ROWS * 2,
                   empty = full + stages * 8;
    if (threadIdx.x == 0) {
        for (int s = 0; s < stages; s++) {
            init_barrier(full + s * 8, 1);
            init_barrier(empty + s * 8, GROUPS);
        }
        publish_barriers();
    }
    __syncthreads();
    const int all = ((g.m + BM - 1) / BM) * ((g.n + BN - 1) / BN) * g.batches * g.parts;
    int stage = 0, phase = 0;
    auto advance = [&] {
        if (++stage == stages) stage = 0, phase ^= 1;
    };
    if (threadIdx.x >= GROUPS * 128) {
        limit_registers<24>();
        if (threadIdx.x > GROUPS * 128) return;
        for (int work = (int)blockIdx.x; work < all; work += (int)gridDim.x) {
            const work_item at = item_of<BM, BN>(g, work);
            const batch_place of_a = batch_of(g, at.batch, 1), of_b = batch_of(g, at.batch, 2);
            const int k_begin = at.part * g.k_part, k_end = g.k - k_begin < g.k_part ? g.k : k_begin + g.k_part;
            for (int k = k_begin; k < k_end; k += BK, advance()) {
                wait_barrier(empty + stage * 8, phase ^ 1);
                const uint32_t barrier = full + stage * 8, a = a_at + stage * a_bytes, b = b_at + stage * b_bytes;
                expect_bytes(barrier, a_bytes + b_bytes);
                if constexpr (a_along_k)
                    copy_tile(a, &a_map, k, at.row, of_a.first, of_a.second, barrier);
                else
                    for (int i = 0; i < BM; i += 64)
                        copy_tile(a + i * LINE, &a_map, at.row + i, k, of_a.first, of_a.second, barrier);
                if constexpr (b_along_k)
                    copy_tile(b, &b_map, k, at.col, of_b.first, of_b.second, barrier);
                else
                    for (int j = 0; j < BN; j += 64)
                        copy_tile(b + j * LINE, &b_map, at.col + j, k, of_b.first, of_b.second, barrier);
            }
        }
        return;
    }

    raise_registers<blocks == 1 ? 240 : 104>();
    const int group = (int)threadIdx.x / 128, warp = (int)threadIdx.x / 32 % 4, lane = (int)threadIdx.x % 32;
    for (int work = (int)blockIdx.x; work < all; work += (int)gridDim.x) {
        const work_item at = item_of<BM, BN>(g, work);
        const int k_begin = at.part * g.k_part, k_end = g.k - k_begin < g.k_part ? g.k : k_begin + g.k_part;
        float sum[BN / 2];
        int before = -1; /* a stage that products may still read */
        for (int k = k_begin; k < k_end; k += BK, advance()) {
            wait_barrier(full + stage * 8, phase);
            begin_products();
            const uint64_t a = describe_tile(a_at + stage * a_bytes + group * BOX, BOX);
            const uint64_t b = describe_tile(b_at + stage * b_bytes, BOX);
#pragma unroll
            for (int kk = 0; kk < LINE / 32; kk++) /* 32 bytes of a row further, or 16 rows */
                wgmma<D, !a_along_k, !b_along_k>(sum, a + kk * (a_along_k ? 32 : 16 * LINE) / 16,
                                                 b + kk * (b_along_k ? 32 : 16 * LINE) / 16, k > k_begin || kk > 0);
            commit_products();
            wait_products<1>();
            if (before >= 0 && threadIdx.x % 128 == 0) arrive(empty + before * 8);
            before = stage;
        }
        wait_products<0>();
        if (threadIdx.x % 128 == 0) arrive(empty + before * 8);

        int64_t item[3];
        g.batch.find((uint32_t)at.batch, item);
        tile_end<D> end(g, at, item[0], at.col);
        const int row = at.row + group * 64 + warp * ROWS;
        auto get = [&](int j, int h, float (&eight)[8]) {
#pragma unroll
            for (int q = 0; q < 8; q++) eight[q] = sum[(j / 8 + q / 2) * 4 + h * 2 + q % 2];
        };
        float eight[8];
        if (staged == 0 || !c_mapped || g.activation >= 0 || g.residual) {
#pragma unroll
            for (int j = 0; j < BN; j += 32) {
                end.load_bias(j);
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    get(j, h, eight);
                    end.store(row + h * 8 + lane / 4, j, eight);
                }
            }
            if (g.activation >= 0 && g.parts == 1) {
                __syncwarp();
                end.template finish<BN>(row, ROWS, at.col, lane, 32);
            }
            continue;
        }
        if constexpr (staged > 0) {
            const uint32_t staging = c_at + (uint32_t)(threadIdx.x / 32) * staged * ROWS * 2;
            const batch_place of_c = batch_of(g, at.batch, 0);
#pragma unroll
            for (int from = 0; from < BN; from += staged) {
                if (lane == 0) wait_stores();
                __syncwarp();
#pragma unroll
                for (int j = from; j < from + staged; j += 32) {
                    end.load_bias(j);
#pragma unroll
                    for (int h = 0; h < 2; h++) {
                        uint32_t word[4];
                        get(j, h, eight);
                        end.round(eight, word);
                        const uint32_t line =
                            staging - begin + (j - from) / 64 * 64 * ROWS * 2 + (h * 8 + lane / 4) * 128;
#pragma unroll
                        for (int i = 0; i < 4; i++)
                            *reinterpret_cast<uint32_t *>(shared + line + ((j % 64 / 8 + i) ^ lane / 4) * 16 +
                                                          lane % 4 * 4) = word[i];
                    }
                }
                publish_to_stores();
                __syncwarp();
                if (lane == 0 && row < g.m) {
                    for (int j = 0; j < staged && at.col + from + j < g.n; j += 64)
                        store_tile(&c_map, staging + j * ROWS * 2, at.col + from + j, row, of_c.first, of_c.second);
                    commit_stores();
                }
            }
        }
    }
    if (staged > 0 && lane == 0) wait_stores();
#endif
}

/* ---- tensor maps ------------------------------------------------------------------------------------------------- */

/* cuTensorMapEncodeTiled, of the driver's library, with which this one is not linked; NULL: an older driver. */
typedef int (*encode_function)(tensor_map *map, int dtype, uint32_t rank, void *address, const uint64_t *size,
                               const uint64_t *stride, const uint32_t *box, const uint32_t *element_stride,
                               int interleave, int swizzle, int l2_promotion, int fill);

static encode_function encode() {
    static encode_function found;
    if (!found) found = reinterpret_cast<encode_function>(nr_cuda_driver_function("cuTensorMapEncodeTiled"));
    return found;
}

/* Constants of cuda.h. */
#define MAP_UINT16 1
#define MAP_TFLOAT32 11 /* float32, which copies round to TF32 */
#define MAP_SWIZZLE_128 3
#define MAP_L2_256 3

/* An operand of outer x k: the direction in which it is dense, and the distance of its rows. */
struct map_source {
    const void *x;
    bool along_k;
    int64_t size, others, pitch; /* along the dense direction, across it */
};

static map_source source_of(const void *x, int64_t outer, int64_t k, int64_t outer_stride, int64_t k_stride) {
    if (k_stride == 1) return {x, true, k, outer, outer_stride};
    return {x, false, outer, k, outer_stride == 1 ? k_stride : 0};
}
static map_source source_a(const nr_matmul_plan &p) { return source_of(p.a, p.m, p.k, p.a_row, p.a_col); }
static map_source source_c(const nr_matmul_plan &p) { return {p.c, true, p.n, p.m, p.c_row}; }
static map_source source_b(const nr_matmul_plan &p) { return source_of(p.b, p.n, p.k, p.b_col, p.b_row); }

static bool fits_map(const map_source &s, const nr_matmul_plan &p, int operand, int64_t element) {
    const int64_t chunk = 16 / element, most = (int64_t)1 << 37;
    bool fits = is_aligned(s.x, 16) && s.pitch > 0 && s.pitch % chunk == 0 && s.pitch < most;
    for (int32_t d = 0; d < p.batch_ndim; d++) {
        const int64_t stride = p.batch_stride[operand][d];
        fits = fits && stride >= 0 && stride % chunk == 0 && stride < most;
    }
    return fits;
}

static bool make_map(tensor_map *map, const map_source &s, const nr_matmul_plan &p, int operand, int box_rows,
                     uint32_t element) {
    uint64_t size[4] = {(uint64_t)s.size, (uint64_t)s.others, 1, 1}, stride[3];
    for (uint64_t &bytes : stride) bytes = (uint64_t)s.pitch * element;
    for (int32_t d = 0; d < p.batch_ndim; d++)
        if (p.batch_stride[operand][d]) { /* else all batches read the first */
            size[2 + d] = (uint64_t)p.batch[d];
            stride[1 + d] = (uint64_t)p.batch_stride[operand][d] * element;
        }
    const uint32_t box[4] = {LINE / element, (uint32_t)box_rows, 1, 1}, ones[4] = {1, 1, 1, 1};
    return encode()(map, element == 4 ? MAP_TFLOAT32 : MAP_UINT16, 4, const_cast<void *>(s.x), size, stride, box, ones,
                    0, MAP_SWIZZLE_128, MAP_L2_256, 0) == 0;
}

/* ---- the kernels ------------------------------------------------------------------------------------------------- */

typedef void (*kernel_wgmma)(const tensor_map, const tensor_map, const tensor_map, bool, const product_16bit);

struct kernels_wgmma {
    tile_16bit tile;
    int bytes;
    bool staged;
    kernel_wgmma kernel[2][2]; /* [A along k][B along k] */
};

template <class D, int BN, int stages, int blocks, int staged>
static constexpr kernels_wgmma kernels_of(double speed, double start) {
    constexpr int bytes = 1024 + stages * ((BM + BN) * LINE + 2 * 8) + GROUPS * 4 * staged * ROWS * 2;
    const tile_16bit tile = {BM, BN, LINE / (int)sizeof(typename D::S), blocks, speed, start};
    const kernel_wgmma along = multiply<D, BN, stages, blocks, staged, true, true>;
    if constexpr (is_same<typename D::S, float>)
        return {tile, bytes, staged > 0, {{nullptr, nullptr}, {nullptr, along}}};
    else
        return {tile,
                bytes,
                staged > 0,
                {{multiply<D, BN, stages, blocks, staged, false, false>,
                  multiply<D, BN, stages, blocks, staged, false, true>},
                 {multiply<D, BN, stages, blocks, staged, true, false>, along}}};
}

template <class D> static const kernels_wgmma *kernels_for() {
    static const kernels_wgmma all[NR_WGMMA_TILES] = {
        kernels_of<D, 256, 4, 1, 128>(1580, 210), kernels_of<D, 192, 4, 1, 192>(1580, 210),
        kernels_of<D, 128, 5, 1, 128>(1300, 120), kernels_of<D, 64, 4, 2, 0>(820, 110)};
    return all;
}
/* Half as fast, since a line holds half as many; its sums are stored from registers, in whole sectors. */
template <> const kernels_wgmma *kernels_for<dtype_float32>() {
    static const kernels_wgmma all[NR_WGMMA_TILES] = {
        kernels_of<dtype_float32, 256, 4, 1, 0>(790, 105), kernels_of<dtype_float32, 192, 4, 1, 0>(790, 105),
        kernels_of<dtype_float32, 128, 5, 1, 0>(650, 60), kernels_of<dtype_float32, 64, 4, 2, 0>(410, 55)};
    return all;
}

static const kernels_wgmma &kernels_of_dtype(int32_t dtype, int which) {
    return (dtype == NORCH_FLOAT16    ? kernels_for<dtype_float16>()
            : dtype == NORCH_BFLOAT16 ? kernels_for<dtype_bfloat16>()
                                      : kernels_for<dtype_float32>())[which];
}

bool nr_wgmma_reads(const nr_call *call, const nr_matmul_plan &p, int operand) {
    const map_source s = operand == 1 ? source_a(p) : source_b(p);
    const int64_t element = nr_library->dtypes[call->dtype].size;
    return fits_map(s, p, operand, element) && (s.along_k || element == 2);
}

bool nr_wgmma_takes(const nr_call *call, const nr_matmul_plan &p) {
#if defined NR_SM_90A || defined CUDASIM
    return gpu_of(call)->is_90 && p.k > 0 && p.batch_ndim <= 2 && nr_wgmma_reads(call, p, 1) &&
           nr_wgmma_reads(call, p, 2) && encode();
#else
    return false;
#endif
}

const tile_16bit &nr_wgmma_tile(int32_t dtype, int which) { return kernels_of_dtype(dtype, which).tile; }

int32_t nr_wgmma_launch(const nr_call *call, const nr_matmul_plan &p, const product_16bit &g, int which) {
    const nr_gpu *gpu = gpu_of(call);
    const kernels_wgmma &kernels = kernels_of_dtype(call->dtype, which);
    const map_source a = source_a(p), b = source_b(p);
    const uint32_t element = (uint32_t)nr_library->dtypes[call->dtype].size;
    tensor_map a_map, b_map, c_map;
    const bool c_mapped = kernels.staged && g.parts == 1 && fits_map(source_c(p), p, 0, element);
    bool mapped = make_map(&a_map, a, p, 1, a.along_k ? BM : kernels.tile.bk, element) &&
                  make_map(&b_map, b, p, 2, b.along_k ? kernels.tile.bn : kernels.tile.bk, element);
    if (mapped && c_mapped)
        mapped = make_map(&c_map, source_c(p), p, 0, ROWS, element);
    else
        c_map = a_map;
    if (!mapped)
        return nr_library->fail(NORCH_ERROR_DEVICE, "matmul: the CUDA driver makes no tensor map of its operands");
    const kernel_wgmma kernel = kernels.kernel[a.along_k][b.along_k];
    const int64_t tiles = tiles_of(kernels.tile, g) * g.parts,
                  most = (int64_t)gpu->multiprocessors * kernels.tile.blocks;
    TRY("matmul", cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kernels.bytes));
    LAUNCH(kernel, (unsigned)(tiles < most ? tiles : most), THREADS, (size_t)kernels.bytes, gpu->stream, a_map, b_map,
           c_map, c_mapped, g);
    return NORCH_OK;
}
