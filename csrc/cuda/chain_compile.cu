/* chain_compile: chains compiled at run time by NVRTC, NVIDIA's compiler as a library, where there is one. It compiles
 * the text of chain_source.cu together with the headers that the other kernels are made of, which travel in this
 * library as strings (chain_headers.inc, by mk/cuda.mk).
 *
 *   steps of the chain -> kernel in memory -> or: text -> file of the cache -> or: NVRTC -> code -> driver -> kernel
 *
 * A chain is compiled when it first runs, and never while a graph is captured. Where a step fails chains run in the
 * kernels that walk them (chain_dtype.cu), with the same bits, as both are compiled without contraction; the reason is
 * kept as text. Files are in chain_cache.cu. */
#include "chain_compile.cuh"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#define MOST_KERNELS 1024 /* of a process */

namespace {

const char *const header_names[] = {
#define HEADER(name, text) name,
#include "chain_headers.inc"
#undef HEADER
};
const char *const header_texts[] = {
#define HEADER(name, text) text,
#include "chain_headers.inc"
#undef HEADER
};
constexpr int header_count = sizeof header_names / sizeof *header_names;

/* Functions of NVRTC and of the driver. This library is linked with neither of them. */
struct compiler {
    typedef struct program_of_nvrtc *program;
    int (*version)(int *, int *);
    int (*create)(program *, const char *text, const char *name, int, const char *const *, const char *const *);
    int (*compile)(program, int, const char *const *options);
    int (*cubin_size)(program, size_t *), (*cubin)(program, char *);
    int (*log_size)(program, size_t *), (*log)(program, char *);
    int (*destroy)(program *);
    int major, minor;
};
struct driver {
    typedef struct library_of_driver *library;
    int (*load)(library *, const void *code, void *, void *, unsigned, void *, void *, unsigned);
    int (*find)(void **kernel, library, const char *name);
    int (*launch)(void *kernel, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared,
                  cudaStream_t stream, void **arguments, void **);
};

struct state {
    std::mutex lock;
    bool looked, ready;
    compiler nvrtc;
    driver cuda;
    std::string why;   /* there is no compiler, or the last chain was not compiled */
    std::string found; /* the library of the compiler */
    int64_t compiled, from_cache;
    std::unordered_map<std::string, void *> kernels; /* NULL: not compiled */
    std::vector<std::string> sources;
};
state *of_process; /* made with the first chain, and never freed: threads may run chains until the end */
std::once_flag once;

/* ---- finding the libraries ------------------------------------------------------------------------------------ */

template <class F> bool get(void *library, const char *name, F &function) {
    *(void **)&function = dlsym(library, name);
    return function != nullptr;
}

bool is_nvrtc(void *library, compiler &c) {
    return get(library, "nvrtcVersion", c.version) && get(library, "nvrtcCreateProgram", c.create) &&
           get(library, "nvrtcCompileProgram", c.compile) && get(library, "nvrtcGetCUBINSize", c.cubin_size) &&
           get(library, "nvrtcGetCUBIN", c.cubin) && get(library, "nvrtcGetProgramLogSize", c.log_size) &&
           get(library, "nvrtcGetProgramLog", c.log) && get(library, "nvrtcDestroyProgram", c.destroy) &&
           c.version(&c.major, &c.minor) == 0;
}

/* The first library of the list that exists and is no newer than the driver, which could not load its code. */
bool find_nvrtc(state &s) {
    const std::string paths = nr_library->nvrtc;
    int newest = 0;
    cudaDriverGetVersion(&newest);
    s.why = "no library of NVRTC is named";
    for (size_t at = 0, end; at < paths.size(); at = end + 1) {
        end = paths.find('\n', at);
        if (end == std::string::npos) end = paths.size();
        s.found = paths.substr(at, end - at);
        void *library = dlopen(s.found.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            s.why = dlerror();
        } else if (!is_nvrtc(library, s.nvrtc)) {
            s.why = s.found + " is not NVRTC";
        } else if (s.nvrtc.major > newest / 1000) {
            s.why = s.found + " is newer than the driver";
        } else {
            return true;
        }
        if (library) dlclose(library);
    }
    return false;
}

template <class F> bool get_of_driver(const char *name, F &function) {
    *(void **)&function = nr_cuda_driver_function(name);
    return function != nullptr;
}

/* Looks once. */
bool is_ready(state &s) {
    if (s.looked) return s.ready;
    s.looked = true;
    if (!find_nvrtc(s)) return false;
    s.ready = get_of_driver("cuLibraryLoadData", s.cuda.load) && get_of_driver("cuLibraryGetKernel", s.cuda.find) &&
              get_of_driver("cuLaunchKernel", s.cuda.launch);
    s.why = s.ready ? "" : "the driver is older than CUDA 12.0";
    return s.ready;
}

/* ---- compiling --------------------------------------------------------------------------------------------------- */

/* "sm_90", of the current device. */
std::string architecture(const nr_gpu *gpu) {
    cudaDeviceProp found;
    if (cudaGetDeviceProperties(&found, gpu->index) != cudaSuccess) return "";
    return "sm_" + std::to_string(found.major) + std::to_string(found.minor);
}

std::string hash_of_headers() {
    uint64_t hash = NR_CHAIN_HASH;
    for (const char *text : header_texts) hash = nr_cuda_chain_hash(hash, text, strlen(text));
    return std::to_string(hash);
}

/* The machine code of a text; empty if it does not compile. */
std::string compile(state &s, const std::string &text, const std::string &arch) {
    const std::string target = "--gpu-architecture=" + arch;
    const char *const options[] = {target.c_str(), "--std=c++17", "--fmad=false", "-default-device"};
    compiler::program program = nullptr;
    const compiler &c = s.nvrtc;
    std::string code;
    size_t size = 0;
    if (c.create(&program, text.c_str(), "chain.cu", header_count, header_texts, header_names) != 0) {
        s.why = "NVRTC makes no program";
        return code;
    }
    if (c.compile(program, sizeof options / sizeof *options, options) == 0 && c.cubin_size(program, &size) == 0 &&
        size) {
        code.resize(size);
        if (c.cubin(program, &code[0]) != 0) code.clear();
    }
    if (code.empty()) {
        s.why = "NVRTC does not compile it: ";
        if (c.log_size(program, &size) == 0 && size) {
            std::string log(size, 0);
            if (c.log(program, &log[0]) == 0) s.why += log.c_str();
        }
    }
    c.destroy(&program);
    return code;
}

void *load(state &s, const std::string &code) {
    driver::library library = nullptr;
    void *kernel = nullptr;
    if (s.cuda.load(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0) == 0 &&
        s.cuda.find(&kernel, library, "chain") == 0)
        return kernel;
    s.why = "the driver does not load the machine code";
    return nullptr;
}

/* The kernel of a chain that is not in memory; NULL if there is none. */
void *make(state &s, const nr_gpu *gpu, const chain_args &a, int32_t dtype, bool rows) {
    const std::string source = nr_cuda_chain_source(a, dtype, rows), arch = architecture(gpu);
    const std::string text = "// " + arch + ", NVRTC " + std::to_string(s.nvrtc.major) + "." +
                             std::to_string(s.nvrtc.minor) + ", headers " + hash_of_headers() + "\n" + source;
    s.sources.push_back(source);
    std::string code = nr_cuda_read_chain(text);
    void *kernel = code.empty() ? nullptr : load(s, code);
    if (kernel) return s.from_cache++, kernel;
    code = compile(s, source, arch);
    if (code.empty() || !(kernel = load(s, code))) return nullptr;
    s.compiled++;
    nr_cuda_write_chain(text, code);
    return kernel;
}

/* The properties on which a kernel depends, as bytes: the steps, and which operands are numbers. */
std::string content(const nr_gpu *gpu, const chain_args &a, int32_t dtype, bool rows) {
    std::string key(reinterpret_cast<const char *>(a.steps), (size_t)a.count * sizeof *a.steps);
    for (const chain_operand &x : a.operands) key += x.data ? '1' : '0';
    const int32_t rest[] = {dtype, rows, a.ndim, gpu->index};
    return key.append(reinterpret_cast<const char *>(rest), sizeof rest);
}

} // namespace

bool nr_cuda_run_compiled(const nr_gpu *gpu, const chain_args &a, int32_t dtype, bool rows, unsigned blocks,
                          size_t shared) {
    if (!*nr_library->nvrtc) return false;
    try {
        std::call_once(once, [] { of_process = new state(); });
        state &s = *of_process;
        std::lock_guard<std::mutex> guard(s.lock);
        if (!is_ready(s)) return false;
        const std::string key = content(gpu, a, dtype, rows);
        const auto found = s.kernels.find(key);
        void *kernel = found == s.kernels.end() ? nullptr : found->second;
        if (found == s.kernels.end()) {
            if (nr_capturing || s.kernels.size() == MOST_KERNELS) return false;
            s.kernels[key] = nullptr;
            s.kernels[key] = kernel = make(s, gpu, a, dtype, rows);
        }
        void *arguments[] = {const_cast<chain_args *>(&a)};
        return kernel && s.cuda.launch(kernel, blocks, 1, 1, NR_BLOCK, 1, 1, (unsigned)shared, gpu->stream, arguments,
                                       nullptr) == 0;
    } catch (const std::exception &) { /* the host has no memory */
        return false;
    }
}

int64_t nr_cuda_chain_text(const nr_backend *self, int64_t number, char *to, int64_t capacity) {
    if (nr_cuda_enter(self) != NORCH_OK) return -1;
    try {
        std::call_once(once, [] { of_process = new state(); });
        state &s = *of_process;
        std::lock_guard<std::mutex> guard(s.lock);
        if (number >= (int64_t)s.sources.size()) return -1;
        std::string text;
        if (number >= 0) {
            text = s.sources[(size_t)number];
        } else if (!*nr_library->nvrtc || !is_ready(s)) {
            text = "chains are not compiled: " + (*nr_library->nvrtc ? s.why : "NORCH_NVRTC_LIBRARY is 0");
        } else {
            text = "NVRTC " + std::to_string(s.nvrtc.major) + "." + std::to_string(s.nvrtc.minor) + " (" + s.found +
                   "): " + std::to_string(s.sources.size()) + " chains, " + std::to_string(s.compiled) + " compiled, " +
                   std::to_string(s.from_cache) + " from the cache";
            if (!s.why.empty()) text += "; the last failure: " + s.why;
        }
        snprintf(to, (size_t)capacity, "%s", text.c_str());
        return (int64_t)text.size();
    } catch (const std::exception &) {
        nr_library->fail(NORCH_ERROR_MEMORY, "cuda: out of memory");
        return -1;
    }
}
