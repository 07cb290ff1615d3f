"""MPI, through mpi4py: the world, datatypes and operations, what waits too long, and what ends all ranks.

mpi4py is imported by init_process_group(), and needs an MPI: `pip install "norch[mpi]"` brings Open MPI.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from functools import cache
from typing import Any

from ..errors import ArgumentError, DTypeError, Error

# Names of MPI's datatypes for the dtypes that MPI computes with; those of bytes that only move, by size.
_NUMBERS = {
    "uint8": "UINT8_T", "int8": "INT8_T", "int16": "INT16_T", "int32": "INT32_T", "int64": "INT64_T",
    "float32": "FLOAT", "float64": "DOUBLE", "complex64": "C_FLOAT_COMPLEX", "complex128": "C_DOUBLE_COMPLEX",
}  # fmt: skip
_BYTES = {1: "BYTE", 2: "INT16_T", 4: "INT32_T", 8: "INT64_T", 16: "C_DOUBLE_COMPLEX"}
# Open MPI's and MPICH's launchers, and Slurm's, tell a process the size of its world in these.
_LAUNCHERS = "OMPI_COMM_WORLD_SIZE PMI_SIZE SLURM_STEP_NUM_TASKS".split()


@cache
def mpi() -> Any:
    """The module mpi4py.MPI; MPI begins when it is imported. ImportError where it is missing."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py finds no library of MPI
        raise ImportError(
            f"norch.distributed needs mpi4py and an MPI: pip install 'norch[mpi]' brings both ({error})"
        ) from error
    return MPI


def world() -> Any:
    """The communicator of all processes. Error where WORLD_SIZE or RANK contradict it: each would train alone."""
    MPI = mpi()  # noqa: N806
    comm = MPI.COMM_WORLD
    for name, found in (("WORLD_SIZE", comm.size), ("RANK", comm.rank)):
        wanted = os.environ.get(name)
        if wanted and wanted != str(found):
            launched = any(key in os.environ for key in _LAUNCHERS)
            hint = "unset it" if launched else "start the program with `mpiexec -n N python ...` or `srun`"
            raise Error(f"init_process_group: {name} is {wanted}, but MPI says {found}; {hint}")
    return comm


@cache
def number_type(dtype: Any, name: str) -> Any:
    """MPI's datatype for a dtype that MPI can add. DTypeError for others."""
    if dtype.name not in _NUMBERS:
        raise DTypeError(f"{name}: {dtype} is not supported")
    return getattr(mpi(), _NUMBERS[dtype.name])


@cache
def byte_type(dtype: Any) -> Any:
    """A datatype of MPI of the size of dtype, to move elements as they are."""
    return getattr(mpi(), _BYTES[dtype.itemsize])


def renamed(error: Exception, name: str) -> Exception:
    """An Error for an exception of MPI, with the name of the collective."""
    return Error(f"{name}: MPI: {error}")


# ---- what waits too long, and failures of one rank ----------------------------------------------


class Watch:
    """Ends all ranks if a call waits for others for more than `timeout` seconds.

    MPI's calls block without a limit, and an exception cannot reach a thread inside one: a thread looks on.
    """

    def __init__(self, timeout: float, rank: int) -> None:
        if timeout <= 0:
            raise ArgumentError(f"init_process_group: timeout is {timeout} s, and must be positive")
        self.timeout, self.rank = timeout, rank
        self.calls: dict[int, tuple[str, float]] = {}  # of each thread: what waits, since when
        self._ended = threading.Event()
        threading.Thread(target=self._look, name="norch.distributed", daemon=True).start()

    def __call__(self, what: str) -> _Watched:
        return _Watched(self, what)

    def end(self) -> None:
        """No call is watched any longer."""
        self._ended.set()

    def _look(self) -> None:
        while not self._ended.wait(min(self.timeout / 4, 1)):
            now = time.monotonic()
            for what, since in list(self.calls.values()):
                if now - since > self.timeout:
                    abort(f"rank {self.rank}: {what} has waited for other ranks for {now - since:.1f} s; ending all")


class _Watched:
    __slots__ = ("watch", "what")

    def __init__(self, watch: Watch, what: str) -> None:
        self.watch, self.what = watch, what

    def __enter__(self) -> None:
        self.watch.calls[threading.get_ident()] = self.what, time.monotonic()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.watch.calls.pop(threading.get_ident(), None)
        if isinstance(error, mpi().Exception):
            raise renamed(error, self.what.partition(" ")[0]) from error


def abort(message: str) -> None:
    """Prints message and ends the processes of all ranks."""
    print(f"norch.distributed: {message}", file=sys.stderr, flush=True)
    mpi().COMM_WORLD.Abort(1)


def end_all_on_failure() -> None:
    """From now on an exception that nobody catches ends all ranks: the others would wait for this one."""
    comm, before = mpi().COMM_WORLD, sys.excepthook
    if comm.size == 1:
        return

    def hook(kind: Any, error: Any, trace: Any) -> None:
        before(kind, error, trace)
        abort(f"rank {comm.rank} failed with {kind.__name__}; ending all")

    sys.excepthook = hook
