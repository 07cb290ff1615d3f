/* cuda: what the families of the CUDA backend share: loop nests as kernels read them, launches and their failures; see
 * elements.cuh for elements. The same sources are compiled by nvcc, and by g++ against tests/cudasim, which defines
 * LAUNCH and DYNAMIC_SHARED; all else here is plain CUDA C++17. */
#ifndef NR_CUDA_H
#define NR_CUDA_H

#include "elements.cuh"
extern "C" {
#include "../core/backend.h"
#include "../core/device.h"
#include "../core/error.h"
#include "../core/memory.h"
}

/* ---- the library, and the device of a call ----------------------------------------------------------- */

extern const nr_host *nr_library; /* what the library provides */

/* An error that a kernel found: written to memory that the host sees, read when the host next waits. */
enum nr_finding { NR_NOTHING, NR_LOST_INDEX, NR_NO_PROBABILITY, NR_UNMET };
struct nr_report {
    int32_t found;
    int64_t index, size; /* of a lost index; index: of a condition that is not met */
    int64_t total;       /* of a count that the host waits for */
};

#define NR_MOST_STREAMS 64      /* of a device: a bit each in a word */
extern bool nr_several_streams; /* a program has made one: until then there is only number 0 */

/* The stream of a device to which the running thread submits work. */
struct nr_stream_here {
    int device;
    const cudaStream_t *all;
    int number() const { return nr_several_streams ? chosen() : 0; }
    operator cudaStream_t() const { return all[number()]; }

  private:
    int chosen() const;
};

struct nr_gpu {
    nr_backend backend; /* first: a backend is its GPU */
    int index;
    cudaStream_t streams[NR_MOST_STREAMS]; /* 0: not made */
    nr_stream_here stream;                 /* where work goes */
    int multiprocessors;
    int capability;  /* to compute, of the device and of the code: 80 is 8.0 */
    bool is_90;      /* the device itself: code for sm_90a runs on no other */
    int most_shared; /* bytes of shared memory that a block may have */
    volatile nr_report *report, *report_on_device;
};

static inline const nr_gpu *gpu_of(const nr_call *call) { return reinterpret_cast<const nr_gpu *>(call->backend); }

#define NR_MOST_DEVICES 64
extern nr_gpu *nr_gpus;
extern bool nr_forked;  /* CUDA does not work in a child of the process that began with it */
extern bool nr_caching; /* freed memory is kept for reuse */

/* Makes the device of self CUDA's current one. */
int32_t nr_cuda_enter(const nr_backend *self);

/* Does so within a scope where failures cannot be reported: later calls report them. */
struct entered {
    int before = 0;
    bool away;
    explicit entered(const nr_gpu *gpu) {
        away = cudaGetDevice(&before) == cudaSuccess && before != gpu->index;
        if (away) cudaSetDevice(gpu->index);
    }
    ~entered() {
        if (away) cudaSetDevice(before);
    }
};

/* Records a failure of the CUDA runtime in `what`; returns the status. */
int32_t nr_cuda_fail(const char *op, cudaError_t error);
/* A function of the driver's library, with which this one is not linked, as CUDA 12.0 has it; NULL: an older driver. */
void *nr_cuda_driver_function(const char *name);
/* "add", "matmul": the name of a call in messages. */
const char *nr_call_name(const nr_call *call);

/* Streams, events: see core/device.h. */
int32_t nr_cuda_stream(const nr_backend *self, int32_t action, int64_t *stream, double *value);
int32_t nr_cuda_event(const nr_backend *self, int32_t action, int64_t stream, void **event, void *other, double *value);
/* The number of an existing stream, where -1 means the current stream of the thread; else -1, with an error. */
int nr_cuda_stream_number(const nr_gpu *gpu, int64_t stream);
/* Waits for all streams of the device of self. */
cudaError_t nr_cuda_wait(const nr_gpu *gpu);
/* Raises the error that kernels have reported, after a wait; name: the only call that may have caused it, or NULL. */
int32_t nr_cuda_raise_reported(const nr_backend *self, const char *name);

/* Memory of the host that a device reads: see core/device.h. */
void *nr_cuda_pinned(const nr_backend *self, size_t n, void **memory);
void nr_cuda_reads_pinned(const nr_backend *self, void *block);
void nr_cuda_unpin(void *block);
void nr_cuda_empty_pinned();
/* Copies from memory of the host that is not pinned, which has been read when this returns. */
int32_t nr_cuda_copy_staged(const nr_gpu *gpu, void *device, const void *host, size_t n);
void nr_cuda_pinned_counts(int64_t *values); /* bytes in tensors, bytes held, blocks got from CUDA so far */

/* graph.cu: see core/device.h; whether kernels are noted for a graph. Python's lock protects it. */
int32_t nr_cuda_graph(const nr_backend *self, int32_t action, void **graph);
extern bool nr_capturing;
/* feed.cu, and slots of the families that have them. */
int32_t nr_cuda_feed(const nr_backend *self, int64_t count, const nr_feed *feeds);
int64_t nr_cuda_slot(const nr_call *call, void *to);
int64_t nr_cuda_random_slot(const nr_call *call, void *to);
int64_t nr_cuda_optim_slot(const nr_call *call, void *to);
/* chain.cu, chain_compile.cu. */
extern const struct nr_chain_runner nr_cuda_chains;
int64_t nr_cuda_chain_text(const nr_backend *self, int64_t number, char *to, int64_t capacity);

/* Leaves the function if a call of the CUDA runtime failed. */
#define TRY(op, call)                                                   \
    do {                                                                \
        cudaError_t nr_error = (call);                                  \
        if (nr_error != cudaSuccess) return nr_cuda_fail(op, nr_error); \
    } while (0)

/* The status after a launch: an error of the launch itself; errors of the kernel are
 * reported at the next synchronization. */
static inline int32_t launched(const nr_call *call) {
    TRY(nr_call_name(call), cudaGetLastError());
    return NORCH_OK;
}

/* Memory of the device for the duration of a call: it is freed in the order of the stream. */
void *nr_cuda_scratch(const nr_gpu *gpu, size_t bytes);
void nr_cuda_scratch_free(const nr_gpu *gpu, void *memory, size_t bytes);

/* The same for a scope; of 0 bytes memory is NULL. */
struct scratch {
    const nr_gpu *gpu;
    size_t bytes;
    char *memory;
    scratch(const nr_gpu *gpu, size_t bytes)
        : gpu(gpu), bytes(bytes), memory(bytes ? static_cast<char *>(nr_cuda_scratch(gpu, bytes)) : nullptr) {}
    bool failed() const { return bytes && !memory; } /* an error is set */
    ~scratch() {
        if (memory) nr_cuda_scratch_free(gpu, memory, bytes);
    }
    scratch(const scratch &) = delete;
    scratch &operator=(const scratch &) = delete;
};

/* ---- nests --------------------------------------------------------------------------------------------- */

/* The offset of element i of a loop nest, in bytes from the start of each operand. */
template <int operands> struct nest {
    int32_t ndim;
    divisor size[NORCH_MAX_DIMS];
    int64_t stride[operands][NORCH_MAX_DIMS];

    DEVICE void find(uint32_t i, int64_t *at) const {
        for (int o = 0; o < operands; o++) at[o] = 0;
        for (int32_t d = 0; d < ndim; d++) {
            uint32_t rest = d + 1 < ndim ? quotient(i, size[d]) : 0;
            uint32_t coordinate = i - rest * size[d].size;
            for (int o = 0; o < operands; o++) at[o] += (int64_t)coordinate * stride[o][d];
            i = rest;
        }
    }
};

template <int operands>
static inline nest<operands> nest_of(int32_t ndim, const int64_t *size, const int64_t (*stride)[NORCH_MAX_DIMS]) {
    nest<operands> n = {};
    n.ndim = ndim;
    for (int32_t d = 0; d < ndim; d++) {
        n.size[d] = divisor_of(size[d]);
        for (int o = 0; o < operands; o++) n.stride[o][d] = stride[o][d];
    }
    return n;
}

#define NR_MOST_ELEMENTS ((int64_t)1 << 30) /* of a nest that one launch walks */

/* Calls run(part) for parts of the nest that are small enough for a launch, and stops at a failure. */
template <class Run> static int32_t in_parts(const nr_plan &plan, const Run &run) {
    if (plan.numel <= NR_MOST_ELEMENTS) return run(plan);
    int32_t cut = 0;
    for (int32_t d = 1; d < plan.ndim; d++)
        if (plan.size[d] >= plan.size[cut]) cut = d;
    for (int half = 0; half < 2; half++) {
        nr_plan part = plan;
        int64_t middle = plan.size[cut] / 2;
        part.size[cut] = half ? plan.size[cut] - middle : middle;
        part.numel = plan.numel / plan.size[cut] * part.size[cut];
        for (int o = 0; half && o < plan.operands; o++)
            if (plan.data[o] && plan.data[o] != (const char *)&plan.value[o])
                part.data[o] += middle * plan.stride[o][cut];
        for (int o = 0; o < plan.operands; o++)
            if (plan.data[o] == (const char *)&plan.value[o]) part.data[o] = (char *)&part.value[o];
        NR_TRY(in_parts(part, run));
    }
    return NORCH_OK;
}

/* Whether operand o is a number in the plan, in host memory. */
static inline bool is_immediate(const nr_plan &plan, int o) { return plan.data[o] == (const char *)&plan.value[o]; }

/* size: bytes of the number, if it is one. */
static inline operand operand_of(const nr_plan &plan, int o, int64_t size) {
    operand x = {};
    if (is_immediate(plan, o))
        memcpy(&x.value, &plan.value[o], (size_t)size);
    else
        x.data = plan.data[o];
    return x;
}

static inline bool is_aligned(const void *p, int64_t bytes) {
    return reinterpret_cast<uintptr_t>(p) % (uintptr_t)bytes == 0;
}

static inline unsigned blocks_for(int64_t n, int64_t a_block) { return (unsigned)((n + a_block - 1) / a_block); }

/* Launches a kernel that has one argument, in blocks of NR_BLOCK threads. */
template <class Args>
static inline int32_t run_blocks(const nr_call *call, void (*kernel)(Args), unsigned blocks, const Args &args) {
    LAUNCH(kernel, blocks, NR_BLOCK, 0, gpu_of(call)->stream, args);
    return launched(call);
}

/* The kernel for elements of this size, or words. */
#define BY_SIZE(kernel, size) \
    ((size) == 1 ? kernel<uint8_t> : (size) == 2 ? kernel<uint16_t> : (size) == 4 ? kernel<uint32_t> : kernel<uint64_t>)

/* ---- families -------------------------------------------------------------------------------------------- */

#define FAMILY(NAME, name, label, traits) int32_t nr_cuda_##name(const nr_call *call);
#define HOST(NAME, name, label, traits)
#include "../families.def"
int32_t nr_cuda_nonzero(const nr_call *call); /* called by nr_cuda_index */
/* Raises the error of a condition. */
int32_t nr_cuda_fail_check(const nr_backend *self, int64_t condition);

/* Files named *_dtype.cu are compiled once a wide dtype, NR_DTYPE_NAME; each fills its part of the table. */
#define NR_JOIN(a, b) a##_##b
#define NR_JOIN2(a, b) NR_JOIN(a, b)
typedef nr_kernel (*nr_kernel_rows)[NR_DTYPE_COUNT];
#define WIDE(NAME, name, ...)                              \
    void nr_fill_pointwise_##name(nr_kernel_rows kernels); \
    void nr_fill_reduce_##name(nr_kernel_rows kernels);
#define NARROW(...)
#include "../dtypes.def"

#endif
