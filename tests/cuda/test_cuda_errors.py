"""What is said where CUDA cannot be used. Each case is a process of its own, with a plugin and a driver made for it."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import norch

ROOT = Path(norch.__file__).resolve().parent.parent
PLUGIN = ROOT / "norch" / "libnorch_cuda.so"  # where nvcc has built it
SIMULATION = ROOT / "build" / "cudasim" / "libnorch_cudasim.so"
COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)

ASK = """
import norch
assert not norch.cuda.is_available() and norch.cuda.device_count() == 0
print(norch.cuda.why_not())
for call in (lambda: norch.ones(2, device="cuda"), norch.ones(2).cuda, norch.cuda.synchronize, norch.cuda.init,
             norch.cuda.mem_get_info):
    try:
        call()
        print("no error")
    except norch.DeviceError as error:
        assert str(error) == norch.cuda.why_not()
memory = norch.cuda.memory_allocated, norch.cuda.max_memory_allocated
memory += norch.cuda.memory_reserved, norch.cuda.max_memory_reserved
assert [call(*given) for call in memory for given in ((), (0,), ("cuda:1",), ("cpu",))] == [0] * 16
assert norch.ones(2).sum().item() == 2 and norch.ones(2).pin_memory().is_pinned() is False
"""


def python(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own that stands on the CPU."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("NORCH_CUDA", "NORCH_TEST"))}
    env = {**kept, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env, cwd="/")


def fits(plugin: Path) -> bool:
    """Whether a plugin has been built, and for this library."""
    if not plugin.exists():
        return False
    abi = ctypes.CDLL(str(plugin)).nr_plugin_abi
    abi.restype = ctypes.c_uint64
    return bool(abi() == norch._binding.library.lib.norch_abi() & 2**64 - 1)


def said(program: str = ASK, **environment: str) -> str:
    done = python(program, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def compiled(source: str, to: Path) -> Path:
    """A shared library of C text."""
    if COMPILER is None:
        pytest.skip("needs a C compiler")
    text = to.with_suffix(".c")
    text.write_text(source)
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", str(to), str(text)], check=True)
    return to


# ---- plugins --------------------------------------------------------------------------------------------------------


def test_no_plugin(tmp_path: Path) -> None:
    shutil.copy(norch._binding.library._PATH, tmp_path / "libnorch.so")
    text = said(NORCH_LIBRARY=str(tmp_path / "libnorch.so"))
    assert "built without its CUDA backend" in text and "make cuda-toolchain" in text
    assert str(tmp_path / "libnorch_cuda.so") in text


def test_a_plugin_that_is_named_and_is_not_there(tmp_path: Path) -> None:
    named = str(tmp_path / "none.so")
    assert said(NORCH_CUDA_LIBRARY=named) == (
        f"cuda: NORCH_CUDA_LIBRARY names {named}, which cannot be read: No such file or directory"
    )


def test_what_is_missing_is_looked_for_once(tmp_path: Path) -> None:
    there = compiled("int other(void) { return 1; }", tmp_path / "other.so")
    program = f"""
import os, norch
first = norch.cuda.why_not()
os.rename({str(there)!r}, {str(there)!r} + ".away")
assert norch.cuda.why_not() == first
os.environ["NORCH_CUDA_LIBRARY"] = {str(tmp_path / "none.so")!r}
print(norch.cuda.why_not())
"""
    assert "none.so, which cannot be read" in said(program, NORCH_CUDA_LIBRARY=str(there))


def test_a_plugin_named_without_a_folder(simulated: dict[str, str], tmp_path: Path) -> None:
    shutil.copy(simulated["NORCH_CUDA_LIBRARY"], tmp_path / "here.so")
    program = f"""
import os, norch
os.chdir({str(tmp_path)!r})
print(norch.cuda.device_count())
"""
    assert said(program, NORCH_CUDA_LIBRARY="here.so") == "1"


def test_a_file_that_is_no_library(tmp_path: Path) -> None:
    broken = tmp_path / "broken.so"
    broken.write_text("no library")
    text = said(NORCH_CUDA_LIBRARY=str(broken))
    assert "cannot be loaded" in text and "broken.so" in text


def test_a_library_that_is_no_plugin(tmp_path: Path) -> None:
    other = compiled("int other(void) { return 1; }", tmp_path / "other.so")
    assert said(NORCH_CUDA_LIBRARY=str(other)) == f"cuda: {other} is not a backend of norch"


def test_a_plugin_of_another_table(tmp_path: Path) -> None:
    stale = compiled(
        "unsigned long long nr_plugin_abi(void) { return 0x1234; }\nvoid *nr_plugin_open(void) { return (void *)0; }",
        tmp_path / "stale.so",
    )
    text = said(NORCH_CUDA_LIBRARY=str(stale))
    assert "was built for another version of libnorch.so" in text and "run `make`" in text
    assert "0000000000001234" in text and f"{norch._binding.library.lib.norch_abi() & 2**64 - 1:016x}" in text


# ---- drivers --------------------------------------------------------------------------------------------------------

DRIVER = """
int cuDriverGetVersion(int *version) {{ *version = {version}; return 0; }}
int cuInit(unsigned flags) {{ return {init}; }}
int cuDeviceGetCount(int *count) {{ *count = {devices}; return 0; }}
"""


@pytest.fixture(params=["nvcc", "simulation"])
def beside(request: pytest.FixtureRequest) -> dict[str, str]:
    """The environment in which a plugin is loaded: nvcc's, where it has been built, and the simulation."""
    plugin = PLUGIN if request.param == "nvcc" else SIMULATION
    if not fits(plugin):
        pytest.skip(f"{plugin.name} is not built")
    if plugin == PLUGIN and norch.cuda.is_available() and not norch.cuda.get_device_properties().simulated:
        pytest.skip("here is a GPU, with a driver of its own")
    return {"NORCH_CUDA_LIBRARY": str(plugin)}


def ask_driver(beside: dict[str, str], driver: Path) -> str:
    return said(**beside, LD_LIBRARY_PATH=str(driver.parent), NORCH_CUDASIM_DRIVER=str(driver))


@pytest.mark.parametrize(
    "driver, words",
    [
        ({"version": 11040, "init": 0, "devices": 1}, "driver is too old: it supports CUDA 11.4"),
        ({"version": 99000, "init": 0, "devices": 0}, "the NVIDIA driver sees no CUDA device"),
        ({"version": 99000, "init": 100, "devices": 0}, "the NVIDIA driver sees no CUDA device"),
        ({"version": 99000, "init": 999, "devices": 0}, "does not start (cuInit gives 999)"),
    ],
)
def test_what_the_driver_says(beside: dict[str, str], tmp_path: Path, driver: dict[str, int], words: str) -> None:
    assert words in ask_driver(beside, compiled(DRIVER.format(**driver), tmp_path / "libcuda.so.1"))


def test_a_driver_that_is_none(beside: dict[str, str], tmp_path: Path) -> None:
    other = compiled("int other(void) { return 1; }", tmp_path / "libcuda.so.1")
    assert "libcuda.so.1 is not the library of an NVIDIA driver" in ask_driver(beside, other)


def test_no_driver(beside: dict[str, str], tmp_path: Path) -> None:
    if (
        beside["NORCH_CUDA_LIBRARY"] == str(PLUGIN)
        and python("import ctypes; ctypes.CDLL('libcuda.so.1')").returncode == 0
    ):
        pytest.skip("here is a driver")
    assert "there is no NVIDIA driver here" in ask_driver(beside, tmp_path / "libcuda.so.1")


# ---- devices that are there: the simulation --------------------------------------------------------------------------


@pytest.fixture
def simulated() -> dict[str, str]:
    if not fits(SIMULATION):
        pytest.skip("the simulation is not built (make cudasim)")
    return {"NORCH_CUDA_LIBRARY": str(SIMULATION)}


def test_a_simulation_without_devices(simulated: dict[str, str]) -> None:
    assert said(**simulated, NORCH_CUDASIM_DEVICES="0") == "cuda: the NVIDIA driver sees no CUDA device"


def test_a_device_that_does_not_exist(simulated: dict[str, str]) -> None:
    program = """
import norch
for call in (
    lambda: norch.ones(2, device="cuda:7"),
    lambda: norch.ones(2).to("cuda:7"),
    lambda: norch.ones(2).cuda(7),
    lambda: norch.nn.Linear(2, 2).cuda(7),
    lambda: norch.cuda.set_device(7),
    lambda: norch.cuda.device("cuda:7").__enter__(),
    lambda: norch.cuda.get_device_properties(7),
    lambda: norch.cuda.synchronize(7),
    lambda: norch.cuda.Stream(7),
):
    try:
        call()
        print("no error")
    except norch.DeviceError as error:
        print(error)
"""
    for devices, word in (("1", "1 CUDA device"), ("2", "2 CUDA devices")):
        lines = said(program, **simulated, NORCH_CUDASIM_DEVICES=devices).splitlines()
        assert lines == [f"cuda:7 does not exist; this machine has {word}"] * 9


def test_out_of_memory(simulated: dict[str, str]) -> None:
    program = """
import norch
kept = norch.ones(1 << 20, device="cuda")
try:
    norch.ones(8 << 20, device="cuda")
except MemoryError as error:
    assert isinstance(error, norch.cuda.OutOfMemoryError)
    print(error)
assert norch.cuda.memory_allocated() == 4 << 20
print((kept + 1).sum().item())
"""
    text, after = said(program, **simulated, NORCH_CUDASIM_MEMORY="16").splitlines()
    assert "out of memory for 33554432 bytes on cuda:0: tensors hold 4194304" in text and "free on the device" in text
    assert after == str(2.0 * (1 << 20))


def test_the_driver_is_not_asked_for_more_than_the_device_has(simulated: dict[str, str]) -> None:
    program = """
import ctypes, os, norch
simulation = ctypes.CDLL(os.environ["NORCH_CUDA_LIBRARY"])
simulation.cudasim_fail.argtypes = [ctypes.c_int, ctypes.c_int64]
simulation.cudasim_fail.restype = ctypes.c_int64
norch.empty(15 << 20, dtype=norch.int8, device="cuda")
asked = simulation.cudasim_fail(0, -1)
for count in (17 << 20, 1 << 45):
    try:
        norch.empty(count, dtype=norch.int8, device="cuda")
    except norch.cuda.OutOfMemoryError as error:
        print(error)
print(asked, simulation.cudasim_fail(0, -1))
"""
    *refusals, asked = said(program, **simulated, NORCH_CUDASIM_MEMORY="16").splitlines()
    for count, text in zip((17 << 20, 1 << 45), refusals, strict=True):
        assert f"out of memory for {count} bytes on cuda:0" in text
    before, after = map(int, asked.split())
    assert before > 0 and after == 0


def test_a_failed_launch_names_the_operation(simulated: dict[str, str]) -> None:
    program = """
import ctypes, os, norch
simulation = ctypes.CDLL(os.environ["NORCH_CUDA_LIBRARY"])
simulation.cudasim_fail.argtypes = [ctypes.c_int, ctypes.c_int64]
x = norch.ones(40, 40, device="cuda")
for call in (lambda: x.exp(), lambda: x + x, lambda: x @ x, lambda: x.sum(), lambda: x.sort(), lambda: x.softmax(0)):
    call()
    simulation.cudasim_fail(1, 0)
    try:
        call()
        print("no error")
    except norch.DeviceError as error:
        print(error)
    call()
print(x.sum().item())
"""
    *lines, after = said(program, **simulated).splitlines()
    assert [line.split(":")[0] for line in lines] == ["exp", "add", "matmul", "sum", "sort", "softmax"]
    assert all("failed on the CUDA device: invalid configuration argument" in line for line in lines)
    assert after == "1600.0"


def test_a_gpu_that_the_build_has_no_code_for(simulated: dict[str, str]) -> None:
    program = """
import ctypes, os, norch
simulation = ctypes.CDLL(os.environ["NORCH_CUDA_LIBRARY"])
simulation.cudasim_fail.argtypes = [ctypes.c_int, ctypes.c_int64]
x = norch.ones(4, device="cuda")
simulation.cudasim_launch_error(209)
simulation.cudasim_fail(1, 0)
try:
    x.exp()
except norch.DeviceError as error:
    print(error)
"""
    text = said(program, **simulated)
    assert text.startswith("exp: this build of norch has no code that cuda:0 (cudasim") and "no kernel image" in text
    assert text.endswith("build it with `make cuda CUDA_ARCHS=90`")


def test_what_an_older_device_has_no_instructions_for(simulated: dict[str, str]) -> None:
    program = """
import norch
x = norch.rand(200, 300, generator=norch.Generator().manual_seed(0)).cuda()
found = [x @ x.T]
norch.backends.cuda.matmul.allow_tf32 = True
found.append(x @ x.T)
y = x.double()
print(bool((found[0] == found[1]).all()), bool(((y @ y.T) - found[0]).abs().max() < 1e-3))
"""
    assert said(program, **simulated) == "False True"
    for older in ("NORCH_CUDASIM_CAPABILITY", "NORCH_CUDASIM_PTX"):  # the device is older, or its code is
        assert said(program, **simulated, **{older: "75"}) == "True True"


def test_a_fault_is_told_with_what_it_costs(simulated: dict[str, str]) -> None:
    program = """
import ctypes, os, norch
simulation = ctypes.CDLL(os.environ["NORCH_CUDA_LIBRARY"])
simulation.cudasim_fail.argtypes = [ctypes.c_int, ctypes.c_int64]
x = norch.ones(4, device="cuda")
norch.cuda.synchronize()
simulation.cudasim_fail(2, 0)
try:
    y = x.exp()
    print("asynchronous")
    y.tolist()
except norch.DeviceError as error:
    print(error)
"""
    late, text = said(program, **simulated).splitlines()
    assert late == "asynchronous" and "an earlier operation, or this one, failed" in text and "NORCH_SYNC=1" in text
    [text] = said(program, **simulated, NORCH_SYNC="1").splitlines()
    assert text.startswith("exp: ")


def test_synchronous_calls_name_themselves_in_what_kernels_report(simulated: dict[str, str]) -> None:
    program = """
import norch
w, bad = norch.rand(3, 2).cuda(), norch.tensor([9]).cuda()
for call in (
    lambda: norch.nn.functional.embedding(bad, w),
    lambda: w.gather(0, bad[:, None]),
    lambda: w.scatter(0, bad[:, None], 1.0),
    lambda: norch.nn.functional.cross_entropy(w[:1], bad),
):
    try:
        call()
    except norch.BoundsError as error:
        print(error)
"""
    assert said(program, **simulated, NORCH_SYNC="1").splitlines() == [
        f"{name}: index 9 is out of range for size {size} on cuda:0; it was skipped"
        for name, size in (("embedding", 3), ("gather", 3), ("scatter", 3), ("cross_entropy", 2))
    ]


def test_use_after_a_fork(simulated: dict[str, str]) -> None:
    program = """
import os, norch
x = norch.ones(3, device="cuda")
event = norch.cuda.Event()
event.record()
pinned = norch.ones(3).pin_memory()
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    assert not norch.cuda.is_available() and "forked after CUDA" in norch.cuda.why_not()
    for call in (lambda: x + 1, lambda: x.tolist(), lambda: norch.ones(2).cuda(), norch.cuda.synchronize):
        try:
            call()
            os.write(writer, b"no error\\n")
        except norch.DeviceError as error:
            os.write(writer, str(error).encode() + b"\\n")
    os.write(writer, str((norch.ones(2) + pinned[:2]).tolist()).encode())
    del x, event, pinned
    os._exit(0)
os.close(writer)
assert os.waitpid(child, 0)[1] == 0
print(open(reader).read())
print((x + 1).tolist())
"""
    *lines, on_the_cpu, of_the_parent = said(program, **simulated).splitlines()
    assert len(lines) == 4 and all("forked after CUDA was used" in line and '"spawn"' in line for line in lines)
    assert (on_the_cpu, of_the_parent) == ("[2.0, 2.0]", "[2.0, 2.0, 2.0]")


def test_a_child_forked_before_the_first_use_may_use_it(simulated: dict[str, str]) -> None:
    program = """
import os, norch
child = os.fork()
if child == 0:
    os._exit(0 if norch.ones(3, device="cuda").sum().item() == 3 else 1)
assert os.waitpid(child, 0)[1] == 0
print(norch.ones(3, device="cuda").sum().item())
"""
    assert said(program, **simulated) == "3.0"


def test_numpy_does_not_see_a_device(simulated: dict[str, str]) -> None:
    pytest.importorskip("numpy")
    program = """
import norch, numpy
x = norch.ones(3, device="cuda")
for call in (x.numpy, lambda: numpy.asarray(x)):
    try:
        call()
    except TypeError as error:
        print(error)
"""
    lines = said(program, **simulated).splitlines()
    assert len(lines) == 2 and all("tensor on cuda:0 to numpy; use .cpu()" in line for line in lines)


def test_nothing_is_said_at_the_end_of_a_program(simulated: dict[str, str]) -> None:
    program = """
import norch
x, event, pinned = norch.ones(3, device="cuda"), norch.cuda.Event(enable_timing=True), norch.ones(3).pin_memory()
event.record()
y = pinned.to("cuda", non_blocking=True) + x
"""
    done = python(program, **simulated)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# ---- timings ---------------------------------------------------------------------------------------------------------


BENCHMARK = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from benchmarks.gpu.__main__ import main; "


def test_timings_want_a_gpu(simulated: dict[str, str], tmp_path: Path) -> None:
    ask = BENCHMARK + "sys.exit(main([]))"
    assert said(ask, NORCH_CUDA_LIBRARY=str(tmp_path / "none.so")).startswith(
        "no timings: cuda: NORCH_CUDA_LIBRARY names"
    )
    assert "the CUDA device is simulated" in said(ask, **simulated)


@pytest.mark.slow
def test_all_timed_cases_agree_with_pytorch(simulated: dict[str, str]) -> None:
    """Each case of the table at sizes of about ten, values and gradients; without PyTorch they run."""
    first, second, *rows = said(BENCHMARK + "sys.exit(main(['--small']))", **simulated).splitlines()
    assert "simulated on the CPU" in first and second.startswith("no timings")
    assert len(rows) > 85 and not any("DIFFERENT" in row or "FAILED" in row for row in rows)


def test_counts_want_kernels_that_are_compiled_for_it(simulated: dict[str, str]) -> None:
    ask = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from benchmarks.cuda_counts import main; sys.exit(main())"
    for environment, words in (({}, "this needs the simulation"), (simulated, "are not compiled for it")):
        done = python(ask, **environment)
        assert done.returncode == 1 and words in done.stderr and "make cuda-counts" in done.stderr


def test_the_table_of_a_gpu(simulated: dict[str, str], tmp_path: Path) -> None:
    """Its lines, its means and what is wrong, on the simulation, beside PyTorch on the CPU: no figure means a thing."""
    program = f"""
import json, sys
sys.path.insert(0, {str(ROOT)!r})
import norch
from benchmarks.gpu import __main__ as gpu, report
from benchmarks.gpu.library import OnDevice
libraries, torch = [OnDevice("norch", small=True)], gpu.load_torch(True)
if torch:
    class CUDA:
        synchronize = reset_peak_memory_stats = empty_cache = staticmethod(lambda: None)
        memory_allocated = max_memory_allocated = staticmethod(lambda: 0)
        is_available = staticmethod(lambda: False)
    torch.cuda = CUDA
    libraries.append(OnDevice("torch", "cpu", small=True))
names = "copy", "exp", "matmul 4096 .T@", "dropout f+b 1e7", "x[mask] 1e7"
chosen = [case for case in gpu.CASES if case.name in names]
def table(first=0, last=None):
    rows, failed = gpu.table(chosen[first:last], libraries, torch, 0.001, False)
    report.conclude(rows)
    print(json.dumps([failed, rows]))
    return rows
kept, page = {str(tmp_path / "kept")!r}, {str(tmp_path / "page")!r}
with open(kept, "w") as file:
    json.dump({{"machine": gpu.about(norch.cuda.get_device_properties(), libraries), "rows": table()}}, file)
gpu.main(["--from", kept, "--markdown", page, "--commit", "1a2b3c4"])
exp = norch.Tensor.exp
norch.Tensor.exp = lambda x: 1.001 * exp(x)
table(1, 2)
norch.Tensor.exp = None
table(1, 2)
gpu.LIMIT = -1
table()
"""
    lines = said(program, **simulated).splitlines()
    ends = [i for i, line in enumerate(lines) if line.startswith("[")]
    failed, rows = zip(*(json.loads(lines[end]) for end in ends))
    table, wrong = lines[: ends[0]], lines[ends[0] :]
    assert [row["case"] for row in rows[0]][:2] == ["copy", "exp"] and list(map(len, rows)) == [5, 1, 0, 0]
    assert any(line.startswith("copy ") and "of copy" in line for line in table)
    assert any("TFLOP/s" in line for line in table)
    assert any("FAILED: TypeError" in line for line in wrong) and any("stopped after" in line for line in wrong)
    page = (tmp_path / "page").read_text()
    assert "at commit 1a2b3c4" in page and "\n| matmul 4096 .T@ | " in page and "Not measured: a + b, " in page
    if "torch" in rows[0][0]:
        assert all(row["agrees"] and row["torch"]["ratio"] > 0 for row in rows[0])
        assert any(line.startswith("  all 3 counted") for line in table)
        assert any(line.endswith("DIFFERENT RESULTS") for line in wrong) and failed == (0, 1, 1, 1)
    else:
        assert failed == (0, 0, 1, 1)
