/* nccl: NCCL's functions between processes whose devices are simulated, over shared memory; for tests. The names, enums and
 * meanings are those of nccl.h 2.27.
 *
 * Each rank has a box that all can read, and one for each other rank. A collective puts its input there, waits until all inputs
 * of that call are there, and computes its own output of them. As real NCCL it works in a stream, in the order of the calls:
 * the simulation (cudasim_queue) tries it until it is done. Calls that do not fit each other, which NCCL may hang in, are told
 * as an asynchronous error. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))
#define MOST_RANKS 8
#define ROOM ((int64_t)64 << 20) /* of a box: pages that nobody writes take no memory */

typedef enum {
    SUCCESS,
    CUDA_ERROR,
    SYSTEM_ERROR,
    INTERNAL_ERROR,
    INVALID_ARGUMENT,
    INVALID_USAGE,
    REMOTE_ERROR
} result;
enum { INT8, UINT8, INT32, UINT32, INT64, UINT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16, DTYPES };
enum { SUM, PROD, MAX, MIN, AVG, OPS };
typedef enum { ALL_REDUCE, BROADCAST, REDUCE, ALL_GATHER, REDUCE_SCATTER, SEND, RECV } kind;

typedef struct {
    char text[128];
} unique_id;

typedef struct {
    int64_t kind, count, dtype, op, root;
} heading;

typedef struct {
    atomic_int ranks, joined;
    atomic_llong posted[MOST_RANKS], done[MOST_RANKS]; /* collectives whose input is there, and that are over */
    atomic_llong sent[MOST_RANKS][MOST_RANKS], received[MOST_RANKS][MOST_RANKS];
    int64_t bytes[MOST_RANKS][MOST_RANKS];
    heading headings[MOST_RANKS];
    atomic_int process[MOST_RANKS];
} board;

typedef struct {
    board *board;
    char *boxes;
    size_t mapped;
    int rank, ranks;
    int64_t collectives, sends[MOST_RANKS], receives[MOST_RANKS]; /* that were given to streams */
    atomic_int error;
    atomic_bool aborted;
} communicator;

typedef struct {
    communicator *comm;
    heading what;
    const void *send;
    void *receive;
    int64_t number;
    bool posted, done;
} call;

typedef struct {
    int count, tries;
    intptr_t stream;
    call calls[64];
} batch;

static _Thread_local int depth; /* of ncclGroupStart */
static _Thread_local batch *open_batch;
static _Thread_local char last_error[200];

static result fail(result error, const char *why) {
    snprintf(last_error, sizeof last_error, "%s", why);
    return error;
}

static int64_t size_of(int64_t dtype) {
    static const int8_t sizes[DTYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    return sizes[dtype];
}

static size_t board_bytes(void) { return (sizeof(board) + 4095) / 4096 * 4096; }

static char *box(const communicator *comm, int from, int to) { /* to: -1: for all */
    return comm->boxes + ROOM * (int64_t)(from * (MOST_RANKS + 1) + to + 1);
}

/* ---- what collectives compute ----------------------------------------------------------------------------- */

#define COMBINE(T)                                                                                 \
    static void combine_##T(const communicator *c, T *out, int64_t first, int64_t n, int64_t op) { \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T all = ((const T *)box(c, 0, -1))[first + i];                                         \
            for (int r = 1; r < c->ranks; r++) {                                                   \
                const T x = ((const T *)box(c, r, -1))[first + i];                                 \
                all = op == PROD  ? (T)(all * x)                                                   \
                      : op == MAX ? (x > all ? x : all)                                            \
                      : op == MIN ? (x < all ? x : all)                                            \
                                  : (T)(all + x);                                                  \
            }                                                                                      \
            out[i] = op == AVG ? (T)(all / (T)c->ranks) : all;                                     \
        }                                                                                          \
    }
COMBINE(int8_t)
COMBINE(uint8_t)
COMBINE(int32_t)
COMBINE(uint32_t)
COMBINE(int64_t)
COMBINE(uint64_t)
COMBINE(float)
COMBINE(double)

static void combine(const communicator *c, void *out, int64_t first, int64_t n, const heading *h) {
    switch (h->dtype) {
    case INT8: combine_int8_t(c, out, first, n, h->op); break;
    case UINT8: combine_uint8_t(c, out, first, n, h->op); break;
    case INT32: combine_int32_t(c, out, first, n, h->op); break;
    case UINT32: combine_uint32_t(c, out, first, n, h->op); break;
    case INT64: combine_int64_t(c, out, first, n, h->op); break;
    case UINT64: combine_uint64_t(c, out, first, n, h->op); break;
    case FLOAT32: combine_float(c, out, first, n, h->op); break;
    default: combine_double(c, out, first, n, h->op);
    }
}

static void compute(const call *one) {
    const communicator *c = one->comm;
    const heading *h = &one->what;
    const int64_t bytes = h->count * size_of(h->dtype);
    switch ((kind)h->kind) {
    case ALL_REDUCE: combine(c, one->receive, 0, h->count, h); break;
    case REDUCE:
        if (h->root == c->rank) combine(c, one->receive, 0, h->count, h);
        break;
    case REDUCE_SCATTER: combine(c, one->receive, c->rank * h->count, h->count, h); break;
    case BROADCAST: memcpy(one->receive, box(c, (int)h->root, -1), (size_t)bytes); break;
    default:
        for (int r = 0; r < c->ranks; r++) memcpy((char *)one->receive + r * bytes, box(c, r, -1), (size_t)bytes);
    }
}

/* ---- one try of a call: false: others have to do something first ------------------------------------------- */

static bool all_reached(const communicator *c, const atomic_llong *counts, int64_t number) {
    for (int r = 0; r < c->ranks; r++)
        if (atomic_load(&counts[r]) < number) return false;
    return true;
}

static bool try_collective(call *one) {
    communicator *c = one->comm;
    board *b = c->board;
    const heading *h = &one->what;
    if (!one->posted) {
        if (!all_reached(c, b->done, one->number)) return false; /* the boxes are read */
        const int64_t parts = h->kind == REDUCE_SCATTER ? c->ranks : 1;
        if (h->kind != BROADCAST || h->root == c->rank)
            memcpy(box(c, c->rank, -1), one->send, (size_t)(parts * h->count * size_of(h->dtype)));
        b->headings[c->rank] = *h;
        atomic_store(&b->posted[c->rank], one->number + 1);
        one->posted = true;
    }
    if (!all_reached(c, b->posted, one->number + 1)) return false;
    bool same = true;
    for (int r = 0; r < c->ranks; r++) same &= memcmp(&b->headings[r], h, sizeof *h) == 0;
    if (same)
        compute(one);
    else
        atomic_store(&c->error, INVALID_USAGE);
    atomic_store(&b->done[c->rank], one->number + 1);
    return true;
}

static bool try_pair(const call *one) {
    communicator *c = one->comm;
    board *b = c->board;
    const int peer = (int)one->what.root;
    const int64_t bytes = one->what.count * size_of(one->what.dtype);
    const int from = one->what.kind == SEND ? c->rank : peer, to = one->what.kind == SEND ? peer : c->rank;
    if (atomic_load(&b->received[from][to]) != one->number) return false;
    if (one->what.kind == SEND) {
        if (atomic_load(&b->sent[from][to]) != one->number) return false;
        memcpy(box(c, from, to), one->send, (size_t)bytes);
        b->bytes[from][to] = bytes;
        atomic_store(&b->sent[from][to], one->number + 1);
        return true;
    }
    if (atomic_load(&b->sent[from][to]) != one->number + 1) return false;
    if (b->bytes[from][to] == bytes)
        memcpy(one->receive, box(c, from, to), (size_t)bytes);
    else
        atomic_store(&c->error, INVALID_USAGE);
    atomic_store(&b->received[from][to], one->number + 1);
    return true;
}

/* Whether a process has ended, be it that nobody has asked for its status yet. */
static bool has_ended(int process) {
    char path[32], text[200] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    FILE *file = fopen(path, "r");
    if (!file) return true;
    const char *state = fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
    fclose(file);
    return state && (state[2] == 'Z' || state[2] == 'X');
}

/* NCCL notices that the sockets of a process close. */
static void look_for_the_dead(communicator *c) {
    for (int r = 0; r < c->ranks; r++)
        if (has_ended(atomic_load(&c->board->process[r]))) atomic_store(&c->error, REMOTE_ERROR);
}

static int try_batch(void *argument) {
    batch *all = argument;
    bool done = true;
    for (int i = 0; i < all->count; i++) {
        call *one = &all->calls[i];
        if (!one->done) one->done = one->comm->aborted || (one->what.kind < SEND ? try_collective(one) : try_pair(one));
        done &= one->done;
    }
    if (done)
        free(all);
    else if (++all->tries % 1000 == 0)
        look_for_the_dead(all->calls[0].comm);
    return done;
}

/* ---- calls go to streams ------------------------------------------------------------------------------------ */

static result start(batch *all) {
    typedef void queue(int stream, int (*tries)(void *), void *argument);
    static queue *give;
    if (!give) {
        const char *path = getenv("NORCH_CUDA_LIBRARY");
        void *simulation = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
        if (simulation) *(void **)&give = dlsym(simulation, "cudasim_queue");
        if (!give) return fail(CUDA_ERROR, "NORCH_CUDA_LIBRARY is no simulation");
    }
    give((int)all->stream, try_batch, all);
    return SUCCESS;
}

static result add(communicator *comm, kind what, const void *send, void *receive, int64_t count, int dtype, int op,
                  int root, void *stream) {
    if (!comm || count < 0 || dtype < 0 || dtype >= DTYPES || op < 0 || op >= OPS || root < 0 || root >= comm->ranks)
        return fail(INVALID_ARGUMENT, "an argument is out of range");
    const bool adds = what == ALL_REDUCE || what == REDUCE || what == REDUCE_SCATTER;
    if (adds && (dtype == FLOAT16 || dtype == BFLOAT16)) return fail(INVALID_ARGUMENT, "halves are not added here");
    if (count * size_of(dtype) * (what == REDUCE_SCATTER ? comm->ranks : 1) > ROOM)
        return fail(INTERNAL_ERROR, "there is no room for so many bytes");
    if (comm->aborted) return fail(INVALID_USAGE, "the communicator was aborted");
    batch *all = open_batch;
    if (!all && !(all = calloc(1, sizeof *all))) return fail(SYSTEM_ERROR, "out of memory");
    if (all->count == 64) return fail(INTERNAL_ERROR, "a group has 64 calls at most");
    int64_t *number = what == SEND ? &comm->sends[root] : what == RECV ? &comm->receives[root] : &comm->collectives;
    all->stream = (intptr_t)stream;
    all->calls[all->count++] = (call){
        .comm = comm, .what = {what, count, dtype, op, root}, .send = send, .receive = receive, .number = (*number)++};
    if (depth) {
        open_batch = all;
        return SUCCESS;
    }
    return start(all);
}

EXPORTED result ncclAllReduce(const void *send, void *receive, size_t count, int dtype, int op, communicator *comm,
                              void *stream) {
    return add(comm, ALL_REDUCE, send, receive, (int64_t)count, dtype, op, 0, stream);
}
EXPORTED result ncclBroadcast(const void *send, void *receive, size_t count, int dtype, int root, communicator *comm,
                              void *stream) {
    return add(comm, BROADCAST, send, receive, (int64_t)count, dtype, SUM, root, stream);
}
EXPORTED result ncclReduce(const void *send, void *receive, size_t count, int dtype, int op, int root,
                           communicator *comm, void *stream) {
    return add(comm, REDUCE, send, receive, (int64_t)count, dtype, op, root, stream);
}
EXPORTED result ncclAllGather(const void *send, void *receive, size_t count, int dtype, communicator *comm,
                              void *stream) {
    return add(comm, ALL_GATHER, send, receive, (int64_t)count, dtype, SUM, 0, stream);
}
EXPORTED result ncclReduceScatter(const void *send, void *receive, size_t count, int dtype, int op, communicator *comm,
                                  void *stream) {
    return add(comm, REDUCE_SCATTER, send, receive, (int64_t)count, dtype, op, 0, stream);
}
EXPORTED result ncclSend(const void *send, size_t count, int dtype, int peer, communicator *comm, void *stream) {
    return add(comm, SEND, send, NULL, (int64_t)count, dtype, SUM, peer, stream);
}
EXPORTED result ncclRecv(void *receive, size_t count, int dtype, int peer, communicator *comm, void *stream) {
    return add(comm, RECV, NULL, receive, (int64_t)count, dtype, SUM, peer, stream);
}

EXPORTED result ncclGroupStart(void) {
    depth++;
    return SUCCESS;
}

EXPORTED result ncclGroupEnd(void) {
    if (depth == 0) return fail(INVALID_USAGE, "ncclGroupEnd without ncclGroupStart");
    if (--depth || !open_batch) return SUCCESS;
    batch *all = open_batch;
    open_batch = NULL;
    return start(all);
}

/* ---- communicators -------------------------------------------------------------------------------------------- */

EXPORTED result ncclGetVersion(int *version) {
    *version = 22703;
    return SUCCESS;
}

EXPORTED result ncclGetUniqueId(unique_id *id) {
    memset(id, 0, sizeof *id);
    uint64_t drawn[2];
    const int source = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    const bool good = source >= 0 && read(source, drawn, sizeof drawn) == sizeof drawn;
    if (source >= 0) close(source);
    if (!good) return fail(SYSTEM_ERROR, "no random numbers");
    snprintf(id->text, sizeof id->text, "/dev/shm/norch_nccl_%016llx%016llx", (unsigned long long)drawn[0],
             (unsigned long long)drawn[1]);
    return SUCCESS;
}

EXPORTED result ncclCommInitRank(communicator **made, int ranks, unique_id id, int rank) {
    if (ranks < 1 || ranks > MOST_RANKS || rank < 0 || rank >= ranks)
        return fail(INVALID_ARGUMENT, "there is no such rank");
    communicator *comm = calloc(1, sizeof *comm);
    if (!comm) return fail(SYSTEM_ERROR, "out of memory");
    const size_t bytes = board_bytes() + (size_t)(ROOM * MOST_RANKS * (MOST_RANKS + 1));
    const int file = open(id.text, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, (off_t)bytes)) return fail(SYSTEM_ERROR, "no shared memory");
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    close(file);
    if (at == MAP_FAILED) return fail(SYSTEM_ERROR, "no shared memory");
    *comm = (communicator){
        .board = (board *)(void *)at, .boxes = at + board_bytes(), .mapped = bytes, .rank = rank, .ranks = ranks};
    int none = 0;
    atomic_compare_exchange_strong(&comm->board->ranks, &none, ranks);
    if (none && none != ranks) return fail(INVALID_ARGUMENT, "ranks do not agree how many they are");
    atomic_store(&comm->board->process[rank], (int)getpid());
    atomic_fetch_add(&comm->board->joined, 1);
    while (atomic_load(&comm->board->joined) < ranks) usleep(200);
    unlink(id.text);
    *made = comm;
    return SUCCESS;
}

EXPORTED result ncclCommGetAsyncError(communicator *comm, int *error) {
    *error = atomic_load(&comm->error);
    return SUCCESS;
}

EXPORTED result ncclCommAbort(communicator *comm) {
    atomic_store(&comm->aborted, true); /* what waits in streams still has it */
    return SUCCESS;
}

EXPORTED result ncclCommDestroy(communicator *comm) {
    munmap(comm->board, comm->mapped);
    free(comm);
    return SUCCESS;
}

EXPORTED const char *ncclGetErrorString(result error) {
    static const char *const texts[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error"};
    return error <= REMOTE_ERROR ? texts[error] : "unknown result code";
}

EXPORTED const char *ncclGetLastError(const communicator *comm) {
    (void)comm;
    return last_error;
}
