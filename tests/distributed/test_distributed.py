"""norch.distributed on several processes of this machine: programs.py has what runs on each rank."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import norch
import norch.distributed as dist
from norch.distributed import mpi

ROOT = Path(__file__).resolve().parents[2]
MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
ALONE = {key: value for key, value in os.environ.items() if not key.startswith(("RANK", "WORLD_SIZE", "OMPI_", "PMI"))}
with_mpi = pytest.mark.skipif(
    MPIEXEC is None or importlib.util.find_spec("mpi4py") is None, reason="needs mpi4py and mpiexec: norch[mpi]"
)
pytestmark = pytest.mark.host


def launch(*program: object, ranks: int, **env: str) -> subprocess.CompletedProcess[str]:
    """python with these arguments on `ranks` processes, more of them than cores if need be."""
    options = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "NORCH_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
    }
    command = [str(MPIEXEC), "-n", str(ranks), sys.executable, *map(str, program)]
    return subprocess.run(
        command, cwd=ROOT, env={**ALONE, **options, **env}, capture_output=True, text=True, timeout=300
    )


def run(name: str, ranks: int, *arguments: object, **env: str) -> subprocess.CompletedProcess[str]:
    """A function of programs.py on each rank."""
    return launch(Path(__file__).with_name("programs.py"), name, *arguments, ranks=ranks, **env)


PROGRAMS = (
    "reductions movement layouts objects_and_groups training synchronized_norm divided_optimizer data_parallel wrong"
).split()


@with_mpi
@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("name", PROGRAMS)
def test_ranks(name: str, ranks: int) -> None:
    done = run(name, ranks)
    assert done.returncode == 0, done.stderr[-3000:]
    assert sorted(done.stdout.splitlines()) == [f"rank {i} of {ranks} is done" for i in range(ranks)]


@with_mpi
@pytest.mark.slow
def test_checkpoints(tmp_path: Path) -> None:
    done = run("checkpoints", 2, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]


@with_mpi
@pytest.mark.slow
def test_a_killed_run_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    whole = run("resumed", 2, tmp_path / "whole", 6)
    assert whole.returncode == 0, whole.stderr[-3000:]
    killed = run("resumed", 2, tmp_path / "killed", 6, 4)
    assert killed.returncode != 0
    again = run("resumed", 2, tmp_path / "killed", 6)
    lines = [sorted(done.stdout.splitlines()) for done in (again, whole)]
    assert again.returncode == 0 and lines[0] == lines[1], again.stderr[-3000:]
    assert len(list((tmp_path / "killed").iterdir())) == 3  # what the killed run left is gone
    alone = run("read", 1, tmp_path / "whole")  # other ranks than those that wrote it
    assert alone.returncode == 0 and alone.stdout.splitlines()[0] in whole.stdout, alone.stderr[-3000:]


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


def test_without_a_group() -> None:
    with pytest.raises(norch.Error, match="all_reduce: call norch.distributed.init_process_group\\(\\) first"):
        dist.all_reduce(norch.ones(1))
    assert not dist.is_initialized() and dist.is_available() and not dist.is_nccl_available()
    with pytest.raises(norch.Error, match="init_process_group\\(\\) first"):
        norch.nn.parallel.DistributedDataParallel(norch.nn.Linear(1, 1))


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"backend": "nccl"}, norch.DeviceError, "NCCL is not supported"),
        ({"backend": "smoke"}, norch.ArgumentError, "'mpi' or 'gloo'"),
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
    with pytest.raises(ImportError, match=r"pip install 'norch\[mpi\]'"):
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
def test_the_benchmark_compares() -> None:
    done = launch("-m", "benchmarks.distributed", "--most", "1", "--rounds", "2", ranks=2)
    assert done.returncode == 0 and "mpi4py/norch" in done.stdout, done.stderr
