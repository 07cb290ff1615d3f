"""What the compiler makes of the CUDA kernels: registers, spills and shared memory of each, how many blocks of it a
multiprocessor can hold and which share of its threads these are, how wide the hot ones reach into memory, and how much
of the loops of products is multiply-adds. It needs nvcc, no GPU:

    make cuda-report ARGS="--arch 90 --only multiply"

Threads of a block are those of its launch bounds, shared memory is what the kernel declares and what TELL_SHARED of
cuda.cuh says of dynamic memory ("+": it has some and does not say how much, which is left out).

It fails where a kernel spills more registers than SPILLS has of it, or a hot one lacks an access or multiply-adds that
it should have. The machine code is read with cuobjdump and nvdisasm where they are (pip: nvidia-cuda-cuobjdump,
nvidia-cuda-nvdisasm), else the compiler's PTX, which has no loops to look at.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "csrc" / "cuda"
DTYPES = re.findall(r"^WIDE\( *\w+, *(\w+)", (KERNELS.parent / "dtypes.def").read_text(), re.M)

# Kernels by a pattern of their names, and what their code must hold: accesses of 16 bytes to global (G) and shared (S)
# memory, asynchronous copies of 16 bytes from the one to the other.
HOT = {
    r"multiply<tile_shape<float, float, 128, .*>, 1, 1>": {"load G", "load S", "store G"},
    r"multiply<tile_shape<float, float, 128, .*>, 1, 2>": {"load G", "load S", "store G", "store S"},
    r"multiply<tile_shape<float, float, 128, .*>, 2, 1>": {"load G", "load S", "store G", "store S"},
    r"multiply<tile_shape<float, float, 128, .*>, 2, 2>": {"load G", "load S", "store G", "store S"},
    r"multiply<tile_shape<float, float, 64, .*>, [12], [12]>": {"load G", "load S", "store G"},
    r"correlate(_shallow)?<tile_shape<float, float, (64|128), .*>": {"load S", "store G"},
    r"dense<kernels_of<row_(add|exp), dtype<4>.*>": {"load G", "store G"},
    r"strided<kernels_of<row_add, dtype<4>.*>": {"load G", "store G"},
    r"reduce<row_(sum|amax), dtype<4>.*>": {"load G"},
    r"softmax_rows<float, [1248]>": {"load G", "store G"},
    r"softmax_rows_backward<float, [1248]>": {"load G", "store G"},
    r"normalize_(rows|input)<float, [1248]>": {"load G", "store G"},
    r"sum_columns<float, 4, float>": {"load G"},
    r"attend(_back)?<float, [1248]>": {"load G", "store G"},
    r"fill_dense<unsigned int>": {"store G"},
    r"step_all<(sgd|adam|rmsprop|adagrad)_step<float> >": {"load G", "store G"},
    r"draw32<\d>": {"store G"},
}

# Kernels that spill registers, by the whole of their names, and how many bytes at most, as nvcc 13.0 compiles them for
# sm_80 and for sm_90a; for others the larger number counts. Attention's 344 bytes are of the kernel that computes
# blocks with a NaN again.
SPILLS = {
    r"fused<single<128, false>, 128, 16, 2, 2, false, (true|false)>": (124, 124),
    r"fused<single<128, true>, 128, 16, 2, 1, false, true>": (344, 284),
    r"fused<single<256, (true|false)>, 256, 16, [0134], [12], false, true>": (64, 48),
    r"multiply<shape_16bit<dtype<[89]>, 64, 64, 64, 32, 32, 3, 3>, 2, 2>": (224, 300),
    r"multiply<shape_16bit<dtype<[89]>, 128, 256, 64, 64, 64, 3, 1>, 1, 1>": (4, 8),
    r"multiply_tf32<mma_shape<64, 128, 32, 64, 3, 2, (true|false), (true|false), false, 1> >": (136, 88),
    r"multiply_rows<float, 4, 1, 2>": (4, 0),
    r"correlate_runs<7, [12], [14]>": (8, 12),
    r"correlate_mma<dtype<4>, mma_shape<16, 256, 16, 64, 2, 3>, 0>": (0, 12),
}

# The least share of multiply-adds in the loop that has most of them.
BUSY = {
    r"multiply<tile_shape<float, float, 128, .*>, [12], [12]>": 0.87,
    r"multiply<tile_shape<float, float, 64, .*>, [12], [12]>": 0.77,
}

# Threads and KiB of shared memory that a multiprocessor holds, less 1 KiB for each block. Every one has 65,536
# registers, which a warp takes by 256, and room for 32 blocks, unless BLOCKS says less (CUDA C++ Programming Guide,
# compute capabilities).
HOLDS = {
    "75": (1024, 64),
    "80": (2048, 164),
    "86": (1536, 100),
    "87": (1536, 164),
    "89": (1536, 100),
    "90": (2048, 228),
}
HOLDS |= {"100": (2048, 228), "103": (2048, 228), "110": (1536, 228), "120": (1536, 100), "121": (1536, 100)}
BLOCKS = {"75": 16, "86": 24, "87": 16, "89": 24, "110": 24, "120": 24, "121": 24}

SASS = {
    r"LDG\.E[.\w]*\.128": "load G",
    r"STG\.E[.\w]*\.128": "store G",
    r"LDS[.\w]*\.128": "load S",
    r"STS[.\w]*\.128": "store S",
    r"LDGSTS[.\w]*\.128": "copy",
}
PTX = {
    r"ld\.global[.\w]*\.v4\.[bfu]32": "load G",
    r"st\.global[.\w]*\.v4\.[bfu]32": "store G",
    r"ld\.shared[.\w]*\.v4\.[bfu]32": "load S",
    r"st\.shared[.\w]*\.v4\.[bfu]32": "store S",
    r"cp\.async\.c[ag]\.shared\.global[^;]*\], 16\b": "copy",
}


@dataclass
class Kernel:
    """shared: bytes that it declares. dynamic: those that it says a launch adds; None where it does not say."""

    name: str
    registers: int = 0
    spilled: int = 0
    shared: int = 0
    dynamic: int | None = 0
    threads: int = 256
    multiplies: float = 0.0
    accesses: Counter[str] = field(default_factory=Counter)

    def blocks(self, arch: str) -> int:
        """How many of its blocks a multiprocessor holds at once."""
        threads, kilobytes = HOLDS.get(arch.rstrip("af"), (2048, 100))
        warps = -(-self.threads // 32)
        of_registers = 65536 // (-(-max(self.registers, 1) * 32 // 256) * 256) // warps
        of_shared = kilobytes * 1024 // (self.shared + (self.dynamic or 0) + 1024)
        return min(threads // (32 * warps), of_registers, of_shared, BLOCKS.get(arch.rstrip("af"), 32))

    def held(self, arch: str) -> float:
        """Their share of the threads that it could hold."""
        return self.blocks(arch) * self.threads / HOLDS.get(arch.rstrip("af"), (2048, 100))[0]


def known_spills(name: str, arch: str) -> int:
    """The bytes that a kernel may spill."""
    found = [both for pattern, both in SPILLS.items() if re.fullmatch(pattern, name)]
    column = {"80": slice(0, 1), "90": slice(1, 2)}.get(arch.rstrip("af"), slice(None))
    return max((most for both in found for most in both[column]), default=0)


def multiplies_of(code: str) -> float:
    """The share of multiply-adds in the loop of this machine code that has most of them."""
    found = re.findall(r"/\*([0-9a-f]{4,5})\*/\s+(?:@!?U?P\w+ )?([A-Z0-9_.]+)([^;]*);", code)
    instructions = [(int(at, 16), name, rest) for at, name, rest in found]
    best, most = 0.0, 0
    for at, name, rest in instructions:
        to = re.search(r"0x([0-9a-f]+)$", rest.strip()) if name.startswith("BRA") else None
        if to and int(to[1], 16) < at:
            body = [what for place, what, _ in instructions if int(to[1], 16) <= place <= at]
            count = sum(what.startswith(("FFMA", "DFMA")) for what in body)
            if count > most:
                best, most = count / len(body), count
    return best


def tool(name: str) -> str | None:
    """Where a tool of the CUDA toolkit is, if anywhere: on PATH, beside nvcc, or in this Python's packages."""
    home = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin"
    packages = [Path(entry) / "nvidia" / "cu13" / "bin" for entry in sys.path]
    return next(filter(None, (shutil.which(name, path=str(p)) for p in (os.environ["PATH"], home, *packages))), None)


def run(*command: str) -> str:
    """Its output on both streams."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def plain(names: set[str]) -> dict[str, str]:
    """Mangled names and what they stand for, without types of arguments."""
    ordered = sorted(names)
    demangled = run("c++filt", *ordered).splitlines() if ordered and shutil.which("c++filt") else ordered
    return {m: re.sub(r"\([^()]*\)$", "", d.removeprefix("void ")) for m, d in zip(ordered, demangled)}


def read_ptx(ptx: str, found: dict[str, Kernel]) -> None:
    """What of a kernel stands in its PTX only: threads of a block, and dynamic shared memory."""
    of_any_size = re.findall(r"\.extern \.shared [^;]* (\w+)\[\];", ptx)
    for part in ptx.split(".entry ")[1:]:
        kernel = found.get(re.match(r"\w+", part)[0])  # type: ignore[index]
        if kernel is None:
            continue
        if threads := re.search(r"\.maxntid (\d+)(?:, (\d+), (\d+))?", part):
            kernel.threads = math.prod(int(size or 1) for size in threads.groups())
        said = [int(size) for size in re.findall(r"// dynamic shared memory: (\d+)", part)]
        if said or any(re.search(rf"\b{name}\b", part) for name in of_any_size):
            kernel.dynamic = max(said) if said else None


def code_of(cubin: Path, ptx: str) -> tuple[str, dict[str, str]]:
    """The text of the machine code, or of the PTX, and what in it counts as which access."""
    cuobjdump, nvdisasm = tool("cuobjdump"), tool("nvdisasm")
    if cuobjdump and nvdisasm:
        os.environ["PATH"] = f"{Path(nvdisasm).parent}{os.pathsep}{os.environ['PATH']}"
        return run(cuobjdump, "-sass", str(cubin)), SASS
    return ptx, PTX


def compile_unit(nvcc: str, arch: str, source: Path, dtype: str | None, folder: Path) -> tuple[list[Kernel], bool]:
    """The kernels of a source, and whether their machine code was read."""
    kept = folder / f"{source.stem}.{dtype}"
    kept.mkdir()
    cubin = kept / "unit.cubin"
    flags = ["-std=c++17", "-O3", f"-arch=sm_{arch}", "-DNORCH_ABI=0", *([f"-DNR_DTYPE_NAME={dtype}"] if dtype else [])]
    keeping = ["-keep", "-keep-dir", str(kept)]
    said = run(nvcc, "-cubin", "-Xptxas", "-v", *keeping, *flags, "-o", str(cubin), str(source))
    ptx = next(kept.glob("*.ptx")).read_text()
    found: dict[str, Kernel] = {}
    for part in said.split("Compiling entry function '")[1:]:
        mangled = part[: part.index("'")]
        numbers = [
            re.search(pattern, part) for pattern in (r"Used (\d+) reg", r"(\d+) bytes spill st", r"(\d+) bytes smem")
        ]
        found[mangled] = Kernel(mangled, *(int(n[1]) if n else 0 for n in numbers))
    read_ptx(ptx, found)
    code, patterns = code_of(cubin, ptx)
    for part in re.split(r"Function : |\.entry ", code)[1:]:
        kernel = found.get(re.match(r"\w+", part)[0])  # type: ignore[index]
        for pattern, access in patterns.items():
            if kernel:
                kernel.accesses[access] += len(re.findall(pattern, part))
        if kernel and patterns is SASS and "multiply" in kernel.name + part[:200]:
            kernel.multiplies = multiplies_of(part)
    for mangled, name in plain(set(found)).items():
        found[mangled].name = name
    return list(found.values()), patterns is SASS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default="80", help="compute capability without its point")
    parser.add_argument("--only", default="", help="kernels whose name matches")
    parser.add_argument("--dtypes", default="float32", help=f"of the sources that are compiled once a dtype: {DTYPES}")
    asked = parser.parse_args()
    nvcc = tool("nvcc")
    if nvcc is None:
        sys.exit(
            "cuda-report needs nvcc (CUDA 12 or 13) on PATH or under CUDA_HOME; `make cuda-toolchain` installs one"
        )
    others = [source for source in sorted(KERNELS.glob("*.cu")) if not source.stem.endswith("_dtype")]
    units = [
        (source, None) for source in others if source.stem != "chain_compile"
    ]  # it has none, and needs the build's strings
    units += [(source, dtype) for source in sorted(KERNELS.glob("*_dtype.cu")) for dtype in asked.dtypes.split(",")]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(lambda unit: compile_unit(nvcc, asked.arch, *unit, Path(folder)), units))
    kernels = [kernel for part, _ in done for kernel in part]
    print(
        f"{len(kernels)} kernels for sm_{asked.arch}; accesses of 16 bytes from the "
        f"{'machine code' if all(exact for _, exact in done) else 'PTX'}"
    )
    exact = all(exact for _, exact in done)
    heads = ("registers", "spilled", "shared", "load G", "store G", "load S", "store S", "copies", "blocks")
    print("".join(f"{head:>9}" for head in heads) + "  threads  multiply-adds  kernel")
    for kernel in kernels:
        if not re.search(asked.only, kernel.name):
            continue
        a = kernel.accesses
        shared = f"{kernel.shared + (kernel.dynamic or 0)}{'+' if kernel.dynamic is None else ''}"
        numbers = (a["load G"], a["store G"], a["load S"], a["store S"], a["copy"], kernel.blocks(asked.arch))
        busy = f"{kernel.multiplies:14.0%}" if kernel.multiplies else f"{'':14}"
        print(f"{kernel.registers:9d}{kernel.spilled:9d}{shared:>9}", end="")
        print("".join(f"{number:9d}" for number in numbers), f"{kernel.held(asked.arch):8.0%}{busy} ", kernel.name)
    known = {kernel.name: known_spills(kernel.name, asked.arch) for kernel in kernels}
    wrong = [
        f"{kernel.name}: spills {kernel.spilled} bytes, more than {known[kernel.name]}"
        for kernel in kernels
        if kernel.spilled > known[kernel.name]
    ]
    wrong += [
        f"no kernel is called {pattern}" for pattern in SPILLS if not any(re.fullmatch(pattern, k) for k in known)
    ]
    for pattern, wanted in HOT.items():
        matching = [kernel for kernel in kernels if re.match(pattern, kernel.name)]
        if not matching and "float32" in asked.dtypes:
            wrong.append(f"no kernel is called {pattern}")
        for kernel in matching:
            missing = sorted(access for access in wanted if not kernel.accesses[access])
            if missing:
                wrong.append(f"{kernel.name}: no 16 bytes in one {', '.join(missing)}")
    for pattern, least in BUSY.items():
        for kernel in kernels:
            if exact and re.match(pattern, kernel.name) and kernel.multiplies < least:
                wrong.append(f"{kernel.name}: {kernel.multiplies:.0%} of its loop are multiply-adds, not {least:.0%}")
    most = max(kernels, key=lambda kernel: kernel.registers)
    print(f"most registers: {most.registers}, {most.name}; kernels that spill: {sum(k.spilled > 0 for k in kernels)}")
    for one in wrong:
        print("WRONG", one)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
