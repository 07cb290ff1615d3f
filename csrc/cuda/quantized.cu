/* quantized: products with a weight of 8-bit or 4-bit integers, a thread an element of the result; and the weight as
 * floats. The kernels are plain: such a weight saves memory on a device, not time. */
#include "cuda.cuh"

#include "../families/quantized.h"

/* The integer of column c of row j of the weight, and its scale. */
DEVICE int integer_at(const nr_quantized_plan &p, int64_t j, int64_t c) {
    const int64_t block = c / NR_QUANTIZED_BLOCK, at = c % NR_QUANTIZED_BLOCK, half = NR_QUANTIZED_BLOCK / 2;
    const int64_t row = j * ((p.k + NR_QUANTIZED_BLOCK - 1) / NR_QUANTIZED_BLOCK);
    if (p.bits == 8) return static_cast<const int8_t *>(p.weight)[(row + block) * NR_QUANTIZED_BLOCK + at];
    const int both = static_cast<const uint8_t *>(p.weight)[(row + block) * half + at % half];
    return (at < half ? both & 15 : both >> 4) - 8;
}

DEVICE float scale_at(const nr_quantized_plan &p, int64_t j, int64_t c) {
    return static_cast<const float *>(p.scale)[j * p.groups + (c / NR_QUANTIZED_BLOCK >> p.shift)];
}

DEVICE float weight_at(const nr_quantized_plan &p, int64_t j, int64_t c) {
    return scale_at(p, j, c) * (float)integer_at(p, j, c);
}

__global__ void __launch_bounds__(NR_BLOCK) quantized_linear(const nr_quantized_plan p) {
    const int64_t at = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (at >= p.m * p.n) return;
    const int64_t j = at % p.n;
    const float *x = static_cast<const float *>(p.x) + at / p.n * p.k;
    float sum = 0;
    for (int64_t c = 0; c < p.k; c++) sum += x[c] * weight_at(p, j, c);
    static_cast<float *>(p.y)[at] = sum + (p.bias ? static_cast<const float *>(p.bias)[j] : 0.0f);
}

/* Each thread finds the scale of its row of x. Sums are split as on the CPU (cpu/int8_isa.c), with the same bits. */
__global__ void __launch_bounds__(NR_BLOCK) quantized_dynamic(const nr_quantized_plan p) {
    const int64_t at = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (at >= p.m * p.n) return;
    const int64_t j = at % p.n, group = (int64_t)NR_QUANTIZED_BLOCK << (p.shift < 32 ? p.shift : 32);
    const int64_t part = group < NR_QUANTIZED_PART ? group : NR_QUANTIZED_PART;
    const float *x = static_cast<const float *>(p.x) + at / p.n * p.k;
    uint32_t most = 0;
    for (int64_t c = 0; c < p.k; c++) {
        const uint32_t size = nr_bits_of_float(x[c]) & INT32_MAX;
        most = size > most ? size : most;
    }
    const float scale = nr_scale_of_row(most), inverse = 1 / scale;
    float total = 0;
    for (int64_t first = 0; first < p.k; first += part) {
        int sum = 0;
        for (int64_t c = first; c < first + part && c < p.k; c++)
            sum += (int)rintf(x[c] * inverse) * integer_at(p, j, c);
        total += (float)sum * scale_at(p, j, first);
    }
    static_cast<float *>(p.y)[at] = total * scale + (p.bias ? static_cast<const float *>(p.bias)[j] : 0.0f);
}

__global__ void __launch_bounds__(NR_BLOCK) quantized_weight(const nr_quantized_plan p) {
    const int64_t at = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (at < p.n * p.k) static_cast<float *>(p.y)[at] = weight_at(p, at / p.k, at % p.k);
}

int32_t nr_cuda_quantized(const nr_call *call) {
    const nr_quantized_plan &p = *static_cast<const nr_quantized_plan *>(call->plan);
    if (call->op == NR_QUANTIZED_WEIGHT) return run_blocks(call, quantized_weight, blocks_for(p.n * p.k, NR_BLOCK), p);
    if (call->op == NR_QUANTIZED_DYNAMIC)
        return run_blocks(call, quantized_dynamic, blocks_for(p.m * p.n, NR_BLOCK), p);
    return run_blocks(call, quantized_linear, blocks_for(p.m * p.n, NR_BLOCK), p);
}
