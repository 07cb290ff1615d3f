"""norch.distributed on NCCL: no GPU is needed, as the devices are simulated, and NCCL is tests/cudasim/nccl.c.

`make cudasim` builds both; the tests are left out where they are not there. They say nothing of NCCL's own speed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from launcher import ALONE, ROOT, launch, with_mpi

from norch.distributed import nccl

BUILT = ROOT / "build" / "cudasim"
SIMULATED = {
    "NORCH_CUDA_LIBRARY": str(BUILT / "libnorch_cudasim.so"),
    "NORCH_NCCL_LIBRARY": str(BUILT / "libnccl.so.2"),
    "NORCH_CUDASIM_DEVICES": "4",
    "NORCH_TEST_BACKEND": "nccl",
    "NORCH_NUM_THREADS": "1",
    "PYTHONPATH": str(ROOT),
}
simulated = pytest.mark.skipif(
    not all(Path(SIMULATED[key]).exists() for key in list(SIMULATED)[:2]), reason="make cudasim"
)
pytestmark = pytest.mark.host


def start(program: list[str], rank: int, ranks: int, file: Path, **env: str) -> subprocess.Popen[str]:
    """A rank of a world without MPI."""
    own = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "NORCH_TEST_METHOD": f"file://{file}"}
    return subprocess.Popen(
        [sys.executable, *program],
        cwd=Path(__file__).parent,
        env={**ALONE, **SIMULATED, **own, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(name: str, ranks: int, folder: Path, file: str = "programs.py", **env: str) -> list[tuple[int, str, str]]:
    """(exit status, stdout, stderr) of a function of a file of programs on each rank."""
    started = [start([file, name], rank, ranks, folder / "id", **env) for rank in range(ranks)]
    ended = [one.communicate(timeout=300) for one in started]
    return [(one.returncode, *texts) for one, texts in zip(started, ended, strict=True)]


def all_done(ended: list[tuple[int, str, str]]) -> None:
    assert all(status == 0 for status, *_ in ended), "\n".join(err[-2000:] for *_, err in ended)
    assert all(f"rank {rank} " in out and "done" in out for rank, (_, out, _) in enumerate(ended))


@simulated
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", "reductions movement layouts objects_and_groups synchronized_norm data_parallel divided_optimizer".split()
)
def test_ranks(name: str, tmp_path: Path) -> None:
    all_done(run(name, 2, tmp_path))
    assert not list(tmp_path.iterdir())  # the file with the id is gone


@simulated
@pytest.mark.slow
def test_calls_that_differ_are_named(tmp_path: Path) -> None:
    all_done(run("differ", 2, tmp_path, NORCH_DISTRIBUTED_DEBUG="1"))


@simulated
@pytest.mark.slow
@pytest.mark.parametrize("name", ["training", "collectives"])
def test_captured(name: str, tmp_path: Path) -> None:
    all_done(run(name, 2, tmp_path, "programs_capture.py"))


@simulated
def test_what_is_refused(tmp_path: Path) -> None:
    all_done(run("wrong", 2, tmp_path, "programs_nccl.py"))


@simulated
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("late", "rank 0: all_reduce of (4,) norch.float32 by sum has waited for other ranks for"),
        ("dies", "rank 0: all_reduce of (4,) norch.float32 by sum: NCCL: remote process exited"),
    ],
)
def test_a_rank_that_is_lost_ends_the_others(name: str, says: str, tmp_path: Path) -> None:
    since = time.monotonic()
    started = [start(["programs_nccl.py", name], rank, 2, tmp_path / "id") for rank in range(2)]
    try:
        _, told = started[0].communicate(timeout=60)
        assert started[0].returncode == 1 and says in told, told
        assert time.monotonic() - since < 50
    finally:
        for one in started:
            one.kill()
            one.communicate()


@simulated
@with_mpi
@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "file", "name"),
    [("cpu:gloo,cuda:nccl", "programs_nccl.py", "both"), ("nccl", "programs.py", "objects_and_groups")],
)
def test_with_mpi_the_id_goes_through_it(backend: str, file: str, name: str) -> None:
    done = launch(Path(__file__).with_name(file), name, ranks=2, **{**SIMULATED, "NORCH_TEST_BACKEND": backend})
    assert done.returncode == 0 and "rank 1" in done.stdout, done.stderr[-3000:]


INIT = "import norch; norch.distributed.init_process_group('nccl'{})"


@simulated
@pytest.mark.parametrize(
    ("options", "env", "says"),
    [
        ("", {"WORLD_SIZE": "2", "RANK": "1"}, "2 processes and no launcher of MPI: they find each other through"),
        ("", {"WORLD_SIZE": "2", "RANK": "2"}, "rank 2 of a world of 2"),
        ("", {"WORLD_SIZE": "two"}, "WORLD_SIZE is 'two', and must be a number"),
        (", world_size=2", {"WORLD_SIZE": "3"}, "world_size is 2, but WORLD_SIZE of the environment is 3"),
        (", init_method='tcp://host:1'", {}, "norch opens no port"),
        (", device_id='cuda:9'", {}, "DeviceError"),
        (
            ", rank=5, world_size=6, init_method='file:///none'",
            {},
            "process 5 of this machine has no CUDA device of its own",
        ),
        (", rank=0, world_size=2, init_method='file://README.md'", {}, "README.md is there already"),
        (
            ", rank=1, world_size=2, init_method='file:///none', timeout=0.1",
            {},
            "rank 0 has not written /none",
        ),
        ("", {"NORCH_NCCL_LIBRARY": "/none.so"}, "pip install 'norch-dl\\[nccl\\]' brings it"),
        ("", {"NORCH_NCCL_LIBRARY": "libm.so.6"}, "the NCCL of libm.so.6 has no ncclGetUniqueId"),
        ("", {"NORCH_CUDA_LIBRARY": "/none.so"}, "DeviceError"),
    ],
)
def test_what_init_process_group_says(options: str, env: dict[str, str], says: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INIT.format(options)],
        cwd=ROOT,
        env={**ALONE, **SIMULATED, **env},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and re.search(says, done.stderr), done.stderr


@simulated
def test_one_process_is_a_world() -> None:
    code = """
import norch, norch.distributed as dist
from norch.nn.parallel import DistributedDataParallel
norch.set_default_device("cuda")
dist.init_process_group("nccl")
model = DistributedDataParallel(norch.nn.Linear(2, 1))
model(norch.ones(1, 2)).sum().backward()
print(model.module.weight.grad.tolist(), dist.get_backend(), dist.is_nccl_available())
dist.destroy_process_group()
"""
    done = subprocess.run([sys.executable, "-c", code], env={**ALONE, **SIMULATED}, capture_output=True, text=True)
    assert done.stdout == "[[1.0, 1.0]] nccl True\n", done.stderr


def test_the_version_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path(SIMULATED["NORCH_NCCL_LIBRARY"]).exists():
        pytest.skip("make cudasim")
    monkeypatch.setenv("NORCH_NCCL_LIBRARY", SIMULATED["NORCH_NCCL_LIBRARY"])
    nccl.nccl.cache_clear()
    assert nccl.version() == (2, 27, 3)
    nccl.nccl.cache_clear()
