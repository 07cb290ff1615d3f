"""What the build promises: the symbols, the embedded header, dependencies, messages, the wheel."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import norch
from norch._binding import library as _lib
from norch.ops._rows import OPCODES

pytestmark = pytest.mark.host

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(norch.__file__).parent / "libnorch.so"
BARE = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "NORCH_LIBRARY", "NORCH_ISA")}


def run(*command, cwd=ROOT, env=BARE):
    return subprocess.run([str(word) for word in command], cwd=cwd, env=env, capture_output=True, text=True)


def make(*arguments, **variables):
    """make in the checkout, with no word from the make that may have started us, and no nvcc."""
    variables.setdefault("NVCC", "")
    env = {key: value for key, value in BARE.items() if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    return run("make", *arguments, *(f"{name}={value}" for name, value in variables.items()), env=env)


def header():
    """The public C API."""
    return "".join((ROOT / "csrc" / name).read_text() for name in ("norch.h", "norch_families.h", "norch_runtime.h"))


def declared():
    return set(re.findall(r"\b(norch_\w+)\(", re.sub(r"/\*.*?\*/", "", header(), flags=re.S)))


def test_the_library_exports_what_the_header_declares_and_nothing_else():
    listing = run("nm", "-D", "--defined-only", LIBRARY).stdout
    assert {line.split()[-1] for line in listing.splitlines()} == declared()


@pytest.mark.skipif(shutil.which("strip") is None, reason="needs strip")
def test_the_library_is_small(tmp_path):
    small = tmp_path / "libnorch.so"
    done = run("strip", "-o", small, LIBRARY)
    assert done.returncode == 0, done.stderr
    assert small.stat().st_size < 4_500_000  # as README says


def test_the_library_carries_its_header():
    library = ctypes.CDLL(str(LIBRARY))
    library.norch_header.restype = ctypes.c_char_p
    text = re.sub(r" */\*.*?\*/", "", header(), flags=re.S)
    assert library.norch_header().decode().split("\n") == [line for line in text.split("\n") if line] + [""]
    library.norch_abi.restype = ctypes.c_uint64
    assert library.norch_abi() > 2**32


def test_python_binds_every_function_of_the_header():
    assert declared() <= set(vars(_lib.lib))


def test_an_isa_that_this_machine_lacks_is_named():
    done = run(sys.executable, "-c", "import norch", env={**os.environ, "NORCH_ISA": "abacus"})
    assert done.returncode != 0
    assert "NORCH_ISA=abacus" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "changed, rebuilt",
    [
        ("csrc/norch.h", "csrc/core/library.c"),
        ("csrc/norch.h", "csrc/python/make_calls.py"),
        ("csrc/core/dtype.h", "csrc/core/tensor.c"),
        ("csrc/core/../ops.def", "csrc/core/optable.c"),  # make knows a header by the path that includes it
    ],
)
def test_a_changed_header_rebuilds_what_includes_it(changed, rebuilt):
    assert make("all").returncode == 0
    assert " CC " not in make("all").stdout
    planned = make("-n", "-W", changed, "all").stdout
    assert rebuilt in planned
    assert "LINK" in planned


def test_a_build_under_another_name_is_the_same_build(tmp_path):
    """As a wheel's make has it, which links the objects that are there."""
    assert make("all").returncode == 0
    planned = make("-n", "build/wheel/libnorch.so", BUILD=ROOT / "build", LIB="build/wheel/libnorch.so", LDFLAGS="-s")
    assert planned.returncode == 0 and "CC    " not in planned.stdout
    for name in ("a", "b"):
        assert make(tmp_path / name / "core" / "opcodes.inc", BUILD=tmp_path / name).returncode == 0
    assert (tmp_path / "a" / "wanted").read_text() == (tmp_path / "b" / "wanted").read_text()


def test_a_changed_formula_rebuilds_only_what_has_formulas(tmp_path):
    """Every object includes the opcodes, a file of names alone, which is not written again if no name changes."""
    assert make("all").returncode == 0
    folders = ("core", "cpu", "ops", "program", "python", "python/capture")
    made = [path for folder in folders for path in (ROOT / "build" / folder).glob("*.d")]
    sources = {path.relative_to(ROOT / "csrc").with_suffix("") for path in (ROOT / "csrc").rglob("*.c")}
    made = [path for path in made if path.relative_to(ROOT / "build").with_name(path.name.split(".")[0]) in sources]
    users = {f"{path.parent.name}/{path.stem}" for path in made if "/../ops.def" in path.read_text()}
    assert {re.sub(r"_isa.*", "", name) for name in users} == {"core/optable", "cpu/pointwise", "cpu/reduce"}

    shutil.copytree(ROOT / "csrc", tmp_path / "csrc")
    shutil.copytree(ROOT / "mk", tmp_path / "mk")
    shutil.copy(ROOT / "Makefile", tmp_path)
    table, names = tmp_path / "csrc" / "ops.def", tmp_path / "build" / "core" / "opcodes.inc"

    def written():
        done = run("make", "NVCC=", f"PYTHON={sys.executable}", names, f"BUILD={tmp_path}/build", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return os.stat(names).st_ino

    first = written()
    assert names.read_text().split() == [f"NR_OP_{name}," for name in OPCODES]
    for old, new, kept in (("SAME,  -x", "SAME,  0 - x", True), ("UNARY( neg,", "UNARY( negative,", False)):
        table.write_text(table.read_text().replace(old, new, 1))
        os.utime(table, (os.stat(names).st_mtime + 5,) * 2)
        assert (written() == first) is kept


def test_warnings_stop_only_those_who_ask(tmp_path):
    """A newer compiler's warnings are no reason to refuse a user, or pip, the library."""
    unit = tmp_path / "build" / "core" / "error.o"
    (tmp_path / "warns.h").write_text("#warning of a newer compiler\n")
    unmarked = {"BUILD": tmp_path / "build", "CFLAGS": f"-include {tmp_path}/warns.h"}
    done = make(unit, **unmarked, WERROR="")
    assert done.returncode == 0 and "warning: #warning of a newer compiler" in done.stderr
    done = make(unit, **unmarked, WERROR="-Werror")
    assert done.returncode != 0 and "error: #warning of a newer compiler" in done.stderr
    env = {key: value for key, value in BARE.items() if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "WERROR")}
    planned = run("make", "-nB", "V=1", "NVCC=", unit, f"BUILD={tmp_path}/build", env=env).stdout
    assert " -Wall " in planned and "-Werror" not in planned
    checked = run("make", "-nB", "check", env=env).stdout
    assert re.search(r" -Wall .* -Werror .* -o build/check/cpu/pool_isa\.baseline\.o ", checked)


def test_pooling_compiles_at_O1_without_a_warning(tmp_path):
    unit = tmp_path / "cpu" / "pool_isa.baseline.o"
    done = make(unit, BUILD=tmp_path, CFLAGS="-O1", WERROR="-Werror")
    assert done.returncode == 0, done.stderr


def test_make_takes_as_many_jobs_as_it_is_told():
    """-j by force is a surprise: outputs mix, and a machine that others use is taken whole."""
    assert "-j" not in make("-pn", "help").stdout.partition("\nMAKEFLAGS")[2].partition("\n")[0]


def test_dev_builds_for_this_machine_only():
    planned = make("-nB", "dev", V="1").stdout
    compiled = [line for line in planned.splitlines() if " -c -o " in line]
    sources = [line.split()[-1] for line in compiled]
    assert len(sources) == len(set(sources)) > 80 and {"csrc/cpu/matmul_isa.c", "csrc/ops/view.c"} < set(sources)
    assert all(" -O1 " in line and " -o build/dev/" in line for line in compiled)
    assert not any(f" {level} " in line for line in compiled for level in ("-O2", "-O3"))
    assert "NORCH_LIBRARY" in make("-n", "test", V="1", DEV="1").stdout


def test_without_a_compiler_make_says_what_to_install():
    done = make("all", CC="no-such-compiler")
    assert done.returncode != 0
    assert done.stderr.count("\n") == 1
    assert "apt install build-essential" in done.stderr


@pytest.mark.parametrize(
    "script, word",
    [
        ('case "$2" in *version_info*) exit 1;; esac; echo Python 3.9.2', "3.10 or newer"),
        ('case "$2" in *ensurepip*) exit 1;; esac', "apt install python3-venv"),
        ("exit 127", "3.10 or newer"),
    ],
)
def test_without_a_good_python_make_says_what_to_install(tmp_path, script, word):
    python = tmp_path / "python3"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    done = make("venv-test", PYTHON=python, VENV=tmp_path / "venv")
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if not line.startswith("make:")]
    assert len(said) == 1, done.stderr
    assert word in said[0]


def test_the_search_for_a_python_prints_nothing(tmp_path):
    build = tmp_path / "build"  # on Debian, this PATH has python3, but no python
    arguments = (f"BUILD={build}", "NVCC=", f"LIB={build}/libnorch.so", build / "python" / "calls.inc")
    env = {key: value for key, value in BARE.items() if not key.startswith("M")} | {"PATH": "/usr/bin:/bin"}
    done = run("make", *arguments, env=env)
    assert (done.returncode, done.stderr) == (0, "")


def test_make_help_lists_every_target():
    text = make("help").stdout
    for (
        target
    ) in "all demo test test-fast check ci-long sanitize bench wheels wheel-cuda release format clean help".split():
        assert f"make {target} " in text


def test_the_version_has_one_source():
    text = (ROOT / "norch" / "__init__.py").read_text()
    assert re.search(r'^__version__ = "([\d.]+)"$', text, re.M)[1] == norch.__version__


def test_norch_imports_from_any_directory(tmp_path):
    code = "import norch; print((norch.tensor([1.0, 2.0]) * 2).tolist())"
    done = run(sys.executable, "-c", code, cwd=tmp_path, env=os.environ)
    assert done.stdout == "[2.0, 4.0]\n", done.stderr


GENERATED = ("__init__.pyi", "_methods.pyi", "linalg.pyi", "special.pyi")  # release/stubs.py


def checkout(where):
    """A copy of what a clone would hold, and of our objects, which save compiling them again."""
    (where / "build").mkdir(parents=True)
    for name in "Makefile setup.py pyproject.toml MANIFEST.in LICENSE README.md csrc mk norch release tests".split():
        source = ROOT / name
        if source.is_dir():
            skipped = shutil.ignore_patterns("*.so", "__pycache__", *GENERATED)
            shutil.copytree(source, where / name, ignore=skipped)
        else:
            shutil.copy2(source, where)
    for name in [
        *(ROOT / "build").glob("*.[od]"),
        *(ROOT / "build" / part for part in ("core", "ops", "python", "cpu", "wanted", "flags")),
    ]:
        (shutil.copytree if name.is_dir() else shutil.copy2)(name, where / "build" / name.name)
    return where


def files(where):
    return {str(path.relative_to(where)) for path in where.rglob("*") if path.relative_to(where).parts[0] != "build"}


@pytest.mark.slow
@pytest.mark.long  # .ci/run packs a wheel of its own
def test_the_wheel_fits_any_python_and_carries_the_library(tmp_path):
    source = checkout(tmp_path / "a folder")
    (source / "norch" / "libnorch_cuda.so").touch()
    before = files(source)
    quick = {**BARE, "CFLAGS": "-O0"}  # what is built is looked at, not timed
    done = run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", tmp_path, source, env=quick)
    assert done.returncode == 0, done.stdout + done.stderr
    assert files(source) == before
    [wheel] = tmp_path.glob("*.whl")
    assert re.fullmatch(rf"norch_dl-{re.escape(norch.__version__)}-py3-none-linux_\w+\.whl", wheel.name)
    names = zipfile.ZipFile(wheel).namelist()
    promised = (
        "libnorch.so py.typed compat/left_out.txt compat/path/torch/__init__.py nn/__init__.py utils/data/__init__.py"
    )
    promised += " __init__.pyi _methods.pyi _package/typing.pyi nn/functional/__init__.pyi"
    assert {f"norch/{name}" for name in promised.split()} <= set(names)
    assert "norch/libnorch_cuda.so" not in names  # it has a wheel of its own
    assert not [name for name in names if name.startswith(("tests", "csrc", "build"))]

    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", venv)
    python = venv / "bin" / "python"
    assert run(python, "-m", "pip", "install", "--no-index", "--no-deps", wheel).returncode == 0
    done = run(python, "-c", "import norch; print(norch.__file__)", cwd=tmp_path)
    assert done.stdout.startswith(str(venv)), done.stderr


@pytest.mark.slow
@pytest.mark.long
def test_without_a_compiler_pip_says_what_to_install(tmp_path):
    source = checkout(tmp_path / "source")
    env = {**BARE, "CC": "no-such-compiler"}
    done = run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", tmp_path, source, env=env)
    assert done.returncode != 0
    assert "libnorch.so was not built: norch needs a C compiler" in done.stdout + done.stderr


# ---- the CUDA backend ------------------------------------------------------------------------------------------------


def fake_nvcc(where, release, body="exit 0"):
    where.mkdir(parents=True)
    nvcc = where / "nvcc"
    nvcc.write_text(f'#!/bin/sh\ncase "$1" in --version) echo "release {release}, V{release}.1"; exit;; esac\n{body}\n')
    nvcc.chmod(0o755)
    return nvcc


def what_make_finds(tmp_path, **variables):
    # build/none: what make notes of flags must not touch the objects that are here
    done = make("-n", "cudasim", BUILD=tmp_path / "build", VENV=tmp_path / "venv", **variables)
    return next(line for line in done.stdout.splitlines() if line.startswith("nvcc "))


def test_make_finds_nvcc_and_says_which(tmp_path):
    here = fake_nvcc(tmp_path / "path", "12.4")
    home = fake_nvcc(tmp_path / "home" / "bin", "13.0")
    wheel = fake_nvcc(tmp_path / "venv/lib/python3.11/site-packages/nvidia/cu13/bin", "13.0")
    nowhere = {"NVCC": "no-such-nvcc", "CUDA_HOME": "/none"}
    assert what_make_finds(tmp_path, NVCC=here) == f"nvcc        {here} 12.4"
    assert what_make_finds(tmp_path, **{**nowhere, "CUDA_HOME": home.parent.parent}) == f"nvcc        {home} 13.0"
    assert what_make_finds(tmp_path, **nowhere) == f"nvcc        {wheel} 13.0"
    wheel.unlink()
    assert what_make_finds(tmp_path, **nowhere) == what_make_finds(tmp_path) == "nvcc        none: CPU only"
    old = fake_nvcc(tmp_path / "old", "11.8")
    assert "11.8, but the CUDA backend needs 12 or 13: CPU only" in what_make_finds(tmp_path, NVCC=old)


def test_sm_90_has_code_of_sm_90a_too(tmp_path):
    """Of the files whose instructions need it; PTX is of a plain architecture, which newer devices translate."""
    variables = {
        "BUILD": tmp_path / "build",
        "CUDA_LIB": tmp_path / "cuda.so",
        "NVCC": fake_nvcc(tmp_path / "bin", "13.0"),
    }
    ptx = "-gencode arch=compute_{0},code=compute_{0}"
    for architectures, plain, special in (
        ("90", ["90", ptx.format(90)], ["90a", "-DNR_SM_90A"]),
        ("80 90", ["80", "90", ptx.format(80)], ["80", "90a", "-DNR_SM_90A"]),
        ("80", ["80", ptx.format(80)], ["80", ptx.format(80)]),
    ):
        lines = make("-n", "cuda", CUDA_ARCHS=architectures, **variables).stdout.splitlines()
        for name, wanted in (("matmul", plain), ("matmul_wgmma", special)):
            [line] = [line for line in lines if line.endswith(f"csrc/cuda/{name}.cu") and " -c " in line]
            for word in wanted:
                assert (f"code=sm_{word} " if word[0].isdigit() else word) in line
            assert ("code=sm_90a " in line) == ("NR_SM_90A" in line) == (
                "90a" in wanted
            ) and "code=compute_90a" not in line


def test_a_backend_that_cannot_be_built_leaves_the_library(tmp_path):
    source = checkout(tmp_path / "source")
    library = source / "norch/libnorch.so"
    library.touch()  # as if it were built: -o keeps make from doing so
    nvcc = fake_nvcc(tmp_path / "bin", "13.0", "echo 'no such thing' >&2; exit 1")
    env = {key: value for key, value in BARE.items() if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    command = ("make", "-o", "norch/libnorch.so", f"NVCC={nvcc}")
    done = run(*command, cwd=source, env=env)
    assert done.returncode == 0, done.stderr
    assert "no such thing" in done.stderr and "the CUDA backend was not built" in done.stderr
    assert library.exists() and not (source / "norch/libnorch_cuda.so").exists()
    again = run(*command, cwd=source, env=env)  # not tried again before something changes
    assert again.returncode == 0 and "not built" not in again.stderr


def test_the_toolchain_is_of_one_release_and_said_to_be_there(tmp_path):
    """pip is stood in for: the wheels have 104 MB."""
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    nvcc = tmp_path / "venv/lib/python3.11/site-packages/nvidia/cu13/bin"
    fake = fake_nvcc(tmp_path / "wheel", "13.0")
    python.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\nmkdir -p {nvcc} && cp {fake} {nvcc}/nvcc\n')
    python.chmod(0o755)
    done = make("cuda-toolchain", BUILD=tmp_path / "build", VENV=tmp_path / "venv")
    assert done.returncode == 0, done.stderr
    assert f"nvcc 13.0 is in {tmp_path}/venv: make cuda builds the backend with it" in done.stdout
    wheels = [word for word in (tmp_path / "asked").read_text().split() if word.startswith("nvidia-")]
    assert len(wheels) == 5 and all("==13.0." in wheel for wheel in wheels)
    python.write_text("#!/bin/sh\nexit 1\n")
    done = make("cuda-toolchain", BUILD=tmp_path / "build", VENV=tmp_path / "venv")
    assert done.returncode != 0 and "norch could not install nvcc from the package index" in done.stderr


@pytest.mark.parametrize(("release", "folder"), [("12.4", "cuda_runtime"), ("13.0", "cu13")])
def test_a_shared_runtime_is_found_where_its_wheel_puts_it(tmp_path, release, folder):
    nvcc = fake_nvcc(tmp_path / "bin", release)
    build = {"BUILD": tmp_path / "build", "LIB": tmp_path / "libnorch.so", "NVCC": nvcc}
    for kind in ("static", "shared"):
        done = make("-n", "cuda", "V=1", CUDART=kind, **build)
        [link] = [line for line in done.stdout.splitlines() if f"-cudart {kind}" in line]
        assert (f"-rpath,$ORIGIN/../nvidia/{folder}/lib" in link) == (kind == "shared")
