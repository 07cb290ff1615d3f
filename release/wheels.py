"""Looks at wheels of norch without running them: names, sizes, symbols, and what auditwheel says of those for Linux.

    python release/wheels.py dist/norch_dl-*.whl

Ends with status 1 after naming whatever is wrong.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path

import macho
import pe
import webassembly
from elftools.elf.elffile import ELFFile

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 6_000_000
MOST_BYTES_FOR_PYODIDE = {
    "wheel": 1_600_000,
    "library": 2_200_000,
    "library, compressed": 500_000,
}  # of the one for Pyodide
LIBRARY, LIBRARY_ON_WINDOWS = "norch/libnorch.so", "norch/libnorch.dll"
ELF_MACHINES = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64"}


def exported() -> set[str]:
    """The functions of the public headers, which are all that a library may export."""
    text = "".join(path.read_text() for path in (ROOT / "csrc").glob("norch*.h"))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return set(re.findall(r"\b(norch_\w+)\(", text))


def is_of_python(symbol: str) -> bool:
    return symbol.startswith(("Py", "_Py"))


def wrong_symbols(defined: set[str], dynamic: set[str], weak: set[str]) -> list[str]:
    """What is wrong with the symbols that a library has, and that it takes from whatever loads it."""
    found = [f"exports {name}" for name in sorted(defined - exported())]
    found += [f"lacks {name}" for name in sorted(exported() - defined)]
    found += [f"needs {name}, which no library has" for name in sorted(dynamic) if not is_of_python(name)]
    return found + [f"cannot do without {name}" for name in sorted(dynamic - weak) if is_of_python(name)]


def wrong_on_macos(path: Path, platform: str) -> list[str]:
    library = macho.read(path)
    named = re.fullmatch(r"macosx_(\d+)_(\d+)_(\w+)", platform)
    found = wrong_symbols(library.defined, library.dynamic, library.weak)
    if named is None or library.machine != named[3] or library.oldest_system > (int(named[1]), int(named[2])):
        found.append(f"is for {library.machine}, macOS {library.oldest_system}")
    if library.loads != ["/usr/lib/libSystem.B.dylib"]:
        found.append(f"loads {library.loads}")
    if library.machine == "arm64" and not library.signed:
        found.append("is not signed, and arm64 loads nothing else")
    return found


def wrong_on_linux(path: Path, wheel: Path, platform: str) -> list[str]:
    with path.open("rb") as file:
        elf = ELFFile(file)
        machine = ELF_MACHINES.get(elf.header.e_machine, elf.header.e_machine)
        symbols = [s for s in elf.get_section_by_name(".dynsym").iter_symbols() if s.name]
    named = {True: set(), False: set()}
    for symbol in symbols:
        named[symbol.entry.st_shndx != "SHN_UNDEF"].add(symbol.name)
    weak = {symbol.name for symbol in symbols if symbol.entry.st_info.bind == "STB_WEAK"}
    found = wrong_symbols(named[True], {name for name in named[False] if is_of_python(name)}, weak)
    if not platform.endswith("_" + machine):
        found.append(f"is for {machine}")
    done = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", str(wheel)], capture_output=True, text=True, check=False
    )
    said = " ".join(done.stdout.split())
    fits = re.search(r'following platform tag: "(\w+)"', said)
    if fits is None or fits[1] != platform:
        found.append(f"auditwheel: {said or done.stderr.strip()}")
    return found


def parsed(source: bytes) -> str:
    """What Python reads in a module, with lines and columns, but for its docstring: all but its comments."""
    module = ast.parse(source)
    if ast.get_docstring(module) is not None:
        del module.body[0]
    return ast.dump(module, include_attributes=True)


def wrong_on_wasm(path: Path, wheel: Path) -> list[str]:
    """A page waits for its bytes; Pyodide itself says what it cannot import (make test-wasm)."""
    library = path.read_bytes()
    sizes = {
        "wheel": wheel.stat().st_size,
        "library": len(library),
        "library, compressed": len(zlib.compress(library, 9)),
    }
    found = [
        f"{what} has {sizes[what]:,} bytes; at most {most:,}"
        for what, most in MOST_BYTES_FOR_PYODIDE.items()
        if sizes[what] > most
    ]
    with zipfile.ZipFile(wheel) as archive:
        found += [
            f"{name} is not the checkout's, without comments and its docstring"
            for name in archive.namelist()
            if name.endswith(".py") and parsed(archive.read(name)) != parsed((ROOT / name).read_bytes())
        ]
    of_the_linker = {"__wasm_call_ctors", "__wasm_apply_data_relocs"}
    return found + wrong_symbols(webassembly.exports(path) - of_the_linker, set(), set())


def wrong_on_windows(path: Path, platform: str) -> list[str]:
    """The symbols of Python are looked up at load; the C library is the one that Windows has."""
    library = pe.read(path)
    found = wrong_symbols(library.exports, set(), set())
    if platform != f"win_{library.machine}":
        found.append(f"is for {library.machine}")
    of_windows = re.compile(r"(kernel32|api-ms-win-crt-[a-z]+-l1-1-0)\.dll", re.IGNORECASE)
    return found + [f"loads {name}" for name in sorted(library.loads) if not of_windows.fullmatch(name)]


def wrong(wheel: Path) -> list[str]:
    """What is wrong with a wheel."""
    name = re.fullmatch(r"norch_dl-[\d.]+-py3-none-([\w.]+)\.whl", wheel.name)
    if name is None:
        return ["is not named as a wheel of norch for one platform and any Python"]
    found = []
    if wheel.stat().st_size > MOST_BYTES:
        found.append(f"has {wheel.stat().st_size:,} bytes; at most {MOST_BYTES:,}")
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        libraries = [inside for inside in archive.namelist() if re.search(r"\.(so|dylib|dll|pyd|lib|pdb)\b", inside)]
        wanted = LIBRARY_ON_WINDOWS if name[1].startswith("win") else LIBRARY
        if libraries != [wanted]:
            return [*found, f"holds the libraries {libraries}"]
        path = Path(archive.extract(wanted, folder))
        if name[1].startswith("win"):
            missing = {"mingw-w64", "musl"} - {
                Path(inside).stem for inside in archive.namelist() if "_licenses/" in inside
            }
            found += [f"lacks the license of {part}" for part in sorted(missing)]
            return found + wrong_on_windows(path, name[1])
        if name[1].startswith("macosx"):
            return found + wrong_on_macos(path, name[1])
        if name[1].endswith("wasm32"):
            return found + wrong_on_wasm(path, wheel)
        return found + wrong_on_linux(path, wheel, name[1])


def main(wheels: list[str]) -> int:
    bad = 0
    for wheel in map(Path, wheels):
        found = wrong(wheel)
        bad += bool(found)
        print(f"  {wheel}  {wheel.stat().st_size / 1e6:.1f} MB  {'; '.join(found) or 'good'}")
    return 1 if bad or not wheels else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
