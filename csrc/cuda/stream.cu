/* stream: the streams of a device and the events that order them.
 *
 *   stream 0   kernel | kernel | record e ........ | kernel          what one stream is given is done in that order,
 *   stream 1          copy | copy | wait for e ... kernel            what two are given in any, unless an event says
 *
 * Each thread of the host has a current stream a device, to which its calls go (nr_gpu.stream). Streams are
 * few, and are never destroyed: a program that requests more gets earlier streams again, as from PyTorch's pools
 * (c10/cuda/CUDAStream.cpp). */
#include "cuda.cuh"

#include <mutex>

#define A_PRIORITY 31 /* streams that are made of each */

bool nr_several_streams;

static thread_local unsigned char here[NR_MOST_DEVICES]; /* the number of the current stream */

int nr_stream_here::chosen() const { return here[device]; }

int nr_cuda_stream_number(const nr_gpu *gpu, int64_t stream) {
    if (stream == -1) return gpu->stream.number();
    if (stream >= 0 && stream < NR_MOST_STREAMS && gpu->streams[stream]) return (int)stream;
    nr_library->fail(NORCH_ERROR_VALUE, "stream: %s has no stream %lld", gpu->backend.name, (long long)stream);
    return -1;
}

cudaError_t nr_cuda_wait(const nr_gpu *gpu) {
    return nr_several_streams ? cudaDeviceSynchronize() : cudaStreamSynchronize(gpu->streams[0]);
}

static int32_t make(nr_gpu *gpu, bool high, int64_t *number) {
    static std::mutex lock;
    static unsigned created[NR_MOST_DEVICES][2];
    std::lock_guard<std::mutex> guard(lock);
    const unsigned slot = 1 + high * A_PRIORITY + created[gpu->index][high] % A_PRIORITY;
    if (!gpu->streams[slot]) {
        int least = 0, greatest = 0;
        TRY("stream", cudaDeviceGetStreamPriorityRange(&least, &greatest));
        TRY("stream",
            cudaStreamCreateWithPriority(&gpu->streams[slot], cudaStreamNonBlocking, high ? greatest : least));
    }
    created[gpu->index][high]++;
    nr_several_streams = true;
    *number = slot;
    return NORCH_OK;
}

/* Whether the queried work is done, from the status that CUDA returned. */
static int32_t say_whether(const char *op, cudaError_t answer, double *value) {
    cudaGetLastError();
    if (answer != cudaSuccess && answer != cudaErrorNotReady) return nr_cuda_fail(op, answer);
    *value = answer == cudaSuccess;
    return NORCH_OK;
}

int32_t nr_cuda_stream(const nr_backend *self, int32_t action, int64_t *stream, double *value) {
    NR_TRY(nr_cuda_enter(self));
    nr_gpu *gpu = &nr_gpus[self->device_index];
    if (action == NR_STREAM_MAKE) return make(gpu, *value < 0, stream);
    const int number = nr_cuda_stream_number(gpu, action == NR_STREAM_HERE ? -1 : *stream);
    if (number < 0) return NORCH_ERROR_VALUE;
    if (action == NR_STREAM_ASK) return say_whether("stream", cudaStreamQuery(gpu->streams[number]), value);
    if (action == NR_STREAM_HERE)
        *stream = number;
    else if (action == NR_STREAM_HANDLE)
        *stream = (int64_t)(uintptr_t)gpu->streams[number];
    else if (action == NR_STREAM_USE)
        here[gpu->index] = (unsigned char)number;
    else
        TRY("stream", cudaStreamSynchronize(gpu->streams[number]));
    return action == NR_STREAM_WAIT ? nr_cuda_raise_reported(self, nullptr) : NORCH_OK;
}

static int32_t tell_time(cudaEvent_t from, cudaEvent_t to, double *value) {
    float milliseconds = 0;
    cudaError_t answer = cudaEventElapsedTime(&milliseconds, from, to);
    if (answer == cudaErrorNotReady) {
        cudaGetLastError();
        return nr_library->fail(NORCH_ERROR_DEVICE, "elapsed_time: the device has not passed both events; "
                                                    "synchronize() first");
    }
    TRY("event", answer);
    *value = (double)milliseconds;
    return NORCH_OK;
}

int32_t nr_cuda_event(const nr_backend *self, int32_t action, int64_t stream, void **event, void *other,
                      double *value) {
    if (action == NR_EVENT_FREE) {
        if (!nr_forked && *event) cudaEventDestroy(static_cast<cudaEvent_t>(*event));
        *event = nullptr;
        return NORCH_OK;
    }
    NR_TRY(nr_cuda_enter(self));
    const nr_gpu *gpu = &nr_gpus[self->device_index];
    cudaEvent_t handle = static_cast<cudaEvent_t>(*event);
    switch (action) {
    case NR_EVENT_MAKE:
        TRY("event", cudaEventCreateWithFlags(&handle, *value != 0 ? cudaEventDefault : cudaEventDisableTiming));
        *event = handle;
        return NORCH_OK;
    case NR_EVENT_WAIT: TRY("event", cudaEventSynchronize(handle)); return NORCH_OK;
    case NR_EVENT_ASK: return say_whether("event", cudaEventQuery(handle), value);
    case NR_EVENT_TIME: return tell_time(handle, static_cast<cudaEvent_t>(other), value);
    }
    const int number = nr_cuda_stream_number(gpu, stream);
    if (number < 0) return NORCH_ERROR_VALUE;
    if (action == NR_EVENT_RECORD)
        TRY("event", cudaEventRecord(handle, gpu->streams[number]));
    else
        TRY("event", cudaStreamWaitEvent(gpu->streams[number], handle, 0));
    return NORCH_OK;
}
