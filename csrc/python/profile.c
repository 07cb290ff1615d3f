/* profile: an observer of all threads that notes the time and memory of each call, for norch.profiler and NORCH_TRACE.
 * There is one, which lives as long as the process, because storages that it saw made call it when they are freed.
 *
 * Observers are called with the GIL held, except when another library frees memory that it shares with a storage. */
#include <pthread.h>
#include <string.h>

#include "../core/memory.h"
#include "../core/observer.h"
#include "../core/platform.h"
#include "../core/tensor.h"
#include "../program/plans.h"
#include "abi.h"
#include "calls.h"
#include "object.h"

enum { TO_HOST = -1, FROM_HOST = -2 }; /* copies of bytes; values of row.family */
enum { SHAPES = 1, MEMORY = 2, DEVICE_TIME = 4 };

typedef struct row {
    int32_t family, op, dtype;
    bool failed;
    int64_t thread, start, end; /* nanoseconds */
    int64_t bytes;              /* of the storages that the call is the first to write to; of a copy its size */
    int64_t multiply_adds;
    const nr_backend *backend;
    void *events[2];        /* of a device, before and after the call; or NULL */
    double device_start_ms; /* since the first event; -1: unknown */
    double device_ms;
    void *place, *shapes; /* objects of Python, or NULL */
} row;

/* A storage that was made (bytes above 0) or freed (below 0). */
typedef struct change {
    int64_t time, bytes;
    const nr_backend *backend;
} change;

#define PENDING \
    64 /* storages that no call has written to yet, and tensors that calls were given; the oldest are forgotten */
#define SEEN 16

typedef struct input {
    const void *data;
    int32_t ndim;
    int64_t shape[NORCH_MAX_DIMS];
} input;

static struct {
    bool recording;
    int32_t flags;
    void *place, *tell; /* callables, or NULL */
    row *rows;
    int64_t row_count, row_capacity;
    change *changes;
    int64_t change_count, change_capacity;
    bool short_of_memory;
} profiler;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of changes and pending */
static struct {
    const char *data;
    int64_t bytes;
} pending[PENDING];
static int64_t next_pending;

static _Thread_local row current;
static _Thread_local bool inside; /* a callable of Python runs, whose calls are not noted */
static _Thread_local input seen[SEEN];
static _Thread_local int64_t next_seen;

static void fork_unlocks(void) { lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; }

__attribute__((constructor)) static void watch_forks(void) { nr_at_fork(NULL, NULL, fork_unlocks); }

/* ---- memory ---------------------------------------------------------------------------------------------- */

static void note_change(const norch_storage *storage, int64_t bytes) {
    if (!profiler.recording || !(profiler.flags & MEMORY)) return;
    if (nr_grow(&profiler.changes, profiler.change_count, &profiler.change_capacity, sizeof *profiler.changes))
        profiler.changes[profiler.change_count++] = (change){nr_nanoseconds(), bytes, storage->backend};
    else
        profiler.short_of_memory = true;
}

static void created(nr_observer *self, norch_storage *storage) {
    (void)self;
    if (inside) return;
    pthread_mutex_lock(&lock);
    pending[next_pending % PENDING].data = storage->data;
    pending[next_pending++ % PENDING].bytes = (int64_t)storage->bytes;
    note_change(storage, (int64_t)storage->bytes);
    pthread_mutex_unlock(&lock);
}

static void freed(nr_observer *self, norch_storage *storage) {
    (void)self;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < PENDING; i++)
        if (pending[i].data == storage->data) pending[i].data = NULL;
    note_change(storage, -(int64_t)storage->bytes);
    pthread_mutex_unlock(&lock);
}

/* ---- arguments of a call ---------------------------------------------------------------------------------- */

static void passed(nr_observer *self, norch_tensor *x) {
    (void)self;
    if (!(profiler.flags & SHAPES) && !profiler.tell) return;
    input *noted = &seen[next_seen++ % SEEN];
    noted->data = x->data;
    noted->ndim = x->ndim;
    memcpy(noted->shape, x->shape, (size_t)x->ndim * sizeof *x->shape);
}

static void *tuple_of(int32_t n, const int64_t *values) {
    void *tuple = PyTuple_New(n);
    for (int32_t i = 0; tuple && i < n; i++) PyTuple_SetItem(tuple, i, PyLong_FromLongLong(values[i]));
    return tuple;
}

typedef struct reading {
    row *row;
    const void *read[SEEN];
    int64_t count;
} reading;

static void claim(row *of, const char *address) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < PENDING; i++) {
        const bool within =
            pending[i].data && address >= pending[i].data && address < pending[i].data + pending[i].bytes;
        if (!within) continue;
        of->bytes += pending[i].bytes;
        pending[i].data = NULL;
    }
    pthread_mutex_unlock(&lock);
}

static void take_address(void *context, void **at, bool written) {
    reading *to = context;
    if (written) {
        claim(to->row, *at);
        return;
    }
    if (to->count < SEEN) to->read[to->count++] = *at;
}

/* The latest seen tensor before number `before` whose elements begin at an address; -1: none. */
static int64_t find_seen(const void *data, int64_t before) {
    for (int64_t i = before - 1; i >= 0 && i >= next_seen - SEEN; i--)
        if (seen[i % SEEN].data == data) return i;
    return -1;
}

/* The shapes of those tensors that the call reads and that Python passed. Of two with the same address, as in x @ x.T,
 * the later one is the later operand. */
static void *shapes_of(const reading *from) {
    int64_t found[SEEN], count = 0;
    for (int64_t k = from->count - 1; k >= 0; k--) {
        int64_t before = next_seen;
        for (int64_t j = 0; j < count; j++)
            if (seen[found[j] % SEEN].data == from->read[k] && found[j] < before) before = found[j];
        int64_t at = find_seen(from->read[k], before);
        if (at < 0) at = find_seen(from->read[k], next_seen);
        if (at >= 0) found[count++] = at;
    }
    void *shapes = PyTuple_New(count);
    for (int64_t i = 0; shapes && i < count; i++) {
        const input *operand = &seen[found[count - 1 - i] % SEEN];
        PyTuple_SetItem(shapes, i, tuple_of(operand->ndim, operand->shape));
    }
    return shapes;
}

static void read_plan(const nr_call *call, row *to) {
    reading from = {.row = to};
    nr_plan_visit(call, (void *)(uintptr_t)call->plan, &(nr_plan_visitor){.address = take_address, .context = &from});
    if ((profiler.flags & SHAPES) || profiler.tell) to->shapes = shapes_of(&from);
}

/* ---- events of a device ------------------------------------------------------------------------------------ */

/* Actions of norch_device_event(). */
enum { MAKE, RECORD, WAIT, QUERY, TIME, FREE };

static bool event(const nr_backend *backend, int64_t action, void **of, void *other, double *value) {
    return norch_device_event(backend->device_type, backend->device_index, action, -1, of, other, value) == NORCH_OK;
}

/* An event recorded in the current stream; NULL: the device has an error, which is raised when it is next waited
 * for. */
static void *mark(const nr_backend *backend) {
    void *start = NULL;
    double timed = 1;
    if (!event(backend, MAKE, &start, NULL, &timed)) {
        PyErr_Clear();
        return NULL;
    }
    if (event(backend, RECORD, &start, NULL, NULL)) return start;
    PyErr_Clear();
    event(backend, FREE, &start, NULL, NULL);
    return NULL;
}

static bool is_timed(const nr_backend *backend) {
    return profiler.recording && backend->device && (profiler.flags & DEVICE_TIME);
}

#define DEVICES 16 /* devices with start times; further ones have none */

static void measure_devices(void) {
    void *first[DEVICES] = {NULL};
    for (int64_t i = 0; i < profiler.row_count; i++) {
        row *r = &profiler.rows[i];
        if (!r->events[0] || !r->events[1] || r->backend->device_index >= DEVICES) continue;
        const nr_backend *backend = r->backend;
        void **base = &first[backend->device_index];
        if (!*base) *base = r->events[0];
        if (!event(backend, WAIT, &r->events[1], NULL, NULL) ||
            !event(backend, TIME, &r->events[0], r->events[1], &r->device_ms) ||
            !event(backend, TIME, base, r->events[0], &r->device_start_ms)) {
            r->device_start_ms = -1;
            PyErr_Clear(); /* an error of the device is raised where it is next waited for */
        }
    }
}

static void drop(row *r) {
    for (int i = 0; i < 2; i++)
        if (r->events[i]) event(r->backend, FREE, &r->events[i], NULL, NULL);
    if (r->place) Py_DecRef(r->place);
    if (r->shapes) Py_DecRef(r->shapes);
    *r = (row){.family = 0};
}

/* ---- calls ------------------------------------------------------------------------------------------------- */

static int32_t starts(nr_observer *self, const nr_call *call) {
    (void)self;
    if (inside) return NORCH_OK;
    drop(&current);
    current = (row){.family = call ? (int32_t)call->family : TO_HOST, .device_start_ms = -1};
    if (profiler.place) {
        inside = true;
        current.place = PyObject_CallObject(profiler.place, NULL);
        inside = false;
        if (!current.place) return NORCH_ERROR_VALUE; /* it raised, KeyboardInterrupt for example */
    }
    if (call) {
        current.op = call->op;
        current.dtype = call->dtype;
        current.backend = call->backend;
        current.multiply_adds = nr_plan_multiply_adds(call);
        read_plan(call, &current);
        if (is_timed(call->backend)) current.events[0] = mark(call->backend);
    }
    current.thread = nr_thread_number();
    current.start = nr_nanoseconds();
    return NORCH_OK;
}

static void *object_or_none(void *object) {
    void *value = object ? object : NR_NONE;
    return Py_NewRef(value);
}

static void *described(const row *r) {
    const int64_t numbers[] = {r->family,
                               r->op,
                               r->dtype,
                               r->backend->device_type,
                               r->backend->device_index,
                               r->thread,
                               r->start,
                               r->end,
                               r->bytes,
                               r->multiply_adds,
                               r->failed,
                               r->device_start_ms < 0 ? -1 : (int64_t)(r->device_start_ms * 1e6),
                               (int64_t)(r->device_ms * 1e6)};
    const int32_t count = sizeof numbers / sizeof *numbers;
    void *tuple = PyTuple_New(count + 2);
    if (!tuple) return NULL;
    for (int32_t i = 0; i < count; i++) PyTuple_SetItem(tuple, i, PyLong_FromLongLong(numbers[i]));
    PyTuple_SetItem(tuple, count, object_or_none(r->place));
    PyTuple_SetItem(tuple, count + 1, object_or_none(r->shapes));
    return tuple;
}

static int32_t report(row *r) {
    void *arguments = PyTuple_New(1), *all = described(r);
    if (!arguments || !all) return NORCH_ERROR_VALUE;
    PyTuple_SetItem(arguments, 0, all);
    inside = true;
    void *result = PyObject_CallObject(profiler.tell, arguments);
    inside = false;
    Py_DecRef(arguments);
    if (!result) return NORCH_ERROR_VALUE;
    Py_DecRef(result);
    return NORCH_OK;
}

static int32_t ends(bool failed) {
    row *r = &current;
    if (inside || !r->start) return NORCH_OK;
    r->end = nr_nanoseconds();
    r->failed = failed;
    if (r->events[0]) r->events[1] = mark(r->backend);
    const int32_t status = profiler.tell && !failed ? report(r) : NORCH_OK;
    if (profiler.recording &&
        nr_grow(&profiler.rows, profiler.row_count, &profiler.row_capacity, sizeof *profiler.rows)) {
        profiler.rows[profiler.row_count++] = *r;
        *r = (row){.family = 0};
    } else {
        profiler.short_of_memory |= profiler.recording;
        drop(r);
    }
    return status;
}

static int32_t has_run(nr_observer *self, const nr_call *call) {
    (void)self, (void)call;
    return ends(false);
}

static void failed(nr_observer *self) {
    (void)self;
    ends(true);
}

static void moved(nr_observer *self, const nr_backend *backend, size_t bytes, bool to_host) {
    (void)self;
    if (inside || !current.start) return;
    current.family = to_host ? TO_HOST : FROM_HOST;
    current.backend = backend;
    current.dtype = NORCH_UINT8;
    current.bytes = (int64_t)bytes;
    ends(PyErr_Occurred() != NULL);
}

static int32_t host_wrote(nr_observer *self, const norch_tensor *x) {
    (void)self, (void)x;
    return NORCH_OK;
}

static int32_t refuses_nothing(nr_observer *self, const char *event) {
    (void)self, (void)event;
    return NORCH_OK;
}

static nr_observer observer = {.starts = starts,
                               .moved = moved,
                               .call = has_run,
                               .failed = failed,
                               .created = created,
                               .freed = freed,
                               .passed = passed,
                               .host_wrote = host_wrote,
                               .refuse = refuses_nothing};

/* ---- builtins ---------------------------------------------------------------------------------------------- */

static void observe(void) { nr_observe_all(profiler.recording || profiler.tell ? &observer : NULL); }

static void replace(void **field, void *object) {
    void *before = *field;
    *field = object == NR_NONE ? NULL : object;
    if (*field) Py_IncRef(*field);
    if (before) Py_DecRef(before);
}

static void forget(void) {
    for (int64_t i = 0; i < profiler.row_count; i++) drop(&profiler.rows[i]);
    pthread_mutex_lock(&lock);
    nr_free(profiler.rows);
    nr_free(profiler.changes);
    profiler.rows = NULL;
    profiler.changes = NULL;
    profiler.row_count = profiler.row_capacity = profiler.change_count = profiler.change_capacity = 0;
    pthread_mutex_unlock(&lock);
}

static void *none(void) { return Py_NewRef(NR_NONE); }

/* profile_start(flags, place or None): clears all rows, and begins to record calls and copies, and the data that flags
 * select. place() is called before each, and its result kept in the row. */
NR_BUILTIN(profile_start) {
    if (!nr_counted("profile_start", 2, n)) return NULL;
    forget();
    profiler.flags = (int32_t)PyLong_AsLongLong(args[0]);
    profiler.short_of_memory = false;
    replace(&profiler.place, args[1]);
    profiler.recording = true;
    observe();
    return none();
}

/* profile_tell(tell or None): tell(row) is called after each call, with a row as of profile_stop(). */
NR_BUILTIN(profile_tell) {
    if (!nr_counted("profile_tell", 1, n)) return NULL;
    replace(&profiler.tell, args[0]);
    observe();
    return none();
}

static void *described_change(const change *c) {
    const int64_t numbers[] = {c->time, c->bytes, c->backend->device_type, c->backend->device_index};
    return tuple_of(4, numbers);
}

static void *list_rows(void) {
    void *list = PyList_New(profiler.row_count);
    for (int64_t i = 0; list && i < profiler.row_count; i++) PyList_SetItem(list, i, described(&profiler.rows[i]));
    return list;
}

static void *list_changes(void) {
    void *list = PyList_New(profiler.change_count);
    for (int64_t i = 0; list && i < profiler.change_count; i++)
        PyList_SetItem(list, i, described_change(&profiler.changes[i]));
    return list;
}

/* profile_stop(): waits for devices, and returns (rows, memory, whether they are complete: false after a lack of
 * memory). A row is (family, op, dtype, device type, device index, thread, start, end, bytes, multiply-adds, failed,
 * start on the device, time on the device, place, shapes), times in ns; families -1 and -2 are copies to and from the
 * host. memory: (time, bytes, device type, device index) of each storage made or, bytes below 0, freed. */
NR_BUILTIN(profile_stop) {
    if (!nr_counted("profile_stop", 0, n)) return NULL;
    profiler.recording = false;
    profiler.flags = 0;
    replace(&profiler.place, NR_NONE);
    observe();
    measure_devices();
    void *all = PyTuple_New(3);
    if (!all) return NULL;
    PyTuple_SetItem(all, 0, list_rows());
    PyTuple_SetItem(all, 1, list_changes());
    PyTuple_SetItem(all, 2, PyBool_FromLong(!profiler.short_of_memory));
    forget();
    return all;
}

/* profile_time(): the present time on the clock of the rows. */
NR_BUILTIN(profile_time) { return PyLong_FromLongLong(nr_nanoseconds()); }
