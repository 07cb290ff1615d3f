/* cudasim: the CUDA runtime as g++ sees it when it compiles csrc/cuda/ for the tests: kernels run on the CPU.
 *
 * It proves logic, not speed. What it is strict about: work waits in its stream until somebody synchronises; streams
 * run in any order, but for what events order; device
 * memory cannot be touched by the host meanwhile, and lies in an arena where bounds are watched; threads and blocks
 * run in a shuffled order; barriers must be reached by all threads of a block, at one line, and warp operations by all
 * lanes of their mask; a kernel that is given a pointer of the host fails. Threads are fibers: one runs until it must
 * wait for others. The host's side is cudasim.cpp. */
#ifndef CUDASIM_H
#define CUDASIM_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <functional>

#define CUDASIM 1
#define CUDART_VERSION 13000
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __restrict__ __restrict
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static
#define __grid_constant__
#define __constant__ static

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
struct alignas(16) float4 {
    float x, y, z, w;
};

/* ---- inside a kernel ---------------------------------------------------------------------------------------- */

#pragma GCC visibility push(default) /* for kernels that are compiled at run time (nvrtc.c) */
namespace cudasim {
/* Where the running thread stands; written by the scheduler at each switch. */
struct place {
    uint3 thread, block;
    dim3 block_size, grid_size;
};
extern place here;
extern unsigned char *dynamic_shared;

void barrier(const char *file, int line);
bool barrier_or(bool value, const char *file, int line);
enum warp_action { SYNC, SHUFFLE, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR, BALLOT, COOPERATE };
uint64_t warp(warp_action action, unsigned mask, uint64_t value, int operand, int width, const char *file, int line);

template <class T>
T shuffle(warp_action action, unsigned mask, T value, int operand, int width, const char *file, int line) {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = warp(action, mask, bits, operand, width, file, line);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* An instruction of a whole warp: when all lanes have brought a task, run is called for each with those of all. */
struct warp_task {
    void (*run)(warp_task *const *lanes, int lane);
};
void cooperate(warp_task *own, const char *file, int line);

/* Dynamic shared memory as instructions name it, by offsets; and copies to it that wait to be finished, each thread's in groups. */
uint32_t shared_offset(const void *p);
unsigned char *shared_bytes(uint32_t at, uint32_t bytes, uint32_t alignment);
void copy_later(uint32_t to, const void *from, int bytes, bool valid);
void end_copy_group();
void finish_copies(int pending);

/* mbarriers, by their offsets in shared memory; copies of tiles; products in groups, each thread's own. */
void init_barrier(uint32_t at, int arrivals);
void arrive(uint32_t at, int bytes);
void wait_barrier(uint32_t at, int parity, const char *file, int line);
void copy_tile_later(uint32_t to, const void *map, const int *at, uint32_t barrier);
void store_tile_later(const void *map, uint32_t from, const int *at);
void finish_stores();
void multiply_later(std::function<void()> run);
void end_product_group();
void finish_products(int pending);

void launch(const void *kernel, dim3 grid, dim3 block, size_t shared, int stream, const void *arguments, size_t bytes,
            std::function<void()> body);
} // namespace cudasim
#pragma GCC visibility pop

#define threadIdx (cudasim::here.thread)
#define blockIdx (cudasim::here.block)
#define blockDim (cudasim::here.block_size)
#define gridDim (cudasim::here.grid_size)
#define warpSize 32
#define __syncthreads() cudasim::barrier(__FILE__, __LINE__)
#define __syncthreads_or(value) cudasim::barrier_or((value) != 0, __FILE__, __LINE__)
#define __syncwarp(...) cudasim::warp(cudasim::SYNC, 0xffffffffu, 0, 0, 32, __FILE__, __LINE__)
#define CUDASIM_SHUFFLE(action, mask, value, operand) \
    cudasim::shuffle(cudasim::action, mask, value, operand, 32, __FILE__, __LINE__)
#define __shfl_sync(mask, value, lane) CUDASIM_SHUFFLE(SHUFFLE, mask, value, lane)
#define __shfl_up_sync(mask, value, delta) CUDASIM_SHUFFLE(SHUFFLE_UP, mask, value, delta)
#define __shfl_down_sync(mask, value, delta) CUDASIM_SHUFFLE(SHUFFLE_DOWN, mask, value, delta)
#define __shfl_xor_sync(mask, value, bits) CUDASIM_SHUFFLE(SHUFFLE_XOR, mask, value, bits)
#define __ballot_sync(mask, value) \
    ((unsigned)cudasim::warp(cudasim::BALLOT, mask, (value) != 0, 0, 32, __FILE__, __LINE__))
#define __any_sync(mask, value) (__ballot_sync(mask, value) != 0)
#define __all_sync(mask, value) (__ballot_sync(mask, !(value)) == 0)

static inline void __threadfence() {}
static inline void __threadfence_system() {}
static inline uint32_t __umulhi(uint32_t a, uint32_t b) { return (uint32_t)(((uint64_t)a * b) >> 32); }
static inline uint64_t __umul64hi(uint64_t a, uint64_t b) { return (uint64_t)(((unsigned __int128)a * b) >> 64); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(uint64_t x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
template <class T> static inline void __stcs(T *to, T x) { *to = x; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline float __int_as_float(int x) {
    float y;
    return memcpy(&y, &x, 4), y;
}
static inline int __float_as_int(float x) {
    int y;
    return memcpy(&y, &x, 4), y;
}
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
template <class T> static inline T __ldg(const T *p) { return *p; }

/* One thread runs at a time, so that plain reads and writes are atomic. */
template <class T, class U> T atomicAdd(T *p, U x) {
    T old = *p;
    *p = (T)(old + (T)x);
    return old;
}
template <class T, class U> T atomicMax(T *p, U x) {
    T old = *p;
    *p = old > (T)x ? old : (T)x;
    return old;
}
template <class T, class U> T atomicMin(T *p, U x) {
    T old = *p;
    *p = old < (T)x ? old : (T)x;
    return old;
}
template <class T, class U> T atomicOr(T *p, U x) {
    T old = *p;
    *p = old | (T)x;
    return old;
}
template <class T, class U> T atomicExch(T *p, U x) {
    T old = *p;
    *p = (T)x;
    return old;
}
template <class T, class U, class V> T atomicCAS(T *p, U compare, V x) {
    T old = *p;
    if (old == (T)compare) *p = (T)x;
    return old;
}

/* ---- launches: the two macros that differ from nvcc's language ---------------------------------------------- */

#define LAUNCH(kernel, grid, block, shared, stream, ...) cudasim::call(kernel, grid, block, shared, stream, __VA_ARGS__)
#define DYNAMIC_SHARED(type, name) type *name = reinterpret_cast<type *>(cudasim::dynamic_shared)
#define TELL_SHARED(bytes)

typedef int cudaStream_t; /* 0: the default one */

namespace cudasim {
/* Data that come with a launch, in an array of this name, may look like anything. */
template <class T> auto clear_data(T &one, int) -> decltype((void)one.bytes[0]) {
    memset(one.bytes, 0, sizeof one.bytes);
}
template <class T> void clear_data(T &, long) {}

template <class... Formal, class... Actual>
void call(void (*kernel)(Formal...), dim3 grid, dim3 block, size_t shared, cudaStream_t stream, Actual... actual) {
    struct alignas(16) packed {
        unsigned char bytes[(sizeof(Formal) + ... + 0)];
    } all;
    size_t at = 0;
    auto add = [&](auto one) {
#if __has_builtin(__builtin_clear_padding)
        __builtin_clear_padding(&one); /* what a stack has left there may look like an address */
#endif
        clear_data(one, 0);
        memcpy(all.bytes + at, &one, sizeof one);
        at += sizeof one;
    };
    (add(Formal(actual)), ...);
    launch((const void *)(uintptr_t)kernel, grid, block, shared, stream, all.bytes, at,
           [=] { kernel(Formal(actual)...); });
}
} // namespace cudasim

/* ---- the runtime's functions that csrc/cuda/ calls ------------------------------------------------------------ */

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorUnsupportedPtxVersion = 222,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchFailure = 719,
    cudaErrorStreamCaptureUnsupported = 900
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };
enum cudaMemoryType { cudaMemoryTypeUnregistered = 0, cudaMemoryTypeHost = 1, cudaMemoryTypeDevice = 2 };
struct cudaPointerAttributes {
    cudaMemoryType type;
};
enum cudaMemPoolAttr {
    cudaMemPoolAttrReleaseThreshold = 4,
    cudaMemPoolAttrReservedMemCurrent = 5,
    cudaMemPoolAttrReservedMemHigh = 6
};
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess = 0, cudaDriverEntryPointSymbolNotFound = 1 };
#define cudaEnableDefault 0
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
struct cudaFuncAttributes {
    int ptxVersion;
};
struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    int major, minor, multiProcessorCount;
    size_t sharedMemPerBlockOptin;
};
typedef struct cudasim_event *cudaEvent_t;
typedef int cudaMemPool_t;
#define cudaStreamNonBlocking 1
#define cudaHostAllocMapped 2
#define cudaHostAllocDefault 0
#define cudaEventDefault 0
#define cudaEventDisableTiming 2

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaGetLastError(void);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep);
cudaError_t cudaMallocAsync(void **memory, size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream);
typedef struct cudasim_graph *cudaGraph_t, *cudaGraphExec_t;
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *memory);
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, void (*kernel)());
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult *result);
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, void (*kernel)());
template <class F> cudaError_t cudaFuncSetAttribute(F *, cudaFuncAttribute, int) { return cudaSuccess; }

#endif
