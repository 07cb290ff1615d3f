/* faulty: kernels with mistakes that the simulation must catch, beside one without; tests/cuda/test_cudasim.py tries them. */
#include "cuda_runtime.h"

enum { RIGHT, NO_BARRIER, BARRIER_FOR_SOME, TWO_BARRIERS, PAST_THE_END, LANE_MISSING, HOST_POINTER, KINDS };
#define N 256

/* out[i] = 2 j, j being the neighbour of i in a pair that crosses warps. */
template <int kind> __global__ void exchange(int *out) {
    DYNAMIC_SHARED(int, shared);
    const int t = (int)threadIdx.x, other = t ^ 32;
    shared[t] = 2 * t;
    if (kind == BARRIER_FOR_SOME) {
        if (t < 100) __syncthreads();
    } else if (kind == TWO_BARRIERS) {
        if (t < 100)
            __syncthreads();
        else
            __syncthreads();
    } else if (kind != NO_BARRIER) {
        __syncthreads();
    }
    int value = shared[other];
    if (kind == LANE_MISSING && t % 32 < 31) value = __shfl_xor_sync(0xffffffffu, value, 0);
    out[kind == PAST_THE_END ? t + 1 : t] = value;
}

static void (*const kernels[])(int *) = {exchange<RIGHT>,        exchange<NO_BARRIER>,   exchange<BARRIER_FOR_SOME>,
                                         exchange<TWO_BARRIERS>, exchange<PAST_THE_END>, exchange<LANE_MISSING>,
                                         exchange<RIGHT>};

extern "C" void cudasim_mend(void);

/* How many results are wrong; -1: the device has ended, and message says why. */
extern "C" __attribute__((visibility("default"))) int faulty_try(int kind, char *message, size_t room) {
    int found[N], wrong = 0, *out = nullptr;
    cudaStream_t stream;
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (!error) error = cudaMallocAsync((void **)&out, sizeof found, stream);
    if (!error) {
        LAUNCH(kernels[kind], 1, N, N * sizeof(int), stream, kind == HOST_POINTER ? found : out);
        error = cudaGetLastError();
    }
    if (!error) error = cudaMemcpyAsync(found, out, sizeof found, cudaMemcpyDeviceToHost, stream);
    if (!error && out) error = cudaFreeAsync(out, stream);
    if (!error) error = cudaStreamSynchronize(stream);
    strncpy(message, cudaGetErrorString(error), room - 1);
    message[room - 1] = 0;
    for (int i = 0; i < N && !error; i++) wrong += found[i] != 2 * (i ^ 32);
    cudasim_mend();
    return error ? -1 : wrong;
}
