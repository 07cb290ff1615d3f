"""Compiles the kernels of csrc/cuda/ with NVRTC, CUDA's compiler as a library: `make check-cuda` does it for CUDA 12,
whose nvcc no package index has. It needs the wheels nvidia-cuda-nvrtc-cu12 and nvidia-cuda-runtime-cu12, and no GPU.

    python tests/nvrtc.py [--arch compute_80] [FILE ...]

NVRTC reads the code of the device and has no headers of the host, so the few that the sources name are given to it
here, and a launch is a mention of its kernel.
"""

from __future__ import annotations

import argparse
import ctypes
import re
import sys
import time
from importlib.util import find_spec
from pathlib import Path

CUDA = Path(__file__).resolve().parent.parent / "csrc" / "cuda"
DTYPES = re.findall(r"^WIDE\( *\w+, *(\w+)", (CUDA.parent / "dtypes.def").read_text(), re.M)
CHAINS = ("chain.cu", "chain_cache.cu", "chain_compile.cu", "chain_source.cu")
HOST_ONLY = ("cuda.cu", "graph.cu", "pinned.cu", "stream.cu", *CHAINS)  # no kernels

HEADERS = {
    "stdint.h": (CUDA / "nvrtc_stdint.h").read_text(),
    "stddef.h": """
#ifndef NULL
#define NULL 0
#endif
extern "C" int __builtin_clzll(unsigned long long), __builtin_ctzll(unsigned long long);
""",
    "stdbool.h": "",
    "string.h": "#include <stddef.h>\n",
    "stdlib.h": "#define getenv(name) nullptr\n",
    "math.h": "",
    "cuda_runtime.h": """
#include <driver_types.h>
#include <stddef.h>
#define CUDART_VERSION 12050
extern "C" {
cudaError_t cudaGetLastError();
cudaError_t cudaGetDevice(int *);
cudaError_t cudaSetDevice(int);
cudaError_t cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaMemcpyAsync(void *, const void *, size_t, cudaMemcpyKind, cudaStream_t);
cudaError_t cudaMemsetAsync(void *, int, size_t, cudaStream_t);
cudaError_t cudaGetDriverEntryPointByVersion(const char *, void **, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult *);
}
template <class F> cudaError_t cudaFuncSetAttribute(F *, cudaFuncAttribute, int);
template <class... Formal, class... Actual>
void nr_mention(void (*)(Formal...), dim3, dim3, size_t, cudaStream_t, const Actual &...);
#define LAUNCH(kernel, grid, block, shared, stream, ...) \\
    nr_mention(kernel, grid, block, shared, stream, __VA_ARGS__)
#define DYNAMIC_SHARED(type, name)                             \\
    extern __shared__ __align__(16) unsigned char nr_shared[]; \\
    type *name = reinterpret_cast<type *>(nr_shared)
#define TELL_SHARED(bytes)
""",
}


def folder(package: str, part: str) -> Path:
    """A folder of a wheel of NVIDIA's."""
    spec = find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        found = Path(root) / package / part
        if found.is_dir():
            return found
    sys.exit(f"nvrtc: nvidia/{package}/{part} is missing: pip install nvidia-cuda-nvrtc-cu12 nvidia-cuda-runtime-cu12")


def compiled(nvrtc: ctypes.CDLL, source: Path, options: list[str]) -> tuple[bool, str, int]:
    """Whether a file compiles, what the compiler says, and how many kernels came out."""
    program = ctypes.c_void_p()
    names = (ctypes.c_char_p * len(HEADERS))(*(name.encode() for name in HEADERS))
    texts = (ctypes.c_char_p * len(HEADERS))(*(text.encode() for text in HEADERS.values()))
    text = source.read_bytes()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, str(source).encode(), len(HEADERS), texts, names)
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    good = nvrtc.nvrtcCompileProgram(program, len(options), given) == 0

    def fetched(what: str) -> str:
        size = ctypes.c_size_t()
        getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(nvrtc, f"nvrtcGet{what}")(program, buffer)
        return buffer.value.decode()

    log, kernels = fetched("ProgramLog"), fetched("PTX").count(".entry") if good else 0
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return good, log, kernels


def main() -> int:
    """Compiles the files; the exit status."""
    parser = argparse.ArgumentParser(description="Compiles the CUDA kernels with NVRTC.")
    parser.add_argument("files", nargs="*", type=Path, help="default: all of csrc/cuda/")
    parser.add_argument(
        "-I",
        dest="made",
        type=Path,
        default=CUDA.parent.parent / "build" / "core",
        help="where make has written opcodes.inc",
    )
    parser.add_argument("--arch", default="compute_80", help="(default: %(default)s)")
    options = parser.parse_args()
    [library] = folder("cuda_nvrtc", "lib").glob("libnvrtc.so.*")
    nvrtc = ctypes.CDLL(str(library))
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    print(f"NVRTC {major.value}.{minor.value}, {options.arch}")
    flags = [
        "--std=c++17",
        "-default-device",
        f"-I{CUDA}",
        f"-I{options.made}",
        f"-I{folder('cuda_runtime', 'include')}",
    ]
    bad = 0
    for source in options.files or sorted(CUDA.glob("*.cu")):
        if source.name in HOST_ONLY:
            continue
        for dtype in DTYPES if source.stem.endswith("_dtype") else ("",):
            began = time.perf_counter()
            more = [f"-DNR_DTYPE_NAME={dtype}"] if dtype else []
            arch = "compute_90a" if source.stem.endswith("_wgmma") else options.arch  # as mk/cuda.mk has it
            good, log, kernels = compiled(nvrtc, source, [f"--gpu-architecture={arch}", *flags, *more])
            print(f"{source.name:<22}{dtype:<9}{kernels:5d} kernels{time.perf_counter() - began:7.1f} s", flush=True)
            if not good:
                bad += 1
                print(log[:4000], file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
