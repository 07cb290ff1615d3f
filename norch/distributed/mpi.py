"""MPI, through mpi4py: the world, datatypes and operations, and the transport of tensors.

mpi4py is imported by init_process_group(), and needs an MPI: `pip install "norch-dl[mpi]"` brings Open MPI.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from threading import get_ident
from typing import Any

from .._binding.buffers import address, function_of, int64s
from .._binding.library import lib
from ..autograd import no_grad
from ..dtype import DTYPES, bool_
from ..errors import DTypeError, Error
from ..tensor import Tensor
from .agreement import Agreement, Pending, number_of
from .watch import Watch, described, tell

# Names of MPI's datatypes for the dtypes that MPI computes with; those of bytes that only move, by size.
_NUMBERS = {
    "uint8": "UINT8_T", "int8": "INT8_T", "int16": "INT16_T", "int32": "INT32_T", "int64": "INT64_T",
    "float32": "FLOAT", "float64": "DOUBLE", "complex64": "C_FLOAT_COMPLEX", "complex128": "C_DOUBLE_COMPLEX",
}  # fmt: skip
_BYTES = {1: "BYTE", 2: "INT16_T", 4: "INT32_T", 8: "INT64_T", 16: "C_DOUBLE_COMPLEX"}
_OPS = {"sum": "SUM", "avg": "SUM", "product": "PROD", "min": "MIN", "max": "MAX"}
_BOOL_OPS = {"sum": "MAX", "max": "MAX", "product": "MIN", "min": "MIN"}  # or, and
HEAD = 16  # bytes before the elements of a message
# The environment variables in which the launchers of Open MPI, MPICH and Slurm pass the size of the world.
_LAUNCHERS = "OMPI_COMM_WORLD_SIZE PMI_SIZE SLURM_STEP_NUM_TASKS".split()


@cache
def mpi() -> Any:
    """The module mpi4py.MPI; MPI begins when it is imported. ImportError where it is missing."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py finds no library of MPI
        raise ImportError(
            f"norch.distributed needs mpi4py and an MPI: pip install 'norch-dl[mpi]' brings both ({error})"
        ) from error
    return MPI


def is_launched() -> bool:
    """Whether an MPI launcher started this process."""
    return any(key in os.environ for key in _LAUNCHERS)


def world() -> Any:
    """The communicator of all processes. Error where WORLD_SIZE or RANK contradict it: each would train alone."""
    MPI = mpi()  # noqa: N806
    comm = MPI.COMM_WORLD
    for name, actual in (("WORLD_SIZE", comm.size), ("RANK", comm.rank)):
        wanted = os.environ.get(name)
        if wanted and wanted != str(actual):
            hint = "unset it" if is_launched() else "start the program with `mpiexec -n N python ...` or `srun`"
            raise Error(f"init_process_group: {name} is {wanted}, but MPI says {actual}; {hint}")
    return comm


@cache
def number_type(dtype: Any, name: str) -> Any:
    """MPI's datatype for a dtype that MPI can add. DTypeError for others."""
    if dtype.name not in _NUMBERS:
        raise DTypeError(f"{name}: {dtype} is not supported")
    return getattr(mpi(), _NUMBERS[dtype.name])


@cache
def byte_type(dtype: Any) -> Any:
    """An MPI datatype of the size of dtype, to move elements without arithmetic."""
    return getattr(mpi(), _BYTES[dtype.itemsize])


@cache
def reduction(how: str, dtype: Any, name: str) -> Any:
    """MPI's operation that combines elements of a dtype."""
    return getattr(mpi(), (_BOOL_OPS if dtype is bool_ else _OPS)[how])


def _reductions(comm: Any, agreement: Agreement | None) -> dict[str, Any]:
    """By operation the array that csrc/python/mpi.c reads: MPI_Allreduce, of the library that mpi4py has loaded, and
    handles; the datatype of each dtype, 0 for those that take more than one call of MPI."""
    function = function_of(mpi().__file__, "MPI_Allreduce")
    if not function:
        return {}
    handle, handles = mpi()._handleof, {}
    for how in _OPS:
        plain = "f" if how == "avg" else "uif"
        kinds = [handle(number_type(d, how)) if d.kind in plain and d.name in _NUMBERS else 0 for d in DTYPES]
        head = function, int(mpi().IN_PLACE), handle(reduction(how, None, how)), handle(comm)
        agreed = 0 if agreement is None else handle(agreement.comm), handle(mpi().INT64_T), handle(mpi().MAX)
        handles[how] = int64s(*head, *agreed, *kinds)
    return handles


def abort(message: str) -> None:
    """Prints message and ends the processes of all ranks."""
    tell(message)
    mpi().COMM_WORLD.Abort(1)


class _Request:
    """A nonblocking call: MPI's request, the message that it reads or writes, the comparison with other ranks, and the
    error with which it could not begin."""

    def __init__(
        self, of_mpi: Any, message: Any = None, pending: Pending | None = None, error: Error | None = None
    ) -> None:
        self.of_mpi, self.message, self.pending, self.error = of_mpi, message, pending, error


class _with_head:  # noqa: N801
    """A message of a head and the memory of a tensor, sent or received as one. spec: as mpi4py takes it."""

    def __init__(self, x: Any, head: Any) -> None:
        buffer, count, datatype = x
        MPI = mpi()  # noqa: N806
        places = [address(head), buffer.address if count else 0]
        self.kind = MPI.Datatype.Create_struct([HEAD, count], places, [MPI.BYTE, datatype]).Commit()
        self.spec, self.head = [MPI.BOTTOM, 1, self.kind], head

    def __del__(self) -> None:
        self.kind.Free()


class Link:
    """The transport of collectives through MPI: tensors in host memory, without pickling.

    nccl.Link has the same methods, but all_reduce().
    """

    widens: dict[Any, Any] = {}  # noqa: RUF012  (dtypes that are combined in another)
    number_type, byte_type = staticmethod(number_type), staticmethod(byte_type)
    reduction = staticmethod(reduction)

    def __init__(self, comm: Any, ranks: Sequence[int], watch: Watch) -> None:
        self.comm, self.watch, self.in_place = comm, watch, mpi().IN_PLACE
        self.agreement = None if comm.size == 1 else Agreement(comm, ranks, watch, mpi())
        self.numbers: dict[Any, int] = {}  # of calls of all_reduce()
        self._arrays = _reductions(comm, self.agreement)
        self.reductions = {how: address(array) for how, array in self._arrays.items()}

    def all_reduce(self, x: Any, op: Any) -> bool:
        """all_reduce() of a tensor that MPI can combine where it lies, by one call of the library. False, and nothing
        is done, for all else."""
        try:
            array = self.reductions[op]
            key = lib.norch_shape(x), x._dtype, op
        except (KeyError, TypeError):
            return False
        number = self.numbers.get(key)
        if number is None:
            if len(self.numbers) > 1000:
                self.numbers.clear()
            number = self.numbers[key] = number_of(described(("all_reduce", False, x, op)))
        watch, thread = self.watch, get_ident()
        watch.calls[thread] = ("all_reduce", x, op), watch.looks
        try:
            status = lib.norch_mpi_all_reduce(x, array, number)
        finally:
            del watch.calls[thread]
        if status is None:
            return False
        if status == -1 and self.agreement is not None:
            self.agreement.differ(("all_reduce", False, x, op), described(("all_reduce", False, x, op)))
        if status:
            raise Error(f"all_reduce: MPI: {mpi().Get_error_string(status)}")
        x._bump()
        if op == "avg":
            with no_grad():
                x.div_(self.comm.size)
        return True

    def placed(self, x: Tensor, name: str) -> Tensor:
        """x itself, or a copy, contiguous and on the host."""
        return x if x.is_contiguous() and not x.is_cuda else x.detach().cpu().contiguous()

    def device_for(self, x: Tensor) -> Any:
        """The device of temporary memory for x."""
        return "cpu"

    def divides(self, how: str) -> bool:
        """Whether the caller must divide the sum by the number of ranks: MPI has no average."""
        return how == "avg"

    def buffer(self, address: int, size: int) -> Any:
        """The memory of x as an MPI buffer."""
        return mpi().buffer.fromaddress(address, size)

    def call(self, operation: tuple[Any, ...], method: str, *arguments: Any) -> None:
        """Runs a collective and waits for it; Error on all ranks if they call different ones. A message has a head."""
        if method in ("Send", "Recv"):
            whole = _with_head(*arguments[:2])
            self.watch.run(operation, getattr(self.comm, method), whole.spec, *arguments[2:])
            return
        if self.agreement is not None:
            self.agreement.check(operation, method, arguments)
        self.watch.run(operation, getattr(self.comm, method), *arguments)

    def begin(self, operation: tuple[Any, ...], method: str, *arguments: Any) -> Any:
        """Starts a nonblocking collective and returns its request."""
        if method in ("Send", "Recv"):
            whole = _with_head(*arguments[:2])
            return _Request(
                self.watch.run(operation, getattr(self.comm, f"I{method.lower()}"), whole.spec, *arguments[2:]), whole
            )
        pending = None if self.agreement is None else self.agreement.begin(operation, method, arguments)
        try:
            return _Request(
                self.watch.run(operation, getattr(self.comm, "I" + method.lower()), *arguments), None, pending
            )
        except Error as error:
            if pending is None:
                raise
            return _Request(None, None, pending, error)  # the comparison may say why

    def wait(self, operation: tuple[Any, ...], request: Any) -> None:
        """Waits for a request of begin(); Error on all ranks if they call different ones."""
        if request.pending is not None:
            request.pending.is_complete(waits=True)
        if request.error is not None:
            raise request.error
        self.watch.run(operation, request.of_mpi.Wait)

    def test(self, operation: tuple[Any, ...], request: Any) -> bool:
        """Whether a request is complete. The call lets MPI make progress."""
        if request.pending is not None and not request.pending.is_complete(waits=False):
            return False
        if request.error is not None:
            raise request.error
        return bool(self.watch.run(operation, request.of_mpi.Test))

    def head(self, x: Tensor) -> tuple[Any, ...]:
        """What goes before the elements of a message: their dtype and number."""
        return (int64s(x._dtype, x._numel),)

    def status(self) -> Any:
        """The status that Recv fills and sender() reads."""
        return mpi().Status()

    def sender(self, status: Any, source: int) -> int:
        """The rank of the sender of a status."""
        return int(status.Get_source())

    def any_source(self, name: str) -> int:
        """The value that stands for any rank as the sender."""
        return int(mpi().ANY_SOURCE)

    def free(self) -> None:
        """Frees the communicator of the agreement; the group frees the other one."""
        if self.agreement is not None:
            self.agreement.free()
