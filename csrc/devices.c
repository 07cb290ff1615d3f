/* devices: registers the devices. The CPU and the meta device are built in. CUDA is a plugin, a library that is loaded
 * when first needed: libnorch_cuda.so in the folder of this library, or the file that NORCH_CUDA_LIBRARY names. */
#define _GNU_SOURCE
#if !defined _WIN32 && !defined __wasm__
#include <dlfcn.h>
#include <unistd.h>
#endif
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/device.h"
#include "core/error.h"
#include "core/memory.h"
#include "cpu/cpu.h"

static const nr_backend *const *devices; /* of the plugin, once it is open */
static int32_t device_count;

#ifdef _WIN32
static int32_t find_devices(void) {
    return nr_fail(NORCH_ERROR_DEVICE,
                   "cuda: norch has no CUDA backend for Windows; run it inside WSL, Windows' own Linux, or "
                   "leave the tensors on \"cpu\"");
}
#elif defined __wasm__
static int32_t find_devices(void) {
    return nr_fail(NORCH_ERROR_DEVICE, "cuda: a page has no CUDA; leave the tensors on \"cpu\"");
}
#else
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static bool plugin_path(char *path, size_t capacity) {
    const char *named = getenv("NORCH_CUDA_LIBRARY");
    if (named && *named) /* dlopen() would look for a bare name in the system's folders */
        return snprintf(path, capacity, "%s%s", strchr(named, '/') ? "" : "./", named) < (int)capacity;
    Dl_info here;
    if (!dladdr((void *)(uintptr_t)&opening, &here) || !here.dli_fname) return false;
    const char *slash = strrchr(here.dli_fname, '/');
    int folder = slash ? (int)(slash - here.dli_fname) + 1 : 0;
    return snprintf(path, capacity, "%.*slibnorch_cuda.so", folder, here.dli_fname) < (int)capacity;
}

static int32_t open_plugin(const char *path) {
    static const nr_host host = {nr_fail, nr_allocation_fails, nr_ops, nr_dtypes, nr_share, nr_nvrtc};
    const char *named = getenv("NORCH_CUDA_LIBRARY");
    if (access(path, R_OK) != 0 && named && *named)
        return nr_fail(NORCH_ERROR_DEVICE, "cuda: NORCH_CUDA_LIBRARY names %s, which cannot be read: %s", path,
                       strerror(errno));
    if (access(path, R_OK) != 0)
        return nr_fail(NORCH_ERROR_DEVICE,
                       "cuda: norch was built without its CUDA backend: there is no %s; install nvcc 12 or 13 (or run "
                       "`make cuda-toolchain`) and run `make`, or leave the tensors on \"cpu\"",
                       path);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return nr_fail(NORCH_ERROR_DEVICE, "cuda: the backend cannot be loaded: %s", dlerror());
    nr_plugin_abi_function abi;
    nr_plugin_open_function open;
    *(void **)&abi = dlsym(library, "nr_plugin_abi");
    *(void **)&open = dlsym(library, "nr_plugin_open");
    int32_t status = NORCH_ERROR_DEVICE;
    if (!abi || !open)
        nr_fail(NORCH_ERROR_DEVICE, "cuda: %s is not a backend of norch", path);
    else if (abi() != nr_abi())
        nr_fail(NORCH_ERROR_DEVICE,
                "cuda: %s was built for another version of libnorch.so (number %016llx, this one has %016llx); run "
                "`make` to rebuild both",
                path, (unsigned long long)abi(), (unsigned long long)nr_abi());
    else if ((devices = open(&host, &device_count)) != NULL)
        status = NORCH_OK;
    if (status != NORCH_OK) dlclose(library);
    return status;
}

/* After a failure the same message is given again, until NORCH_CUDA_LIBRARY names another file. */
static int32_t find_devices(void) {
    static char tried[4096], why[512];
    char path[sizeof tried];
    pthread_mutex_lock(&opening);
    int32_t status = NORCH_OK;
    if (!devices && !plugin_path(path, sizeof path))
        status = nr_fail(NORCH_ERROR_DEVICE, "cuda: the plugin's path is too long");
    else if (!devices && strcmp(path, tried) == 0)
        status = nr_fail(NORCH_ERROR_DEVICE, "%s", why);
    else if (!devices && (status = open_plugin(path)) == NORCH_ERROR_DEVICE) {
        memcpy(tried, path, sizeof tried);
        snprintf(why, sizeof why, "%s", norch_last_error());
    }
    pthread_mutex_unlock(&opening);
    return status;
}
#endif

static const nr_backend *find_cuda(int64_t device_index) {
    if (find_devices() != NORCH_OK) return NULL;
    if (device_index >= 0 && device_index < device_count) return devices[device_index];
    return NR_REFUSE(NORCH_ERROR_DEVICE, "cuda:%lld does not exist; this machine has %d CUDA device%s",
                     (long long)device_index, device_count, device_count == 1 ? "" : "s");
}

/* find_devices() lists the devices of the machine; enter() checks whether this process can use them. */
static int64_t count_cuda(void) {
    return find_devices() == NORCH_OK && devices[0]->device->enter(devices[0]) == NORCH_OK ? device_count : -1;
}

static const nr_backend *find_cpu(int64_t device_index) {
    if (device_index == 0) return nr_cpu_backend();
    return NR_REFUSE(NORCH_ERROR_DEVICE, "cpu:%lld does not exist; there is one CPU device", (long long)device_index);
}

static int64_t count_one(void) { return 1; }

static const nr_backend *find_meta(int64_t device_index) {
    if (device_index == 0) return nr_meta_backend();
    return NR_REFUSE(NORCH_ERROR_DEVICE, "meta:%lld does not exist; there is one meta device", (long long)device_index);
}

__attribute__((constructor)) static void register_devices(void) {
    static const nr_device_type cpu = {find_cpu, count_one}, cuda = {find_cuda, count_cuda};
    static const nr_device_type meta = {find_meta, count_one};
    nr_register_device_type(NORCH_CPU, &cpu);
    nr_register_device_type(NORCH_CUDA, &cuda);
    nr_register_device_type(NORCH_META, &meta);
}
