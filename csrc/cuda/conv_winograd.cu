/* conv_winograd: the weight of 3 x 3 kernels at stride 1, float32, by 16 products instead of the 36 of sums over taps.
 * In one dimension two places of y and four of x give all three taps by four products, not six:
 *
 *   p0 = g0 (d0 - d2)                  w0 = p0 + p1 + p2        g: a pair of y, d: the four places of x it meets
 *   p1 = (g0 + g1) / 2 (d1 + d2)       w1 = p1 - p2
 *   p2 = (g0 - g1) / 2 (d2 - d1)       w2 = p1 + p2 + p3        In two, rows and then columns do so: 4 x 4 products.
 *   p3 = g1 (d3 - d1)
 *
 * Tiles of 2 x 2 of y and 4 x 4 of x are turned into these factors; each of the 16 products, summed over all tiles, is
 * the weight of a kernel of one tap (conv_weight.cu, a group each); and the sums are turned back. It is faster for many
 * channels. Source: Lavin, Gray, "Fast Algorithms for Convolutional Neural Networks" (2016). */
#include "conv.cuh"

#define PRODUCTS 16

/* A tensor as tiles: `tiles` over the batch, a sample's in `rows` and `columns`; to[product][channel][tile],
 * zeros from the last tile to `padded`. */
struct tiling {
    const float *x;
    float *to;
    divisor padded, of_sample, columns;
    int32_t tiles, channels, size[2], padding[2];
};

/* The four factors of x or, from two places, of y. */
DEVICE void factors_of_x(const float (&d)[4], float (&to)[4]) {
    to[0] = d[0] - d[2];
    to[1] = d[1] + d[2];
    to[2] = d[2] - d[1];
    to[3] = d[3] - d[1];
}
DEVICE void factors_of_y(const float (&g)[2], float (&to)[4]) {
    to[0] = g[0];
    to[1] = 0.5f * (g[0] + g[1]);
    to[2] = 0.5f * (g[0] - g[1]);
    to[3] = g[1];
}

/* A thread a tile of `side` x `side`: 4 of x, 2 of y. */
template <int side> __global__ void __launch_bounds__(NR_BLOCK) make_factors(const tiling t) {
    const int64_t i = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x, plane = (int64_t)t.channels * t.padded.size;
    if (i >= plane) return;
    const int channel = (int)quotient((uint32_t)i, t.padded), tile = (int)(i - (int64_t)channel * t.padded.size);
    const int sample = (int)quotient((uint32_t)tile, t.of_sample), rest = tile - sample * (int)t.of_sample.size;
    const int row = (int)quotient((uint32_t)rest, t.columns), column = rest - row * (int)t.columns.size;
    const int top = row * 2 - t.padding[0], left = column * 2 - t.padding[1];
    const float *x = t.x + ((int64_t)sample * t.channels + channel) * t.size[0] * t.size[1];
    float rows[side][4];
#pragma unroll
    for (int r = 0; r < side; r++) {
        float v[side];
        const bool inside = tile < t.tiles && (uint32_t)(top + r) < (uint32_t)t.size[0];
#pragma unroll
        for (int s = 0; s < side; s++)
            v[s] = inside && (uint32_t)(left + s) < (uint32_t)t.size[1] ? x[(top + r) * t.size[1] + left + s] : 0.0f;
        if constexpr (side == 4)
            factors_of_x(v, rows[r]);
        else
            factors_of_y(v, rows[r]);
    }
#pragma unroll
    for (int s = 0; s < 4; s++) {
        float v[side], found[4];
#pragma unroll
        for (int r = 0; r < side; r++) v[r] = rows[r][s];
        if constexpr (side == 4)
            factors_of_x(v, found);
        else
            factors_of_y(v, found);
#pragma unroll
        for (int r = 0; r < 4; r++) t.to[(r * 4 + s) * plane + i] = found[r];
    }
}

DEVICE void taps_of_products(const float (&p)[4], float (&w)[3]) {
    w[0] = p[0] + p[1] + p[2];
    w[1] = p[1] - p[2];
    w[2] = p[1] + p[2] + p[3];
}

/* A thread the nine taps of a channel of y and one of x, from sums[product][pair]. An infinity gives NaN in the
 * factors, so results that are NaN are summed again by plain products. */
__global__ void __launch_bounds__(NR_BLOCK) make_taps(const weight_args w, const float *sums, float *out) {
    const int pair = (int)(blockIdx.x * NR_BLOCK + threadIdx.x), pairs = w.m * w.in;
    if (pair >= pairs) return;
    float columns[4][3], taps[3][3];
#pragma unroll
    for (int r = 0; r < 4; r++) {
        float p[4];
#pragma unroll
        for (int s = 0; s < 4; s++) p[s] = sums[(int64_t)(r * 4 + s) * pairs + pair];
        taps_of_products(p, columns[r]);
    }
    bool is_number = true;
#pragma unroll
    for (int s = 0; s < 3; s++) {
        const float p[4] = {columns[0][s], columns[1][s], columns[2][s], columns[3][s]};
        float v[3];
        taps_of_products(p, v);
#pragma unroll
        for (int r = 0; r < 3; r++) {
            taps[r][s] = v[r];
            is_number &= v[r] == v[r];
        }
    }
    out += (int64_t)pair * 9;
#pragma unroll
    for (int t = 0; t < 9; t++) out[t] = taps[t / 3][t % 3];
    if (is_number) return;
    const int m = pair / w.in, channel = pair - m * w.in;
    const float *x = static_cast<const float *>(w.x) + (int64_t)channel * w.size[0] * w.size[1];
    const float *y = static_cast<const float *>(w.y) + (int64_t)m * w.positions.size;
    for (int t = 0; t < 9; t++) {
        if (out[t] == out[t]) continue;
        float sum = 0;
        for (int k = 0; k < w.k; k++) {
            const position_entry p = position_of(w, 0, k);
            const bool inside =
                (uint32_t)(p.row + t / 3) < (uint32_t)w.size[0] && (uint32_t)(p.column + t % 3) < (uint32_t)w.size[1];
            sum += (inside ? x[p.x + t / 3 * w.size[1] + t % 3] : 0.0f) * y[p.y];
        }
        out[t] = sum;
    }
}

/* ---- whether it pays, and the steps ------------------------------------------------------------------------------ */

/* Tiles of the batch. */
static int64_t tiles_of(const weight_args &w) {
    const int64_t columns = w.columns.size, rows = w.positions.size / columns;
    return w.k / (int64_t)w.positions.size * ((rows + 1) / 2) * ((columns + 1) / 2);
}

/* Products become fewer by 10 of 18 for each pair of channels and position, factors cost memory's time for each channel
 * and position, and sums for each pair; the most is half a gigabyte of factors. */
bool nr_conv_winograd_pays(const nr_call *call, const weight_args &w) {
    if (call->dtype != NORCH_FLOAT32 || gpu_of(call)->capability < 80 || w.groups != 1 || w.k == 0) return false;
    if (w.tap_columns.size != 3 || w.taps.size != 9) return false;
    for (int d = 0; d < 2; d++)
        if (w.stride[d] != 1 || w.dilation[d] != 1) return false;
    const double channels = (double)w.m + w.in, pairs = (double)w.m * w.in;
    return pairs > 60 * channels && w.k >= 4 * gpu_of(call)->multiprocessors && channels * (double)tiles_of(w) < 8e6 &&
           pairs < 1e8;
}

int32_t nr_conv_winograd(const nr_call *call, const weight_args &w, void *out) {
    const nr_gpu *gpu = gpu_of(call);
    const int64_t tiles = tiles_of(w), padded = (tiles + 3) / 4 * 4, pairs = (int64_t)w.m * w.in;
    const size_t bytes = (size_t)(PRODUCTS * ((w.m + w.in) * padded + pairs)) * sizeof(float);
    float *scratch = static_cast<float *>(nr_cuda_scratch(gpu, bytes));
    if (!scratch) return NORCH_ERROR_MEMORY;
    float *of_x = scratch, *of_y = of_x + PRODUCTS * w.in * padded, *sums = of_y + PRODUCTS * w.m * padded;
    tiling t = {};
    t.padded = divisor_of(padded);
    t.columns = divisor_of((w.columns.size + 1) / 2);
    t.of_sample = divisor_of((w.positions.size / w.columns.size + 1) / 2 * t.columns.size);
    t.tiles = (int32_t)tiles;
    t.x = static_cast<const float *>(w.x);
    t.to = of_x;
    t.channels = w.in;
    for (int d = 0; d < 2; d++) {
        t.size[d] = w.size[d];
        t.padding[d] = w.padding[d];
    }
    LAUNCH(make_factors<4>, blocks_for(w.in * padded, NR_BLOCK), NR_BLOCK, 0, gpu->stream, t);
    t.x = static_cast<const float *>(w.y);
    t.to = of_y;
    t.channels = w.m;
    t.size[0] = (int32_t)(w.positions.size / w.columns.size);
    t.size[1] = (int32_t)w.columns.size;
    t.padding[0] = t.padding[1] = 0;
    LAUNCH(make_factors<2>, blocks_for(w.m * padded, NR_BLOCK), NR_BLOCK, 0, gpu->stream, t);
    int32_t failed = launched(call);
    if (!failed) {
        weight_args product = {};
        product.x = of_x;
        product.y = of_y;
        product.groups = PRODUCTS;
        product.in = product.n = w.in;
        product.m = w.m;
        product.k = (int32_t)padded;
        product.size[0] = product.stride[0] = product.stride[1] = product.dilation[0] = product.dilation[1] = 1;
        product.size[1] = (int32_t)padded;
        product.columns = product.positions = divisor_of(padded);
        product.tap_columns = product.taps = divisor_of(1);
        failed = nr_conv_weight_mma(call, product, sums);
    }
    if (!failed) {
        LAUNCH(make_taps, blocks_for(pairs, NR_BLOCK), NR_BLOCK, 0, gpu->stream, w, (const float *)sums,
               static_cast<float *>(out));
        failed = launched(call);
    }
    nr_cuda_scratch_free(gpu, scratch, bytes);
    return failed;
}
