/* graph: calls of a program as one CUDA graph, whose launch takes a third of the time of launching its kernels one by
 * one.
 *
 *   BEGIN   the stream notes kernels instead of running them       END   the notes become a graph
 *   RUN     the graph runs, in the order of the stream             FREE
 *
 * Scratch memory becomes a part of the graph: while the stream notes, it comes from cudaMallocAsync and not from the
 * lists of cuda.cu, so that it belongs to the graph alone. */
#include "cuda.cuh"

bool nr_capturing;

static int32_t end_capture(const nr_gpu *gpu, void **graph) {
    cudaGraph_t noted = nullptr;
    cudaGraphExec_t instance = nullptr;
    nr_capturing = false;
    cudaError_t error = cudaStreamEndCapture(gpu->stream, &noted);
    if (error == cudaSuccess) error = cudaGraphInstantiate(&instance, noted, 0);
    if (noted) cudaGraphDestroy(noted);
    if (error != cudaSuccess) cudaGetLastError(); /* no graph: the calls are run one by one */
    *graph = instance;
    return NORCH_OK;
}

int32_t nr_cuda_graph(const nr_backend *self, int32_t action, void **graph) {
    const nr_gpu *gpu = reinterpret_cast<const nr_gpu *>(self);
    if (action == NR_GRAPH_FREE) {
        if (!nr_forked && *graph) {
            entered there(gpu);
            cudaStreamSynchronize(gpu->stream); /* it may be running */
            cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(*graph));
        }
        *graph = nullptr;
        return NORCH_OK;
    }
    NR_TRY(nr_cuda_enter(self));
    if (action == NR_GRAPH_BEGIN) {
        TRY("graph", cudaStreamBeginCapture(gpu->stream, cudaStreamCaptureModeThreadLocal));
        nr_capturing = true;
    } else if (action == NR_GRAPH_END) {
        return end_capture(gpu, graph);
    } else {
        TRY("graph", cudaGraphLaunch(static_cast<cudaGraphExec_t>(*graph), gpu->stream));
    }
    return NORCH_OK;
}
