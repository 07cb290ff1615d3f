/* modules: the functions of the driver that csrc/cuda/ calls: machine code of nvrtc.c is loaded, and its kernel is launched as all
 * others are. */
#include "simulation.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
#include <string>

using namespace cudasim;

namespace {

constexpr int INVALID_IMAGE = 200, NOT_FOUND = 500;

struct module {
    void *library;
    void (*run)(const void *);
    size_t bytes; /* of the argument */
};

int load(module **made, const void *code, void *, void *, unsigned, void *, void *, unsigned) {
    uint64_t size;
    memcpy(&size, code, sizeof size);
    const char *bytes = (const char *)code + sizeof size;
    if (size < 4 || memcmp(bytes, "\177ELF", 4) != 0) return INVALID_IMAGE;
    char path[] = "/tmp/cudasim-code-XXXXXX";
    const int file = mkstemp(path);
    const bool written = file >= 0 && write(file, bytes, size) == (ssize_t)size;
    if (file >= 0) close(file);
    void *library = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    unlink(path);
    if (!library) return INVALID_IMAGE;
    size_t (*count)();
    *(void **)&count = dlsym(library, "cudasim_bytes");
    void *run = dlsym(library, "cudasim_run");
    if (!count || !run) return INVALID_IMAGE;
    *made = new module{library, (void (*)(const void *))run, count()};
    return 0;
}

int find(void **kernel, module *from, const char *name) {
    *kernel = from;
    return dlsym(from->library, name) ? 0 : NOT_FOUND;
}

int launch_kernel(void *kernel, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                  unsigned shared, cudaStream_t stream, void **arguments, void **) {
    const module &m = *(const module *)kernel;
    const std::string argument((const char *)arguments[0], m.bytes);
    launch(kernel, dim3(x, y, z), dim3(bx, by, bz), shared, stream, argument.data(), m.bytes,
           [&m, argument] { m.run(argument.data()); });
    return (int)cudaGetLastError();
}

} // namespace

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult *result) {
    *function = !strcmp(name, "cuTensorMapEncodeTiled") ? tile_encoder()
                : !strcmp(name, "cuLibraryLoadData")    ? (void *)load
                : !strcmp(name, "cuLibraryGetKernel")   ? (void *)find
                : !strcmp(name, "cuLaunchKernel")       ? (void *)launch_kernel
                                                        : nullptr;
    *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
