/* device: what a device has that the CPU has not: streams, events, graphs, pinned memory, counters of memory: a part of the
 * table of backend.h that no operation uses; and how a device comes in a plugin. */
#ifndef NR_DEVICE_H
#define NR_DEVICE_H

#include "backend.h"

/* Bytes of the host, or of the device, for an address of the device. */
typedef struct nr_feed {
    void *to;
    const void *from;
    int64_t bytes;
    bool from_host;
} nr_feed;

/* Functions that the CPU does not have. A device does what one stream is given in that order, and what two are given in
 * any, but for events, which mark points in a stream, and which another may wait for. Streams have numbers: 0 is the
 * default one, -1 stands for the current one of the running thread, which gets all that does not name one. */
struct nr_device {
    int32_t (*enter)(const nr_backend *self); /* makes it the current device; an error if this process cannot use it */
    int32_t (*properties)(const nr_backend *self, char *name, size_t capacity, int64_t *values);
    int32_t (*memory)(const nr_backend *self, int64_t *values);
    int32_t (*reset_peak)(const nr_backend *self);
    int32_t (*empty_cache)(const nr_backend *self);
    int32_t (*stream)(const nr_backend *self, int32_t action, int64_t *stream, double *value);
    int32_t (*event)(const nr_backend *self, int32_t action, int64_t stream, void **event, void *other, double *value);
    /* A stream other than that in which the memory was allocated uses it: once it is freed, nobody gets it before what
     * the stream has been given until then is done. */
    int32_t (*uses)(const nr_backend *self, void *memory, int64_t stream);
    /* A block of pinned host memory, which copies need not stage; *memory points at its bytes. */
    void *(*pinned)(const nr_backend *self, size_t n, void **memory);
    /* Called after a copy from the block that continues after from_host() has returned. */
    void (*reads_pinned)(const nr_backend *self, void *block);
    void (*unpin)(void *block);
    /* Between BEGIN and END calls are noted and not run; END makes a graph of them, NULL where that is not possible. */
    int32_t (*graph)(const nr_backend *self, int32_t action, void **graph);
    /* The bytes of what a call reads anew in each run, such as an optimizer's options; writes them to `to`, unless that is
     * NULL. 0: it has none. Once its plan has a slot, which lies on the device, the call's kernels read them there. */
    int64_t (*slot)(const nr_call *call, void *to);
    /* Moves bytes to where kernels read them, in as few launches as possible. Those of the host have been read then. */
    int32_t (*feed)(const nr_backend *self, int64_t count, const nr_feed *feeds);
};

typedef enum nr_graph { NR_GRAPH_BEGIN, NR_GRAPH_END, NR_GRAPH_RUN, NR_GRAPH_FREE } nr_graph;

/* Actions of nr_device.event: make, which can tell time if *value is not 0; record in a stream; wait until it has passed; has
 * it passed (value); milliseconds from *event to other (value); free; let a stream wait for it. */
typedef enum nr_event {
    NR_EVENT_MAKE,
    NR_EVENT_RECORD,
    NR_EVENT_WAIT,
    NR_EVENT_ASK,
    NR_EVENT_TIME,
    NR_EVENT_FREE,
    NR_EVENT_HOLD
} nr_event;

/* Actions of nr_device.stream: *stream becomes the number of one that is made, of high priority where *value is below 0;
 * of the current one; the thread uses *stream from now on; wait for all its work; has all its work been done (value);
 * *stream becomes the handle of CUDA. */
typedef enum nr_stream_action {
    NR_STREAM_MAKE,
    NR_STREAM_HERE,
    NR_STREAM_USE,
    NR_STREAM_WAIT,
    NR_STREAM_ASK,
    NR_STREAM_HANDLE
} nr_stream_action;

/* ---- plugins --------------------------------------------------------------------------------- */

/* A plugin knows the library only by nr_host. One that was built against another table than backend.h has is refused by its
 * ABI number. */
uint64_t nr_abi(void);

/* What a plugin uses of the library, which it is not linked with. */
typedef struct nr_host {
    int32_t (*fail)(int32_t kind, const char *format, ...);
    bool (*allocation_fails)(void); /* true when a test wants this allocation to fail */
    const nr_op_row *ops;
    const nr_dtype_row *dtypes;
    /* Calls body(context, chunk) for each chunk in [0, chunks), on several threads. */
    void (*share)(int64_t chunks, void (*body)(void *context, int64_t chunk), void *context);
} nr_host;

/* The two symbols of a plugin: nr_plugin_abi, which is called first, and nr_plugin_open, which gives an array of backends,
 * one a device (NULL: an error is set). */
typedef uint64_t (*nr_plugin_abi_function)(void);
typedef const nr_backend *const *(*nr_plugin_open_function)(const nr_host *host, int32_t *count);

#endif
