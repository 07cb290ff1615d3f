/* scatter_sums: sums at indices by integers, whose result is the same in any order, so that atomics may add them. Each
 * element of the target that is summed into has a slot: column * axis_size + index.
 *
 *   slot    a                     b                 float32 terms: sign, 24 bits of significand, exponent
 *   terms   1.5  0x1p-20  -2.25   0x1p-90           1. top: the largest exponent of each slot
 *   top     1                     -90               2. sum: integers, whose unit 2^-(23 + up) top leaves room for all
 *   sum     0xc000.. + .. - ..    0x800000..           terms of a slot in 63 bits; what is below it is cut
 *   target  += sum * unit         += sum * unit     3. to the target, in double
 *
 *   few slots:  blocks add in their own shared memory first, or all would wait at a few addresses
 *
 * A term loses the bits more than 24 + up below the largest term of its slot: with 2^24 terms 2^-39 of that, far less
 * than the rounding of sums in float32. If a term is infinite or NaN, sum counts both infinities instead, each in 32
 * bits. Integer dtypes need no top: their sums wrap. Order-independent sums by integers: Demmel, Nguyen, "Parallel
 * Reproducible Summation" (IEEE Trans. Computers 64, 2015). */
#include "index.cuh"

#define FEW_SLOTS 4096
#define NOT_FINITE 255u /* the exponent of infinities and NaN */

struct sums_args {
    index_args to;
    nest<4> each; /* to.where, and the slot of the first element of the column */
    uint32_t *top;
    unsigned long long *sum;
    int64_t slots;
    int32_t up; /* bits by which a term of the largest exponent is shifted up */
};

/* The slot of an element of the nest, -1 if its index is out of range; at: its operands. */
DEVICE int64_t slot_of(const sums_args &a, uint32_t i, int64_t (&at)[4]) {
    a.each.find(i, at);
    const int64_t index = *reinterpret_cast<const int64_t *>(a.to.index + at[1]);
    return offset_of(a.to, index) == LOST ? -1 : at[3] + index;
}

DEVICE uint32_t exponent_of(uint32_t bits) {
    const uint32_t exponent = bits >> 23 & 255;
    return exponent ? exponent : 1; /* a subnormal number has the unit of the smallest normal one */
}

/* A term as the integer that is added to its slot. */
DEVICE uint64_t term_of(float x, uint32_t top, int32_t up) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t exponent = exponent_of(bits);
    if (top == NOT_FINITE) {
        if (exponent != NOT_FINITE) return 0;
        return x != x ? 1 + ((uint64_t)1 << 32) : x > 0 ? 1 : (uint64_t)1 << 32;
    }
    const uint32_t down = top - exponent;
    const uint64_t significand = (bits & 0x7fffff) | (bits & 0x7f800000 ? 0x800000 : 0);
    const uint64_t term = down < 64 ? (significand << up) >> down : 0;
    return bits >> 31 ? 0 - term : term;
}
template <class T> DEVICE uint64_t term_of(T x, uint32_t, int32_t) { return (uint64_t)(int64_t)x; }

/* A slot's sum, added to the target. */
template <class D> DEVICE typename D::S with_sum(typename D::S x, uint64_t sum, uint32_t top, int32_t up) {
    if constexpr (D::kind == NR_KIND_F) {
        if (top == NOT_FINITE) {
            const float plus = (uint32_t)sum ? INFINITY : 0.0f, minus = sum >> 32 ? -INFINITY : 0.0f;
            return x + (plus + minus);
        }
        return sum ? (float)((double)x + ldexp((double)(int64_t)sum, (int)top - 150 - up)) : x;
    } else if constexpr (D::kind == NR_KIND_B) {
        return x || sum;
    } else {
        return (typename D::S)((uint64_t)x + sum);
    }
}

template <bool few> __global__ void __launch_bounds__(NR_BLOCK) find_tops(const __grid_constant__ sums_args a) {
    __shared__ uint32_t block_top[few ? FEW_SLOTS : 1];
    if constexpr (few) {
        for (int i = (int)threadIdx.x; i < a.slots; i += NR_BLOCK) block_top[i] = 0;
        __syncthreads();
    }
    for (uint32_t i = blockIdx.x * NR_BLOCK + threadIdx.x; i < a.to.n; i += gridDim.x * NR_BLOCK) {
        int64_t at[4];
        const int64_t slot = slot_of(a, i, at);
        if (slot < 0) continue;
        const uint32_t exponent = exponent_of(*reinterpret_cast<const uint32_t *>(a.to.dense + at[0]));
        uint32_t *top = (few ? block_top : a.top) + slot;
        if (*(const volatile uint32_t *)top < exponent) atomicMax(top, exponent);
    }
    if constexpr (few) {
        __syncthreads();
        for (int i = (int)threadIdx.x; i < a.slots; i += NR_BLOCK)
            if (block_top[i]) atomicMax(a.top + i, block_top[i]);
    }
}

template <class D, bool few>
__global__ void __launch_bounds__(NR_BLOCK) add_terms(const __grid_constant__ sums_args a) {
    __shared__ uint32_t low[few ? FEW_SLOTS : 1], high[few ? FEW_SLOTS : 1];
    if constexpr (few) {
        for (int i = (int)threadIdx.x; i < a.slots; i += NR_BLOCK) low[i] = high[i] = 0;
        __syncthreads();
    }
    for (uint32_t i = blockIdx.x * NR_BLOCK + threadIdx.x; i < a.to.n; i += gridDim.x * NR_BLOCK) {
        int64_t at[4];
        const int64_t slot = slot_of(a, i, at);
        if (slot < 0) continue;
        const auto x = *reinterpret_cast<const typename D::S *>(a.to.dense + at[0]);
        const uint64_t term = term_of(x, D::kind == NR_KIND_F ? a.top[slot] : 0, a.up);
        if constexpr (few) { /* in halves: shared memory adds 32 bits at once */
            const uint32_t half = (uint32_t)term, carry = atomicAdd(low + slot, half) > ~half;
            const uint32_t rest = (uint32_t)(term >> 32) + carry;
            if (rest) atomicAdd(high + slot, rest);
        } else {
            atomicAdd(a.sum + slot, (unsigned long long)term);
        }
    }
    if constexpr (few) {
        __syncthreads();
        for (int i = (int)threadIdx.x; i < a.slots; i += NR_BLOCK)
            if (low[i] | high[i]) atomicAdd(a.sum + i, (unsigned long long)high[i] << 32 | low[i]);
    }
}

/* A thread a slot; the nest of `to` is that of the columns here. */
template <class D> __global__ void __launch_bounds__(NR_BLOCK) write_sums(const __grid_constant__ sums_args a) {
    const int64_t slot = (int64_t)blockIdx.x * NR_BLOCK + threadIdx.x;
    if (slot >= a.slots) return;
    const uint32_t top = D::kind == NR_KIND_F ? a.top[slot] : 0;
    const uint64_t sum = a.sum[slot];
    if (D::kind == NR_KIND_F ? top == 0 : sum == 0) return; /* nothing was added */
    int64_t at[3];
    a.to.where.find((uint32_t)(slot / a.to.axis_size), at);
    auto *to = reinterpret_cast<typename D::S *>(a.to.target + at[2] + slot % a.to.axis_size * a.to.axis_stride);
    *to = with_sum<D>(*to, sum, top, a.up);
}

template <class D> static void launch_sums(const nr_gpu *gpu, sums_args &a, const index_args &columns) {
    const bool few = a.slots <= FEW_SLOTS;
    int64_t blocks = blocks_for(a.to.n, NR_BLOCK);
    if (few && blocks > gpu->multiprocessors * 8) blocks = gpu->multiprocessors * 8;
    if (D::kind == NR_KIND_F)
        LAUNCH((few ? find_tops<true> : find_tops<false>), (unsigned)blocks, NR_BLOCK, 0, gpu->stream, a);
    LAUNCH((few ? add_terms<D, true> : add_terms<D, false>), (unsigned)blocks, NR_BLOCK, 0, gpu->stream, a);
    a.to = columns;
    LAUNCH(write_sums<D>, blocks_for(a.slots, NR_BLOCK), NR_BLOCK, 0, gpu->stream, a);
}

bool nr_cuda_sums_apply(const nr_call *call, int64_t columns, int64_t steps) {
    const nr_index_plan &plan = *static_cast<const nr_index_plan *>(call->plan);
    if (call->op != NR_SCATTER_ADD || call->dtype == NORCH_FLOAT64 || plan.is_offset) return false;
    return plan.axis_size <= 4 * steps + FEW_SLOTS && columns * plan.axis_size <= UINT32_MAX;
}

int32_t nr_cuda_scatter_sums(const nr_call *call, const nr_plan &nest, const nr_plan &columns) {
    const nr_gpu *gpu = gpu_of(call);
    sums_args a = {};
    a.to = index_args_of(call, nest);
    a.each.ndim = nest.ndim;
    int64_t before = 1; /* columns */
    for (int32_t d = 0; d < nest.ndim; d++) {
        const bool moves = nest.stride[2][d] != 0;
        a.each.size[d] = a.to.where.size[d];
        for (int o = 0; o < 3; o++) a.each.stride[o][d] = nest.stride[o][d];
        a.each.stride[3][d] = moves ? before * a.to.axis_size : 0;
        if (moves) before *= nest.size[d];
    }
    a.slots = before * a.to.axis_size;
    int32_t bits = 0; /* of the number of terms that a slot may get */
    while ((int64_t)1 << bits <= nest.numel / before) bits++;
    a.up = 63 - 24 - bits;
    const size_t bytes = (size_t)a.slots * (sizeof *a.sum + sizeof *a.top);
    const scratch slots(gpu, bytes);
    if (slots.failed()) return NORCH_ERROR_MEMORY;
    a.sum = reinterpret_cast<unsigned long long *>(slots.memory);
    a.top = reinterpret_cast<uint32_t *>(a.sum + a.slots);
    TRY(nr_call_name(call), cudaMemsetAsync(slots.memory, 0, bytes, gpu->stream));
    const index_args to_columns = index_args_of(call, columns);
    switch (call->dtype) {
#define WIDE(NAME, name, ...)                                                                       \
    case NORCH_##NAME:                                                                              \
        if constexpr (NORCH_##NAME != NORCH_FLOAT64) launch_sums<dtype_##name>(gpu, a, to_columns); \
        break;
#define NARROW(...)
#include "../dtypes.def"
    }
    return launched(call);
}
