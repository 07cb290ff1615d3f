/* feed: copies bytes of the host and the device to where the kernels of a graph read them, by one launch. Bytes of the
 * host are arguments of the kernel, so that they need not be kept until it has run.
 *
 *   feeds     [ argument x     ][ argument y ][ slots ]
 *   blocks    [ 0  | 1  | 2    ][ 3  | 4     ][ 5     ]    A_BLOCK bytes each, or what is left
 */
#include "cuda.cuh"

#define AT_ONCE 24
#define ON_HOST 2048 /* bytes that come with a launch */
#define WORD 16
#define A_BLOCK (NR_BLOCK * WORD)

struct fed {
    char *to;
    const char *from; /* NULL: among the arguments, at */
    uint32_t bytes, at;
};
struct feed_args {
    fed feeds[AT_ONCE];
    uint32_t first_block[AT_ONCE + 1];
    uint32_t count, used;
    __align__(WORD) unsigned char bytes[ON_HOST];
};

__global__ void __launch_bounds__(NR_BLOCK) feed(const __grid_constant__ feed_args a) {
    uint32_t f = 0;
    while (blockIdx.x >= a.first_block[f + 1]) f++;
    const fed &input = a.feeds[f];
    const uint32_t i = (blockIdx.x - a.first_block[f]) * A_BLOCK + threadIdx.x * WORD;
    if (i >= input.bytes) return;
    const char *from = input.from ? input.from + i : reinterpret_cast<const char *>(a.bytes) + input.at + i;
    char *to = input.to + i;
    if (input.bytes - i >= WORD && (reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to)) % WORD == 0) {
        *reinterpret_cast<pack<uint64_t, 2> *>(to) = *reinterpret_cast<const pack<uint64_t, 2> *>(from);
        return;
    }
    for (uint32_t k = 0; k < WORD && i + k < input.bytes; k++) to[k] = from[k];
}

static int32_t send(const nr_gpu *gpu, feed_args *a) {
    if (a->count == 0) return NORCH_OK;
    LAUNCH(feed, a->first_block[a->count], NR_BLOCK, 0, gpu->stream, *a);
    TRY("feed", cudaGetLastError());
    a->count = a->used = 0;
    return NORCH_OK;
}

int32_t nr_cuda_feed(const nr_backend *self, int64_t count, const nr_feed *feeds) {
    const nr_gpu *gpu = reinterpret_cast<const nr_gpu *>(self);
    NR_TRY(nr_cuda_enter(self));
    feed_args a = {};
    for (int64_t i = 0; i < count; i++) {
        const nr_feed &whole = feeds[i];
        for (int64_t done = 0, n; done < whole.bytes; done += n) {
            if (a.count == AT_ONCE || (whole.from_host && a.used == ON_HOST)) NR_TRY(send(gpu, &a));
            const int64_t most = whole.from_host ? ON_HOST - a.used : (int64_t)1 << 30, left = whole.bytes - done;
            n = left < most ? left : most;
            const char *from = static_cast<const char *>(whole.from) + done;
            a.feeds[a.count] = {static_cast<char *>(whole.to) + done, whole.from_host ? nullptr : from, (uint32_t)n,
                                a.used};
            a.first_block[a.count + 1] = a.first_block[a.count] + blocks_for(n, A_BLOCK);
            a.count++;
            if (!whole.from_host) continue;
            memcpy(a.bytes + a.used, from, (size_t)n);
            a.used += (uint32_t)(n + WORD - 1) / WORD * WORD;
        }
    }
    return send(gpu, &a);
}

int64_t nr_cuda_slot(const nr_call *call, void *to) {
    if (call->family == NR_RANDOM) return nr_cuda_random_slot(call, to);
    return call->family == NR_OPTIM ? nr_cuda_optim_slot(call, to) : 0;
}
