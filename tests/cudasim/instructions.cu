/* instructions: a warp that executes one of csrc/cuda/mma.cuh, for tests/cuda/test_cudasim_instructions.py, which knows their layouts; and
 * what must not be done with them. */
#include "../../csrc/cuda/mma.cuh"

enum {
    TF32,
    TF32_FROM_ZERO,
    FLOAT16,
    BFLOAT16,
    FLOAT64,
    LOAD,
    LOAD_TRANSPOSED,
    ROUND,
    SPLIT,
    COPY_4,
    COPY_8,
    COPY_16,
    READ_BEFORE_WAIT,
    WAIT_FOR_TOO_FEW,
    LANE_MISSING,
    OTHER_INSTRUCTION,
    UNALIGNED_SOURCE,
    UNALIGNED_PLACE
};

/* in: registers of A of all lanes, then of B, then of C; out: those of C. */
template <int kind, class Sum, class Word, int a_count, int b_count>
__device__ void multiply(const unsigned char *in, unsigned char *out) {
    const int lane = (int)threadIdx.x;
    const Word *words = reinterpret_cast<const Word *>(in);
    const Sum *sums = reinterpret_cast<const Sum *>(words + 32 * (a_count + b_count));
    Word a[a_count], b[b_count];
    Sum c[4];
    for (int r = 0; r < a_count; r++) a[r] = words[lane * a_count + r];
    for (int r = 0; r < b_count; r++) b[r] = words[32 * a_count + lane * b_count + r];
    for (int q = 0; q < 4; q++) c[q] = sums[lane * 4 + q];
    if constexpr (kind == FLOAT64) {
        mma_float64(c, a, b);
    } else if constexpr (kind == FLOAT16) {
        mma_16bit<dtype_float16>(c, a, b[0], b[1]);
    } else if constexpr (kind == BFLOAT16) {
        mma_16bit<dtype_bfloat16>(c, a, b[0], b[1]);
    } else if constexpr (kind == TF32_FROM_ZERO) {
        mma_tf32_from_zero(c, a, b[0], b[1]);
    } else if constexpr (kind == OTHER_INSTRUCTION) {
        void (*which)(float (&)[4], const uint32_t (&)[4], uint32_t, uint32_t) =
            lane < 8 ? mma_tf32 : mma_16bit<dtype_float16>;
        which(c, a, b[0], b[1]);
    } else if (kind != LANE_MISSING || lane != 7) {
        mma_tf32(c, a, b[0], b[1]);
    }
    for (int q = 0; q < 4; q++) reinterpret_cast<Sum *>(out)[lane * 4 + q] = c[q];
}

/* in: 1024 bytes, the rows of 8 x 8 matrices of 16-bit elements, of which lane l names row l. */
template <bool transposed> __device__ void load(const unsigned char *in, unsigned char *out, unsigned char *shared) {
    const int lane = (int)threadIdx.x;
    memcpy(shared + lane * 16, in + lane * 16, 16);
    __syncthreads();
    uint32_t r[4];
    const uint32_t row = shared_address(shared) + (uint32_t)lane * 16;
    if (transposed)
        load_matrices_transposed(r, row);
    else
        load_matrices(r, row);
    memcpy(out + lane * 16, r, 16);
}

/* in: 16 bytes a lane, of which each third lane gets zeros, and one in two groups; out: what came. */
template <int bytes, int kind>
__device__ void copy(const unsigned char *in, unsigned char *out, unsigned char *shared) {
    const int lane = (int)threadIdx.x;
    const uint32_t to = shared_address(shared) + (uint32_t)lane * 16;
    for (int i = 0; i < 16; i += bytes) {
        copy_async<bytes>(to + i + (kind == UNALIGNED_PLACE ? 2 : 0),
                          in + lane * 16 + i + (kind == UNALIGNED_SOURCE ? 4 : 0), lane % 3 != 0);
        if (i == 0 || i == 16 - bytes) commit_copies();
    }
    if (kind == WAIT_FOR_TOO_FEW)
        wait_copies<1>();
    else if (kind != READ_BEFORE_WAIT)
        wait_copies<0>();
    memcpy(out + lane * 16, shared + lane * 16, 16);
}

template <int kind> __global__ void execute(const unsigned char *in, unsigned char *out) {
    DYNAMIC_SHARED(unsigned char, shared);
    const int lane = (int)threadIdx.x;
    if constexpr (kind == FLOAT64) {
        multiply<kind, double, double, 8, 4>(in, out);
    } else if constexpr (kind == LOAD || kind == LOAD_TRANSPOSED) {
        load<kind == LOAD_TRANSPOSED>(in, out, shared);
    } else if constexpr (kind == ROUND || kind == SPLIT) {
        const uint32_t *x = reinterpret_cast<const uint32_t *>(in);
        uint32_t *y = reinterpret_cast<uint32_t *>(out);
        if (kind == ROUND)
            y[lane] = round_tf32(x[lane]);
        else
            split_tf32(x[lane], &y[lane * 2], &y[lane * 2 + 1]);
    } else if constexpr (kind == COPY_4 || kind == COPY_8) {
        copy<kind == COPY_4 ? 4 : 8, kind>(in, out, shared);
    } else if constexpr (kind == COPY_16 || kind == UNALIGNED_SOURCE || kind == UNALIGNED_PLACE) {
        copy<16, kind>(in, out, shared);
    } else if constexpr (kind == READ_BEFORE_WAIT || kind == WAIT_FOR_TOO_FEW) {
        copy<8, kind>(in, out, shared);
    } else {
        multiply<kind, float, uint32_t, 4, 2>(in, out);
    }
}

typedef void (*kernel)(const unsigned char *, unsigned char *);
static const kernel kernels[] = {execute<TF32>,
                                 execute<TF32_FROM_ZERO>,
                                 execute<FLOAT16>,
                                 execute<BFLOAT16>,
                                 execute<FLOAT64>,
                                 execute<LOAD>,
                                 execute<LOAD_TRANSPOSED>,
                                 execute<ROUND>,
                                 execute<SPLIT>,
                                 execute<COPY_4>,
                                 execute<COPY_8>,
                                 execute<COPY_16>,
                                 execute<READ_BEFORE_WAIT>,
                                 execute<WAIT_FOR_TOO_FEW>,
                                 execute<LANE_MISSING>,
                                 execute<OTHER_INSTRUCTION>,
                                 execute<UNALIGNED_SOURCE>,
                                 execute<UNALIGNED_PLACE>};

extern "C" void cudasim_mend(void);

/* 0: out has the result; -1: the device has ended, and message says why. */
extern "C" __attribute__((visibility("default"))) int instruction_try(int kind, const void *in, size_t in_bytes,
                                                                      void *out, size_t out_bytes, char *message,
                                                                      size_t room) {
    unsigned char *from = nullptr, *to = nullptr;
    cudaStream_t stream;
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (!error) error = cudaMallocAsync((void **)&from, in_bytes + 16, stream);
    if (!error) error = cudaMallocAsync((void **)&to, out_bytes, stream);
    if (!error) error = cudaMemcpyAsync(from, in, in_bytes, cudaMemcpyHostToDevice, stream);
    if (!error) {
        LAUNCH(kernels[kind], 1, 32, 1024, stream, (const unsigned char *)from, to);
        error = cudaGetLastError();
    }
    if (!error) error = cudaMemcpyAsync(out, to, out_bytes, cudaMemcpyDeviceToHost, stream);
    if (!error) error = cudaFreeAsync(from, stream);
    if (!error) error = cudaFreeAsync(to, stream);
    if (!error) error = cudaStreamSynchronize(stream);
    strncpy(message, cudaGetErrorString(error), room - 1);
    message[room - 1] = 0;
    cudasim_mend();
    return error ? -1 : 0;
}
