/* device: the functions that backends other than the CPU have (streams, events, graphs, pinned memory, memory
 * statistics), which no operation uses, and the interface between the library and a plugin. */
#ifndef NR_DEVICE_H
#define NR_DEVICE_H

#include "backend.h"

/* Kernels of a device may depend on whether an address is a multiple of this: those that read several elements per
 * access add them up in another order. */
#define NR_ALIGNMENT 16

/* A copy of bytes, from the host or the device, to an address of the device. */
typedef struct nr_feed {
    void *to;
    const void *from;
    int64_t bytes;
    bool from_host;
} nr_feed;

/* A device runs the work of one stream in order. Work of two streams has no order, unless one waits for an event
 * recorded in the other. Streams are numbers: 0 is the default stream, -1 the calling thread's current stream, which
 * gets all work that names no stream. */
struct nr_device {
    int32_t (*enter)(const nr_backend *self); /* makes it the current device; an error if this process cannot use it */
    int32_t (*properties)(const nr_backend *self, char *name, size_t capacity, int64_t *values);
    int32_t (*memory)(const nr_backend *self, int64_t *values);
    int32_t (*reset_peak)(const nr_backend *self);
    int32_t (*empty_cache)(const nr_backend *self);
    int32_t (*stream)(const nr_backend *self, int32_t action, int64_t *stream, double *value);
    int32_t (*event)(const nr_backend *self, int32_t action, int64_t stream, void **event, void *other, double *value);
    /* Tells the allocator that another stream than the one it allocated for uses the memory (PyTorch's record_stream):
     * after free() the memory is not reused before the stream's work so far is done. */
    int32_t (*uses)(const nr_backend *self, void *memory, int64_t stream);
    /* A block of pinned host memory, which copies need not stage; *memory points to its bytes. */
    void *(*pinned)(const nr_backend *self, size_t n, void **memory);
    /* Called after a from_host() from the block that may be unfinished. */
    void (*reads_pinned)(const nr_backend *self, void *block);
    void (*unpin)(void *block);
    /* Between BEGIN and END calls are captured instead of run. END makes a graph of them, or NULL if that is
     * impossible. */
    int32_t (*graph)(const nr_backend *self, int32_t action, void **graph);
    /* The number of bytes of a call's arguments that change between runs of a graph, such as an optimizer's options (0:
     * none). Writes them to `to`, unless that is NULL. If the plan has a slot, in device memory, the call's kernels
     * read them there. */
    int64_t (*slot)(const nr_call *call, void *to);
    /* Copies to slots and other device addresses in as few launches as possible. The host's bytes are read before it
     * returns. */
    int32_t (*feed)(const nr_backend *self, int64_t count, const nr_feed *feeds);
    /* norch_device_chain() */
    int64_t (*chain_text)(const nr_backend *self, int64_t number, char *to, int64_t capacity);
};

typedef enum nr_graph { NR_GRAPH_BEGIN, NR_GRAPH_END, NR_GRAPH_RUN, NR_GRAPH_FREE } nr_graph;

/* Actions of nr_device.event. */
typedef enum nr_event {
    NR_EVENT_MAKE,   /* with timing if *value is not 0 */
    NR_EVENT_RECORD, /* in a stream */
    NR_EVENT_WAIT,   /* the host waits for it */
    NR_EVENT_ASK,    /* *value: whether it has passed */
    NR_EVENT_TIME,   /* *value: milliseconds from *event to other */
    NR_EVENT_FREE,
    NR_EVENT_HOLD /* a stream waits for it */
} nr_event;

/* Actions of nr_device.stream. */
typedef enum nr_stream_action {
    NR_STREAM_MAKE,  /* *stream: the number of a new stream, of high priority if *value is below 0 */
    NR_STREAM_HERE,  /* *stream: the current one */
    NR_STREAM_USE,   /* makes *stream the thread's current one */
    NR_STREAM_WAIT,  /* the host waits for all its work */
    NR_STREAM_ASK,   /* *value: whether all its work is done */
    NR_STREAM_HANDLE /* *stream becomes its cudaStream_t */
} nr_stream_action;

/* ---- plugins --------------------------------------------------------------------------------- */

/* What norch_set_nvrtc() was given. */
#define NR_NVRTC_PATHS 8192
extern char nr_nvrtc[NR_NVRTC_PATHS];

/* The hash of all texts that define the tables (ABI_FILES in the Makefile). A plugin with another number is refused. */
uint64_t nr_abi(void);

/* The library's functions and tables that a plugin uses, as it is not linked with the library. */
typedef struct nr_host {
    int32_t (*fail)(int32_t kind, const char *format, ...);
    bool (*allocation_fails)(void); /* true if a test wants this allocation to fail */
    const nr_op_row *ops;
    const nr_dtype_row *dtypes;
    /* Calls body(context, chunk) for each chunk in [0, chunks) on several threads. */
    void (*share)(int64_t chunks, void (*body)(void *context, int64_t chunk), void *context);
    const char *nvrtc; /* norch_set_nvrtc() */
} nr_host;

/* The two symbols of a plugin. nr_plugin_abi is called first; nr_plugin_open returns an array of backends, one for each
 * device (NULL: an error is set). */
typedef uint64_t (*nr_plugin_abi_function)(void);
typedef const nr_backend *const *(*nr_plugin_open_function)(const nr_host *host, int32_t *count);

#endif
