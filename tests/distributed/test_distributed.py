"""norch.distributed on several processes of this machine: programs.py has what runs on each rank."""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from launcher import ALONE, ROOT, launch, run, with_mpi

import norch
import norch.distributed as dist
from norch._binding.buffers import address, int64s
from norch._binding.library import lib
from norch.distributed import mpi
from norch.dtype import DTYPES

pytestmark = pytest.mark.host

PROGRAMS = (
    "reductions movement layouts objects_and_groups training synchronized_norm divided_optimizer data_parallel wrong"
).split()


@with_mpi
@pytest.mark.slow
@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.long), 3, pytest.param(4, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_ranks(name: str, ranks: int) -> None:
    done = run(name, ranks)
    assert done.returncode == 0, done.stderr[-3000:]
    assert sorted(done.stdout.splitlines()) == [f"rank {i} of {ranks} is done" for i in range(ranks)]


@with_mpi
@pytest.mark.slow
def test_checkpoints(tmp_path: Path) -> None:
    done = run("checkpoints", 2, tmp_path, file="programs_resume.py")
    assert done.returncode == 0, done.stderr[-3000:]


@with_mpi
@pytest.mark.slow
def test_a_killed_run_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    whole = run("resumed", 2, tmp_path / "whole", 6, file="programs_resume.py")
    assert whole.returncode == 0, whole.stderr[-3000:]
    killed = run("resumed", 2, tmp_path / "killed", 6, 4, file="programs_resume.py")
    assert killed.returncode != 0
    again = run("resumed", 2, tmp_path / "killed", 6, file="programs_resume.py")
    lines = [sorted(done.stdout.splitlines()) for done in (again, whole)]
    assert again.returncode == 0 and lines[0] == lines[1], again.stderr[-3000:]
    assert len(list((tmp_path / "killed").iterdir())) == 3  # what the killed run left is gone
    alone = run("read", 1, tmp_path / "whole", file="programs_resume.py")  # other ranks than those that wrote it
    assert alone.returncode == 0 and alone.stdout.splitlines()[0] in whole.stdout, alone.stderr[-3000:]


@with_mpi
@pytest.mark.slow
def test_groups() -> None:
    done = run("groups", 3, file="programs_groups.py")
    assert done.returncode == 0, done.stderr[-3000:]


@with_mpi
@pytest.mark.slow
def test_a_captured_run_with_workers_that_is_killed_goes_on(tmp_path: Path) -> None:
    whole = run("train", 2, tmp_path / "whole", 16, file="programs_resume.py")
    assert whole.returncode == 0, whole.stderr[-3000:]
    killed = run("train", 2, tmp_path / "killed", 16, 9, file="programs_resume.py")
    assert killed.returncode != 0 and (tmp_path / "killed" / "index.norch").exists()
    again = run("train", 2, tmp_path / "killed", 16, file="programs_resume.py")
    assert again.returncode == 0, again.stderr[-3000:]
    assert "went on at 8" in again.stdout and "went on" not in whole.stdout
    results = [sorted(line for line in done.stdout.splitlines() if "left" in line) for done in (again, whole)]
    assert len(results[0]) == 2 and results[0] == results[1]


@with_mpi
@pytest.mark.slow
def test_calls_that_differ_are_named() -> None:
    done = run("differ", 2, NORCH_DISTRIBUTED_DEBUG="1")
    assert done.returncode == 0, done.stderr[-3000:]


@with_mpi
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "says"),
    [("fails", "rank 1 failed with ValueError"), ("is_late", "all_reduce of (4,)"), ("dies", "rank 1")],
)
def test_a_rank_that_is_lost_ends_all(name: str, says: str) -> None:
    since = time.monotonic()
    done = run(name, 2)
    assert done.returncode != 0 and time.monotonic() - since < 40
    assert says in done.stderr, done.stderr[-3000:]


@with_mpi
@pytest.mark.parametrize(("key", "value"), [("WORLD_SIZE", "4"), ("RANK", "3")])
def test_a_launcher_that_is_not_of_mpi_is_refused(key: str, value: str) -> None:
    code = "import norch; norch.distributed.init_process_group('gloo')"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**ALONE, "PYTHONPATH": str(ROOT), key: value}, capture_output=True, text=True
    )
    assert done.returncode == 1 and f"{key} is {value}, but MPI says" in done.stderr and "mpiexec -n N" in done.stderr


def test_the_call_of_the_function_of_mpi() -> None:
    """csrc/python/mpi.c on a function that notes what it is given; a status that is not 0 comes back."""
    seen: list[tuple[int, ...]] = []
    pointer = ctypes.c_void_p

    def all_reduce(*given: int) -> int:
        seen.append(given)
        return 15

    function = ctypes.CFUNCTYPE(ctypes.c_int, pointer, pointer, ctypes.c_int, pointer, pointer, ctypes.c_int)(
        all_reduce
    )
    handles = [100 + i if one is not norch.bool else 0 for i, one in enumerate(DTYPES)]
    alone = int64s(ctypes.cast(function, pointer).value, -1, 7, 0x44000000, 0, 8, 9, *handles)
    x = norch.ones(2, 3)
    assert lib.norch_mpi_all_reduce(x, address(alone), 5) == 15
    assert seen == [(2**64 - 1, x.data_ptr(), 6, 100 + norch.float32.code, 7, 0x44000000)]
    for other in (x.t(), x[:0], x.bool(), None):
        assert lib.norch_mpi_all_reduce(other, address(alone), 5) is None
    assert (
        norch.vmap(lambda x: x + int(lib.norch_mpi_all_reduce(x, address(alone), 5) is None))(x).tolist()
        == [[2.0] * 3] * 2
    )
    assert len(seen) == 1
    with pytest.raises(TypeError, match="takes 3 arguments, not 1"):
        lib.norch_mpi_all_reduce(x)
    for wrong in ((x, "sum", 5), (x, address(alone), "5")):
        with pytest.raises(TypeError):
            lib.norch_mpi_all_reduce(*wrong)

    others = [0]  # the number of the call of another rank

    def compared(_: int, at: int, count: int, *kind: int) -> int:
        seen.append((count, *kind))
        if count == 2:
            pair = (ctypes.c_int64 * 2).from_address(at)
            pair[:] = max(pair[0], others[0]), max(pair[1], -others[0])
        return 0

    function = ctypes.CFUNCTYPE(ctypes.c_int, pointer, pointer, ctypes.c_int, pointer, pointer, ctypes.c_int)(compared)
    several = int64s(ctypes.cast(function, pointer).value, -1, 7, 4, 6, 8, 9, *handles)
    for others[0], status, calls in ((5, 0, 2), (4, -1, 1), (6, -1, 1)):
        seen.clear()
        assert lib.norch_mpi_all_reduce(x, address(several), 5) == status
        assert seen == [(2, 8, 9, 6), (6, 100 + norch.float32.code, 7, 4)][:calls]


@with_mpi
def test_the_code_of_the_page(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "distributed.md").read_text(), re.M | re.S)
    code = [block for block in blocks if "nccl" not in block]
    program = tmp_path / "page.py"
    ends = "assert x.tolist() == [3.0, 3.0] and state['epoch'] == 3"
    program.write_text("\n".join([f"import os; os.chdir({str(tmp_path)!r})", *code, ends]))
    done = launch(program, ranks=2)
    assert len(code) > 1 and done.returncode == 0, done.stderr


@with_mpi
def test_one_process_is_a_world() -> None:
    code = """
import norch, norch.distributed as dist
from norch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo", rank=0, world_size=1)
model = DistributedDataParallel(norch.nn.Linear(2, 1))
model(norch.ones(1, 2)).sum().backward()
print(model.module.weight.grad.tolist())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env={**ALONE, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.stdout == "[[1.0, 1.0]]\n", done.stderr


@with_mpi
@pytest.mark.parametrize(
    ("ranks", "least", "rooms"),
    [
        (1, 39, "checkpoint collectives data_parallel objects optim process_group sync_batch_norm transfer"),
        (2, 6, "point_to_point"),
    ],
)
def test_the_examples_in_docstrings_run(ranks: int, least: int, rooms: str) -> None:
    """Those of messages on two ranks, for a process sends itself none."""
    code = """
import doctest, importlib, sys
import norch
finder = doctest.DocTestFinder()
runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
modules = [importlib.import_module(f"norch.distributed.{room}") for room in sys.argv[1:]]
found = [test for module in modules for test in finder.find(module, extraglobs={"norch": norch}) if test.examples]
if "process_group" not in sys.argv:
    norch.distributed.init_process_group()
for test in sorted(found, key=lambda test: not test.name.endswith(".init_process_group")):
    runner.run(test)
print(len(found), runner.failures)
"""
    done = launch("-c", code, *rooms.split(), ranks=ranks)
    lines = [line.split() for line in done.stdout.splitlines()[-ranks:]]
    assert all(int(count) >= least and failures == "0" for count, failures in lines), done.stdout + done.stderr


def test_without_a_group() -> None:
    with pytest.raises(norch.Error, match="all_reduce: call norch.distributed.init_process_group\\(\\) first"):
        dist.all_reduce(norch.ones(1))
    assert not dist.is_initialized() and dist.is_available()
    with pytest.raises(norch.Error, match="init_process_group\\(\\) first"):
        norch.nn.parallel.DistributedDataParallel(norch.nn.Linear(1, 1))


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"backend": "nccl"}, norch.DeviceError, "cuda"),  # there is none
        ({"backend": "cpu:nccl"}, norch.DeviceError, "NCCL takes tensors of CUDA devices"),
        ({"backend": "smoke"}, norch.ArgumentError, "'mpi', 'gloo'"),
        ({"timeout": "soon"}, TypeError, "init_process_group: timeout is a number of seconds or a timedelta, not str"),
        ({"timeout": 0}, norch.ArgumentError, "timeout is 0.0 s, and must be positive"),
        ({"init_method": "file://"}, norch.ArgumentError, "'file:///a/path'"),
        ({"backend": 3}, TypeError, "must be a str"),
        ({"init_method": "tcp://host:1"}, norch.ArgumentError, "'env://'"),
    ],
)
def test_what_init_process_group_refuses(options: dict, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        dist.init_process_group(**options)


def test_without_mpi4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    mpi.mpi.cache_clear()
    with pytest.raises(ImportError, match=r"pip install 'norch-dl\[mpi\]'"):
        dist.init_process_group()
    assert not dist.is_mpi_available()


@with_mpi
@pytest.mark.slow
def test_the_example_trains_as_one_process() -> None:
    pytest.importorskip("sklearn")
    done = launch(ROOT / "examples" / "data_parallel.py", ranks=2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("2 ranks read 9")


@with_mpi
@pytest.mark.slow
@pytest.mark.long
def test_the_benchmark_compares() -> None:
    done = launch("-m", "benchmarks.distributed", "--most", "1", "--rounds", "2", ranks=2)
    assert done.returncode == 0 and "mpi4py/norch" in done.stdout, done.stderr


@with_mpi
@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("overlap.png", marks=pytest.mark.long), "overlap.json"])
def test_the_timeline_is_drawn(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = launch("-m", "benchmarks.distributed", "--timeline", tmp_path / name, ranks=2)
    assert done.returncode == 0 and "not waited for" in done.stdout, done.stderr
    drawn = (tmp_path / name).read_bytes()
    if name.endswith("png"):
        assert drawn.startswith(b"\x89PNG")
        return
    events = json.loads(drawn)["traceEvents"]
    for rank in range(2):
        mine = [event for event in events if event["pid"] == rank]
        sums = [event["ts"] for event in mine if event["tid"] == "buckets"]
        last = max(event["ts"] for event in mine if event["name"] == "backward")
        assert len(sums) == 9 and sum(since < last for since in sums) >= 8  # they begin while backward goes on


def test_the_page_has_what_the_model_of_scaling_gives() -> None:
    pytest.importorskip("benchmarks.scaling_model")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scaling_model", "--markdown"], cwd=ROOT, capture_output=True, text=True
    )
    assert len(done.stdout.splitlines()) == 8 and done.stdout in (ROOT / "docs" / "distributed.md").read_text()


def test_the_model_of_scaling_chooses_rings_and_trees() -> None:
    scaling_model = pytest.importorskip("benchmarks.scaling_model")
    wire = scaling_model.Wire(1e-6, 1e9)
    assert scaling_model.all_reduce(1e6, 1, wire) == 0
    assert scaling_model.all_reduce(1e9, 4, wire) == pytest.approx(6e-6 + 1.5)  # a ring
    assert scaling_model.all_reduce(8, 1000, wire) == pytest.approx(20e-6 + 16e-9)  # a tree
    gpt = scaling_model.MODELS[2]
    assert sum(scaling_model.buckets(gpt)) == 4 * gpt.parameters
    assert scaling_model.step(gpt, 1, wire) == pytest.approx(gpt.seconds)
    assert gpt.seconds < scaling_model.step(gpt, 64, wire)
