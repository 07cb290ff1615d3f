/* norch_runtime.h: the public C API of what operations run on: the library with its threads and memory, and devices. As
 * norch.h says, the bindings of Python come from this text. */
#ifndef NORCH_RUNTIME_H
#define NORCH_RUNTIME_H

#include "norch.h"

#pragma GCC visibility push(default)

/* ---- the library ---------------------------------------------------------------------------- */

/* The text of the public headers without comments, and a hash of all that a plugin is compiled with: these headers, the
 * tables, core/backend.h, device.h and families/. */
const char *norch_header(void);
uint64_t norch_abi(void);
int64_t norch_sizeof_tensor(void);

/* The message and the kind (NORCH_ERROR_...) of the last failure in this thread. */
const char *norch_last_error(void);
int32_t norch_last_error_kind(void);

/* Makes tensors Python objects, and failures Python exceptions: exceptions holds a class for each kind of error.
 * Returns the type of tensors, NULL without Python. norch_set_class sets the subclass of it that results get. */
void *norch_bind_python(const void *const *exceptions);
void norch_set_class(void *type);
/* The functions of these headers as builtins of Python, at a tenth of the cost of ctypes: the i-th and its name, NULL
 * past the end. */
void *norch_call(int64_t i);
const char *norch_call_name(int64_t i);

/* Worker threads, 1 to 256, the caller's included. The instruction set chosen at load ("avx2"), and those built. */
int32_t norch_set_num_threads(int64_t count);
int64_t norch_num_threads(void);
const char *norch_isa(void);
const char *norch_isa_builds(void);

/* The number of storages and their bytes; bytes that the CPU's allocator keeps for reuse. */
int64_t norch_live_storages(void);
int64_t norch_live_bytes(void);
int64_t norch_cached_bytes(void);
void norch_empty_cache(void);
/* values, of the CPU's allocator: bytes {in use, at the peak, in use or cached, at the peak, cached, limit of the
 * cache}, blocks {allocated from the system, reused, freed}. */
void norch_memory(int64_t *values);
void norch_memory_reset_peak(void);
void norch_set_cache_limit(int64_t bytes);

/* For tests: makes the n-th allocation from now fail (0: the next); a negative n turns that off.
 * Returns the number of allocations since the last call. */
int64_t norch_fail_allocation(int64_t n);

/* ---- devices -------------------------------------------------------------------------------- */

/* The number of devices of a type; -1, with an error that says why, if there are none. */
int64_t norch_device_count(int64_t device_type);
/* name: capacity bytes; values: {bytes of memory, compute capability major, minor, multiprocessors, 1 if simulated,
 * version of the driver, of the runtime}. */
int32_t norch_device_properties(int64_t device_type, int64_t device_index, char *name, int64_t capacity,
                                int64_t *values);
/* values: bytes {in tensors, at the peak, in tensors or cached, at the peak, free on the device, in all; of pinned host
 * memory in tensors, in tensors or cached}, and the number of allocations of pinned memory. */
int32_t norch_device_memory(int64_t device_type, int64_t device_index, int64_t *values);
int32_t norch_device_reset_peak(int64_t device_type, int64_t device_index);
int32_t norch_device_empty_cache(int64_t device_type, int64_t device_index);
/* Names libraries of NVRTC, CUDA's compiler, one a line, of which the first that can be loaded compiles chains of a
 * program on a CUDA device. The first call counts. */
int32_t norch_set_nvrtc(const char *libraries);
/* text, of capacity bytes: the source of the chain that was compiled as number `number` on the CUDA devices; of -1
 * whether chains are compiled, and why not. The length of all of it; -1 if there are fewer, or, with an error, no such
 * device. */
int64_t norch_device_chain(int64_t device_type, int64_t device_index, int64_t number, char *text, int64_t capacity);
/* Waits for all work of the device, and reports its failures. */
int32_t norch_device_synchronize(int64_t device_type, int64_t device_index);
/* Streams of the device: 0 is the default one, -1 the current one of this thread. action: 0 makes one, of high priority
 * where *value < 0, and gives its number in *stream; 1 gives the number of the current one; 2 makes *stream the current
 * one; 3 waits for its work; 4 queries whether all of it is done (*value). */
int32_t norch_device_stream(int64_t device_type, int64_t device_index, int64_t action, int64_t *stream, double *value);
/* Events of a device. action: 0 makes *event (*value 1: it tells time), 1 records it in a stream, 2 waits for it, 3
 * queries whether it has passed (*value 1), 4 gives the milliseconds from it to other, 5 frees it, 6 lets a stream wait
 * for it. */
int32_t norch_device_event(int64_t device_type, int64_t device_index, int64_t action, int64_t stream, void *event,
                           void *other, double *value);
/* Says that a stream uses x, which was made in another: its memory is not reused before that is done. */
int32_t norch_record_stream(const norch_tensor *x, int64_t stream);
/* A copy of x, which is on the CPU, in pinned memory. */
norch_tensor *norch_pin(const norch_tensor *x, int64_t device_type, int64_t device_index);
bool norch_is_pinned(const norch_tensor *x);

#pragma GCC visibility pop

#endif
